// Topics: what the conversation is about, how much each part matters, and how it fades.

import { useEffect, useState } from 'preact/hooks';
import { at, get, may, patch, post } from './api.js';
import { Act, Confirm, Empty, html, Loaded, Name, number, plural, say, useLoaded } from './ui.js';
import { Ref, Share, textOf, useChosen } from './pieces.js';

const DAYS = 30;
const FLOOR = 0.05; // below it a topic may leave the working set
const JOINS = 0.7; // a message joins a topic that is more similar than this
const PAGE = 30;
const LINES = 8; // curves drawn at once

/** The priority of an unused topic, `days` from now. */
export const priorityIn = (topic, days) => topic.priority * 0.5 ** (days / topic.half_life_days);
/** Days until it has fallen to `FLOOR`. */
export const survives = (topic) => (topic.priority <= FLOOR ? 0 : topic.half_life_days * Math.log2(topic.priority / FLOOR));

const days = (n) => (n >= 10 ? `${number(Math.round(n))} days` : n === 1 ? '1 day' : `${Number(n.toFixed(1))} days`);
const since = (seconds) => (seconds < 3600 ? plural(Math.max(1, Math.round(seconds / 60)), 'minute') : seconds < 86_400 ? plural(Math.round(seconds / 3600), 'hour') : plural(Math.round(seconds / 86_400), 'day'));

// -- how they fade ----------------------------------------------------------------------------

const BOX = { width: 520, height: 236, left: 46, right: 16, top: 12, bottom: 42 };

function Curve({ topic, chosen, x, y, choose }) {
  const points = Array.from({ length: 2 * DAYS + 1 }, (_, n) => n / 2);
  const path = points.map((day, n) => `${n ? 'L' : 'M'}${x(day).toFixed(1)} ${y(priorityIn(topic, day)).toFixed(1)}`).join('');
  const told = `${topic.title}: ${topic.priority.toFixed(2)} now, half of it after ${days(topic.half_life_days)}`;
  return html`<g class=${`curve ${chosen ? 'chosen' : ''}`} onClick=${() => choose(topic.topic_id)}><title>${told}</title><path d=${path} class="touch" /><path d=${path} /></g>`;
}

function Marks({ topic, x, y }) {
  const half = topic.half_life_days;
  const end = survives(topic);
  const label = (day, text, cls) => {
    const right = day > DAYS * 0.55;
    const value = priorityIn(topic, day);
    return html`<g class="mark-at"><circle cx=${x(day)} cy=${y(value)} r="4" /><text class=${cls} x=${x(day) + (right ? -8 : 8)} y=${y(value) - 8} text-anchor=${right ? 'end' : 'start'}>${text}</text></g>`;
  };
  return html`${half <= DAYS && label(half, `half after ${days(half)}`, '')}${end > 0 && end <= DAYS && Math.abs(end - half) > 3 && label(end, `${FLOOR} after ${days(end)}`, '')}`;
}

function Decay({ topics, chosen, choose }) {
  const { width, height, left, right, top, bottom } = BOX;
  const most = Math.max(1, ...topics.map((topic) => topic.priority));
  const x = (day) => left + (day / DAYS) * (width - left - right);
  const y = (value) => top + (1 - value / most) * (height - top - bottom);
  const one = topics.find((topic) => topic.topic_id === chosen) || topics[0];
  const drawn = [...topics.filter((topic) => topic !== one).slice(0, LINES - 1), one];
  const steps = most > 1.2 ? [0, most / 2, most] : [0, 0.25, 0.5, 0.75, 1];
  const label = `Priority of ${plural(drawn.length, 'topic')} over the next ${DAYS} days. ${one.title}: ${one.priority.toFixed(2)} now, half of it after ${days(one.half_life_days)}, ${priorityIn(one, DAYS).toFixed(2)} after ${DAYS} days.`;
  return html`<figure class="decay">
    <svg viewBox=${`0 0 ${width} ${height}`} role="img" aria-label=${label}>
      ${steps.map((value) => html`<g key=${value}><line class="grid" x1=${left} x2=${width - right} y1=${y(value)} y2=${y(value)} /><text class="axis-y" x=${left - 6} y=${y(value) + 4}>${value.toFixed(2).replace(/0$/, '')}</text></g>`)}
      ${[0, 5, 10, 15, 20, 25, 30].map((day) => html`<text key=${day} class="axis-x" x=${x(day)} y=${height - bottom + 16}>${day === 0 ? 'now' : day}</text>`)}
      <text class="axis-x" x=${x(DAYS / 2)} y=${height - 8}>days without use</text>
      <line class="floor" x1=${left} x2=${width - right} y1=${y(FLOOR)} y2=${y(FLOOR)} />
      ${drawn.map((topic) => html`<${Curve} key=${topic.topic_id} topic=${topic} chosen=${topic === one} x=${x} y=${y} choose=${choose} />`)}
      <${Marks} topic=${one} x=${x} y=${y} />
    </svg>
    <figcaption class="meta">How <b><bdi>${one.title}</bdi></b> and the others fade if they are not mentioned. The dashed line is ${FLOOR}: below it a topic may leave the working set. Nothing is deleted.</figcaption>
  </figure>`;
}

// -- one topic --------------------------------------------------------------------------------

function Tags({ topic, change }) {
  const [typed, set] = useState('');
  const add = async (event) => {
    event.preventDefault();
    const tag = typed.trim();
    if (!tag) return;
    try { await change({ add: [tag] }, `Tagged ${tag}.`); set(''); } catch (error) { say(error.message, true); }
  };
  return html`<div class="tags">
    ${topic.tags.map((tag) => html`<span key=${tag} class="tag"><bdi>${tag}</bdi><${Act} class="quiet" needs="write" aria-label=${`Remove the tag ${tag}`} run=${() => change({ remove: [tag] }, `${tag} is removed.`)}>×<//></span>`)}
    ${may('write') && html`<form onSubmit=${add}><input value=${typed} placeholder="Add a tag" aria-label=${`Add a tag to ${topic.title}`} maxlength="100" onInput=${(e) => set(e.target.value)} /></form>`}
  </div>`;
}

function Messages({ name, topic, show }) {
  const [open, set] = useState(false);
  const [pages, setPages] = useState([]);
  const [error, setError] = useState(null);
  const more = async () => {
    const page = await get(at(name, `/topics/${topic.topic_id}/messages`), { limit: PAGE, cursor: pages.at(-1)?.next_cursor });
    setPages((known) => [...known, page]);
  };
  useEffect(() => { if (open && !pages.length) more().catch(setError); }, [open]);
  return html`<details onToggle=${(e) => set(e.currentTarget.open)}><summary>Its ${plural(topic.total_messages, 'message')}</summary>
    ${error && html`<p class="trouble" role="alert">${error.message}</p>`}
    ${open && !error && !pages.length && html`<p class="empty" role="status">Loading the messages …</p>`}
    <ol class="covered">${pages.flatMap((page) => page.data).map((entry) => html`<li key=${entry.seq}><${Ref} seq=${entry.seq} show=${show} /> <b><${Name}>${entry.message.name || entry.message.role}<//></b> <span dir="auto">${textOf(entry.message).slice(0, 300)}</span></li>`)}</ol>
    ${pages.at(-1)?.next_cursor && html`<${Act} class="quiet small" run=${more}>More messages<//>`}
  </details>`;
}

function Merge({ topic, others, merge }) {
  const [into, set] = useState('');
  const [sure, setSure] = useState(false);
  const target = others.find((other) => String(other.topic_id) === into);
  if (!others.length || !may('write')) return null;
  return html`<div class="row merge"><label>Merge into <select value=${into} onChange=${(e) => set(e.target.value)}><option value="">another topic …</option>
      ${others.map((other) => html`<option key=${other.topic_id} value=${other.topic_id}>${other.topic_id}: ${other.title.slice(0, 60)}</option>`)}</select></label>
    <button type="button" disabled=${!target} onClick=${() => setSure(true)}>Merge …</button>
    ${sure && html`<${Confirm} title="Merge the topics?" button="Merge them" onNo=${() => setSure(false)} onYes=${async () => { await merge(target, topic); setSure(false); }}>
      <p>The ${plural(topic.total_messages, 'message')} of “${topic.title}” go to “${target.title}”. No message changes, but the topics cannot be separated again.</p><//>`}
  </div>`;
}

function Topic({ name, topic, active, chosen, choose, others, does, show }) {
  const kind = { 'long-term': 'good', transitioning: 'warm' }[topic.memory_type] || '';
  return html`<li class=${`topic ${chosen ? 'chosen' : ''}`}>
    <div class="level"><h4><button type="button" class="plainly" aria-pressed=${chosen} title="Show its curve" onClick=${() => choose(topic.topic_id)}><bdi>${topic.title}</bdi></button></h4>
      <span class="badges">${active && html`<span class="badge good">active</span>`}${topic.dormant && html`<span class="badge">archived</span>`}<span class=${`badge ${kind}`}>${topic.memory_type}</span></span></div>
    <div class="priority"><${Share} of=${topic.priority} label=${`priority ${topic.priority.toFixed(2)}`} /><b>${topic.priority.toFixed(2)}</b></div>
    <p class="meta">${plural(topic.active_messages, 'message')} active${topic.archived_messages ? `, ${number(topic.archived_messages)} digested` : ''}${topic.has_summary ? ', with a summary' : ''} · half-life ${days(topic.half_life_days)} · importance ${topic.importance.toFixed(2)} ·
      used ${plural(topic.access_count, 'time')} · quiet for ${since(topic.inactive_seconds)}</p>
    <${Tags} topic=${topic} change=${(body, told) => does.tag(topic, body, told)} />
    <div class="row"><${Act} class="small" needs="write" aria-label=${`Useful: ${topic.title}`} run=${() => does.vote(topic, 1)}>Useful<//>
      <${Act} class="small" needs="write" aria-label=${`Not useful: ${topic.title}`} run=${() => does.vote(topic, -1)}>Not useful<//>
      <${Ref} seq=${topic.topic_id} show=${show} /></div>
    ${chosen && html`<${Merge} topic=${topic} others=${others} merge=${does.merge} /><${Messages} name=${name} topic=${topic} show=${show} />`}
  </li>`;
}

// -- which topic a text belongs to ------------------------------------------------------------

function Match({ name, topics }) {
  const [text, set] = useState('');
  const [match, setMatch] = useState(null);
  const look = async () => setMatch(await post(at(name, '/topics/match'), { text: text.trim() }));
  const topic = match && topics.find((one) => one.topic_id === match.topic);
  return html`<form class="match" onSubmit=${(e) => { e.preventDefault(); if (text.trim()) look().catch((error) => say(error.message, true)); }}>
    <label>Which topic does this text match? <span class="row"><input value=${text} placeholder="What about the parcel to Japan?" onInput=${(e) => { set(e.target.value); setMatch(null); }} />
      <button class="strong" disabled=${!text.trim()}>Match</button></span></label>
    <div role="status">${match && (match.topic === null ? html`<p class="meta">There is nothing to compare: the text has no subject, or there is no topic yet.</p>`
    : html`<p><b><bdi>${topic?.title || `topic ${match.topic}`}</bdi></b> <span class="meta">similarity ${match.similarity.toFixed(2)} (cosine ${match.raw.toFixed(2)}):
      ${match.similarity > JOINS ? ' it would join this topic.' : ` below ${JOINS}, so it would open a new topic.`}</span></p>`)}</div>
  </form>`;
}

// -- all of it --------------------------------------------------------------------------------

export function Topics({ name, head, show, changed }) {
  const found = useLoaded((signal) => get(at(name, '/topics'), {}, signal), [name, head.hash]);
  const [picked, choose] = useChosen(name, 'topics', 'topic');
  const did = async (work, told) => { await work; say(told); found.again(); changed(); };
  const does = {
    tag: (topic, body, told) => did(patch(at(name, `/topics/${topic.topic_id}/tags`), body), told),
    vote: (topic, vote) => did(post(at(name, '/feedback'), { seq: topic.topic_id, vote }), vote > 0 ? 'Its importance grows.' : 'Its importance shrinks.'),
    merge: (into, topic) => did(post(at(name, `/topics/${into.topic_id}/merge`), { topic: topic.topic_id }), `Merged into “${into.title}”.`).then(() => choose(into.topic_id)),
  };
  return html`<${Loaded} of=${found} what="the topics">${({ data: topics }) => {
    if (!topics.length) return html`<${Empty} title="No topics yet">A message joins the most similar topic, or opens a new one. Topics that are used often fade slowly. Faded topics leave the working set and come back when they are mentioned.<//>`;
    const chosen = (topics.find((topic) => topic.topic_id === picked) || topics[0]).topic_id;
    const draw = (topic) => html`<${Topic} key=${topic.topic_id} name=${name} topic=${topic} active=${topic === topics[0]} chosen=${topic.topic_id === chosen} choose=${choose}
      others=${topics.filter((other) => other !== topic)} does=${does} show=${show} />`;
    const [awake, asleep] = [topics.filter((topic) => !topic.dormant), topics.filter((topic) => topic.dormant)];
    return html`<div class="stack">
      <${Decay} topics=${awake.length ? awake : topics} chosen=${chosen} choose=${choose} />
      <${Match} name=${name} topics=${topics} />
      <section aria-label="Topics"><h3>Topics <span class="meta">${awake.length}</span></h3><ul class="items">${awake.map(draw)}</ul></section>
      ${asleep.length > 0 && html`<section aria-label="Archived topics"><h3>Archived <span class="meta">${asleep.length}</span></h3>
        <p class="meta">They left the working set; a matching message brings one back, with its history.</p><ul class="items">${asleep.map(draw)}</ul></section>`}
    </div>`;
  }}<//>`;
}
