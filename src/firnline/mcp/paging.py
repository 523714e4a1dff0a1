"""Messages for an agent to read, within so many tokens, so that each page shows something new.

What has no room is named, and a message that is too long is cut where the next page goes on: paging
reaches every character of every message. Pure, but for `quoted`, which minds the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Final, NamedTuple, TypeVar

from pydantic import BaseModel

from firnline.errors import InputError
from firnline.language import prose
from firnline.log import limits
from firnline.log.entry import Entry
from firnline.log.message import encode_json
from firnline.log.tokens import TokenCounter
from firnline.mcp.results import Said
from firnline.recall.result import RecallWriter, readable_text

_TOKEN_CHARS_MAX: Final = 128  # no token of either vocabulary is longer
_TOKEN_CHARS: Final = 8  # more than a token of any text worth reading has
_LEAST_CHARS: Final = 40  # shown whatever it takes, else a page could show nothing and lead nowhere

T = TypeVar("T", bound=BaseModel)


class Found(NamedTuple):
    """An entry that is to be quoted, and where it was said, if the reader has to be told."""

    entry: Entry
    conversation: str = ""
    score: float | None = None


class Quoted(NamedTuple):
    """What is shown, in order, and what had no room."""

    shown: list[Said]
    left: list[Found]


@dataclass(frozen=True, slots=True)
class Quoter:
    """Quotes messages within `tokens` by `count`, with times in `zone`."""

    zone: tzinfo
    tokens: int
    count: TokenCounter

    def quote(self, found: Sequence[Found], *, offset: int = 0, ranked: bool = False) -> Quoted:
        """As many messages as fit; the first one always, cut if it must be.

        `ranked`: one that does not fit leaves the room to those after it; else it ends the page.
        `offset` is where the first message begins.
        """
        room, shown, left = self.tokens, list[Said](), list[Found]()
        for at, one in enumerate(found):
            row = self._row(one, 0 if at else offset, room)
            if row is None and not shown:
                whole = not ranked or len(found) == 1
                row = self._cut(one, 0 if at else offset, room if whole else room // 2)
            if row is None:
                left += [one] if ranked else found[at:]
            else:
                shown.append(row)
                room -= self.size(row)
            if left and not ranked:
                break
        return Quoted(shown, left)

    def fitting(self, rows: Sequence[T]) -> list[T]:
        """The first rows that fit, at least one."""
        room, kept = self.tokens, list[T]()
        for row in rows:
            room -= self.size(row)
            if room < 0 and kept:
                break
            kept.append(row)
        return kept

    def size(self, row: BaseModel) -> int:
        """The tokens of a row, as JSON or as text, whichever is more."""
        dumped = encode_json(row.model_dump(mode="json", exclude_defaults=True))
        return max(self.count.text(dumped), self.count.text(str(row))) + 1

    def shortened(self, text: str) -> str:
        """The text, or as much of its beginning as fits."""
        if len(text) <= self.tokens * _TOKEN_CHARS_MAX and self.count.text(text) <= self.tokens:
            return text
        fits = _most(
            min(len(text), self.tokens * _TOKEN_CHARS),
            lambda chars: self.count.text(text[:chars]) <= self.tokens,
        )
        return f"{prose.beginning(text, fits)} [cut]"

    def time(self, at: datetime | None) -> str:
        """A time as the reader's clock shows it."""
        return "" if at is None else RecallWriter(self.zone, self.tokens, self.count).time(at)

    def _row(self, one: Found, offset: int, room: int) -> Said | None:
        """The message from `offset` on; None if it does not fit."""
        text = self._text(one, offset)
        if len(text) > room * _TOKEN_CHARS_MAX:
            return None
        row = self._said(one, text, None)
        return row if self.size(row) <= room else None

    def _cut(self, one: Found, offset: int, room: int) -> Said:
        text = self._text(one, offset)

        def row(chars: int) -> Said:
            return self._said(one, text[:chars], offset + chars if chars < len(text) else None)

        most = min(len(text), room * _TOKEN_CHARS)
        fits = _most(most, lambda chars: self.size(row(chars)) <= room)
        return row(max(fits, min(_LEAST_CHARS, len(text))))

    def _text(self, one: Found, offset: int) -> str:
        text = readable_text(one.entry.message)
        if offset and offset >= len(text):
            raise InputError(f"offset: message {one.entry.seq} has {len(text)} characters")
        return text[offset:]

    def _said(self, one: Found, text: str, next_offset: int | None) -> Said:
        message = one.entry.message
        return Said(
            conversation=one.conversation,
            seq=one.entry.seq,
            role=message.role,
            name=(message.name or "")[: limits.NAME_CHARS_MAX],
            time=self.time(message.created_at),
            text=text,
            next_offset=next_offset,
            score=None if one.score is None else round(one.score, 3),
        )


async def quoted(
    quoter: Quoter, found: Sequence[Found], *, offset: int = 0, ranked: bool = False
) -> Quoted:
    """`Quoter.quote`; the event loop goes on while much is counted."""
    chars = sum(len(one.entry.message.text) for one in found)
    if chars <= limits.COUNT_INLINE_CHARS:
        return quoter.quote(found, offset=offset, ranked=ranked)
    return await asyncio.to_thread(quoter.quote, found, offset=offset, ranked=ranked)


def next_seq(left: Sequence[Found]) -> int | None:
    """Where the next page begins, if something is left for it."""
    return left[0].entry.seq if left else None


def _most(high: int, fits: Callable[[int], bool]) -> int:
    """The largest number up to `high` that fits, by halving; 0 if none does."""
    low = 0
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low
