"""What recall returns: the entries that it found, and which parts of them answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

from firnline.log.entry import Entry
from firnline.log.message import Message


class TextSpan(NamedTuple):
    """Characters of a text, from `start` up to `end`."""

    start: int
    end: int


CUT: Final = "[...]"
"""Stands for what is left out of a message."""


@dataclass(frozen=True, slots=True)
class Hit:
    """An entry that recall found, its conversation and its score.

    `parts` are the summands of the score, by feature. `also_in` are the other conversations that
    have the same message at the same sequence number: branches are copies. `chance` is the
    calibrated probability that the message is evidence for the question, from 0 to 1.
    `superseded_by` is the newer message that outdates what this one states: "I moved to Lisbon"
    after "I live in Berlin"; `superseded_in` is its conversation, if that is another one.
    `passage` are the parts of a long message that answer, in order; it is empty if the whole
    message is meant.
    """

    conversation: str
    entry: Entry
    score: float
    parts: Mapping[str, float] = field(default_factory=dict)
    also_in: tuple[str, ...] = ()
    chance: float = 0.0
    superseded_by: int | None = None
    superseded_in: str | None = None
    passage: tuple[TextSpan, ...] = ()

    @property
    def seq(self) -> int:
        """The entry's sequence number."""
        return self.entry.seq

    @property
    def time(self) -> datetime | None:
        """The message's time."""
        return self.entry.message.created_at

    @property
    def archived(self) -> bool:
        """Whether the entry is stored in a compressed segment."""
        return self.entry.archived

    @property
    def message(self) -> Message:
        """The message, word for word."""
        return self.entry.message

    @property
    def text(self) -> str:
        """The message's text, or the passage that answers, with `CUT` where more is left out."""
        return excerpt(self.entry.message.text, self.passage)


def excerpt(text: str, passage: Sequence[TextSpan]) -> str:
    """These parts of a text, with `CUT` where more is left out; if there are none, the text."""
    if not passage:
        return text
    parts = [text[span.start : span.end] for span in passage]
    if passage[0].start > 0:
        parts.insert(0, "")
    if passage[-1].end < len(text):
        parts.append("")
    return f" {CUT} ".join(parts).strip()


class Hits(list[Hit]):
    """The entries that recall found, best first.

    The first `earned` of them are likely enough to be evidence to earn their place in a small
    context. `degraded` says why some may be missing, for example because they have no vectors yet,
    and is empty otherwise.
    """

    def __init__(
        self, hits: Iterable[Hit] = (), degraded: Iterable[str] = (), earned: int = 0
    ) -> None:
        super().__init__(hits)
        self.degraded = tuple(degraded)
        self.earned = earned
