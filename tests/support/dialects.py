"""A chat client for each way through the proxy: the official SDKs behind the same verbs.

OpenAI's SDK, and Anthropic's, whose requests go to an endpoint of Anthropic's in their own shape
(native) or to one of OpenAI's protocol (translated).
"""

import json
import re
from dataclasses import dataclass
from functools import cache
from typing import Any

import anthropic
import httpx2
import openai

from firnline.testing import call_tool
from firnline.testing.strategy_conformance import reference_encoder
from support.live_server import running

MODEL = "gpt-4o"  # counted exactly, so the budget can be kept to the last token
FACT = "By the way, the vault's code word is Kestrel-7741, please keep it in mind."
FILLER = "We walked along the river towards the old mill and talked about {n} and the {n}th bridge."
PNG = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
CITY = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOLS = [
    {"name": name, "description": f"Tells the {name}.", "input_schema": CITY}
    for name in ("weather", "clock")
]
# One for all tests: to make one takes longer than to ask.
HTTP = httpx2.Client(timeout=60, limits=httpx2.Limits(max_keepalive_connections=0))


@dataclass(frozen=True)
class Reply:
    """An answer as any of the SDKs returns it; `message` is what goes back with the history."""

    message: Any
    text: str
    calls: tuple[tuple[str, str], ...]
    """The id and the name of each."""
    wants_results: bool
    prompt_tokens: int

    @property
    def names(self):
        return [name for _, name in self.calls]


class OpenAIDialect:
    """OpenAI's SDK."""

    def __init__(self):
        self.name, self.path, self.reserved = "openai", "/v1/chat/completions", 0

    def behind(self, model, **settings):
        """A server with the model behind it."""
        return running(upstream=model.url, **settings)

    @staticmethod
    @cache
    def _client(url, retries):
        options = {"api_key": "sk-mine", "max_retries": retries, "http_client": HTTP}
        return openai.OpenAI(base_url=f"{url}/v1", **options)

    def ask(self, url, history, *, stream=False, checked=True, system="", retries=0, **more):
        """The answer. Unless it is `checked`, the SDK does not look through the history, which
        takes longer than all that the server does if there are hundreds of messages."""
        messages = [{"role": "system", "content": system}, *history] if system else history
        if "tools" in more:
            more["tools"] = [_openai_tool(tool) for tool in more["tools"]]
        if not checked:
            more["extra_body"], messages = {"messages": messages}, []
        chat = self._client(url, retries).chat.completions
        request = {"model": MODEL, "messages": messages, **more}
        if not stream:
            return self._reply(chat.create(**request))
        with chat.stream(**request, stream_options={"include_usage": True}) as events:
            return self._reply(events.get_final_completion())

    @staticmethod
    def _reply(done):
        (choice,) = done.choices
        message = choice.message.model_dump(exclude={"parsed"})
        calls = tuple((call.id, call.function.name) for call in choice.message.tool_calls or ())
        paid = done.usage.prompt_tokens if done.usage else 0
        ended = choice.finish_reason == "tool_calls"
        return Reply(message, choice.message.content or "", calls, ended, paid)

    @staticmethod
    def question(text, *, picture=False):
        image = {"url": f"data:image/png;base64,{PNG['data']}"}
        parts = [{"type": "text", "text": text}, {"type": "image_url", "image_url": image}]
        return {"role": "user", "content": parts if picture else text}

    @staticmethod
    def results(calls, text):
        return [{"role": "tool", "tool_call_id": call, "content": text} for call, _ in calls]


def _openai_tool(tool):
    about = {"name": tool["name"], "description": tool["description"]}
    return {"type": "function", "function": {**about, "parameters": tool["input_schema"]}}


class AnthropicDialect:
    """Anthropic's SDK, with an endpoint of its own protocol or of OpenAI's behind the proxy."""

    def __init__(self, name):
        self.name, self.path, self.reserved = name, "/v1/messages", 500

    def behind(self, model, **settings):
        """A server with the model behind it."""
        place = "anthropic" if self.name == "native" else "upstream"
        return running(**{place: model.url, **settings})

    @staticmethod
    @cache
    def _client(url, retries):
        options = {"api_key": "sk-mine", "max_retries": retries, "http_client": HTTP}
        return anthropic.Anthropic(base_url=url, **options)

    def ask(self, url, history, *, stream=False, checked=True, retries=0, **more):
        """See `OpenAIDialect.ask`."""
        if not checked:
            more["extra_body"], history = {"messages": history}, []
        messages = self._client(url, retries).messages
        request = {"model": MODEL, "max_tokens": self.reserved, "messages": history, **more}
        if not stream:
            return self._reply(messages.create(**request))
        with messages.stream(**request) as events:
            return self._reply(events.get_final_message())

    @staticmethod
    def _reply(done):
        text = "".join(block.text for block in done.content if block.type == "text")
        calls = tuple((b.id, b.name) for b in done.content if b.type == "tool_use")
        ended = done.stop_reason == "tool_use"
        return Reply(done.to_param(), text, calls, ended, done.usage.input_tokens)

    @staticmethod
    def question(text, *, picture=False):
        parts = [{"type": "text", "text": text}, {"type": "image", "source": PNG}]
        return {"role": "user", "content": parts if picture else text}

    @staticmethod
    def results(calls, text):
        parts = [{"type": "tool_result", "tool_use_id": call, "content": text} for call, _ in calls]
        return [{"role": "user", "content": parts}]


DIALECTS = {
    dialect.name: dialect
    for dialect in (OpenAIDialect(), AnthropicDialect("native"), AnthropicDialect("translated"))
}


# -- what a test reads ------------------------------------------------------------------------


def entries(server, conversation=None):
    """The messages of the only conversation, or of the one that is named."""
    if conversation is None:
        (conversation,) = heads(server)
    return [entry.message for entry in server.run(server.memory().read(conversation))]


def heads(server):
    found = server.run(server.memory().conversations(limit=1_000))
    return [head.conversation for head in found]


@cache  # the same texts are in request after request
def size(text):
    return len(reference_encoder().encode(text, disallowed_special=()))


def texts_in(value):
    """All that is said in a request, whatever the protocol: texts, names, inputs."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        hidden = ("type", "id", "tool_use_id", "tool_call_id", "role", "source", "image_url")
        return [t for k, v in value.items() if k not in hidden for t in texts_in(v)]
    return [t for item in value for t in texts_in(item)] if isinstance(value, list) else []


def reference_tokens(request):
    """What a request takes, counted here with the reference encoder, not by Firnline."""
    total = 3 + sum(map(size, texts_in(request.get("system") or "")))
    for message in request["messages"]:
        total += 3 + sum(map(size, texts_in(message)))
    tools = [json.dumps(tool, separators=(",", ":")) for tool in request.get("tools") or ()]
    return total + sum(map(size, tools))


# -- models -----------------------------------------------------------------------------------


def both_tools(number=0):
    """A model's message that calls both tools at once."""
    calls = [call_tool(name, {"city": "Rome"})["tool_calls"][0] for name in ("weather", "clock")]
    calls = [{**call, "id": f"{call['id']}_{number}"} for call in calls]
    return {"content": "Let me see.", "tool_calls": calls}


def answered_by_prompt(request):
    """A model that knows only what is in its prompt, and calls tools when it is told to."""
    last = request["messages"][-1]
    text = [text for text in texts_in(last["content"]) if text.strip()][-1]
    if last["role"] == "tool" or "tool_result" in json.dumps(last):
        return "The tools have answered."
    if "use both tools" in text:
        return both_tools(text[-6:].strip())
    if "code word" in text and text.endswith("?"):
        found = re.search(r"Kestrel-\d+", json.dumps(request["messages"]))
        return f"It is {found.group()}." if found else "I do not know."
    return f"Noted, {len(text)} letters of it."


def recalling(request):
    """A model that recalls before it answers, if it can."""
    names = {tool.get("name") or tool["function"]["name"] for tool in request.get("tools") or ()}
    last = json.dumps(request["messages"][-1])
    if "Kestrel" in last and ("tool_result" in last or '"tool"' in last):
        return "Found: Kestrel-7741"
    if "search_history" in names and "recall" in last:
        call = call_tool("search_history", {"query": "vault code word"})["tool_calls"]
        return {"content": "Let me look.", "tool_calls": call}
    if "mixed" in last:
        pair = ("search_history", "clock")
        calls = [call_tool(name, {"query": "x"})["tool_calls"][0] for name in pair]
        return {"content": None, "tool_calls": calls}
    return "Noted."
