// The chat: every message ever, answers as they come, and branches instead of lost versions.

import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { at, del, events, get, may, models, patch, post, put, server } from './api.js';
import { ago, copy, day, forbidden, html, Name, number, plural, say, sentence, tick, titleOf, when } from './ui.js';
import { link } from './app.js';
import { LONGEST, markdown } from './markdown.js';
import { Scroller } from './scroller.js';

// -- one message ------------------------------------------------------------------------------

const textOf = (message) => (typeof message.content === 'string' ? message.content
  : (message.content || []).map((part) => part.text || '').filter(Boolean).join('\n\n'));

function partsOf(message) {
  return Array.isArray(message.content) ? message.content.filter((part) => !part.text) : [];
}

/** Whether there is nothing to see of a message. */
const isEmpty = (message) => !textOf(message).trim() && !partsOf(message).length && !message.tool_calls && message.role !== 'tool';

/** Where a picture is, in OpenAI's shape or Anthropic's. */
function pictureOf(part) {
  const source = part.type === 'image' ? part.source : null;
  if (source?.type === 'base64') return `data:${source.media_type};base64,${source.data}`;
  return String(part.image_url?.url || source?.url || (typeof part.image_url === 'string' ? part.image_url : ''));
}

function Part({ part }) {
  const url = pictureOf(part);
  if (/^data:image\/(png|jpeg|gif|webp);base64,[\w+/=\s]+$/.test(url)) return html`<img class="picture" src=${url} alt="A picture in the message" />`;
  const file = part.file || part;
  const name = file.filename || file.title || file.file_id || (url.startsWith('data:') ? '' : url) || 'not shown';
  return html`<p class="picture">[${String(part.type || 'part')}: ${String(name)}]</p>`;
}

function Calls({ calls }) {
  return calls.map((call) => html`<details key=${call.id} class="call">
    <summary>calls <code>${call.function?.name || call.name || '?'}</code></summary>
    <pre>${call.function?.arguments ?? JSON.stringify(call, null, 1)}</pre></details>`);
}

/** Give every block of code a button that copies it; it lies above the text and takes no room. */
function addCopying(text) {
  for (const block of text.querySelectorAll('pre')) {
    const code = block.firstElementChild;
    const button = Object.assign(document.createElement('button'), { type: 'button', className: 'copy quiet small', textContent: 'Copy', onclick: () => copy(code.textContent, code) });
    button.setAttribute('aria-label', 'Copy the code');
    block.append(button);
  }
}

/** Markdown, made safe; rendered again only when the text changes. */
function Text({ of }) {
  const safe = useMemo(() => ({ __html: markdown(of) }), [of]);
  const [whole, setWhole] = useState(false);
  const text = useRef(null);
  useLayoutEffect(() => { if (!whole) addCopying(text.current); }, [safe, whole]);
  if (whole) return html`<pre class="text" dir="auto">${of}</pre>`;
  return html`<div class="text" dir="auto" ref=${text} dangerouslySetInnerHTML=${safe} />
    ${of.length > LONGEST && html`<button class="quiet small" onClick=${() => setWhole(true)}>Show all ${number(of.length)} characters</button>`}`;
}

function Body({ message }) {
  const text = textOf(message);
  if (message.role === 'tool') {
    return html`<details class="call"><summary>tool result · ${plural(text.length, 'character')}</summary><pre>${text}</pre></details>`;
  }
  return html`<${Text} of=${text} />`;
}

/** Whether a message is the first of its day; unknown if the message before it is not loaded. */
const opensDay = (entry, before) => entry.seq === 0 || Boolean(before && new Date(before.created_at).toDateString() !== new Date(entry.created_at).toDateString());

function Message({ entry, opens, found, pinned, onEdit, onAgain, onPin }) {
  const { message, metadata, seq } = entry;
  if (entry.erased_at) return html`<li class="message system" data-seq=${seq}><p class="meta">#${seq} · erased ${when(entry.erased_at)}</p></li>`;
  const broken = metadata?.interrupted;
  return html`<li class=${`message ${message.role} ${found ? 'found' : ''}`} data-seq=${seq}>
    ${opens && html`<time class="day" datetime=${entry.created_at}>${day(entry.created_at)}</time>`}
    <div class="who"><b><${Name}>${message.name || message.role}<//></b>
      <span class="meta" title=${`${when(entry.created_at)}, ${entry.hash}`}>#${seq} · <span class="only-wide">${number(entry.tokens)} tokens · </span>${ago(entry.created_at)}${entry.archived ? ' · archived' : ''}</span>
      ${pinned && html`<span class="badge warm">pinned</span>`}
      ${broken && html`<span class="badge bad" title=${String(broken)}>interrupted</span>`}
      <span class="does">
        ${textOf(message).trim() && html`<button class="quiet small" title="Copy the message as it was written" onClick=${(e) => copy(textOf(message), e.currentTarget.closest('li').querySelector('.text, pre'))}>Copy</button>`}
        ${may('write') && message.role === 'user' && html`<button class="quiet small" onClick=${() => onEdit(entry)}>Edit</button>`}
        ${may('write') && message.role === 'assistant' && !message.tool_calls && html`<button class="quiet small" onClick=${() => onAgain(entry)}>Again</button>`}
        ${may('write') && message.role !== 'tool' && !message.tool_calls && html`<button class="quiet small" onClick=${() => onPin(entry, !pinned)}>${pinned ? 'Unpin' : 'Pin'}</button>`}
      </span>
    </div>
    ${textOf(message).trim() || message.role === 'tool' ? html`<${Body} message=${message} />` : null}
    ${isEmpty(message) && html`<p class="meta">(no text)</p>`}
    ${partsOf(message).map((part, n) => html`<${Part} key=${n} part=${part} />`)}
    ${message.tool_calls && html`<${Calls} calls=${message.tool_calls} />`}
  </li>`;
}

const QUEUED = 'firnline.say'; // what is to be said in the branch that is opened next

// -- branches ---------------------------------------------------------------------------------

/** What a conversation is a branch of, `{ of, at }`, if its metadata says so; any client can write there. */
export function originOf(one) {
  const { of, at: last } = one?.metadata?.branch || {};
  return typeof of === 'string' && Number.isInteger(last) ? { of, at: last } : null;
}

/** The conversation that a branch began with, and all its branches, wherever they part. */
export function familyOf(name, head, known) {
  const by = new Map(known.map((one) => [one.conversation, one]));
  if (head) by.set(name, head);
  const rootOf = (one) => {
    const passed = new Set();
    while (by.has(one) && originOf(by.get(one)) && !passed.has(one)) { passed.add(one); one = originOf(by.get(one)).of; }
    return one;
  };
  const root = rootOf(name);
  const branches = [...by.values()].filter((one) => originOf(one) && rootOf(one.conversation) === root);
  return { root, branches: branches.sort((a, b) => (a.created_at < b.created_at ? -1 : 1)) };
}

const branchLabel = (n, at) => (at >= 0 ? `branch ${n}, after #${at}` : `branch ${n}, from the start`);

function Branches({ name, head, list }) {
  const { root, branches } = familyOf(name, head, list.value || []);
  if (!branches.length) return null;
  const options = [root, ...branches.map((one) => one.conversation)];
  return html`<label class="branches"><span>Version</span>
    <select value=${name} onChange=${(e) => { location.hash = link(e.target.value); }}>
      ${options.map((one, n) => html`<option key=${one} value=${one}>${n === 0 ? 'original' : branchLabel(n, originOf(branches[n - 1]).at)}</option>`)}
    </select></label>`;
}

const branchName = (name) => {
  const random = [...crypto.getRandomValues(new Uint8Array(4))].map((b) => b.toString(16).padStart(2, '0')).join('');
  return `${[...name.replace(/--[0-9a-f]{8}$/, '')].slice(0, 180).join('')}--${random}`;
};

/** Branches made here, which a list that was loaded earlier does not have. */
export const made = new Set();

/** Go on from before the message `seq`, in a conversation of its own; what is said there comes next. */
async function branchBefore(name, head, seq, text) {
  const branch = branchName(name);
  if (seq > 0) {
    await post(at(name, '/branch'), { name: branch, seq: seq - 1 });
    made.add(branch);
  }
  // With nothing in common there is nothing to copy: its origin is recorded when it exists.
  const { name: strategy, parameters, own } = head.strategy;
  const about = { project: head.project, metadata: { ...head.metadata, branch: { of: name, at: -1 } }, strategy: own ? { name: strategy, parameters } : null };
  sessionStorage.setItem(QUEUED, JSON.stringify({ name: branch, text, about: seq > 0 ? null : about }));
  return branch;
}

// -- the chat ---------------------------------------------------------------------------------

const STARTS = ['We land in Lisbon on 3 March, at nine.', 'I prefer e-mail, not phone calls.', 'When do we land?'];
const entriesOf = (name) => get(at(name)).then((head) => head.entries, (error) => (error.status === 404 ? 0 : null));

const DRAFT = 'firnline.draft '; // and the conversation's name
const UNSURE = 'firnline.unsure '; // what may be stored or not: with the same key it is stored once

/** Keep a text in the tab, or forget it; what is more than a tab may keep is not kept. */
function keep(name, text) {
  sessionStorage.removeItem(name);
  try { if (text) sessionStorage.setItem(name, text); } catch { /* it is too long */ }
}

/** What is typed and not sent yet; kept in the tab when you go elsewhere or reload the page. */
function useDraft(name) {
  const [typed, set] = useState(sessionStorage.getItem(DRAFT + name) || '');
  const setTyped = (text) => { set(text); keep(DRAFT + name, text); };
  return [typed, setTyped];
}

const GROWS = CSS.supports('field-sizing', 'content');
/** As high as its text, where the browser does not see to that itself; the style sheet says how high at most. */
function useGrowing(input, typed) {
  useLayoutEffect(() => {
    if (GROWS || !input.current) return;
    input.current.style.height = 'auto';
    input.current.style.height = `${input.current.scrollHeight + 2}px`; // and its borders
  }, [typed]);
}

/** What became of a message, as far as it is known: `stored` is null if the server cannot be asked. */
const fate = (stored) => ({
  true: 'Your message is stored; you can ask again at any time.',
  false: 'Your message was not stored. It is below; send it again.',
  null: 'It is unknown whether your message was stored. It is below; if you send it again unchanged, it is stored once.',
}[stored]);

/** What is being said and answered: `{ question, text, error, stored, last }`; `last` is the message it has become. */
function useAnswer(name, model, count, setCount, changed) {
  const [answer, setAnswer] = useState(null);
  const going = useRef(null);
  const send = async (text) => {
    const gone = new AbortController();
    const before = count;
    going.current = { gone, halted: false };
    const unsure = JSON.parse(sessionStorage.getItem(UNSURE + name) || 'null');
    const request = unsure?.text === text ? unsure : { text, key: crypto.randomUUID() };
    keep(UNSURE + name, '');
    let got = '';
    let last;
    setAnswer({ question: text, text: '' });
    try {
      const options = { body: { message: text, stream: true, ...(model ? { model } : {}) }, signal: gone.signal, extra: { 'idempotency-key': request.key } };
      for await (const [kind, data] of events('POST', at(name, '/turns'), options)) {
        if (kind === 'delta') { got += data.text; setAnswer({ question: text, text: got }); }
        if (kind === 'turn') { got = data.text; last = data.answer.seq; }
        if (kind === 'error') throw new Error(data.detail || 'The answer was cut off.');
      }
      if (last === undefined) throw new Error('The answer was cut off.');
      setAnswer({ question: text, text: got, last });
      setCount(last + 1);
    } catch (error) {
      if (gone.signal.aborted && !going.current.halted) return; // the reader has gone elsewhere
      const entries = await entriesOf(name);
      const stored = entries === null ? null : entries > before;
      if (stored === null) keep(UNSURE + name, JSON.stringify(request));
      if (stored) setCount(entries);
      if (going.current.halted && stored) say('Stopped. The partial answer is kept.');
      const trouble = !going.current.halted ? error : stored ? null : new Error('Stopped.');
      setAnswer({ question: text, text: got, error: trouble, stored, last: stored ? entries - 1 : undefined });
    }
    going.current = null;
    changed();
  };
  const halt = async () => {
    const now = going.current;
    if (!now || now.halted) return;
    now.halted = true;
    await post(at(name, '/turns/stop')).catch((error) => error.status === 404 || say(error.message, true)); // not even stored yet
    now.gone.abort();
  };
  /** What is in the list now need not be shown below it as well. */
  const shown = (seq) => {
    if (answer && seq >= answer.last && !(answer.error && !answer.question)) setAnswer(answer.error ? { error: answer.error, stored: true, last: answer.last } : null);
  };
  useEffect(() => () => going.current?.gone.abort(), [name]);
  return { answer, send, halt, shown, busy: Boolean(answer && !answer.error && answer.last === undefined && going.current) };
}

// -- who answers ------------------------------------------------------------------------------

const MODEL = 'firnline.model'; // the one that was chosen last

/** The model that is asked: one that was chosen behind the proxy, or the server's own (null). */
export function useModel() {
  const { answers, upstream } = server.current;
  const [listed, setListed] = useState(null);
  const [chosen, set] = useState(localStorage.getItem(MODEL) || '');
  useEffect(() => { if (upstream && may('write')) models().then(setListed, (error) => setListed({ error })); }, [upstream]);
  const names = Array.isArray(listed) ? listed : [];
  const usable = upstream && chosen && chosen !== answers && (!names.length || names.includes(chosen));
  const model = usable ? chosen : upstream && !answers ? names[0] || null : null;
  const choose = (value) => { set(value); localStorage.setItem(MODEL, value); };
  return { model, listed, names, choose };
}

/** Says truly who answers, and lets one choose if there is a choice. */
function Answers({ model, listed, names, choose }) {
  const { answers, upstream } = server.current;
  if (!upstream) {
    return html`<p class="answers meta">${answers ? html`<bdi>${answers}</bdi> answers.`
    : html`No model is set, so answers quote this conversation. For a model, start the server with <code>--upstream URL</code> or set <code>FIRNLINE_MODEL</code>.`}</p>`;
  }
  if (!listed) return html`<p class="answers meta" role="status">Looking up the models …</p>`;
  if (names.length || answers) {
    const all = [...new Set([...(answers ? [answers] : []), ...names])];
    return html`<label class="answers meta">Answers: <select value=${model || answers} onChange=${(e) => choose(e.target.value)}>${all.map((one) => html`<option key=${one} value=${one}>${one}</option>`)}</select></label>`;
  }
  return html`<label class="answers meta">Answers: <input value=${model || ''} placeholder="name of a model" onChange=${(e) => choose(e.target.value.trim())} />
    <span>${listed.error ? `The endpoint lists no models: ${sentence(listed.error.message)} Type a name; if it needs a key, set FIRNLINE_UPSTREAM_KEY.` : 'The endpoint lists no models: type a name.'}</span></label>`;
}

export function Chat({ name, head, seen, changed, list, openPanel }) {
  const [count, setCount] = useState(head ? head.entries : 0);
  const [typed, setTyped] = useDraft(name);
  const [jump, setJump] = useState(null);
  const [editing, setEditing] = useState(null);
  const pinned = useMemo(() => new Set(head?.pinned || []), [head]);
  const input = useRef(null);
  const parting = useRef(false); // a branch is on its way
  const answerer = useModel();
  const { answer, send, halt, shown, busy } = useAnswer(name, answerer.model, count, setCount, changed);
  useGrowing(input, typed);
  useEffect(() => { if (!head && may('write') && matchMedia('(pointer: fine)').matches) input.current.focus(); }, [name]); // nothing to read yet
  useEffect(() => { if (!busy) setCount((before) => Math.max(before, head ? head.entries : 0)); }, [head?.entries, head?.hash, busy]);
  useEffect(() => { if (answer?.error && !answer.stored && !typed) setTyped(answer.question); }, [answer?.error]);

  const load = useCallback(async (first, last) => {
    const found = [];
    let cursor;
    do { // a page ends early where messages are large
      const page = await get(at(name, '/messages'), { first_seq: first, last_seq: last, limit: last - first + 1, cursor });
      found.push(...page.data);
      cursor = page.next_cursor;
    } while (cursor);
    return found;
  }, [name]);

  useEffect(() => {
    const waiting = JSON.parse(sessionStorage.getItem(QUEUED) || 'null');
    if (waiting?.name !== name) return;
    sessionStorage.removeItem(QUEUED);
    send(waiting.text)
      .then(() => waiting.about && patch(at(name), waiting.about).then(changed))
      .catch((error) => say(error.message, true));
  }, [name]);

  const submit = (event) => {
    event?.preventDefault();
    const text = typed.trim();
    if (!text || busy) return;
    if (matchMedia('(pointer: fine)').matches) input.current.focus(); // Send is switched off now, and would take the focus with it
    setTyped('');
    send(text);
  };
  const inBranch = async (seq, text) => {
    if (parting.current) return; // pressed twice
    parting.current = true;
    try {
      const branch = await branchBefore(name, head, seq, text);
      list.again();
      location.hash = link(branch);
    } catch (error) {
      parting.current = false;
      say(error.message, true);
    }
  };
  const again = async (entry) => {
    try {
      const before = await get(at(name, '/messages'), { first_seq: Math.max(entry.seq - 50, 0), last_seq: entry.seq, order: 'desc', limit: 51 });
      const question = before.data.find((one) => one.message.role === 'user');
      if (question) inBranch(question.seq, textOf(question.message)); else say('There is no question before this answer.', true);
    } catch (error) { say(error.message, true); }
  };
  const pin = async (entry, on) => {
    const path = at(name, `/pins/${entry.seq}`);
    try {
      await (on ? put(path) : del(path));
      say(on ? `#${entry.seq} is in every context from now on.` : `#${entry.seq} is no longer pinned.`);
      changed();
    } catch (error) { say(error.message, true); }
  };
  const goTo = async (event) => {
    event.preventDefault();
    const wanted = new FormData(event.target).get('when').trim();
    if (!wanted) return;
    try {
      if (/^#?\d+$/.test(wanted)) {
        const seq = Math.min(Number(wanted.replace('#', '')), count - 1);
        if (seq !== Number(wanted.replace('#', ''))) say(seq < 0 ? 'There are no messages yet.' : `The newest is #${seq}.`);
        setJump({ seq, at: tick() });
        return;
      }
      const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
      const found = await get(at(name, '/dates'), { when: wanted, zone, limit: 1 });
      if (found.data.length) setJump({ seq: found.data[0].seq, at: tick() }); else say(`There are no messages from ${wanted}.`);
    } catch (error) { say(error.message, true); }
  };
  const stop = (event) => { if (event.detail < 2) halt(); }; // it takes the place of Send, and a double click means Send
  const keys = (event) => {
    if (event.isComposing || event.keyCode === 229) return; // these keys are the input method's; Safari says so by 229
    if (event.key === 'Enter' && !event.shiftKey) submit(event);
    if (event.key === 'Escape') halt();
  };
  const draw = (entry, found, before) => html`<${Message} key=${entry.seq} entry=${entry} opens=${opensDay(entry, before)} found=${found} pinned=${pinned.has(entry.seq)} onEdit=${setEditing} onAgain=${again} onPin=${pin} />`;
  const end = html`<div class="ending" aria-live="polite">
    ${answer?.question && html`<ol class="block">
      <li class="message user"><div class="who"><b>user</b></div><${Text} of=${answer.question} /></li>
      ${(busy || answer.text) && html`<li class="message assistant" aria-busy=${busy}><div class="who"><b>assistant</b> ${busy && html`<span class="meta">is answering …</span>`}</div>
        <${Text} of=${answer.text || '…'} /></li>`}</ol>`}
    ${answer?.error && html`<p class="trouble" role="alert">${sentence(answer.error.message)} ${fate(answer.stored)}</p>`}
    ${!count && !answer && html`<div class="empty"><h2>No messages yet</h2>
      <p>Whatever you say here is kept for good, word for word, however long it gets. Ask for it later${server.current.answers || server.current.upstream ? '' : ': even without a model, the answer quotes your messages'}.</p>
      <p class="starts">${may('write') && STARTS.map((text) => html`<button key=${text} type="button" onClick=${() => { setTyped(text); input.current.focus(); }}>${text}</button>`)}</p></div>`}
  </div>`;
  return html`<section class="chat" aria-label="Chat">
    <div class="chat-top">
      <h1 title=${name}><${Name}>${head ? titleOf(head) : name}<//></h1>
      <${Branches} name=${name} head=${head} list=${list} />
      <form class="jump" onSubmit=${goTo} role="search"><input name="when" aria-label="Go to a date or a number" placeholder="Go to: yesterday, #12" /></form>
      <button class="small only-narrow" onClick=${openPanel}>Memory</button>
    </div>
    <${Scroller} key=${name} count=${count} load=${load} item=${draw} seen=${jump && (!seen || jump.at > seen.at) ? jump : seen} end=${end} follow=${busy} onShown=${shown} label="Messages" />
    ${!may('write') ? html`<p class="composer note">${forbidden('write')} With another key you can write here.</p>` : html`<form class="composer" onSubmit=${submit}>
      <textarea ref=${input} rows="2" aria-label="Your message" placeholder="Write a message. Enter sends, Shift+Enter adds a line." value=${typed}
        onInput=${(e) => setTyped(e.target.value)} onKeyDown=${keys} />
      ${busy ? html`<button type="button" onClick=${stop}>Stop</button>` : html`<button class="strong" disabled=${!typed.trim()}>Send</button>`}
      <${Answers} ...${answerer} />
    </form>`}
    ${editing && html`<${Edit} entry=${editing} close=${() => setEditing(null)} onDone=${(text) => { setEditing(null); inBranch(editing.seq, text); }} />`}
  </section>`;
}

function Edit({ entry, close, onDone }) {
  const dialog = useRef(null);
  const [text, set] = useState(textOf(entry.message));
  useEffect(() => { dialog.current.showModal(); }, []);
  return html`<dialog ref=${dialog} class="wide" onClose=${close} aria-label="Edit the message">
    <h2>Edit the message</h2>
    <p class="meta">The conversation continues here as a branch. The original stays unchanged.</p>
    <textarea rows="6" aria-label="The message" value=${text} onInput=${(e) => set(e.target.value)} />
    <div class="row end"><button type="button" class="quiet" onClick=${() => dialog.current.close()}>Cancel</button>
      <button type="button" class="strong" disabled=${!text.trim()} onClick=${() => onDone(text.trim())}>Send in a branch</button></div>
  </dialog>`;
}
