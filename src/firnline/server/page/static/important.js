// Important data: what the conversation settled, each item with its evidence, and what it replaced.
//
// Nothing is ever removed from it. A named value is replaced by a newer one; an item of a list, which
// has no name, is marked by a field of the application's that is named like it. Either is a digest.

import { useState } from 'preact/hooks';
import { at, del, get, may, post, put } from './api.js';
import { ago, Act, Confirm, Empty, FormRow, html, Loaded, Name, plural, Press, say, useLoaded } from './ui.js';
import { Ref, Refs } from './pieces.js';

const FIELDS = [
  ['user_preferences', 'Preferences', 'What the user likes and wants.', true],
  ['key_decisions', 'Decisions', 'What was decided.', false],
  ['important_facts', 'Facts', 'What is worth knowing later.', false],
  ['source_urls', 'Addresses', 'Pages that were mentioned.', false],
  ['document_structure', 'Structure', 'How a document is built.', true],
  ['entities', 'Names', 'People, places, things.', false],
  ['custom_fields', 'Your own fields', 'What the application stores here.', true],
];
const NAMED = new Set(FIELDS.filter(([, , , named]) => named).map(([field]) => field));
const OWN = 'custom_fields';
export const RETRACTED = 'no longer holds';
const RESTORED = 'holds again';
const words = (value) => (typeof value === 'string' ? value : JSON.stringify(value));
const plain = (name) => name.toLowerCase().replace(/[_\s]+/g, ' ').trim();
const about = (item) => (item.name ? `${item.name}: ${words(item.value)}` : words(item.value));

/** What is in force, with what it replaced and whether it was retracted: `[{ item, history, retracted }]`. */
export function arranged(items) {
  const live = items.filter((item) => item.superseded_by === null);
  const listed = new Set(live.filter((item) => !NAMED.has(item.field)).map((item) => plain(words(item.value))));
  const isNote = (item) => item.field === OWN && (item.value === RETRACTED || item.value === RESTORED) && listed.has(plain(item.name));
  const notes = new Map(live.filter(isNote).map((item) => [plain(item.name), item.value]));
  return live.filter((item) => !isNote(item)).map((item) => {
    const named = NAMED.has(item.field);
    const history = named ? items.filter((old) => old.superseded_by !== null && old.field === item.field && plain(old.name) === plain(item.name) && old.value !== RETRACTED) : [];
    return { item, history, retracted: named ? item.value === RETRACTED : notes.get(plain(words(item.value))) === RETRACTED };
  });
}

/** What to remember so that an item has another value; null retracts it. */
export function replacing(item, value) {
  if (NAMED.has(item.field)) return { [item.field]: { [item.name]: value ?? RETRACTED } };
  const mark = { [OWN]: { [words(item.value)]: RETRACTED } };
  return value === null ? mark : { ...mark, [item.field]: [value] };
}

// -- one item ---------------------------------------------------------------------------------

function Edit({ item, close, save }) {
  const [value, set] = useState(words(item.value));
  return html`<${FormRow}>
    <input value=${value} aria-label=${`New value of ${item.name || words(item.value)}`} onInput=${(e) => set(e.target.value)} />
    <${Act} type="submit" class="strong" run=${() => save(value.trim())} disabled=${!value.trim() || value.trim() === words(item.value)}>Save<//>
    <button type="button" class="quiet" onClick=${close}>Cancel</button><//>`;
}

function Older({ item, history, show, back }) {
  const by = (old) => (old.superseded_by === -1 ? 'by the application' : html`by <${Ref} seq=${old.superseded_by} show=${show} />`);
  return html`<ul class="older" aria-label=${`Earlier values of ${item.name}`}>${history.map((old, n) => html`<li key=${n}>
    <del><bdi>${words(old.value)}</bdi></del> <${Refs} seqs=${old.seqs} show=${show} /> <span class="meta">replaced ${by(old)}</span>${' '}
    <${Press} class="quiet small" aria-label=${`Restore: ${about(old)}`} onClick=${() => back(old)}>Restore<//></li>`)}</ul>`;
}

function Doing({ item, retracted, pinned, does, edit }) {
  const seq = item.seqs[0];
  const on = pinned.includes(seq);
  if (!may('write')) return null;
  return html`<span class="does-what">
    ${!retracted && html`<button type="button" class="quiet small" aria-label=${`Edit ${about(item)}`} onClick=${edit}>Edit</button>`}
    ${seq !== undefined && html`<${Act} class="quiet small" aria-pressed=${on} aria-label=${`${on ? 'Unpin' : 'Pin'} #${seq}, which says: ${about(item)}`} run=${() => does.pin(seq, !on)}>${on ? 'Unpin' : 'Pin'}<//>`}
    ${!retracted && html`<button type="button" class="quiet small" aria-label=${`Retract ${about(item)}`} onClick=${() => does.retract(item)}>Retract</button>`}
    ${retracted && !item.name && html`<${Act} class="quiet small" aria-label=${`Restore ${about(item)}`} run=${() => does.restore(item)}>Restore<//>`}
  </span>`;
}

function Item({ row, show, pinned, does }) {
  const { item, history, retracted } = row;
  const [editing, set] = useState(false);
  const quoted = item.quote && item.quote !== item.value;
  const value = html`<bdi>${words(item.value)}</bdi>`;
  return html`<li class=${`item ${retracted ? 'retracted' : ''}`}>
    <div class="level"><span class="value">${item.name && html`<b><${Name}>${item.name}<//></b> `}${retracted && !item.name ? html`<del>${value}</del>` : value}${' '}
      ${retracted && html`<span class="badge warm">retracted</span> `}
      ${item.seqs.length ? html`<${Refs} seqs=${item.seqs} show=${show} />` : html`<span class="meta">set by the application</span>`}</span>
      <${Doing} item=${item} retracted=${retracted} pinned=${pinned} does=${does} edit=${() => set(!editing)} /></div>
    ${quoted && html`<q dir="auto">${item.quote}</q>`}
    ${editing && html`<${Edit} item=${item} close=${() => set(false)} save=${async (to) => { await does.change(item, to); set(false); }} />`}
    ${history.length > 0 && html`<${Older} item=${item} history=${history} show=${show} back=${does.back} />`}
  </li>`;
}

// -- adding -----------------------------------------------------------------------------------

function Add({ add }) {
  const [field, setField] = useState(OWN);
  const [name, setName] = useState('');
  const [value, setValue] = useState('');
  const named = NAMED.has(field);
  const ready = value.trim() && (!named || name.trim());
  const run = async () => {
    await add({ [field]: named ? { [name.trim()]: value.trim() } : [value.trim()] });
    setName('');
    setValue('');
  };
  return html`<details class="add"><summary>Add an item</summary><form class="stack tight" onSubmit=${(e) => e.preventDefault()}>
    <p class="meta">What you add needs no evidence. It becomes a digest of its own, so it can be undone.</p>
    <label>Field <select value=${field} onChange=${(e) => setField(e.target.value)}>${FIELDS.map(([id, title]) => html`<option key=${id} value=${id}>${title}</option>`)}</select></label>
    ${named && html`<label>Name <input value=${name} onInput=${(e) => setName(e.target.value)} /></label>`}
    <label>Value <input value=${value} onInput=${(e) => setValue(e.target.value)} /></label>
    <div class="row"><${Act} type="submit" class="strong" run=${run} disabled=${!ready}>Remember it<//></div>
  </form></details>`;
}

// -- questions before something is changed ----------------------------------------------------

function Question({ asked, name, newest, done, close }) {
  const { kind, item } = asked;
  const send = (path, body, told) => async () => { await post(at(name, path), body); say(told); close(); done(); };
  if (kind === 'undo') {
    return html`<${Confirm} title=${`Undo digest ${newest.version}?`} button="Undo it" onNo=${close} onYes=${send('/digests/undo', {}, `Digest ${newest.version} is undone.`)}>
      <p>Everything that this digest changed is undone, and the digests before it are in force again. It is kept, and all messages stay.</p><//>`;
  }
  if (kind === 'back') {
    return html`<${Confirm} title="Restore the old value?" button="Restore it" onNo=${close}
      onYes=${send('/important/revert', { seq: item.superseded_by }, `“${words(item.value)}” is in force again.`)}>
      <p>“${words(item.value)}” is in force again, and so is everything else that #${item.superseded_by} replaced. Both values are kept, and this can be undone.</p><//>`;
  }
  return html`<${Confirm} title="Retract it?" button="Retract it" onNo=${close} onYes=${send('/important', { important_data: replacing(item, null) }, 'Retracted.')}>
    <p>From now on, prompts say that <b><bdi>${item.name || words(item.value)}</bdi></b> no longer holds. The old value is kept, and this can be undone.</p><//>`;
}

// -- all of it --------------------------------------------------------------------------------

async function load(name, head, signal) {
  const version = Math.max(0, ...head.in_force);
  const [found, newest] = await Promise.all([get(at(name, '/important'), {}, signal), version ? get(at(name, `/digests/${version}`), {}, signal) : null]);
  return { ...found, newest };
}

function Field({ title, hint, rows, draw }) {
  return html`<section aria-label=${title}><h3>${title} <span class="meta">${rows.length}</span></h3><p class="meta">${hint}</p>
    <ul class="items">${rows.map(draw)}</ul></section>`;
}

const claim = (item) => (typeof item === 'object' && item ? about({ name: item.name || '', value: item.value ?? item }) : String(item));

function Everything({ name, head, show, found, done }) {
  const [asked, ask] = useState(null);
  const { newest } = found;
  const rows = arranged(found.data);
  const did = async (work, told) => { await work; say(told); done(); };
  const remember = (data, told) => did(post(at(name, '/important'), { important_data: data }), told);
  const does = {
    pin: (seq, on) => did((on ? put : del)(at(name, `/pins/${seq}`)), on ? `#${seq} is in every context from now on.` : `#${seq} is no longer pinned.`),
    change: (item, value) => remember(replacing(item, value), `It is “${value}” now.`),
    retract: (item) => ask({ kind: 'retract', item }),
    restore: (item) => remember({ [OWN]: { [words(item.value)]: RESTORED } }, `“${words(item.value)}” is in force again.`),
    // What the application replaced is said again; what a message replaced is reverted with all it replaced.
    back: (old) => (old.superseded_by === -1 ? remember({ [old.field]: { [old.name]: old.value } }, `“${words(old.value)}” is in force again.`).catch((error) => say(error.message, true)) : ask({ kind: 'back', item: old })),
  };
  return html`<div class="stack">
    ${newest?.made_by === 'application' && newest.topic === null && html`<div class="card row apart last-change"><span>The last change is digest ${newest.version}, changed by hand ${ago(newest.created_at)}.</span>
      <${Press} onClick=${() => ask({ kind: 'undo' })}>Undo it …<//></div>`}
    ${FIELDS.map(([field, title, hint]) => {
    const own = rows.filter((row) => row.item.field === field);
    return own.length > 0 && html`<${Field} key=${field} title=${title} hint=${hint} rows=${own}
      draw=${(row, n) => html`<${Item} key=${`${about(row.item)}/${n}`} row=${row} show=${show} pinned=${head.pinned} does=${does} />`} />`;
  })}
    ${!rows.length && html`<${Empty} title="No important data yet">Preferences, decisions, facts, names and addresses are extracted when messages are digested, each with the words it came from. Items without evidence are set aside. You can also add your own.<//>`}
    ${may('write') && html`<${Add} add=${(data) => remember(data, 'Remembered.')} />`}
    ${found.set_aside.length > 0 && html`<details><summary>Set aside: ${plural(found.set_aside.length, 'claim')} without evidence</summary>
      <p class="meta">A model claimed these, but the messages do not say so. They are never shown to a model.</p>
      <ul class="plain">${found.set_aside.map((row, n) => html`<li key=${n}><bdi>${claim(row.item)}</bdi> <span class="meta">(${row.reason})</span></li>`)}</ul></details>`}
    ${asked && html`<${Question} asked=${asked} name=${name} newest=${newest} done=${done} close=${() => ask(null)} />`}
  </div>`;
}

export function Important({ name, head, show, changed }) {
  const found = useLoaded((signal) => load(name, head, signal), [name, head.hash, String(head.in_force)]);
  const done = () => { found.again(); changed(); };
  return html`<div class="stack"><p class="meta">Important data, and the messages it came from. Every change here is a digest, and can be undone.</p>
    <${Loaded} of=${found} what="the important data">${(value) => html`<${Everything} name=${name} head=${head} show=${show} found=${value} done=${done} />`}<//></div>`;
}
