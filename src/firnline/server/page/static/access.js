// The API key of this tab: asked for if the server requires one, viewed, changed and forgotten.

import { useEffect, useRef, useState } from 'preact/hooks';
import { key } from './api.js';
import { html, Name } from './ui.js';

/** Everything was loaded with the old key, so the page is loaded again, and drafts are deleted. */
function begin(token) {
  sessionStorage.clear();
  key.set(token);
  location.reload();
}

const Field = ({ label, typed, set }) => html`<label>${label} <input type="password" value=${typed} onInput=${(e) => set(e.target.value)} autocomplete="off" required /></label>`;

/** Shown instead of the page if there is no valid key. */
export function KeyForm({ again, error }) {
  const [typed, set] = useState('');
  const [before, wait] = useState(null);
  const checking = before === error; // of the key that was entered nothing has been said yet
  const enter = (event) => { event.preventDefault(); wait(error); key.set(typed.trim()); again(); };
  return html`<main class="gate"><form class="card" onSubmit=${enter}>
    <h1>Firnline</h1>
    <p>This server requires an API key. Create one with <code>firnline keys create</code>. It is kept in this tab only.</p>
    ${key.get() && !checking && html`<p class="trouble" role="alert">The key was rejected: ${error.message}</p>`}
    <${Field} label="API key" typed=${typed} set=${set} />
    <button class="strong">${checking ? 'Opening …' : 'Open'}</button>
  </form></main>`;
}

/** Whose key it is and what it may do; another one, or none. */
export function KeyDialog({ me, close }) {
  const dialog = useRef(null);
  const [typed, set] = useState('');
  useEffect(() => { dialog.current.showModal(); }, []);
  const enter = (event) => { event.preventDefault(); if (typed.trim()) begin(typed.trim()); };
  return html`<dialog ref=${dialog} onClose=${close} aria-label="API key">
    <h2>API key</h2>
    <p>Key <b><${Name}>${me.key}<//></b> of tenant <b><${Name}>${me.tenant}<//></b> may ${me.scopes.join(', ')}. It is kept in this tab only.</p>
    <form class="stack" onSubmit=${enter}>
      <${Field} label="Another key" typed=${typed} set=${set} />
      <p class="meta">Unsent drafts are deleted with the key.</p>
      <div class="row end"><button type="button" class="quiet" onClick=${() => dialog.current.close()}>Cancel</button>
        <button type="button" onClick=${() => begin('')}>Forget the key</button>
        <button class="strong" disabled=${!typed.trim()}>Use this one</button></div>
    </form>
  </dialog>`;
}
