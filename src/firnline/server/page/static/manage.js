// Managing a conversation: how it is planned, where it belongs, proof, copies, and its end.

import { render } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { all, at, del, get, patch, post, put } from './api.js';
import { Act, Box, Confirm, FormRow, html, Loaded, Name, number, percent, plural, titleOf, useLoaded, when } from './ui.js';
import { link } from './app.js';
import { made as known, originOf } from './chat.js';
import { personLink } from './people.js';
import { Facts, Ref, save, Share, textOf } from './pieces.js';
import { Export } from './transfer.js';

// -- proof ------------------------------------------------------------------------------------

const HASH = /^sha256:[0-9a-f]{64}$/;

/** Whether all that is wrong is that the hash which was noted is not in the chain. */
const isElsewhere = (result, anchor) => result.problems.length === 1 && result.problems[0].startsWith(`${anchor} is not in the chain`);

function Proof({ result, anchor }) {
  if (isElsewhere(result, anchor)) {
    return html`<div class="trouble" role="alert"><b>This hash is not in this chain.</b> The log itself is consistent, all ${plural(result.entries, 'message')}.
      Check that the hash is complete and belongs to this conversation. If so, this is not the log that you saw then.</div>`;
  }
  if (!result.ok) {
    return html`<div class="trouble" role="alert"><b>Stored data has changed.</b><ul class="plain">${result.problems.map((one, n) => html`<li key=${n}>${one}</li>`)}</ul></div>`;
  }
  return html`<div class="proof" role="status"><b>Verified.</b> Every hash of ${plural(result.entries, 'message')}, ${number(result.tokens)} tokens, was computed again and matches.
    <label>The head hash covers everything. Keep it elsewhere to prove later that nothing has changed.<code class="hash">${result.head}</code></label>
    ${navigator.clipboard && html`<${Act} class="small" run=${() => navigator.clipboard.writeText(result.head)} done="Copied.">Copy<//>`}</div>`;
}

/** A file with a proof, for those who have nothing but it and the verifier. */
function ForOthers({ name, head }) {
  const [seq, set] = useState('');
  const file = (text, what) => save(`${name}-${what}`, text, 'text/plain');
  const checkpoint = async () => file((await post(at(name, '/checkpoint'))).checkpoint, `${head.entries}.checkpoint`);
  const prove = async () => file((await post(at(name, '/proof'), { seq: Number(seq) })).proof, `${seq}.proof.json`);
  return html`<h4>For others</h4>
    <p class="meta">A checkpoint that another person keeps shows whether the log was rewritten since. A proof shows that a message is in the log; it is checked without this server.</p>
    <div class="row"><${Act} run=${checkpoint} done="The checkpoint is saved. Give it to another person.">Save a checkpoint<//></div>
    <${FormRow}><label class="inline">Message <input type="number" min="0" max=${head.seq} value=${seq} onInput=${(e) => set(e.target.value)} /></label>
      <${Act} type="submit" run=${prove} disabled=${!/^\d+$/.test(seq) || Number(seq) > head.seq} done="The proof is saved. Check it with: firnline check-proof FILE">Prove it<//><//>`;
}

function Verify({ name, head }) {
  const [anchor, set] = useState('');
  const [result, setResult] = useState(null);
  const noted = anchor.trim().toLowerCase().replace(/^(?=[0-9a-f]{64}$)/, 'sha256:');
  const wrong = noted && !HASH.test(noted);
  const run = async () => { setResult(null); setResult({ noted, ...await post(at(name, '/verify'), noted ? { anchor: noted } : {}) }); };
  return html`<${Box} title="Proof">
    <p class="meta">Each message's hash covers the one before it, so one changed word anywhere breaks the chain.</p>
    <label>A hash that you noted earlier, if you have one <input class="mono" value=${anchor} placeholder="sha256:…" aria-invalid=${Boolean(wrong)} onInput=${(e) => { set(e.target.value); setResult(null); }} /></label>
    ${wrong && html`<p class="note" role="status">This is not a hash: it must be <code>sha256:</code> and 64 hexadecimal digits. You can also verify without one.</p>`}
    <div class="row"><${Act} class="strong" run=${run} disabled=${wrong}>Verify everything<//></div>
    ${result && html`<${Proof} result=${result} anchor=${result.noted} />`}
    ${head.entries > 0 && html`<${ForOthers} name=${name} head=${head} />`}
  <//>`;
}

// -- strategy ---------------------------------------------------------------------------------

const STRATEGIES = {
  layered: 'The newest messages word for word; below them digests, and digests of digests. The default.',
  progressive: 'One summary that grows with each digest, important data, and the newest messages.',
  project: 'The full history while it fits; or, with lean, the last messages and tools to search the rest.',
  topics: 'The summary and the newest messages of the current topic.',
  window: 'Everything until the window is nearly full, then one short summary. For agents.',
  rolling: 'A summary of the newest messages after every round, created in the background.',
};

/** A parameter as it is shown, and what is meant by what was typed: a text stays one. */
const shown = (value) => (typeof value === 'string' ? value : JSON.stringify(value));
function meant(text, before) {
  if (typeof before === 'string') return text;
  try { return JSON.parse(text); } catch { return text; }
}

/** What the strategy in force makes of this conversation now, against its full history. */
function Effect({ name, head }) {
  const found = useLoaded(() => post(at(name, '/context'), { fold: false }), [name, head.hash, String(head.in_force)]);
  const context = found.value;
  if (!context) return null;
  const [share, less] = [context.tokens / Math.max(head.tokens, 1), context.tokens < head.tokens];
  return html`<p class="effect"><${Share} of=${share} label=${`${percent(share)} of the log`} />
    <span><b>${number(context.tokens)}</b> tokens would be sent now with <code>${context.strategy}</code>${less ? html`, <b>${percent(share)}</b> of the ${number(head.tokens)} in the log` : ` for the ${number(head.tokens)} in the log`}; ${plural(head.in_force.length, 'digest')} in force.</span></p>`;
}

function Strategy({ name, head, changed }) {
  const now = head.strategy;
  const [chosen, choose] = useState(now.name);
  const [typed, setTyped] = useState({});
  const same = chosen === now.name;
  const edited = same && Object.entries(typed).some(([id, text]) => text !== shown(now.parameters[id]));
  const run = async () => {
    const given = Object.fromEntries(Object.entries(typed).map(([id, text]) => [id, meant(text, now.parameters[id])]));
    await patch(at(name), { strategy: { name: chosen, parameters: same ? { ...now.parameters, ...given } : {} } });
    setTyped({});
    changed();
  };
  return html`<${Box} title="Strategy" needs="write">
    <p class="meta">How contexts are planned. You can change it at any time; nothing stored is lost.</p>
    <label>Strategy <select value=${chosen} onChange=${(e) => { choose(e.target.value); setTyped({}); }}>
      ${Object.keys(STRATEGIES).includes(now.name) ? '' : html`<option value=${now.name}>${now.name}</option>`}
      ${Object.keys(STRATEGIES).map((id) => html`<option key=${id} value=${id}>${id}${id === now.name ? ' (now)' : ''}</option>`)}</select></label>
    <p>${STRATEGIES[chosen] || 'A custom strategy of this server.'}</p>
    ${head.entries > 0 && html`<${Effect} name=${name} head=${head} />`}
    ${same && html`<div class="parameters">${Object.entries(now.parameters).map(([id, value]) => html`<label key=${id}>${id.replaceAll('_', ' ')}
      <input class="mono" value=${typed[id] ?? shown(value)} onInput=${(e) => setTyped({ ...typed, [id]: e.target.value })} /></label>`)}</div>`}
    <div class="row"><${Act} class="strong" run=${run} disabled=${same && !edited} done=${`${chosen} is used from the next context on.`}>${same ? 'Save the parameters' : `Use ${chosen}`}<//>
      ${!now.own && html`<span class="meta">It is the server's default.</span>`}</div>
  <//>`;
}

// -- what it is called, and where it belongs ---------------------------------------------------------------------

function Belongs({ name, head, changed }) {
  const projects = useLoaded((signal) => get('/projects', { limit: 500 }, signal), []);
  const { title, ...rest } = head.metadata;
  const given = typeof title === 'string' ? title : ''; // any client can write there
  const others = given ? rest : head.metadata;
  const [typed, setTitle] = useState(given);
  const [project, setProject] = useState(head.project || '');
  const [person, setPerson] = useState(head.person || '');
  const [metadata, setMetadata] = useState(JSON.stringify(others, null, 1));
  const wrong = (() => { try { const value = JSON.parse(metadata); return typeof value !== 'object' || value === null || Array.isArray(value); } catch { return true; } })();
  const emptied = (head.project && !project.trim()) || (head.person && !person.trim());
  const same = typed === given && project === (head.project || '') && person === (head.person || '') && metadata === JSON.stringify(others, null, 1);
  const run = async () => {
    const about = { project: project.trim() || null, person: person.trim() || null, metadata: { ...(typed.trim() ? { title: typed.trim() } : {}), ...JSON.parse(metadata) } };
    await patch(at(name), about);
    changed();
  };
  return html`<${Box} title="Title, project and person" needs="write">
    <label>Title <input value=${typed} placeholder=${head.title || name} onInput=${(e) => setTitle(e.target.value)} /></label>
    <label>Project <input value=${project} list="projects" placeholder="none" onInput=${(e) => setProject(e.target.value)} />
      <datalist id="projects">${(projects.value?.data || []).map((one) => html`<option key=${one.name} value=${one.name} />`)}</datalist></label>
    <label>With whom <input value=${person} placeholder="no person" onInput=${(e) => setPerson(e.target.value)} /></label>
    ${head.person && html`<p class="meta"><a href=${personLink(head.person)}>What <${Name}>${head.person}<//> has stated</a>, in this conversation and others</p>`}
    <details><summary>Metadata for programs</summary><label>Metadata, as JSON <textarea class="mono" rows="3" value=${metadata} aria-invalid=${wrong} onInput=${(e) => setMetadata(e.target.value)} /></label></details>
    ${emptied && html`<p class="note">A project or a person can be changed, not removed.</p>`}
    ${wrong && html`<p class="wrong" role="alert">This is not a JSON object.</p>`}
    <div class="row"><${Act} class="strong" run=${run} done="Saved." disabled=${wrong || same || emptied}>Save<//></div>
  <//>`;
}

// -- pins and the archive ---------------------------------------------------------------------

function Pins({ name, head, show, changed }) {
  const found = useLoaded((signal) => get(at(name, '/pins'), {}, signal), [name, String(head.pinned)]);
  const [seq, set] = useState('');
  const pin = async () => { await put(at(name, `/pins/${seq}`)); set(''); changed(); };
  return html`<${Box} title="Pins">
    <p class="meta">Pinned messages are in every context, word for word.</p>
    <${Loaded} of=${found} what="the pins">${({ data }) => (data.length ? html`<ul class="items">${data.map((entry) => html`<li key=${entry.seq} class="item"><div class="level">
      <span class="value"><${Ref} seq=${entry.seq} show=${show} /> <bdi>${textOf(entry.message).slice(0, 200)}</bdi> <span class="meta">${number(entry.tokens)} tokens</span></span>
      <${Act} class="quiet small" needs="write" aria-label=${`Unpin #${entry.seq}`} run=${async () => { await del(at(name, `/pins/${entry.seq}`)); changed(); }} done=${`#${entry.seq} is no longer pinned.`}>Unpin<//></div></li>`)}</ul>`
    : html`<p>Nothing is pinned. Press “Pin” at a message in the chat, or enter its number:</p>`)}<//>
    <${FormRow}><label class="inline">Message <input type="number" min="0" max=${head.seq} value=${seq} onInput=${(e) => set(e.target.value)} /></label>
      <${Act} type="submit" needs="write" run=${pin} disabled=${!/^\d+$/.test(seq)} done="Pinned.">Pin it<//><//>
  <//>`;
}

function Archive({ name, head, changed }) {
  const [keep, set] = useState('1000');
  const archive = async () => { const done = await post(at(name, '/archive'), { keep: Number(keep) }); changed(); return done; };
  const restore = async () => { const done = await post(at(name, '/restore')); changed(); return done; };
  const told = (done) => (done.entries ? `${plural(done.entries, 'message')} in ${plural(done.segments, 'segment')}: ${number(done.plain_bytes)} bytes are ${number(done.stored_bytes)} now.` : 'There was nothing to compress.');
  return html`<${Box} title="Archive" needs="write">
    <p>${head.archived ? html`<b>${number(head.archived)}</b> of ${plural(head.entries, 'message')} are compressed, ${percent(head.archived / head.entries)}.` : 'Nothing is compressed.'}
      <span class="meta"> You can read, search and verify them as before.</span></p>
    <div class="row"><label class="inline">Keep the newest <input type="number" min="0" value=${keep} onInput=${(e) => set(e.target.value)} /></label>
      <${Act} run=${archive} done=${told} disabled=${!/^\d+$/.test(keep)}>Archive the rest<//>
      <${Act} run=${restore} done=${(done) => `${plural(done.entries, 'message')} restored.`} disabled=${!head.archived}>Restore all<//></div>
  <//>`;
}

// -- branches ---------------------------------------------------------------------------------

function Branches({ name, head, changed }) {
  const list = useLoaded(() => all('/conversations', {}, 20_000), [name, head.hash]);
  const [typed, setSeq] = useState(null);
  const seq = typed ?? String(Math.max(head.seq, 0)); // the newest by default
  const [chosen, choose] = useState(`${name}, branch`);
  const origin = originOf(head);
  const run = async () => { await post(at(name, '/branch'), { name: chosen.trim(), seq: Number(seq) }); known.add(chosen.trim()); changed(); location.hash = link(chosen.trim()); };
  return html`<${Box} title="Branches">
    ${origin && (origin.at < 0 ? html`<p>It is another start of <a href=${link(origin.of)}><${Name}>${origin.of}<//></a>.</p>`
    : html`<p>It is a branch of <a href=${link(origin.of, '', { seq: origin.at })}><${Name}>${origin.of}<//></a> up to #${origin.at}.</p>`)}
    <${Loaded} of=${list} what="the branches">${(others) => {
    const children = others.filter((one) => originOf(one)?.of === name);
    return children.length ? html`<ul class="plain">${children.map((one) => html`<li key=${one.conversation}><a href=${link(one.conversation)}><${Name}>${one.conversation}<//></a>
      <span class="meta"> ${originOf(one).at < 0 ? 'from the start' : `from #${originOf(one).at}`}, ${plural(one.entries, 'message')}</span></li>`)}</ul>` : html`<p class="meta">No branches yet. A branch is an independent copy of the beginning of a conversation.</p>`;
  }}<//>
    <${FormRow}><label class="inline">Up to message <input type="number" min="0" max=${head.seq} value=${seq} onInput=${(e) => setSeq(e.target.value)} /></label>
      <label class="inline wide">Name <input value=${chosen} onInput=${(e) => choose(e.target.value)} /></label>
      <${Act} type="submit" needs="write" run=${run} disabled=${!/^\d+$/.test(seq) || !chosen.trim() || head.seq < 0}>Branch<//><//>
  <//>`;
}

// -- the end ----------------------------------------------------------------------------------

/** The certificate outlives the conversation's own view, so it has a place of its own. */
function certify(erased) {
  const place = document.body.appendChild(document.createElement('div'));
  const close = () => { render(null, place); place.remove(); };
  render(html`<${Certificate} erased=${erased} close=${close} />`, place);
}

function Certificate({ erased, close }) {
  const dialog = useRef(null);
  const shown = (node) => { dialog.current = node; if (node && !node.open) node.showModal(); };
  const rows = [['Conversation', html`<bdi>${erased.conversation}</bdi>`], ['Erased at', when(erased.erased_at)], ['Messages', number(erased.entries)], ['Tokens', number(erased.tokens)],
    ['Digests', number(erased.digests)], ['Segments', number(erased.segments)], ['Branches', erased.branches.join(', ') || 'none'], ['Copies survive in', erased.survives.join(', ') || 'none'], ['Last head', html`<code class="hash">${erased.head}</code>`]];
  return html`<dialog ref=${shown} onClose=${close} class="wide certificate" aria-label="Certificate of erasure">
    <h2>Certificate of erasure</h2>
    <p>The conversation and everything derived from it were destroyed; ${erased.survives.length ? 'copies of its messages are left in the conversations below.' : 'no byte of it is left in the store. Only the hash of its head is left.'}</p>
    <${Facts} of=${rows} />
    <div class="row end"><button type="button" onClick=${() => save('erased.json', JSON.stringify(erased, null, 2))}>Save it</button>
      <button type="button" class="strong" onClick=${() => dialog.current.close()}>Done</button></div>
  </dialog>`;
}

const NAMED = 8; // copies whose titles are shown

/** Asks, with the branches that hold the same messages; then erases, and shows the certificate. */
export function EraseDialog({ name, head, close, done }) {
  const [withCopies, setWithCopies] = useState(false);
  const copies = useLoaded(async (signal) => {
    const { data } = await get(at(name, '/branches'), {}, signal);
    const heads = data.slice(0, NAMED).map((one) => get(at(one), {}, signal).catch(() => ({ conversation: one, metadata: {} }))); // gone meanwhile
    return { names: data, heads: await Promise.all(heads) };
  }, [name, head.hash]);
  const { names, heads } = copies.value || { names: [], heads: [] };
  const yes = async () => {
    const certificate = await del(`${at(name)}${withCopies ? '?branches=true' : ''}`);
    close();
    done();
    certify(certificate);
  };
  return html`<${Confirm} title="Erase it permanently?" word=${name} button="Erase it" danger onYes=${yes} onNo=${close}>
    <p>${plural(head.entries, 'message')} and everything derived from them are destroyed, also on disk. This cannot be undone. You get a certificate.</p>
    ${names.length > 0 && html`<label class="check"><input type="checkbox" checked=${withCopies} onChange=${(e) => setWithCopies(e.target.checked)} /> Also erase ${plural(names.length, 'conversation')} with copies of its messages:</label>
      <ul class="bullets">${heads.map((one) => html`<li key=${one.conversation} title=${one.conversation}><${Name}>${titleOf(one)}<//> <span class="meta">${[originOf(one)?.at >= 0 && `branch after #${originOf(one).at}`, one.entries && plural(one.entries, 'message')].filter(Boolean).join(', ')}</span></li>`)}
        ${names.length > heads.length && html`<li class="meta">and ${number(names.length - heads.length)} more</li>`}</ul>
      ${!withCopies && html`<p class="note">Without that, these messages survive there.</p>`}`}<//>`;
}

function Erase({ name, head, changed }) {
  const [asked, ask] = useState(false);
  const done = () => { location.hash = '#/'; changed(); };
  return html`<${Box} title="Erase" needs="admin">
    <p class="meta">This is the only action that cannot be undone. It destroys ${plural(head.entries, 'message')}, all digests, topics, recorded prompts and the words in the search index. Exports are not affected, and branches only if you choose so.</p>
    <div class="row"><button type="button" class="danger" onClick=${() => ask(true)}>Erase this conversation …</button></div>
    ${asked && html`<${EraseDialog} name=${name} head=${head} close=${() => ask(false)} done=${done} />`}
  <//>`;
}

export function Manage({ name, head, show, changed }) {
  return html`<div class="stack boxes">
    <${Belongs} key=${`${head.project}${head.person}${JSON.stringify(head.metadata)}`} name=${name} head=${head} changed=${changed} />
    <${Strategy} key=${JSON.stringify(head.strategy)} name=${name} head=${head} changed=${changed} />
    <${Pins} name=${name} head=${head} show=${show} changed=${changed} />
    <${Branches} name=${name} head=${head} changed=${changed} />
    <${Verify} name=${name} head=${head} />
    <${Export} name=${name} />
    <${Archive} name=${name} head=${head} changed=${changed} />
    <${Erase} name=${name} head=${head} changed=${changed} />
  </div>`;
}
