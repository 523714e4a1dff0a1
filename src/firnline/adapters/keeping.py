"""What a framework's own history holds and the log does not: told apart, and stored.

Frameworks hand over the whole history, again and again. A message is known by the framework's id
for it, or, where that is another each time, by a hash of all that was said up to it. Both are kept
in the entry's metadata, so any process can go on; what is remembered here only saves reading.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from firnline.errors import ConflictError
from firnline.log import Entry
from firnline.memory import Memory
from firnline.message import Message, encode_json
from firnline.plan import call_ids
from firnline.text import Json

NOTE: Final = "adapter"
"""In an entry's metadata: by which id and hash a framework's history knows it."""
_CONVERSATIONS: Final = 256
_BEYOND: Final = 200  # entries that others may have added behind a history's end
_BATCH: Final = 500  # messages stored at once, where a long history is taken over
_TRIES: Final = 5


@dataclass(slots=True)
class _Known:
    """How far the log was read, and the entries of ids and of hashes; `last` is the newest id."""

    next_seq: int = 0
    ids: dict[str, int] = field(default_factory=dict)
    chains: dict[str, int] = field(default_factory=dict)
    last: tuple[str, str] = ("", "")

    def learn(self, entry: Entry) -> None:
        self.next_seq = entry.seq + 1
        note = entry.message.metadata.get(NOTE)
        if isinstance(note, dict):
            name, chain = self.last = str(note.get("id") or ""), str(note.get("chain") or "")
            self.chains[chain] = entry.seq
            if name:
                self.ids[name] = entry.seq


class Keeper:
    """Keeps the log up with histories; one for all conversations of a memory."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
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
        new: list[Message] = []
        for at in range(start, len(ids)):
            given = message(at)
            chain = _chained(chain, given)
            seq = known.ids.get(ids[at], known.chains.get(chain))
            if seq is None:
                seq = known.next_seq + len(new)
                note: dict[str, Json] = (
                    {"id": ids[at], "chain": chain} if ids[at] else {"chain": chain}
                )
                new.append(replace(given, metadata={**given.metadata, NOTE: note}))
            elif ids[at]:
                known.ids[ids[at]] = seq
            places[seq] = at
        for first in range(0, len(new), _BATCH):
            batch = new[first : first + _BATCH]
            for entry in await self._memory.append(
                conversation, batch, expected_seq=known.next_seq
            ):
                known.learn(entry)
        return places

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


def _chained(chain: str, message: Message) -> str:
    """The hash of all before and of this; who sends it again may leave out what was thought."""
    parts = () if isinstance(message.content, str) else message.content or ()
    beside = [part.fields for part in parts if part.kind not in ("text", "reasoning")]
    said: Any = [message.role, message.text, call_ids(message), message.tool_call_id, beside]
    return hashlib.sha256(f"{chain}{encode_json(said)}".encode()).hexdigest()[:32]
