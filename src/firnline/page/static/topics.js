import { html } from './ui.js';
export const Topics = () => html`<p class="empty">…</p>`;
