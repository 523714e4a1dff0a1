"""Which entries are shown word for word: a log that fits as a whole, and opened digests. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from firnline.context.context import Piece
from firnline.context.plan import Unit, View, units
from firnline.context.render import Sizes
from firnline.log.entry import Digest, live

_STEPS: Final = 12
"""Where digests lag behind, the first entry shown moves by one in so many parts of the room: not
with every message, because a provider would have to read the prompt again."""


class SizedUnit(NamedTuple):
    """A unit that can be sent, with its pieces and their tokens."""

    unit: Unit
    pieces: tuple[Piece, ...]
    tokens: int

    @property
    def first_seq(self) -> int:
        """The lowest of its sequence numbers."""
        return self.unit.first_seq


def sized_units(view: View, sizes: Sizes, hidden: Collection[int]) -> list[SizedUnit]:
    """The units of a view that can be sent, without those in `hidden`."""
    found = []
    for unit in units(entry for entry in live(view.entries) if entry.seq not in hidden):
        if not unit.problem:
            pieces = sizes.pieces(unit.entries)
            found.append(SizedUnit(unit, pieces, sum(piece.tokens for piece in pieces)))
    return found


def holds_whole_log(view: View) -> bool:
    """Whether the view's entries are the whole log."""
    if view.topic is not None:
        return False
    return view.next_seq == 0 or bool(view.entries and view.entries[0].seq == 0)


def stands_before(digest: Digest, seq: int) -> bool:
    """Whether it covers entries before `seq`, or holds what the application stated."""
    return digest.first_seq < seq or digest.last_seq < digest.first_seq


def opened_from(
    found: Sequence[SizedUnit],
    digests: Sequence[tuple[Digest, int]],
    *,
    open_from: int,
    open_max: int,
    room: int,
) -> int | None:
    """The first entry to show word for word, so that as much as possible is; None if nothing fits.

    `digests` are those that could be shown, with their tokens; one is needed only if it covers
    entries before the first one shown. The entries from `open_from` on are in no digest; `open_max`
    tokens are kept for them. If they are more, because digests lag behind or the room is small, the
    room for them grows in steps. So the result changes only with a digest or after a step.
    """
    open_tokens = sum(sized.tokens for sized in found if sized.first_seq >= open_from)
    kept, step = (open_max, room // _STEPS) if open_max < room else (0, room // 2)
    if open_tokens > kept:
        kept += -(-(open_tokens - kept) // max(step, 1)) * max(step, 1)
    first, tail = None, kept - open_tokens
    for sized in reversed(found):
        tail += sized.tokens
        needed = tail + sum(size for d, size in digests if stands_before(d, sized.first_seq))
        if tail > room:
            break
        if needed <= room:
            first = sized.first_seq
    return first
