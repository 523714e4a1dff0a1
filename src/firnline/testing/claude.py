"""Anthropic's Messages API for `ModelServer`: its rules, answers and events. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from firnline.log.message import encode_json
from firnline.log.tokens import count_tokens
from firnline.testing.replies import Request, pieces_of

PATH: Final = "/v1/messages"
_MARKS_MAX: Final = 4
_IMAGE_TOKENS: Final = 1_600
_KINDS: Final = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_REASONS: Final = {"length": "max_tokens", "content_filter": "refusal"}


BODIES: Final[Mapping[str, bytes]] = {
    "invalid_body": b'{"content": [{"ty',
    "error_body": b'{"type": "error", "error": {"type": "overloaded_error", "message": "Busy"}}',
    "no_choices": b'{"type": "message", "role": "assistant"}',
}
"""Bodies that are sent with status 200 by faults that replace the answer."""


def error_body(status: int, message: str) -> dict[str, Any]:
    """An error in Anthropic's format."""
    kind = _KINDS.get(status, "invalid_request_error" if status < 500 else "api_error")
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


# -- the provider's rules ---------------------------------------------------------------------


def complaint(request: Request, window_tokens: int | None = None) -> str | None:
    """The reason why Anthropic would reject the request, or None."""
    if (problem := _problem(request)) is not None or window_tokens is None:
        return problem
    tokens = prompt_tokens(request)
    if tokens > window_tokens:
        return f"prompt is too long: {tokens} tokens > {window_tokens} maximum"
    return None


def _problem(request: Request) -> str | None:
    messages = request.get("messages")
    if not isinstance(request.get("max_tokens"), int):
        return "max_tokens: Field required"
    if not isinstance(messages, list) or not messages:
        return "messages: at least one message is required"
    if _marks(request) > _MARKS_MAX:
        return f"A maximum of {_MARKS_MAX} blocks with cache_control may be provided"
    for at, message in enumerate(messages):
        if problem := _turn_problem(messages, at, message):
            return f"messages.{at}: {problem}"
    if _ids(messages[-1], "tool_use", "id"):
        return "`tool_use` ids were found without `tool_result` blocks at the end"
    uses = any(_ids(message, "tool_use", "id") for message in messages)
    if uses and not request.get("tools"):
        return "Requests which include `tool_use` or `tool_result` blocks must define tools"
    return _thinking_problem(request, messages)


def _turn_problem(messages: Sequence[Any], at: int, message: Any) -> str | None:
    role = message.get("role") if isinstance(message, dict) else None
    if role != ("user", "assistant")[at % 2]:
        return f"roles must alternate, the user first; not {role!r}"
    if unknown := set(message) - {"role", "content"}:
        return f"{sorted(unknown)}: Extra inputs are not permitted"
    blocks = _blocks(message)
    if not blocks:
        return "all messages must have non-empty content"
    if any(b["type"] == "text" and not b["text"].strip() for b in blocks):
        return "text content blocks must contain non-whitespace text"
    called = _ids(messages[at - 1], "tool_use", "id") if at else []
    results = _ids(message, "tool_result", "tool_use_id")
    if sorted(called) != sorted(results):
        return f"`tool_use` ids {called}, but `tool_result` ids {results}"
    kinds = [block["type"] == "tool_result" for block in blocks]
    if kinds != sorted(kinds, reverse=True):
        return "`tool_result` blocks must come first"
    return None


def _thinking_problem(request: Request, messages: Sequence[Any]) -> str | None:
    """Thinking blocks must be signed, and sent back with tool results."""
    for message in messages:
        for block in _blocks(message):
            if block["type"] == "thinking" and not block.get("signature"):
                return "thinking.signature: Field required"
    on = (request.get("thinking") or {}).get("type") in ("enabled", "adaptive")
    waits = _ids(messages[-1], "tool_result", "tool_use_id")
    if on and waits and not _blocks(messages[-2])[0]["type"].endswith("thinking"):
        return "Expected `thinking` or `redacted_thinking`, but found another block"
    return None


def _marks(value: object) -> int:
    if isinstance(value, dict):
        return ("cache_control" in value) + sum(map(_marks, value.values()))
    return sum(map(_marks, value)) if isinstance(value, list) else 0


def _blocks(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else content or []


def _ids(message: Mapping[str, Any], kind: str, name: str) -> list[str]:
    return [str(block.get(name)) for block in _blocks(message) if block["type"] == kind]


# -- requests in the OpenAI format ------------------------------------------------------------


def as_chat(request: Request) -> Request:
    """The request in the OpenAI format: texts, calls and results; images are ignored."""
    messages: list[dict[str, Any]] = []
    if system := text_of(request.get("system")):
        messages.append({"role": "system", "content": system})
    for message in request["messages"]:
        messages += _chat(message)
    tools = [
        {
            "type": "function",
            "function": {"name": tool["name"], "parameters": tool.get("input_schema", {})},
        }
        for tool in request.get("tools") or ()
    ]
    choice = request.get("tool_choice") or {}
    chosen: Any = "required" if choice.get("type") == "any" else "auto"
    if choice.get("type") == "tool":
        chosen = {"type": "function", "function": {"name": choice["name"]}}
    return {"messages": messages, "tools": tools, "tool_choice": chosen}


def _chat(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    blocks = _blocks(message)
    for block in blocks:
        if block["type"] == "tool_result":
            content = text_of(block.get("content"))
            yield {"role": "tool", "tool_call_id": block["tool_use_id"], "content": content}
    said: dict[str, Any] = {"role": message["role"], "content": text_of(blocks)}
    calls = [
        {
            "id": block["id"],
            "type": "function",
            "function": {"name": block["name"], "arguments": encode_json(block["input"])},
        }
        for block in blocks
        if block["type"] == "tool_use"
    ]
    if calls:
        said["tool_calls"] = calls
    if said["content"] or calls:
        yield said


def text_of(content: object) -> str:
    """The text of a message's content or of a system prompt."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    return "\n".join(str(block.get("text", "")) for block in blocks if block["type"] == "text")


def prompt_tokens(request: Request) -> int:
    """The tokens of a request: all of its text and images."""
    texts = [text_of(request.get("system")), encode_json(request.get("tools") or [])]
    pictures = 0
    for message in request["messages"]:
        for block in _blocks(message):
            pictures += block["type"] == "image"
            plain = block["type"] == "text"
            texts.append(block["text"] if plain else encode_json(_without_data(block)))
    return sum(int(count_tokens(text)) for text in texts) + _IMAGE_TOKENS * pictures


def _without_data(block: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in block.items() if key != "source"}


# -- an answer --------------------------------------------------------------------------------


def answer_of(
    request: Request, message: Mapping[str, Any], reason: str, number: int
) -> dict[str, Any]:
    """The whole answer; if a scripted message's content is blocks, it is sent unchanged."""
    content = message.get("content")
    blocks = list(content) if isinstance(content, list) else []
    if isinstance(content, str) and content:
        blocks = [{"type": "text", "text": content}]
    for call in message.get("tool_calls") or ():
        function = call["function"]
        given = json.loads(function["arguments"])
        blocks.append(
            {"type": "tool_use", "id": call["id"], "name": function["name"], "input": given}
        )
    calls = any(block["type"] == "tool_use" for block in blocks)
    usual = "tool_use" if calls else "end_turn"
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": str(request.get("model")),
        "content": blocks,
        "stop_reason": _REASONS.get(reason, usual),
        "stop_sequence": None,
        "usage": {
            "input_tokens": prompt_tokens(request),
            "output_tokens": int(count_tokens(encode_json(blocks))),
        },
    }


def events_of(answer: Mapping[str, Any]) -> Iterator[bytes]:
    """The answer as events: text word by word, input in two halves, a ping in between."""
    usage = {**answer["usage"], "output_tokens": 1}
    empty = {**answer, "content": [], "stop_reason": None, "usage": usage}
    yield _event({"type": "message_start", "message": empty})
    yield _event({"type": "ping"})
    for index, block in enumerate(answer["content"]):
        first, deltas = _in_pieces(block)
        yield _event({"type": "content_block_start", "index": index, "content_block": first})
        for delta in deltas:
            yield _event({"type": "content_block_delta", "index": index, "delta": delta})
        yield _event({"type": "content_block_stop", "index": index})
    ended = {"stop_reason": answer["stop_reason"], "stop_sequence": None}
    paid = {"output_tokens": answer["usage"]["output_tokens"]}
    yield _event({"type": "message_delta", "delta": ended, "usage": paid})
    yield _event({"type": "message_stop"})


def _in_pieces(block: Mapping[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    kind = block["type"]
    if kind == "text":
        pieces = pieces_of(block["text"])
        deltas = [{"type": "text_delta", "text": piece} for piece in pieces]
        return {"type": "text", "text": ""}, deltas
    if kind == "thinking":
        thoughts = [{"type": "thinking_delta", "thinking": p} for p in pieces_of(block["thinking"])]
        signed = {"type": "signature_delta", "signature": block["signature"]}
        return {"type": "thinking", "thinking": "", "signature": ""}, [*thoughts, signed]
    if kind == "tool_use":
        given = encode_json(block["input"])
        half = len(given) // 2
        pieces = ["", given[:half], given[half:]]
        return {**block, "input": {}}, [
            {"type": "input_json_delta", "partial_json": piece} for piece in pieces
        ]
    return dict(block), []


def _event(data: Mapping[str, Any]) -> bytes:
    return f"event: {data['type']}\ndata: {json.dumps(data)}\n\n".encode()
