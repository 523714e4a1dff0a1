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
export type AppendOptions = Omit<Schemas["AppendRequest"], "messages"> & Keyed;
export type ContextOptions = Schemas["ContextRequest"] & Abortable;
export type TurnOptions = Omit<Schemas["TurnRequest"], "message" | "stream"> & Keyed;
export type SearchOptions = Omit<Schemas["SearchRequest"], "query"> & Abortable;
/** What the user says: text, a message, or a message with its time and metadata beside it. */
export type Spoken = Schemas["TurnRequest"]["message"];

export interface Abortable {
  /** Ends the waiting, for an answer and between two tries; what the server has begun it may finish. */
  signal?: AbortSignal | undefined;
}

export interface Keyed extends Abortable {
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
    options?: ErrorOptions,
  ) {
    super(problem.detail, options);
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
    baseUrl: options.baseUrl.replace(/\/+$/, "").replace(/\/api\/v1$/, ""), // the server prints its API's address with it
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
    async append(conversation: string, messages: Schemas["AppendRequest"]["messages"], more: AppendOptions = {}) {
      const { idempotencyKey, signal, ...body } = more;
      return answer(
        await routes.POST("/api/v1/conversations/{conversation}/messages", {
          params: { ...at(conversation), header: keyed(idempotencyKey) },
          body: { messages, ...body },
          signal: signal ?? null,
        }),
      );
    },

    /** The history, word for word, page by page as it is walked. */
    read(
      conversation: string,
      more: { first_seq?: number; last_seq?: number; order?: "asc" | "desc"; limit?: number } & Abortable = {},
    ): AsyncGenerator<Entry, void> {
      const { signal, ...query } = more;
      return items(async (cursor) =>
        answer(
          await routes.GET("/api/v1/conversations/{conversation}/messages", {
            params: { ...at(conversation), query: { ...query, cursor } },
            signal: signal ?? null,
          }),
        ),
      );
    },

    /** The conversations by name, page by page as they are walked. */
    conversations(more: { project?: string; limit?: number } & Abortable = {}): AsyncGenerator<Head, void> {
      const { signal, ...query } = more;
      return items(async (cursor) =>
        answer(
          await routes.GET("/api/v1/conversations", { params: { query: { ...query, cursor } }, signal: signal ?? null }),
        ),
      );
    },

    /** What a model should see of the conversation now, never more than the budget. */
    async context(conversation: string, more: ContextOptions = {}): Promise<Context> {
      const { signal, ...body } = more;
      const asked = { params: at(conversation), body, signal: signal ?? null };
      return answer(await routes.POST("/api/v1/conversations/{conversation}/context", asked));
    },

    /** Old entries that fit, best first; without a conversation, in all of them. */
    async recall(conversation: string | null, query: string, more: SearchOptions = {}): Promise<Hit[]> {
      const { signal, ...filters } = more;
      const asked = { body: { query, ...filters }, signal: signal ?? null };
      const found =
        conversation === null
          ? await routes.POST("/api/v1/search", asked)
          : await routes.POST("/api/v1/conversations/{conversation}/search", { params: at(conversation), ...asked });
      return answer(found).data;
    },

    /** Store what the user says, let the server's model answer, store the answer. */
    async turn(conversation: string, message: Spoken, more: TurnOptions = {}): Promise<Turn> {
      const { idempotencyKey, signal, ...body } = more;
      return answer(
        await routes.POST("/api/v1/conversations/{conversation}/turns", {
          params: { ...at(conversation), header: keyed(idempotencyKey) },
          body: { message, ...body },
          signal: signal ?? null,
        }),
      ) as Turn; // events are asked for by `stream` alone
    },

    /**
     * The same with the answer's text in pieces as it comes, and the turn at last. An answer that breaks off is a
     * problem with the code `StoreTimeout`; what was seen of it is stored.
     */
    async *stream(conversation: string, message: Spoken, more: TurnOptions = {}): AsyncGenerator<string | Turn, void> {
      const { idempotencyKey, signal, ...body } = more;
      const { data } = await routes.POST("/api/v1/conversations/{conversation}/turns", {
        params: { ...at(conversation), header: keyed(idempotencyKey) },
        body: { message, ...body, stream: true },
        parseAs: "stream",
        signal: signal ?? null,
      });
      for await (const { name, data: told } of events(data)) {
        if (name === "delta") yield (told as { text: string }).text;
        else if (name === "turn") return yield told as Turn;
      }
      throw brokenOff();
    },

    /** Every hash derived again by the server; `ok` is false if anything is not as it was. */
    async verify(conversation: string, more: Schemas["VerifyRequest"] & Abortable = {}) {
      const { signal, ...body } = more;
      const asked = { params: at(conversation), body, signal: signal ?? null };
      return answer(await routes.POST("/api/v1/conversations/{conversation}/verify", asked));
    },

    /** Destroy a conversation and all that is derived from it; the answer is the certificate. */
    async erase(conversation: string, { signal }: Abortable = {}) {
      const asked = { params: at(conversation), signal: signal ?? null };
      return answer(await routes.DELETE("/api/v1/conversations/{conversation}", asked));
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

/** Server-sent events as they come; an `error` is thrown, and so is a connection that is lost. */
export async function* events(
  body: ReadableStream<Uint8Array> | null | undefined,
): AsyncGenerator<{ name: string; data: unknown }, void> {
  if (!body) return;
  const reader = body.pipeThrough(new TextDecoderStream() as TransformStream<Uint8Array, string>).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read().catch(lost);
      if (done) return;
      const blocks = (rest + value).split(/\r?\n\r?\n/);
      rest = blocks.pop() ?? "";
      for (const block of blocks) {
        const event = parsed(block);
        if (event?.name === "error") throw new ProblemError(event.data as Problem);
        if (event) yield event;
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined); // of a body that is lost there is nothing to cancel
  }
}

function parsed(block: string): { name: string; data: unknown } | null {
  const lines = block.split(/\r?\n/);
  const told = (field: string) =>
    lines.filter((line) => line.startsWith(`${field}:`)).map((line) => line.slice(field.length + 1).trimStart());
  const data = told("data");
  return data.length === 0 ? null : { name: told("event")[0] ?? "message", data: JSON.parse(data.join("\n")) };
}

function answer<T>(found: { data?: T }): T {
  return found.data as T; // what is not answered well has been thrown
}

function keyed(key: string | undefined) {
  return { "idempotency-key": key ?? chosen() };
}

/** A name that nobody else has chosen. Not `randomUUID`: pages that came without TLS do not have it. */
function chosen(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** What the Python client raises as well if an answer ends too early. */
function brokenOff(cause?: unknown): ProblemError {
  const detail = "the answer broke off; the same idempotencyKey asks for it again";
  const about = { type: "urn:firnline:StoreTimeout", title: "", status: 503, code: "StoreTimeout", instance: "" };
  return new ProblemError({ ...about, detail, retryable: true } as Problem, null, { cause });
}

/** An abort is the caller's own; everything else that ends a body is a lost connection. */
function lost(error: unknown): never {
  throw error instanceof TypeError ? brokenOff(error) : error;
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
/** What it is if somebody on the way says it: with most of these, whether the server did it is not known. */
const UNCODED: Record<number, string> = { 429: "TooFast", 502: "StoreTimeout", 503: "StoreTimeout", 504: "StoreTimeout" };
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
      if (last || response.ok) return response;
      const problem = await problemOf(response.clone());
      wait = Math.max(wait, problem.retryAfter ?? 0);
      if (!mayPass(problem, repeatable) || wait > LONGEST) return response;
      await response.body?.cancel();
    } catch (error) {
      if (last || !repeatable || request.signal.aborted) throw error;
    }
    await pause(wait, request.signal);
  }
}

/** Whether the same request may be sent again, and may go well then. */
function mayPass({ code, status }: ProblemError, repeatable: boolean): boolean {
  const known = code || UNCODED[status] || "";
  return UNTOUCHED.has(known) || (repeatable && known === "StoreTimeout");
}

/** Wait so many seconds; who aborts does not have to. */
function pause(seconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, seconds * 1000);
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
  });
}
