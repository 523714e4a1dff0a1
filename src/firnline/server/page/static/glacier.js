// The glacier: the conversation as a cross-section. Snow on top is in the prompt word for word, ice
// below are digests, deeper the older; what was recalled for the question shines through.

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { at, get, post } from './api.js';
import { Act, BudgetBar, Empty, html, Loaded, number, percent, plural, useLoaded, useWidth } from './ui.js';
import { link } from './app.js';
import { stateOf } from './conversation.js';
import { reasonOf, titleOf } from './pieces.js';

const EDGE = 12;
const SNOW = { y: 74, height: 46 };
const BAND = 34;
const GAP = 5;

/** Neighbors as spans: [0,1,2,7] → [[0,2],[7,7]]. */
export function spans(seqs) {
  const found = [];
  for (const seq of [...seqs].sort((a, b) => a - b)) {
    const last = found.at(-1);
    if (last && seq <= last[1] + 1) last[1] = Math.max(seq, last[1]); else found.push([seq, seq]);
  }
  return found;
}

const range = ([first, last]) => (first === last ? `message ${number(first)}` : `messages ${number(first)}–${number(last)}`);

/** What is neither in the prompt nor under a digest: `[[first, last], …]`. */
export function bare(count, covered) {
  const found = [];
  let next = 0;
  for (const [first, last] of [...covered].sort((a, b) => a[0] - b[0])) {
    if (first > next) found.push([next, first - 1]);
    next = Math.max(next, last + 1);
  }
  if (next < count) found.push([next, count - 1]);
  return found;
}

/** Mountains along the horizon, for any width. */
function ridge(width, low, high, step) {
  const points = [];
  for (let n = 0; n * step <= width + step; n += 1) points.push(`L${n * step} ${n % 2 ? SNOW.y - high - ((n * 37) % 13) : SNOW.y - low - ((n * 23) % 7)}`);
  return `M0 ${SNOW.y} ${points.join(' ')} V${SNOW.y} Z`;
}

function Picture({ head, context, digests, show, tell }) {
  const [ref, width] = useWidth(560);
  const count = Math.max(head.entries, 1);
  const x = (seq) => EDGE + (seq / count) * (width - 2 * EDGE);
  const wide = (first, last) => Math.max(x(last + 1) - x(first), 2.5);
  const sections = Object.fromEntries(context.sections.map((s) => [s.name, s]));
  const verbatim = spans(sections.recent?.seqs || []);
  const pins = spans(sections.pinned?.seqs || []);
  const tokensOf = (section) => `${number(section?.tokens || 0)} tokens`;
  const recalled = [...new Set([...(sections.recalled?.seqs || []), ...context.hits.map((hit) => hit.entry.seq)])];
  const force = digests.filter((d) => d.last_seq >= d.first_seq);
  const layers = [...new Set(force.map((d) => d.layer))].sort((a, b) => a - b);
  const before = (d) => d.receipt?.covers?.tokens;
  const missing = bare(head.entries, [...verbatim, ...pins, ...spans(recalled), ...force.map((d) => [d.first_seq, d.last_seq])]);
  const depth = (digest) => SNOW.y + SNOW.height + GAP + layers.indexOf(digest.layer) * (BAND + GAP);
  const height = SNOW.y + SNOW.height + GAP + Math.max(layers.length, 1) * (BAND + GAP) + 22;
  const act = (does) => ({ onClick: does, onKeyDown: (e) => { if (e.key === 'Enter' || e.key === ' ') { e.preventDefault(); does(); } }, tabindex: 0, role: 'button' });
  const hover = (text) => ({ onMouseEnter: () => tell(text), onFocus: () => tell(text) });
  const told = {
    snow: (span) => `${range(span)}: in the prompt now, word for word, ${verbatim.length > 1 ? 'with others ' : ''}${tokensOf(sections.recent)}`,
    pin: (span) => `${range(span)}: pinned, in every prompt, ${pins.length > 1 ? 'with others ' : ''}${tokensOf(sections.pinned)}`,
    bare: (span) => `${range(span)}: not in the prompt, and in no digest yet; recall finds them. About ${number(Math.round((head.tokens / count) * (span[1] - span[0] + 1)))} tokens`,
    under: (d) => `${range([d.first_seq, d.last_seq])}: not in the prompt; covered by digest ${d.version}, ${number(d.tokens)} tokens${before(d) ? ` for ${number(before(d))}` : ''}`,
    hit: (seq) => {
      const hit = context.hits.find((one) => one.entry.seq === seq);
      return `message ${number(seq)}: recalled for this question${hit ? `, ${hit.explanation}; ${plural(hit.entry.tokens, 'token')}` : ''}`;
    },
    ice: (d) => `${range([d.first_seq, d.last_seq])} are covered by digest ${d.version}${d.layer ? `, a digest of digests (layer ${d.layer})` : ''}: ${number(d.tokens)} tokens${before(d) ? ` for ${number(before(d))}` : ''}, created by ${d.made_by}`,
  };
  const lowest = force.filter((d) => !force.some((other) => other !== d && other.first_seq >= d.first_seq && other.last_seq <= d.last_seq && other.layer < d.layer));
  const title = (d) => { const room = wide(d.first_seq, d.last_seq); return room > 175 ? `digest ${d.version} · ${number(d.tokens)} tokens` : room > 84 ? `digest ${d.version}` : room > 24 ? d.version : ''; };
  return html`<div class="glacier-box" ref=${ref}><svg class="glacier" width=${width} height=${height} viewBox=${`0 0 ${width} ${height}`} role="group" aria-label="The conversation as layers, oldest on the left">
    <defs>
      <linearGradient id="sky" x1="0" y1="0" x2="0" y2="1"><stop offset="0" class="sky-high" /><stop offset="1" class="sky-low" /></linearGradient>
      <pattern id="bare" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="bare-ground" width="7" height="7" /><rect class="bare-line" width="2" height="7" /></pattern>
    </defs>
    <rect width=${width} height=${height} rx="12" fill="url(#sky)" />
    <path class="ridge far" aria-hidden="true" d=${ridge(width, 22, 44, 62)} /><path class="ridge" aria-hidden="true" d=${ridge(width, 6, 22, 47)} />
    <rect class="snow" x=${EDGE} y=${SNOW.y} width=${width - 2 * EDGE} height=${SNOW.height} rx="7" />
    ${lowest.map((d) => html`<rect key=${`u${d.version}`} class="under" x=${x(d.first_seq)} y=${SNOW.y} width=${wide(d.first_seq, d.last_seq)} height=${SNOW.height} rx="4"
      aria-label=${told.under(d)} ...${act(() => show(d.first_seq))} ...${hover(told.under(d))} />`)}
    ${missing.map((span) => html`<rect key=${`b${span[0]}`} class="bare" x=${x(span[0])} y=${SNOW.y} width=${wide(...span)} height=${SNOW.height} rx="4" fill="url(#bare)"
      aria-label=${told.bare(span)} ...${act(() => show(span[0]))} ...${hover(told.bare(span))} />`)}
    ${verbatim.map((span) => html`<rect key=${`v${span[0]}`} class="verbatim" x=${x(span[0])} y=${SNOW.y} width=${wide(...span)} height=${SNOW.height} rx="4"
      aria-label=${told.snow(span)} ...${act(() => show(span[0]))} ...${hover(told.snow(span))} />`)}
    ${pins.map((span) => html`<rect key=${`p${span[0]}`} class="pin" x=${x(span[0])} y=${SNOW.y} width=${wide(...span)} height=${SNOW.height} rx="3"
      aria-label=${told.pin(span)} ...${act(() => show(span[0]))} ...${hover(told.pin(span))} />`)}
    ${recalled.map((seq) => html`<g key=${`r${seq}`} class="hit" data-seq=${seq} aria-label=${told.hit(seq)} ...${act(() => show(seq))} ...${hover(told.hit(seq))}>
      <path d=${`M${x(seq + 0.5) - 6} ${SNOW.y - 17} h12 l-6 12 z`} /><rect x=${x(seq + 0.5) - 1.5} y=${SNOW.y - 6} width="3" height=${SNOW.height + 6} rx="1.5" /></g>`)}
    ${force.map((d) => html`<g key=${`d${d.version}`} class="ice" data-layer=${Math.min(d.layer, 4)} aria-label=${told.ice(d)}
      ...${act(() => { location.hash = link(head.conversation, 'digests', { version: d.version }); })} ...${hover(told.ice(d))}>
      <rect x=${x(d.first_seq)} y=${depth(d)} width=${wide(d.first_seq, d.last_seq)} height=${BAND} rx="7" />
      <text x=${x(d.first_seq) + wide(d.first_seq, d.last_seq) / 2} y=${depth(d) + BAND / 2 + 4.5}>${title(d)}</text>
    </g>`)}
    ${!force.length && html`<text class="hint" x=${width / 2} y=${SNOW.y + SNOW.height + 26}>no digest yet: everything is still snow</text>`}
    <text class="axis" x=${EDGE} y=${height - 7}>#0</text>
    <text class="axis end" x=${width - EDGE} y=${height - 7}>#${number(head.entries - 1)}</text>
  </svg>
  <ul class="legend"><li><i class="dot is-verbatim" /> word for word</li>${pins.length > 0 && html`<li><i class="dot is-pin" /> pinned</li>`}
    ${recalled.length > 0 && html`<li><i class="dot is-hit" /> recalled</li>`}${force.length > 0 && html`<li><i class="dot is-under" /> under a digest</li><li><i class="dot is-ice" /> digest</li>`}${missing.length > 0 && html`<li><i class="dot is-bare" /> neither</li>`}</ul></div>`;
}

const USUAL = [500, 800, 1000, 1500, 2000, 3000, 4000, 6000, 8000, 12000, 16000, 32000, 64000, 128000];
const LARGEST = 2_000_000; // what is more is no window, but "all of it"

/** The windows to choose from, and the one that this conversation was last asked with. */
function useWindows(name, head) {
  const last = useLoaded((signal) => get(at(name, '/turns'), { limit: 1 }, signal), [name]);
  const used = last.value?.data[0]?.window;
  const own = used && used <= LARGEST ? used : null;
  const steps = useMemo(() => [...new Set([...USUAL, ...(own ? [own] : [])])].sort((a, b) => a - b), [own]);
  return { ready: !last.busy, steps, own, first: own ?? (head.tokens < 6000 ? 1000 : 8000) };
}

export function Glacier({ name, head, show }) {
  const windows = useWindows(name, head);
  return windows.ready ? html`<${Layers} name=${name} head=${head} show=${show} ...${windows} />` : html`<p class="empty" role="status">Loading the layers …</p>`;
}

function Layers({ name, head, show, steps, own, first }) {
  const [step, setStep] = useState(steps.indexOf(first));
  const [budget, setBudget] = useState(first);
  const [typed, setTyped] = useState('');
  const [question, setQuestion] = useState('');
  const [told, tell] = useState('');
  useEffect(() => {
    const timer = setTimeout(() => { setBudget(steps[step]); setQuestion(typed.trim()); }, 350);
    return () => clearTimeout(timer);
  }, [step, typed]);
  const moved = useRef(false); // a window that the reader chose is kept, even if nothing fits it
  const found = useLoaded(async () => {
    const context = await post(at(name, '/context'), { budget, question: question || null, fold: false }).catch((error) => {
      const enough = moved.current ? -1 : steps.findIndex((one) => one >= error.floor);
      if (enough < 0) throw error;
      setStep(enough); // such as for a picture, which is as many tokens as a long text
      return post(at(name, '/context'), { budget: steps[enough], question: question || null, fold: false });
    });
    const force = await get(at(name, '/digests/in-force'));
    return { context, digests: force.data };
  }, [name, stateOf(head), budget, question]);
  const settled = !found.busy && budget === steps[step] && question === typed.trim();
  useEffect(() => tell(''), [found.value]);
  const digest = async () => {
    await post(at(name, '/context'), { budget }); // this one creates digests, now or in the background
    found.again();
    setTimeout(found.again, 2000);
  };
  const share = useMemo(() => (found.value ? found.value.context.tokens / Math.max(head.tokens, 1) : 0), [found.value, head.tokens]);
  return html`<div class="stack" aria-busy=${!settled}>
    <p class="meta">What a model would see now. Change the window or ask a question to see what is left out.</p>
    <div class="explore">
      <label>Window: <b>${number(steps[step])} tokens</b>${steps[step] === own ? ' (as last used)' : ''}
        <input type="range" min="0" max=${steps.length - 1} value=${step} aria-valuetext=${`${number(steps[step])} tokens`} onInput=${(e) => { moved.current = true; setStep(Number(e.target.value)); }} /></label>
      <label>Question <input type="search" value=${typed} placeholder="What would you ask?" onInput=${(e) => setTyped(e.target.value)} /></label>
    </div>
    <${Loaded} of=${found} what="the layers">${({ context, digests }) => html`
      <div class=${settled ? '' : 'stale'}>
        <${Picture} head=${head} context=${context} digests=${digests} show=${show} tell=${tell} />
        <p class="told" role="status">${told || 'Point at a layer to see what it is; click to open it.'}</p>
      </div>
      <${BudgetBar} accounting=${context.accounting} />
      <p><b>${number(context.tokens)}</b> tokens are sent${share < 1 ? html`, <b>${percent(share)}</b> of the ${number(head.tokens)} in the log` : ` for the ${number(head.tokens)} in the log`}; strategy <code>${context.strategy}</code>.
        ${context.stability !== null && html` ${percent(context.stability)} of the last prompt is repeated at the start: a provider's cache charges about a tenth for that.`}</p>
      <table class="sections"><thead><tr><th>section</th><th class="n">tokens</th><th>messages</th><th>why it is there</th></tr></thead>
        <tbody>${context.sections.map((s) => html`<tr key=${s.name}><td><i class=${`dot of-${s.name}`} /> ${titleOf(s.name)}</td><td class="n">${number(s.tokens)}</td>
          <td class="entries-of">${spans(s.seqs).map((span) => html`<button key=${span[0]} class="quiet small" onClick=${() => show(span[0])}>${span[0] === span[1] ? `#${span[0]}` : `#${span[0]}–${span[1]}`}</button>`)}</td>
          <td class="why">${reasonOf(s)}</td></tr>`)}</tbody></table>
      ${context.left_out.length > 0 && html`<details open><summary>Left out: ${plural(context.left_out.length, 'item')}</summary>
        <ul class="plain">${context.left_out.map((one, n) => html`<li key=${n}>${one.what} <span class="meta">(${one.why})</span></li>`)}</ul></details>`}
      ${context.degraded.length > 0 && html`<div class="trouble"><p>Less than the strategy wanted: ${context.degraded.join('; ')}.</p>
        ${/in no digest/.test(context.degraded.join()) && html`<p>A turn with this window creates the digest automatically. <${Act} class="small" needs="write" run=${digest}>Digest now<//></p>`}</div>`}
      <details><summary>The prompt itself, ${plural(context.messages.length, 'message')}</summary>
        ${context.messages.map((m, n) => html`<div key=${n} class="prompt-message"><b>${m.role}</b><pre>${typeof m.content === 'string' ? m.content : JSON.stringify(m.content ?? m.tool_calls, null, 1)}</pre></div>`)}</details>
    `}<//>
    ${!head.entries && html`<${Empty} title="No snow yet">Write a message first.<//>`}
  </div>`;
}
