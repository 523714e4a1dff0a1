"""The history of a conversation's digests: their chain, their state, their durations."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

from firnline.digest import items
from firnline.log.entry import Digest

STUCK_AFTER: Final = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class State:
    """The memory of a conversation as one record; empty until something is digested."""

    important_data: dict[str, Any] = field(default_factory=dict)
    conversation_summary: str = ""
    summary_version: int = 0
    last_summarized_at: datetime | None = None
    messages_summarized_count: int = 0
    last_keep_window_index: int = 0


def state_of(in_force: Sequence[Digest]) -> State:
    """The combined state of the digests in force."""
    known: tuple[items.Item, ...] = ()
    for digest in in_force:
        known = items.merge(known, items.from_json(digest.data))
    data = items.important_data(known)
    if not in_force:
        return State(data)
    newest = max(in_force, key=lambda digest: digest.version)
    return State(
        important_data=data,
        conversation_summary="\n\n".join(digest.text for digest in in_force),
        summary_version=newest.layer + 1,
        last_summarized_at=newest.created_at,
        messages_summarized_count=sum(d.last_seq - d.first_seq + 1 for d in in_force),
        last_keep_window_index=in_force[-1].last_seq + 1,
    )


def project_state(in_force: Sequence[Sequence[Digest]]) -> State:
    """The combined state of a project's conversations, the last one the newest.

    What a newer conversation says replaces what an older one said. Versions and the end of what is
    summarized are those of the newest.
    """
    everything = state_of([digest for digests in in_force for digest in digests])
    newest = state_of(in_force[-1]) if in_force else State()
    return replace(
        everything,
        summary_version=newest.summary_version,
        last_keep_window_index=newest.last_keep_window_index,
    )


@dataclass(frozen=True, slots=True)
class Lineage:
    """The versions of a conversation's digests and what each is based on.

    `chain` goes from the newest completed version back through the versions that each is based on;
    `stuck` are those in progress for too long; times are in milliseconds.
    """

    digests: tuple[Digest, ...]
    chain: tuple[int, ...]
    stuck: tuple[Digest, ...]
    mean_milliseconds: float
    max_milliseconds: int


def lineage_of(
    digests: Sequence[Digest], now: datetime, stuck_after: timedelta = STUCK_AFTER
) -> Lineage:
    """The lineage of these digests, at the time `now`."""
    by_version = {digest.version: digest for digest in digests}
    completed = [digest for digest in digests if digest.status == "completed"]
    chain: list[int] = []
    at = completed[-1].version if completed else None
    while at is not None and at in by_version and at not in chain:
        chain.append(at)
        at = by_version[at].base
    times = [digest.milliseconds for digest in completed]
    return Lineage(
        digests=tuple(digests),
        chain=tuple(chain),
        stuck=tuple(d for d in digests if _is_stuck(d, now - stuck_after)),
        mean_milliseconds=sum(times) / len(times) if times else 0.0,
        max_milliseconds=max(times, default=0),
    )


def _is_stuck(digest: Digest, before: datetime) -> bool:
    made = digest.created_at
    return digest.status == "processing" and made is not None and made < before


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference between two versions of a digest."""

    before: int
    after: int
    text: str
    added: tuple[items.Item, ...]
    removed: tuple[items.Item, ...]

    def __str__(self) -> str:
        lines = [self.text] if self.text else []
        lines += [f"+ {_named(item)}" for item in self.added]
        lines += [f"- {_named(item)}" for item in self.removed]
        return "\n".join(lines) or "no difference"


def difference(before: Digest, after: Digest) -> Difference:
    """What changed between two versions: the text line by line, the important data item by item."""
    lines = difflib.unified_diff(
        _sentences(before.text),
        _sentences(after.text),
        f"version {before.version}",
        f"version {after.version}",
        lineterm="",
    )
    old, new = (
        items.items_with_speakers(items.from_json(digest.data)) for digest in (before, after)
    )
    return Difference(
        before.version,
        after.version,
        "\n".join(lines),
        added=tuple(item for item in new if _named(item) not in set(map(_named, old))),
        removed=tuple(item for item in old if _named(item) not in set(map(_named, new))),
    )


def _sentences(text: str) -> list[str]:
    return [line for line in text.replace(". ", ".\n").splitlines() if line.strip()]


def _named(item: items.Item) -> str:
    name = f" {item.name}" if item.name else ""
    return f"{item.field}{name}: {item.value}"
