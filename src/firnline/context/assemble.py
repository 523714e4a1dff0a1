"""Turns a plan into a context: what is included, in which order, and what is left out first. Pure.

Required are the system messages, the pinned entries and the user's newest question. If they do not
fit, nothing is cut and `BudgetError` names what takes the room; only a past question is shortened.
Then follow, while there is room: the task, the important data, the digests, the newest entries unit
by unit, and recalled entries. So recalled entries are left out first, then old entries, then old
digests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, Final

from firnline.context.budget import RECALL_TOKENS, Budget
from firnline.context.context import (
    NO_ROOM_FOR_DIGESTS,
    NO_ROOM_FOR_ENTRIES,
    Context,
    LeftOut,
    Piece,
    Section,
)
from firnline.context.plan import Plan, Unit, View, data_room, units
from firnline.context.render import (
    GAP_NOTE,
    NOTES,
    NOTHING_YET,
    Sizes,
    excerpt,
    recalled_line,
    render_data,
    render_digest,
    render_hits,
    render_task,
    shortened,
)
from firnline.errors import BudgetError
from firnline.log.entry import Digest, Entry, Hit, live
from firnline.log.message import Message
from firnline.log.tokens import REPLY_TOKENS

_TASK_SHARE: Final = 4
_MEMORY_SHARE: Final = 2
"""Important data and digests may take one in so many tokens, however short the tail is: they are at
the start of the prompt, so they may change only if a digest does."""
_PAST_SHARE: Final = 4  # of the room is left for the rest by a past question
_DATA_STEPS: Final = 16
_DAY_TOKENS: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """Everything a context can include besides the view.

    `question` is the user's newest message; it is `past` if the question to answer is not stored
    yet. `recalled` are entries that match the question, best first, with `recall_tokens` reserved
    for them. `log_tokens` are those of the whole log.
    """

    conversation: str
    strategy: str
    system: tuple[Message | Entry, ...] = ()
    pinned: tuple[Entry, ...] = ()
    task: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    question: Entry | None = None
    past: bool = False
    recalled: tuple[Hit, ...] = ()
    recall_tokens: int = 0
    tools_tokens: int = 0
    debts: tuple[str, ...] = ()
    log_tokens: int = 0


def assemble(view: View, plan: Plan, budget: Budget, material: Material, sizes: Sizes) -> Context:
    """The context of the plan, as much of it as fits."""
    return _Assembly(view, plan, budget, material, sizes).context()


class _Assembly:
    """The remaining room, and what is included so far."""

    def __init__(
        self, view: View, plan: Plan, budget: Budget, material: Material, sizes: Sizes
    ) -> None:
        self.view, self.plan, self.budget = view, plan, budget
        self.material, self.sizes = material, sizes
        self.framing = REPLY_TOKENS
        self.left_out: list[LeftOut] = []
        self.degraded: list[str] = list(material.debts)
        self.room = budget.limit - material.tools_tokens - self.framing
        self.must: dict[str, tuple[Piece, ...]] = {}

    def context(self) -> Context:
        question = self._mandatory()
        # Shares do not depend on the question, so that they are the same in every turn.
        free = self.room + sum(piece.tokens for piece in question) - self.material.recall_tokens
        recall = min(self.material.recall_tokens, self.room * 3 // 5)
        self.room -= recall
        task = self._task(min(free // _TASK_SHARE, self.room))
        memory = min((free - task.tokens) // _MEMORY_SHARE, self.room)
        important = self._important(self._data_room(memory))
        digests = self._digests(memory - important.tokens)
        recent = self._recent(question, self.room)
        self.room += recall
        recalled, hits = self._recalled(recent, self._recall_room(recall))
        sections = [
            Section("system", self.must["system"]),
            Section("pinned", self._pins_outside(recent)),
            task,
            important,
            self._with_gap(digests, recent),
            recent,
            recalled,
        ]
        return Context(
            conversation=self.material.conversation,
            strategy=self.material.strategy,
            budget=self.budget,
            sections=tuple(section for section in sections if section.pieces),
            tools_tokens=self.material.tools_tokens,
            framing_tokens=self.framing,
            left_out=tuple(self.left_out),
            degraded=tuple(self.degraded),
            crowded=len(self.degraded) > len(self.material.debts),
            reason=self.plan.reason,
            hits=hits,
            log_tokens=self.material.log_tokens,
        )

    # -- required parts -----------------------------------------------------------------------

    def _mandatory(self) -> tuple[Piece, ...]:
        """Reserve the room for required parts; returns the pieces of the newest question."""
        system = tuple(
            self.sizes.pieces([part])[0] if isinstance(part, Entry) else self.sizes.piece(part)
            for part in self.material.system
        )
        asked = self.material.question
        pins = [e for e in self.material.pinned if asked is None or e.seq != asked.seq]
        pinned = self.sizes.pieces(pins)
        # There must always be room for the notes on gaps before and after the question.
        last = self.view.next_seq
        notes = self._gap(last, last).tokens * NOTES
        question = self._question(self.room - notes - sum(p.tokens for p in (*system, *pinned)))
        note = notes if last > len(question) else 0
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
        self._leave_out(f"the middle of entry {asked.seq}", "too long")
        return (short,)

    def _task(self, cap: int) -> Section:
        if not self.material.task:
            return Section("task")
        piece = self.sizes.piece(render_task(self.material.task))
        if piece.tokens > cap:
            short = excerpt(piece.message, cap, self.sizes, None)
            if short is None:
                self._leave_out("the task", "it does not fit")
                return Section("task")
            piece = short
        return self._taken(Section("task", (piece,)))

    # -- memory -------------------------------------------------------------------------------

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

    def _important(self, room: int) -> Section:
        most = self.plan.data_tokens
        room = min(room, data_room(self.budget) if most is None else most)
        data = self.material.data if self.plan.important else {}
        whole = max(self.view.data_tokens, 1)
        # Skip sizes that certainly do not fit.
        most_steps = _DATA_STEPS if whole <= room else room * _DATA_STEPS // whole + 1
        for steps in range(min(most_steps, _DATA_STEPS), 0, -1):
            kept = _newest_part(data, steps / _DATA_STEPS)
            if not any(kept.values()):
                break
            piece = self.sizes.piece(Message.user(render_data(kept)))
            if piece.tokens <= room:
                if steps < _DATA_STEPS:
                    self._leave_out("the older part of the important data", "no room")
                return self._taken(Section("important", (piece,)))
        if any(data.values()):
            self._leave_out("the important data", "no room")
        return Section("important")

    def _digests(self, room: int) -> Section:
        """The digests of the plan, or the newest that fit."""
        chosen: list[Piece] = []
        shown = [d for d in self.view.digests if d.version in self.plan.digests and d.text]
        shown = [d for d in shown if d.text != NOTHING_YET]
        for digest in reversed(shown):
            piece = self._digest_piece(digest, residue=True)
            if piece.tokens > room:
                piece = self._digest_piece(digest, residue=False)
            if piece.tokens > room:
                self._leave_out(f"digest {digest.version} and those before it", "no room")
                self.degraded.append(NO_ROOM_FOR_DIGESTS)
                break
            room -= piece.tokens
            chosen.append(piece)
        covered = f"entries {shown[0].first_seq}-{shown[-1].last_seq}" if shown else ""
        return self._taken(Section("digests", tuple(reversed(chosen)), covered))

    def _covered(self) -> int:
        """The first entry that no digest of the plan covers."""
        shown = [d.last_seq + 1 for d in self.view.digests if d.version in self.plan.digests]
        return max(shown, default=0)

    def _with_gap(self, digests: Section, recent: Section) -> Section:
        """Add a note on the entries that are neither digested nor shown."""
        first = min((p.entry.seq for p in recent.pieces if p.entry), default=self.view.next_seq)
        start = self._covered() or sum(isinstance(part, Entry) for part in self.material.system)
        pins = {p.entry.seq for p in self.must["pinned"] if p.entry}
        last = first - 1
        while start in pins:
            start += 1
        while last in pins:
            last -= 1
        if last < start:
            return digests
        self._leave_gap_out(start, last)
        return replace(digests, pieces=(*digests.pieces, self._gap(start, last)))

    def _leave_gap_out(self, first: int, last: int) -> None:
        planned = self.plan.recent_count is not None or self.plan.recent_tokens is not None
        kept_out = "they are of other topics" if self.view.topic else "the strategy shows fewer"
        why = self.plan.reason or kept_out if planned else "they are in no digest yet, no room"
        self._leave_out(f"entries {first} to {last}", why)
        if not planned:
            self.degraded.append(f"entries {first} to {last} {NO_ROOM_FOR_ENTRIES}")

    def _gap(self, first: int, last: int) -> Piece:
        return self.sizes.piece(Message.user(GAP_NOTE.format(first, last)))

    # -- the newest entries -------------------------------------------------------------------

    def _recent(self, question: tuple[Piece, ...], room: int) -> Section:
        """The newest units that fit, and always the question."""
        asked = self.material.question.seq if self.material.question else -1
        shown: list[tuple[Piece, ...]] = []
        count = 0
        used = sum(piece.tokens for piece in question if asked >= self.plan.recent_from)
        hidden = {e.seq for e in self.material.system if isinstance(e, Entry)}
        tail = [e for e in live(self.view.entries) if e.seq >= self.plan.recent_from]
        for unit in reversed(units(e for e in tail if e.seq not in hidden)):
            if unit.problem:
                self._leave_out(_named(unit), unit.problem)
                continue
            most = self.plan.recent_count
            if most is not None and count and count + len(unit.entries) > most:
                break
            cap = room if self.plan.recent_tokens is None else self.plan.recent_tokens - used
            pieces = self._fitting(unit, min(room, cap), question)
            if pieces is None:
                self._leave_out(f"{_named(unit)} and those before", "no room")
                break
            extra = sum(p.tokens for p in pieces if not p.entry or p.entry.seq != asked)
            room, used, count = room - extra, used + extra, count + len(unit.entries)
            self.room -= extra
            shown.append(pieces)
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
        self, unit: Unit, room: int, question: tuple[Piece, ...]
    ) -> tuple[Piece, ...] | None:
        """The unit, complete or with long messages shortened; None if it does not fit."""
        given = {p.entry.seq: p for p in question if p.entry}
        asked = next(iter(given), -1)
        pieces = tuple(
            given.get(entry.seq) or piece
            for entry, piece in zip(unit.entries, self.sizes.pieces(unit.entries), strict=True)
        )
        if sum(p.tokens for p in pieces if p.entry and p.entry.seq != asked) <= room:
            return pieces
        if unit.last_seq == asked:
            return pieces
        # Only a unit that could never fit is shortened; old units are left out instead.
        newest = unit.last_seq == self.view.next_seq - 1 or unit.tokens > self.budget.limit // 2
        short = shortened(pieces, room, self.sizes) if newest else None
        for piece in short or ():
            if piece.entry and not piece.whole:
                self._leave_out(f"the middle of entry {piece.entry.seq}", "too long")
        return short

    def _pins_outside(self, recent: Section) -> tuple[Piece, ...]:
        inside = {entry.seq for entry in recent.entries}
        pins = self.must["pinned"]
        return tuple(p for p in pins if p.entry and p.entry.seq not in inside)

    # -- recalled entries ---------------------------------------------------------------------

    def _recall_room(self, kept: int) -> int:
        """The room for recalled entries: what was reserved, or more if it is little."""
        if self.budget.recall_tokens is not None or not kept:
            return kept
        return max(kept, min(self.room, RECALL_TOKENS))

    def _recalled(self, recent: Section, room: int) -> tuple[Section, tuple[Hit, ...]]:
        """Complete entries that match the question, as one message marked as data."""
        present = {piece.entry.seq for piece in recent.pieces if piece.entry}
        present |= {entry.seq for entry in self.material.pinned}
        absent = [hit for hit in self.material.recalled if hit.seq not in present]
        chosen = self._chosen([hit for hit in absent if hit.message.text], min(room, self.room))
        while chosen:
            piece = self.sizes.piece(render_hits(chosen))
            if piece.tokens <= room:
                numbers = ", ".join(str(seq) for seq in sorted(hit.seq for hit in chosen))
                section = Section("recalled", (piece,), f"entries {numbers}")
                return self._taken(section), tuple(chosen)
            chosen.pop()
        return Section("recalled"), ()

    def _chosen(self, hits: Sequence[Hit], room: int) -> list[Hit]:
        """The best hits whose lines fit, approximately: lines are counted separately."""
        chosen: list[Hit] = []
        used = self.sizes.of(render_hits([]))
        days: set[date] = set()
        for hit in hits:
            size = int(self.sizes.count.text(recalled_line(hit.entry, hit.superseded_by))) + 1
            if hit.time and hit.time.date() not in days:
                size += _DAY_TOKENS
            if used + size <= room:
                chosen.append(hit)
                used += size
                days |= {hit.time.date()} if hit.time else set()
        return chosen

    # -- bookkeeping --------------------------------------------------------------------------

    def _taken(self, section: Section) -> Section:
        self.room -= section.tokens
        return section

    def _leave_out(self, what: str, why: str) -> None:
        self.left_out.append(LeftOut(what, why))


def _named(unit: Unit) -> str:
    if unit.first_seq == unit.last_seq:
        return f"entry {unit.first_seq}"
    return f"entries {unit.first_seq} to {unit.last_seq}"


def _newest_part(data: Mapping[str, Any], share: float) -> dict[str, Any]:
    """The newest `share` of each list and mapping; they are ordered by time."""
    kept: dict[str, Any] = {}
    for name, value in data.items():
        most = max(int(len(value) * share), 1) if share < 1 else len(value)
        if isinstance(value, dict):
            kept[name] = dict(list(value.items())[-most:])
        else:
            kept[name] = list(value)[-most:] if value else []
    return kept
