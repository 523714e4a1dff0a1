"""Entries quoted in one message: how much room they get, which ones fit, and the section. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from firnline.context.context import Section, SectionName
from firnline.context.marks import MARK_KEY
from firnline.context.plan import is_question
from firnline.context.render import Sizes, render_recalled
from firnline.log import fence, limits
from firnline.log.entry import Entry, Hit
from firnline.log.message import Message

_SHARE: Final = 0.87
"""The most that quotes get of a budget if the log is long; why: `docs/decisions.md`."""
_TOKENS: Final = 24_000
"""More quotes than this cost more than they bring; a larger budget shows more of the newest."""
_LARGE_SHARE: Final = 0.25
_OVERFLOW: Final = 2
"""The part of a log that does not fit is chosen from twice as much."""
_STEPS: Final = 8
_LEAST: Final = 600
_LEAST_SHARE: Final = 0.25
_LINE_TOKENS: Final = 6
"""A line's number and speaker, beyond what frames a message."""
_DAY_TOKENS: Final = 10
ELSEWHERE_END: Final = "[/other conversations]"
_PASSES: Final = 3
"""Sizes of lines are estimates on the high side; what that leaves free is used by the next pass."""

NO_QUESTIONS: Final[Mapping[int, Entry]] = {}


# -- room ---------------------------------------------------------------------------------------


def share(free: int, log_tokens: int, stated: int | None) -> int:
    """The share of `free` that quotes get; `stated` if the caller wants a number.

    The rest is for what comes before them in the prompt. So it depends on sizes and not on the
    question, and changes in steps.
    """
    if stated is not None:
        return min(stated, int(free * _SHARE))
    overflow = _stepped(max(log_tokens - free, 0), free) * _OVERFLOW
    least = min(_LEAST, int(free * _LEAST_SHARE))
    return max(min(overflow, most_quotes(free)), least)


def most_quotes(free: int) -> int:
    """The most tokens of `free` that quotes get, however long the log is."""
    return min(int(free * _SHARE), max(_TOKENS, int(free * _LARGE_SHARE)))


def next_to(newest: int, room: int, free: int) -> int:
    """What remains of `room` for quotes: the `newest` messages have up to half of `free`."""
    return min(room, free - min(_stepped(newest, free), free // 2))


def _stepped(tokens: int, free: int) -> int:
    """As many steps as `tokens` need, so that what comes before is the same in most turns."""
    step = max(free // _STEPS, 1)
    return -(-tokens // step) * step


# -- which ones fit -------------------------------------------------------------------------------


def questions(entries: Iterable[Entry]) -> dict[int, Entry]:
    """The question that each answer follows, by the number of the answer.

    `entries` are in order. One that is far from its answer is not its question.
    """
    found: dict[int, Entry] = {}
    asked: Entry | None = None
    for entry in entries:
        if is_question(entry.message):
            asked = entry
        elif entry.message.role == "assistant" and entry.message.text and asked is not None:
            if entry.seq - asked.seq <= limits.QUESTION_BACK:
                found[entry.seq] = asked
    return found


def fitting(
    entries: Iterable[Entry],
    room: int,
    sizes: Sizes,
    outdated: Mapping[int, int],
    asked: Mapping[int, Entry] = NO_QUESTIONS,
) -> list[Entry]:
    """The first of the entries that fit as quotes, each once; those that do not fit are skipped.

    `outdated` maps entries to the newer ones that outdate them, and `asked` answers to their
    questions, which are quoted with them. Only one that takes more than half of the room is not.
    """
    waiting = list({entry.seq: entry for entry in entries}.values())
    asked = {seq: one for seq, one in asked.items() if 2 * sizes.entry(one) <= room}
    chosen: list[Entry] = []
    used = sizes.of(render_recalled([]))
    for _ in range(_PASSES):
        added = _within(waiting, chosen, room - used, sizes, asked)
        if not added:
            break
        both = [*chosen, *added][: limits.ECHO_ENTRIES_MAX]
        chosen = _exactly(both, room, sizes, outdated, asked)
        used = sizes.of(render_recalled(chosen, outdated))
        seen = {entry.seq for entry in chosen}
        waiting = [entry for entry in waiting if entry.seq not in seen]
    return chosen


def _within(
    entries: Sequence[Entry],
    chosen: Sequence[Entry],
    room: int,
    sizes: Sizes,
    asked: Mapping[int, Entry],
) -> list[Entry]:
    """The first of the entries that certainly fit next to those chosen, with their questions."""
    days = {entry.message.created_at.date() for entry in chosen if entry.message.created_at}
    there = {entry.seq for entry in chosen}
    added: list[Entry] = []
    for entry in entries:
        both = [one for one in (asked.get(entry.seq), entry) if one and one.seq not in there]
        dates = {at.date() for one in both if (at := one.message.created_at)} - days
        # Their tokens are known; the text alone has fewer if it has images or calls.
        size = sum(sizes.entry(one) + _LINE_TOKENS for one in both) + _DAY_TOKENS * len(dates)
        if size <= room:
            added += both
            there |= {one.seq for one in both}
            room -= size
            days |= dates
    return added


def _exactly(
    entries: list[Entry],
    room: int,
    sizes: Sizes,
    outdated: Mapping[int, int],
    asked: Mapping[int, Entry],
) -> list[Entry]:
    """The entries without the last ones, until the quotes are at most `room`."""
    while entries and (over := sizes.of(render_recalled(entries, outdated)) - room) > 0:
        while entries and over > 0:
            last = entries.pop()
            over -= sizes.entry(last)
            if entries and entries[-1] is asked.get(last.seq):  # it was there for its answer
                over -= sizes.entry(entries.pop())
    return entries


# -- the section ----------------------------------------------------------------------------------


def section(
    name: SectionName, entries: Sequence[Entry], sizes: Sizes, outdated: Mapping[int, int]
) -> Section:
    """The section with these entries as one message marked as data."""
    if not entries:
        return Section(name)
    quoted = tuple(sorted(entries, key=lambda entry: entry.seq))
    piece = sizes.piece(render_recalled(quoted, outdated))
    return Section(name, (piece._replace(quoted=quoted),))


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
        lines.append(f"({hit.seq}{day}) {mark}{said}: {fence.escape(hit.message.text)}")
    return Message.user("\n".join((*lines, ELSEWHERE_END)), metadata={MARK_KEY: "recalled"})
