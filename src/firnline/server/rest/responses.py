"""Values of the library as the JSON of `schemas`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any, Final

from pydantic import BaseModel

from firnline.client.paths import conversation_path, project_path
from firnline.client.wire import encode_entry
from firnline.context.context import Context
from firnline.context.plan import Strategy
from firnline.engine.turn import Turn
from firnline.log.entry import Digest, Entry, Head, Project
from firnline.log.hit import Hit
from firnline.log.message import format_time
from firnline.server.bodies import make_cursor
from firnline.server.rest import schemas

_STORED_JSON: Final = frozenset({"metadata", "data", "receipt"})
"""Fields that are JSON already, of any size."""
_SCORE_MIN: Final = 0.005  # less would be printed as 0.00


def plain(value: Any) -> Any:
    """A value as JSON: dataclasses and named tuples as objects, times as text."""
    if isinstance(value, datetime):
        return format_time(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [plain(item) for item in value]
    return value


def fill(model: type[BaseModel], value: object, /, **own: Any) -> dict[str, Any]:
    """The JSON of a schema: `own` fields as they are, the rest from the value's attributes."""
    return {
        name: own[name] if name in own else _field(name, getattr(value, name))
        for name in model.model_fields
    }


def _field(name: str, value: Any) -> Any:
    return value if name in _STORED_JSON and isinstance(value, dict) else plain(value)


def head(one: Head, title: str) -> dict[str, Any]:
    """The head of a conversation."""
    return fill(schemas.Head, one, title=title, url=conversation_path(one.conversation))


def strategy(one: Strategy, where: Head) -> dict[str, Any]:
    """The strategy that plans a conversation's contexts."""
    return {**one.to_json(), "own": "name" in (where.strategy or {})}


def project(one: Project) -> dict[str, Any]:
    """A project."""
    return fill(schemas.Project, one, url=project_path(one.name))


def digest(one: Digest, in_force: Iterable[int]) -> dict[str, Any]:
    """A digest; `in_force` are the numbers of those in force."""
    return fill(schemas.Digest, one, in_force=one.version in set(in_force))


def hit(one: Hit) -> dict[str, Any]:
    """A message that was found."""
    return fill(
        schemas.Hit, one, text=one.text, explanation=explain(one), entry=encode_entry(one.entry)
    )


def explain(one: Hit) -> str:
    """The parts of a score, the largest first, and the chance."""
    parts = sorted(one.parts.items(), key=lambda part: -abs(part[1]))
    listed = ", ".join(f"{name} {value:+.2f}" for name, value in parts if abs(value) >= _SCORE_MIN)
    return f"score {one.score:.2f}: {listed or 'no single reason'}; chance {one.chance:.0%}"


def context(one: Context, shape: str = "openai") -> dict[str, Any]:
    """A context with its messages in a provider's format."""
    anthropic = one.to_anthropic() if shape == "anthropic" else None
    sections = [
        {
            "name": section.name,
            "tokens": section.tokens,
            "messages": len(section.pieces),
            "seqs": [found.seq for found in section.entries],
            "why": section.why,
        }
        for section in one.sections
    ]
    return fill(
        schemas.Context,
        one,
        system=anthropic["system"] if anthropic else None,
        messages=anthropic["messages"] if anthropic else one.to_openai(),
        sections=sections,
        hits=[hit(found) for found in one.hits],
        explain=one.explain(),
    )


def turn(one: Turn, model: str) -> dict[str, Any]:
    """A turn that `model` answered."""
    return fill(
        schemas.Turn,
        one,
        conversation=one.context.conversation,
        question=encode_entry(one.question),
        answer=encode_entry(one.answer),
        model=model,
        degraded=[*one.context.degraded, *filter(None, [one.degraded])],
        tool_results=[encode_entry(result) for result in one.tool_results],
        context_tokens=one.context.tokens,
        accounting=plain(one.context.accounting),
    )


def entries(found: Iterable[Entry]) -> list[dict[str, Any]]:
    """Messages in their order."""
    return [encode_entry(entry) for entry in found]


def page(data: Sequence[Any], following: str | int | None) -> dict[str, Any]:
    """A page of a list; `following` is the position of the next page, None on the last one."""
    return {
        "data": list(data),
        "next_cursor": None if following is None else make_cursor(following),
        "has_more": following is not None,
    }
