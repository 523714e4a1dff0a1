import { html } from './ui.js';
export const Turns = () => html`<p class="empty">…</p>`;
