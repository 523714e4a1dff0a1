"""Entries quoted in one message: which are worth it, which ones fit, and the section. Pure.

What is quoted together is a group: one entry, a tool call with its results, or a short answer with
its question.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from firnline.context.context import Piece, Section
from firnline.context.marks import MARK_KEY
from firnline.context.material import Material
from firnline.context.plan import is_of_tool
from firnline.context.render import Sizes, is_quotable, render_recalled
from firnline.log import fence, limits
from firnline.log.entry import Entry
from firnline.log.hit import Hit
from firnline.log.message import Message
from firnline.log.tokens import MESSAGE_TOKENS, NAME_TOKENS

Group: TypeAlias = tuple[Entry, ...]

_FOUND_SHARE: Final = 0.85
_MISSED_CHANCE: Final = 0.005
_SMALL: Final = 1_000
_NEWEST_SHARE: Final = 16
_TOKENS: Final = 24_000
"""More quotes than this cost more than they bring; a larger budget shows more of the newest."""
_LARGE_SHARE: Final = 0.25
_FRAME_TOKENS: Final = 26
"""The message around quotes: its framing, first and last line."""
_LINE_TOKENS: Final = 1
"""A line's number and speaker, beyond what frames a message."""
_DAY_TOKENS: Final = 7
ELSEWHERE_END: Final = "[/other conversations]"
_PASSES: Final = 3
"""Sizes of lines are estimates on the high side; what that leaves free is used by the next pass."""


# -- what is worth it ---------------------------------------------------------------------------


def _likely(hits: Sequence[Hit], tokens: int) -> set[int]:
    """The hits worth a quote: what the others of so many tokens could add is next to nothing.

    The chances of all that is left out add up to at most that of one message in 200.
    """
    packed: list[Hit] = []
    for hit in hits:
        size = hit.entry.tokens - MESSAGE_TOKENS - NAME_TOKENS
        if size <= tokens:
            packed.append(hit)
            tokens -= size
    missed, count = 0.0, len(packed)
    while count and missed + packed[count - 1].chance <= _MISSED_CHANCE:
        count -= 1
        missed += packed[count].chance
    return {hit.seq for hit in packed[:count]}


def most_quotes(free: int) -> int:
    """The most tokens of `free` that quotes get: all of a small room, a part of a large one.

    Why: `docs/decisions.md`.
    """
    most = free if free <= _SMALL else max(free - free // _NEWEST_SHARE, _SMALL)
    return min(most, max(_TOKENS, int(free * _LARGE_SHARE)))


# -- groups ---------------------------------------------------------------------------------------


class HitGroups:
    """The hits for a question that can be quoted, each with what belongs to it.

    What outdates a hit comes before it. `limit` is the context's.
    """

    def __init__(self, material: Material, limit: int) -> None:
        hits = {hit.seq: hit for hit in material.recalled}
        self.earned = frozenset(hit.seq for hit in material.recalled[: material.earned])
        """The hits that have earned their place in any context."""
        self.outdated = {
            seq: hit.superseded_by for seq, hit in hits.items() if hit.superseded_by is not None
        }
        """The hits that newer entries outdate, and which."""
        newer = (hits.get(self.outdated.get(seq, -1)) for seq in hits)
        ordered = [one for pair in zip(newer, hits.values(), strict=True) for one in pair if one]
        self.groups = _groups(ordered, material)
        likely = _likely(material.recalled, int(limit * _FOUND_SHARE)) if material.asks else set()
        self._likely = self.earned | likely

    @property
    def best(self) -> list[Group]:
        """What has earned its place in any context."""
        return [group for hit, group in self.groups if hit.seq in self.earned]

    def best_before(self, first: int) -> list[Group]:
        """What of that is before the entry `first`."""
        return [group for group in self.best if group[0].seq < first]

    def likely(self, first: int) -> list[Group]:
        """What is worth a quote of the entries before `first`."""
        return [group for hit, group in self.groups if hit.seq in self._likely and hit.seq < first]


def _groups(hits: Iterable[Hit], material: Material) -> list[tuple[Hit, Group]]:
    found: list[tuple[Hit, Group]] = []
    taken = material.required
    for hit in hits:
        alone = () if is_of_tool(hit.message) else (hit.entry,)
        group = not_in(taken, material.units.get(hit.seq, alone))
        if group and can_be_quoted(group):
            found.append((hit, group))
            taken.update(entry.seq for entry in group)
    return found


def not_in(present: Collection[int], group: Group) -> Group:
    """What of a group is not present: a question may be there without its short answer."""
    if not any(entry.seq in present for entry in group):
        return group
    last = group[-1]
    return () if last.seq in present or is_of_tool(last.message) else (last,)


def can_be_quoted(group: Group) -> bool:
    """Whether quotes show all of a group, and there is something to show."""
    messages = [entry.message for entry in group]
    return all(map(is_quotable, messages)) and any(message.text for message in messages)


# -- which ones fit -------------------------------------------------------------------------------


def needed(groups: Iterable[Group], sizes: Sizes, most: int) -> int:
    """About the tokens of these groups as quotes, without those that do not fit into `most`."""
    room = most - _frame(sizes)
    used, days = 0, set[object]()
    for group in groups:
        of_group = set(days)
        size = _size(group, sizes, of_group)
        if used + size <= room:
            used, days = used + size, of_group
    return used + _frame(sizes) if used else 0


def fitting(
    groups: Iterable[Group], room: int, sizes: Sizes, outdated: Mapping[int, int]
) -> list[Entry]:
    """The entries of the first groups that fit as quotes; those that do not fit are skipped.

    `outdated` maps entries to the newer ones that outdate them.
    """
    waiting = list(groups)
    chosen: list[Group] = []
    used = _frame(sizes)
    for _ in range(_PASSES):
        added = _within(waiting, chosen, room - used, sizes)
        if not added:
            break
        seen = {group[0].seq for group in added}
        waiting = [group for group in waiting if group[0].seq not in seen]
        chosen = _exactly([*chosen, *added], room, sizes, outdated)
        used = sizes.of(render_recalled(_entries(chosen), outdated))
    return _entries(chosen)


def _within(
    groups: Sequence[Group], chosen: Sequence[Group], room: int, sizes: Sizes
) -> list[Group]:
    """The first of the groups that certainly fit next to those chosen."""
    days: set[object] = {_day(entry) for entry in _entries(chosen)}
    count = sum(map(len, chosen))
    added: list[Group] = []
    for group in groups:
        of_group = set(days)
        size = _size(group, sizes, of_group)
        if size <= room and count + len(group) <= limits.ECHO_ENTRIES_MAX:
            added.append(group)
            days, room, count = of_group, room - size, count + len(group)
    return added


def _size(group: Group, sizes: Sizes, days: set[object]) -> int:
    """The tokens of a group's lines, on the high side; adds its days."""
    fresh = {_day(entry) for entry in group} - days - {None}
    days |= fresh
    size = sum(map(sizes.entry, group))
    return size + _scaled(len(group) * _LINE_TOKENS + len(fresh) * _DAY_TOKENS, sizes)


def _frame(sizes: Sizes) -> int:
    """The tokens of what is around quotes."""
    return _scaled(_FRAME_TOKENS, sizes)


def _scaled(tokens: int, sizes: Sizes) -> int:
    """Tokens of our own words for a model that may count more."""
    return math.ceil(tokens * max(sizes.count.factor, 1.0))


def _day(entry: Entry) -> object:
    at = entry.message.created_at
    return at.date() if at else None


def _exactly(
    groups: list[Group], room: int, sizes: Sizes, outdated: Mapping[int, int]
) -> list[Group]:
    """The groups without the last ones, until the quotes are at most `room`."""
    while groups:
        over = sizes.of(render_recalled(_entries(groups), outdated)) - room
        if over <= 0:
            break
        while groups and over > 0:
            over -= sum(map(sizes.entry, groups.pop()))
    return groups


def _entries(groups: Iterable[Group]) -> list[Entry]:
    return [entry for group in groups for entry in group]


# -- the section ----------------------------------------------------------------------------------


def quotes(
    entries: Sequence[Entry], sizes: Sizes, outdated: Mapping[int, int], before: int | None = None
) -> tuple[Piece, ...]:
    """One message with these entries, marked as data; `before` is as in `Piece`."""
    if not entries:
        return ()
    quoted = tuple(sorted(entries, key=lambda entry: entry.seq))
    piece = sizes.piece(render_recalled(quoted, outdated))
    return (piece._replace(quoted=quoted, before=before),)


def elsewhere_section(
    hits: Iterable[Hit], room: int, sizes: Sizes, heading: str, *, origin: bool = False
) -> Section:
    """The best hits in other conversations that fit, by conversation and in their order.

    `origin`: the piece says where it is from, so that a record of the prompt need not quote it.
    """
    chosen = list(hits)
    while chosen:
        piece = sizes.piece(_render_elsewhere(chosen, heading))
        if piece.tokens <= room:
            why = ", ".join(f"{hit.conversation}: {hit.seq}" for hit in chosen)
            return Section("elsewhere", (piece._replace(origin=why if origin else ""),), why)
        chosen.pop()
    return Section("elsewhere")


def _render_elsewhere(hits: Sequence[Hit], heading: str) -> Message:
    lines = [heading]
    before = ""
    for hit in sorted(hits, key=lambda hit: (hit.conversation, hit.seq)):
        if hit.conversation != before:
            before = hit.conversation
            lines.append(f"[conversation {fence.one_line(before)}]")
        day = f", {hit.time.date().isoformat()}" if hit.time else ""
        mark = "" if hit.superseded_by is None else "[outdated] "
        said = fence.speaker(hit.message.role, hit.message.name)
        lines.append(f"({hit.seq}{day}) {mark}{said}: {fence.escape(hit.text)}")
    return Message.user("\n".join((*lines, ELSEWHERE_END)), metadata={MARK_KEY: "recalled"})
