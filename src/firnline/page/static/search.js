import { html } from './ui.js';
export const Search = () => html`<div class="page"><h1>Search</h1></div>`;
