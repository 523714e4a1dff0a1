// One conversation: the chat, and beside it what memory makes of it.

import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { at, get, LISTED } from './api.js';
import { html, Loaded, say, useLoaded } from './ui.js';
import { link } from './app.js';
import { Chat, made } from './chat.js';
import { Glacier } from './glacier.js';
import { Turns } from './turns.js';
import { Digests } from './digests.js';
import { Important } from './important.js';
import { Topics } from './topics.js';
import { Manage } from './manage.js';

const TABS = [
  ['', 'Glacier', Glacier],
  ['turns', 'Turns', Turns],
  ['digests', 'Digests', Digests],
  ['important', 'Important', Important],
  ['topics', 'Topics', Topics],
  ['manage', 'Manage', Manage],
];

/** All about it; null if nobody has said anything in it yet, which the list knows without asking. */
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

/** Others write to it, too: through the proxy, in another tab. Look now and then. */
function useNews(name, about, changed) {
  const hash = about.value?.hash;
  useEffect(() => {
    const look = async () => {
      if (document.hidden || hash === undefined) return;
      const now = await get(at(name)).catch(() => null); // when it is asked for, it says what is wrong
      if (now && now.hash !== hash) changed();
    };
    const timer = setInterval(look, 5000);
    return () => clearInterval(timer);
  }, [name, hash]);
}

export function Conversation({ name, tab, params, list }) {
  const known = isKnown(name, list);
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
  const asked = params.get('seq');
  const [seen, setSeen] = useState(asked === null ? null : { seq: Number(asked), at: Date.now() }); // the entry that is pointed at
  const [wide, setWide] = useState(false); // on narrow screens: the panel instead of the chat
  const changed = useCallback(() => { about.again(); list.again(); }, []);
  useEffect(() => { if (asked !== null) setSeen({ seq: Number(asked), at: Date.now() }); }, [asked]);
  useNews(name, about, changed);
  const show = useCallback((seq) => { setSeen({ seq, at: Date.now() }); setWide(false); }, []);
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
  return html`<div class=${`talk ${wide ? 'panel-first' : ''}`}>
    <${Loaded} of=${about} what="the conversation">${(head) => html`
      <${Chat} name=${name} head=${head} seen=${seen} changed=${changed} list=${list} openPanel=${() => setWide(true)} />
      <section class="panel" aria-label="Memory">
        <div class="tabs" role="tablist" aria-label="What memory is doing" onKeyDown=${keys}>
          ${TABS.map(([id, title]) => html`<button key=${id} role="tab" data-tab=${id} id=${`tab-${id}`} aria-controls="panel"
            aria-selected=${current[0] === id} tabindex=${current[0] === id ? 0 : -1} onClick=${() => choose(id)}>${title}</button>`)}
          <span class="grow" /><button class="quiet small only-narrow" onClick=${() => setWide(false)}>Back to the chat</button>
        </div>
        <div class="panel-body" role="tabpanel" id="panel" aria-labelledby=${`tab-${current[0]}`}>
          ${head ? html`<${Panel} name=${name} head=${head} show=${show} changed=${changed} />`
    : html`<p class="empty">Say something, and see here what memory makes of it.</p>`}
        </div>
      </section>`}<//>
  </div>`;
}
