// What answers cost: prompts and digests against the full history, and the money between the two.

import { useMemo, useState } from 'preact/hooks';
import { compact, Empty, html, Loaded, money, number, percent, plural, useWidth, when } from './ui.js';

const PRICE = 'firnline.price';
const USUAL = 0.2; // dollars per million tokens, as the server reckons
export const priceOf = () => Number(localStorage.getItem(PRICE)) || USUAL;
const FIXED = 4_000; // tokens of a request that are no messages, as the server reckons
const HEIGHT = 220;
const EDGE = { left: 46, right: 14, top: 14, bottom: 28 };

/** What models read and wrote: prompts, and what digests took. */
const paid = ({ sent, digest_tokens: digests }) => sent + digests;

/** Running totals, beginning with nothing. */
export function totals(points) {
  const found = [{ turns: 0, paid: 0, whole: 0, until: points[0]?.since ?? null }];
  for (const { turns, whole, until, ...one } of points) {
    const last = found.at(-1);
    found.push({ turns: last.turns + turns, paid: last.paid + paid(one), whole: last.whole + whole, until });
  }
  return found;
}

/** A round number at or above `n`, for the end of an axis. */
export function roundUp(n) {
  const step = 10 ** Math.floor(Math.log10(Math.max(n, 1)));
  return [1, 2, 2.5, 5, 10].map((by) => by * step).find((one) => one >= n);
}

/** What a memory made of it, in words: mostly it saves; a short talk may cost more with it than without. */
const balance = (spent, whole, price) => [whole < spent ? 'more than that' : 'saved', money(Math.abs(whole - spent) * price / 1e6)];

/** By how much it is less or more than the full history: "36 % less". */
export const compared = (spent, whole) => `${percent(Math.abs(1 - spent / Math.max(whole, 1)))} ${spent > whole ? 'more' : 'less'}`;

const day = (time) => (time ? new Date(time).toLocaleDateString([], { day: 'numeric', month: 'short' }) : '');
const hour = (time) => (time ? new Date(time).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' }) : '');

function Chart({ points, price }) {
  const [ref, width] = useWidth(640);
  const [at, setAt] = useState(null);
  const found = useMemo(() => totals(points), [points]);
  const last = found.at(-1);
  const top = roundUp(Math.max(last.whole, last.paid, 1));
  const x = (turns) => EDGE.left + (turns / Math.max(last.turns, 1)) * (width - EDGE.left - EDGE.right);
  const y = (tokens) => HEIGHT - EDGE.bottom - (tokens / top) * (HEIGHT - EDGE.top - EDGE.bottom);
  const line = (name) => found.map((one, n) => `${n ? 'L' : 'M'}${x(one.turns).toFixed(1)} ${y(one[name]).toFixed(1)}`).join(' ');
  const back = [...found].reverse().map((one) => `L${x(one.turns).toFixed(1)} ${y(one.paid).toFixed(1)}`).join(' ');
  const short = day(found[0].until) === day(last.until);
  const label = short ? hour : day;
  const shown = at === null ? last : found[at];
  const [word, sum] = balance(shown.paid, shown.whole, price);
  const point = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    const turns = ((event.clientX - box.left - EDGE.left) / Math.max(box.width - EDGE.left - EDGE.right, 1)) * last.turns;
    setAt(found.reduce((best, one, n) => (Math.abs(one.turns - turns) < Math.abs(found[best].turns - turns) ? n : best), 0));
  };
  const about = `After ${plural(last.turns, 'turn')}: ${number(last.paid)} tokens were spent; the full history in every prompt would have been ${number(last.whole)}`;
  return html`<figure class="chart" ref=${ref}>
    <svg width=${width} height=${HEIGHT} viewBox=${`0 0 ${width} ${HEIGHT}`} role="img" aria-label=${about} onPointerMove=${point} onPointerLeave=${() => setAt(null)}>
      ${[0, 0.5, 1].map((share) => html`<g key=${share}><line class="grid" x1=${EDGE.left} x2=${width - EDGE.right} y1=${y(top * share)} y2=${y(top * share)} />
        <text class="end" x=${EDGE.left - 6} y=${y(top * share) + 4}>${compact(top * share)}</text></g>`)}
      ${last.whole >= last.paid && html`<path class="saved" d=${`${line('whole')} ${back} Z`} />`}
      <path class="whole" d=${line('whole')} /><path class="sent" d=${line('paid')} />
      <text x=${EDGE.left} y=${HEIGHT - 8}>${label(found[0].until)}</text>
      <text class="end" x=${width - EDGE.right} y=${HEIGHT - 8}>${short ? `${day(last.until)}, ${hour(last.until)}` : day(last.until)}</text>
      ${at !== null && html`<line class="guide" x1=${x(shown.turns)} x2=${x(shown.turns)} y1=${EDGE.top} y2=${HEIGHT - EDGE.bottom} />
        <circle class="whole" cx=${x(shown.turns)} cy=${y(shown.whole)} r="4" /><circle class="sent" cx=${x(shown.turns)} cy=${y(shown.paid)} r="4" />`}
    </svg>
    <figcaption class="legend">
      <span><i class="key whole" /> full history in every prompt <b>${number(shown.whole)}</b></span>
      <span><i class="key sent" /> prompts and digests <b>${number(shown.paid)}</b></span>
      <span>${at === null ? 'in total' : `until ${when(shown.until)}`}: ${word} <b>${sum}</b></span>
    </figcaption>
  </figure>`;
}

/** The same for one more answer in each conversation, in three ways. */
function Ways({ stats, price }) {
  const ways = [['lean', 'lean: the newest messages', stats.lean.tokens], ['with_tools', 'lean, with recall tools', stats.with_tools.tokens], ['whole', 'the full history', stats.whole.tokens]];
  const most = Math.max(...ways.map(([, , tokens]) => tokens), 1);
  return html`<div class="ways"><h3>One more answer in each conversation</h3>
    <ul>${ways.map(([id, title, tokens]) => html`<li key=${id}><span>${title}</span>
      <span class="way" aria-hidden="true"><i class=${id} style=${{ width: `${(tokens / most) * 100}%` }} /></span>
      <b>${compact(tokens)}</b><span class="meta">${money(tokens * price / 1e6)}</span></li>`)}</ul>
    <p class="meta">An estimate: each request is assumed to have ${number(FIXED)} tokens of instructions in addition to messages.</p></div>`;
}

function Table({ points }) {
  return html`<details><summary>As a table</summary><div class="scroll" tabindex="0" role="group" aria-label="Tokens over time"><table>
    <thead><tr><th>until</th><th class="n">turns</th><th class="n">prompts</th><th class="n">digests</th><th class="n">full history</th><th class="n">compared</th></tr></thead>
    <tbody>${points.map((one, n) => html`<tr key=${n}><td class="nowrap">${when(one.until)}</td><td class="n">${number(one.turns)}</td><td class="n">${number(one.sent)}</td>
      <td class="n">${number(one.digest_tokens)}</td><td class="n">${number(one.whole)}</td><td class="n nowrap">${one.whole ? compared(paid(one), one.whole) : ''}</td></tr>`)}</tbody></table></div></details>`;
}

/** What it costs if a provider's cache holds all that is repeated. */
const cached = (tokens, repeated, price) => money((tokens - 0.9 * repeated) * price / 1e6);

function Total({ told, price }) {
  const spent = paid(told);
  const [word, sum] = balance(spent, told.whole, price);
  return html`<div class="tally three">
      <div><b>${compact(spent)}</b><span>tokens spent in ${plural(told.turns, 'turn')}, ${money(spent * price / 1e6)}</span></div>
      <div><b>${compact(told.whole)}</b><span>with the full history in each, ${money(told.whole * price / 1e6)}</span></div>
      <div class=${told.whole < spent ? '' : 'good'}><b>${sum}</b><span>${word}: ${compared(spent, told.whole)}</span></div>
    </div>
    <p class="meta">Spent: ${number(told.sent)} tokens in prompts, ${number(told.digest_tokens)} that models read and wrote for digests.
      ${told.sent > 0 && html` ${percent(told.repeated / told.sent)} of the prompts repeats the start of the prompt before it. A provider that charges a tenth for what its cache holds would charge, at best, ${cached(spent, told.repeated, price)}; with the full history, ${cached(told.whole, told.whole_repeated, price)}.`}</p>`;
}

export function Costs({ costs, stats }) {
  const [typed, set] = useState(localStorage.getItem(PRICE) || null); // '' while it is being edited: then the server's price applies
  const price = typed && Number(typed) >= 0 ? Number(typed) : costs.value?.price ?? 0;
  const change = (value) => { set(value); localStorage.setItem(PRICE, value); };
  return html`<section class="card" aria-label="Cost">
    <div class="row apart"><h2>Cost</h2>
      <label class="price">$ per million tokens <input type="number" min="0" max="1000000" step="any" inputmode="decimal" value=${typed ?? String(costs.value?.price ?? '')} placeholder=${costs.value?.price} onInput=${(e) => change(e.target.value)} /></label></div>
    <${Loaded} of=${costs} what="what was sent">${(told) => (told.turns ? html`<div class="stack">
      <${Total} told=${told} price=${price} />
      <${Chart} points=${told.data} price=${price} />
      ${!told.complete && html`<p class="meta">Older turns are not included: there are too many.</p>`}
      <${Table} points=${told.data} />
    </div>` : html`<${Empty} title="No turn yet">When an answer has gone through this server, you see here what was spent, and what the full history would have cost.<//>`)}<//>
    ${stats.value?.conversations > 0 && html`<${Ways} stats=${stats.value} price=${price} />`}
  </section>`;
}
