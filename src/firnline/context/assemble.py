"""Turns a plan into a context: what is included, in which order, and what is left out first. Pure.

A log that fits is shown whole, and nothing else. Otherwise the system messages, the pinned entries
and the user's newest question are required. If they do not fit, nothing is cut and `BudgetError`
names what takes the room; only a past question is shortened. The task follows, and the `layout`
says how the rest is split: important data and digests, the newest entries unit by unit, quotes.

What a plan lets be opened is shown word for word as far as there is room: first as the beginning of
the newest entries, then as quotes of the entries before, or of whatever matches the question.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain
from typing import Final

from firnline.context import quote
from firnline.context.budget import Budget
from firnline.context.context import (
    NO_ROOM_FOR_DIGESTS,
    NO_ROOM_FOR_ENTRIES,
    Context,
    LeftOut,
    Piece,
    Section,
    ranges,
)
from firnline.context.layout import FREE_SHARE, Layout, OpenLayouts, closed_layout, fitting_round
from firnline.context.material import Material
from firnline.context.plan import Plan, Unit, View, is_question, units
from firnline.context.quote import Group, HitGroups
from firnline.context.render import (
    GAP_NOTE,
    NOTES,
    STATED_CHARS_MIN,
    Sizes,
    excerpt,
    render_task,
    shortened,
)
from firnline.context.summaries import Summaries
from firnline.context.verbatim import SizedUnit, holds_whole_log, sized_units, trimmed
from firnline.errors import BudgetError
from firnline.log.entry import Entry, live
from firnline.log.hit import Hit
from firnline.log.message import Message
from firnline.log.tokens import REPLY_TOKENS

_TASK_SHARE: Final = 4
_LEAST_MEMORY: Final = 2  # times the digests: the room if one message is larger than a limit
_PAST_SHARE: Final = 4  # of the room is left for the rest by a past question
_SPARE_SHARE: Final = 32  # what is free after that, so that the prompt changes less
_FILL_TOKENS: Final = 100  # fewer are not worth a message of quotes
_APART_TOKENS: Final = 1_500
"""In a smaller room all quotes are one message: each has its own framing and days."""
_EXCERPTS_MAX: Final = 8
_CHANCES_SHOWN: Final = 5


def assemble(view: View, plan: Plan, budget: Budget, material: Material, sizes: Sizes) -> Context:
    """The context of the plan, as much of it as fits."""
    return _Assembly(view, plan, budget, material, sizes).context()


def check_room(view: View, plan: Plan, budget: Budget, material: Material, sizes: Sizes) -> None:
    """Raise `BudgetError` if the required parts do not fit, whatever is digested."""
    _Assembly(view, plan, budget, material, sizes).check_room()


def assemble_whole(
    view: View, plan: Plan, budget: Budget, material: Material, sizes: Sizes
) -> Context | None:
    """The whole log and nothing that it says itself; None if the view or the budget lacks room."""
    plan = replace(plan, limit_tokens=budget.limit)
    return _Assembly(view, plan, budget, material, sizes).whole()


class _Assembly:
    """The remaining room, and what is included so far."""

    def __init__(
        self, view: View, plan: Plan, budget: Budget, material: Material, sizes: Sizes
    ) -> None:
        self.view, self.plan, self.budget = view, plan, budget
        self.material, self.sizes = material, sizes
        self.limit = min(budget.limit, plan.limit_tokens or budget.limit)
        self.framing = REPLY_TOKENS
        self.left_out: list[LeftOut] = []
        self.degraded: list[str] = list(material.problems)
        self.room = budget.limit - material.tools_tokens - self.framing
        self.must: dict[str, tuple[Piece, ...]] = {}
        self.notes = self.memory_tokens = 0
        self.stated = ""
        self.summaries = Summaries(view, plan, budget, material, sizes)

    def check_room(self) -> None:
        if self.whole() is None:
            self._mandatory()

    def context(self) -> Context:
        if (whole := self.whole()) is not None:
            return whole
        question = self._mandatory()
        # If one message is as large as the limit, there is room for digests all the same.
        least = _LEAST_MEMORY * sum(digest.tokens for digest in self.view.digests)
        self.room = max(self.room - self.budget.limit + self.limit, min(self.room, least), 0)
        given = (*question, *self._round())
        asked = sum(piece.tokens for piece in given)
        task = self._task(min((self.room + asked) // _TASK_SHARE, self.room))
        layout = self._layout(given)
        self._note_memory(layout)
        self._memory(layout, Section("recent"))
        recent = self._newest(given, layout)
        pinned = self._pins_outside(recent)
        self._memory(layout, recent)
        recent, opened, recalled = self._quoted(layout, recent)
        important, digests = self._memory(layout, recent)
        digests, recent = self._with_notes(digests, recent, opened, recalled)
        sections = [
            Section("system", self.must["system"]),
            pinned,
            task,
            important,
            digests,
            recent,
            opened,
            recalled,
        ]
        quoted = {entry.seq for entry in (*opened.entries, *recalled.entries)}
        hits = tuple(hit for hit in self.material.recalled if hit.seq in quoted)
        return self._made(sections, hits)

    def _made(self, sections: Sequence[Section], hits: tuple[Hit, ...] = ()) -> Context:
        return Context(
            conversation=self.material.conversation,
            strategy=self.material.strategy,
            budget=self.budget,
            sections=tuple(section for section in sections if section.pieces),
            tools_tokens=self.material.tools_tokens,
            framing_tokens=self.framing,
            left_out=tuple(self.left_out),
            degraded=tuple(self.degraded),
            crowded=len(self.degraded) > len(self.material.problems),
            reason=self.plan.reason,
            hits=hits,
            log_tokens=self.material.log_tokens,
        )

    # -- a log that fits ----------------------------------------------------------------------

    @cached_property
    def units(self) -> list[SizedUnit]:
        """What can be sent of the view's entries, without the leading system messages."""
        hidden = {e.seq for e in self.material.system if isinstance(e, Entry)}
        return sized_units(self.view, self.sizes, hidden)

    def whole(self) -> Context | None:
        """The whole log and nothing that it says itself, if that is within the strategy's limit."""
        if self.plan.limit_tokens is None or not holds_whole_log(self.view):
            return None
        pieces = tuple(piece for sized in self.units for piece in sized.pieces)
        recent = Section("recent", pieces, "the whole conversation")
        system = Section("system", self._system_pieces())
        task = Section("task", self._task_pieces())
        fixed = self.framing + self.material.tools_tokens
        used = fixed + sum(section.tokens for section in (system, task, recent))
        if used > self.limit:
            return None
        digests = Section("digests", tuple(map(self.summaries.piece, self.summaries.before(0))))
        important = self.summaries.all_data(0)
        if used + digests.tokens + important.tokens > self.limit:
            return None
        for problem in self._problem_units():
            self._leave_out(_named(problem), problem.problem)
        whole = self._made([system, task, important, digests, recent])
        # Exact in the tokens of any model, except for messages that no provider accepts.
        shown = sum(piece.tokens for piece in whole.pieces if piece.entry)
        return replace(whole, log_tokens=max(shown, whole.log_tokens))

    def _problem_units(self) -> list[Unit]:
        """Entries that no provider would accept."""
        return [unit for unit in units(live(self.view.entries)) if unit.problem]

    # -- required parts -----------------------------------------------------------------------

    def _mandatory(self) -> tuple[Piece, ...]:
        """Reserve the room for required parts; returns the pieces of the newest question."""
        system = self._system_pieces()
        asked = self.material.question
        pins = [e for e in self.material.pinned if asked is None or e.seq != asked.seq]
        pinned = self.sizes.pieces(pins)
        # There must always be room for the notes on gaps before and after the question.
        last = self.view.next_seq
        notes = self._gap(last, last).tokens * NOTES
        question = self._question(self.room - notes - sum(p.tokens for p in (*system, *pinned)))
        note = self.notes = notes if last > len(question) else 0
        self.must = {"system": system, "pinned": pinned, "question": question}
        taken = {name: sum(p.tokens for p in pieces) for name, pieces in self.must.items()}
        floor = sum(taken.values()) + note
        if floor > self.room:
            around = {"tools": self.material.tools_tokens, "notes": note, "framing": self.framing}
            blockers = {name: size for name, size in {**taken, **around}.items() if size}
            names = ", ".join(f"{name} {size:,}" for name, size in blockers.items())
            raise BudgetError(
                f"{self.material.conversation}: at least {floor + self.budget.limit - self.room:,}"
                f" tokens needed, {self.budget.limit:,} available: {names}",
                floor=floor + self.budget.limit - self.room,
                available=self.budget.limit,
                blockers=blockers,
            )
        self.room -= floor
        return question

    def _system_pieces(self) -> tuple[Piece, ...]:
        return tuple(
            self.sizes.pieces([part])[0] if isinstance(part, Entry) else self.sizes.piece(part)
            for part in self.material.system
        )

    def _task_pieces(self) -> tuple[Piece, ...]:
        task = self.material.task
        return (self.sizes.piece(render_task(task)),) if task else ()

    def _question(self, free: int) -> tuple[Piece, ...]:
        """The newest question, complete; a past one is shortened to leave room for the rest."""
        asked = self.material.question
        if asked is None:
            return ()
        (piece,) = self.sizes.pieces([asked])
        cap = free - free // _PAST_SHARE
        if not self.material.past or asked in self.material.pinned or piece.tokens <= cap:
            return (piece,)
        short = excerpt(asked.message, cap, self.sizes, asked)
        if short is None:  # too little room, or nothing to cut: it is treated like other entries
            self.material = replace(self.material, question=None)
            return ()
        self._leave_out(f"the middle of message {asked.seq}", "too long")
        return (short,)

    def _round(self) -> tuple[Piece, ...]:
        """The pieces of the round that is not answered yet, if all of it fits."""
        late = fitting_round(self.plan, self.material.question, self.units, self.room)
        self.room -= sum(one.tokens for one in late)
        return tuple(piece for one in late for piece in one.pieces)

    def _task(self, cap: int) -> Section:
        if not self.material.task:
            return Section("task")
        (piece,) = self._task_pieces()
        if piece.tokens > cap:
            short = excerpt(piece.message, cap, self.sizes, None)
            if short is None:
                self._leave_out("the task", "it does not fit")
                return Section("task")
            piece = short
        return self._take(Section("task", (piece,)))

    # -- memory -------------------------------------------------------------------------------

    @property
    def opens(self) -> bool:
        """Whether digests are opened."""
        return self.plan.open_max is not None

    @property
    def asks(self) -> bool:
        """Whether there is a question for which messages may be quoted."""
        return bool(self.material.recall_tokens)

    def _layout(self, given: Sequence[Piece]) -> Layout:
        """How the room is split; shares do not depend on the question, so that they stay."""
        free = self.room + sum(piece.tokens for piece in given)
        if not self.opens:
            late = self.material.recall_tokens or 0
            worthy = self.hits.best_before(self.plan.recent_from)
            most = max(min(late, self.room), 0)
            return closed_layout(
                self.plan,
                self.summaries,
                room=self.room,
                free=free,
                late=late,
                wanted=quote.needed(worthy, self.sizes, most),
            )
        layouts = OpenLayouts(
            view=self.view,
            plan=self.plan,
            budget=self.budget,
            material=self.material,
            sizes=self.sizes,
            summaries=self.summaries,
            hits=self.hits,
            found=self.units,
            free=free,
            given=given,
            notes=self.notes,
        )
        return layouts.best()

    def _note_memory(self, layout: Layout) -> None:
        """Note what of the memory does not fit."""
        if layout.important.cut:
            self._leave_out(layout.important.cut, "no room")
        versions = {digest.version for digest, _ in layout.digests}
        before = self.summaries.before(layout.first)
        missing = [digest.version for digest in before if digest.version not in versions]
        if missing:
            self._leave_out(f"digest {missing[-1]} and those before it", "no room")
            self.degraded.append(NO_ROOM_FOR_DIGESTS)

    def _memory(self, layout: Layout, recent: Section) -> tuple[Section, Section]:
        """Important data and digests, without what is there as a message."""
        pieces = (*recent.pieces, *self.must["pinned"])
        entries = [p.entry for p in pieces if p.entry and p.entry.message.text in p.message.text]
        texts = {entry.message.text for entry in entries}
        important = self.summaries.data_without(layout.important, texts)
        digests = self.summaries.section(layout.digests, entries)
        tokens = important.tokens + digests.tokens
        self.room, self.memory_tokens = self.room + self.memory_tokens - tokens, tokens
        self.stated = "\n".join(m.text for m in (*important.messages, *digests.messages))
        return important, digests

    def _gaps(self, recent: Section) -> tuple[range, range]:
        """What is neither digested nor shown: before the newest messages, and after the question.

        The question may be older than all others that are shown.
        """
        shown = [piece.entry.seq for piece in recent.pieces if piece.entry]
        last = self.view.next_seq
        start = self.summaries.covered or sum(
            isinstance(part, Entry) for part in self.material.system
        )
        before = range(start, min(shown, default=last))
        asked = self.material.question
        if asked is None or shown[:1] != [asked.seq] or asked.seq + 1 in shown:
            return self._without_pins(before), range(0)
        later = range(max(asked.seq + 1, start), min(shown[1:], default=last))
        return self._without_pins(before), later

    def _without_pins(self, gap: range) -> range:
        pins = {piece.entry.seq for piece in self.must["pinned"] if piece.entry}
        return trimmed(gap, pins)

    def _with_notes(
        self, digests: Section, recent: Section, opened: Section, recalled: Section
    ) -> tuple[Section, Section]:
        """The sections with notes on what is not shown before the newest messages, and in them."""
        quoted = {entry.seq for entry in (*opened.entries, *recalled.entries)}
        place = next((piece.before for piece in opened.pieces), None)
        before, after = (self._note(gap, quoted, place) for gap in self._gaps(recent))
        question, newest = recent.pieces[: len(after)], recent.pieces[len(after) :]
        return (
            replace(digests, pieces=(*digests.pieces, *before)),
            replace(recent, pieces=(*question, *after, *newest)),
        )

    def _note(self, gap: range, quoted: set[int], place: int | None) -> tuple[Piece, ...]:
        """A note on a gap, at the place of older messages, which change it.

        None if quotes are scattered over it: they say themselves that they are some of many.
        """
        gap = trimmed(gap, quoted)
        if not gap:
            return ()
        scattered = not quoted.isdisjoint(gap)
        self._leave_gap_out(gap, scattered=scattered)
        note = self._gap(gap[0], gap[-1])._replace(before=place)
        if scattered or note.tokens > self.room + self.notes:
            return ()
        self.room -= note.tokens
        return (note,)

    def _leave_gap_out(self, gap: range, *, scattered: bool) -> None:
        planned = self.plan.recent_count is not None or self.plan.recent_tokens is not None
        kept_out = "they are of other topics" if self.view.topic else "the strategy shows fewer"
        why = self.plan.reason or kept_out if planned else "they are in no digest yet, no room"
        what = f"messages {gap[0]} to {gap[-1]}" + " that are not quoted" * scattered
        self._leave_out(what, why)
        if not planned:
            self.degraded.append(f"{what} {NO_ROOM_FOR_ENTRIES}")

    def _gap(self, first: int, last: int) -> Piece:
        return self.sizes.piece(Message.user(GAP_NOTE.format(first, last)))

    # -- the newest entries -------------------------------------------------------------------

    def _newest(self, given: tuple[Piece, ...], layout: Layout) -> Section:
        """The newest messages; if they need no notes on gaps, the room for these is used."""
        before = self.room, len(self.left_out), len(self.degraded)
        recent = self._recent(given, layout.first, self.room + self.notes - layout.kept)
        if any(self._gaps(recent)):
            self.room = before[0]
            del self.left_out[before[1] :], self.degraded[before[2] :]
            recent = self._recent(given, layout.first, self.room - layout.kept)
        if self.asks or not any(self._gaps(recent)):
            self.room, self.notes = self.room + self.notes, 0
        return recent

    def _recent(self, given: tuple[Piece, ...], start: int, room: int) -> Section:
        """The newest units from `start` on that fit, and always those given."""
        there = {piece.entry.seq: piece for piece in given if piece.entry}
        shown: list[tuple[Piece, ...]] = []
        count = 0
        used = sum(piece.tokens for seq, piece in there.items() if seq >= start)
        tail = [sized for sized in self.units if sized.unit.last_seq >= start]
        for sized in reversed(tail):
            unit = sized.unit
            most = self.plan.recent_count
            if most is not None and count and count + len(unit.entries) > most:
                break
            cap = room if self.plan.recent_tokens is None else self.plan.recent_tokens - used
            pieces = self._fitting(sized, min(room, cap), there)
            if pieces is None:
                self._leave_out(f"{_named(unit)} and those before", "no room")
                break
            extra = _beyond(there, pieces)
            room, used, count = room - extra, used + extra, count + len(unit.entries)
            self.room -= extra
            shown.append(pieces)
        for problem in self._problem_units():
            if problem.last_seq >= start:
                self._leave_out(_named(problem), problem.problem)
        pieces = tuple(chain(*shown[::-1]))
        seqs = {piece.entry.seq for piece in pieces if piece.entry}
        older = (piece for seq, piece in there.items() if seq not in seqs)
        return Section("recent", (*older, *pieces), self._why(start))

    def _why(self, first: int) -> str:
        """Which digests are opened, because there is room for what they cover."""
        digests = self.view.digests if self.opens else ()
        opened = [digest.version for digest in digests if digest.last_seq >= first]
        noun = "digest" if len(opened) == 1 else "digests"
        return f"{noun} {ranges(opened)} opened: there is room" if opened else ""

    def _fitting(
        self, sized: SizedUnit, room: int, given: Mapping[int, Piece]
    ) -> tuple[Piece, ...] | None:
        """The unit, complete or with long messages shortened; None if it does not fit."""
        unit = sized.unit
        pieces = tuple(given.get(p.entry.seq, p) if p.entry else p for p in sized.pieces)
        if all(entry.seq in given for entry in unit.entries):
            return pieces
        long = self.plan.long_tokens
        too_long = long is not None and sized.tokens > long
        room = min(room, long // 2) if long is not None and too_long else room
        if _beyond(given, pieces) <= room:
            return pieces
        # Only a unit that could never fit is shortened; old units are left out instead.
        newest = unit.last_seq == self.view.next_seq - 1 or unit.tokens > self.budget.limit // 2
        short = shortened(pieces, room, self.sizes) if newest or too_long else None
        self._note_short(short or ())
        return short

    def _pins_outside(self, recent: Section) -> Section:
        inside = {entry.seq for entry in recent.entries}
        pins = self.must["pinned"]
        outside = tuple(p for p in pins if p.entry and p.entry.seq not in inside)
        self.room += sum(p.tokens for p in pins) - sum(p.tokens for p in outside)
        return Section("pinned", outside)

    # -- quoted entries -----------------------------------------------------------------------

    @cached_property
    def hits(self) -> HitGroups:
        """The hits that can be quoted."""
        return HitGroups(self.material, self.limit)

    def _quoted(self, layout: Layout, recent: Section) -> tuple[Section, Section, Section]:
        """The newest messages, and quotes: of older ones, and of what matches the question."""
        present = self.material.required | {p.entry.seq for p in recent.pieces if p.entry}
        earned = self.hits.best
        if not self.opens:
            recalled = self._pieces(earned, min(self.room, layout.kept), present)
            return recent, Section("opened"), self._of_hits(recalled)
        older = self._older(layout, recent, present)
        likely = self.hits.likely(self.view.next_seq)
        stated = self.budget.recall_tokens
        room = self.room if stated is None else min(self.room, stated)
        recalled = self._pieces(likely if room < _APART_TOKENS else earned, room, present)
        late = self._late(likely, layout, present)
        recent = self._with_excerpts(recent, layout, present)
        why = ["older messages"] * bool(older) + ["other matches"] * bool(late)
        opened = Section("opened", (*older, *late), f"{', '.join(why)}: there is room")
        return recent, opened, self._of_hits(recalled)

    def _of_hits(self, pieces: tuple[Piece, ...]) -> Section:
        """The section of what was recalled, and how likely it is to be of use."""
        seqs = {entry.seq for piece in pieces for entry in piece.quoted}
        chances = [f"{hit.chance:.2f}" for hit in self.material.recalled if hit.seq in seqs]
        more = ", …" if len(chances) > _CHANCES_SHOWN else ""
        why = f"chance {', '.join(chances[:_CHANCES_SHOWN])}{more}"
        return Section("recalled", pieces, why if chances else "")

    def _pieces(
        self, groups: Sequence[Group], room: int, present: set[int], before: int | None = None
    ) -> tuple[Piece, ...]:
        """As many of the groups as fit, as quotes; they are present then."""
        waiting: list[Group] = []
        seen = set(present)
        for whole in groups:
            if group := quote.not_in(seen, whole):
                waiting.append(group)
                seen.update(entry.seq for entry in group)
        entries = quote.fitting(waiting, room, self.sizes, self.hits.outdated)
        here = present.union(entry.seq for entry in entries)
        entries = [e for e in entries if self.hits.outdated.get(e.seq, e.seq) in here]
        pieces = quote.quotes(entries, self.sizes, self.hits.outdated, before)
        self.room -= sum(piece.tokens for piece in pieces)
        present.update(entry.seq for entry in entries)
        return pieces

    def _is_full(self, used: int = 0) -> bool:
        """Whether little is free, if so much more is used. Room for notes may not be needed."""
        return (self.room + self.notes - used) * FREE_SHARE <= self.limit

    def _not_stated(self, groups: Sequence[Group]) -> list[Group]:
        """Those whose whole text digests and important data do not hold already."""
        return [group for group in groups if not self._is_stated(group)]

    def _is_stated(self, group: Group) -> bool:
        texts = [entry.message.text for entry in group]
        long = len(texts[0]) >= STATED_CHARS_MIN and quote.can_be_quoted(group)
        return long and all(text in self.stated for text in texts)

    def _older(self, layout: Layout, recent: Section, present: set[int]) -> tuple[Piece, ...]:
        """Quotes of the messages before the first one shown, in the room that is left for them.

        They stand after the messages that digests cover: what is there changes with every digest.
        """
        room = min(layout.fill, self.room - layout.kept)
        if room < _FILL_TOKENS:
            return ()
        groups: list[Group] = []
        for sized in reversed(self.units):
            if sized.first_seq < layout.first and sized.tokens <= room:
                if not quote.can_be_quoted(sized.unit.entries):
                    break
                groups.append(sized.unit.entries)
        asked = (p.entry.seq for p in recent.pieces if p.entry and is_question(p.message))
        before = next((seq for seq in asked if seq >= (layout.place or 0)), None)
        return self._pieces(self._not_stated(groups), room, present, before)

    def _late(
        self, likely: Sequence[Group], layout: Layout, present: set[int]
    ) -> tuple[Piece, ...]:
        """Quotes of what is likely, and of whatever there is room for."""
        likely = [one for group in likely if (one := quote.not_in(present, group))]
        used = quote.needed(likely, self.sizes, self.room)
        if self._is_full(used):
            return self._pieces(self._not_stated(likely), self.room, present)
        older = [sized.unit.entries for sized in reversed(self.units)]
        older = [g for g in older if g[0].seq < layout.first and quote.can_be_quoted(g)]
        rest = [*(group for _, group in self.hits.groups if self.material.asks), *older]
        room = max(self.room - self.limit // _SPARE_SHARE, used)
        return self._pieces(self._not_stated([*likely, *rest]), room, present)

    def _with_excerpts(self, recent: Section, layout: Layout, present: set[int]) -> Section:
        """With excerpts of the newest messages that are not there, while much room is free."""
        short: list[tuple[Piece, ...]] = []
        tries = 0
        for sized in reversed(self.units):
            if self._is_full() or tries == _EXCERPTS_MAX:
                break
            entries = sized.unit.entries
            there = not present.isdisjoint(entry.seq for entry in entries)
            if sized.first_seq >= layout.first or there or self._is_stated(entries):
                continue
            tries += 1
            pieces = shortened(sized.pieces, self.room, self.sizes)
            if pieces is not None:
                short.append(pieces)
                self.room -= sum(piece.tokens for piece in pieces)
                self._note_short(pieces)
        asked = self.material.question
        older = [pieces for pieces in short[::-1] if asked is None or _seq(pieces) < asked.seq]
        newer = [pieces for pieces in short[::-1] if pieces not in older]
        at = int(bool(newer))  # the question comes first if it is older than all that is shown
        return replace(
            recent,
            pieces=(*chain(*older), *recent.pieces[:at], *chain(*newer), *recent.pieces[at:]),
        )

    def _note_short(self, pieces: Sequence[Piece]) -> None:
        for piece in pieces:
            if piece.entry and not piece.whole:
                self._leave_out(f"the middle of message {piece.entry.seq}", "too long")

    # -- bookkeeping --------------------------------------------------------------------------

    def _take(self, section: Section) -> Section:
        self.room -= section.tokens
        return section

    def _leave_out(self, what: str, why: str) -> None:
        self.left_out.append(LeftOut(what, why))


def _beyond(given: Collection[int], pieces: Sequence[Piece]) -> int:
    """The tokens of the pieces besides those given."""
    return sum(p.tokens for p in pieces if p.entry is None or p.entry.seq not in given)


def _seq(pieces: Sequence[Piece]) -> int:
    return min(piece.entry.seq for piece in pieces if piece.entry)


def _named(unit: Unit) -> str:
    if unit.first_seq == unit.last_seq:
        return f"message {unit.first_seq}"
    return f"messages {unit.first_seq} to {unit.last_seq}"
