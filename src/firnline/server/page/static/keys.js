// What can be done without a mouse, and the list of it.

import { useEffect, useRef } from 'preact/hooks';
import { html } from './ui.js';

const focus = (selector) => () => document.querySelector(selector)?.focus();

/** What keys do, by key, at a place: `names` are the conversations in their order, `tabs` the panels. */
export function goes(here, names, tabs, link) {
  const found = { '/': () => { location.hash = '#/search'; }, d: () => { location.hash = '#/'; }, p: () => { location.hash = '#/people'; } };
  const step = (by) => () => {
    const at = names.indexOf(here.view === 'c' ? here.name : '');
    const next = names[at < 0 ? 0 : Math.min(Math.max(at + by, 0), names.length - 1)];
    if (next !== undefined) location.hash = link(next);
  };
  Object.assign(found, { j: step(1), k: step(-1) });
  if (here.view !== 'c') return found;
  tabs.forEach((id, n) => { found[n + 1] = () => { location.hash = link(here.name, id); }; });
  return Object.assign(found, { m: focus('.composer textarea'), g: focus('.jump input') });
}

const LISTED = [
  ['Anywhere', [['n', 'a new conversation'], ['j / k', 'the next, the previous conversation'], ['/', 'search'], ['d', 'the dashboard'], ['p', 'people'], ['?', 'this list']]],
  ['In a conversation', [['m', 'write a message'], ['Enter', 'send it'], ['Shift Enter', 'a new line'], ['Esc', 'stop the answer'], ['g', 'go to a date or a number'], ['1 … 6', 'the panels'], ['← →', 'switch panels, when a panel name has the focus']]],
  ['In the search', [['↓ / ↑', 'through the hits'], ['Enter', 'open one in its conversation']]],
];

export function Keys({ close }) {
  const dialog = useRef(null);
  useEffect(() => { dialog.current.showModal(); }, []);
  return html`<dialog ref=${dialog} class="keys" onClose=${close} aria-label="Keys">
    <h2>Keys</h2>
    ${LISTED.map(([title, keys]) => html`<section key=${title}><h3>${title}</h3><dl>
      ${keys.map(([key, what]) => html`<div key=${key}><dt>${key.split(' ').map((one) => (/^[/…]$/.test(one) && key !== one ? html`<span>${one}</span>` : html`<kbd>${one}</kbd>`))}</dt><dd>${what}</dd></div>`)}</dl></section>`)}
    <div class="row end"><button type="button" class="strong" onClick=${() => dialog.current.close()}>Done</button></div>
  </dialog>`;
}
