"""Anthropic's requests in OpenAI's protocol, and the answers back in Anthropic's. Pure."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Final

from firnline.errors import InputError
from firnline.log.message import Message, Part, encode_json
from firnline.log.wire import anthropic_blocks, load_anthropic
from firnline.server.proxy import blocks
from firnline.server.proxy.blocks import framed
from firnline.server.proxy.dialect import OPENAI, Body
from firnline.server.proxy.openai_stream import Asking

MARGIN_TOKENS: Final = 64
"""What a translation may add: a message of its own for pictures that tools return."""
_SAME: Final = ("model", "stream", "temperature", "top_p")
_TEXT_START: Final = {
    "type": "content_block_start",
    "index": 0,
    "content_block": {"type": "text", "text": ""},
}
_CHOICES: Final = {"auto": "auto", "any": "required", "none": "none"}
_REASONS: Final = {
    "": "end_turn",
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
}


# -- the request ------------------------------------------------------------------------------


def translated(body: Mapping[str, Any], limit: str) -> Body:
    """A request of Anthropic's as one of OpenAI's; `limit` is its name for the longest answer.

    Its messages are still ours: most of them need not be sent, see `TRANSLATED`. What OpenAI's
    protocol has no word for is left out. `InputError` for tools that only Anthropic's own endpoint
    can run.
    """
    found: Body = {name: body[name] for name in _SAME if body.get(name) is not None}
    found["messages"] = load_anthropic(body)
    if body.get("tools"):
        found["tools"] = [_tool(tool) for tool in listed(body["tools"], "tools")]
    found |= _choice(body.get("tool_choice"))
    if body.get("max_tokens"):
        found[limit] = body["max_tokens"]
    if body.get("stop_sequences"):
        found["stop"] = body["stop_sequences"]
    wanted = body.get("output_config")
    form = wanted.get("format") if isinstance(wanted, Mapping) else None
    if isinstance(form, Mapping) and form.get("type") == "json_schema":
        schema = {"name": "answer", "schema": form.get("schema"), "strict": True}
        found["response_format"] = {"type": "json_schema", "json_schema": schema}
    return found


def _load(body: Mapping[str, Any]) -> list[Message]:
    return list(body["messages"])


def _put(body: Body, messages: Sequence[Message]) -> Body:
    return {**body, "messages": messages}


def _finish(body: Body) -> Body:
    return OPENAI.finish({**body, "messages": chat_messages(body["messages"])})


TRANSLATED: Final = replace(OPENAI, load=_load, put=_put, finish=_finish, margin=MARGIN_TOKENS)
"""OpenAI's shape, but that the messages of a request are ours until it is sent."""


def listed(value: object, what: str) -> list[Mapping[str, Any]]:
    """A list of objects; `InputError` if it is none."""
    if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
        raise InputError(f"{what}: expected a list of objects")
    return value


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    if tool.get("type") not in (None, "custom"):
        raise InputError(
            f"tools: {str(tool['type'])[:80]} is run by Anthropic's own endpoint; "
            "there is none behind this server (FIRNLINE_ANTHROPIC)"
        )
    function = {"name": tool.get("name"), "parameters": tool.get("input_schema") or {}}
    for name in ("description", "strict"):
        if tool.get(name) is not None:
            function[name] = tool[name]
    return {"type": "function", "function": function}


def _choice(choice: object) -> dict[str, Any]:
    if not isinstance(choice, Mapping):
        return {}
    found: dict[str, Any] = {}
    kind = str(choice.get("type"))
    if kind == "tool":
        found["tool_choice"] = {"type": "function", "function": {"name": choice.get("name")}}
    elif kind in _CHOICES:
        found["tool_choice"] = _CHOICES[kind]
    if choice.get("disable_parallel_tool_use"):
        found["parallel_tool_calls"] = False
    return found


# -- its messages -----------------------------------------------------------------------------


def chat_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The messages in the OpenAI shape, Anthropic's blocks in OpenAI's words.

    A tool's message has text alone there; its pictures follow behind the last result as the user's.
    """
    found: list[dict[str, Any]] = []
    pictures: list[dict[str, Any]] = []
    for message in messages:
        if message.role != "tool" and pictures:
            found.append({"role": "user", "content": pictures})
            pictures = []
        parts = _chat_parts(message)
        if message.role == "tool" and parts is not None:
            pictures += [part for part in parts if part["type"] != "text"]
            parts = [part for part in parts if part["type"] == "text"]
        found.append(_chat_message(message, parts))
    return [*found, {"role": "user", "content": pictures}] if pictures else found


def _chat_message(message: Message, parts: list[dict[str, Any]] | None) -> dict[str, Any]:
    written = message.to_openai()
    if parts is None:
        return {**written, "content": written.get("content") or _nothing(message)}
    one = parts[0] if len(parts) == 1 else {}
    if not parts:
        return {**written, "content": _nothing(message)}
    return {**written, "content": one["text"] if one.get("type") == "text" else parts}


def _nothing(message: Message) -> str | None:
    return None if message.role == "assistant" and message.tool_calls else ""


def _chat_parts(message: Message) -> list[dict[str, Any]] | None:
    if not isinstance(message.content, tuple):
        return None
    return [part for given in message.content for part in _chat_part(given)]


def _chat_part(part: Part) -> Iterator[dict[str, Any]]:
    """A part in OpenAI's words. Thoughts are not for others, and have no word there."""
    source = part.fields.get("source")
    if part.kind == "text":
        yield {"type": "text", "text": part.text}
    elif part.kind == "reasoning":
        return
    elif part.type in ("image", "document") and isinstance(source, dict):
        yield from _chat_source(part, source)
    elif part.kind == "unknown":
        yield {"type": "text", "text": encode_json(part.fields)}
    else:
        yield dict(part.fields)


def _chat_source(part: Part, source: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A picture or a document, wherever it is."""
    kind, image = source.get("type"), part.type == "image"
    inside = f"data:{source.get('media_type')};base64,{source.get('data')}"
    if image and kind in ("base64", "url"):
        yield {"type": "image_url", "image_url": {"url": source.get("url") or inside}}
    elif not image and kind == "base64":
        name = str(part.fields.get("title") or "document.pdf")
        yield {"type": "file", "file": {"filename": name, "file_data": inside}}
    elif not image and kind == "text":
        yield {"type": "text", "text": str(source.get("data") or "")}
    else:
        yield {"type": "text", "text": encode_json(part.fields)}


# -- the answer -------------------------------------------------------------------------------


def answer(asking: Asking) -> dict[str, Any]:
    """The whole answer as the client gets it."""
    content = anthropic_blocks(asking.message)
    found = blocks.answer(asking.model, content, _reason(asking), usage_of(asking.usage))
    if refusal := asking.fields.get("refusal"):
        found["stop_details"] = {"type": "refusal", "category": None, "explanation": refusal}
    return found


async def streamed(
    asking: Asking, arriving: AsyncGenerator[tuple[str, str], None], tokens: int
) -> AsyncGenerator[tuple[str, str], None]:
    """The events of an answer from the chunks of one; `tokens` is what the request takes.

    Text comes as it arrives, calls when they are complete: half of one is of no use to anybody.
    """
    model = str(asking.body.get("model") or "")
    head = blocks.answer(model, [], None, {"input_tokens": tokens, "output_tokens": 0})
    yield "", framed({"type": "message_start", "message": head})
    spoke = False
    async with aclosing(arriving) as chunks:
        async for text, data in chunks:
            if text and not spoke:
                spoke = True
                yield "", framed(_TEXT_START)
            if text:
                delta = {"type": "text_delta", "text": text}
                yield text, framed({"type": "content_block_delta", "index": 0, "delta": delta})
            elif '"tool_calls"' in data:
                yield "", framed(blocks.PING)
    if spoke:
        yield "", framed({"type": "content_block_stop", "index": 0})
    for _, event in _rest(answer(asking), int(spoke)):
        yield "", framed(event)


def _rest(whole: Mapping[str, Any], first: int) -> Iterator[tuple[str, dict[str, Any]]]:
    calls = [block for block in whole["content"] if block["type"] == "tool_use"]
    for index, call in enumerate(calls, first):
        yield from blocks.block_events(index, call)
    for event in blocks.ending(whole):
        yield "", event


def _reason(asking: Asking) -> str:
    if asking.fields.get("refusal"):
        return "refusal"
    if asking.fields.get("tool_calls"):
        return "tool_use"
    reason = reason_of(asking.finish_reason)
    return "end_turn" if reason == "tool_use" else reason  # the calls were of our own tools


def reason_of(finish_reason: str) -> str:
    """Why an answer ended, in Anthropic's words, whosever they are."""
    return _REASONS.get(finish_reason, finish_reason)


def usage_of(usage: Mapping[str, Any]) -> dict[str, int]:
    """What an answer cost, in Anthropic's words: what came from a cache is counted apart."""
    details = usage.get("prompt_tokens_details")
    cached = (details.get("cached_tokens") or 0) if isinstance(details, Mapping) else 0
    found = {
        "input_tokens": max((usage.get("prompt_tokens") or 0) - cached, 0),
        "output_tokens": usage.get("completion_tokens") or 0,
    }
    return {**found, "cache_read_input_tokens": cached} if cached else found
