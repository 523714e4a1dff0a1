// The chat: every message ever, answers as they come, and branches instead of lost versions.

import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { at, del, events, get, post, put } from './api.js';
import { ago, html, Name, number, plural, say, when } from './ui.js';
import { link } from './app.js';
import { markdown } from './markdown.js';
import { Scroller } from './scroller.js';

// -- one message ------------------------------------------------------------------------------

const textOf = (message) => (typeof message.content === 'string' ? message.content
  : (message.content || []).map((part) => part.text || '').filter(Boolean).join('\n\n'));

function partsOf(message) {
  return Array.isArray(message.content) ? message.content.filter((part) => !part.text) : [];
}

function Part({ part }) {
  const url = part.image_url?.url || '';
  if (/^data:image\/(png|jpeg|gif|webp);base64,/.test(url)) return html`<img class="picture" src=${url} alt="A picture in the message" />`;
  return html`<p class="picture">[${part.type || 'part'}: ${part.file?.filename || part.file?.file_id || url || 'not shown'}]</p>`;
}

function Calls({ calls }) {
  return calls.map((call) => html`<details key=${call.id} class="call">
    <summary>calls <code>${call.function?.name || call.name || '?'}</code></summary>
    <pre>${call.function?.arguments ?? JSON.stringify(call, null, 1)}</pre></details>`);
}

function Body({ message }) {
  const text = textOf(message);
  if (message.role === 'tool') {
    return html`<details class="call"><summary>tool result · ${plural(text.length, 'character')}</summary><pre>${text}</pre></details>`;
  }
  return html`<div class="text" dir="auto" dangerouslySetInnerHTML=${{ __html: markdown(text) }} />`;
}

function Message({ entry, pinned, onEdit, onAgain, onPin }) {
  const { message, metadata, seq } = entry;
  const broken = metadata?.interrupted;
  return html`<li class=${`message ${message.role}`} data-seq=${seq}>
    <div class="who"><b><${Name}>${message.name || message.role}<//></b>
      <span class="meta" title=${`${when(entry.created_at)}, ${entry.hash}`}>#${seq} · ${number(entry.tokens)} tokens · ${ago(entry.created_at)}${entry.archived ? ' · archived' : ''}</span>
      ${pinned && html`<span class="badge warm">pinned</span>`}
      ${broken && html`<span class="badge bad" title=${broken}>interrupted</span>`}
      <span class="does">
        ${message.role === 'user' && html`<button class="quiet small" onClick=${() => onEdit(entry)}>Edit</button>`}
        ${message.role === 'assistant' && !message.tool_calls && html`<button class="quiet small" onClick=${() => onAgain(entry)}>Again</button>`}
        ${message.role !== 'tool' && !message.tool_calls && html`<button class="quiet small" onClick=${() => onPin(entry, !pinned)}>${pinned ? 'Unpin' : 'Pin'}</button>`}
      </span>
    </div>
    ${textOf(message) || message.role === 'tool' ? html`<${Body} message=${message} />` : null}
    ${partsOf(message).map((part, n) => html`<${Part} key=${n} part=${part} />`)}
    ${message.tool_calls && html`<${Calls} calls=${message.tool_calls} />`}
  </li>`;
}

// -- branches ---------------------------------------------------------------------------------

/** The conversation this one branched from, and those that branched from it or beside it. */
function Branches({ name, head, list }) {
  const known = list.value || [];
  const origin = head?.metadata?.branch;
  const family = origin?.of || name;
  const others = known.filter((one) => one.metadata?.branch?.of === family);
  if (!origin && !others.length) return null;
  const all = [family, ...others.map((one) => one.conversation)];
  return html`<label class="branches">Versions
    <select value=${name} onChange=${(e) => { location.hash = link(e.target.value); }}>
      ${all.map((one, n) => html`<option key=${one} value=${one}>${n === 0 ? 'original' : `branch ${n}, from #${others[n - 1].metadata.branch.at}`}</option>`)}
    </select></label>`;
}

const branchName = (name) => {
  const random = [...crypto.getRandomValues(new Uint8Array(4))].map((b) => b.toString(16).padStart(2, '0')).join('');
  return `${name.replace(/--[0-9a-f]{8}$/, '')}--${random}`;
};

/** Go on from before the entry `seq`, in a conversation of its own. */
async function branchBefore(name, seq) {
  const made = branchName(name);
  if (seq > 0) await post(at(name, '/branch'), { name: made, seq: seq - 1 });
  return made;
}

// -- the chat ---------------------------------------------------------------------------------

const QUEUED = 'firnline.say'; // what is to be said in the branch that is opened next

export function Chat({ name, head, seen, changed, list, openPanel }) {
  const [count, setCount] = useState(head ? head.entries : 0);
  const [version, setVersion] = useState(0);
  const [answer, setAnswer] = useState(null); // { question, text, error }
  const [typed, setTyped] = useState('');
  const [jump, setJump] = useState(null);
  const [editing, setEditing] = useState(null);
  const pinned = useMemo(() => new Set(head?.pinned || []), [head]);
  const stop = useRef(null);
  const input = useRef(null);
  useEffect(() => { setCount(head ? head.entries : 0); }, [head?.entries, head?.hash]);

  const load = useCallback((first, last) => get(at(name, '/messages'), { first_seq: first, last_seq: last, limit: last - first + 1 }).then((page) => page.data), [name]);

  const sendText = useCallback(async (text) => {
    const gone = new AbortController();
    stop.current = gone;
    setAnswer({ question: text, text: '' });
    let got = '';
    try {
      for await (const [kind, data] of events('POST', at(name, '/turns'), { body: { message: text, stream: true }, signal: gone.signal, extra: { 'idempotency-key': crypto.randomUUID() } })) {
        if (kind === 'delta') { got += data.text; setAnswer({ question: text, text: got }); }
        if (kind === 'turn') setCount(data.answer.seq + 1);
        if (kind === 'error') throw new Error(data.detail || 'the answer broke off');
      }
      setAnswer(null);
    } catch (error) {
      if (gone.signal.aborted) { say('Stopped. The answer is stored as far as it came.'); setAnswer(null); } else setAnswer({ question: text, text: got, error });
    }
    stop.current = null;
    setVersion((n) => n + 1);
    changed();
  }, [name, changed]);

  useEffect(() => {
    const waiting = JSON.parse(sessionStorage.getItem(QUEUED) || 'null');
    if (waiting?.name === name) { sessionStorage.removeItem(QUEUED); sendText(waiting.text); }
    return () => stop.current?.abort();
  }, [name]);

  const submit = (event) => {
    event?.preventDefault();
    const text = typed.trim();
    if (!text || (answer && !answer.error)) return;
    setTyped('');
    sendText(text);
  };
  const inBranch = async (seq, text) => {
    try {
      const made = await branchBefore(name, seq);
      sessionStorage.setItem(QUEUED, JSON.stringify({ name: made, text }));
      list.again();
      location.hash = link(made);
    } catch (error) { say(error.message, true); }
  };
  const again = async (entry) => {
    const before = await get(at(name, '/messages'), { first_seq: Math.max(entry.seq - 50, 0), last_seq: entry.seq, order: 'desc', limit: 51 });
    const question = before.data.find((one) => one.message.role === 'user');
    if (question) inBranch(question.seq, textOf(question.message)); else say('There is no question before this answer.', true);
  };
  const pin = async (entry, on) => {
    const path = at(name, `/pins/${entry.seq}`);
    try {
      await (on ? put(path) : del(path));
      say(on ? `#${entry.seq} is in every context from now on.` : `#${entry.seq} is treated like any other again.`);
      changed();
    } catch (error) { say(error.message, true); }
  };
  const goTo = async (event) => {
    event.preventDefault();
    const wanted = new FormData(event.target).get('when').trim();
    if (!wanted) return;
    try {
      if (/^#?\d+$/.test(wanted)) { setJump({ seq: Math.min(Number(wanted.replace('#', '')), count - 1), at: Date.now() }); return; }
      const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
      const found = await get(at(name, '/dates'), { when: wanted, zone, limit: 1 });
      if (found.data.length) setJump({ seq: found.data[0].seq, at: Date.now() }); else say(`Nothing was said ${wanted}.`);
    } catch (error) { say(error.message, true); }
  };
  const keys = (event) => {
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) submit(event);
    if (event.key === 'Escape' && stop.current) stop.current.abort();
  };
  const draw = (entry) => html`<${Message} key=${entry.seq} entry=${entry} pinned=${pinned.has(entry.seq)} onEdit=${setEditing} onAgain=${again} onPin=${pin} />`;
  const busy = answer && !answer.error;
  const end = html`<div class="ending">
    ${answer && html`<ol class="block">
      <li class="message user"><div class="who"><b>user</b></div><div class="text" dir="auto" dangerouslySetInnerHTML=${{ __html: markdown(answer.question) }} /></li>
      <li class="message assistant" aria-busy=${busy}><div class="who"><b>assistant</b> ${busy && html`<span class="meta">is answering …</span>`}</div>
        <div class="text" dir="auto" dangerouslySetInnerHTML=${{ __html: markdown(answer.text || (busy ? '…' : '')) }} />
        ${answer.error && html`<p class="trouble" role="alert">${answer.error.message} Your message is stored.</p>`}</li></ol>`}
    ${!count && !answer && html`<div class="empty"><h3>Nothing said yet</h3>
      <p>Whatever you say here is kept for good, word for word, however long it gets. Ask for it later: even without a model, the answer quotes what was said.</p></div>`}
  </div>`;
  return html`<section class="chat" aria-label="Chat">
    <div class="chat-top">
      <h1 title=${name}><${Name}>${name}<//></h1>
      <${Branches} name=${name} head=${head} list=${list} />
      <form class="jump" onSubmit=${goTo} role="search"><input name="when" aria-label="Go to a date or a number" placeholder="Go to: yesterday, 2026-03-02, #12" /></form>
      <button class="quiet small only-narrow" onClick=${openPanel}>Memory</button>
    </div>
    <${Scroller} key=${name} count=${count} load=${load} item=${draw} seen=${jump && (!seen || jump.at > seen.at) ? jump : seen} end=${end} version=${version} label="Messages" />
    <form class="composer" onSubmit=${submit}>
      <textarea ref=${input} rows="2" aria-label="Your message" placeholder="Say something. Enter sends, Shift+Enter makes a new line." value=${typed}
        onInput=${(e) => setTyped(e.target.value)} onKeyDown=${keys} />
      ${busy ? html`<button type="button" onClick=${() => stop.current?.abort()}>Stop</button>` : html`<button class="strong" disabled=${!typed.trim()}>Send</button>`}
    </form>
    ${editing && html`<${Edit} entry=${editing} close=${() => setEditing(null)} onDone=${(text) => { setEditing(null); inBranch(editing.seq, text); }} />`}
  </section>`;
}

function Edit({ entry, close, onDone }) {
  const dialog = useRef(null);
  const [text, set] = useState(textOf(entry.message));
  useEffect(() => { dialog.current.showModal(); }, []);
  return html`<dialog ref=${dialog} class="wide" onClose=${close} aria-label="Edit the message">
    <h2>Say it differently</h2>
    <p class="meta">The conversation goes on from here as a branch. What was said before stays as it is.</p>
    <textarea rows="6" aria-label="The message" value=${text} onInput=${(e) => set(e.target.value)} />
    <div class="row end"><button type="button" class="quiet" onClick=${() => dialog.current.close()}>Cancel</button>
      <button type="button" class="strong" disabled=${!text.trim()} onClick=${() => onDone(text.trim())}>Send in a branch</button></div>
  </dialog>`;
}
