import { html } from './ui.js';
export const Digests = () => html`<p class="empty">…</p>`;
