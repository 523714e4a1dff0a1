// The list of conversations: the newest first, branches under what they came from, and a menu for each.

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { at, may, patch } from './api.js';
import { ago, changedAll, compact, FormDialog, html, Name, number, Press, say, titleOf, Trouble } from './ui.js';
import { link } from './app.js';
import { originOf } from './chat.js';
import { EraseDialog } from './manage.js';

const SHOWN = 300;

/** As they are listed: `[{ one, depth }]`, families by their newest message, branches below their origin. */
export function nested(list) {
  const by = new Map(list.map((one) => [one.conversation, one]));
  const children = new Map();
  const roots = [];
  const isBelow = (one, other) => { // an origin that leads back to itself is none
    for (let next = one, n = 0; next && n <= list.length; n += 1) {
      if (next === other) return true;
      next = by.get(originOf(next)?.of);
    }
    return false;
  };
  for (const one of list) {
    const origin = by.get(originOf(one)?.of);
    if (!origin || isBelow(origin, one)) roots.push(one);
    else children.set(origin, [...(children.get(origin) || []), one]);
  }
  const last = new Map();
  const lastOf = (one) => {
    if (!last.has(one)) last.set(one, (children.get(one) || []).map(lastOf).reduce((a, b) => (a > b ? a : b), one.updated_at));
    return last.get(one);
  };
  const newest = (a, b) => (lastOf(a) < lastOf(b) ? 1 : -1);
  const found = [];
  const add = (one, depth) => {
    found.push({ one, depth });
    (children.get(one) || []).sort(newest).forEach((child) => add(child, depth + 1));
  };
  roots.sort(newest).forEach((one) => add(one, 0));
  return found;
}

function Rename({ one, close, done }) {
  const save = async (form) => {
    const { title: _, ...rest } = one.metadata;
    const title = form.get('title').trim();
    await patch(at(one.conversation), { metadata: title ? { ...rest, title } : rest });
    say('Renamed.');
    done();
    changedAll(); // it may be open
  };
  return html`<${FormDialog} title="Rename the conversation" button="Save" onDone=${save} onClose=${close}>
    <label>Title <input name="title" maxlength="200" autocomplete="off" defaultValue=${titleOf(one)} placeholder="how its first message begins" /></label>
    <p class="meta">Its name for programs stays <code>${one.conversation}</code>.</p><//>`;
}

/** What one can do with a conversation, without opening it. */
function Menu({ one, ask }) {
  const box = useRef(null);
  const shut = () => { box.current.open = false; };
  useEffect(() => {
    const outside = (event) => { if (box.current?.open && !box.current.contains(event.target)) shut(); };
    addEventListener('pointerdown', outside);
    return () => removeEventListener('pointerdown', outside);
  }, []);
  const keys = (event) => { if (event.key === 'Escape' && box.current.open) { shut(); box.current.firstElementChild.focus(); } };
  const item = (kind, title, needs) => html`<${Press} needs=${needs} class="quiet" onClick=${() => { shut(); ask({ kind, one }); }}>${title}<//>`;
  return html`<details class="more" ref=${box} onKeyDown=${keys}><summary aria-label=${`Actions for ${titleOf(one)}`} title="Actions">⋯</summary>
    <div class="more-list">${item('rename', 'Rename …', 'write')}${item('erase', 'Erase …', 'admin')}</div></details>`;
}

const subtitle = (one, depth) => {
  const origin = originOf(one);
  const parts = [`${compact(one.entries)} ${one.entries === 1 ? 'message' : 'messages'}`, ago(one.updated_at)];
  if (origin) parts.unshift(origin.at < 0 ? 'branch' : depth ? `after #${origin.at}` : 'branch');
  return parts.join(' · ');
};

/** A filter by what conversations have, if there is more than nothing to choose from. */
function Only({ name, all, value, set }) {
  const names = [...new Set(all)].filter(Boolean).sort();
  if (!names.length) return null;
  return html`<select class="only" aria-label=${`Only conversations of a ${name}`} value=${value} onChange=${(e) => set(e.target.value)}>
    <option value="">${{ project: 'All projects', person: 'All people' }[name]}</option>${names.map((one) => html`<option key=${one} value=${one}>${one}</option>`)}</select>`;
}

export function Conversations({ list, here, onNew }) {
  const [filter, setFilter] = useState('');
  const [project, setProject] = useState('');
  const [person, setPerson] = useState('');
  const [dialog, ask] = useState(null);
  const all = list.value || [];
  const shown = useMemo(() => {
    const wanted = filter.trim().toLowerCase();
    const fits = (one) => (!project || one.project === project) && (!person || one.person === person) && `${titleOf(one)}\n${one.conversation}`.toLowerCase().includes(wanted);
    return nested(all.filter(fits)).slice(0, SHOWN);
  }, [list.value, filter, project, person]);
  const close = () => ask(null);
  const gone = () => { list.again(); if (here.name === dialog.one.conversation) location.hash = '#/'; };
  return html`<section class="conversations" aria-label="Conversations">
    <div class="row">
      <input type="search" placeholder="Find a conversation" aria-label="Find a conversation" value=${filter} onInput=${(e) => setFilter(e.target.value)} />
      <${Press} class="strong icon" title="New conversation (n)" aria-label="New conversation" onClick=${onNew}>+<//>
    </div>
    <div class="row only-these"><${Only} name="project" all=${all.map((one) => one.project)} value=${project} set=${setProject} /><${Only} name="person" all=${all.map((one) => one.person)} value=${person} set=${setPerson} /></div>
    ${list.error && html`<${Trouble} error=${list.error} again=${list.again} />`}
    <ul>
      ${shown.map(({ one, depth }) => html`<li key=${one.conversation} class=${depth ? `below deep-${Math.min(depth, 3)}` : ''}>
        <a href=${link(one.conversation)} title=${one.conversation} aria-current=${here.name === one.conversation ? 'page' : null}>
          <span class="title"><${Name}>${titleOf(one)}<//></span>
          <span class="meta" title=${`${number(one.tokens)} tokens`}>${subtitle(one, depth)}</span>
        </a>${may('write') && html`<${Menu} one=${one} ask=${ask} />`}</li>`)}
    </ul>
    ${list.value && !shown.length && html`<p class="empty">${filter || project || person ? 'No conversation fits.' : `No conversation yet.${may('write') ? ' Press + to start one.' : ''}`}</p>`}
    ${dialog?.kind === 'rename' && html`<${Rename} one=${dialog.one} close=${close} done=${list.again} />`}
    ${dialog?.kind === 'erase' && html`<${EraseDialog} name=${dialog.one.conversation} head=${dialog.one} close=${close} done=${gone} />`}
  </section>`;
}
