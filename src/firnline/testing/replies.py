"""The answers of `ModelServer`, and how each fault changes them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import cycle, islice
from typing import Any, Final, TypeAlias

from firnline.log.message import Message
from firnline.log.tokens import count_tokens
from firnline.testing.scripted_model import text_of

Request: TypeAlias = dict[str, Any]
Answer: TypeAlias = "str | Mapping[str, Any] | Message"

FAULTS: Final[Mapping[str, str]] = {
    "refused": "connections are refused for `pause` seconds",
    "reset": "the connection is reset instead of an answer",
    "408": "any status: an error with that status",
    "429": "too many requests, with the header Retry-After: `retry_after`",
    "500": "a server error",
    "503": "overloaded",
    "context_length": "400, the request is too long for the model",
    "slow": "the first byte comes after `pause` seconds",
    "trickle": "one byte every `pause` seconds",
    "cut": "the connection closes in the middle of the answer",
    "invalid_body": "200 with a body that is not JSON",
    "error_body": "200 with an error in the body",
    "no_choices": "200 with an empty list of choices",
    "invalid_json": "the answer's text is incomplete JSON",
    "empty": "the answer's text is empty",
    "overlong": "the answer's text is far longer than requested",
    "refusal": "the answer's text is a refusal",
    "refusal_field": "the answer has a refusal instead of text",
    "length": "the answer is cut off at the maximum length: finish_reason=length",
    "content_filter": "the answer is withheld: finish_reason=content_filter",
}
"""Every fault by name, and what it does."""

BODIES: Final[Mapping[str, bytes]] = {
    "invalid_body": b'{"choices": [{"mess',
    "error_body": b'{"error": {"message": "the upstream failed", "code": "upstream"}}',
    "no_choices": b'{"object": "chat.completion", "choices": []}',
}
"""Bodies that are sent with status 200 by faults that replace the completion."""

_REFUSAL: Final = "I'm sorry, but I can't help with that."
_OVERLONG_WORDS: Final = 4_000


def is_status(fault: str) -> bool:
    """Whether a fault is an HTTP status, as text."""
    return fault.isdecimal() and len(fault) == 3 and fault[0] in "345"


def to_message(answer: Answer) -> dict[str, Any]:
    """A scripted answer as the assistant's message."""
    if isinstance(answer, Message):
        answer = answer.to_openai()
    if isinstance(answer, str):
        answer = {"content": answer}
    return {"role": "assistant", "content": None, "refusal": None, **answer}


def spoiled(message: dict[str, Any], fault: str | None) -> tuple[dict[str, Any], str]:
    """The message as changed by the fault, and the finish reason."""
    text = text_of(message)
    contents = {
        "empty": "",
        "content_filter": "",
        "refusal": _REFUSAL,
        "refusal_field": None,
        "invalid_json": 'Sure, here it is:\n```json\n{"items": [{"text": "and then',
        "overlong": " ".join(islice(cycle(text.split() or ["more"]), _OVERLONG_WORDS)),
        "length": " ".join(text.split()[: max(1, len(text.split()) // 2)]),
    }
    if fault not in contents:
        return message, "tool_calls" if message.get("tool_calls") else "stop"
    spoiled = {"role": "assistant", "content": contents[fault], "refusal": None}
    if fault == "refusal_field":
        spoiled["refusal"] = _REFUSAL
    return spoiled, fault if fault in ("length", "content_filter") else "stop"


def chunks_of(message: Mapping[str, Any], reason: str) -> Iterator[dict[str, Any]]:
    """The message as deltas: word by word, tool calls with their arguments in two halves."""

    def chunk(delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
        return {"index": 0, "delta": delta, "finish_reason": finish_reason}

    yield chunk({"role": "assistant", "content": ""})
    if message.get("refusal"):
        yield chunk({"refusal": message["refusal"]})
    for piece in pieces_of(text_of(message)):
        yield chunk({"content": piece})
    for index, call in enumerate(message.get("tool_calls") or ()):
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        half = len(arguments) // 2
        first = {"name": name, "arguments": arguments[:half]}
        opening = {"index": index, "id": call["id"], "type": "function", "function": first}
        yield chunk({"tool_calls": [opening]})
        rest = {"index": index, "function": {"arguments": arguments[half:]}}
        yield chunk({"tool_calls": [rest]})
    yield chunk({}, reason)


def pieces_of(text: str) -> list[str]:
    """A text word by word."""
    return re.findall(r"\S*\s+|\S+", text)


def prompt_tokens(request: Request) -> int:
    """The tokens of a request, tools included."""
    return count_tokens(request["messages"], tools=request.get("tools") or ())


def usage_of(request: Request, message: Mapping[str, Any]) -> dict[str, int]:
    """The usage that the provider would report."""
    prompt, answer = prompt_tokens(request), count_tokens(dict(message))
    return {
        "prompt_tokens": prompt,
        "completion_tokens": int(answer),
        "total_tokens": prompt + answer,
    }
