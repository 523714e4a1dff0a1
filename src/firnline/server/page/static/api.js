// The REST API, as the page uses it. Every answer is JSON; every error is a Problem.

const KEY = 'firnline.key';

/** What went wrong, in the server's own words (RFC 9457). */
export class Problem extends Error {
  constructor(status, body) {
    super(body?.detail || body?.error?.message || `the server answered ${status}`);
    this.status = status;
    this.code = body?.code || '';
    this.retryable = Boolean(body?.retryable);
    this.floor = body?.floor; // the tokens that a context needs at least
  }
}

export const key = {
  get: () => sessionStorage.getItem(KEY) || '',
  set: (value) => (value ? sessionStorage.setItem(KEY, value) : sessionStorage.removeItem(KEY)),
};

let scopes = null;
/** What the server says that the key may do: "read", "write", "admin". */
export const allow = (granted) => { scopes = granted; };
/** What the server says of itself: who answers, and how it searches. */
export const server = { current: {} };
/** Whether the key may do it; as long as the server has not said, it may. */
export const may = (scope) => !scopes || scopes.includes(scope);

function headers(more) {
  return key.get() ? { authorization: `Bearer ${key.get()}`, ...more } : { ...more };
}

/** A name as one segment of a path: see "Names in paths" in docs/rest.md. */
export function segment(name) {
  let written = name.replaceAll('~', '~0').replaceAll('/', '~1');
  if (written === '.' || written === '..') written = `~2${written.slice(1)}`;
  return encodeURIComponent(written);
}

/** The path of a conversation, and of what is below it. */
export const at = (name, rest = '') => `/conversations/${segment(name)}${rest}`;

function query(values) {
  const given = Object.entries(values || {}).filter(([, v]) => v !== '' && v !== null && v !== undefined);
  const pairs = given.flatMap(([k, v]) => (Array.isArray(v) ? v.map((one) => [k, one]) : [[k, v]]));
  return pairs.length ? `?${new URLSearchParams(pairs)}` : '';
}

async function send(method, path, { body, params, signal, accept, raw, type, extra, root = '/api/v1' } = {}) {
  const sent = headers({ accept: accept || 'application/json', ...extra });
  if (body !== undefined) sent['content-type'] = type || 'application/json';
  let response;
  try {
    response = await fetch(`${root}${path}${query(params)}`, {
      method, headers: sent, signal, body: body === undefined ? undefined : raw ? body : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Problem(0, { detail: 'The server cannot be reached. Is it still running?', retryable: true });
  }
  if (!response.ok) throw new Problem(response.status, await response.json().catch(() => null));
  return response;
}

async function json(method, path, options) {
  const response = await send(method, path, options);
  return response.status === 204 ? null : response.json();
}

export const get = (path, params, signal) => json('GET', path, { params, signal });
export const post = (path, body = {}, options = {}) => json('POST', path, { body, ...options });
export const put = (path, body = {}) => json('PUT', path, { body });
export const patch = (path, body = {}) => json('PATCH', path, { body });
export const del = (path) => json('DELETE', path);
export const download = (path, params) => send('GET', path, { params, accept: '*/*' });
export const upload = (path, file, type) => json('POST', path, { body: file, raw: true, type });

/** The names of the models behind the proxy; it is their own list, whatever shape it has. */
export async function models() {
  const found = await json('GET', '/models', { root: '/v1' });
  return (found?.data || []).map((one) => one?.id).filter((id) => typeof id === 'string').sort();
}

export const LISTED = 5000;

/** Every page of a list, up to `most` items. */
export async function all(path, params = {}, most = LISTED) {
  const found = [];
  let cursor;
  do {
    const page = await get(path, { limit: 500, ...params, cursor });
    found.push(...page.data);
    cursor = page.next_cursor;
  } while (cursor && found.length < most);
  return found;
}

/** What browsers say of a broken connection, each in its own way. */
function lost(error) {
  if (error.name === 'AbortError') throw error;
  throw new Problem(0, { detail: 'The connection to the server broke.', retryable: true });
}

/** Server-sent events as they come: `[name, data]`. */
export async function* events(method, path, options = {}) {
  const response = await send(method, path, { ...options, accept: 'text/event-stream' });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  try {
    for (;;) {
      const { value, done } = await reader.read().catch(lost);
      if (done) return;
      rest += value;
      let end;
      while ((end = rest.search(/\r?\n\r?\n/)) >= 0) {
        const lines = rest.slice(0, end).split(/\r?\n/);
        rest = rest.slice(end).replace(/^\r?\n\r?\n/, '');
        const name = lines.find((l) => l.startsWith('event:'))?.slice(6).trim() || 'message';
        const data = lines.filter((l) => l.startsWith('data:')).map((l) => l.slice(5).replace(/^ /, '')).join('\n');
        if (data) yield [name, JSON.parse(data)];
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
