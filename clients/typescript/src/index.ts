/** A typed client of `firnline serve`: every route of its REST API, and helpers for the usual ones. */

import createFetch, { type Client as Routes } from "openapi-fetch";
import type { components, paths } from "./schema.js";

export type { components, operations, paths } from "./schema.js";

type Schemas = components["schemas"];
/** A message in the OpenAI chat shape; unknown fields are kept. */
export type Message = Schemas["Entry"]["message"];
export type Entry = Schemas["Entry"];
export type Head = Schemas["Head"];
export type Hit = Schemas["Hit"];
export type Context = Schemas["Context"];
export type Turn = Schemas["Turn"];
export type Problem = Schemas["Problem"];
export type AppendOptions = Omit<Schemas["AppendAsk"], "messages"> & Keyed;
export type ContextOptions = Schemas["ContextAsk"];
export type TurnOptions = Omit<Schemas["TurnAsk"], "message" | "stream"> & Keyed;
export type SearchOptions = Omit<Schemas["SearchAsk"], "query">;

export interface Keyed {
  /** Your name for this request: sent again with it, nothing happens twice. Chosen unless given. */
  idempotencyKey?: string | undefined;
}

export interface Options {
  /** Where the server is, such as `http://localhost:8080`. */
  baseUrl: string;
  /** An API key; on the server's own machine none is needed. */
  key?: string | undefined;
  /** How often a request is tried again that cannot happen twice by that. */
  retries?: number | undefined;
  /** Instead of the global one. */
  fetch?: ((request: Request) => Promise<Response>) | undefined;
}

/** What the server refuses or cannot do, as it says it (RFC 9457). */
export class ProblemError extends Error {
  override readonly name = "ProblemError";

  constructor(
    readonly problem: Problem,
    readonly retryAfter: number | null = null,
  ) {
    super(problem.detail);
  }

  get status(): number {
    return this.problem.status;
  }

  /** The error's stable name, such as `UnknownConversation`. */
  get code(): string {
    return this.problem.code;
  }

  get retryable(): boolean {
    return this.problem.retryable;
  }
}

/** A name as one segment of a path: `~` is `~0`, `/` is `~1`, and `.` and `..` begin with `~2`. */
export function segment(name: string): string {
  const written = name.replaceAll("~", "~0").replaceAll("/", "~1");
  return encodeURIComponent(written === "." || written === ".." ? `~2${written.slice(1)}` : written);
}

export type Client = ReturnType<typeof createClient>;

/** A client of the server at `baseUrl`. Whatever is not answered well is thrown. */
export function createClient(options: Options) {
  const routes: Routes<paths> = createFetch<paths>({
    baseUrl: options.baseUrl.replace(/\/+$/, ""),
    fetch: (request) => patient(request, options.fetch ?? fetch, options.retries ?? 3),
    pathSerializer: (path, values) =>
      path.replace(/\{(\w+)\}/g, (_, name: string) => segment(String(values[name]))),
    ...(options.key === undefined ? {} : { headers: { authorization: `Bearer ${options.key}` } }),
  });
  routes.use({
    async onResponse({ response }) {
      if (!response.ok) throw await problemOf(response);
    },
  });
  const at = (conversation: string) => ({ path: { conversation } });

  return {
    /** Every route with its types: `client.routes.GET("/api/v1/me")`. */
    routes,

    /** Add messages to the end of a conversation, all or none; durable when this returns. */
    async append(conversation: string, messages: Schemas["AppendAsk"]["messages"], more: AppendOptions = {}) {
      const { idempotencyKey, ...body } = more;
      const params = { ...at(conversation), header: keyed(idempotencyKey) };
      return answer(
        await routes.POST("/api/v1/conversations/{conversation}/messages", { params, body: { messages, ...body } }),
      );
    },

    /** The history, word for word, page by page as it is walked. */
    read(
      conversation: string,
      query: { first_seq?: number; last_seq?: number; order?: "asc" | "desc"; limit?: number } = {},
    ): AsyncGenerator<Entry, void> {
      return items(async (cursor) =>
        answer(
          await routes.GET("/api/v1/conversations/{conversation}/messages", {
            params: { ...at(conversation), query: { ...query, cursor } },
          }),
        ),
      );
    },

    /** The conversations by name, page by page as they are walked. */
    conversations(query: { project?: string; limit?: number } = {}): AsyncGenerator<Head, void> {
      return items(async (cursor) =>
        answer(await routes.GET("/api/v1/conversations", { params: { query: { ...query, cursor } } })),
      );
    },

    /** What a model should see of the conversation now, never more than the budget. */
    async context(conversation: string, body: ContextOptions = {}): Promise<Context> {
      const params = at(conversation);
      return answer(await routes.POST("/api/v1/conversations/{conversation}/context", { params, body }));
    },

    /** Old entries that fit, best first; without a conversation, in all of them. */
    async recall(conversation: string | null, query: string, more: SearchOptions = {}): Promise<Hit[]> {
      const body = { query, ...more };
      const found =
        conversation === null
          ? await routes.POST("/api/v1/search", { body })
          : await routes.POST("/api/v1/conversations/{conversation}/search", { params: at(conversation), body });
      return answer(found).data;
    },

    /** Store what the user says, let the server's model answer, store the answer. */
    async turn(conversation: string, message: string | Message, more: TurnOptions = {}): Promise<Turn> {
      const { idempotencyKey, ...body } = more;
      const params = { ...at(conversation), header: keyed(idempotencyKey) };
      return answer(
        await routes.POST("/api/v1/conversations/{conversation}/turns", { params, body: { message, ...body } }),
      ) as Turn; // events are asked for by `stream` alone
    },

    /** The same with the answer's text in pieces as it comes, and the turn at last. */
    async *stream(
      conversation: string,
      message: string | Message,
      more: TurnOptions = {},
    ): AsyncGenerator<string | Turn, void> {
      const { idempotencyKey, ...body } = more;
      const { data } = await routes.POST("/api/v1/conversations/{conversation}/turns", {
        params: { ...at(conversation), header: keyed(idempotencyKey) },
        body: { message, ...body, stream: true },
        parseAs: "stream",
      });
      for await (const { name, data: told } of events(data)) {
        if (name === "delta") yield (told as { text: string }).text;
        else if (name === "turn") return yield told as Turn;
      }
      throw new Error("the answer broke off; the same idempotencyKey asks for it again");
    },

    /** Every hash derived again by the server; `ok` is false if anything is not as it was. */
    async verify(conversation: string, body: Schemas["VerifyAsk"] = {}) {
      const params = at(conversation);
      return answer(await routes.POST("/api/v1/conversations/{conversation}/verify", { params, body }));
    },

    /** Destroy a conversation and all that is derived from it; the answer is the certificate. */
    async erase(conversation: string) {
      return answer(await routes.DELETE("/api/v1/conversations/{conversation}", { params: at(conversation) }));
    },
  };
}

/** Every item of a list, page by page, given how a page is had. */
export async function* items<T>(
  page: (cursor: string | null) => Promise<{ data: T[]; next_cursor: string | null }>,
): AsyncGenerator<T, void> {
  let cursor: string | null = null;
  do {
    const found: { data: T[]; next_cursor: string | null } = await page(cursor);
    yield* found.data;
    cursor = found.next_cursor;
  } while (cursor !== null);
}

/** Server-sent events as they come; an `error` is thrown. */
export async function* events(
  body: ReadableStream<Uint8Array> | null | undefined,
): AsyncGenerator<{ name: string; data: unknown }, void> {
  if (!body) return;
  const reader = body.pipeThrough(new TextDecoderStream() as TransformStream<Uint8Array, string>).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop() ?? "";
      for (const block of blocks) {
        const event = parsed(block);
        if (event?.name === "error") throw new ProblemError(event.data as Problem);
        if (event) yield event;
      }
    }
  } finally {
    await reader.cancel();
  }
}

function parsed(block: string): { name: string; data: unknown } | null {
  const lines = block.split("\n");
  const told = (field: string) =>
    lines.filter((line) => line.startsWith(`${field}:`)).map((line) => line.slice(field.length + 1).trimStart());
  const data = told("data");
  return data.length === 0 ? null : { name: told("event")[0] ?? "message", data: JSON.parse(data.join("\n")) };
}

function answer<T>(found: { data?: T }): T {
  return found.data as T; // what is not answered well has been thrown
}

function keyed(key: string | undefined) {
  return { "idempotency-key": key ?? crypto.randomUUID() };
}

async function problemOf(response: Response): Promise<ProblemError> {
  const after = Number(response.headers.get("retry-after"));
  const { status, statusText } = response;
  const unknown = { type: "about:blank", title: statusText, status, code: "", instance: "" };
  const said = (await response.json().catch(() => null)) as Problem | null;
  const problem = said?.code ? said : { ...unknown, detail: `status ${status}`, retryable: false };
  return new ProblemError(problem as Problem, after > 0 ? after : null);
}

const UNTOUCHED = new Set(["TooFast", "NotReady", "StoreUnavailable"]); // nothing was done then
const LONGEST = 60; // seconds that a server may ask to be left alone

/** Send a request, again if nothing can happen twice by that, after a random wait that doubles. */
async function patient(
  request: Request,
  send: (request: Request) => Promise<Response>,
  retries: number,
): Promise<Response> {
  const repeatable = request.method === "GET" || request.headers.has("idempotency-key");
  for (let tried = 0; ; tried += 1) {
    const last = tried >= retries;
    let wait = Math.random() * Math.min(8, 0.25 * 2 ** tried);
    try {
      const response = await send(last ? request : request.clone());
      if (last || ![429, 503].includes(response.status)) return response;
      const problem = await problemOf(response.clone());
      if (!repeatable && !UNTOUCHED.has(problem.code)) return response;
      wait = Math.max(wait, problem.retryAfter ?? 0);
      if (wait > LONGEST) return response;
      await response.body?.cancel();
    } catch (error) {
      if (last || !repeatable || request.signal.aborted) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, wait * 1000));
  }
}
