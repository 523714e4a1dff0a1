"""Stores the messages that a framework's history has and the log has not.

Frameworks pass the full history on every call, or only what is new. A message is identified by the
framework's id or, if that changes each time, by a hash of all messages up to it. Both are stored in
the entry's metadata, so that any process can continue; what is cached here only saves reading.

A hash alone cannot distinguish a history that is sent again from the same words said again. The
order of the log can (`_match_entries`): entries are in the order of their messages, and a question
that has an answer in the log, but not in the history, is a new one.
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
"""The metadata field with the id and the hash of a framework's message."""
_CONVERSATIONS: Final = 256
_BEYOND: Final = 200  # entries that other writers may have added after the history's end
_BATCH: Final = 500  # messages stored at once when a long history is imported
_TRIES: Final = 5


@dataclass(slots=True)
class _LogState:
    """How far the log was read, and the entries by id and by hash.

    `last` is the newest id with its hash, `answered` the newest entry of a model.
    """

    next_seq: int = 0
    answered: int = -1
    ids: dict[str, int] = field(default_factory=dict)
    chains: dict[str, list[int]] = field(default_factory=dict)
    last: tuple[str, str] = ("", "")

    def add(self, entry: Entry) -> None:
        self.next_seq = entry.seq + 1
        if entry.message.role == "assistant":
            self.answered = entry.seq
        note = entry.message.metadata.get(NOTE)
        if isinstance(note, dict):
            name, chain = self.last = str(note.get("id") or ""), str(note.get("chain") or "")
            self.chains.setdefault(chain, []).append(entry.seq)
            if name:
                self.ids[name] = entry.seq


class HistorySync:
    """Keeps the log in sync with histories; one object for all conversations of a memory.

    `stable`: the framework's ids never change, so a message with an unknown id is new.
    """

    def __init__(self, memory: Memory, *, stable: bool = False) -> None:
        self._memory, self._stable = memory, stable
        self._known: OrderedDict[str, _LogState] = OrderedDict()

    async def store_new(
        self,
        conversation: str,
        ids: Sequence[str],
        message: Callable[[int], Message],
        *,
        person: str | None = None,
    ) -> Mapping[int, int]:
        """Store the new messages of a history; durable when this returns.

        `ids` are the framework's ids of the messages, or empty; ``message(index)`` is called for
        those that may be new. `person` is whom the conversation is with. Returns the index in the
        history of each entry, by number.
        """
        for _ in range(_TRIES):
            try:
                return await self._try_store(conversation, ids, message, person)
            except ConflictError:
                continue  # another writer appended in between: read again
        return await self._try_store(conversation, ids, message, person)

    async def _try_store(
        self,
        conversation: str,
        ids: Sequence[str],
        message: Callable[[int], Message],
        person: str | None,
    ) -> Mapping[int, int]:
        known = await self._refresh(conversation, len(ids))
        places = {known.ids[name]: at for at, name in enumerate(ids) if name in known.ids}
        start, chain = _start(known, ids)
        given = [message(at) for at in range(start, len(ids))]
        chains = list(accumulate(given, _next_hash, initial=chain))[1:]
        new: list[Message] = []
        for at, seq in enumerate(self._entries(known, ids, start, given, chains), start):
            if seq is None:
                places[known.next_seq + len(new)] = at
                new.append(_with_note(given[at - start], ids[at], chains[at - start]))
            else:
                places[seq] = at
                if ids[at]:
                    known.ids[ids[at]] = seq
        for first in range(0, len(new), _BATCH):
            batch = new[first : first + _BATCH]
            for entry in await self._memory.append(
                conversation, batch, expected_seq=known.next_seq, person=person
            ):
                known.add(entry)
        return places

    def _entries(
        self,
        state: _LogState,
        ids: Sequence[str],
        start: int,
        messages: Sequence[Message],
        chains: Sequence[str],
    ) -> list[int | None]:
        """The entries of the messages from index `start` on; None for new ones."""
        by_id = [state.ids.get(name) for name in ids[start:]]
        like = [
            () if name and self._stable else state.chains.get(chain, ())
            for name, chain in zip(ids[start:], chains, strict=True)
        ]
        return _match_entries(
            messages, by_id, like, state.ids[ids[start - 1]] if start else -1, state.answered
        )

    async def _refresh(self, conversation: str, reach: int) -> _LogState:
        """The state of the log, with entries that other writers have added since."""
        known = self._known.setdefault(conversation, _LogState())
        self._known.move_to_end(conversation)
        if len(self._known) > _CONVERSATIONS:
            self._known.popitem(last=False)
        head = await self._memory.head(conversation)
        end = head.seq + 1 if head else 0
        if end < known.next_seq:  # erased and created again
            known = self._known[conversation] = _LogState()
        if end > known.next_seq:
            first = max(known.next_seq, end - reach - _BEYOND)
            for entry in await self._memory.read(conversation, first_seq=first):
                known.add(entry)
        return known


def _start(known: _LogState, ids: Sequence[str]) -> tuple[int, str]:
    """The first index that may be new, and the hash of all before; 0 unless all are known."""
    name, chain = known.last
    at = next((at for at in range(len(ids) - 1, -1, -1) if ids[at] == name), -1) if name else -1
    complete = at >= 0 and all(before in known.ids for before in ids[:at])
    return (at + 1, chain) if complete else (0, "")


def _match_entries(
    messages: Sequence[Message],
    by_id: Sequence[int | None],
    like: Sequence[Sequence[int]],
    floor: int,
    answered: int,
) -> list[int | None]:
    """The entry of each message: the one by its id, or one with the same hash, or None.

    Entries come after `floor` and in the order of their messages. A user message after the
    history's last answer is not answered yet, so its entry comes after the log's last answer. The
    newest question matches the newest entry: its answer may be equal to an older one and is still
    a different message.
    """
    asks = [is_question(message) for message in messages]
    others = (at for at, message in enumerate(messages) if not asks[at] and not _is_system(message))
    turn = max(others, default=-1) + 1
    newest = max((at for at in range(len(messages)) if asks[at]), default=len(messages) - 1)
    floors = list(accumulate((-1 if seq is None else seq for seq in by_id), max, initial=floor))
    matches, above = list(by_id), sys.maxsize
    for at in range(newest, -1, -1):
        below = max(floors[at], answered) if asks[at] and at >= turn else floors[at]
        if matches[at] is None:
            matches[at] = max((seq for seq in like[at] if below < seq < above), default=None)
        above = min(above, above if (seq := matches[at]) is None else seq)
    for at in range(newest + 1, len(messages)):
        before = matches[at - 1]
        if matches[at] is None and before is not None:
            matches[at] = next((seq for seq in like[at] if seq > before), None)
    return matches


def _is_system(message: Message) -> bool:
    return message.role in ("system", "developer")


def _with_note(message: Message, name: str, chain: str) -> Message:
    """The message with its id and hash in the metadata."""
    note: dict[str, Json] = {"id": name, "chain": chain} if name else {"chain": chain}
    return replace(message, metadata={**message.metadata, NOTE: note})


def _next_hash(chain: str, message: Message) -> str:
    """The hash of all messages up to this one; without thoughts, which may be left out later."""
    parts = () if isinstance(message.content, str) else message.content or ()
    others = [part.fields for part in parts if part.kind not in ("text", "reasoning")]
    said: Any = [message.role, message.text, call_ids(message), message.tool_call_id, others]
    return hashlib.sha256(f"{chain}{encode_json(said)}".encode()).hexdigest()[:32]
