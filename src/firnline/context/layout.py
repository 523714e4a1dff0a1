"""How the room of a context is split: from where on messages are shown, and what is quoted. Pure.

A strategy that opens digests shows as much word for word as fits next to what is worth a quote. A
provider reads a prompt again from its first change on, so the split changes in steps: with digests,
or if a question needs much more room than the one before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Final

from firnline.context import quote
from firnline.context.budget import Budget
from firnline.context.context import Piece
from firnline.context.material import Material
from firnline.context.plan import Plan, View, ends_round
from firnline.context.quote import HitGroups
from firnline.context.render import Sizes
from firnline.context.summaries import ShownData, Summaries, Summary
from firnline.context.verbatim import (
    FIRST_STEPS,
    STEP,
    Shown,
    SizedUnit,
    Tail,
    first_shown,
    open_tail,
    stands_before,
)
from firnline.log.entry import Entry

_MEMORY_SHARE: Final = 2
"""Important data and digests may take one in so many tokens, however short the tail is: they are at
the start of the prompt, so they may change only if a digest does."""
_ASKED_SMALL: Final = 1_600
_ASKED_SHARE: Final = 8
"""With a question they get one in so many tokens beyond a small room: quotes find more."""
_CLOSED_SHARE: Final = 0.6  # the most of the room that is kept for quotes next to few messages
_CLOSED_LATE: Final = 8
FREE_SHARE: Final = 10
"""If more than one in so many tokens is free, more is shown."""
_TRIES: Final = 4


@dataclass(frozen=True, slots=True)
class Layout:
    """From where on messages are shown, and what stands for those before.

    `kept` tokens are for quotes of hits. Older messages are quoted in `fill` tokens, before the
    first question from `place` on. `spare` tokens are kept for the messages to come before the next
    digest.
    """

    first: int
    important: ShownData
    digests: Sequence[Summary]
    kept: int = 0
    fill: int = 0
    spare: int = 0
    place: int | None = None


def closed_layout(
    plan: Plan, summaries: Summaries, *, room: int, free: int, late: int, wanted: int
) -> Layout:
    """The layout of a strategy that says itself from where on messages are shown.

    `late` tokens may be kept for quotes, of which the question needs those `wanted`. Memory does
    not depend on that, because it is at the start of the prompt.
    """
    kept = min(wanted, late, int(room * _CLOSED_SHARE))
    share = (free - min(late, free // _CLOSED_LATE)) // _MEMORY_SHARE
    if plan.memory_tokens is not None:
        share = min(share, plan.memory_tokens)
    share = min(share, room - kept)
    important = summaries.data(share)
    found = summaries.fitting(share - important.tokens)
    digests = [one for one in found if stands_before(one.digest, plan.recent_from)]
    return Layout(plan.recent_from, important, digests, kept)


def unanswered(question: Entry | None, found: Sequence[SizedUnit]) -> list[SizedUnit]:
    """The calls and results that follow the question, until there is an answer."""
    later = [sized for sized in found if question is not None and sized.first_seq > question.seq]
    ended = any(ends_round(entry.message) for sized in later for entry in sized.unit.entries)
    return [] if ended else later


def fitting_round(
    plan: Plan, question: Entry | None, found: Sequence[SizedUnit], room: int
) -> list[SizedUnit]:
    """What follows the question until there is an answer, if the plan and the room allow all of it.

    Without the results that it has already, an agent calls its tools again.
    """
    late = unanswered(question, found)
    room = room if plan.recent_tokens is None else min(room, plan.recent_tokens)
    many = plan.recent_count is not None and sum(len(o.pieces) for o in late) > plan.recent_count
    long = plan.long_tokens is not None and any(one.tokens > plan.long_tokens for one in late)
    return [] if many or long or sum(one.tokens for one in late) > room else late


@dataclass(frozen=True, kw_only=True)
class OpenLayouts:
    """The layouts of a strategy that opens digests.

    `found` are the units that can be shown, `given` the pieces of the question and its round, which
    are there in any case, `free` is the room with those, and `notes` are reserved for notes on
    gaps.
    """

    view: View
    plan: Plan
    budget: Budget
    material: Material
    sizes: Sizes
    summaries: Summaries
    hits: HitGroups
    found: Sequence[SizedUnit]
    free: int
    given: Sequence[Piece]
    notes: int

    def best(self) -> Layout:
        """The layout with as much word for word as fits next to what is worth a quote.

        The first message shown depends on the question in steps only, and what stands before it
        not at all: it is the start of the prompt.
        """
        most, steps = self._most_quotes, 0
        layout = same = self._within(self.free)
        for _ in range(_TRIES):
            layout = self._within(self.free - steps * self.step) if steps else same
            spare = layout.spare + steps * self.step
            wanted = quote.needed(self.hits.likely(layout.first), self.sizes, most)
            if wanted <= spare:
                break
            steps += -(-(wanted - spare) // self.step)
        return replace(layout, important=same.important, digests=same.digests, kept=wanted)

    @property
    def asks(self) -> bool:
        """Whether there is a question for which messages may be quoted."""
        return bool(self.material.recall_tokens)

    @cached_property
    def asked(self) -> int:
        """The tokens of the question and its round."""
        return sum(piece.tokens for piece in self.given)

    @cached_property
    def _most_quotes(self) -> int:
        """The most room for quotes, next to a round that does not fit as a whole."""
        stated = self.budget.recall_tokens
        room = self.free - self.asked
        there = {piece.entry.seq for piece in self.given if piece.entry}
        late = unanswered(self.material.question, self.found)
        room -= min(sum(one.tokens for one in late if one.first_seq not in there), room // 2)
        most = quote.most_quotes(room)
        return most if stated is None else min(most, stated)

    @cached_property
    def step(self) -> int:
        """The tokens by which something changes."""
        return max(int(self.free * STEP), 1)

    @cached_property
    def share(self) -> int:
        """The room for important data and digests; a question leaves the same, whatever it is."""
        share = self.free // _MEMORY_SHARE
        if self.asks:
            share = max(self.free - _ASKED_SMALL, 0) // _ASKED_SHARE
        return max(min(share, self.free - self.asked), 0)

    @cached_property
    def tail(self) -> Tail:
        """The open messages; the same before and after a late digest."""
        start, most = self.plan.recent_from, self.plan.open_max or 0
        open_tokens = sum(sized.tokens for sized in self.found if sized.first_seq >= start)
        if self.plan.folds and open_tokens > most:
            start = max(start, self.plan.folds[0].last_seq + 1)
        return open_tail(self.found, start, most, self.step)

    # -- in a room ----------------------------------------------------------------------------

    def _within(self, room: int) -> Layout:
        """The layout that leaves little of a room free, if possible on a large grid.

        Room for notes is used, too, if none is needed.
        """
        for notes in (self.notes, 0):
            layout = None
            for grid in (FIRST_STEPS * self.step, self.step, 0):
                layout = self._on_grid(grid, room + notes) or layout
                if layout is not None and self._can_fill(layout, grid + self.step):
                    break
            found = layout or self._only_newest(room + notes)
            if self._needs_no_note(found.first):
                break
        return found

    def _on_grid(self, grid: int, room: int) -> Layout | None:
        """The layout whose first message begins a step of the grid; None if none fits."""
        important = self.summaries.data(self.share)
        digests = self.summaries.fitting(self.share - important.tokens)
        shown = self._first_shown(important, digests, grid, room)
        if shown is None:
            return None
        # What is shown needs no important data, which makes room for more.
        important = self.summaries.data(self.share, shown.first)
        shown = self._first_shown(important, digests, grid, room) or shown
        important = self.summaries.data(self.share, shown.first)
        if self.asks:  # there is little room: none of it for what is shown
            digests = self.summaries.fitting(self.share - important.tokens, shown.first)
        used = sum(sized.tokens for sized in self.found if sized.first_seq >= shown.first)
        before = self._before(shown.first, important, digests)
        return Layout(
            shown.first,
            important,
            [one for one in digests if stands_before(one.digest, shown.first)],
            fill=room - before - shown.tokens,
            spare=shown.tokens - used,
            place=self.tail.start,
        )

    def _first_shown(
        self, important: ShownData, digests: Sequence[Summary], grid: int, room: int
    ) -> Shown | None:
        before = partial(self._before, important=important, digests=digests)
        return first_shown(self.found, self.tail, before, room=room, step=self.step, grid=grid)

    def _before(self, first: int, important: ShownData, digests: Sequence[Summary]) -> int:
        """The tokens of what stands for the messages before `first`."""
        apart = sum(p.tokens for p in self.given if p.entry and p.entry.seq < first)
        if self.asks:
            return self.share + apart
        memory = sum(one.piece.tokens for one in digests if stands_before(one.digest, first))
        return memory + important.tokens + apart

    def _only_newest(self, room: int) -> Layout:
        """The layout if there is hardly room for messages next to the question."""
        important = self.summaries.data(self.share)
        digests = self.summaries.fitting(self.share - important.tokens)
        first = self.view.next_seq
        if self.found and not self.asks:
            first = self.found[-1].first_seq
        memory = important.tokens + sum(one.piece.tokens for one in digests)
        return Layout(first, important, digests, fill=max(room - memory - self.asked, 0))

    def _needs_no_note(self, first: int) -> bool:
        """Whether digests cover what comes before, and the question comes after; or quotes do."""
        if self.hits.groups:
            return True
        asked = self.material.question
        return first <= self.summaries.covered and (asked is None or asked.seq >= first)

    def _can_fill(self, layout: Layout, most: int) -> bool:
        """Whether older messages can be quoted in the room that is left, without a hole."""
        if layout.fill > most:
            return False
        found = 0
        for sized in reversed(self.found):
            if sized.first_seq >= layout.first or sized.tokens > layout.fill:
                continue
            if found + self.budget.limit // FREE_SHARE > layout.fill:
                return True
            if not quote.can_be_quoted(sized.unit.entries):
                return False
            found += sized.tokens
        return True
