"""What the library returns, as the JSON of `shapes`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any, Final

from firnline.client.paths import conversation_path, project_path
from firnline.context.context import Context
from firnline.context.plan import Strategy
from firnline.engine.turn import Turn
from firnline.log.entry import Digest, Entry, Head, Hit, Project
from firnline.log.message import format_time
from firnline.server.bodies import cursor_of

_LEAST: Final = 0.005  # what is written as 0.00 explains nothing


def plain(value: Any) -> Any:
    """A value of ours as JSON: dataclasses and named tuples as objects, times as text."""
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


def entry(one: Entry) -> dict[str, Any]:
    """An entry."""
    message = one.message
    return {
        "seq": one.seq,
        "created_at": format_time(message.created_at) if message.created_at else None,
        "tokens": one.tokens,
        "total": one.total,
        "tokenizer": one.tokenizer,
        "hash": one.hash,
        "archived": one.archived,
        "normalised": message.normalised,
        "metadata": message.metadata,
        "message": message.to_openai(),
    }


def head(one: Head) -> dict[str, Any]:
    """Where a conversation stands."""
    return {
        "conversation": one.conversation,
        "url": conversation_path(one.conversation),
        "seq": one.seq,
        "hash": one.hash,
        "entries": one.entries,
        "archived": one.archived,
        "tokens": one.tokens,
        "created_at": format_time(one.created_at),
        "updated_at": format_time(one.updated_at),
        "project": one.project,
        "metadata": one.metadata,
    }


def strategy(one: Strategy, where: Head) -> dict[str, Any]:
    """How a conversation's contexts are planned."""
    stored = one.to_json()
    return {**stored, "own": "name" in (where.strategy or {})}


def project(one: Project) -> dict[str, Any]:
    """A project."""
    return {**plain(one), "url": project_path(one.name)}


def digest(one: Digest, force: Iterable[int]) -> dict[str, Any]:
    """A digest; `force` are the versions in force."""
    return {**plain(one), "in_force": one.version in set(force)}


def hit(one: Hit) -> dict[str, Any]:
    """An entry that was found."""
    return {
        "conversation": one.conversation,
        "score": one.score,
        "parts": dict(one.parts),
        "explanation": explained(one),
        "entry": entry(one.entry),
    }


def explained(one: Hit) -> str:
    """What the score is made of, the largest part first."""
    parts = sorted(one.parts.items(), key=lambda part: -abs(part[1]))
    listed = ", ".join(f"{name} {value:+.2f}" for name, value in parts if abs(value) >= _LEAST)
    return f"score {one.score:.2f}: {listed or 'nothing in particular'}"


def context(one: Context, shape: str = "openai") -> dict[str, Any]:
    """A context with its messages in the shape of a provider."""
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
    return {
        "conversation": one.conversation,
        "strategy": one.strategy,
        "reason": one.reason,
        "budget": plain(one.budget),
        "tokens": one.tokens,
        "system": anthropic["system"] if anthropic else None,
        "messages": anthropic["messages"] if anthropic else one.to_openai(),
        "accounting": plain(one.accounting),
        "sections": sections,
        "seqs": list(one.seqs),
        "left_out": plain(one.left_out),
        "degraded": list(one.degraded),
        "crowded": one.crowded,
        "stability": one.stability,
        "hits": [hit(found) for found in one.hits],
        "explain": one.explain(),
    }


def turn(one: Turn, model: str) -> dict[str, Any]:
    """A turn; `model` answered it."""
    return {
        "conversation": one.context.conversation,
        "question": entry(one.question),
        "answer": entry(one.answer),
        "text": one.text,
        "calls": one.calls,
        "model": model,
        "prompt_tokens": one.prompt_tokens,
        "completion_tokens": one.completion_tokens,
        "degraded": [*one.context.degraded, *filter(None, [one.degraded])],
        "tool_results": [entry(result) for result in one.tool_results],
        "context_tokens": one.context.tokens,
        "accounting": plain(one.context.accounting),
    }


def page(data: Sequence[Any], following: str | int | None) -> dict[str, Any]:
    """A page of a list; `following` is the position behind which it goes on, if it does."""
    return {
        "data": list(data),
        "next_cursor": None if following is None else cursor_of(following),
        "has_more": following is not None,
    }
