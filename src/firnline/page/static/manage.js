import { html } from './ui.js';
export const Manage = () => html`<p class="empty">…</p>`;
