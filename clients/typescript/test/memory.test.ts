import assert from "node:assert/strict";
import { test } from "node:test";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, streamText, type ModelMessage } from "ai";
import { createClient, withMemory } from "../src/index.js";

const baseUrl = process.env["FIRNLINE_URL"] ?? "http://localhost:8080";
const key = process.env["FIRNLINE_KEY"];
const client = createClient({ baseUrl, key });

async function count(conversation: string): Promise<number> {
  let found = 0;
  for await (const _ of client.read(conversation)) found += 1;
  return found;
}

for (const api of ["responses", "chat"] as const) {
  test(`Vercel's AI SDK has a memory over ${api}`, async () => {
    const conversation = `vercel/${api}`;
    const openai = createOpenAI({ apiKey: "sk", fetch: withMemory(fetch, { baseUrl, key, conversation }) });
    const model = openai[api]("gpt-4o");
    const first = await generateText({ model, prompt: "The key is under the blue pot." });
    assert.ok(first.text);
    const streamed = streamText({ model, prompt: "Where is the key?" });
    let text = "";
    for await (const piece of streamed.textStream) text += piece;
    assert.match(text, /blue pot/);
    assert.equal(await count(conversation), 4);
  });
}

test("a history that the AI SDK sends whole is one conversation", async () => {
  const openai = createOpenAI({ apiKey: "sk", fetch: withMemory(fetch, { baseUrl, key, user: "ann" }) });
  const messages: ModelMessage[] = [];
  for (const content of ["The gate's code is 4711.", "Thanks.", "What is the gate's code?"]) {
    messages.push({ role: "user", content });
    const done = await generateText({ model: openai("gpt-4o"), messages });
    messages.push(...done.response.messages);
  }
  const last = messages.at(-1);
  assert.match(JSON.stringify(last?.content), /4711/);
});

test("other requests are not changed", async () => {
  const seen: string[] = [];
  const inner: typeof fetch = async (input) => {
    seen.push(String(input instanceof Request ? input.url : input));
    return new Response("{}");
  };
  const remembering = withMemory(inner, { baseUrl: "http://memory:8080/", conversation: "a/b" });
  await remembering("https://api.example/v1/models");
  await remembering(new URL("https://api.example/v1/messages?beta=true"));
  await remembering(new Request("https://api.example/openai/v1/chat/completions", { method: "POST", body: "{}" }));
  await remembering("https://api.example/v1/responses/resp_1");
  assert.deepEqual(seen, [
    "https://api.example/v1/models",
    "http://memory:8080/c/a~1b/v1/messages?beta=true",
    "http://memory:8080/c/a~1b/v1/chat/completions",
    "http://memory:8080/v1/responses/resp_1",
  ]);
});
