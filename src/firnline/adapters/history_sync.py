"""What a framework's own history holds and the log does not: told apart, and stored.

Frameworks hand over the whole history, again and again, or only what is new. A message is known by
the framework's id for it, or, where that is another each time, by a hash of all that was said up to
it. Both are kept in the entry's metadata, so any process can go on; what is remembered here only
saves reading.

A hash alone cannot tell a history that is sent again from the same words said again. The order of
the log can (`_matched`): entries follow each other like their messages, and a question that the log
has an answer to, but the history has not, is a new one.
"""

from __future__ import annotations

import hashlib
import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, Final

from firnline.context.plan import is_question
from firnline.errors import ConflictError
from firnline.log.entry import Entry
from firnline.log.message import Message, call_ids, encode_json
from firnline.log.text import Json
from firnline.memory import Memory

NOTE: Final = "adapter"
"""In an entry's metadata: by which id and hash a framework's history knows it."""
_CONVERSATIONS: Final = 256
_BEYOND: Final = 200  # entries that others may have added behind a history's end
_BATCH: Final = 500  # messages stored at once, where a long history is taken over
_TRIES: Final = 5


@dataclass(slots=True)
class _Known:
    """How far the log was read, and the entries of ids and of hashes.

    `last` is the newest id with its hash, `answered` the newest entry that a model said.
    """

    next_seq: int = 0
    answered: int = -1
    ids: dict[str, int] = field(default_factory=dict)
    chains: dict[str, list[int]] = field(default_factory=dict)
    last: tuple[str, str] = ("", "")

    def learn(self, entry: Entry) -> None:
        self.next_seq = entry.seq + 1
        if entry.message.role == "assistant":
            self.answered = entry.seq
        note = entry.message.metadata.get(NOTE)
        if isinstance(note, dict):
            name, chain = self.last = str(note.get("id") or ""), str(note.get("chain") or "")
            self.chains.setdefault(chain, []).append(entry.seq)
            if name:
                self.ids[name] = entry.seq


class Keeper:
    """Keeps the log up with histories; one for all conversations of a memory.

    `stable`: the framework's ids never change, so a message with an unknown one is new.
    """

    def __init__(self, memory: Memory, *, stable: bool = False) -> None:
        self._memory, self._stable = memory, stable
        self._known: OrderedDict[str, _Known] = OrderedDict()

    async def keep(
        self, conversation: str, ids: Sequence[str], message: Callable[[int], Message]
    ) -> Mapping[int, int]:
        """Store what is new of a history; durable when this returns.

        `ids` are the framework's for its messages, empty where it has none; ``message(place)`` is
        asked for those that may be new. Returns the place in the history of each entry, by number.
        """
        for _ in range(_TRIES):
            try:
                return await self._kept(conversation, ids, message)
            except ConflictError:
                continue  # somebody else appended in between: look again
        return await self._kept(conversation, ids, message)

    async def _kept(
        self, conversation: str, ids: Sequence[str], message: Callable[[int], Message]
    ) -> Mapping[int, int]:
        known = await self._look(conversation, len(ids))
        places = {known.ids[name]: at for at, name in enumerate(ids) if name in known.ids}
        start, chain = _start(known, ids)
        given = [message(at) for at in range(start, len(ids))]
        chains = list(accumulate(given, _chained, initial=chain))[1:]
        new: list[Message] = []
        for at, seq in enumerate(self._entries(known, ids, start, given, chains), start):
            if seq is None:
                places[known.next_seq + len(new)] = at
                new.append(_noted(given[at - start], ids[at], chains[at - start]))
            else:
                places[seq] = at
                if ids[at]:
                    known.ids[ids[at]] = seq
        for first in range(0, len(new), _BATCH):
            batch = new[first : first + _BATCH]
            for entry in await self._memory.append(
                conversation, batch, expected_seq=known.next_seq
            ):
                known.learn(entry)
        return places

    def _entries(
        self,
        known: _Known,
        ids: Sequence[str],
        start: int,
        given: Sequence[Message],
        chains: Sequence[str],
    ) -> list[int | None]:
        """The entries of the messages from place `start` on; None for what is new."""
        own = [known.ids.get(name) for name in ids[start:]]
        like = [
            () if name and self._stable else known.chains.get(chain, ())
            for name, chain in zip(ids[start:], chains, strict=True)
        ]
        return _matched(
            given, own, like, known.ids[ids[start - 1]] if start else -1, known.answered
        )

    async def _look(self, conversation: str, reach: int) -> _Known:
        """What is known of the conversation, with what others have added to it since."""
        known = self._known.setdefault(conversation, _Known())
        self._known.move_to_end(conversation)
        if len(self._known) > _CONVERSATIONS:
            self._known.popitem(last=False)
        head = await self._memory.head(conversation)
        end = head.seq + 1 if head else 0
        if end < known.next_seq:  # erased, and begun anew
            known = self._known[conversation] = _Known()
        if end > known.next_seq:
            first = max(known.next_seq, end - reach - _BEYOND)
            for entry in await self._memory.read(conversation, first_seq=first):
                known.learn(entry)
        return known


def _start(known: _Known, ids: Sequence[str]) -> tuple[int, str]:
    """The first place that may be new, and the hash of all before it: 0 unless all are known."""
    name, chain = known.last
    at = next((at for at in range(len(ids) - 1, -1, -1) if ids[at] == name), -1) if name else -1
    whole = at >= 0 and all(before in known.ids for before in ids[:at])
    return (at + 1, chain) if whole else (0, "")


def _matched(
    given: Sequence[Message],
    own: Sequence[int | None],
    like: Sequence[Sequence[int]],
    floor: int,
    answered: int,
) -> list[int | None]:
    """The entry of each message: its `own` by its id, or one of those of the same hash, or None.

    Entries lie behind `floor` and in the order of their messages. What the user says behind the
    history's last answer is not answered yet, so its entry lies behind the log's last answer. The
    newest entry is taken for the newest question: its answer may be that of an older one, word
    for word, and is still another.
    """
    asks = [is_question(message) for message in given]
    others = (at for at, message in enumerate(given) if not asks[at] and not _is_system(message))
    turn = max(others, default=-1) + 1
    newest = max((at for at in range(len(given)) if asks[at]), default=len(given) - 1)
    floors = list(accumulate((-1 if seq is None else seq for seq in own), max, initial=floor))
    found, above = list(own), sys.maxsize
    for at in range(newest, -1, -1):
        below = max(floors[at], answered) if asks[at] and at >= turn else floors[at]
        if found[at] is None:
            found[at] = max((seq for seq in like[at] if below < seq < above), default=None)
        above = min(above, above if (seq := found[at]) is None else seq)
    for at in range(newest + 1, len(given)):
        before = found[at - 1]
        if found[at] is None and before is not None:
            found[at] = next((seq for seq in like[at] if seq > before), None)
    return found


def _is_system(message: Message) -> bool:
    return message.role in ("system", "developer")


def _noted(message: Message, name: str, chain: str) -> Message:
    """The message with what a history knows it by."""
    note: dict[str, Json] = {"id": name, "chain": chain} if name else {"chain": chain}
    return replace(message, metadata={**message.metadata, NOTE: note})


def _chained(chain: str, message: Message) -> str:
    """The hash of all before and of this; who sends it again may leave out what was thought."""
    parts = () if isinstance(message.content, str) else message.content or ()
    beside = [part.fields for part in parts if part.kind not in ("text", "reasoning")]
    said: Any = [message.role, message.text, call_ids(message), message.tool_call_id, beside]
    return hashlib.sha256(f"{chain}{encode_json(said)}".encode()).hexdigest()[:32]
