// Past turns: exactly what the model was given, section by section, and what changed from turn to turn.

import { useMemo, useState } from 'preact/hooks';
import { at, get } from './api.js';
import { ago, Act, BudgetBar, Empty, html, Loaded, money, Name, number, percent, plural, useLoaded, when } from './ui.js';
import { priceOf } from './costs.js';
import { personLink } from './people.js';
import { Facts, Parts, reasonOf, Ref, Share, textOf, titleOf, useChosen } from './pieces.js';

const PAGE = 30;
const SHOWN = 30; // messages of a section that are listed at once
const HITS = 6;
const same = (piece) => JSON.stringify(piece.message);
const sum = (pieces) => pieces.reduce((tokens, piece) => tokens + piece.tokens, 0);

/** What a prompt has in common with the one before it: the beginning, what is new, what left. */
export function compare(prompt, before) {
  const then = before.map(same);
  const now = prompt.map(same);
  let prefix = 0;
  while (prefix < now.length && now[prefix] === then[prefix]) prefix += 1;
  const less = (one, other) => {
    const known = new Map();
    for (const key of other) known.set(key, (known.get(key) || 0) + 1);
    return one.map((key) => { const left = known.get(key) || 0; known.set(key, left - 1); return left <= 0; });
  };
  const fresh = less(now, then);
  const gone = less(then, now);
  return { prefix, fresh, arrived: prompt.filter((_, n) => fresh[n]), left: before.filter((_, n) => gone[n]) };
}

/** Neighbors of one section, in the order in which they were sent. */
function runs(prompt) {
  const found = [];
  prompt.forEach((piece, index) => {
    if (found.at(-1)?.name !== piece.section) found.push({ name: piece.section, pieces: [] });
    found.at(-1).pieces.push({ ...piece, index });
  });
  return found;
}

function Piece({ piece, kind, show }) {
  const text = textOf(piece.message);
  const [mark, told] = { reused: ['=', 'same as in the turn before'], fresh: ['+', 'new'], gone: ['−', 'no longer there'] }[kind] || ['', ''];
  return html`<details class=${`piece ${kind}`}>
    <summary>${mark && html`<span class="mark" role="img" aria-label=${told} title=${told}>${mark}</span>`}<b><${Name}>${piece.message.name || piece.message.role}<//></b> <span class="preview" dir="auto">${text.slice(0, 160) || '(no text)'}</span>
      <span class="meta" title=${`${number(piece.tokens)} tokens`}>${number(piece.tokens)}</span></summary>
    <pre dir="auto" tabindex="0">${text}</pre>
    <p class="meta">${piece.of === null ? (piece.section === 'system' ? 'From the application; not in the log.' : 'Written by Firnline; not in the log.') : html`${piece.seq === null ? 'Part of ' : 'Word for word '}<${Ref} seq=${piece.of} show=${show} />`}${told ? ` · ${told}` : ''}</p>
  </details>`;
}

/** The facts that were in a prompt, one a line; they can be put right where they are kept. */
function FactsOf({ pieces, person }) {
  const lines = pieces.flatMap((piece) => textOf(piece.message).split('\n')).filter((line) => line.startsWith('- ')).map((line) => line.slice(2));
  if (!lines.length) return null;
  return html`<ul class="bullets" aria-label="Facts in this prompt">${lines.map((line) => html`<li key=${line} dir="auto">${line}</li>`)}</ul>
    ${person && html`<p class="meta"><a href=${personLink(person)}>All that <${Name}>${person}<//> has stated, and what it replaced</a></p>`}`;
}

function Section({ run, part, section, prefix, fresh, show, person }) {
  const [shown, set] = useState(SHOWN);
  const whole = run.pieces;
  const kind = (piece) => (piece.index < prefix ? 'reused' : fresh?.[piece.index] ? 'fresh' : '');
  return html`<section class="part-of" aria-label=${`Section ${titleOf(run.name)}${part > 1 ? `, part ${part}` : ''}`}>
    <h4><i class=${`dot of-${run.name}`} /> ${titleOf(run.name)} <span class="meta">${plural(whole.length, 'message')}, ${number(sum(whole))} tokens</span></h4>
    ${section && html`<p class="meta">${reasonOf(section)}</p>`}
    ${run.name === 'profile' && html`<${FactsOf} pieces=${whole} person=${person} />`}
    ${whole.slice(0, shown).map((piece) => html`<${Piece} key=${piece.index} piece=${piece} kind=${kind(piece)} show=${show} />`)}
    ${shown < whole.length && html`<button class="quiet small" onClick=${() => set(shown + 10 * SHOWN)}>${plural(whole.length - shown, 'more message')}</button>`}
  </section>`;
}

function Hit({ hit, most, name, show }) {
  return html`<li class="hit-parts">
    <p>${hit.conversation === name ? html`<${Ref} seq=${hit.seq} show=${show} />` : html`<b><${Name}>${hit.conversation}<//> #${hit.seq}</b>`} <span class="meta">score</span> <b>${hit.score.toFixed(2)}</b></p>
    <${Parts} of=${hit.parts} most=${most} label=${`Why: score ${hit.score.toFixed(2)}`} />
  </li>`;
}

function Hits({ hits, most, name, show }) {
  const [whole, set] = useState(hits.length <= HITS);
  return html`<ul class="hits">${hits.slice(0, whole ? hits.length : HITS).map((hit) => html`<${Hit} key=${`${hit.conversation}/${hit.seq}`} hit=${hit} most=${most} name=${name} show=${show} />`)}</ul>
    ${!whole && html`<button class="quiet small" onClick=${() => set(true)}>${plural(hits.length - HITS, 'more message')}</button>`}`;
}

function Change({ turn, change, before, show }) {
  if (!before) return html`<p class="meta">This is the first recorded turn, so there is nothing to compare it with.</p>`;
  const reused = sum(turn.prompt.slice(0, change.prefix));
  const whole = Math.max(sum(turn.prompt), 1);
  const list = (pieces, kind) => pieces.slice(0, SHOWN).map((piece, n) => html`<${Piece} key=${n} piece=${piece} kind=${kind} show=${show} />`);
  const count = (pieces) => `${plural(pieces.length, 'message')}, ${number(sum(pieces))} tokens`;
  return html`<div class="stack tight">
    <p class="reuse"><${Share} of=${reused / whole} kind="good" label=${`${percent(reused / whole)} reused`} />
      <span><b>${percent(reused / whole)}</b> of it, ${number(reused)} tokens, is the beginning of the prompt of <${Ref} seq=${before.answer} show=${show} />, unchanged${turn.stability === null ? '' : ` (${percent(turn.stability)} of that one)`}.
      A provider's prompt cache charges about a tenth for it: a thousand prompts like this one cost ${money((whole - 0.9 * reused) * priceOf() / 1000)} instead of ${money(whole * priceOf() / 1000)}.</span></p>
    <details class="change"><summary>New since then: ${count(change.arrived)}</summary>${list(change.arrived, 'fresh')}</details>
    <details class="change"><summary>No longer there: ${count(change.left)}</summary>${list(change.left, 'gone')}</details>
  </div>`;
}

function Turn({ name, person, turn, before, show }) {
  const change = useMemo(() => (before ? compare(turn.prompt, before.prompt) : { prefix: 0, fresh: null, arrived: [], left: [] }), [turn, before]);
  const sections = Object.fromEntries(turn.sections.map((section) => [section.name, section]));
  const most = Math.max(...turn.hits.flatMap((hit) => Object.values(hit.parts).map(Math.abs)), 0.01);
  const seen = new Map();
  return html`<article class="stack" aria-label=${`The prompt of answer ${turn.answer}`}>
    <header class="row apart"><h3>The prompt of <${Ref} seq=${turn.answer} show=${show} /></h3>
      <span class="badge good" title=${`sha256 ${turn.sha256}`}>${turn.proved ? 'proved: the hash matches' : ''}</span></header>
    <${BudgetBar} accounting=${turn.accounting} />
    <${Facts} of=${[
    ['Asked', turn.question === null ? null : html`<${Ref} seq=${turn.question} show=${show} /> <bdi>${turn.asked}</bdi>`],
    ['Model', html`<bdi>${turn.model || 'unknown'}</bdi>, by ${turn.via}${turn.calls > 1 ? `, ${turn.calls} calls (this is the last)` : ''}`],
    ['Tokens', `${number(turn.tokens)}${turn.whole > turn.tokens ? ` instead of ${number(turn.whole)} with the full history` : ''}, in ${plural(turn.messages, 'message')}${turn.prompt_tokens ? `; the model counted ${number(turn.prompt_tokens)}, and wrote ${number(turn.completion_tokens)}` : ''}`],
    ['Strategy', `${turn.strategy}${turn.reason ? `: ${turn.reason}` : ''}`],
    ['When', html`<time datetime=${turn.recorded_at} title=${when(turn.recorded_at)}>${ago(turn.recorded_at)}</time>`],
    ['SHA-256', html`<code class="hash">${turn.sha256}</code>`]]} />
    ${turn.degraded.length > 0 && html`<p class="trouble">Less than the strategy wanted: ${turn.degraded.join('; ')}</p>`}
    <h3>Compared with the turn before</h3>
    <${Change} turn=${turn} change=${change} before=${before} show=${show} />
    <h3>The messages, as they were sent</h3>
    ${before && html`<p class="key meta"><span class="swatch reused">=</span> same as in the turn before <span class="swatch fresh">+</span> new <span class="swatch"> </span> moved</p>`}
    ${runs(turn.prompt).map((run, n) => {
    const part = (seen.get(run.name) || 0) + 1;
    seen.set(run.name, part);
    return html`<${Section} key=${n} run=${run} part=${part} section=${part === 1 ? sections[run.name] : null} prefix=${change.prefix} fresh=${change.fresh} show=${show} person=${person} />`;
  })}
    ${turn.hits.length > 0 && html`<h3>Recalled for the question</h3>
      <p class="meta">The parts of each score. A higher score is a better match.</p>
      <${Hits} hits=${turn.hits} most=${most} name=${name} show=${show} />`}
    ${turn.left_out.length > 0 && html`<h3>Left out</h3>
      <ul class="plain">${turn.left_out.map((one, n) => html`<li key=${n}>${one.what} <span class="meta">(${one.why})</span></li>`)}</ul>`}
  </article>`;
}

/** The turn and the one before it. */
async function load(name, seq, signal) {
  const turn = await get(at(name, `/turns/${seq}`), {}, signal);
  const before = turn.before === null ? null : await get(at(name, `/turns/${turn.before}`), {}, signal);
  return { turn, before };
}

function Chosen({ name, person, seq, show }) {
  const found = useLoaded((signal) => load(name, seq, signal), [name, seq]);
  const stale = found.busy && found.value ? 'stale' : '';
  return html`<div class=${stale}><${Loaded} of=${found} what="the prompt">${({ turn, before }) => html`<${Turn} key=${turn.answer} name=${name} person=${person} turn=${turn} before=${before} show=${show} />`}<//></div>`;
}

function Listed({ list, more, chosen, choose, again }) {
  return html`<nav class="picker" aria-label="Turns"><ol>
    ${list.map((turn) => html`<li key=${turn.answer}><button type="button" aria-current=${turn.answer === chosen ? 'true' : null} onClick=${() => choose(turn.answer)}>
      <span class="title" dir="auto">${turn.asked || '(no question)'}</span>
      <span class="meta">#${turn.answer} · ${number(turn.tokens)}${turn.whole > turn.tokens ? ` of ${number(turn.whole)}` : ''} tokens · ${plural(turn.messages, 'message')}${turn.stability === null ? '' : ` · ${percent(turn.stability)} repeated`} · ${ago(turn.recorded_at)}${turn.degraded.length ? ' · degraded' : ''}</span></button></li>`)}
  </ol>${more && html`<${Act} class="quiet small" run=${again}>Older turns<//>`}</nav>`;
}

export function Turns({ name, head, show }) {
  const [chosen, choose] = useChosen(name, 'turns', 'turn');
  const [older, setOlder] = useState([]);
  const first = useLoaded(async (signal) => {
    const page = await get(at(name, '/turns'), { limit: PAGE }, signal);
    setOlder([]);
    return page;
  }, [name, head.hash]);
  return html`<div class="stack">
    <p class="meta">The exact prompt of every answer that went through this server. It was recorded at the time, and its hash proves that it has not changed.</p>
    <${Loaded} of=${first} what="the turns">${(page) => {
    const pages = [page, ...older];
    const list = pages.flatMap((one) => one.data);
    const cursor = pages.at(-1).next_cursor;
    if (!list.length) {
      return html`<${Empty} title="No turn yet">When the chat on the left, an OpenAI client behind <code>/v1</code> or a Telegram bot calls a model here, the prompt is recorded: every message, its cost, and why it was included.<//>`;
    }
    const again = async () => { const next = await get(at(name, '/turns'), { limit: PAGE, cursor }); setOlder([...older, next]); };
    const seq = chosen ?? list[0].answer;
    return html`<${Listed} list=${list} more=${Boolean(cursor)} chosen=${seq} choose=${choose} again=${again} /><${Chosen} name=${name} person=${head.person} seq=${seq} show=${show} />`;
  }}<//>
  </div>`;
}
