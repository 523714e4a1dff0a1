"""Seals: what rows of a conversation or a project there are, so that none can change or vanish.

The database keeps the seals, by triggers, when it changes rows. Who reads rows counts them again
and compares. A seal is a count and a sum: each row adds its mark, so rows can come in any order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from firnline.errors import StoreCorrupt
from firnline.protocols import Damage, Finding

ADVICE: Final = "run `firnline doctor --repair`"

_SHOWN: Final = 20

ABOUT: Final = "about"
HEAD: Final = "head"
PINS: Final = "pins"
DIGESTS: Final = "digests"
TOPICS: Final = "topics"
ASSIGNED: Final = "assigned"
PROJECTS: Final = "projects"
KEYS: Final = "keys"
CARDS: Final = "cards"
_NEWEST: Final = "newest:"
_MEMBERS: Final = "members:"
_PROJECT: Final = "project:"

_WORDS: Final = {
    ABOUT: "its row (project, metadata, strategy, lease or pending mark)",
    HEAD: "its head (the number of its messages and tokens, the last hash or the time)",
    PINS: "its pins",
    DIGESTS: "its digests",
    TOPICS: "its topics",
    ASSIGNED: "the progress of its topics",
}
_GROUPS: Final = {_NEWEST: DIGESTS, _MEMBERS: TOPICS, ASSIGNED: TOPICS, _PROJECT: PROJECTS}
_PREFIXES: Final = {
    _NEWEST: "its newest digest",
    _MEMBERS: "the messages of topic",
    _PROJECT: "project",
}


class Seal(NamedTuple):
    """How many rows there are, and the sum of their marks."""

    rows: int
    mark: int


def group_of(part: str) -> str:
    """The group that a part is damaged and mended with."""
    return next((group for prefix, group in _GROUPS.items() if part.startswith(prefix)), part)


def patterns(groups: Iterable[str]) -> list[str]:
    """What the parts of these groups look like, for LIKE."""
    within = [f"{part}%" for part, group in _GROUPS.items() if group in groups]
    return [*groups, *within]


def newest_part(topic: int | str) -> str:
    """The part that is the newest completed digest of a topic (-1: of none)."""
    return f"{_NEWEST}{topic}"


def members_part(topic: int) -> str:
    """The part that is the entries of a topic."""
    return f"{_MEMBERS}{topic}"


def project_part(name: str) -> str:
    """The part that is one project."""
    return f"{_PROJECT}{name}"


def mark_of(*columns: Any) -> int:
    """The mark of a row: 32 bits of a hash of its columns. SQL computes the same."""
    return mark_of_hex(*("" if value is None else _bytes(value).hex().upper() for value in columns))


def mark_of_hex(*columns: str) -> int:
    """The mark of a row whose columns are given as hexadecimal digits; NULL is empty."""
    return int(hashlib.sha256(" ".join(columns).encode()).hexdigest()[:8], 16)


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def seal_of(rows: Iterable[Sequence[Any]]) -> Seal:
    """The seal that these rows should have."""
    marks = [mark_of(*row) for row in rows]
    return Seal(len(marks), sum(marks))


def check_seal(name: str, part: str, stored: Sequence[Any] | None, found: Seal) -> None:
    """Raise `StoreCorrupt` if the rows of a part are not the sealed ones.

    A missing seal is reported by `firnline doctor`, not here: then the rows are not damaged.
    """
    if stored and tuple(stored) != found:
        raise damaged_part(name, part)


def damaged_part(name: str, part: str) -> StoreCorrupt:
    """The error for rows that do not match their seal."""
    return StoreCorrupt(f"{name}: {describe_part(part)} is damaged or incomplete; {ADVICE}")


def seals_finding(count: int, damaged: Sequence[Damage] | None) -> Finding:
    """What a health check reports of seals; `damaged` is None if they were not compared."""
    if damaged is None:
        return Finding("rows", "ok", f"{count:,} seals, not compared")
    if damaged:
        shown = "; ".join(map(str, damaged[:_SHOWN]))
        more = f"; and {len(damaged) - _SHOWN:,} more" if len(damaged) > _SHOWN else ""
        return Finding("rows", "broken", f"{shown}{more}; use --repair")
    return Finding("rows", "ok", f"{count:,} seals match their rows")


def damage_of(name: str, part: str) -> Damage:
    """The damage of a part whose rows do not match its seal."""
    of = f"{name}: " if name else ""
    return Damage(group_of(part), f"{of}{describe_part(part)} does not match its seal")


def describe_part(part: str) -> str:
    """The rows of a part, in words."""
    for prefix, words in _PREFIXES.items():
        if part.startswith(prefix):
            of = part.removeprefix(prefix).rpartition("\x1f")[2]
            return words if of == "-1" else f"{words} {of}"
    return _WORDS.get(part, f"an unknown part {part!r}")
