"""Spans by OpenTelemetry's conventions for HTTP, generative AI and its memory.

The conventions' names are in this module alone, as literals: they are still being developed. Spans
are made of the same events as the metrics, so nothing that was said is in them. Pure: `spans` makes
them, if there is an address to send them to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Final, NamedTuple, Protocol, TypeAlias

from firnline.protocols import Event
from firnline.server.logs import redacted

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
_FAILED: Final = 500


class Described(NamedTuple):
    """A span to be: its name, whether it is a call to somebody else, and what it says."""

    name: str
    remote: bool
    attributes: Mapping[str, Attribute]
    error: str = ""


Answered: TypeAlias = Callable[[Described], object]
"""Is told how a request was answered, once, before its span ends."""


class Tracer(Protocol):
    """Makes spans and sends them away."""

    def observe(self, event: Event) -> None:
        """Make a span of something that has just happened: an `Observer`."""
        ...

    def request(self, headers: Mapping[str, str]) -> AbstractContextManager[Answered]:
        """The span of a request, a part of the client's trace if it has sent one."""
        ...

    def close(self) -> None:
        """Send what is left; may take a while."""
        ...


# -- what spans say ---------------------------------------------------------------------------


def described(event: Event) -> Described | None:
    """The span of an event; None if it is only a note in another one."""
    kind, _, failed = event.name.partition("_")
    operation = _OPERATIONS.get(kind)
    if operation is None:
        return None
    attributes: dict[str, Attribute] = {
        "gen_ai.operation.name": operation,
        "gen_ai.memory.store.id": event.tenant,
    }
    if event.conversation:
        attributes["gen_ai.conversation.id"] = redacted(event.conversation)  # clients name them
    attributes |= _chat(event) if kind == "chat" else _memory(kind, event)
    error = str(event.values.get("error", failed)) if failed else ""
    if error:
        attributes["error.type"] = error
    model = event.values.get("model")
    name = f"{operation} {model}" if kind == "chat" and model else operation
    return Described(name, kind == "chat", attributes, error)


def _memory(kind: str, event: Event) -> dict[str, Attribute]:
    """What a memory did, in the conventions' words where they have some, and in ours."""
    values = {name: value for name, value in event.values.items() if name not in _UNTOLD}
    said: dict[str, Attribute] = {f"firnline.{name}": value for name, value in values.items()}
    if kind in _COUNTS and _COUNTS[kind] in values:
        said["gen_ai.memory.record.count"] = values[_COUNTS[kind]]
    if kind == "fold" and "version" in values:
        said["gen_ai.memory.record.id"] = str(values["version"])
        said["gen_ai.memory.record.count"] = 1
    return said


_UNTOLD: Final = frozenset({"milliseconds", "error"})  # the span has them in its own way


def _chat(event: Event) -> dict[str, Attribute]:
    values = event.values
    said: dict[str, Attribute] = {
        name: values[ours] for ours, name in _CHAT.items() if ours in values
    }
    said |= {name: bool(values[ours]) for ours, name in _FLAGS.items() if ours in values}
    if "model" in values:
        said["gen_ai.provider.name"] = _provider(str(values["model"]))
    return said


def _provider(model: str) -> str:
    """Who makes the model, as far as its name tells."""
    name = model.rsplit("/", 1)[-1].lower()
    return next((maker for maker, names in _PROVIDERS.items() if name.startswith(names)), "other")


def note(event: Event) -> tuple[str, dict[str, Attribute]]:
    """What has no length of its own, as a note in the present span."""
    return f"firnline.{event.name}", {f"firnline.{k}": v for k, v in event.values.items()}


def answered(
    route: str | None, method: str, status: int, request_id: str, tenant: str | None, error: str
) -> Described:
    """The span of a request, now that it has been answered."""
    attributes: dict[str, Attribute] = {
        "http.request.method": method,
        "http.response.status_code": status,
        "firnline.request.id": request_id,
    }
    if route:
        attributes["http.route"] = route
    if tenant is not None:
        attributes["gen_ai.memory.store.id"] = tenant
    error = error or (str(status) if status >= _FAILED else "")
    if error:
        attributes["error.type"] = error
    return Described(f"{method} {route}" if route else method, False, attributes, error)
