/** A `fetch` whose requests to models go through Firnline, for any SDK that takes one. */

import { segment } from "./segment.js";

export interface MemoryOptions {
  /** Where the server is, such as `http://localhost:8080`. */
  baseUrl: string;
  /** The conversation; without it, it is recognized by its history. */
  conversation?: string | undefined;
  /** Whose conversation it is, if several people use one key. */
  user?: string | undefined;
  /** An API key of Firnline, in place of the provider's. */
  key?: string | undefined;
}

/** The paths of OpenAI's and Anthropic's protocols, behind whatever a provider puts before them. */
const MODEL = /\/(chat\/completions|responses(?:\/.*)?|conversations(?:\/.*)?|messages(?:\/count_tokens)?)$/;
/** Those that a conversation's name may precede. */
const NAMED = /^(chat\/completions|responses|messages|messages\/count_tokens)$/;

/** The same `fetch`, with a memory; requests that do not go to a model are not changed. */
export function withMemory(inner: typeof fetch, options: MemoryOptions): typeof fetch {
  return (input, init) => {
    const given = new URL(input instanceof Request ? input.url : input);
    const path = MODEL.exec(given.pathname)?.[1];
    if (path === undefined) return inner(input, init);
    const named = options.conversation !== undefined && NAMED.test(path);
    const start = named ? `/c/${segment(options.conversation ?? "")}` : "";
    const target = new URL(`${options.baseUrl.replace(/\/+$/, "")}${start}/v1/${path}${given.search}`);
    const headers = new Headers(init?.headers ?? (input instanceof Request ? input.headers : undefined));
    if (options.user !== undefined) headers.set("x-firnline-user", options.user);
    if (options.key !== undefined) {
      headers.delete("x-api-key");
      headers.set("authorization", `Bearer ${options.key}`);
    }
    if (!(input instanceof Request)) return inner(target, { ...init, headers });
    const moved = { method: input.method, body: input.body, signal: input.signal, duplex: "half" };
    return inner(target, { ...moved, ...init, headers } as RequestInit);
  };
}
