// Components that the panels share.

import { useEffect, useState } from 'preact/hooks';
import { html, number } from './ui.js';
import { link, place } from './app.js';
import { markdown } from './markdown.js';

/** The words of a message, whatever its content is made of. */
export function textOf(message) {
  if (typeof message.content === 'string') return message.content;
  const said = (message.content || []).map((part) => part.text || `[${part.type || 'part'}]`).join('\n');
  const calls = (message.tool_calls || []).map((call) => `${call.function?.name || 'call'}(${call.function?.arguments || ''})`).join('\n');
  return [said, calls].filter(Boolean).join('\n');
}

/** A message by its number; pressing it shows the entry in the chat. */
export const Ref = ({ seq, show }) => html`<button type="button" class="ref" title=${`Show message ${seq} in the chat`}
  aria-label=${`Show message ${seq} in the chat`} onClick=${() => show(seq)}>#${seq}</button>`;

export const Refs = ({ seqs, show }) => html`<span class="refs">${seqs.map((seq) => html`<${Ref} key=${seq} seq=${seq} show=${show} />`)}</span>`;

/** Text with markdown in it, made safe. */
export const Text = ({ of }) => html`<div class="said-text" dir="auto" dangerouslySetInnerHTML=${{ __html: markdown(of) }} />`;

/** Names and values, side by side: `[[name, value], …]`; what is null is left out. */
export const Facts = ({ of }) => html`<dl class="facts">
  ${of.filter(([, value]) => value !== null && value !== undefined && value !== '').map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}
</dl>`;

/** What a section of a prompt is called in the budget's bar, so that it has one name on the page. */
export const titleOf = (section) => (section === 'recent' ? 'history' : section);

const REASONS = {
  system: 'Instructions of the application.',
  tools: 'What the model may call.',
  pinned: 'Pinned: in every prompt, word for word.',
  task: "The project's task, in every prompt.",
  profile: 'What is known of this person.',
  important: 'Important data, each item with its evidence.',
  digests: 'Digests, in place of older messages.',
  opened: 'Older messages for which there is room, quoted with their numbers.',
  elsewhere: 'What other conversations hold on the question.',
  recalled: 'Earlier messages that match the question.',
  retrieved: 'Documents that match the question.',
  recent: 'The newest messages, word for word.',
};
/** Why a section is in the prompt: what it is, and what was said of this very one. */
export const reasonOf = ({ name, why }) => (REASONS[name] && why ? `${REASONS[name].replace(/\.$/, '')}: ${why}.` : REASONS[name] || why);

/** A share as a thin bar. */
export const Share = ({ of, label, kind = '' }) => html`<span class=${`share ${kind}`} role="img" aria-label=${label} title=${label}>
  <i style=${{ width: `${Math.max(0, Math.min(1, of)) * 100}%` }} /></span>`;

const PARTS = {
  words: "it has words of the question", around: "the question's words are nearby", session: 'other messages of that time match too', answer: 'the message before it has the words',
  before: 'it comes before a message that has them', speaker: 'the question names its speaker', date: 'the question names its date', asks: 'it is a question itself', time: 'it names a time, which the question asks for',
  number: 'it has a number, which the question asks for', meaning: 'its meaning is similar', meaning_near: 'the meaning of its neighbors is similar',
};

/** What a score is made of, the largest part first; `most` is as long as a bar can be. */
export function Parts({ of, most, label }) {
  const parts = Object.entries(of).filter(([, value]) => Math.abs(value) >= 0.005).sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
  return html`<ul class="parts" aria-label=${label}>${parts.map(([name, value]) => html`<li key=${name} title=${PARTS[name]}><span>${name.replaceAll('_', ' ')}</span>
    <${Share} of=${Math.abs(value) / most} kind=${value < 0 ? 'minus' : ''} label=${`${name} ${value.toFixed(2)}`} /><b>${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(2)}</b>
    <span class="meta hint">${PARTS[name]}</span></li>`)}</ul>`;
}

/** A unified difference, line by line. */
export function Difference({ text }) {
  const kind = (line) => (/^(\+\+\+|---|@@)/.test(line) ? 'about' : { '+': 'new', '-': 'old' }[line[0]] || '');
  return html`<pre class="difference">${text.split('\n').map((line, n) => html`<span key=${n} class=${kind(line)}>${line || ' '}${'\n'}</span>`)}</pre>`;
}

/** What is chosen in a panel, kept in the address so that it can be linked to. */
export function useChosen(name, tab, key) {
  const look = () => place().params.get(key);
  const [chosen, set] = useState(look());
  useEffect(() => {
    const moved = () => set(look());
    addEventListener('hashchange', moved);
    return () => removeEventListener('hashchange', moved);
  }, [name, tab, key]);
  const choose = (value) => { location.hash = link(name, tab, value === null ? {} : { [key]: value }); };
  return [chosen === null ? null : Number(chosen), choose];
}

export const milliseconds = (n) => (n < 1000 ? `${number(Math.round(n))} ms` : `${(n / 1000).toFixed(1)} s`);
export const span = (first, last) => (last < first ? 'no messages' : first === last ? `#${first}` : `#${first}–${last}`);

/** Hand a file to the reader. */
export function save(name, data, type = 'application/json') {
  const url = URL.createObjectURL(data instanceof Blob ? data : new Blob([data], { type }));
  const made = Object.assign(document.createElement('a'), { href: url, download: name });
  made.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
