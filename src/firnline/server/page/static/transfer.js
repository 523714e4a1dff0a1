// Taking conversations elsewhere and bringing them back, with progress.

import { useEffect, useRef, useState } from 'preact/hooks';
import { download, events, key, post, upload } from './api.js';
import { Act, Box, html, number, percent, plural } from './ui.js';
import { Facts, save } from './pieces.js';

/** Follow a job to its end; `tell` gets it again and again. */
async function follow(job, tell) {
  tell(job);
  for await (const [, now] of events('GET', `/jobs/${job.id}/events`)) tell(now);
}

function Progress({ job, unit }) {
  const share = job.total ? job.done / job.total : 0;
  const word = { running: 'is running', done: 'is done', failed: 'failed' }[job.state];
  return html`<div role="status"><label>The ${job.kind} ${word}: ${number(job.done)}${job.total ? ` of ${number(job.total)}` : ''} ${unit}${job.total ? `, ${percent(share)}` : ''}
    <progress max="1" value=${job.state === 'done' ? 1 : share} /></label>
    ${job.error && html`<p class="wrong" role="alert">${job.error.detail}</p>`}</div>`;
}

async function fetched(job, filename) {
  save(filename, await (await download(job.file.replace('/api/v1', ''))).blob());
}

/** One conversation, or everything there is. */
export function Export({ name, level }) {
  const [job, tell] = useState(null);
  const filename = `${(name || 'firnline').replace(/[^\w.-]+/g, '-').slice(0, 80) || 'conversation'}.jsonl`;
  const run = async () => follow(await post('/exports', name ? { conversations: [name] } : {}), tell);
  // Without a key the browser can fetch the file by itself; with one only this page can.
  const open = job?.file && (key.get() ? html`<${Act} class="strong" run=${() => fetched(job, filename)}>Download<//>`
    : html`<a class="button" href=${job.file} download=${filename}>Download</a>`);
  return html`<${Box} title="Export" level=${level}>
    <p class="meta">Messages, digests and topics as JSON Lines, with a manifest that proves that the file is complete.</p>
    <div class="row"><${Act} class="strong" run=${run}>${name ? 'Export this conversation' : 'Export everything'}<//>${open}</div>
    ${job && html`<${Progress} job=${job} unit="messages" />`}
    ${job?.result && html`<${Facts} of=${Object.entries(job.result).filter(([id, value]) => typeof value !== 'object' && id !== 'added').map(([id, value]) => [id.replaceAll('_', ' '), typeof value === 'number' ? number(value) : html`<code class="hash">${String(value)}</code>`])} />`}
  <//>`;
}

export function Import({ changed, level }) {
  const [job, tell] = useState(null);
  const [file, choose] = useState(null);
  const run = async () => {
    await follow(await upload(`/import?name=${encodeURIComponent(file.name)}`, file, 'application/octet-stream'), tell);
    changed();
  };
  return html`<${Box} title="Import" level=${level} needs="write">
    <p class="meta">Conversations from an export: of Firnline, ChatGPT, Claude, Gemini, Claude Code, Codex, Telegram, WhatsApp, LangChain, ShareGPT, mem0 or a fine-tuning set, zipped or not. The format is detected, and importing it again adds nothing.</p>
    <label>File <input type="file" accept=".jsonl,.ndjson,.json,.zip,.txt" onChange=${(e) => { choose(e.target.files[0] || null); tell(null); }} /></label>
    <div class="row"><${Act} run=${run} disabled=${!file}>Import it<//></div>
    ${job && html`<${Progress} job=${job} unit="bytes" />`}
    ${job?.report && html`<${Found} report=${job.report} />`}
  <//>`;
}

/** Everything in and out, from anywhere on the page. */
export function TransferDialog({ changed, close }) {
  const dialog = useRef(null);
  useEffect(() => { dialog.current.showModal(); }, []);
  return html`<dialog ref=${dialog} class="wide" onClose=${close} aria-label="Export and import"><div class="stack boxes"><${Export} level="h2" /><${Import} level="h2" changed=${changed} /></div>
    <div class="row end"><button type="button" class="quiet" onClick=${() => dialog.current.close()}>Close</button></div></dialog>`;
}

/** What was in the file, and what could not be taken as it was. */
function Found({ report }) {
  const noted = (title, notes) => Object.keys(notes).length > 0 && html`<details><summary>${title}</summary>
    <ul>${Object.entries(notes).map(([what, { count, examples }]) => html`<li key=${what}>${number(count)} × ${what} <span class="meta">${examples.join('; ')}</span></li>`)}</ul></details>`;
  return html`<p>${plural(report.conversations, 'conversation')} with ${plural(report.messages, 'message')} read as ${report.formats.join(', ')}; ${number(report.added)} were new.</p>
    ${noted('Not understood', report.not_understood)}${noted('Left out', report.left_out)}`;
}
