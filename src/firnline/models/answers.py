"""Parses answers and errors of the OpenAI chat completions protocol. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from firnline.errors import InputError, ModelError
from firnline.log.json_text import parse_json
from firnline.log.message import Message
from firnline.log.regex import regex
from firnline.protocols import Completion

MESSAGE_CHARS_MAX: Final = 500
"""Characters of an endpoint's error message that ours includes."""
CODE_CHARS_MAX: Final = 100
"""Characters of its code."""

CONTEXT_LENGTH: Final = "context_length_exceeded"
_TOO_LONG: Final = regex(
    r"context[ _-]?(length|window|size)|maximum (context|prompt)|exceed_context|prompt is too long"
    r"|too many (input )?tokens|reduce the length",
    re.IGNORECASE,
)


class EndpointError(NamedTuple):
    """An endpoint's error: its stable code, such as `context_length_exceeded`, and its text."""

    code: str
    message: str


def read_error(data: object, otherwise: str = "") -> EndpointError:
    """The error in a body, in any of the shapes that providers use."""
    if isinstance(data, list) and data:
        data = data[0]
    body: Mapping[str, Any] = data if isinstance(data, dict) else {}
    inner = body.get("error", body)
    fields: Mapping[str, Any] = inner if isinstance(inner, dict) else {"message": inner}
    message = str(fields.get("message") or fields.get("detail") or otherwise or "no reason given")
    code = str(fields.get("code") or fields.get("type") or "")
    if _TOO_LONG.search(f"{code} {message}"):
        code = CONTEXT_LENGTH
    return EndpointError(code[:CODE_CHARS_MAX], message[:MESSAGE_CHARS_MAX])


def load_body(body: bytes | str) -> object:
    """The JSON of a body, or None."""
    try:
        return parse_json(body)
    except (ValueError, RecursionError):
        return None


def read_completion(data: object, name: str) -> Completion:
    """The completion in a whole answer; `ModelError` if it is an error or empty."""
    body = _check_answer(data)
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict):
        raise ModelError("the model's answer has no choices", code="no_choices")
    message = choice.get("message")
    return _make_completion(
        dict(message) if isinstance(message, dict) else {},
        str(choice.get("finish_reason") or "stop"),
        str(body.get("model") or name),
        body.get("usage"),
    )


def _check_answer(data: object) -> Mapping[str, Any]:
    """An answer's object; it may be an error although its status was 200."""
    if not isinstance(data, dict):
        raise ModelError("the endpoint's answer is not a JSON object", code="not_json")
    choices = data.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    for part in (data, first):
        if isinstance(part, dict) and part.get("error"):
            code, message = read_error(part)
            raise ModelError(f"the model failed: {message}", code=code or "error_body")
    return data


def _make_completion(
    fields: dict[str, Any], finish_reason: str, model: str, usage: object
) -> Completion:
    # Null and empty fields mean nothing here, and some endpoints reject them in later requests.
    present = {key: value for key, value in fields.items() if value not in (None, [], {}, "")}
    try:
        message = Message.from_openai({"content": None, **present, "role": "assistant"})
    except InputError as error:
        raise ModelError(f"the model's message is malformed: {error}", code="malformed") from error
    facts = {"finish_reason": finish_reason, "partial": message.text}
    if present.get("refusal"):
        raise ModelError("the model refused to answer", code="refusal", **facts)
    if finish_reason == "content_filter":
        raise ModelError("the answer was withheld by a filter", code="content_filter", **facts)
    if not message.text.strip() and not message.tool_calls:
        raise ModelError("the model's answer is empty", code="empty", **facts)
    costs: Mapping[str, Any] = usage if isinstance(usage, dict) else {}
    return Completion(
        message=message,
        model=model,
        finish_reason=finish_reason,
        prompt_tokens=_token_count(costs.get("prompt_tokens")),
        completion_tokens=_token_count(costs.get("completion_tokens")),
    )


def _token_count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0


# -- streamed answers -------------------------------------------------------------------------


class AnswerPieces:
    """Assembles a streamed answer; `done` after the endpoint's final event."""

    def __init__(self, name: str) -> None:
        self._model = name
        self._texts: dict[str, list[str]] = {}  # content, refusal, reasoning, by the field's name
        self._calls: list[dict[str, Any]] = []
        self._arguments: list[list[str]] = []  # of each call, joined at the end: joining takes time
        self._places: dict[object, int] = {}
        self._finish_reason = ""
        self._usage: object = None
        self.done = False

    @property
    def text(self) -> str:
        """The text that has arrived so far."""
        return "".join(self._texts.get("content", ()))

    def fields(self) -> dict[str, Any]:
        """The fields of the message so far."""
        texts: dict[str, Any] = {key: "".join(texts) for key, texts in self._texts.items()}
        for call, arguments in zip(self._calls, self._arguments, strict=True):
            call["function"]["arguments"] = "".join(arguments)
        return {**texts, "tool_calls": self._calls} if self._calls else texts

    @property
    def finish_reason(self) -> str:
        """Why the answer ended; empty while it has not."""
        return self._finish_reason

    @property
    def usage(self) -> Mapping[str, Any]:
        """The cost of the answer by the provider's count."""
        return self._usage if isinstance(self._usage, dict) else {}

    def take(self, data: str) -> str:
        """Add one event's data; returns the text it adds. `ModelError` if it is an error."""
        if data.strip() == "[DONE]":
            self.done = True
            return ""
        return self.add(load_body(data))

    def add(self, event: object) -> str:
        """The same for parsed data of an event."""
        body = _check_answer(event)
        self._model = str(body.get("model") or self._model)
        self._usage = body.get("usage") or self._usage
        choices = body.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else {}
        self._finish_reason = str(choice.get("finish_reason") or self._finish_reason)
        delta = choice.get("delta") or choice.get("message")
        return self._add(delta) if isinstance(delta, dict) else ""

    def completion(self) -> Completion:
        """The whole answer; `ModelError` if the stream ended early."""
        if not self.done and not self._finish_reason:
            raise ModelError(
                "the model's answer ended without a final event", code="cut", partial=self.text
            )
        finish_reason = self._finish_reason or "stop"
        return _make_completion(self.fields(), finish_reason, self._model, self._usage)

    def _add(self, delta: Mapping[str, Any]) -> str:
        for key, value in delta.items():
            if isinstance(value, str) and key != "role":
                self._texts.setdefault(key, []).append(value)
        for part in delta.get("tool_calls") or ():
            if isinstance(part, dict):
                self._add_call(part)
        content = delta.get("content")
        return content if isinstance(content, str) else ""

    def _add_call(self, part: Mapping[str, Any]) -> None:
        """A call arrives in pieces under one index; some endpoints send whole calls, all as 0."""
        index, call_id = part.get("index", 0), part.get("id")
        place = self._places.get(index)
        if place is None or (call_id and self._calls[place]["id"] not in ("", call_id)):
            place = self._places[index] = len(self._calls)
            empty = {"name": "", "arguments": ""}
            self._calls.append({"id": "", "type": "function", "function": empty})
            self._arguments.append([])
        call = self._calls[place]
        call["id"] = call["id"] or str(call_id or "")
        function = part.get("function")
        if isinstance(function, dict):
            inner = call["function"]
            inner["name"] = inner["name"] or str(function.get("name") or "")
            self._arguments[place].append(str(function.get("arguments") or ""))
