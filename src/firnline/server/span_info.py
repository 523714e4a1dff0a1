"""Spans by OpenTelemetry's conventions for HTTP, generative AI and its memory.

The names of the conventions are in this module only, as literals: they are still in development.
Spans are derived from the same events as the metrics, so they contain no message text. Pure:
`spans` sends them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from http import HTTPStatus
from typing import Final, NamedTuple, Protocol, TypeAlias

from firnline.protocols import Event
from firnline.server.logs import redact

Attribute: TypeAlias = str | int | float | bool

_OPERATIONS: Final = {
    "append": "create_memory",
    "recall": "search_memory",
    "fold": "upsert_memory",
    "erase": "delete_memory",
    "chat": "chat",
    # The conventions have no names for these two, and allow others.
    "context": "build_context",
    "turn": "turn",
}
_COUNTS: Final = {"append": "entries", "recall": "hits", "erase": "entries"}
_CHAT: Final = {
    "model": "gen_ai.request.model",
    "prompt_tokens": "gen_ai.usage.input_tokens",
    "completion_tokens": "gen_ai.usage.output_tokens",
}
_FLAGS: Final = {"stream": "gen_ai.request.stream", "compacted": "gen_ai.conversation.compacted"}
_PROVIDERS: Final = {
    "openai": ("gpt", "o1", "o3", "o4"),
    "anthropic": ("claude",),
    "x_ai": ("grok",),
    "gcp.gemini": ("gemini",),
    "mistral_ai": ("mistral",),
    "deepseek": ("deepseek",),
}


class SpanInfo(NamedTuple):
    """A span: its name, whether it is a remote call, and its attributes."""

    name: str
    remote: bool
    attributes: Mapping[str, Attribute]
    error: str = ""


ReportResponse: TypeAlias = Callable[[SpanInfo], object]
"""Called once with the response of a request, before its span ends."""


class Tracer(Protocol):
    """Creates spans and sends them."""

    def observe(self, event: Event) -> None:
        """Create a span for an event that has just ended: an `Observer`."""
        ...

    def request(self, headers: Mapping[str, str]) -> AbstractContextManager[ReportResponse]:
        """The span of a request, part of the client's trace if it sent one."""
        ...

    def close(self) -> None:
        """Send the remaining spans; may take a while."""
        ...


# -- contents of spans ------------------------------------------------------------------------


def describe_event(event: Event) -> SpanInfo | None:
    """The span of an event; None if it is only an event within another span."""
    kind, _, failed = event.name.partition("_")
    operation = _OPERATIONS.get(kind)
    if operation is None:
        return None
    attributes: dict[str, Attribute] = {
        "gen_ai.operation.name": operation,
        "gen_ai.memory.store.id": event.tenant,
    }
    if event.conversation:
        attributes["gen_ai.conversation.id"] = redact(
            event.conversation
        )  # a name chosen by a client
    attributes |= _chat(event) if kind == "chat" else _memory(kind, event)
    error = str(event.values.get("error", failed)) if failed else ""
    if error:
        attributes["error.type"] = error
    model = event.values.get("model")
    name = f"{operation} {model}" if kind == "chat" and model else operation
    return SpanInfo(name, kind == "chat", attributes, error)


def _memory(kind: str, event: Event) -> dict[str, Attribute]:
    """Attributes of a memory operation: those of the conventions, and our own."""
    values = {name: value for name, value in event.values.items() if name not in _OMITTED}
    attributes: dict[str, Attribute] = {f"firnline.{name}": value for name, value in values.items()}
    if kind in _COUNTS and _COUNTS[kind] in values:
        attributes["gen_ai.memory.record.count"] = values[_COUNTS[kind]]
    if kind == "fold" and "version" in values:
        attributes["gen_ai.memory.record.id"] = str(values["version"])
        attributes["gen_ai.memory.record.count"] = 1
    return attributes


_OMITTED: Final = frozenset({"milliseconds", "error"})  # a span has its own fields for these


def _chat(event: Event) -> dict[str, Attribute]:
    values = event.values
    attributes: dict[str, Attribute] = {
        name: values[ours] for ours, name in _CHAT.items() if ours in values
    }
    attributes |= {name: bool(values[ours]) for ours, name in _FLAGS.items() if ours in values}
    if "model" in values:
        attributes["gen_ai.provider.name"] = _provider(str(values["model"]))
    return attributes


def _provider(model: str) -> str:
    """The provider of a model, guessed from its name."""
    name = model.rsplit("/", 1)[-1].lower()
    return next((maker for maker, names in _PROVIDERS.items() if name.startswith(names)), "other")


def describe_note(event: Event) -> tuple[str, dict[str, Attribute]]:
    """An event without a duration, to be added to the current span."""
    return f"firnline.{event.name}", {f"firnline.{k}": v for k, v in event.values.items()}


def describe_response(
    route: str | None, method: str, status: int, request_id: str, tenant: str | None, error: str
) -> SpanInfo:
    """The span of a request with its response."""
    attributes: dict[str, Attribute] = {
        "http.request.method": method,
        "http.response.status_code": status,
        "firnline.request.id": request_id,
    }
    if route:
        attributes["http.route"] = route
    if tenant is not None:
        attributes["gen_ai.memory.store.id"] = tenant
    error = error or (str(status) if status >= HTTPStatus.INTERNAL_SERVER_ERROR else "")
    if error:
        attributes["error.type"] = error
    return SpanInfo(f"{method} {route}" if route else method, False, attributes, error)
