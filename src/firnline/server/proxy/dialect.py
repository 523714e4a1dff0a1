"""How a protocol writes a request: where its messages and tools are, and how more are added. Pure.

The flow through the proxy is the same for all of them; see `exchange` and `rounds`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from firnline.context.tools import Tool
from firnline.log.message import Message
from firnline.log.wire import (
    anthropic_turns,
    dump_anthropic,
    dump_openai,
    load_anthropic,
    load_openai,
)

Body: TypeAlias = dict[str, Any]

_MARKS_MAX: Final = 4
_MARK: Final = "cache_control"
_OPENING_TOKENS: Final = 64
_SENT: Final = frozenset({"role", "content", "name", "tool_calls", "function_call", "refusal"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One protocol's requests.

    `load` reads a body's messages, `put` puts others in their place, `add` appends more. `offer`
    writes a tool, `tool_name` reads its name, `withdraw` takes tools away again by their names.
    `finish` is the last touch before a request goes to `path`. `margin` is what `put` may add to
    the messages, in tokens.
    """

    path: str
    load: Callable[[Mapping[str, Any]], list[Message]]
    put: Callable[[Body, Sequence[Message]], Body]
    add: Callable[[Body, Sequence[Message]], Body]
    offer: Callable[[Tool], dict[str, Any]]
    tool_name: Callable[[object], object]
    withdraw: Callable[[Body, Collection[str]], Body]
    finish: Callable[[Body], Body]
    margin: int = 0


# -- OpenAI -----------------------------------------------------------------------------------


def _openai_load(body: Mapping[str, Any]) -> list[Message]:
    return load_openai(body["messages"])


def _openai_put(body: Body, messages: Sequence[Message]) -> Body:
    """Of an answer, as much goes back as the client sends back itself: not what only answers have.

    Some endpoints refuse their own thoughts and notes in a request.
    """
    theirs = (message for message in body["messages"] if message.get("role") == "assistant")
    known = _SENT.union(*theirs)
    return {**body, "messages": [_sent_back(message, known) for message in dump_openai(messages)]}


def _sent_back(message: Body, known: Collection[str]) -> Body:
    if message["role"] != "assistant":
        return message
    sent = {name: value for name, value in message.items() if name in known}
    audio = message.get("audio")
    if isinstance(audio, Mapping) and "id" in audio:
        sent["audio"] = {"id": audio["id"]}
    return sent


def _openai_add(body: Body, messages: Sequence[Message]) -> Body:
    return {**body, "messages": [*body["messages"], *dump_openai(messages)]}


def _openai_withdraw(body: Body, names: Collection[str]) -> Body:
    tools = body.get("tools") or ()
    others = [tool for tool in tools if _openai_name(tool) not in names]
    if others:
        return {**body, "tools": others}
    return {key: value for key, value in body.items() if key not in ("tools", "tool_choice")}


def _openai_name(tool: object) -> object:
    function = tool.get("function") if isinstance(tool, Mapping) else None
    return function.get("name") if isinstance(function, Mapping) else None


def _openai_finish(body: Body) -> Body:
    """We want to know what it cost, whether the client does or not."""
    if not body.get("stream"):
        return body
    given = body.get("stream_options")
    options = given if isinstance(given, dict) else {}
    return {**body, "stream_options": {**options, "include_usage": True}}


OPENAI: Final = Shape(
    path="/chat/completions",
    load=_openai_load,
    put=_openai_put,
    add=_openai_add,
    offer=Tool.to_openai,
    tool_name=_openai_name,
    withdraw=_openai_withdraw,
    finish=_openai_finish,
)


# -- Anthropic --------------------------------------------------------------------------------


def _anthropic_put(body: Body, messages: Sequence[Message]) -> Body:
    dumped = dump_anthropic(messages)
    rest = {key: value for key, value in body.items() if key != "system"}
    system = {"system": dumped["system"]} if dumped["system"] else {}
    # The log holds the marks of every turn; of these, as many are sent as the client sends now.
    elsewhere = marks({**rest, **system, "messages": []})
    most = min(marks(body.get("messages")), _MARKS_MAX - elsewhere)
    return {**rest, **system, "messages": unmarked(dumped["messages"], max(most, 0))}


def marks(value: object) -> int:
    """How many marks for the provider's prompt cache there are."""
    if isinstance(value, Mapping):
        return bool(value.get(_MARK)) + sum(marks(v) for k, v in value.items() if k != _MARK)
    return sum(map(marks, value)) if isinstance(value, list) else 0


def unmarked(turns: Sequence[Body], keep: int) -> list[Body]:
    """The turns with the last `keep` of their marks for the prompt cache."""
    found: list[Body] = []
    for turn in reversed(turns):
        content, keep = _unmarked(turn["content"], keep)
        found.append({**turn, "content": content})
    return found[::-1]


def _unmarked(blocks: Sequence[Body], keep: int) -> tuple[list[Body], int]:
    found: list[Body] = []
    for given in reversed(blocks):
        block = given
        if block.get(_MARK):
            if keep <= 0:
                block = {key: value for key, value in block.items() if key != _MARK}
            keep -= 1
        if block.get("type") == "tool_result" and isinstance(block.get("content"), list):
            content, keep = _unmarked(block["content"], keep)
            block = {**block, "content": content}
        found.append(block)
    return found[::-1], keep


def _anthropic_add(body: Body, messages: Sequence[Message]) -> Body:
    return {**body, "messages": [*body["messages"], *anthropic_turns(messages)]}


def _anthropic_name(tool: object) -> object:
    return tool.get("name") if isinstance(tool, Mapping) else None


def _anthropic_withdraw(body: Body, names: Collection[str]) -> Body:
    """Where calls are in the messages, tools must be named; then none of them may be called."""
    tools = body.get("tools") or []
    others = [tool for tool in tools if _anthropic_name(tool) not in names]
    return {**body, "tools": others} if others else {**body, "tool_choice": {"type": "none"}}


ANTHROPIC: Final = Shape(
    path="/messages",
    load=load_anthropic,
    put=_anthropic_put,
    add=_anthropic_add,
    offer=Tool.to_anthropic,
    tool_name=_anthropic_name,
    withdraw=_anthropic_withdraw,
    finish=dict,
    margin=_OPENING_TOKENS,
)
