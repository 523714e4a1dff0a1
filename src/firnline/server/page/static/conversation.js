// One conversation: the chat, and next to it what memory does.

import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { at, get, LISTED } from './api.js';
import { html, Loaded, looking, Name, number, ReadOnly, say, tick, titleOf, useLoaded } from './ui.js';
import { link } from './app.js';
import { Chat, made } from './chat.js';
import { Glacier } from './glacier.js';
import { Turns } from './turns.js';
import { Digests } from './digests.js';
import { Important } from './important.js';
import { Topics } from './topics.js';
import { Manage } from './manage.js';

export const TABS = [
  ['', 'Glacier', Glacier],
  ['turns', 'Turns', Turns],
  ['digests', 'Digests', Digests],
  ['important', 'Important', Important],
  ['topics', 'Topics', Topics],
  ['manage', 'Manage', Manage],
];

/** Everything about it; null if it has no messages yet, which the list knows without a request. */
async function load(name, known, signal) {
  if (!known) return null;
  try {
    return await get(at(name), {}, signal);
  } catch (error) {
    if (error.status === 404) return null;
    throw error;
  }
}

/** Whether the conversation exists, as far as the list says; undefined as long as there is none. */
function isKnown(name, list) {
  if (made.has(name)) return true;
  if (!list.value) return list.error ? true : undefined;
  return list.value.length >= LISTED || list.value.some((one) => one.conversation === name);
}

/** What of a conversation the views are drawn from: its log, pins, digests, strategy, and what it is called. */
export const stateOf = (head) => JSON.stringify([head.hash, head.pinned, head.digests, head.in_force, head.strategy, head.metadata, head.project, head.person]);

/** Others write to it, too: through the proxy, in another tab, in the background. Look now and then. */
function useNews(name, about, list, changed) {
  const state = about.value?.hash && stateOf(about.value);
  const begun = about.value !== null;
  useEffect(() => {
    const look = async () => {
      if (!begun) list.again(); // until others begin it, the list knows best: it can say so without an error
      if (!state) return;
      const now = await get(at(name)).catch((error) => error); // when it is asked for, it says what is wrong
      if (now.status === 404) say(`${name} was erased by another user.`, true);
      if (now.status === 404 || (now.hash && stateOf(now) !== state)) changed();
    };
    return looking(look, 5000);
  }, [name, state, begun]);
}

/** Counts up when what is here is another conversation than before: it was erased, and perhaps created again. */
function useLives(head) {
  const before = useRef({ born: undefined, lives: 0 });
  const { born, lives } = before.current;
  if (head !== undefined && born !== head?.created_at) before.current = { born: head?.created_at, lives: born ? lives + 1 : lives };
  return before.current.lives;
}

/** An address may ask for a message that is not there, or not any more: say so, rather than show the end without a word. */
function useEnd(asked, head) {
  const entries = head === undefined ? undefined : head?.entries ?? 0;
  useEffect(() => {
    if (asked === null || entries === undefined || (/^\d+$/.test(asked) && Number(asked) < entries)) return;
    say(`There is no message #${asked} here: ${entries ? `the newest is #${number(entries - 1)}.` : 'there are no messages yet.'}`);
  }, [asked, entries === undefined]);
}

const AHEAD = [
  ['Glacier', 'which messages a model sees word for word, which are covered by a digest, and where the tokens go'],
  ['Turns', 'the exact prompt of every answer, and what changed since the one before'],
  ['Digests', 'what was summarized, what was kept and lost, and how to undo it'],
  ['Important', 'facts, decisions and preferences, each with the words it came from'],
  ['Topics', 'what it is about, and how each part of it fades'],
  ['Manage', 'strategy, verification, branches, export, and erasing'],
];

/** Next to a conversation without messages. */
const Ahead = () => html`<div class="ahead"><h3>Write a message, and see here what memory does with it.</h3>
  <dl>${AHEAD.map(([title, text]) => html`<div key=${title}><dt>${title}</dt><dd>${text}</dd></div>`)}</dl></div>`;

export function Conversation({ name, tab, params, list }) {
  const asked = params.get('seq');
  const listed = isKnown(name, list);
  const known = listed === false ? asked !== null : listed; // a link to a message says that it exists: ask the server, because the list may be old
  const last = useRef();
  const about = useLoaded(async (signal) => {
    if (known === undefined) return new Promise(() => {}); // until the list is there
    try {
      last.current = await load(name, known, signal);
    } catch (error) { // what is there stays there
      if (last.current === undefined || signal.aborted) throw error;
      say(error.message, true);
    }
    return last.current;
  }, [name, known]);
  const lives = useLives(about.value);
  useEffect(() => { if (listed === false) list.again(); }, []); // others may have begun it since
  const [seen, setSeen] = useState(asked === null ? null : { seq: Number(asked), at: tick() }); // the message that is pointed at
  const [wide, setWide] = useState(tab !== '' && asked === null); // on narrow screens: the panel instead of the chat
  const changed = useCallback(() => { about.again(); list.again(); }, []);
  useEffect(() => { if (asked !== null) setSeen({ seq: Number(asked), at: tick() }); }, [asked]);
  useNews(name, about, list, changed);
  useEnd(asked, about.value);
  const show = useCallback((seq) => { setSeen({ seq, at: tick() }); setWide(false); }, []);
  const current = TABS.find(([id]) => id === tab) || TABS[0];
  const Panel = current[2];
  const choose = (id) => { location.hash = link(name, id); };
  const keys = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = TABS[(TABS.indexOf(current) + step + TABS.length) % TABS.length];
    choose(next[0]);
    event.currentTarget.querySelector(`[data-tab="${next[0]}"]`)?.focus();
  };
  const back = html`<div class="panel-top"><button class="quiet small" onClick=${() => setWide(false)}><span aria-hidden="true">‹ </span>Back to the chat</button><b title=${name}><${Name}>${about.value ? titleOf(about.value) : name}<//></b></div>`;
  return html`<div class=${`talk ${wide ? 'panel-first' : ''}`}>
    <${Loaded} of=${about} what="the conversation">${(head) => html`
      <${Chat} key=${lives} name=${name} head=${head} seen=${seen} changed=${changed} list=${list} openPanel=${() => setWide(true)} />
      <section class="panel" aria-label="Memory">
        ${back}
        <div class="tabs" role="tablist" aria-label="What memory is doing" onKeyDown=${keys}>
          ${TABS.map(([id, title]) => html`<button key=${id} role="tab" data-tab=${id} data-title=${title} id=${`tab-${id}`} aria-controls="panel"
            aria-selected=${current[0] === id} tabindex=${current[0] === id ? 0 : -1} onClick=${() => choose(id)}>${title}</button>`)}
        </div>
        <div key=${current[0]} class="panel-body" role="tabpanel" id="panel" aria-labelledby=${`tab-${current[0]}`}>
          <h2 class="unseen">${current[1]}</h2>
          <${ReadOnly} />
          ${head ? html`<${Panel} name=${name} head=${head} show=${show} changed=${changed} />`
    : html`<${Ahead} />`}
        </div>
      </section>`}<//>
  </div>`;
}
