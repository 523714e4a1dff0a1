// The dashboard: projects, what the server is doing, and what memory saves.

import { useEffect, useState } from 'preact/hooks';
import { at, get, key, may, patch, post, put, segment } from './api.js';
import { Act, ago, compact, Copyable, Empty, FormDialog, html, Loaded, looking, Name, number, percent, plural, Press, ReadOnly, say, titleOf, useLoaded, when } from './ui.js';
import { link } from './app.js';
import { Costs } from './costs.js';

const AGAIN = 15_000;

/** Refresh now and then while the page is visible. */
function useFresh(...loaded) {
  useEffect(() => looking(() => loaded.forEach((one) => one.again()), AGAIN), []);
}

// -- how to begin -----------------------------------------------------------------------------

function Begin({ begin }) {
  const bearer = key.get() ? ' \\\n  -H "Authorization: Bearer YOUR_KEY"' : '';
  const client = `from openai import OpenAI\n\nclient = OpenAI(\n    base_url="${location.origin}/v1",\n    api_key="${key.get() ? 'YOUR_KEY' : 'none'}",\n)`;
  const curl = `curl ${location.origin}/api/v1/conversations/first/turns${bearer} \\\n  -H "Content-Type: application/json" \\\n  -d '{"message": "We land in Lisbon on 3 March."}'`;
  return html`<section class="card begin" aria-label="How to begin">
    <h2>There are no conversations yet. Three ways to start</h2>
    <ol>
      <li><h3>Chat here</h3><p>Press <kbd>+</kbd> next to the list, or the key <kbd>n</kbd>, and write a message. It is kept word for word, and you see what memory does with it.</p>
        <${Press} class="strong" onClick=${begin}>Start a conversation<//></li>
      <li><h3>Point an OpenAI client at it</h3><p>Change one URL, and its conversations can have any length.</p><${Copyable} text=${client} what="Python with the OpenAI client" /></li>
      <li><h3>Send a request over HTTP</h3><p>From any language. The first message creates the conversation.</p><${Copyable} text=${curl} what="A request with curl" /></li>
    </ol>
    <p class="meta">Agents use MCP at <code>${location.origin}/mcp</code>. If you have an export, import it with ⇅ at the top.</p>
  </section>`;
}

// -- projects ---------------------------------------------------------------------------------

const STATUSES = ['active', 'paused', 'waiting', 'done'];
const KINDS = { active: 'good', done: '', paused: 'warm', waiting: 'warm' };

function ProjectForm({ project, names, onDone, onClose }) {
  const save = async (form) => {
    const told = Object.fromEntries(['status', 'schedule', 'task'].map((name) => [name, form.get(name).trim()]));
    const name = project ? project.name : form.get('name').trim();
    if (!project && names.includes(name)) throw new Error(`The project ${name} exists already: edit it, or choose another name.`);
    await put(`/projects/${segment(name)}`, { ...told, metadata: project?.metadata || {} });
    say(project ? 'Saved.' : 'The project was created.');
    onDone();
  };
  return html`<${FormDialog} title=${project ? `Project ${project.name}` : 'A new project'} button="Save" onDone=${save} onClose=${onClose}>
    ${!project && html`<label>Name <input name="name" required maxlength="200" autocomplete="off" /></label>`}
    <label>Status <input name="status" required list="statuses" defaultValue=${project?.status ?? 'active'} autocomplete="off" /></label>
    <datalist id="statuses">${STATUSES.map((one) => html`<option key=${one} value=${one} />`)}</datalist>
    <label>Schedule <input name="schedule" defaultValue=${project?.schedule ?? ''} placeholder="Mondays; every day at nine" autocomplete="off" /></label>
    <label>Current task <textarea name="task" rows="4" defaultValue=${project?.task ?? ''} placeholder="What to do, and what blocks it. It is in every prompt." /></label>
  <//>`;
}

/** What is known in the active project: the memory of its newest conversations, as one. */
function Situation({ project, context }) {
  const { important_data: data, conversation_summary: summary } = context.state;
  const facts = [...Object.entries(data.user_preferences || {}).map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`),
    ...(data.key_decisions || []), ...(data.important_facts || [])].slice(0, 8).map((one) => (typeof one === 'string' ? one : JSON.stringify(one)));
  if (!summary && !facts.length) return null;
  return html`<details class="situation"><summary>What is known in <${Name}>${project}<//></summary>
    ${summary && html`<p dir="auto" class="summary">${summary}</p>`}
    ${facts.length > 0 && html`<ul class="bullets">${facts.map((one, n) => html`<li key=${n} dir="auto">${one}</li>`)}</ul>`}</details>`;
}

function Project({ project, active, onEdit }) {
  return html`<article class=${`card project ${active ? 'is-active' : ''}`} aria-label=${`Project ${project.name}`}>
    <header class="row apart"><h3><${Name}>${project.name}<//></h3>
      <span class="row"><span class=${`badge ${KINDS[project.status] ?? ''}`}><${Name}>${project.status}<//></span>
        <${Press} class="quiet small" onClick=${() => onEdit(project)} aria-label=${`Edit project ${project.name}`}>Edit<//></span></header>
    ${project.schedule && html`<p class="meta" dir="auto">${project.schedule}</p>`}
    ${project.task && html`<p class="task" dir="auto">${project.task}</p>`}
    <dl class="numbers">
      <div><dt>conversations</dt><dd>${number(project.conversations)}</dd></div>
      <div><dt>messages</dt><dd title=${number(project.entries)}>${compact(project.entries)}</dd></div>
      <div><dt>tokens</dt><dd title=${number(project.tokens)}>${compact(project.tokens)}</dd></div>
      <div><dt>pending digests</dt><dd class=${project.pending ? 'pending' : ''}>${number(project.pending)}</dd></div>
      <div><dt>last activity</dt><dd title=${when(project.last_activity)}>${ago(project.last_activity)}</dd></div>
    </dl>
    ${project.newest.length > 0 && html`<ul class="newest" aria-label="Its newest conversations">${project.newest.slice(0, 4).map((one) => html`<li key=${one.conversation}>
      <a href=${link(one.conversation)} title=${one.conversation}><${Name}>${titleOf(one)}<//></a> <span class="meta">${compact(one.entries)} ${one.entries === 1 ? 'message' : 'messages'} · ${ago(one.updated_at)}</span></li>`)}</ul>`}
    ${project.context && html`<${Situation} project=${project.name} context=${project.context} />`}
  </article>`;
}

function Projects({ projects }) {
  const [editing, setEditing] = useState(null); // a project, or 'new'
  return html`<section aria-label="Projects">
    <div class="row apart"><h2>Projects</h2><${Press} onClick=${() => setEditing('new')}>New project<//></div>
    <${Loaded} of=${projects} what="the projects">${({ data, active }) => (data.length
    ? html`<div class="cards">${data.map((one) => html`<${Project} key=${one.name} project=${one} active=${one.name === active} onEdit=${setEditing} />`)}</div>`
    : html`<${Empty} title="No project yet">A project groups conversations. Its task is in all of their prompts, and its pending digests and last activity are shown here.<//>`)}<//>
    ${editing && html`<${ProjectForm} project=${editing === 'new' ? null : editing} names=${(projects.value?.data || []).map((one) => one.name)} onDone=${projects.again} onClose=${() => setEditing(null)} />`}
  </section>`;
}

// -- conversations of no project --------------------------------------------------------------

const LISTED = 20;

function Unassigned({ list, projects }) {
  const found = (list.value || []).filter((one) => one.project === null).sort((a, b) => (a.updated_at < b.updated_at ? 1 : -1));
  if (!found.length) return null;
  const names = may('write') ? (projects.value?.data || []).map((one) => one.name) : []; // to move it to
  const move = async (one, project) => {
    try {
      await patch(at(one.conversation), { project });
      say(`Moved to ${project}.`);
      list.again();
      projects.again();
    } catch (error) { say(error.message, true); }
  };
  return html`<section class="card" aria-label="Conversations without a project"><h2>Without a project</h2>
    <div class="scroll" tabindex="0" role="group" aria-label="List of conversations"><table class="loose">
      <thead><tr><th>conversation</th><th class="n">messages</th><th class="n">tokens</th><th>last activity</th>${names.length > 0 && html`<th>project</th>`}</tr></thead>
      <tbody>${found.slice(0, LISTED).map((one) => html`<tr key=${one.conversation}>
        <td class="named"><a href=${link(one.conversation)} title=${one.conversation}><${Name}>${titleOf(one)}<//></a></td><td class="n">${number(one.entries)}</td><td class="n">${number(one.tokens)}</td>
        <td class="nowrap" title=${when(one.updated_at)}>${ago(one.updated_at)}</td>
        ${names.length > 0 && html`<td><select value="" aria-label=${`Move ${one.conversation} to a project`} onChange=${(e) => e.target.value && move(one, e.target.value)}>
          <option value="">none</option>${names.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}</select></td>`}</tr>`)}</tbody>
    </table></div>
    ${found.length > LISTED && html`<p class="meta">${plural(found.length - LISTED, 'older one')} in the list on the left.</p>`}
  </section>`;
}

// -- the server -------------------------------------------------------------------------------

function Verify({ list }) {
  const [state, set] = useState(null);
  const run = async () => {
    const names = (list.value || []).map((one) => one.conversation);
    let entries = 0;
    const problems = [];
    for (const [n, name] of names.entries()) {
      set({ done: n, of: names.length });
      const told = await post(at(name, '/verify'));
      entries += told.entries;
      problems.push(...told.problems.map((problem) => `${name}: ${problem}`));
    }
    set({ entries, problems, conversations: names.length });
  };
  return html`<div class="verify">
    <${Act} run=${run} class="small">Prove that nothing was lost<//>
    ${state?.of > 0 && html`<progress max=${state.of} value=${state.done} aria-label="Conversations verified" />`}
    ${state?.problems && html`<p role="status" class=${state.problems.length ? 'trouble' : 'meta'}>${state.problems.length
    ? `${plural(state.problems.length, 'problem')}: ${state.problems.slice(0, 5).join('; ')}`
    : `Every hash of ${plural(state.entries, 'message')} in ${plural(state.conversations, 'conversation')} was computed again: nothing has changed.`}</p>`}
  </div>`;
}

const Linked = ({ names }) => html`<ul class="links">${names.slice(0, 8).map((name) => html`<li key=${name}><a href=${link(name, 'digests')}><${Name}>${name}<//></a></li>`)}
  ${names.length > 8 && html`<li class="meta">and ${number(names.length - 8)} more</li>`}</ul>`;

function Work({ work }) {
  const pending = work.due.length + work.waiting.length;
  const made = Object.entries(work.digests).sort().map(([status, count]) => `${number(count)} ${status}`).join(', ') || 'none yet';
  return html`
    <div><dt>Pending digests</dt><dd>${pending ? html`<span class="badge warm">${number(pending)}</span> ${work.pending_since && html`<span class="meta">${new Date(work.pending_since) > Date.now() ? `next retry ${ago(work.pending_since)}` : `since ${when(work.pending_since)}`}</span>`}` : html`<span class="badge good">none</span>`}
      ${pending > 0 && html`<${Linked} names=${[...work.due, ...work.waiting]} />`}</dd></div>
    ${work.stuck.length > 0 && html`<div><dt>Stuck</dt><dd><ul class="links">${work.stuck.slice(0, 8).map((one) => html`<li key=${`${one.conversation} ${one.version}`}>
      <span class="badge bad">stuck</span> <a href=${link(one.conversation, 'digests', { version: one.version })}><${Name}>${one.conversation}<//>, digest ${one.version}</a> <span class="meta">since ${ago(one.created_at)}</span></li>`)}</ul></dd></div>`}
    ${work.failed.length > 0 && html`<div><dt>Failed</dt><dd><ul class="links">${work.failed.slice(0, 8).map((one) => html`<li key=${`${one.conversation} ${one.version}`}>
      <span class="badge bad">failed</span> <a href=${link(one.conversation, 'digests', { version: one.version })}><${Name}>${one.conversation}<//>, digest ${one.version}</a> <span class="meta" dir="auto">${one.error.slice(0, 200)}</span></li>`)}</ul></dd></div>`}
    <div><dt>Digests</dt><dd>${made}${work.mean_milliseconds > 0 && html` <span class="meta">${number(Math.round(work.mean_milliseconds))} ms each, ${number(work.max_milliseconds)} ms at most</span>`}</dd></div>
    <div><dt>In digests</dt><dd>${number(work.covered_entries)} of ${plural(work.entries, 'message')}${work.entries > 0 && html` <span class="meta">${percent(work.covered_entries / work.entries)}</span>`}</dd></div>`;
}

function Health({ list, work }) {
  const ready = useLoaded(async () => { const answer = await fetch('/readyz'); return { ok: answer.ok, ...(await answer.json()) }; }, []);
  const me = useLoaded((signal) => get('/me', {}, signal), []);
  useFresh(ready, me);
  return html`<section class="card health-card" aria-label="Health"><h2>Health</h2>
    <${Loaded} of=${me} what="the server">${({ server, tenant, key: name, scopes }) => html`<dl class="rows">
      <div><dt>Server</dt><dd>${ready.value?.ok ? html`<span class="badge good">ready</span>` : html`<span class="badge bad">${ready.value?.store === 'ok' ? 'stopping' : ready.error?.message || ready.value?.store || 'checking …'}</span>`}
        <span class="meta">Firnline ${server.version} on ${server.store}</span></dd></div>
      ${work.value && html`<${Work} work=${work.value} />`}
      ${work.error && html`<div><dt>Work</dt><dd class="bad-text">${work.error.message}</dd></div>`}
      <div><dt>Answers by</dt><dd>${[server.answers, server.upstream && 'models behind /v1, chosen in the chat', server.proxy && !server.upstream && 'the Anthropic endpoint, behind /v1/messages only'].filter(Boolean).join('; ') || 'quotes from memory: no model is configured'}</dd></div>
      <div><dt>Search by</dt><dd>${server.embedder === 'none' ? 'words and dates' : 'words, dates and meaning'}</dd></div>
      <div><dt>You</dt><dd>tenant <${Name}>${tenant}<//> <span class="meta">key <${Name}>${name}<//>: ${scopes.join(', ')}</span></dd></div>
    </dl>`}<//>
    <${Verify} list=${list} />
  </section>`;
}

// -- all of it --------------------------------------------------------------------------------

const Figure = ({ of, children, title }) => html`<div title=${title}><b>${of}</b><span>${children}</span></div>`;

function Numbers({ stats, costs }) {
  const total = costs.value;
  const spent = total ? total.sent + total.digest_tokens : 0;
  return html`<section class="card tally" aria-label="In numbers">
    <${Figure} of=${number(stats.conversations)}>${stats.conversations === 1 ? 'conversation' : 'conversations'}<//>
    <${Figure} of=${compact(stats.messages)} title=${number(stats.messages)}>messages, every one kept<//>
    <${Figure} of=${compact(stats.tokens)} title=${number(stats.tokens)}>tokens<//>
    ${stats.archived > 0 && html`<${Figure} of=${percent(stats.archived / Math.max(stats.messages, 1))}>of the messages archived<//>`}
    <${Figure} of=${total?.turns ? percent(Math.abs(1 - spent / Math.max(total.whole, 1))) : '–'}>${spent > total?.whole ? 'more' : 'fewer'} tokens than the full history<//>
  </section>`;
}

const load = async () => {
  const pages = [await get('/projects', { limit: 200 })];
  while (pages.at(-1).next_cursor) pages.push(await get('/projects', { limit: 200, cursor: pages.at(-1).next_cursor }));
  return { data: pages.flatMap((page) => page.data), active: pages.find((page) => page.active)?.active };
};

export function Dashboard({ list, begin }) {
  const stats = useLoaded((signal) => get('/stats', {}, signal), []);
  const projects = useLoaded(load, []);
  const costs = useLoaded((signal) => get('/costs', {}, signal), []);
  const work = useLoaded((signal) => get('/work', {}, signal), []);
  useFresh(stats, projects, costs, work, list);
  return html`<div class="page board">
    <h1>Dashboard</h1>
    <${ReadOnly} />
    <${Loaded} of=${stats} what="the numbers">${(value) => (value.conversations ? html`<${Numbers} stats=${value} costs=${costs} />` : html`<${Begin} begin=${begin} />`)}<//>
    <${Projects} projects=${projects} />
    <div class="two"><${Costs} costs=${costs} stats=${stats} /><${Health} list=${list} work=${work} /></div>
    <${Unassigned} list=${list} projects=${projects} />
  </div>`;
}
