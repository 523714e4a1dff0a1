// Digests: every digest ever made, what it kept and lost, where its sentences come from, and how to
// take it back.

import { useEffect, useMemo, useState } from 'preact/hooks';
import { all, at, get, post } from './api.js';
import { ago, Act, Confirm, Empty, html, Loaded, Name, number, percent, plural, Press, say, useLoaded, when } from './ui.js';
import { Difference, Facts, milliseconds, Ref, Share, span, Text, textOf, useChosen } from './pieces.js';
import { sources } from './sources.js';

const POLL = 2500; // milliseconds between two looks while something is in the making
const PAGE = 50;
const LOOKED_AT = 2000; // messages that sentences are compared with

const STATES = {
  force: ['in force', 'good'], completed: ['replaced', ''], undone: ['undone', ''], failed: ['failed', 'bad'], processing: ['in progress', 'warm'],
};
const stateOf = (digest) => STATES[digest.in_force ? 'force' : digest.status] || [digest.status, ''];
const before = (digest) => digest.receipt?.covers?.tokens;

// -- the chain --------------------------------------------------------------------------------

function Row({ digest, entries, chosen, choose }) {
  const [word, kind] = stateOf(digest);
  const left = digest.last_seq < 0 ? 0 : (digest.first_seq / entries) * 100;
  const wide = digest.last_seq < 0 ? 0 : ((digest.last_seq - digest.first_seq + 1) / entries) * 100;
  const size = before(digest) ? `${number(before(digest))} → ${number(digest.tokens)} tokens` : digest.tokens ? `${number(digest.tokens)} tokens` : '';
  const about = [span(digest.first_seq, digest.last_seq), digest.topic === null ? `layer ${digest.layer}` : `topic ${digest.topic}`, size, digest.made_by ? `by ${digest.made_by}` : '',
    digest.milliseconds ? milliseconds(digest.milliseconds) : '', ago(digest.created_at)];
  return html`<li class=${`version ${kind}`}><button type="button" aria-current=${chosen ? 'true' : null} onClick=${() => choose(digest.version)}>
    <span class="row"><b>Digest ${digest.version}</b> <span class=${`badge ${kind}`}>${word}</span></span>
    <span class="reach" aria-hidden="true"><i style=${{ left: `${left}%`, width: `${Math.max(wide, 0.8)}%` }} /></span>
    <span class="meta">${about.filter(Boolean).join(' · ')}</span></button></li>`;
}

function Figures({ lineage, digests }) {
  const force = digests.filter((digest) => digest.in_force).length;
  const covered = lineage.window.entries - lineage.window.open_entries;
  return html`<dl class="figures">
    <div><dt>digests</dt><dd>${number(digests.length)}</dd></div>
    <div><dt>in force</dt><dd>${number(force)}</dd></div>
    <div><dt>messages covered</dt><dd>${number(covered)} <small>of ${number(lineage.window.entries)}</small></dd></div>
    <div><dt>mean time</dt><dd>${milliseconds(lineage.mean_milliseconds)}</dd></div>
    <div><dt>longest</dt><dd>${milliseconds(lineage.max_milliseconds)}</dd></div>
  </dl>`;
}

/** What failed or hangs, and was not made good since. */
function Stuck({ lineage, digests, retry }) {
  const done = Math.max(0, ...digests.filter((d) => d.status === 'completed').map((d) => d.version));
  const failed = digests.filter((d) => d.status === 'failed' && d.version > done);
  const hanging = digests.filter((d) => lineage.stuck.includes(d.version));
  const newest = failed.at(-1);
  if (!newest && !hanging.length) return null;
  const rebuilt = newest && !lineage.pending && digests.some((d) => d.in_force && d.first_seq === newest.first_seq && d.last_seq === newest.last_seq);
  const left = rebuilt ? 'The previous digests stay in force.' : lineage.pending ? 'The digest stays pending.' : '';
  return html`<div class="trouble stuck" role="alert">
    ${hanging.map((d) => html`<p key=${d.version}><b>Digest ${d.version} has been in progress since ${when(d.created_at)}.</b> Its worker may have stopped; a retry takes over.</p>`)}
    ${newest && html`<p><b>Digest ${newest.version} failed${failed.length > 1 ? `, and ${plural(failed.length - 1, 'attempt')} before it` : ''}.</b>${' '}
      All messages are unchanged. ${left}</p><pre tabindex="0">${newest.error || 'no reason was recorded'}</pre>`}
    <${Act} class="strong" needs="write" run=${() => retry(rebuilt)} done=${(made) => `${plural(made.digests, 'digest')} created.`}>Try again<//>
  </div>`;
}

// -- one digest -------------------------------------------------------------------------------

const KINDS = { names: 'Names', numbers: 'Numbers', dates: 'Dates', urls: 'Addresses', decisions: 'Decisions', preferences: 'Preferences', questions: 'Open questions' };

function Lost({ things, total, show }) {
  if (!total) return html`<span class="meta">nothing lost</span>`;
  return html`${things.map((one, n) => html`<span key=${n} class="lost"><bdi>${one.value}</bdi>${one.seq === null ? '' : html` <${Ref} seq=${one.seq} show=${show} />`}</span>`)}
    ${total > things.length && html`<span class="meta"> and ${number(total - things.length)} more</span>`}`;
}

function Receipt({ receipt, show }) {
  const rows = Object.entries(receipt?.kinds || {}).filter(([, tally]) => tally.total);
  const residue = receipt?.residue || [];
  if (!receipt?.covers && !rows.length) return html`<p class="meta">This digest has no receipt: the application wrote its summary.</p>`;
  const total = rows.reduce((n, [, tally]) => n + tally.total, 0);
  const kept = rows.reduce((n, [, tally]) => n + tally.kept, 0);
  return html`<div class="stack tight">
    <p>${total ? html`These messages have ${plural(total, 'countable item')}; the digest has <b>${number(kept)}</b> of them.
      ${kept < total ? ` ${number(total - kept)} ${total - kept === 1 ? 'is' : 'are'} missing${residue.length ? '; the important ones are quoted word for word' : ''}.` : ' Nothing countable is lost.'}`
    : 'These messages have no countable items: no names, numbers, dates, addresses or decisions.'}</p>
    ${rows.length > 0 && html`<div class="scroll"><table class="receipt"><thead><tr><th>what</th><th class="n">kept</th><th><span class="unseen">share</span></th><th>lost</th></tr></thead>
      <tbody>${rows.map(([kind, tally]) => html`<tr key=${kind}><td>${KINDS[kind] || kind}</td><td class="n">${tally.kept}/${tally.total}</td>
        <td class="bar-cell"><${Share} of=${tally.kept / tally.total} kind=${tally.kept === tally.total ? 'good' : 'warm'} label=${`${percent(tally.kept / tally.total)} kept`} /></td>
        <td><${Lost} things=${tally.lost} total=${tally.total - tally.kept} show=${show} /></td></tr>`)}</tbody></table></div>`}
    ${residue.length > 0 && html`<h4>Quoted word for word</h4>
      <ul class="residue">${residue.map((row, n) => html`<li key=${n}><${Ref} seq=${row.seq} show=${show} /> ${row.answers ? html`<span class="meta" dir="auto">${row.answers}</span> ` : ''}<q dir="auto">${row.quote}</q>${row.supposed ? html` <span class="badge">supposed</span>` : ''} <span class="badge">${row.kind}</span></li>`)}</ul>`}
  </div>`;
}

function Sources({ name, digest, show }) {
  const [open, set] = useState(false);
  const found = useLoaded(async () => {
    if (!open) return null;
    const entries = await all(at(name, `/digests/${digest.version}/messages`), { limit: 500 }, LOOKED_AT);
    return { entries, rows: sources(digest.text, entries.map((entry) => ({ seq: entry.seq, name: entry.message.name, text: textOf(entry.message) }))) };
  }, [open, name, digest.version]);
  return html`<details onToggle=${(e) => set(e.currentTarget.open)}><summary>Where each sentence comes from</summary>
    ${open && html`<${Loaded} of=${found} what="the messages">${(value) => value && html`
      <p class="meta">Found by shared words, rare words counting more, in the ${plural(value.entries.length, 'message')} it covers. Likely, not proved.</p>
      <ol class="sentences">${value.rows.map((row, n) => html`<li key=${n}><span dir="auto">${row.sentence}</span>
        <span class="from">${row.from.length ? row.from.map((one) => html`<span key=${one.seq}><${Ref} seq=${one.seq} show=${show} /> <span class="meta">${Math.round(one.share * 100)} % of its words</span></span>`)
    : html`<span class="badge warm">no message has enough of its words</span>`}</span></li>`)}</ol>`}<//>`}
  </details>`;
}

function Expanded({ name, digest, show }) {
  const [open, set] = useState(false);
  const [pages, setPages] = useState([]);
  const [error, setError] = useState(null);
  const more = async () => {
    const cursor = pages.at(-1)?.next_cursor;
    const page = await get(at(name, `/digests/${digest.version}/messages`), { limit: PAGE, cursor });
    setPages((known) => [...known, page]);
  };
  useEffect(() => { if (open && !pages.length) more().catch(setError); }, [open]);
  const entries = pages.flatMap((page) => page.data);
  return html`<details onToggle=${(e) => set(e.currentTarget.open)}><summary>The messages it covers, word for word</summary>
    ${error && html`<p class="trouble" role="alert">${error.message}</p>`}
    ${open && !error && !pages.length && html`<p class="empty" role="status">Loading the messages …</p>`}
    <ol class="covered">${entries.map((entry) => html`<li key=${entry.seq}><${Ref} seq=${entry.seq} show=${show} /> <b><${Name}>${entry.message.name || entry.message.role}<//></b> <span dir="auto">${textOf(entry.message).slice(0, 400)}</span></li>`)}</ol>
    ${pages.at(-1)?.next_cursor && html`<${Act} class="quiet small" run=${more}>More messages<//>`}
  </details>`;
}

const itemOf = (item) => `${item.field.replaceAll('_', ' ')}${item.name ? ` ${item.name}` : ''}: ${typeof item.value === 'string' ? item.value : JSON.stringify(item.value)}`;

function Compared({ name, digest, digests }) {
  const others = digests.filter((one) => one.version !== digest.version && one.status !== 'processing');
  const [other, set] = useState(digest.base ?? others.at(-1)?.version ?? null);
  const found = useLoaded((signal) => (other === null ? Promise.resolve(null)
    : get(at(name, `/digests/${digest.version}/diff`), { before: other }, signal)), [name, digest.version, other]);
  if (!others.length) return null;
  return html`<details><summary>Compare with another digest</summary>
    <label>From digest <select value=${other} onChange=${(e) => set(Number(e.target.value))}>
      ${others.map((one) => html`<option key=${one.version} value=${one.version}>${one.version}, ${stateOf(one)[0]}, ${span(one.first_seq, one.last_seq)}</option>`)}</select></label>
    <${Loaded} of=${found} what="the difference">${(change) => change && html`<div class="stack tight changes">
      ${change.text ? html`<${Difference} text=${change.text} />` : html`<p class="meta">The text is the same.</p>`}
      ${(change.added.length > 0 || change.removed.length > 0) && html`<h4>Important data</h4><${Difference} text=${[...change.removed.map((i) => `- ${itemOf(i)}`), ...change.added.map((i) => `+ ${itemOf(i)}`)].join('\n')} />`}
    </div>`}<//>
  </details>`;
}

function Digest({ name, digest, digests, show, newest, ask }) {
  const [word, kind] = stateOf(digest);
  const saved = before(digest) ? 1 - digest.tokens / before(digest) : null;
  const items = digest.data?.items?.length || 0;
  return html`<article class="stack" aria-label=${`Digest ${digest.version}`}>
    <header class="row apart"><h3>Digest ${digest.version}</h3><span class=${`badge ${kind}`}>${word}</span></header>
    ${digest.status === 'failed' && html`<div class="trouble"><b>It failed:</b> ${digest.error || 'no reason was recorded'}</div>`}
    ${digest.text && html`<div class="card summary" tabindex="0" role="region" aria-label="The summary"><${Text} of=${digest.text} /></div>`}
    <${Facts} of=${[
    ['Covers', digest.last_seq < digest.first_seq ? 'no messages' : html`<${Ref} seq=${digest.first_seq} show=${show} /> to <${Ref} seq=${digest.last_seq} show=${show} />`],
    ['Size', before(digest) ? html`${number(before(digest))} → ${number(digest.tokens)} tokens${saved > 0 ? `, ${percent(saved)} less` : ''}` : digest.tokens ? `${number(digest.tokens)} tokens` : null],
    ['Created', html`${when(digest.created_at)}${digest.made_by && html`, by <bdi>${digest.made_by}</bdi>`}${digest.milliseconds ? `, in ${milliseconds(digest.milliseconds)}` : ''}`],
    ['Spent', digest.calls ? `${plural(digest.calls, 'call')}, ${number(digest.spent_tokens)} tokens` : null],
    ['Layer', `${digest.layer}${digest.parts.length ? `, from ${digest.parts.map((v) => `digest ${v}`).join(', ')}` : ', from messages'}`],
    ['Base', digest.base ? `digest ${digest.base}` : 'none (the first digest)'],
    ['In force with', digest.beside.length ? digest.beside.map((v) => `digest ${v}`).join(', ') : null],
    ['Topic', digest.topic === null ? null : `topic ${digest.topic}`],
    ['Strategy', digest.strategy],
    ['Holds', items ? `${plural(items, 'item')} of important data` : null]]} />
    ${digest.status !== 'failed' && digest.status !== 'processing' && html`
      <h3>Receipt</h3><${Receipt} receipt=${digest.receipt} show=${show} />
      ${digest.text && html`<${Sources} key=${`s${digest.version}`} name=${name} digest=${digest} show=${show} />`}
      <${Expanded} key=${`e${digest.version}`} name=${name} digest=${digest} show=${show} />
      <${Compared} key=${`c${digest.version}`} name=${name} digest=${digest} digests=${digests} />`}
    ${digest.version === newest && html`<div class="row"><${Press} class="quiet" onClick=${() => ask('undo')}>Undo this digest …<//></div>`}
  </article>`;
}

// -- all of it --------------------------------------------------------------------------------

const QUESTIONS = {
  undo: { title: 'Undo the newest digest?', button: 'Undo it', text: 'It is no longer in force, but kept; the digests before it are in force again. All messages stay.' },
  rebuild: { title: 'Rebuild the digests?', button: 'Rebuild them', text: 'Each digest in force is created again from the messages, for example with a better model. The old digests are kept.' },
  clear: { title: 'Undo every digest?', button: 'Undo all of them', danger: true, text: 'No digest is in force then. All digests and all messages are kept. New digests are created when the next context needs them.' },
};

function Ask({ what, name, newest, done, close }) {
  const about = QUESTIONS[what];
  const [offline, set] = useState(false);
  const yes = async () => {
    if (what === 'undo') say(`Digest ${(await post(at(name, '/digests/undo'), newest.topic === null ? {} : { topic: newest.topic })).version} is undone.`);
    if (what === 'clear') say(`${plural((await post(at(name, '/digests/clear'))).digests, 'digest')} undone.`);
    if (what === 'rebuild') say(`${plural((await post(at(name, '/digests/rebuild'), { only_offline: offline })).data.length, 'digest')} rebuilt.`);
    close();
    done();
  };
  return html`<${Confirm} title=${about.title} button=${about.button} danger=${about.danger} onYes=${yes} onNo=${close}>
    <p>${about.text}</p>
    ${what === 'rebuild' && html`<label class="check"><input type="checkbox" checked=${offline} onChange=${(e) => set(e.target.checked)} /> Only digests that were created offline</label>`}
  <//>`;
}

function Chain({ name, head, lineage, digests, show, chosen, choose, done, ask }) {
  const newest = digests.filter((d) => d.status === 'completed').at(-1);
  const digest = digests.find((one) => one.version === chosen) || newest || digests.at(-1);
  const now = async (rebuilt) => {
    try {
      if (rebuilt !== true) return await post(at(name, '/digests'));
      return { digests: (await post(at(name, '/digests/rebuild'))).data.length };
    } finally {
      done();
    }
  };
  const told = (made) => (made.digests ? `${plural(made.digests, 'digest')} created.` : 'Nothing is pending: all remaining messages fit.');
  return html`<div class="stack">
    <${Figures} lineage=${lineage} digests=${digests} />
    <${Stuck} lineage=${lineage} digests=${digests} retry=${now} />
    <div class="row">
      <${Act} class="strong" needs="write" run=${() => now()} done=${told}>Digest now<//>
      <${Press} disabled=${!newest} onClick=${() => ask('rebuild')}>Rebuild …<//>
      <${Press} disabled=${!newest} onClick=${() => ask('undo')}>Undo newest …<//>
      <${Press} disabled=${!newest} onClick=${() => ask('clear')}>Clear …<//>
      ${lineage.pending && html`<span class="badge warm">a digest is pending</span>`}
    </div>
    ${digests.length ? html`
      <nav aria-label="Digests"><ol class="timeline">${[...digests].reverse().map((one) => html`<${Row} key=${one.version} digest=${one} entries=${Math.max(head.entries, 1)} chosen=${one === digest} choose=${choose} />`)}</ol></nav>
      <${Digest} key=${digest.version} name=${name} digest=${digest} digests=${digests} show=${show} newest=${newest?.version} ask=${ask} />`
    : html`<${Empty} title="No digest yet">A digest is a summary with a receipt, created when old messages no longer fit the window. It never replaces them, and every digest can be viewed, compared and undone. Everything fits so far.<//>`}
  </div>`;
}

export function Digests({ name, head, show, changed }) {
  const [chosen, choose] = useChosen(name, 'digests', 'version');
  const [asked, ask] = useState(null);
  const found = useLoaded(async (signal) => {
    const [lineage, digests] = await Promise.all([get(at(name, '/lineage'), {}, signal), all(at(name, '/digests'), {}, 20_000)]);
    return { lineage, digests };
  }, [name, head.hash, head.digests, String(head.in_force)]);
  const done = () => { found.again(); changed(); };
  const making = useMemo(() => found.value && (found.value.lineage.pending || found.value.digests.some((d) => d.status === 'processing')), [found.value]);
  useEffect(() => {
    if (!making) return undefined;
    const timer = setTimeout(found.again, POLL);
    return () => clearTimeout(timer);
  }, [making, found.value]);
  const newest = found.value?.digests.filter((d) => d.status === 'completed').at(-1);
  return html`<${Loaded} of=${found} what="the digests">${({ lineage, digests }) => html`
    <${Chain} name=${name} head=${head} lineage=${lineage} digests=${digests} show=${show} chosen=${chosen} choose=${choose} done=${done} ask=${ask} />
    ${asked && html`<${Ask} what=${asked} name=${name} newest=${newest} done=${done} close=${() => ask(null)} />`}`}<//>`;
}
