"""The result of a recall tool: whole messages as JSON, within a limit of tokens. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from itertools import pairwise
from typing import Any, Final, NamedTuple, Self, TypeAlias

from firnline.errors import InputError
from firnline.language import prose
from firnline.log import limits
from firnline.log.entry import Entry, ProjectEntry
from firnline.log.fence import escape_json
from firnline.log.hit import TextSpan, excerpt
from firnline.log.message import Message, Part, encode_json
from firnline.log.tokens import TokenCounter
from firnline.recall.limits import ID_DIGITS_MAX, RUNS_MAX
from firnline.topics import TopicStats

MARK: Final = "recalled"
"""The first field of every result, which distinguishes it from the results of other tools."""
CUT_MARK: Final = "\n[... the middle of message {} is left out here, of about {:,} tokens ...]\n"
AROUND_MARK: Final = "\n[... more of message {} is left out here, of about {:,} tokens ...]\n"

_TOKEN_CHARS_MAX: Final = 128  # no token of either vocabulary is longer
_TOKEN_CHARS: Final = 8  # more than a token of any text worth reading has
_NOTE_TOKENS: Final = 120
_RUN_TOKENS: Final = 80

Row: TypeAlias = dict[str, Any]
RestNote: TypeAlias = Callable[[Sequence[Entry]], str]
"""Describes how to get the entries that did not fit."""
EntryId: TypeAlias = int | str
"""A sequence number; of another conversation of the project, with its name: ``name:7``."""


def entry_id(conversation: str, seq: int, own: str) -> EntryId:
    """The id of an entry for a model that reads the conversation `own`."""
    return seq if conversation == own else f"{conversation}:{seq}"


def _id_of(found: ProjectEntry, own: str) -> EntryId:
    return entry_id(found.conversation, found.entry.seq, own)


def place_of(id_: EntryId, own: str) -> tuple[str, int] | None:
    """The conversation and the sequence number of an id; None if it is none."""
    if isinstance(id_, int):
        return own, id_
    name, colon, number = id_.strip().rpartition(":")
    is_number = number.isascii() and number.isdecimal() and len(number) < ID_DIGITS_MAX
    return (name if colon else own, int(number)) if is_number else None


class ResultTokens(NamedTuple):
    """The most tokens of one result: of what is `found`, and of the `newest` messages."""

    found: int = limits.RECALL_FOUND_TOKENS
    newest: int = limits.RECALL_NEWEST_TOKENS

    @classmethod
    def within(cls, room: int | None, most: int | None = None) -> Self:
        """A sixth and two fifths of `room`, of a small one at least a quarter; at most `most`."""
        if most is not None and (type(most) is not int or most < limits.RECALL_TOKENS_MIN):
            raise InputError(
                f"tokens_max: expected an integer of at least {limits.RECALL_TOKENS_MIN}, "
                f"got {most!r}"
            )
        found, newest = limits.RECALL_FOUND_TOKENS, limits.RECALL_NEWEST_TOKENS
        if room is not None:
            least = max(min(limits.RECALL_TOKENS, room // 4), limits.RECALL_TOKENS_MIN)
            found = min(found, max(room // 6, least))
            newest = min(newest, max(room * 2 // 5, least))
        return cls(min(found, most or found), min(newest, most or newest))


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallPage:
    """The content of a result: the tool's name, general facts, entries in order of preference.

    `ranked`: they are shown in that order, and one that does not fit is skipped; otherwise they are
    shown in time order, and the first that does not fit ends the page. `backward`: the newest is
    first. `note` is added if everything fits, otherwise the text that `rest` returns for the
    remaining entries. `own` is the conversation whose entries are named by their numbers alone.
    """

    tool: str
    entries: Sequence[ProjectEntry]
    rest: RestNote
    own: str
    note: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    ranked: bool = False
    backward: bool = False
    passages: Mapping[EntryId, tuple[TextSpan, ...]] = field(default_factory=dict)
    """What is shown of messages that are long."""


@dataclass(frozen=True, slots=True)
class RecallWriter:
    """Writes pages in a time zone, within `tokens_max` by `count`."""

    zone: tzinfo
    tokens_max: int
    count: TokenCounter

    def write(self, page: RecallPage) -> str:
        """The page as JSON text: as many whole messages as fit, and how to get the rest.

        Of a long message its passage is shown, if it has one and takes more than its share of the
        limit; of one that can never fit, the beginning and the end.
        """
        shown = self._fitting(page)
        text = self._text(page, shown)
        while shown and self.count.text(text) > self.tokens_max:
            shown.popitem()  # counted as a whole, the text may have a token more
            text = self._text(page, shown)
        return text

    def write_topics(self, found: Sequence[TopicStats], total: int) -> str:
        """Topics as JSON text, as many as fit, the most recently active first."""
        rows = [
            {
                "topic": topic.topic_id,
                "title": topic.title,
                "messages": topic.total_messages,
                "inactive_hours": round(topic.inactive_seconds / 3600, 1),
                "tags": list(topic.tags),
            }
            for topic in found
        ]
        while True:
            result: Row = {MARK: "list_topics", "topics": rows}
            if len(rows) < total:
                result["note"] = f"{total - len(rows)} more are not listed."
            text = escape_json(encode_json(result))
            if not rows or self.count.text(text) <= self.tokens_max:
                return text
            rows.pop()

    def time(self, at: datetime) -> str:
        """A time in the reader's zone."""
        try:
            return at.astimezone(self.zone).isoformat(timespec="seconds")
        except OverflowError:  # the first or the last day of the calendar
            return at.isoformat(timespec="seconds")

    # -- fitting ------------------------------------------------------------------------------

    def _fitting(self, page: RecallPage) -> dict[EntryId, Row]:
        spare = min(_NOTE_TOKENS, self.tokens_max // 3)
        whole = self.tokens_max - self.count.text(self._text(replace(page, entries=()), {})) - spare
        room, shown = whole, dict[EntryId, Row]()
        for found in page.entries:
            row = self._row(found, page, whole)
            size = self._size(row)
            if size <= room:
                shown[row["id"]] = row
                room -= size
            elif not page.ranked:
                break
        return shown

    def _row(self, found: ProjectEntry, page: RecallPage, room: int) -> Row:
        """The entry as a row; one that can never fit is shortened, to half if there are more."""
        row, text = self._head(found, page.own), readable_text(found.entry.message)
        passage = page.passages.get(row["id"], ())
        alone = len(page.entries) == 1
        share = max(room // len(page.entries), limits.RECALL_TOKENS_MIN) if passage else room
        if len(text) <= share * _TOKEN_CHARS_MAX:
            whole = {**row, "text": text}
            if self._size(whole) <= share:
                return whole
        cut = {**row, "shortened": True, "text": excerpt(text, passage)}
        if passage and not alone and self._size(cut) <= room:
            return cut
        room = room if alone else room // 2
        if not passage:
            return self._shortened(row, found.entry, text, room)
        longest = max(passage, key=lambda span: span.end - span.start)
        return self._around(row, found.entry, text, sum(longest) // 2, room)

    def _head(self, found: ProjectEntry, own: str) -> Row:
        message = found.entry.message
        row: Row = {"id": _id_of(found, own), "role": message.role}
        if message.name:
            row["name"] = message.name[: limits.NAME_CHARS_MAX]
        if message.created_at is not None:
            row["time"] = self.time(message.created_at)
        return row

    def _shortened(self, head: Row, entry: Entry, text: str, room: int) -> Row:
        """The longest beginning and end that fit."""
        cut = CUT_MARK.format(head["id"], entry.tokens)

        def shorter(chars: int) -> str:
            tail = chars // 3
            return f"{prose.beginning(text, chars - tail)}{cut}{prose.ending(text, tail)}"

        return self._longest({**head, "shortened": True, "text": cut}, shorter, len(text), room)

    def _around(self, head: Row, entry: Entry, text: str, place: int, room: int) -> Row:
        """As much as fits on both sides of a place."""
        cut = AROUND_MARK.format(head["id"], entry.tokens)
        earlier, later = text[:place], text[place:]

        def shorter(chars: int) -> str:
            back = min(max(chars - len(later), chars // 2), len(earlier))
            before, after = prose.ending(earlier, back), prose.beginning(later, chars - back)
            first = "" if len(before) == len(earlier) else cut
            last = "" if len(after) == len(later) else cut
            return f"{first}{before}{after}{last}"

        return self._longest({**head, "shortened": True, "text": cut}, shorter, len(text), room)

    def _longest(self, row: Row, shorter: Callable[[int], str], most: int, room: int) -> Row:
        """The row with the most characters of its text that fit, by binary search."""
        low, high = 0, min(most, room * _TOKEN_CHARS)
        while low < high:
            chars = (low + high + 1) // 2
            longer = {**row, "text": shorter(chars)}
            if self._size(longer) <= room:
                low, row = chars, longer
            else:
                high = chars - 1
        return row

    def _size(self, row: Row) -> int:
        return self.count.text(escape_json(encode_json(row))) + 1

    # -- writing ------------------------------------------------------------------------------

    def _text(self, page: RecallPage, shown: Mapping[EntryId, Row]) -> str:
        left = [found for found in page.entries if _id_of(found, page.own) not in shown]
        rows = list(shown.values())
        if page.backward:
            rows.reverse()
        note = self._left(page, left) if left else page.note
        result = {MARK: page.tool, **page.facts, "messages": rows}
        return escape_json(encode_json({**result, "note": note} if note else result))

    def _left(self, page: RecallPage, left: Sequence[ProjectEntry]) -> str:
        most = min(max(self.tokens_max // _RUN_TOKENS - 2, 1), RUNS_MAX)
        by_name: defaultdict[str, list[int]] = defaultdict(list)
        for found in left:
            by_name[found.conversation].append(found.entry.seq)
        runs = [format_runs(by_name.pop(page.own), most)] if page.own in by_name else []
        runs += [f"{name}:{format_runs(seqs, most)}" for name, seqs in by_name.items()]
        numbers = "; ".join(runs[:most])
        rest = page.rest([found.entry for found in left])
        return f"{len(left)} more do not fit (ids {numbers}): {rest}"


def format_runs(numbers: Iterable[int], most: int = RUNS_MAX) -> str:
    """Numbers as text, neighbors joined: ``3-7, 9``; at most `most` pieces."""
    ordered = sorted(set(numbers))
    starts = ordered[:1] + [after for n, after in pairwise(ordered) if after != n + 1]
    ends = [n for n, after in pairwise(ordered) if after != n + 1] + ordered[-1:]
    pieces = [f"{a}-{b}" if a != b else str(a) for a, b in zip(starts, ends, strict=True)]
    return ", ".join(pieces[:most]) + (", ..." if len(pieces) > most else "")


def readable_text(message: Message) -> str:
    """A message for display: its text, its calls, and the kinds of its other parts."""
    parts = () if isinstance(message.content, str) else message.content or ()
    lines = [message.text] if message.text else []
    lines += [_call(part.fields.get("name"), part.fields) for part in parts if _is_call(part)]
    lines += [f"[{part.kind}]" for part in parts if not part.text and not _is_call(part)]
    lines += [f"[calls {call.name} {call.arguments}]" for call in message.tool_calls]
    return "\n".join(lines)


def _is_call(part: Part) -> bool:
    return part.kind == "tool_call"


def _call(name: object, fields: Mapping[str, Any]) -> str:
    given = fields.get("input") or fields.get("arguments") or {}
    return f"[calls {name} {given if isinstance(given, str) else encode_json(given)}]"
