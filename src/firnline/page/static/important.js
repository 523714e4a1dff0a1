import { html } from './ui.js';
export const Important = () => html`<p class="empty">…</p>`;
