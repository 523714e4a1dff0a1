"""Checks what an endpoint answers, before anything of it is stored or passed on. Pure.

Fields that Firnline or a client's SDK reads must have the types of the protocol, and events its
order; fields that only the client knows may be anything. What an SDK needs and some endpoints leave
out, such as the index of the only choice, is filled in. All else is a `ModelError`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from firnline.errors import InputError, ModelError
from firnline.log.message import encode_json
from firnline.log.wire import load_json
from firnline.models.answers import read_error
from firnline.server.proxy.json_prefix import JsonPrefix, malformed

Fields: TypeAlias = dict[str, Any]
Types: TypeAlias = Mapping[str, type | tuple[type, ...]]

_CONTENT: Final = (str, list)
_ANSWER: Final[Types] = {"model": str, "usage": dict, "id": str}
_MESSAGE: Final[Types] = {
    "role": str,
    "content": _CONTENT,
    "refusal": str,
    "tool_calls": list,
    "function_call": dict,
    "annotations": list,
    "audio": dict,
    "reasoning_content": str,
    "name": str,
}
_CHOICE: Final[Types] = {"finish_reason": str, "logprobs": dict}
_LOGPROBS: Final[Types] = {"content": list, "refusal": list}
_FUNCTION: Final[Types] = {"name": str, "arguments": str}
_BLOCK: Final[Types] = {
    "text": str,
    "thinking": str,
    "signature": str,
    "data": str,
    "citations": list,
    "input": dict,
}
_NEEDED: Final = {"text": ("text",), "thinking": ("thinking",), "tool_use": ("id", "name")}
"""Fields without which a block is none, by its type."""
_DELTAS: Final = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}
"""The field of each delta that has a text."""
_ENDING: Final[Types] = {"stop_reason": str, "stop_sequence": str, "stop_details": dict}


def load_object(data: str | bytes) -> Fields:
    """The JSON object of an answer or an event; `ModelError` if it is not one."""
    try:
        value = load_json(data)
    except InputError as error:
        raise ModelError(
            f"the answer of the upstream endpoint is not JSON: {error}", code="not_json"
        ) from error
    if not isinstance(value, dict):
        raise ModelError("the answer of the upstream endpoint is not an object", code="not_json")
    return value


def _check(value: object, where: str, types: Types) -> Fields:
    """The object `value`, whose fields have these types or are null."""
    if not isinstance(value, dict):
        raise malformed(f"{where} is not an object")
    for name, wanted in types.items():
        if value.get(name) is not None and not isinstance(value[name], wanted):
            raise malformed(f"{where}.{name} is a {type(value[name]).__name__}")
    return value


def _check_number(value: object, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise malformed(f"{where} is not a number from 0 up")
    return value


def _check_usage(usage: Mapping[str, Any] | None) -> None:
    """Counts are numbers, or objects of numbers."""
    for name, value in (usage or {}).items():
        if name.endswith("_tokens") and value is not None:
            _check_number(value, f"usage.{name}")
        elif name.endswith("_details") and value is not None:
            _check_usage(_check(value, f"usage.{name}", {}))


# -- OpenAI's answers -------------------------------------------------------------------------


def read_completion(body: bytes) -> Fields:
    """A complete answer in OpenAI's shape."""
    data = load_object(body)
    _check(data, "answer", _ANSWER)
    _check_usage(data.get("usage"))
    choices = data.get("choices")
    if not isinstance(choices, list) or not choices:
        raise ModelError("the upstream answer has no choices", code="no_choices")
    for choice in choices:
        message = _check(choice, "choice", _CHOICE).get("message")
        _check_logprobs(choice)
        if message is None:
            raise ModelError("the upstream answer has no message", code="no_choices")
        _check_parts(_check(message, "message", _MESSAGE))
        for call in message.get("tool_calls") or ():
            function = _check_call(call, whole=True).get("function")
            if function:
                _filled(function, "arguments", "{}")  # of a tool without parameters
    return data


def _check_logprobs(choice: Fields) -> None:
    if (logprobs := choice.get("logprobs")) is not None:
        _check(logprobs, "logprobs", _LOGPROBS)


def _check_parts(message: Fields) -> None:
    content = message.get("content")
    if isinstance(content, list):
        for part in content:
            if not isinstance(_check(part, "part", {"text": str}).get("type"), str):
                raise malformed("a part of the content has no type")


def _check_call(call: object, *, whole: bool) -> Fields:
    """A tool call, or a piece of one."""
    fields = _check(call, "call", {"id": str, "type": str, "function": dict, "custom": dict})
    function = _check(fields.get("function") or {}, "function", _FUNCTION)
    is_custom = fields.get("type") == "custom" or fields.get("custom") is not None
    if is_custom:
        custom = _check(fields.get("custom") or {}, "custom", {"name": str, "input": str})
        whole = whole and not custom.get("name")
    if whole and not function.get("name"):
        raise malformed("a call has no name")
    return fields


class ChunkChecker:
    """Checks the chunks of one answer in OpenAI's shape, and fills in what SDKs need."""

    def __init__(self) -> None:
        self._calls: dict[int, int] = {}

    @property
    def has_begun(self) -> bool:
        """Whether there was a choice."""
        return bool(self._calls)

    def read(self, data: str) -> tuple[Fields, str]:
        """The chunk, and its JSON: as it came, if nothing had to be filled in."""
        chunk = load_object(data)
        if chunk.get("error"):
            return chunk, data
        before = encode_json(chunk)
        _check(chunk, "chunk", _ANSWER)
        _check_usage(chunk.get("usage"))
        if chunk.get("choices") is None:
            chunk["choices"] = []
        if not isinstance(chunk["choices"], list):
            raise malformed("chunk.choices is not a list")
        seen = [self._read_choice(choice) for choice in chunk["choices"]]
        if len(set(seen)) < len(seen):
            raise malformed("a chunk has a choice twice")
        after = encode_json(chunk)
        return chunk, data if after == before else after

    def _read_choice(self, choice: object) -> int:
        """Check a choice; returns its index."""
        fields = _check(choice, "choice", _CHOICE)
        _check_logprobs(fields)
        index = _check_number(_filled(fields, "index", 0), "choice.index")
        if index > len(self._calls):
            raise malformed("the choices are not in the order of their index")
        count = self._calls.setdefault(index, 0)
        if fields.get("delta") is None:  # an endpoint that does not stream
            fields["delta"] = fields.pop("message", None) or {}
        delta = _check(fields["delta"], "delta", _MESSAGE)
        _check_parts(delta)
        for call in delta.get("tool_calls") or ():
            piece = _check_call(call, whole=False)
            at = _check_number(_filled(piece, "index", 0), "call.index")
            if at > count:
                raise malformed("the calls are not in the order of their index")
            if at == count:
                _check_call(piece, whole=True)
                _filled(piece, "type", "function")
            if piece.get("type", "function") == "function":
                _filled(piece, "function", {})
            count = max(count, at + 1)
        self._calls[index] = count
        return index


def _filled(fields: Fields, name: str, default: Any) -> Any:
    if fields.get(name) is None:
        fields[name] = default
    return fields[name]


# -- Anthropic's answers ----------------------------------------------------------------------


def read_message(body: bytes) -> Fields:
    """A complete answer in Anthropic's shape."""
    return check_message(load_object(body))


def check_message(data: Fields) -> Fields:
    """A complete answer in Anthropic's shape."""
    _check(data, "answer", {**_ANSWER, **_ENDING, "content": list})
    if data.get("type") == "error":
        code, message = read_error(data, "the answer failed")
        raise ModelError(message, code=code or "failed")
    kind = data.get("type")
    if kind != "message" and not (kind is None and isinstance(data.get("content"), list)):
        raise malformed("the answer is not a message")
    _filled(data, "type", "message")
    _check_usage(data.get("usage"))
    for block in data.get("content") or ():
        _check_block(block)
        if block["type"] == "tool_use" and not isinstance(block.get("input"), dict):
            raise malformed("the input of a call is not an object")
    return data


def _check_block(block: object) -> Fields:
    fields = _check(block, "block", _BLOCK)
    if not isinstance(fields.get("type"), str):
        raise malformed("a block has no type")
    for name in _NEEDED.get(fields["type"], ()):
        if not isinstance(fields.get(name), str):
            raise malformed(f"a block has no {name}")
    return fields


class EventChecker:
    """Checks the events of one answer in Anthropic's shape, and fills in what SDKs need."""

    def __init__(self) -> None:
        self._begun = False
        self._blocks: list[str] = []
        self._inputs: dict[int, JsonPrefix] = {}

    def read(self, data: str) -> tuple[Fields, str]:
        """The event, and its JSON: as it came, if nothing had to be filled in."""
        event = load_object(data)
        kind = event.get("type")
        if not isinstance(kind, str) or "\n" in kind or "\r" in kind:
            raise malformed("an event has no type")
        if kind in ("error", "message", "ping"):
            return event, data
        before = encode_json(event)
        if kind == "message_start":
            self._start(event)
        elif not self._begun:
            raise malformed(f"{kind} comes before message_start")
        elif kind.startswith("content_block_"):
            self._block(event, kind)
        elif kind == "message_delta":
            _check(_filled(event, "delta", {}), "delta", _ENDING)
            usage = _check(_filled(event, "usage", {}), "usage", {})
            _filled(usage, "output_tokens", 0)
            _check_usage(usage)
        after = encode_json(event)
        return event, data if after == before else after

    def _start(self, event: Fields) -> None:
        if self._begun:
            raise malformed("message_start comes twice")
        self._begun = True
        message = _check(event.get("message"), "message", {**_ANSWER, **_ENDING, "content": list})
        if _filled(message, "content", []):
            raise malformed("message_start has content")
        _check_usage(_filled(message, "usage", {"input_tokens": 0, "output_tokens": 0}))

    def _block(self, event: Fields, kind: str) -> None:
        index = _check_number(event.get("index"), f"{kind}.index")
        if kind == "content_block_start":
            if index != len(self._blocks):
                raise malformed("a block does not follow the one before")
            block = _check_block(event.get("content_block"))
            self._blocks.append(block["type"])
            if block["type"].endswith("tool_use"):
                self._inputs[index] = JsonPrefix()
            return
        if index >= len(self._blocks):
            raise malformed(f"{kind} of a block that has not begun")
        if kind == "content_block_delta":
            self._delta(_check(event.get("delta"), "delta", {}), index)

    def _delta(self, delta: Fields, index: int) -> None:
        kind = delta.get("type")
        if not isinstance(kind, str):
            raise malformed("a delta has no type")
        if kind in _DELTAS and not isinstance(delta.get(_DELTAS[kind]), str):
            raise malformed(f"a {kind} has no {_DELTAS[kind]}")
        if kind == "citations_delta":
            _check(delta.get("citation"), "citation", {})
        if kind == "input_json_delta" and index in self._inputs:
            self._inputs[index].add(delta["partial_json"])


# -- answers of the Responses API -------------------------------------------------------------

_RESPONSE: Final[Types] = {
    **_ANSWER,
    "status": str,
    "output": list,
    "error": dict,
    "incomplete_details": dict,
}
_ITEM: Final[Types] = {
    "id": str,
    "role": str,
    "call_id": str,
    "name": str,
    "arguments": str,
    "input": str,
    "summary": list,
}
_ITEM_NEEDS: Final = {
    "message": ("content",),
    "function_call": ("call_id", "name", "arguments"),
    "custom_tool_call": ("call_id", "name", "input"),
}
"""Fields without which an item is none, by its type."""


_EVENT: Final[Types] = {"delta": (str, dict), "item": dict, "part": dict, "item_id": str}


def read_response(body: bytes) -> Fields:
    """A complete answer of the Responses API; `ModelError` if it is only an error."""
    data = load_object(body)
    if data.get("error") and data.get("status") != "failed":
        code, message = read_error(data, "the answer failed")
        raise ModelError(message, code=code or "failed")
    if data.get("object") != "response" and not isinstance(data.get("output"), list):
        raise malformed("the answer is not a response")
    return check_response(data)


def check_response(data: Fields) -> Fields:
    """A response, complete or not; its output is filled in."""
    _check(data, "response", _RESPONSE)
    _check_usage(data.get("usage"))
    for item in _filled(data, "output", []):
        _check_item(item)
    return data


def _check_item(item: object) -> Fields:
    fields = _check(item, "item", _ITEM)
    kind = fields.get("type")
    if not isinstance(kind, str):
        raise malformed("an item has no type")
    for name in _ITEM_NEEDS.get(kind, ()):
        if fields.get(name) is None:
            raise malformed(f"a {kind} has no {name}")
    content = fields.get("content")
    if kind == "message" and not isinstance(content, str | list):
        raise malformed("the content of a message is neither text nor a list")
    for part in content if isinstance(content, list) else ():
        _check(part, "part", {"type": str, "text": str, "refusal": str})
    if kind == "message":
        _filled(fields, "role", "assistant")
    return fields


class ResponseChecker:
    """Checks the events of one answer of the Responses API."""

    def __init__(self) -> None:
        self._begun = False

    def read(self, data: str) -> Fields:
        """The event; a response that was not streamed has the type ``response``."""
        event = load_object(data)
        if event.get("object") == "response":
            return {**check_response(event), "type": "response"}
        if event.get("error") and "type" not in event:
            event["type"] = "error"
        kind = event.get("type")
        if not isinstance(kind, str) or "\n" in kind or "\r" in kind:
            raise malformed("an event has no type")
        if kind not in ("error", "response.failed"):
            self._check_order(event, kind)
            _check(event, kind, _EVENT)
            if event.get("output_index") is not None:
                _check_number(event["output_index"], f"{kind}.output_index")
            if kind.startswith("response.output_item."):
                _check_item(event.get("item"))
        return event

    def _check_order(self, event: Fields, kind: str) -> None:
        if event.get("response") is not None:
            check_response(event["response"])
            self._begun = True
        elif not self._begun:
            raise malformed(f"{kind} comes before response.created")
        elif kind.startswith("response.") and kind.count(".") == 1:
            raise malformed(f"{kind} has no response")
