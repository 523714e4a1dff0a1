import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { createClient, events, ProblemError, segment, type Client, type Entry, type Turn } from "../src/index.js";

const baseUrl = process.env["FIRNLINE_URL"] ?? "http://localhost:8080";
const key = process.env["FIRNLINE_KEY"];
const client = createClient({ baseUrl, key });

async function every<T>(found: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of found) all.push(item);
  return all;
}

test("messages go in and come out word for word, page by page", async () => {
  const said = Array.from({ length: 7 }, (_, n) => ({ role: "user" as const, content: `message ${n}`, mark: n }));
  const added = await client.append("log", said, { expected_seq: 0 });
  assert.equal(added.seq, 6);
  const found: Entry[] = await every(client.read("log", { limit: 3 }));
  assert.deepEqual(found.map((entry) => entry.message), said);
  assert.deepEqual(found, added.data);
  const newest = await every(client.read("log", { order: "desc", last_seq: 2 }));
  assert.deepEqual(newest.map((entry) => entry.seq), [2, 1, 0]);
  const heads = await every(client.conversations({ limit: 1 }));
  assert.ok(heads.some((head) => head.conversation === "log"));
  assert.equal((await client.verify("log")).ok, true);
});

test("the same key stores nothing twice", async () => {
  const once = () => client.append("once", [{ role: "user", content: "x" }], { idempotencyKey: "k" });
  assert.deepEqual([(await once()).replayed, (await once()).replayed], [false, true]);
  assert.equal((await every(client.read("once"))).length, 1);
});

for (const name of [".", "..", "a/b", "~1", "%2F", "ü 🙂", "a?b#c", "~"]) {
  test(`the name ${name} is one segment`, async () => {
    await client.append(name, [{ role: "user", content: name }]);
    assert.deepEqual((await every(client.read(name))).map((entry) => entry.message.content), [name]);
    const { data } = await client.routes.GET("/api/v1/conversations/{conversation}", {
      params: { path: { conversation: name } },
    });
    assert.equal(data?.conversation, name);
    assert.equal(data?.url, `/api/v1/conversations/${segment(name)}`);
  });
}

test("a turn comes whole, and in pieces", async () => {
  await client.append("talk", [{ role: "user", content: "The key is under the blue pot." }]);
  const whole: Turn = await client.turn("talk", "Where is the key?");
  assert.match(whole.text, /blue pot/);
  let text = "";
  let turn: Turn | undefined;
  for await (const piece of client.stream("talk", "Where was the key?")) {
    if (typeof piece === "string") text += piece;
    else turn = piece;
  }
  assert.equal(turn?.text, text);
  assert.equal(turn?.answer.seq, 4);
});

test("contexts and recall are typed", async () => {
  const context = await client.context("talk", { budget: 1_000, question: "key" });
  assert.ok(context.tokens <= context.budget.window_tokens);
  const hits = await client.recall("talk", "blue pot", { limit: 1 });
  assert.match(String(hits[0]?.entry.message.content), /blue pot/);
  assert.ok((await client.recall(null, "blue pot")).length > 0);
  // @ts-expect-error a field that there is not
  void context.misspelt;
  // @ts-expect-error an option that there is not
  await assert.rejects(client.context("talk", { budgt: 1 }), ProblemError);
});

test("problems are thrown as they are told", async () => {
  await assert.rejects(client.context("nowhere"), (error: ProblemError) => {
    assert.deepEqual([error.status, error.code, error.retryable], [404, "UnknownConversation", false]);
    assert.match(error.message, /nowhere/);
    return true;
  });
  await assert.rejects(client.append("log", [{ role: "user", content: "late" }], { expected_seq: 0 }), {
    code: "ConflictError",
  });
  await assert.rejects(client.context("talk", { budget: 10, system: "long ".repeat(99) }), (error: ProblemError) =>
    Boolean(error.problem.floor && error.problem.floor > 10),
  );
});

test("the API's address does as well as the server's", async () => {
  const other = createClient({ baseUrl: `${baseUrl}/api/v1/`, ...(key === undefined ? {} : { key }) });
  assert.deepEqual((await other.routes.GET("/api/v1/me")).data, (await client.routes.GET("/api/v1/me")).data);
});

test("a key is sent", { skip: !key }, async () => {
  assert.equal((await client.routes.GET("/api/v1/me")).data?.key === "local", false);
  await assert.rejects(createClient({ baseUrl, key: "fl_wrong" }).routes.GET("/api/v1/me"), { status: 401 });
});

test("everything goes out and in again", async () => {
  const { data } = await client.routes.GET("/api/v1/export", { parseAs: "text" });
  const lines = String(data).trimEnd().split("\n");
  assert.ok(JSON.parse(lines.at(-1) ?? "").manifest.sha256);
  const { data: job } = await client.routes.POST("/api/v1/import", {
    body: String(data),
    bodySerializer: (body) => body,
    headers: { "content-type": "application/jsonl" },
  });
  assert.equal(job?.kind, "import");
  const { data: told } = await client.routes.GET("/api/v1/jobs/{job}/events", {
    params: { path: { job: job?.id ?? "" } },
    parseAs: "stream",
  });
  const names = (await every(events(told))).map((event) => event.name);
  assert.equal(names.at(-1), "done");
  const erased = await client.erase("once");
  assert.equal(erased.entries, 1);
});

type Said = [status: number, body: string, headers?: Record<string, string>];

/** A server that says what it is told to, one answer after the other; one of status 0 breaks off behind its body. */
async function failing(answers: Said[], use: (url: string) => Promise<void>): Promise<number> {
  let asked = 0;
  const server = createServer((_, response) => {
    const [status, body, headers] = answers[Math.min(asked, answers.length - 1)] ?? [500, ""];
    asked += 1;
    if (status !== 0) response.writeHead(status, { "content-type": "application/json", ...headers }).end(body);
    else if (body === "") response.destroy();
    else response.write(body, () => setTimeout(() => response.destroy(), 20));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
  return asked;
}

const append = (url: string) => createClient({ baseUrl: url }).append("c", [{ role: "user", content: "x" }]);

test("what cannot happen twice is tried again, and no more often than said", async () => {
  const stored = JSON.stringify({ data: [], seq: 0, replayed: true });
  const well = async (url: string) => assert.equal((await append(url)).replayed, true);
  assert.equal(await failing([[503, "<h1>"], [0, ""], [200, stored]], well), 3);
  assert.equal(await failing([[502, "<h1>"], [504, "<h1>"], [429, "<h1>"], [200, stored]], well), 4);
  const model = JSON.stringify({ code: "ModelError", status: 502, detail: "", retryable: true });
  const told = async (url: string) => assert.rejects(append(url), { code: "ModelError" });
  assert.equal(await failing([[502, model]], told), 1);
  const never = async (url: string) => assert.rejects(append(url), { status: 503 });
  assert.equal(await failing([[503, "<h1>"]], never), 4);
});

test("what could happen twice is not, unless nothing was done", async () => {
  const erase = (url: string) => createClient({ baseUrl: url }).erase("c");
  assert.equal(await failing([[503, "<h1>"]], async (url) => assert.rejects(erase(url), { status: 503 })), 1);
  assert.equal(await failing([[0, ""]], async (url) => assert.rejects(erase(url))), 1);
  const busy = JSON.stringify({ code: "NotReady", status: 503, detail: "", retryable: true });
  const erased = JSON.stringify({ entries: 1 });
  const well = async (url: string) => assert.equal((await erase(url)).entries, 1);
  assert.equal(await failing([[503, busy], [200, erased]], well), 2);
});

const DELTA = 'event: delta\ndata: {"text":"h\u00e9"}\n\n';

test("an answer that breaks off is a problem, wherever it does, and lines may end as they like", async () => {
  const pieces: (string | Turn)[] = [];
  const walk = async (url: string) => {
    for await (const piece of createClient({ baseUrl: url }).stream("c", "x")) pieces.push(piece);
  };
  const broken = async (url: string) => assert.rejects(walk(url), { name: "ProblemError", code: "StoreTimeout" });
  assert.equal(await failing([[200, DELTA]], broken), 1);
  assert.equal(await failing([[0, DELTA]], broken), 1);
  assert.deepEqual(pieces, ["h\u00e9", "h\u00e9"]);
  const whole = (DELTA + "event: turn\ndata: {}\n\n").replaceAll("\n", "\r\n");
  await failing([[200, whole]], walk);
  assert.deepEqual(pieces.slice(2), ["h\u00e9", {}]);
});

test("who aborts does not wait, and sends nothing of it", async () => {
  const busy: Said = [503, "<h1>", { "retry-after": "30" }];
  type Verb = (client: Client, signal: AbortSignal) => Promise<unknown>;
  const verbs: Verb[] = [
    (client, signal) => client.append("c", [{ role: "user", content: "x" }], { signal }),
    (client, signal) => client.turn("c", "x", { signal }),
    (client, signal) => client.stream("c", "x", { signal }).next(),
    (client, signal) => client.read("c", { signal }).next(),
    (client, signal) => client.conversations({ signal }).next(),
  ];
  const began = Date.now();
  for (const verb of verbs) {
    const controller = new AbortController();
    const abortedLater = async (request: Request) => {
      const response = await fetch(request);
      setTimeout(() => controller.abort(), 20); // while it waits to try again
      return response;
    };
    const givenUp = async (baseUrl: string) =>
      assert.rejects(verb(createClient({ baseUrl, fetch: abortedLater }), controller.signal), { name: "AbortError" });
    assert.equal(await failing([busy], givenUp), 1);
  }
  assert.ok(Date.now() - began < 25_000);
  const signal = AbortSignal.abort();
  await assert.rejects(client.context("talk", { signal }), { name: "AbortError" });
  await assert.rejects(client.recall("talk", "pot", { signal }), { name: "AbortError" });
  await assert.rejects(client.verify("talk", { signal }), { name: "AbortError" });
  await assert.rejects(client.erase("talk", { signal }), { name: "AbortError" });
  const patient = { signal: AbortSignal.timeout(60_000) };
  assert.equal((await client.append("signalled", [{ role: "user", content: "x" }], patient)).seq, 0);
});

test("a page that came without TLS chooses keys, too", async () => {
  Object.defineProperty(crypto, "randomUUID", { value: undefined, configurable: true });
  try {
    assert.equal((await client.append("plain page", [{ role: "user", content: "x" }])).replayed, false);
    assert.equal((await client.append("plain page", [{ role: "user", content: "x" }])).replayed, false);
  } finally {
    Reflect.deleteProperty(crypto, "randomUUID"); // the one of its prototype is seen again
  }
});

test("a turn keeps what its message has beside it", async () => {
  const metadata = { ticket: 7, closed: null };
  const turn = await client.turn("beside", { message: { role: "user", content: "Where?" }, metadata });
  assert.deepEqual(turn.question.metadata, metadata);
});
