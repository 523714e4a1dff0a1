// Search: everything that was ever said, by words, meaning and date, with the reasons.

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { all, at, get, LISTED, post } from './api.js';
import { ago, Empty, html, Loaded, Name, plural, titleOf, Trouble, useLoaded, when } from './ui.js';
import { link } from './app.js';
import { Parts, textOf } from './pieces.js';

const ROLES = ['user', 'assistant', 'tool', 'system'];
const SHOWN = 30;
const AROUND = 320; // characters of a hit
const PAUSE = 250; // milliseconds without a key before anything is asked

// -- where we are -----------------------------------------------------------------------------

const FIELDS = ['q', 'c', 'project', 'when', 'since', 'until'];
const asked = (params) => ({ ...Object.fromEntries(FIELDS.map((name) => [name, params.get(name) || ''])), roles: params.getAll('role').filter((role) => ROLES.includes(role)) });

function address({ roles, ...fields }) {
  const given = Object.entries(fields).filter(([, value]) => value);
  const params = new URLSearchParams([...given, ...roles.map((role) => ['role', role])]).toString();
  return `#/search${params ? `?${params}` : ''}`;
}

// -- what is asked for ------------------------------------------------------------------------

/** A day of a date field, in the reader's own time; `after` days later. */
function midnight(day, after = 0) {
  const [year, month, date] = day.split('-').map(Number);
  return new Date(year, month - 1, date + after).toISOString();
}

async function span({ when: words, since, until }, signal) {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const meant = words ? await get('/dates', { when: words, zone }, signal) : {};
  const times = [meant.since, since && midnight(since)].filter(Boolean);
  const ends = [meant.until, until && midnight(until, 1)].filter(Boolean);
  return { since: times.sort().at(-1), until: ends.sort()[0] }; // both hold
}

/** What was said in one conversation at a time, oldest first, as far as the filters allow. */
async function dated(wanted, time, signal) {
  const { c, project, roles, since, until } = wanted;
  if (time.since >= time.until || (project && (await get(at(c), {}, signal)).project !== project)) return [];
  const fits = ({ created_at: then, message }) => !(then < time.since || then >= time.until) && (!roles.length || roles.includes(message.role));
  const words = wanted.when || (since && until ? `${since} to ${until}` : since ? `since ${since}` : `until ${until}`);
  const asking = { when: words, zone: Intl.DateTimeFormat().resolvedOptions().timeZone, limit: roles.length || (wanted.when && (since || until)) ? 500 : SHOWN };
  const found = [];
  let cursor;
  do {
    const page = await get(at(c, '/dates'), { ...asking, cursor }, signal);
    found.push(...page.data.filter(fits));
    cursor = page.next_cursor;
  } while (cursor && found.length < SHOWN);
  return found.slice(0, SHOWN).map((entry) => ({ conversation: c, entry, parts: {}, score: null }));
}

async function find(wanted, signal) {
  const words = wanted.q.trim();
  const time = await span(wanted, signal);
  if (!words && wanted.c && (time.since || time.until)) return { time, hits: await dated(wanted, time, signal) };
  if (!words) return { time, hits: null };
  const body = { query: words, limit: SHOWN, ...time, roles: wanted.roles, project: wanted.project || undefined };
  const found = await post(wanted.c ? at(wanted.c, '/search') : '/search', body, { signal });
  return { time, hits: found.data, degraded: found.degraded };
}

// -- what was found ---------------------------------------------------------------------------

/** A pattern for the words of a question: whole words, and other forms of long ones. */
export function pattern(query) {
  const words = [...new Set(query.toLowerCase().match(/[\p{L}\p{N}]+/gu) || [])].filter((word) => word.length > 2 || /\p{N}|[^\p{ASCII}]/u.test(word));
  if (!words.length) return null;
  const forms = words.sort((a, b) => b.length - a.length).map((word) => {
    if (/\p{Script=Han}|\p{Script=Hiragana}|\p{Script=Katakana}|\p{Script=Hangul}/u.test(word)) return word;
    const stem = word.length > 4 ? word.slice(0, Math.max(4, word.length - 2)) : word;
    return `(?<![\\p{L}\\p{N}])${stem}[\\p{L}\\p{N}]{0,${word.length > 4 ? 6 : 1}}`;
  });
  return new RegExp(forms.join('|'), 'giu');
}

/** Where to begin so that the match can be seen: behind a space, if there is one; many languages have none. */
function begins(text, match) {
  const from = Math.floor(match - AROUND / 3);
  const space = text.lastIndexOf(' ', match - 1);
  if (space < from) return /[\uDC00-\uDFFF]/.test(text[from]) ? from + 1 : from; // no half of a character
  return text.indexOf(' ', from) + 1;
}

/** The part of a text around the first match: `[[text, matches], …]`. */
export function excerpt(text, words) {
  const flat = text.replace(/\s+/g, ' ').trim();
  const first = words ? flat.search(words) : -1;
  const start = first > AROUND / 3 ? begins(flat, first) : 0;
  const part = flat.slice(start, start + AROUND);
  const pieces = start > 0 ? [['… ', false]] : [];
  let end = 0;
  for (const match of words ? part.matchAll(words) : []) {
    if (match.index > end) pieces.push([part.slice(end, match.index), false]);
    pieces.push([match[0], true]);
    end = match.index + match[0].length;
  }
  pieces.push([part.slice(end), false]);
  if (start + AROUND < flat.length) pieces.push([' …', false]);
  return pieces;
}

function Hit({ hit, words, most, title }) {
  const { entry } = hit;
  const pieces = useMemo(() => excerpt((hit.passage?.length ? hit.text : textOf(entry.message)) || '(no text)', words), [hit, words]);
  return html`<li class="card hit">
    <a class="open" href=${link(hit.conversation, '', { seq: entry.seq })}>
      <span class="row apart"><b class="title" title=${hit.conversation}><${Name}>${title}<//></b>
        <span class="meta">#${entry.seq} · <${Name}>${entry.message.name || entry.message.role}<//> · <time datetime=${entry.created_at} title=${when(entry.created_at)}>${ago(entry.created_at)}</time></span></span>
      <span class="excerpt" dir="auto">${pieces.map(([text, matches], n) => (matches ? html`<mark key=${n}>${text}</mark>` : text))}</span>
    </a>
    ${hit.also_in?.length > 0 && html`<p class="meta">also in ${hit.also_in.map((name, n) => html`${n > 0 && ', '}<a key=${name} href=${link(name, '', { seq: entry.seq })}><${Name}>${name}<//></a>`)}</p>`}
    ${hit.superseded_by != null && html`<p class="meta">outdated: see <a href=${link(hit.conversation, '', { seq: hit.superseded_by })}>#${hit.superseded_by}</a></p>`}
    ${hit.score !== null && html`<details><summary>score ${hit.score.toFixed(2)}</summary><${Parts} of=${hit.parts} most=${most} label=${`Why: ${hit.explanation}`} /></details>`}
  </li>`;
}

/** A span in words; the beginning and the end of all time go without saying. */
function spoken({ since, until }) {
  const from = since && new Date(since) > 86_400_000 ? ` from ${when(since)}` : '';
  const to = until && !until.startsWith('9999') ? ` until ${when(until)}` : '';
  return from || to ? `,${from}${to}` : '';
}

function Hits({ found, wanted, titles }) {
  const words = useMemo(() => pattern(wanted.q), [wanted.q]);
  const { hits } = found;
  if (hits === null) {
    return html`<${Empty} level="h2" title="Find any message">
      Words or a complete question, in any language: <i>which order never arrived?</i> The ↓ key selects a hit, Enter opens it in its conversation.
      ${wanted.when || wanted.since || wanted.until ? ' Add a word, or choose one conversation to see all messages of that time.' : ''}<//>`;
  }
  const less = found.degraded?.length > 0 && html`<p class="meta">Some messages may be missing: ${found.degraded.join('; ')}.</p>`;
  if (!hits.length) {
    return html`${less}<${Empty} level="h2" title="No match">No message ${wanted.c ? 'in this conversation' : ''} has these words or this meaning${wanted.when || wanted.since || wanted.until || wanted.roles.length || wanted.project ? ', as far as the filters allow' : ''}. Fewer or other words may help.<//>`;
  }
  const most = Math.max(...hits.flatMap((hit) => Object.values(hit.parts).map(Math.abs)), 0.01);
  return html`<p class="meta" role="status">${plural(hits.length, 'hit')}${hits.length < SHOWN ? '' : wanted.q.trim() ? ', the best ones' : ', the first ones'}${spoken(found.time)}</p>${less}
    <ol class="hit-list">${hits.map((hit) => html`<${Hit} key=${`${hit.conversation} ${hit.entry.seq}`} hit=${hit} words=${words} most=${most} title=${titles.get(hit.conversation) || hit.conversation} />`)}</ol>`;
}

// -- the form ---------------------------------------------------------------------------------

function Filters({ wanted, change, names, projects }) {
  const role = (name) => change({ roles: wanted.roles.includes(name) ? wanted.roles.filter((one) => one !== name) : [...wanted.roles, name] });
  return html`<div class="filters">
    <label>Conversation <input list="conversations" value=${wanted.c} placeholder="all of them" onInput=${(e) => change({ c: e.target.value })} autocomplete="off" />
      <datalist id="conversations">${names.slice(0, 500).map((name) => html`<option key=${name} value=${name} />`)}</datalist></label>
    <label>Project <select value=${wanted.project} onChange=${(e) => change({ project: e.target.value })}>
      <option value="">any</option>${projects.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}</select></label>
    <label class="when">When <input value=${wanted.when} placeholder="last week" onInput=${(e) => change({ when: e.target.value })} autocomplete="off" /></label>
    <label>From <input type="date" value=${wanted.since} onInput=${(e) => change({ since: e.target.value })} /></label>
    <label>To <input type="date" value=${wanted.until} onInput=${(e) => change({ until: e.target.value })} /></label>
    <fieldset><legend>Said by</legend>${ROLES.map((name) => html`<label key=${name} class="check"><input type="checkbox" checked=${wanted.roles.includes(name)} onChange=${() => role(name)} /> ${name}</label>`)}</fieldset>
  </div>`;
}

export function Search({ params }) {
  const here = address(asked(params));
  const [typed, setTyped] = useState(asked(params));
  const input = useRef(null);
  const wanted = useMemo(() => asked(params), [here]);
  const known = useLoaded(() => Promise.all([all('/conversations'), all('/projects', { limit: 200 })]), []);
  const [names, projects] = known.value ? known.value.map((list) => list.map((one) => one.conversation || one.name)) : [[], []];
  const titles = useMemo(() => new Map((known.value?.[0] || []).map((one) => [one.conversation, titleOf(one)])), [known.value]);
  const unknown = wanted.c && !(names.includes(wanted.c) || names.length >= LISTED);
  const found = useLoaded((signal) => (unknown ? Promise.resolve({ time: {}, hits: null }) : find(wanted, signal)), [here, unknown]);

  const settled = !found.busy && address(typed) === here && !(wanted.c && known.busy);

  const own = useRef(null); // the address that typing led to: behind it, more may have been typed already
  useEffect(() => { // back and forth
    if (own.current !== here && address(typed) !== here) setTyped(asked(params));
    own.current = null;
  }, [here]);
  const ask = () => { // typing is one step in the history, however many letters there are
    own.current = address(typed);
    history.replaceState(null, '', own.current);
    dispatchEvent(new Event('hashchange'));
  };
  useEffect(() => {
    if (address(typed) === here) return undefined;
    const timer = setTimeout(ask, PAUSE);
    return () => clearTimeout(timer);
  }, [typed]);
  useEffect(() => {
    input.current.focus();
    const pressed = (event) => {
      if (event.key === '/' && !/INPUT|TEXTAREA|SELECT/.test(event.target.tagName)) { event.preventDefault(); input.current.focus(); input.current.select(); }
    };
    addEventListener('keydown', pressed);
    return () => removeEventListener('keydown', pressed);
  }, []);

  const change = (more) => setTyped((before) => ({ ...before, ...more }));
  const keys = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const links = [...event.currentTarget.querySelectorAll('a.open')];
    const at = links.indexOf(document.activeElement);
    if (!step || !links.length || (at < 0 && (document.activeElement !== input.current || step < 0))) return;
    event.preventDefault();
    const next = at + step < 0 ? input.current : links[Math.min(at + step, links.length - 1)];
    next.focus();
    next.scrollIntoView({ block: 'nearest' });
  };
  const enter = (event) => {
    event.preventDefault();
    if (address(typed) !== here) ask(); else event.currentTarget.closest('.search').querySelector('a.open')?.click();
  };
  return html`<div class="page search" onKeyDown=${keys}>
    <h1>Search</h1>
    <form class="card" role="search" onSubmit=${enter}>
      <input ref=${input} class="words" type="search" aria-label="Words or a question" placeholder="Words or a question" value=${typed.q} onInput=${(e) => change({ q: e.target.value })} autocomplete="off" />
      <${Filters} wanted=${typed} change=${change} names=${names} projects=${projects} />
    </form>
    ${known.error && html`<${Trouble} error=${known.error} again=${known.again} />`}
    <div class=${!settled && found.value ? 'stale' : ''} aria-busy=${!settled}>
      ${unknown && known.value ? html`<${Empty} level="h2" title="No such conversation">Choose one from the list, or leave the field empty to search all of them.<//>`
    : html`<${Loaded} of=${found} what="what fits">${(value) => html`<${Hits} found=${value} wanted=${wanted} titles=${titles} />`}<//>`}
    </div>
  </div>`;
}
