import { html } from './ui.js';
export const Dashboard = () => html`<div class="page"><h1>Dashboard</h1></div>`;
