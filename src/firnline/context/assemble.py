"""Turns a plan into a context: what is included, in which order, and what is left out first. Pure.

A log that fits is shown whole, and nothing else. Otherwise the system messages, the pinned entries
and the user's newest question are required. If they do not fit, nothing is cut and `BudgetError`
names what takes the room; only a past question is shortened. Then follow, while there is room: the
task, the important data, the digests, the newest entries unit by unit, and recalled entries.

What a plan lets be opened is shown word for word as far as there is room: first as the beginning of
the newest entries, then as quotes next to the recalled ones.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from firnline.context import quote
from firnline.context.budget import Budget
from firnline.context.context import (
    NO_ROOM_FOR_DIGESTS,
    NO_ROOM_FOR_ENTRIES,
    Context,
    LeftOut,
    Piece,
    Section,
    SectionName,
)
from firnline.context.plan import Plan, Unit, View, data_room, units
from firnline.context.render import (
    GAP_NOTE,
    NOTES,
    NOTHING_YET,
    Sizes,
    excerpt,
    newest_part,
    render_data,
    render_digest,
    render_task,
    shortened,
)
from firnline.context.verbatim import (
    SizedUnit,
    holds_whole_log,
    opened_from,
    sized_units,
    stands_before,
)
from firnline.errors import BudgetError
from firnline.log.entry import Digest, Entry, Hit, live
from firnline.log.message import Message
from firnline.log.tokens import REPLY_TOKENS

_TASK_SHARE: Final = 4
_MEMORY_SHARE: Final = 2
"""Important data and digests may take one in so many tokens, however short the tail is: they are at
the start of the prompt, so they may change only if a digest does."""
_DIGEST_SHARE: Final = 12
"""The newest digest gets one in so many tokens even if nearly all others are for quotes."""
_PAST_SHARE: Final = 4  # of the room is left for the rest by a past question
_DATA_STEPS: Final = 16
_NEWEST_UNITS: Final = 2  # the question and what it follows
_LIKELY: Final = 0.001
"""The chance of a message to be evidence above which it is quoted before the newest messages."""
_BEST_HITS: Final = 3  # are quoted before them, however unlikely
_OPENED_SHARE: Final = 16
_FREE_SHARE: Final = 10
"""If more than one in so many tokens is free, older entries are quoted."""


def _no_data(first_shown: int | None = None) -> Mapping[str, Any]:  # noqa: ARG001 - a default
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """Everything a context can include besides the view.

    `question` is the user's newest message; it is `past` if the question to answer is not stored
    yet. `recalled` are entries that match the question, best first; the first `earned` of them are
    worth their place; `asked` has the questions of answers among them. `recall_tokens` are kept for
    them; None if there is no question. `data` gives
    the important data that the entries from a number on do not show, or all of it.
    `log_tokens` are those of the whole log.
    """

    conversation: str
    strategy: str
    system: tuple[Message | Entry, ...] = ()
    pinned: tuple[Entry, ...] = ()
    task: str = ""
    data: Callable[[int | None], Mapping[str, Any]] = _no_data
    question: Entry | None = None
    past: bool = False
    recalled: tuple[Hit, ...] = ()
    earned: int = 0
    asked: Mapping[int, Entry] = quote.NO_QUESTIONS
    recall_tokens: int | None = None
    tools_tokens: int = 0
    problems: tuple[str, ...] = ()
    log_tokens: int = 0


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
        self.notes = 0

    def check_room(self) -> None:
        if self.whole() is None:
            self._mandatory()

    def context(self) -> Context:
        if (whole := self.whole()) is not None:
            return whole
        question = self._mandatory()
        if self.plan.open_max is not None:
            # If one message is as large as the limit, there is room for digests all the same.
            least = _MEMORY_SHARE * sum(digest.tokens for digest in self.view.digests)
            self.room = max(self._within_limit(), min(self.room, least))
        # Shares do not depend on the question, so that they are the same in every turn.
        asked = sum(piece.tokens for piece in question)
        task = self._task(min((self.room + asked) // _TASK_SHARE, self.room))
        free = self.room + asked
        floor = self._digest_floor(free)
        late = self._late_room(free - floor)
        share = floor + (free - floor - late) // _MEMORY_SHARE
        if self.plan.memory_tokens is not None:
            share = min(share, self.plan.memory_tokens)
        kept = self._kept_late(late, free - share)
        self.room -= kept
        first, important, digests = self._memory(min(share, self.room), free - late)
        recent = self._recent(question, self._start(first), self.room)
        self.room += kept
        gap = self._gap_before(recent)
        if gap is None and all(piece.entry for piece in recent.pieces):
            self.room, self.notes = self.room + self.notes, 0  # no note is needed
        opened, recalled, hits = self._quotes(recent, first, late)
        quoted = {entry.seq for entry in (*opened.entries, *recalled.entries)}
        if gap is not None and quoted.issuperset(gap):
            self.room += self._gap(gap[0], gap[-1]).tokens  # this note is not needed
        recent = self._with_excerpt(recent, first, quoted)
        sections = [
            Section("system", self.must["system"]),
            Section("pinned", self._pins_outside(recent)),
            task,
            important,
            self._with_gap(digests, gap, quoted),
            recent,
            opened,
            recalled,
        ]
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
        stated = [self._digest_piece(d, residue=True) for d in self._digests_before(0)]
        digests = Section("digests", tuple(stated))
        data = self.material.data(0) if self.plan.important else {}
        text = [self.sizes.piece(Message.user(render_data(data)))] if any(data.values()) else []
        important = Section("important", tuple(text))
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
        return self._taken(Section("task", (piece,)))

    # -- memory -------------------------------------------------------------------------------

    def _chooses_quotes(self) -> bool:
        """Whether quotes are worth more than the rest, which is no failure if it does not fit."""
        return self.plan.open_max is not None and self.material.recall_tokens is not None

    def _late_room(self, free: int) -> int:
        """The share of quotes. It changes with a digest, or in steps where digests lag behind."""
        asked, most = self.material.recall_tokens, self.plan.open_max
        if asked is None:
            return 0
        if most is None:
            return asked
        log = self.view.covered_tokens + max(self.view.open_tokens, most)
        return quote.share(free, log, self.budget.recall_tokens)

    def _digest_floor(self, free: int) -> int:
        """The room that the newest digest gets in any case."""
        if self.plan.open_max is None or not self.plan.digests:
            return 0
        newest = self._digest_piece(self.view.digests[-1], residue=False)
        return min(newest.tokens, free // _DIGEST_SHARE)

    def _kept_late(self, share: int, free: int) -> int:
        """The room that is kept for quotes next to the newest messages."""
        if self.plan.open_max is None:
            return min(share, self.room * 3 // 5)
        newest = sum(sized.tokens for sized in self.units[-_NEWEST_UNITS:])
        return min(quote.next_to(newest, share, free), self.room)

    def _memory(self, room: int, stable: int) -> tuple[int, Section, Section]:
        """The first entry to show word for word, and the important data and digests before it.

        The first entry depends on the `stable` room, which the newest messages do not change.
        """
        first, open_max = self.plan.recent_from, self.plan.open_max
        share = self._data_room(room)
        important, cut = self._important(share)
        digests = self._digests(room - important.tokens)
        if open_max is not None:
            # What is shown word for word needs no important data, which makes room for more.
            sizes = [(digest, piece.tokens) for digest, piece in digests]
            for notes in self._notes_to_spare():
                for _ in range(2):
                    most = stable + notes - important.tokens
                    opened = self._opened_from(sizes, open_max, most)
                    first = self.plan.recent_from if opened is None else opened
                    important, cut = self._important(share, first)
                if notes and opened is not None and self._needs_no_note(opened):
                    self.room, self.notes = self.room + notes, 0
                    break
        if cut:
            self._leave_out(cut, "no room")
        shown = [(d, piece) for d, piece in digests if d in self._digests_before(first)]
        self._note_digests(shown, first)
        why = f"messages {shown[0][0].first_seq}-{shown[-1][0].last_seq}" if shown else ""
        pieces = tuple(piece for _, piece in shown)
        return first, self._taken(important), self._taken(Section("digests", pieces, why))

    def _notes_to_spare(self) -> tuple[int, ...]:
        """The room of notes on gaps, if there may be none, and then without it."""
        return (0,) if self.material.recall_tokens is not None else (self.notes, 0)

    def _needs_no_note(self, first: int) -> bool:
        """Whether digests cover what comes before, and the question comes after."""
        asked = self.material.question
        return first <= self._covered() and (asked is None or asked.seq >= first)

    def _opened_from(
        self, digests: Sequence[tuple[Digest, int]], most: int, room: int
    ) -> int | None:
        """The first entry to show word for word; the same before and after a late digest."""
        start = self.plan.recent_from
        if self.plan.folds and sum(u.tokens for u in self.units if u.first_seq >= start) > most:
            start = max(start, self.plan.folds[0].last_seq + 1)
        return opened_from(self.units, digests, open_from=start, open_max=most, room=room)

    def _start(self, first: int) -> int:
        """Where the newest messages start: where there is little room, a few are shown anyway."""
        newest = self.units[-_NEWEST_UNITS:]
        if self.plan.open_max is None or not newest:
            return first
        return min(first, newest[0].first_seq)

    def _data_room(self, memory: int) -> int:
        """The share of important data: a third, but the newest digest has priority."""
        share = memory // 3
        if not self.plan.digests:
            return share
        newest = self.view.digests[-1].tokens
        return share if newest > memory else min(share, memory - newest)

    def _digest_piece(self, digest: Digest, *, residue: bool) -> Piece:
        text = render_digest(digest, self.plan.heading, residue=residue)
        return self.sizes.piece(Message(self.plan.digest_role, text))

    def _important(self, room: int, first: int | None = None) -> tuple[Section, str]:
        """As much important data as fits, and what of it does not."""
        most = self.plan.data_tokens
        room = min(room, data_room(self.budget) if most is None else most)
        data = self.material.data(first) if self.plan.important else {}
        whole = max(self.view.data_tokens, 1) if first is None else room
        # Skip sizes that certainly do not fit.
        most_steps = _DATA_STEPS if whole <= room else room * _DATA_STEPS // whole + 1
        for steps in range(min(most_steps, _DATA_STEPS), 0, -1):
            kept = newest_part(data, steps / _DATA_STEPS)
            if not any(kept.values()):
                break
            piece = self.sizes.piece(Message.user(render_data(kept)))
            if piece.tokens <= room:
                cut = "the older part of the important data" if steps < _DATA_STEPS else ""
                return Section("important", (piece,)), cut
        return Section("important"), "the important data" if any(data.values()) else ""

    def _digests_before(self, first: int) -> list[Digest]:
        """The digests of the plan that cover entries before `first`, or what the caller stated."""
        return [
            digest
            for digest in self.view.digests
            if digest.version in self.plan.digests
            and digest.text
            and digest.text != NOTHING_YET
            and stands_before(digest, first)
        ]

    def _digests(self, room: int) -> list[tuple[Digest, Piece]]:
        """The digests of the plan, or the newest that fit."""
        chosen: list[tuple[Digest, Piece]] = []
        for digest in reversed(self._digests_before(self.view.next_seq)):
            piece = self._digest_piece(digest, residue=True)
            if piece.tokens > room:
                piece = self._digest_piece(digest, residue=False)
            if piece.tokens > room:
                break
            room -= piece.tokens
            chosen.append((digest, piece))
        return chosen[::-1]

    def _note_digests(self, shown: Sequence[tuple[Digest, Piece]], first: int) -> None:
        """Note the digests before `first` that did not fit."""
        versions = {digest.version for digest, _ in shown}
        missing = [d.version for d in self._digests_before(first) if d.version not in versions]
        if missing:
            self._leave_out(f"digest {missing[-1]} and those before it", "no room")
            if not self._chooses_quotes():
                self.degraded.append(NO_ROOM_FOR_DIGESTS)

    def _covered(self) -> int:
        """The first entry that no digest of the plan covers."""
        shown = [d.last_seq + 1 for d in self.view.digests if d.version in self.plan.digests]
        return max(shown, default=0)

    def _gap_before(self, recent: Section) -> range | None:
        """The entries before the newest ones that are neither digested nor shown, if any."""
        first = min((p.entry.seq for p in recent.pieces if p.entry), default=self.view.next_seq)
        start = self._covered() or sum(isinstance(part, Entry) for part in self.material.system)
        pins = {p.entry.seq for p in self.must["pinned"] if p.entry}
        last = first - 1
        while start in pins:
            start += 1
        while last in pins:
            last -= 1
        return range(start, last + 1) or None

    def _with_gap(self, digests: Section, gap: range | None, quoted: set[int]) -> Section:
        """Add a note on the gap, unless all of it is quoted."""
        if gap is None or quoted.issuperset(gap):
            return digests
        self._leave_gap_out(gap[0], gap[-1])
        return replace(digests, pieces=(*digests.pieces, self._gap(gap[0], gap[-1])))

    def _leave_gap_out(self, first: int, last: int) -> None:
        planned = self.plan.recent_count is not None or self.plan.recent_tokens is not None
        kept_out = "they are of other topics" if self.view.topic else "the strategy shows fewer"
        why = self.plan.reason or kept_out if planned else "they are in no digest yet, no room"
        self._leave_out(f"messages {first} to {last}", why)
        if not planned and not self._chooses_quotes():
            self.degraded.append(f"messages {first} to {last} {NO_ROOM_FOR_ENTRIES}")

    def _gap(self, first: int, last: int) -> Piece:
        return self.sizes.piece(Message.user(GAP_NOTE.format(first, last)))

    # -- the newest entries -------------------------------------------------------------------

    def _recent(self, question: tuple[Piece, ...], start: int, room: int) -> Section:
        """The newest units from `start` on that fit, and always the question."""
        asked = self.material.question.seq if self.material.question else -1
        shown: list[tuple[Piece, ...]] = []
        count = 0
        used = sum(piece.tokens for piece in question if asked >= start)
        tail = [sized for sized in self.units if sized.unit.last_seq >= start]
        for sized in reversed(tail):
            unit = sized.unit
            most = self.plan.recent_count
            if most is not None and count and count + len(unit.entries) > most:
                break
            cap = room if self.plan.recent_tokens is None else self.plan.recent_tokens - used
            pieces = self._fitting(sized, min(room, cap), question)
            if pieces is None:
                self._leave_out(f"{_named(unit)} and those before", "no room")
                break
            extra = sum(p.tokens for p in pieces if not p.entry or p.entry.seq != asked)
            room, used, count = room - extra, used + extra, count + len(unit.entries)
            self.room -= extra
            shown.append(pieces)
        for problem in self._problem_units():
            if problem.last_seq >= start:
                self._leave_out(_named(problem), problem.problem)
        return Section("recent", self._with_question(question, shown[::-1]))

    def _with_question(
        self, question: tuple[Piece, ...], shown: Sequence[tuple[Piece, ...]]
    ) -> tuple[Piece, ...]:
        """The pieces with the question; if it is older, with a note on the gap."""
        pieces = tuple(piece for group in shown for piece in group)
        numbers = [piece.entry.seq for piece in pieces if piece.entry]
        asked = self.material.question.seq if self.material.question else -1
        if not question or asked in numbers:
            return pieces
        first = max(asked, self._covered() - 1) + 1
        last = min(numbers, default=self.view.next_seq) - 1
        if first > last:
            return (*question, *pieces)
        self._leave_gap_out(first, last)
        return (*question, self._gap(first, last), *pieces)

    def _fitting(
        self, sized: SizedUnit, room: int, question: tuple[Piece, ...]
    ) -> tuple[Piece, ...] | None:
        """The unit, complete or with long messages shortened; None if it does not fit."""
        unit = sized.unit
        given = {p.entry.seq: p for p in question if p.entry}
        asked = next(iter(given), -1)
        pieces = tuple(given.get(p.entry.seq, p) if p.entry else p for p in sized.pieces)
        if unit.last_seq == asked:
            return pieces
        long = self.plan.long_tokens
        too_long = long is not None and sized.tokens > long
        room = min(room, long // 2) if long is not None and too_long else room
        if sum(p.tokens for p in pieces if p.entry and p.entry.seq != asked) <= room:
            return pieces
        # Only a unit that could never fit is shortened; old units are left out instead.
        newest = unit.last_seq == self.view.next_seq - 1 or unit.tokens > self.budget.limit // 2
        short = shortened(pieces, room, self.sizes) if newest or too_long else None
        for piece in short or ():
            if piece.entry and not piece.whole:
                self._leave_out(f"the middle of message {piece.entry.seq}", "too long")
        return short

    def _with_excerpt(self, recent: Section, first: int, quoted: set[int]) -> Section:
        """With an excerpt of the newest message not shown, if it alone leaves much room free."""
        if self.plan.open_max is None or (self.room + self.notes) * _FREE_SHARE <= self.limit:
            return recent
        shown = {piece.entry.seq for piece in (*recent.pieces, *self.must["pinned"]) if piece.entry}
        shown |= quoted
        for sized in reversed(self.units):
            if sized.first_seq < first and shown.isdisjoint(e.seq for e in sized.unit.entries):
                return self._shortened_before(sized, recent)
        return recent

    def _shortened_before(self, sized: SizedUnit, recent: Section) -> Section:
        short = shortened(sized.pieces, self.room, self.sizes)
        if short is None:
            return recent
        for piece in short:
            if piece.entry and not piece.whole:
                self._leave_out(f"the middle of message {piece.entry.seq}", "too long")
        self.room -= sum(piece.tokens for piece in short)
        return replace(recent, pieces=(*short, *recent.pieces))

    def _pins_outside(self, recent: Section) -> tuple[Piece, ...]:
        inside = {entry.seq for entry in recent.entries}
        pins = self.must["pinned"]
        return tuple(p for p in pins if p.entry and p.entry.seq not in inside)

    # -- quoted entries -----------------------------------------------------------------------

    def _quotes(
        self, recent: Section, first: int, room: int
    ) -> tuple[Section, Section, tuple[Hit, ...]]:
        """Entries that match the question, and older ones for which there is room."""
        present = {piece.entry.seq for piece in recent.pieces if piece.entry}
        present |= {entry.seq for entry in self.material.pinned}
        present |= {e.seq for e in self.material.system if isinstance(e, Entry)}
        hits = [h for h in self.material.recalled if h.seq not in present and h.message.text]
        worthy = {hit.seq for hit in self.material.recalled[: self.material.earned]}
        outdated = {h.seq: h.superseded_by for h in hits if h.superseded_by is not None}
        opens = self.plan.open_max is not None
        stated = self.room if self.budget.recall_tokens is None else self.budget.recall_tokens
        limit = min(self.room, stated) if opens else min(room, self.room, self._within_limit())
        earned = [hit.entry for hit in hits if hit.seq in worthy]
        recalled = self._quoted("recalled", earned, limit, outdated, present)
        opened = Section("opened")
        if opens and (self.room + self.notes) * _FREE_SHARE > self.limit:
            present |= {entry.seq for entry in recalled.entries}
            rest = [entry for entry in self._to_open(hits, first) if entry.seq not in present]
            opened = self._quoted("opened", rest, self._room_to_open(), outdated, present)
        shown = {entry.seq for entry in (*opened.entries, *recalled.entries)}
        return opened, recalled, tuple(hit for hit in hits if hit.seq in shown)

    def _room_to_open(self) -> int:
        """All the room if there is a question; otherwise little, so that the prompt is repeated."""
        if self.material.recall_tokens is not None:
            return self.room
        over = self.room - self.limit // _FREE_SHARE
        return min(self.room, over + self.limit // _OPENED_SHARE)

    def _quoted(
        self,
        name: SectionName,
        entries: list[Entry],
        room: int,
        outdated: Mapping[int, int],
        present: Collection[int],
    ) -> Section:
        asked = quote.questions(entry for sized in self.units for entry in sized.unit.entries)
        asked = {s: q for s, q in (asked | self.material.asked).items() if q.seq not in present}
        fitting = quote.fitting(entries, room, self.sizes, outdated, asked)
        return self._taken(quote.section(name, fitting, self.sizes, outdated))

    def _to_open(self, hits: Sequence[Hit], first: int) -> list[Entry]:
        """What may be quoted if there is room: likely hits, the newest before `first`, the rest.

        A hit that is hardly more likely than any other message comes after the newest ones: they
        are what the conversation is about.
        """
        older = [sized.unit.entries for sized in reversed(self.units) if sized.first_seq < first]
        newest = [entry for unit in older for entry in unit if entry.message.text]
        best = {hit.seq for hit in hits[:_BEST_HITS]}
        best |= {hit.seq for hit in hits if hit.chance >= _LIKELY}
        likely = [hit.entry for hit in hits if hit.seq in best]
        return [*likely, *newest, *(hit.entry for hit in hits if hit.seq not in best)]

    def _within_limit(self) -> int:
        """What is left of the strategy's own limit, unless a digest is pending that it needs."""
        over = 0 if self.plan.folds else self.budget.limit - self.limit
        return max(self.room - over, 0)

    # -- bookkeeping --------------------------------------------------------------------------

    def _taken(self, section: Section) -> Section:
        self.room -= section.tokens
        return section

    def _leave_out(self, what: str, why: str) -> None:
        self.left_out.append(LeftOut(what, why))


def _named(unit: Unit) -> str:
    if unit.first_seq == unit.last_seq:
        return f"message {unit.first_seq}"
    return f"messages {unit.first_seq} to {unit.last_seq}"
