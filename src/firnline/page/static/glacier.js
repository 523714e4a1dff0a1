// The glacier: the conversation as a cross-section. Snow on top is in the prompt word for word, ice
// below are digests, deeper the older; what was recalled for the question shines through.

import { useEffect, useMemo, useState } from 'preact/hooks';
import { at, get, post } from './api.js';
import { BudgetBar, Empty, html, Loaded, number, percent, plural, useLoaded } from './ui.js';
import { link } from './app.js';

const WIDTH = 1000;
const EDGE = 14;
const SNOW = { y: 92, height: 54 };
const BAND = 44;

/** Neighbours as spans: [0,1,2,7] → [[0,2],[7,7]]. */
export function spans(seqs) {
  const found = [];
  for (const seq of [...seqs].sort((a, b) => a - b)) {
    const last = found.at(-1);
    if (last && seq <= last[1] + 1) last[1] = Math.max(seq, last[1]); else found.push([seq, seq]);
  }
  return found;
}

const range = ([first, last]) => (first === last ? `entry ${number(first)}` : `entries ${number(first)}–${number(last)}`);

function Picture({ head, context, digests, show, tell }) {
  const count = Math.max(head.entries, 1);
  const x = (seq) => EDGE + (seq / count) * (WIDTH - 2 * EDGE);
  const wide = (first, last) => Math.max(x(last + 1) - x(first), 2.5);
  const sections = Object.fromEntries(context.sections.map((s) => [s.name, s]));
  const verbatim = spans(sections.recent?.seqs || []);
  const pins = spans(sections.pinned?.seqs || []);
  const recalled = [...new Set([...(sections.recalled?.seqs || []), ...context.hits.map((hit) => hit.entry.seq)])];
  const layers = [...new Set(digests.map((d) => d.layer))].sort((a, b) => a - b);
  const depth = (digest) => SNOW.y + SNOW.height + 10 + layers.indexOf(digest.layer) * (BAND + 6);
  const height = SNOW.y + SNOW.height + 10 + Math.max(layers.length, 1) * (BAND + 6) + 26;
  const act = (does) => ({ onClick: does, onKeyDown: (e) => { if (e.key === 'Enter' || e.key === ' ') { e.preventDefault(); does(); } }, tabindex: 0, role: 'button' });
  const hover = (text) => ({ onMouseEnter: () => tell(text), onFocus: () => tell(text) });
  const told = {
    snow: (span) => `${range(span)}: in the prompt now, word for word`,
    pin: (span) => `${range(span)}: pinned, in every prompt`,
    hit: (seq) => {
      const hit = context.hits.find((one) => one.entry.seq === seq);
      return `entry ${number(seq)}: recalled for this question${hit ? `, ${hit.explanation}` : ''}`;
    },
    ice: (d) => `${range([d.first_seq, d.last_seq])} lie under digest ${d.version}${d.layer ? `, a digest of digests (layer ${d.layer})` : ''}: ${number(d.tokens)} tokens, made by ${d.made_by}`,
  };
  return html`<svg class="glacier" viewBox=${`0 0 ${WIDTH} ${height}`} role="group" aria-label="The conversation as layers, oldest on the left">
    <defs>
      <linearGradient id="sky" x1="0" y1="0" x2="0" y2="1"><stop offset="0" class="sky-high" /><stop offset="1" class="sky-low" /></linearGradient>
    </defs>
    <rect width=${WIDTH} height=${height} rx="14" fill="url(#sky)" />
    <path class="ridge far" aria-hidden="true" d="M0 92 L70 54 L120 74 L200 26 L262 64 L330 40 L420 80 L520 36 L600 70 L690 30 L770 66 L860 44 L930 72 L1000 50 V92 Z" />
    <path class="ridge" aria-hidden="true" d="M0 92 L90 72 L170 86 L260 62 L360 84 L470 60 L560 86 L660 66 L760 88 L870 62 L1000 84 V92 Z" />
    <rect class="snow" x=${EDGE} y=${SNOW.y} width=${WIDTH - 2 * EDGE} height=${SNOW.height} rx="8" />
    ${verbatim.map((span) => html`<rect key=${`v${span[0]}`} class="verbatim" x=${x(span[0])} y=${SNOW.y} width=${wide(...span)} height=${SNOW.height} rx="5"
      aria-label=${told.snow(span)} ...${act(() => show(span[0]))} ...${hover(told.snow(span))} />`)}
    ${pins.map((span) => html`<rect key=${`p${span[0]}`} class="pin" x=${x(span[0])} y=${SNOW.y} width=${wide(...span)} height=${SNOW.height} rx="3"
      aria-label=${told.pin(span)} ...${act(() => show(span[0]))} ...${hover(told.pin(span))} />`)}
    ${recalled.map((seq) => html`<g key=${`r${seq}`} class="hit" aria-label=${told.hit(seq)} ...${act(() => show(seq))} ...${hover(told.hit(seq))}>
      <path d=${`M${x(seq + 0.5) - 8} ${SNOW.y - 20} h16 l-8 15 z`} /><rect x=${x(seq + 0.5) - 2} y=${SNOW.y - 6} width="4" height=${SNOW.height + 6} rx="2" /></g>`)}
    ${digests.map((d) => html`<g key=${`d${d.version}`} class="ice" data-layer=${Math.min(d.layer, 4)} aria-label=${told.ice(d)}
      ...${act(() => { location.hash = link(head.conversation, 'digests', { version: d.version }); })} ...${hover(told.ice(d))}>
      <rect x=${x(d.first_seq)} y=${depth(d)} width=${wide(d.first_seq, d.last_seq)} height=${BAND} rx="8" />
      ${wide(d.first_seq, d.last_seq) > 90 && html`<text x=${x(d.first_seq) + wide(d.first_seq, d.last_seq) / 2} y=${depth(d) + BAND / 2 + 5}>digest ${d.version} · ${number(d.tokens)} tokens</text>`}
    </g>`)}
    ${!digests.length && html`<text class="hint" x=${WIDTH / 2} y=${SNOW.y + SNOW.height + 34}>no digest yet: everything is still snow</text>`}
    <text class="axis" x=${EDGE} y=${height - 8}>#0</text>
    <text class="axis end" x=${WIDTH - EDGE} y=${height - 8}>#${number(head.entries - 1)}</text>
  </svg>`;
}

const STEPS = [500, 800, 1000, 1500, 2000, 3000, 4000, 6000, 8000, 12000, 16000, 32000, 64000, 128000];

export function Glacier({ name, head, show }) {
  const [step, setStep] = useState(STEPS.indexOf(head.tokens < 6000 ? 1000 : 8000));
  const [budget, setBudget] = useState(STEPS[step]);
  const [typed, setTyped] = useState('');
  const [question, setQuestion] = useState('');
  const [told, tell] = useState('');
  useEffect(() => {
    const timer = setTimeout(() => { setBudget(STEPS[step]); setQuestion(typed.trim()); }, 350);
    return () => clearTimeout(timer);
  }, [step, typed]);
  const found = useLoaded(async () => {
    const context = await post(at(name, '/context'), { budget, question: question || null });
    const force = await get(at(name, '/digests/in-force'));
    return { context, digests: force.data };
  }, [name, head.hash, budget, question]);
  const share = useMemo(() => (found.value ? found.value.context.tokens / Math.max(head.tokens, 1) : 0), [found.value, head.tokens]);
  return html`<div class="stack">
    <p class="meta">What a model would see now. Move the window, ask something, and watch what gives way.</p>
    <div class="explore">
      <label>Window: <b>${number(STEPS[step])} tokens</b>
        <input type="range" min="0" max=${STEPS.length - 1} value=${step} aria-valuetext=${`${number(STEPS[step])} tokens`} onInput=${(e) => setStep(Number(e.target.value))} /></label>
      <label>Question <input type="search" value=${typed} placeholder="Which order never arrived?" onInput=${(e) => setTyped(e.target.value)} /></label>
    </div>
    <${Loaded} of=${found} what="the layers">${({ context, digests }) => html`
      <div class=${found.busy ? 'stale' : ''}>
        <${Picture} head=${head} context=${context} digests=${digests} show=${show} tell=${tell} />
        <p class="told" role="status">${told || 'Point at a layer to see what it is; press it to open it.'}</p>
      </div>
      <${BudgetBar} accounting=${context.accounting} />
      <p><b>${number(context.tokens)}</b> of ${number(head.tokens)} tokens are sent, ${percent(Math.min(share, 1))} of all that was said; strategy <code>${context.strategy}</code>.
        ${context.stability !== null && html` ${percent(context.stability)} of the last prompt is repeated from its start.`}</p>
      <table><thead><tr><th>section</th><th class="n">tokens</th><th>entries</th><th>why it is there</th></tr></thead>
        <tbody>${context.sections.map((s) => html`<tr key=${s.name}><td><i class=${`dot of-${s.name}`} /> ${s.name}</td><td class="n">${number(s.tokens)}</td>
          <td>${spans(s.seqs).map((span) => html`<button key=${span[0]} class="quiet small" onClick=${() => show(span[0])}>${span[0] === span[1] ? `#${span[0]}` : `#${span[0]}–${span[1]}`}</button>`)}</td>
          <td>${s.why}</td></tr>`)}</tbody></table>
      ${context.left_out.length > 0 && html`<details open><summary>Left out: ${plural(context.left_out.length, 'thing')}</summary>
        <ul class="plain">${context.left_out.map((one, n) => html`<li key=${n}>${one.what} <span class="meta">(${one.why})</span></li>`)}</ul></details>`}
      ${context.degraded.length > 0 && html`<p class="trouble">Less than was wanted: ${context.degraded.join('; ')}</p>`}
      <details><summary>The prompt itself, ${plural(context.messages.length, 'message')}</summary>
        ${context.messages.map((m, n) => html`<div key=${n} class="prompt-message"><b>${m.role}</b><pre>${typeof m.content === 'string' ? m.content : JSON.stringify(m.content ?? m.tool_calls, null, 1)}</pre></div>`)}</details>
    `}<//>
    ${!head.entries && html`<${Empty} title="No snow yet">Say something first.<//>`}
  </div>`;
}
