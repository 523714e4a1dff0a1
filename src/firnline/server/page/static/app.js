// The page: a list of conversations, one view, and where you are in the address.

import { render } from 'preact';
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { all, allow, get, key, may, Problem, server } from './api.js';
import { KeyDialog, KeyForm } from './access.js';
import { Announcer, changedAll, html, looking, titleOf, Trouble, useLoaded } from './ui.js';
import { Dashboard } from './dashboard.js';
import { Conversation, TABS } from './conversation.js';
import { goes, Keys } from './keys.js';
import { Conversations, nested } from './list.js';
import { People } from './people.js';
import { Search } from './search.js';
import { TransferDialog } from './transfer.js';

// -- where we are: #/  #/search?q=…  #/people/NAME  #/c/NAME/TAB?seq=… -----------------------------------------

/** A part of the address as it was meant; what is no encoding was typed as it stands. */
function decoded(part) {
  try { return decodeURIComponent(part); } catch { return part; }
}

export function place() {
  const [path, params] = location.hash.replace(/^#/, '').split('?');
  const parts = path.split('/').filter(Boolean).map(decoded);
  const view = parts[0] === 'c' && parts[1] === undefined ? '' : parts[0] || ''; // without a name there is no conversation
  return { view, name: parts[1], tab: parts[2] || '', params: new URLSearchParams(params || '') };
}

export const link = (name, tab = '', params = {}) => {
  const rest = new URLSearchParams(params).toString();
  return `#/c/${encodeURIComponent(name)}${tab ? `/${tab}` : ''}${rest ? `?${rest}` : ''}`;
};

function usePlace() {
  const [here, set] = useState(place());
  useEffect(() => {
    const moved = () => set(place());
    addEventListener('hashchange', moved);
    return () => removeEventListener('hashchange', moved);
  }, []);
  return here;
}

// -- light and dark ---------------------------------------------------------------------------

const THEME = 'firnline.theme';
function useTheme() {
  const [theme, set] = useState(localStorage.getItem(THEME) || 'auto');
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    localStorage.setItem(THEME, theme);
  }, [theme]);
  const next = { auto: 'light', light: 'dark', dark: 'auto' };
  return [theme, () => set(next[theme])];
}

function useHealth() {
  const [ready, set] = useState(null);
  useEffect(() => {
    const look = () => fetch('/readyz').then((r) => set(r.ok), () => set(false));
    look();
    return looking(look, 15000);
  }, []);
  return ready;
}

/** Draws everything again now and then: what was just now is a minute ago by and by. */
function useMinutes() {
  const [, set] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => set((n) => n + 1), 60_000);
    return () => clearInterval(timer);
  }, []);
}

/** What is loaded, with what was there before it failed: a list that was seen stays in sight. */
function useKept(loaded) {
  const last = useRef();
  if (loaded.value) last.current = loaded.value;
  return { ...loaded, value: last.current };
}

/** Why the key was rejected; kept until the next answer, so that the key form stays while a key is checked. */
function useRefusal({ busy, error }) {
  const last = useRef(null);
  if (!busy) last.current = error instanceof Problem && [401, 403].includes(error.status) ? error : null;
  return last.current;
}

/** The address says where we are, so skipping to the content must not change it. */
const skip = (event) => { event.preventDefault(); document.getElementById('main').focus(); };

function App() {
  const here = usePlace();
  const [theme, nextTheme] = useTheme();
  const [open, setOpen] = useState(false);
  const [help, setHelp] = useState(false);
  const [access, setAccess] = useState(false);
  const [transfer, setTransfer] = useState(false);
  const main = useRef(null);
  const ready = useHealth();
  useMinutes();
  const me = useLoaded((signal) => get('/me', {}, signal), []);
  const refusal = useRefusal(me);
  if (me.value) { allow(me.value.scopes); server.current = me.value.server; }
  const list = useKept(useLoaded(() => (me.value ? all('/conversations') : new Promise(() => {})), [Boolean(me.value)]));
  useEffect(() => setOpen(false), [here.view, here.name]);
  useLayoutEffect(() => { if (main.current) main.current.scrollTop = 0; }, [here.view, here.name]); // another view begins at its top
  const chosen = (event) => { if (event.target.closest('a')) setOpen(false); }; // also where one is already
  const called = list.value?.find((one) => one.conversation === here.name);
  const title = { c: called ? titleOf(called) : here.name, search: 'Search', people: here.name || 'People' }[here.view] || 'Dashboard';
  useEffect(() => { document.title = `${title} · Firnline`; }, [title]);

  const begin = useCallback(() => {
    if (!may('write')) return;
    const here = new Date(Date.now() - new Date().getTimezoneOffset() * 60_000); // the reader's own clock
    const time = here.toISOString().slice(0, 19).replace('T', ' ').replaceAll(':', '.'); // to the second: another tab begins one, too
    location.hash = link(`Chat ${time}`);
  }, []);
  useEffect(() => {
    const pressed = (event) => {
      const typing = /INPUT|TEXTAREA|SELECT/.test(event.target.tagName) || event.target.isContentEditable;
      if (typing || event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
      const names = nested(list.value || []).map(({ one }) => one.conversation);
      const does = { n: begin, '?': () => setHelp(true), ...goes(here, names, TABS.map(([id]) => id), link) }[event.key];
      if (does) { event.preventDefault(); does(); }
    };
    addEventListener('keydown', pressed);
    return () => removeEventListener('keydown', pressed);
  }, [begin, here, list.value]);

  if (refusal) return html`<${KeyForm} again=${me.again} error=${refusal} />`;
  if (me.error) return html`<main class="gate"><${Trouble} error=${me.error} again=${me.again} /></main>`;
  const view = {
    c: () => html`<${Conversation} key=${here.name} name=${here.name} tab=${here.tab} params=${here.params} list=${list} />`,
    search: () => html`<${Search} params=${here.params} />`,
    people: () => html`<${People} person=${here.name} />`,
  }[here.view] || (() => html`<${Dashboard} list=${list} begin=${begin} />`);
  return html`
    <a class="skip" href="#main" onClick=${skip}>Skip to the content</a>
    <header class="top">
      <button class="quiet icon menu" aria-label="Conversations" aria-expanded=${open} onClick=${() => setOpen(!open)}>☰</button>
      <a class="brand" href="#/" aria-label="Firnline"><img src="/favicon.svg" alt="" width="24" height="24" /> <span class="word">Firnline</span></a>
      <nav aria-label="Views" onClick=${chosen}>
        <a href="#/" aria-current=${here.view === '' ? 'page' : null}>Dashboard</a>
        <a href="#/people" aria-current=${here.view === 'people' ? 'page' : null}>People</a>
        <a href="#/search" aria-current=${here.view === 'search' ? 'page' : null}>Search</a>
      </nav>
      <span class="grow" />
      <span class=${`health ${ready === false ? 'bad' : ''}`} title=${ready === false ? 'The server is not ready' : 'The server is ready'}>
        <i aria-hidden="true" /> <span>${ready === false ? 'not ready' : 'ready'}</span></span>
      ${me.value && key.get() && html`<button class="quiet" onClick=${() => setAccess(true)} title="View, change or forget the API key"
        aria-label=${may('write') ? 'Key' : 'Key: read only'}>Key${!may('write') && html`<span class="only-wide">: read only</span>`}</button>`}
      <button class="quiet icon" onClick=${() => setTransfer(true)} aria-label="Export and import" title="Export and import">⇅</button>
      <button class="quiet icon only-wide" onClick=${() => setHelp(true)} aria-label="Keys" title="Keys (?)">?</button>
      <button class="quiet icon" onClick=${nextTheme} aria-label=${`Colors: ${theme}. Change`} title=${`Colors: ${theme}`}>${{ auto: '◐', light: '☀', dark: '☾' }[theme]}</button>
    </header>
    <div class=${`columns ${open ? 'open' : ''}`}>
      <aside class="side" onClick=${chosen}><${Conversations} list=${list} here=${here} onNew=${begin} /></aside>
      <main id="main" ref=${main} tabindex="-1">${me.value ? view() : html`<p class="empty" role="status">Loading …</p>`}</main>
    </div>
    ${access && html`<${KeyDialog} me=${me.value} close=${() => setAccess(false)} />`}
    ${transfer && html`<${TransferDialog} changed=${() => { list.again(); changedAll(); }} close=${() => setTransfer(false)} />`}
    ${help && html`<${Keys} close=${() => setHelp(false)} />`}
    <${Announcer} />`;
}

const root = document.getElementById('app');
root.replaceChildren();
render(html`<${App} />`, root);
