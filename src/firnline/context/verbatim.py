"""Which entries are shown word for word: a log that fits as a whole, or the newest of it. Pure.

A provider reads a prompt again from its first change on. So the first entry that is shown moves
rarely and by much: where the running total of the log passes a multiple of a step. What the steps
leave free is used after the entries that digests cover, where a change costs little.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final, NamedTuple

from firnline.context.context import Piece
from firnline.context.plan import Unit, View, units
from firnline.context.render import Sizes
from firnline.log.entry import Digest, live

STEP: Final = 0.09
"""The share of the room by which open entries grow before something changes: less than a tenth,
because that is the most that a context leaves free."""
FIRST_STEPS: Final = 3
"""The first entry shown moves by so many steps; why: `docs/decisions.md`."""


class SizedUnit(NamedTuple):
    """A unit that can be sent, with its pieces and their tokens."""

    unit: Unit
    pieces: tuple[Piece, ...]
    tokens: int

    @property
    def first_seq(self) -> int:
        """The lowest of its sequence numbers."""
        return self.unit.first_seq

    @property
    def start(self) -> int:
        """The running total of the log before it."""
        return min(entry.total - entry.tokens for entry in self.unit.entries)


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


class Tail(NamedTuple):
    """The newest entries from `start` on; up to `kept` tokens are kept for them and more of them.

    Digests cover the entries before, or will soon.
    """

    start: int
    kept: int


def open_tail(found: Sequence[SizedUnit], start: int, kept: int, step: int) -> Tail:
    """The entries that no digest covers, from `start` on, if they have at most `kept` tokens.

    If they have more, because digests lag behind, the newest of them that would be open without
    that. If far more could be open than a step, they grow by steps.
    """
    tokens = sum(sized.tokens for sized in found if sized.first_seq >= start)
    if kept > 2 * step:
        kept = min(kept, -(-max(tokens, 1) // step) * step)
    if tokens <= kept:
        return Tail(start, kept)
    first, used = start, 0
    for sized, begins in _steps(found, step):
        used += sized.tokens
        if used > kept or sized.first_seq < start:
            break
        if begins:
            first = sized.first_seq
    return Tail(first, kept)


class Shown(NamedTuple):
    """The first entry shown, and the tokens that are kept from there on."""

    first: int
    tokens: int


def first_shown(
    found: Sequence[SizedUnit],
    tail: Tail,
    before: Callable[[int], int],
    *,
    room: int,
    step: int,
    grid: int,
) -> Shown | None:
    """The first entry to show, so that as much as possible is; None if nothing fits.

    `before` returns the tokens of what stands for the entries before a number. The first entry is
    one in which a step of the `grid` begins, or any if that is 0. Where there is room for more than
    the open entries, the result changes only with a digest, or after a step of them.
    """
    best = None
    used = covered = 0
    for sized, begins in _steps(found, grid):
        used += sized.tokens
        if sized.first_seq < tail.start:
            covered += sized.tokens
            tokens = tail.kept + covered
        else:
            tokens = min(used + step, max(tail.kept, used)) if grid else used
        if tokens > room:
            break
        if begins and tokens + before(sized.first_seq) <= room:
            best = Shown(sized.first_seq, tokens)
    return best


def _steps(found: Sequence[SizedUnit], step: int) -> Iterator[tuple[SizedUnit, bool]]:
    """The units, the newest first, and whether a step of the running total begins in each."""
    for at in range(len(found) - 1, -1, -1):
        sized = found[at]
        if step == 0:
            begins = True
        elif at == 0:
            begins = sized.first_seq == 0
        else:
            begins = found[at - 1].start // step != sized.start // step
        yield sized, begins


def trimmed(gap: range, without: Collection[int]) -> range:
    """The range without numbers at its ends."""
    first, last = gap.start, gap.stop - 1
    while first <= last and first in without:
        first += 1
    while last >= first and last in without:
        last -= 1
    return range(first, last + 1)
