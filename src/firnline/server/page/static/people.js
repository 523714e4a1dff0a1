// People: what each one has stated, in which words, what it replaced; and how to put it right.

import { useState } from 'preact/hooks';
import { all, at, del, get, may, post, segment } from './api.js';
import { ago, Act, Confirm, date, Empty, FormDialog, html, Loaded, Name, plural, ReadOnly, say, titleOf, useLoaded, when } from './ui.js';
import { link } from './app.js';
import { save } from './pieces.js';

export const personLink = (person) => `#/people/${encodeURIComponent(person)}`;
const pathOf = (person, rest = '') => `/people/${segment(person)}${rest}`;

/** The facts of each slot, a subject's attribute: what holds now, and what held before, the newest first. */
export function slots(facts, person) {
  const found = new Map();
  for (const fact of facts) {
    const about = fact.subject === person ? '' : fact.subject;
    const id = `${about}\n${fact.attribute}`;
    if (!found.has(id)) found.set(id, { id, about, attribute: fact.attribute, now: [], before: [] });
    const holds = !fact.reverted_at && !fact.superseded_by && !fact.ended_by && !(fact.valid_until && new Date(fact.valid_until) <= new Date());
    found.get(id)[holds ? 'now' : 'before'].unshift(fact);
  }
  const rank = (slot) => 2 * (slot.now.length > 0) + (slot.before.length > 0); // what changed is news; what has ended comes last
  return [...found.values()].sort((a, b) => rank(b) - rank(a));
}

function Evidence({ of, titles }) {
  return html`<ul class="evidence">${of.map((one, n) => html`<li key=${n}><q dir="auto">${one.quote}</q>${' '}
    <a href=${link(one.conversation, '', { seq: one.seq })} title=${when(one.said_at)}>#${one.seq} in <${Name}>${titles.get(one.conversation) || one.conversation}<//></a> <span class="meta">${date(one.said_at)}</span></li>`)}</ul>`;
}

const why = (fact) => {
  if (fact.reverted_at) return `reverted ${ago(fact.reverted_at)}`;
  if (fact.superseded_by) return `replaced ${date(fact.valid_until)}`;
  return fact.valid_until ? `ended ${date(fact.valid_until)}` : 'ended';
};

function Fact({ fact, called, titles, edit, revert }) {
  return html`<div class="fact"><div class="level"><b class="value"><bdi>${fact.value}</bdi></b> <span class="meta">since ${date(fact.valid_from)}</span>
    ${may('write') && html`<span class="does-what">
      <button type="button" class="quiet small" aria-label=${`Correct ${called}: ${fact.value}`} onClick=${() => edit(fact)}>Correct</button>
      <button type="button" class="quiet small" aria-label=${`Revert ${called}: ${fact.value}`} onClick=${() => revert(fact)}>Revert</button></span>`}</div>
    <${Evidence} of=${fact.evidence} titles=${titles} /></div>`;
}

function Slot({ slot, titles, edit, revert }) {
  const called = slot.about && !slot.attribute.startsWith(slot.about) ? `${slot.about} · ${slot.attribute}` : slot.attribute;
  return html`<section class=${`card slot ${slot.now.length ? '' : 'over'}`} aria-label=${called}><h3><${Name}>${called}<//></h3>
    ${slot.now.map((fact) => html`<${Fact} key=${fact.id} fact=${fact} called=${called} titles=${titles} edit=${edit} revert=${revert} />`)}
    ${!slot.now.length && html`<p class="meta">Nothing holds now.</p>`}
    ${slot.before.length > 0 && html`<details open=${slot.before.length < 3}><summary>${plural(slot.before.length, 'earlier value')}</summary>
      ${slot.before.map((fact) => html`<div key=${fact.id} class="fact before"><del><bdi>${fact.value}</bdi></del> <span class="meta">${why(fact)}</span><${Evidence} of=${fact.evidence} titles=${titles} /></div>`)}</details>`}
  </section>`;
}

/** Nothing is overwritten: a correction is a new message, and the facts follow from it. */
function Correct({ fact, close, done }) {
  const last = fact.evidence.at(-1);
  const send = async (form) => {
    const content = form.get('text').trim();
    if (content) await post(at(last.conversation, '/messages'), { messages: [{ message: { role: 'user', content }, metadata: { corrects: fact.id } }] });
    say(`Stored in ${last.conversation}. What holds follows from what was said last.`);
    done();
  };
  return html`<${FormDialog} title=${`Correct: ${fact.attribute}`} button="Say it" onDone=${send} onClose=${close}>
    <p class="meta">Facts are what was said. Write it as ${fact.person} would say it: it becomes a new message of <bdi>${last.conversation}</bdi>, and replaces this value. What was said before stays, as history.</p>
    <label>The sentence <textarea name="text" rows="3" required dir="auto" defaultValue=${last.quote} /></label>
  <//>`;
}

function Erase({ person, close, done }) {
  const yes = async () => {
    const certificate = await del(pathOf(person));
    save('erased-person.json', JSON.stringify(certificate, null, 2));
    say(`${person} was erased: ${plural(certificate.conversations.length, 'conversation')}, ${plural(certificate.facts, 'fact')}. ${certificate.survives.length ? `Copies are left in ${certificate.survives.join(', ')}. ` : ''}The certificate was saved.`);
    location.hash = '#/people';
    done();
  };
  return html`<${Confirm} title=${`Erase ${person} permanently?`} word=${person} button="Erase this person" danger onYes=${yes} onNo=${close}>
    <p>All of their conversations and branches, their facts, profile and recorded prompts are destroyed, also on disk. You get a certificate.</p><//>`;
}

function Person({ person, changed }) {
  const found = useLoaded(async (signal) => {
    const [profile, facts, talks] = await Promise.all([get(pathOf(person), {}, signal), get(pathOf(person, '/facts'), { history: true }, signal), all('/conversations', { person })]);
    return { profile, facts: facts.data, talks };
  }, [person]);
  const [dialog, ask] = useState(null);
  const close = () => ask(null);
  const titles = new Map((found.value?.talks || []).map((one) => [one.conversation, titleOf(one)]));
  const again = () => { found.again(); changed(); };
  const revert = async (fact) => { await post(pathOf(person, `/facts/${fact.id}/revert`)); say('Reverted. What it replaced holds again.'); close(); again(); };
  return html`<${Loaded} of=${found} what="the person">${({ profile, facts, talks }) => html`<article class="stack" aria-label=${`Person ${person}`}>
    <div class="row apart"><h2><${Name}>${person}<//></h2>
      ${may('admin') && html`<button type="button" class="quiet" onClick=${() => ask(['erase'])}>Erase …</button>`}</div>
    <p class="meta">${plural(profile.facts.length, 'fact')} ${profile.facts.length === 1 ? 'holds' : 'hold'} now, from ${plural(talks.length, 'conversation')}:
      ${talks.slice(0, 5).map((one) => html` <a key=${one.conversation} href=${link(one.conversation)}><${Name}>${titleOf(one)}<//></a>`)}${talks.length > 5 ? ' …' : ''}</p>
    ${profile.text && html`<details><summary>The profile, as a model sees it in every prompt (version ${profile.version})</summary><pre dir="auto" tabindex="0">${profile.text}</pre></details>`}
    ${facts.length ? html`<div class="cards">${slots(facts, person).map((slot) => html`<${Slot} key=${slot.id} slot=${slot} titles=${titles} edit=${(fact) => ask(['edit', fact])} revert=${(fact) => ask(['revert', fact])} />`)}</div>`
    : html`<${Empty} title="No facts yet">What ${person} says of themselves is listed here, with the words it was said in.<//>`}
    ${dialog?.[0] === 'edit' && html`<${Correct} fact=${dialog[1]} close=${close} done=${again} />`}
    ${dialog?.[0] === 'revert' && html`<${Confirm} title=${`Revert “${dialog[1].value}”?`} button="Revert" onYes=${() => revert(dialog[1])} onNo=${close}>
      <p>It is treated as if it had never been said, and what it replaced holds again. The message stays, and the fact stays in the history.</p><//>`}
    ${dialog?.[0] === 'erase' && html`<${Erase} person=${person} close=${close} done=${changed} />`}
  </article>`}<//>`;
}

export function People({ person }) {
  const people = useLoaded(() => all('/people'), []);
  return html`<div class="page board people"><h1>People</h1>
    <${ReadOnly} />
    <${Loaded} of=${people} what="the people">${(list) => (!list.length
    ? html`<${Empty} title="No person yet" level="h2">Say whom a conversation is with (<code>person</code> of an append or a turn, or the user of a request through the proxy), and what they state is known in all of theirs.<//>`
    : html`<div class="person-columns">
      <nav class="card" aria-label="All people"><ul class="people-list">${list.map((one) => html`<li key=${one.person}><a href=${personLink(one.person)} aria-current=${one.person === (person ?? list[0].person) ? 'page' : null}>
        <span class="title"><${Name}>${one.person}<//></span> <span class="meta">${plural(one.conversations, 'conversation')} · ${ago(one.updated_at)}</span></a></li>`)}</ul></nav>
      <${Person} key=${person ?? list[0].person} person=${person ?? list[0].person} changed=${people.again} /></div>`)}<//>
  </div>`;
}
