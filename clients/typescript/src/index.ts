/** A typed client of `firnline serve`: every route of its REST API, and helpers for the usual ones. */

import createFetch, { type Client as Routes } from "openapi-fetch";
import type { components, paths } from "./schema.js";
import { segment } from "./segment.js";

export type { components, operations, paths } from "./schema.js";
export { segment } from "./segment.js";
export { withMemory, type MemoryOptions } from "./memory.js";

type Schemas = components["schemas"];
/** A message in the OpenAI chat format; unknown fields are kept. */
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
/** The user's message: text, a message, or a message wrapped with its time and metadata. */
export type UserMessage = Schemas["TurnRequest"]["message"];

export interface Abortable {
  /** Cancels waiting for an answer or for the next retry; the server may still finish the request. */
  signal?: AbortSignal | undefined;
}

export interface Keyed extends Abortable {
  /** Your id for this request: repeating it with the same key has no further effect. Random by default. */
  idempotencyKey?: string | undefined;
}

export interface Options {
  /** Where the server is, such as `http://localhost:8080`. */
  baseUrl: string;
  /** An API key; not needed on the machine where the server runs. */
  key?: string | undefined;
  /** How often a request that is safe to repeat is retried; 3 by default. */
  retries?: number | undefined;
  /** Replaces the global `fetch`. */
  fetch?: ((request: Request) => Promise<Response>) | undefined;
}

/** An error answer of the server (an RFC 9457 problem). */
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

export type Client = ReturnType<typeof createClient>;

/** A client of the server at `baseUrl`. Error answers are thrown as `ProblemError`. */
export function createClient(options: Options) {
  const routes: Routes<paths> = createFetch<paths>({
    baseUrl: options.baseUrl.replace(/\/+$/, "").replace(/\/api\/v1$/, ""), // the server prints its address with /api/v1
    fetch: (request) => sendWithRetries(request, options.fetch ?? fetch, options.retries ?? 3),
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

    /** The messages, word for word; pages are fetched as you iterate. */
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

    /** The conversations by name; pages are fetched as you iterate. */
    conversations(
      more: { project?: string; person?: string; limit?: number } & Abortable = {},
    ): AsyncGenerator<Head, void> {
      const { signal, ...query } = more;
      return items(async (cursor) =>
        answer(
          await routes.GET("/api/v1/conversations", { params: { query: { ...query, cursor } }, signal: signal ?? null }),
        ),
      );
    },

    /** What a person stated in all their conversations, with quotes and times; what holds now, or held `as_of` a time. */
    async facts(
      person: string,
      more: { as_of?: string; known_at?: string; history?: boolean } & Abortable = {},
    ): Promise<Schemas["Fact"][]> {
      const { signal, ...query } = more;
      const request = { params: { path: { person }, query }, signal: signal ?? null };
      return (await answer(await routes.GET("/api/v1/people/{person}/facts", request))).data;
    },

    /** What holds of a person now: the text that contexts carry, and the facts it rests on. */
    async profile(person: string, { signal }: Abortable = {}) {
      const request = { params: { path: { person } }, signal: signal ?? null };
      return answer(await routes.GET("/api/v1/people/{person}", request));
    },

    /** Withdraw a fact by its id: what it replaced holds again. */
    async revertFact(person: string, fact: string, { signal }: Abortable = {}) {
      const request = { params: { path: { person, fact } }, signal: signal ?? null };
      return answer(await routes.POST("/api/v1/people/{person}/facts/{fact}/revert", request));
    },

    /** Erase a person: conversations, their branches, facts, profile and prompts. */
    async erasePerson(person: string, { signal }: Abortable = {}) {
      const request = { params: { path: { person } }, signal: signal ?? null };
      return answer(await routes.DELETE("/api/v1/people/{person}", request));
    },

    /** What a model should see of the conversation now, never more than the budget. */
    async context(conversation: string, more: ContextOptions = {}): Promise<Context> {
      const { signal, ...body } = more;
      const request = { params: at(conversation), body, signal: signal ?? null };
      return answer(await routes.POST("/api/v1/conversations/{conversation}/context", request));
    },

    /** Old messages that match, best first; with `null`, in all conversations. */
    async recall(conversation: string | null, query: string, more: SearchOptions = {}): Promise<Hit[]> {
      const { signal, ...filters } = more;
      const request = { body: { query, ...filters }, signal: signal ?? null };
      const found =
        conversation === null
          ? await routes.POST("/api/v1/search", request)
          : await routes.POST("/api/v1/conversations/{conversation}/search", { params: at(conversation), ...request });
      return answer(found).data;
    },

    /** Store the user's message, get the model's answer, and store it. */
    async turn(conversation: string, message: UserMessage, more: TurnOptions = {}): Promise<Turn> {
      const { idempotencyKey, signal, ...body } = more;
      return answer(
        await routes.POST("/api/v1/conversations/{conversation}/turns", {
          params: { ...at(conversation), header: keyed(idempotencyKey) },
          body: { message, ...body },
          signal: signal ?? null,
        }),
      ) as Turn; // only `stream` requests events
    },

    /**
     * The same, with the answer's text in pieces as it arrives, and the turn at the end. If the answer breaks off, a
     * `ProblemError` with the code `StoreTimeout` is thrown; the pieces that arrived are stored.
     */
    async *stream(conversation: string, message: UserMessage, more: TurnOptions = {}): AsyncGenerator<string | Turn, void> {
      const { idempotencyKey, signal, ...body } = more;
      const { data } = await routes.POST("/api/v1/conversations/{conversation}/turns", {
        params: { ...at(conversation), header: keyed(idempotencyKey) },
        body: { message, ...body, stream: true },
        parseAs: "stream",
        signal: signal ?? null,
      });
      for await (const event of events(data)) {
        if (event.name === "delta") yield (event.data as { text: string }).text;
        else if (event.name === "turn") return yield event.data as Turn;
      }
      throw streamCutOff();
    },

    /** The server computes every hash again; `ok` is false if anything has changed. */
    async verify(conversation: string, more: Schemas["VerifyRequest"] & Abortable = {}) {
      const { signal, ...body } = more;
      const request = { params: at(conversation), body, signal: signal ?? null };
      return answer(await routes.POST("/api/v1/conversations/{conversation}/verify", request));
    },

    /** The log as it is now, as a signed note; if you keep it, a rewritten log shows. */
    async checkpoint(conversation: string, { signal }: Abortable = {}) {
      const request = { params: at(conversation), signal: signal ?? null };
      return (await answer(await routes.POST("/api/v1/conversations/{conversation}/checkpoint", request))).checkpoint;
    },

    /** The proof that entry `seq` is in the log, or that the log only grew `since` a checkpoint. */
    async prove(conversation: string, more: Schemas["ProofRequest"] & Abortable) {
      const { signal, ...body } = more;
      const request = { params: at(conversation), body, signal: signal ?? null };
      return (await answer(await routes.POST("/api/v1/conversations/{conversation}/proof", request))).proof;
    },

    /** Destroy a conversation and everything derived from it; `branches` also destroys the
     * conversations with copies of its messages. The certificate says what `survives`. */
    async erase(conversation: string, { branches, signal }: { branches?: boolean } & Abortable = {}) {
      const query = branches === undefined ? {} : { branches };
      const request = { params: { ...at(conversation), query }, signal: signal ?? null };
      return answer(await routes.DELETE("/api/v1/conversations/{conversation}", request));
    },
  };
}

/** Every item of a list, page by page; `page` fetches one. */
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

/** Server-sent events as they arrive; throws for an `error` event and for a lost connection. */
export async function* events(
  body: ReadableStream<Uint8Array> | null | undefined,
): AsyncGenerator<{ name: string; data: unknown }, void> {
  if (!body) return;
  const reader = body.pipeThrough(new TextDecoderStream() as TransformStream<Uint8Array, string>).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read().catch(throwLost);
      if (done) return;
      const blocks = (rest + value).split(/\r?\n\r?\n/);
      rest = blocks.pop() ?? "";
      for (const block of blocks) {
        const event = parseEvent(block);
        if (event?.name === "error") throw new ProblemError(event.data as Problem);
        if (event) yield event;
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined); // a lost body cannot be canceled
  }
}

function parseEvent(block: string): { name: string; data: unknown } | null {
  const lines = block.split(/\r?\n/);
  const valuesOf = (field: string) =>
    lines.filter((line) => line.startsWith(`${field}:`)).map((line) => line.slice(field.length + 1).trimStart());
  const data = valuesOf("data");
  return data.length === 0 ? null : { name: valuesOf("event")[0] ?? "message", data: JSON.parse(data.join("\n")) };
}

function answer<T>(found: { data?: T }): T {
  return found.data as T; // error answers have been thrown before
}

function keyed(key: string | undefined) {
  return { "idempotency-key": key ?? randomKey() };
}

/** A random key. Not `randomUUID`, which pages without TLS do not have. */
function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The error for an answer that ends too early, as in the Python client. */
function streamCutOff(cause?: unknown): ProblemError {
  const detail = "stream ended without a final event; retry with the same idempotencyKey";
  const about = { type: "urn:firnline:StoreTimeout", title: "", status: 503, code: "StoreTimeout", instance: "" };
  return new ProblemError({ ...about, detail, retryable: true } as Problem, null, { cause });
}

/** An abort comes from the caller; every other error is a lost connection. */
function throwLost(error: unknown): never {
  throw error instanceof TypeError ? streamCutOff(error) : error;
}

async function problemOf(response: Response): Promise<ProblemError> {
  const after = Number(response.headers.get("retry-after"));
  const { status, statusText } = response;
  const unknown = { type: "about:blank", title: statusText, status, code: "", instance: "" };
  const body = (await response.json().catch(() => null)) as Problem | null;
  const problem = body?.code ? body : { ...unknown, detail: `status ${status}`, retryable: false };
  return new ProblemError(problem as Problem, after > 0 ? after : null);
}

const NOT_EXECUTED = new Set(["TooFast", "NotReady", "StoreUnavailable"]); // the request was not executed
/** Codes for answers of a proxy on the way; for most of them the outcome is unknown. */
const PROXY_CODES: Record<number, string> = { 429: "TooFast", 502: "StoreTimeout", 503: "StoreTimeout", 504: "StoreTimeout" };
const RETRY_AFTER_MAX = 60; // seconds

/** Send a request; retry it if that is safe, after a random wait that doubles. */
async function sendWithRetries(
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
      if (!canRetry(problem, repeatable) || wait > RETRY_AFTER_MAX) return response;
      await response.body?.cancel();
    } catch (error) {
      if (last || !repeatable || request.signal.aborted) throw error;
    }
    await pause(wait, request.signal);
  }
}

/** Whether a retry is safe and can succeed. */
function canRetry({ code, status }: ProblemError, repeatable: boolean): boolean {
  const kind = code || PROXY_CODES[status] || "";
  return NOT_EXECUTED.has(kind) || (repeatable && kind === "StoreTimeout");
}

/** Wait; an abort ends it early. */
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
