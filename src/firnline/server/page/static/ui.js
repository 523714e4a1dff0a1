// Small pieces that all views share.

import { h } from 'preact';
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import htm from 'htm';
import { may } from './api.js';

export const html = htm.bind(h);

// -- words ------------------------------------------------------------------------------------

const whole = new Intl.NumberFormat('en');
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });
const relative = new Intl.RelativeTimeFormat('en'); // in figures: a day and a half ago need not have been yesterday

export const number = (n) => whole.format(n);
export const compact = (n) => short.format(n);
export const plural = (n, one, many = `${one}s`) => `${whole.format(n)} ${n === 1 ? one : many}`;
export const money = (n) => `$${n < 0.01 ? n.toFixed(4) : n.toFixed(2)}`;
export const percent = (share) => `${(share * 100).toFixed(share > 0.995 || share < 0.1 ? 1 : 0)} %`;

/** What the server says of an error, so that another sentence can follow it. */
export const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?…]$/.test(text) ? '' : '.'}`;

export function ago(time) {
  if (!time) return 'never';
  const seconds = (new Date(time) - Date.now()) / 1000;
  for (const [unit, size] of [['year', 31536000], ['month', 2592000], ['day', 86400], ['hour', 3600], ['minute', 60]]) {
    if (Math.abs(seconds) >= size) return relative.format(Math.trunc(seconds / size), unit);
  }
  return 'just now';
}

export const when = (time) => (time ? new Date(time).toLocaleString([], { dateStyle: 'medium', timeStyle: 'short' }) : '');

/** A day in few letters. */
export const date = (time) => (time ? new Date(time).toLocaleDateString([], { day: 'numeric', month: 'short', year: 'numeric' }) : '');

/** A day as a heading. */
export function day(time) {
  const then = new Date(time);
  const back = Math.round((new Date().setHours(0, 0, 0, 0) - new Date(then).setHours(0, 0, 0, 0)) / 86_400_000);
  if (back === 0 || back === 1) return back ? 'Yesterday' : 'Today';
  return then.toLocaleDateString([], { weekday: 'long', day: 'numeric', month: 'long', year: 'numeric' });
}

let ticks = 0;
/** A number that only grows: which of two wishes is the later one. */
export const tick = () => { ticks += 1; return ticks; };

/** Bytes or bidi tricks in names must not rearrange the page: isolate them. */
export const Name = ({ children }) => html`<bdi>${children}</bdi>`;

/** What a conversation is called where it came from; else its name. */
const GENERATED = /[0-9a-f]{8}(-?[0-9a-f]{4}){2}|--[0-9a-f]{8}$|^Chat \d{4}-\d\d-\d\d \d\d\.\d\d\.\d\d$/;
/** What it is called: its title, or how its first user begins if no person has chosen its name. */
export const titleOf = (head) => ((head.metadata?.title || GENERATED.test(head.conversation)) && head.title) || head.conversation;

// -- loading ----------------------------------------------------------------------------------

/** What `work` returns, loaded when `deps` change: `{ value, error, busy, again }`; busy until it is what `deps` ask for. */
export function useLoaded(work, deps) {
  const [state, set] = useState({ busy: true });
  const [round, setRound] = useState(0);
  useEffect(() => {
    const gone = new AbortController();
    set((before) => ({ value: before.value, busy: true }));
    work(gone.signal).then(
      (value) => gone.signal.aborted || set({ value, busy: false, deps }),
      (error) => gone.signal.aborted || set({ error, busy: false, deps }),
    );
    return () => gone.abort();
  }, [...deps, round]);
  const again = useCallback(() => setRound((n) => n + 1), []);
  const { value, error } = state;
  return { value, error, busy: state.busy || !state.deps.every((one, n) => Object.is(one, deps[n])), again };
}

export function Loaded({ of, children, what = 'it' }) {
  if (of.error) return html`<${Trouble} error=${of.error} again=${of.again} />`;
  if (of.value === undefined) return html`<p class="empty" role="status">Loading ${what} …</p>`;
  return children(of.value);
}

export function Trouble({ error, again }) {
  return html`<div class="trouble" role="alert">
    <strong>That did not work.</strong> <span>${sentence(error.message)}</span>
    ${again && html` <button class="quiet" onClick=${again}>Try again</button>`}
  </div>`;
}

/** Why something is not offered: the key may not do it. Null if it may. */
export const forbidden = (scope) => (may(scope) ? null : `Your key cannot ${{ write: 'change anything: it is read-only', admin: 'erase: that requires the scope admin' }[scope]}.`);

/** A button for something that not every key may do. */
export const Press = ({ needs = 'write', disabled = false, title, children, ...more }) => html`<button type="button"
  disabled=${disabled || !may(needs)} title=${forbidden(needs) || title} ...${more}>${children}</button>`;

/** Said once where much is switched off. */
export const ReadOnly = () => !may('write') && html`<p class="note">Your key is read-only. Changes are disabled.</p>`;

/** A part of a panel or a board, under its own heading; all of it is switched off for keys that may not do what it `needs`. */
export const Box = ({ title, level = 'h3', needs, children }) => html`<section class="box" aria-label=${title}><${level}>${title}<//>
  ${needs && !may(needs) ? html`${may('write') && html`<p class="note">${forbidden(needs)}</p>`}<fieldset class="off" disabled>${children}</fieldset>` : children}</section>`;

export const Empty = ({ title, level = 'h3', children }) => html`<div class="empty"><${level}>${title}<//><p>${children}</p></div>`;

const CHANGED = 'firnline-changed';
/** Something has changed everywhere, such as by an import: all that is looked at is looked at again. */
export const changedAll = () => window.dispatchEvent(new Event(CHANGED));

/** Refresh now and then while the page is visible, and when the reader comes back to it; returns a function that ends it. */
export function looking(look, every) {
  const seen = () => { if (!document.hidden) look(); };
  const timer = setInterval(seen, every);
  window.addEventListener('focus', seen);
  window.addEventListener(CHANGED, seen);
  document.addEventListener('visibilitychange', seen);
  return () => {
    clearInterval(timer);
    window.removeEventListener('focus', seen);
    window.removeEventListener(CHANGED, seen);
    document.removeEventListener('visibilitychange', seen);
  };
}

// -- telling what happened --------------------------------------------------------------------

let announce = () => {};
/** Say in a corner of the page what happened; read aloud by screen readers. */
export const say = (text, bad = false) => announce({ text, bad, id: Math.random() });

export function Announcer() {
  const [said, set] = useState(null);
  announce = set;
  useEffect(() => {
    if (!said) return undefined;
    const timer = setTimeout(() => set(null), said.bad ? 9000 : 4000);
    return () => clearTimeout(timer);
  }, [said]);
  return html`<div class=${`said ${said?.bad ? 'bad' : ''}`} role="status" aria-live="polite">${said && html`<span>${said.text}</span>`}</div>`;
}

/** A button that works: marked while it does, and deaf; and says what went wrong; or tells `failed`. Not every key may do what it `needs`. */
export function Act({ run, done, failed, needs, children, class: kind = '', disabled = false, ...more }) {
  const [busy, set] = useState(false);
  const going = useRef(false);
  const act = async () => {
    if (going.current) return; // it is not disabled while it works: a keyboard user would lose the focus
    going.current = true;
    set(true);
    try {
      const told = await run();
      if (done) say(typeof done === 'function' ? done(told) : done);
    } catch (error) {
      if (failed) failed(error); else say(error.message, true);
    } finally {
      going.current = false;
      set(false);
    }
  };
  return html`<button type="button" class=${kind} disabled=${disabled || (needs && !may(needs))} aria-disabled=${busy || null} aria-busy=${busy} title=${needs && forbidden(needs)} onClick=${act} ...${more}>${children}</button>`;
}

/** A row with something to fill in and an `Act` of type submit: Enter presses it. */
export const FormRow = ({ children }) => html`<form class="row" noValidate onSubmit=${(event) => event.preventDefault()}>${children}</form>`;

/** A dialog that is open as long as it is drawn. Taken away, it gives the focus back as one does that is closed. */
function useModal() {
  const dialog = useRef(null);
  useEffect(() => {
    const before = document.activeElement;
    dialog.current.showModal();
    return () => { if (document.activeElement === document.body) before.focus(); };
  }, []);
  return dialog;
}

/** Asks before it does something: a real dialog, focus kept inside, Escape says no. */
export function Confirm({ title, children, word, button, danger, onYes, onNo }) {
  const dialog = useModal();
  const [typed, set] = useState('');
  const [error, setError] = useState(null); // shown in here: what is behind a dialog is neither seen nor read aloud
  const ready = !word || typed === word;
  return html`<dialog ref=${dialog} onClose=${onNo} aria-label=${title}>
    <h2>${title}</h2>
    <div class="said-before">${children}</div>
    ${word && html`<label>Type <code>${word}</code> to continue
      <input value=${typed} onInput=${(e) => set(e.target.value)} autocomplete="off" /></label>`}
    ${error && html`<${Trouble} error=${error} />`}
    <div class="row end">
      <button type="button" class="quiet" onClick=${() => dialog.current.close()}>Cancel</button>
      <${Act} class=${danger ? 'danger' : 'strong'} run=${onYes} failed=${setError} disabled=${!ready}>${button}<//>
    </div>
  </dialog>`;
}

/** A dialog with a form: `onDone` may take its time; if it fails, the dialog stays and says why. */
export function FormDialog({ title, button, onDone, onClose, children }) {
  const dialog = useRef(null);
  const [error, setError] = useState(null);
  useEffect(() => { dialog.current.showModal(); }, []);
  const enter = async (event) => {
    event.preventDefault();
    try {
      await onDone(new FormData(event.target));
      dialog.current?.close();
    } catch (failed) { setError(failed); }
  };
  return html`<dialog ref=${dialog} class="wide" onClose=${onClose} aria-label=${title}>
    <h2>${title}</h2>
    <form class="stack" onSubmit=${enter}>
      ${children}
      ${error && html`<${Trouble} error=${error} />`}
      <div class="row end"><button type="button" class="quiet" onClick=${() => dialog.current.close()}>Cancel</button>
        <button class="strong">${button}</button></div>
    </form>
  </dialog>`;
}

/** Copy a text, which `node` shows. */
export async function copy(text, node) {
  try {
    await navigator.clipboard.writeText(text);
    say('Copied.');
  } catch { // not allowed here: mark it, so that one key is left to press
    getSelection().selectAllChildren(node);
    say('Selected; press Ctrl+C to copy it.');
  }
}

/** Something to type elsewhere, with a button that copies it. */
export function Copyable({ text, what }) {
  const code = useRef(null);
  return html`<div class="copyable"><pre ref=${code} tabindex="0" aria-label=${what}>${text}</pre>
    <button type="button" class="small" onClick=${() => copy(text, code.current)} aria-label=${`Copy: ${what}`}>Copy</button></div>`;
}

// -- pictures ---------------------------------------------------------------------------------

/** How wide an element is, in pixels: `[ref, width]`. Pictures drawn that wide have readable text. */
export function useWidth(first = 600) {
  const ref = useRef(null);
  const [width, set] = useState(first);
  useEffect(() => {
    const look = new ResizeObserver(([entry]) => entry.contentRect.width && set(Math.round(entry.contentRect.width)));
    look.observe(ref.current);
    return () => look.disconnect();
  }, []);
  return [ref, width];
}

export const SECTIONS = ['system', 'tools', 'pinned', 'task', 'profile', 'important', 'digests', 'recalled', 'elsewhere', 'retrieved', 'history', 'framing', 'reserve', 'free'];

/** Where the tokens of a window go, exactly: one bar, and its legend with every number. */
export function BudgetBar({ accounting }) {
  const parts = SECTIONS.map((name) => [name, accounting[name] || 0]).filter(([, n]) => n > 0);
  const label = parts.map(([name, n]) => `${name} ${number(n)}`).join(', ');
  return html`<figure class="budget">
    <div class="bar" role="img" aria-label=${`Of ${number(accounting.window)} tokens: ${label}`}>
      ${parts.map(([name, n]) => html`<span key=${name} class=${`part of-${name}`} style=${{ flexGrow: n }} title=${`${name}: ${number(n)} tokens`} />`)}
    </div>
    <figcaption><ul class="legend">
      ${parts.map(([name, n]) => html`<li key=${name}><i class=${`dot of-${name}`} /> ${name} <b>${number(n)}</b></li>`)}
    </ul></figcaption>
  </figure>`;
}
