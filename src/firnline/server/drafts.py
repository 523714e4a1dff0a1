"""Drafts: answers that are being streamed, durable before the client receives them.

The log stores complete messages only. The text of a streamed answer is stored in cards next to the
log, and each part is on disk before the client gets it. When the answer is in the log, the cards
are dropped. If the process dies, another process moves the text from the cards to the log, marked
as interrupted: text that a client received is never lost.

A process that was only paused may come back and store the complete answer. So both store under the
same idempotency key, the draft's: the log takes the first one, and the draft is settled. Which
conversation that is, is fixed by a card that is written once. No clocks are compared: a draft is
abandoned if a process has watched it for a while and nothing about it changed.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any, Final, NamedTuple

from firnline.context.marks import INTERRUPTED
from firnline.errors import ConflictError, FirnlineError, KeyReused, UnknownConversation
from firnline.log import limits
from firnline.log.entry import Appended, Card, Head
from firnline.log.message import Message
from firnline.log.wire import parse_unique
from firnline.memory import Memory
from firnline.server.limits import DRAFT_BEAT_SECONDS, DRAFT_CARDS_MAX
from firnline.store.cards import DRAFT

logger: Final = logging.getLogger("firnline.server")

_STALE: Final = timedelta(seconds=60)
_HEADER: Final = "/000000"
"""The end of the name of a draft's first card."""
_TARGET: Final = "/to"
"""The name of the card with the conversation that the answer goes to, behind all parts."""
_ANSWERS_READ: Final = 50


def new_id() -> str:
    """An id for a draft."""
    return secrets.token_hex(12)


def answer_key(draft_id: str) -> str:
    """The idempotency key of the answer of a draft."""
    return f"draft:{draft_id}"


class _Sighting(NamedTuple):
    """When a draft was last renewed, and since when we know that, each by its own clock."""

    renewed: datetime | None
    since: float


class QuestionRef(NamedTuple):
    """The entry that is answered, or one before it, and its hash if known.

    The hash detects a conversation that was erased and created again while it is answered.
    """

    seq: int = -1
    hash: str = ""


@dataclass(slots=True)
class AnswerDraft:
    """The text of one answer so far. `question` is the entry it answers."""

    memory: Memory
    conversation: str
    question: QuestionRef
    owner: str
    ended: Callable[[AnswerDraft], object]
    id: str = field(default_factory=new_id)
    texts: list[str] = field(default_factory=list)
    parts: int = 0
    written: float = field(default_factory=time.monotonic)

    @property
    def key(self) -> str:
        """The idempotency key under which its answer is stored, complete or interrupted."""
        return answer_key(self.id)

    async def add(self, text: str) -> None:
        """Store more of the text; durable when this returns.

        `ConflictError` if this process was paused, and another one has settled the draft.
        """
        paused = time.monotonic() - self.written > _STALE.total_seconds() / 2
        if self.parts and paused and not await self._is_open():
            raise ConflictError("another process has stored the answer as interrupted")
        self.written = time.monotonic()
        # The first part comes with a header; without any text there is nothing to recover.
        cards = [] if self.parts else [self._header]
        self.parts += 1
        self.texts.append(text)
        await self.memory.cards.put(*cards, self._card(self.parts, text.encode()))

    async def beat(self) -> None:
        """Show that the process is still alive."""
        if self.parts and await self._is_open():
            await self.memory.cards.put(self._header)
            self.written = time.monotonic()

    async def move(self, conversation: str) -> None:
        """Let the answer be stored in another conversation; `KeyReused` if it is stored already."""
        if not self.parts:
            return
        target = self._card(_TARGET, conversation.encode())
        if not await self.memory.cards.put(target, absent=True) or not await self._is_open():
            raise KeyReused("another process has stored the answer as interrupted")

    async def _is_open(self) -> bool:
        """Whether no other process has dropped it; its first part is written only once."""
        return await self.memory.cards.get(DRAFT, f"{self.id}/{1:06d}") is not None

    async def end(self) -> None:
        """The answer is in the log: drop the draft."""
        self.ended(self)
        await self._drop()

    async def leave(self) -> None:
        """Leave the draft to `Drafts.recover`."""
        self.ended(self)

    async def cut(self, why: str) -> None:
        """The answer was interrupted: store the text so far in the log."""
        self.ended(self)  # if storing fails, it is recovered later
        if text := "".join(self.texts):
            message = interrupted(text, why)
            with suppress(UnknownConversation, KeyReused):
                await store_answer(self.memory, self.conversation, self.question, message, self.key)
        await self._drop()

    async def _drop(self) -> None:
        if self.parts:
            await self.memory.cards.drop(DRAFT, prefix=f"{self.id}/")

    @property
    def _header(self) -> Card:
        header = {"owner": self.owner, "question": self.question.seq, "hash": self.question.hash}
        return self._card(0, json.dumps(header).encode())

    def _card(self, part: int | str, body: bytes) -> Card:
        return Card(
            tenant=self.memory.tenant,
            kind=DRAFT,
            name=f"{self.id}/{part:06d}" if isinstance(part, int) else f"{self.id}{part}",
            body=body,
            conversation=self.conversation,
        )


async def _read_parts(memory: Memory, draft_id: str) -> list[Card]:
    """All parts of a draft, in order."""
    found, after = list[Card](), ""
    while page := await memory.cards.find(
        DRAFT, prefix=f"{draft_id}/", after=after, limit=DRAFT_CARDS_MAX
    ):
        found += page
        after = page[-1].name
    return found


class Drafts:
    """The drafts of this process; it also recovers drafts of processes that died.

    `memory` sees the drafts of all tenants; `memory_of` returns a tenant's own memory.
    """

    def __init__(self, memory: Memory, memory_of: Callable[[str], Awaitable[Memory]]) -> None:
        self._memory, self._memory_of = memory, memory_of
        self.owner = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        self._live: dict[str, AnswerDraft] = {}
        self._seen: dict[str, _Sighting] = {}
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Recover drafts of dead processes, now and in the background."""
        await self.recover()
        self._task = asyncio.create_task(self._watch())

    async def stop(self) -> None:
        """Stop the background task."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    @property
    def live(self) -> int:
        """Number of open drafts of this process."""
        return len(self._live)

    def begin(
        self,
        memory: Memory,
        conversation: str,
        question: int,
        known: str = "",
        *,
        draft_id: str = "",
    ) -> AnswerDraft:
        """A new draft; it is stored with its first words.

        `known` is the hash of the question's entry.
        """
        ref, chosen = QuestionRef(question, known), draft_id or new_id()
        draft = AnswerDraft(memory, conversation, ref, self.owner, self._ended, chosen)
        self._live[draft.id] = draft
        return draft

    def _ended(self, draft: AnswerDraft) -> None:
        self._live.pop(draft.id, None)

    async def recover(self) -> int:
        """Move drafts of dead processes to the log; returns how many."""
        found = await self._memory.cards.find(DRAFT, all_tenants=True, limit=DRAFT_CARDS_MAX)
        ids = set(map(_id, found))
        self._seen = {each: seen for each, seen in self._seen.items() if each in ids}
        recovered = 0
        for (tenant, draft_id), group in groupby(found, lambda card: (card.tenant, _id(card))):
            cards = list(group)
            if draft_id not in self._live and self._is_abandoned(cards):
                # Read again: the process may have written more before it died.
                memory = await self._memory_of(tenant)
                parts = await _read_parts(memory, draft_id)
                recovered += await self._finish(memory, draft_id, parts)
        return recovered

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(DRAFT_BEAT_SECONDS)
            try:
                for draft in list(self._live.values()):
                    await draft.beat()
                await self.recover()
            except FirnlineError as error:
                logger.warning("drafts: cannot refresh or recover them: %s", error)

    def _is_abandoned(self, cards: Sequence[Card]) -> bool:
        """Whether its process has ended, or has not renewed it since we saw it first."""
        if self.is_dead(str(_header(cards).get("owner", ""))):
            return True
        draft_id, now = _id(cards[0]), time.monotonic()
        renewed = next((card.updated_at for card in cards if card.name.endswith(_HEADER)), None)
        known = self._seen.get(draft_id)
        if known is None or known.renewed != renewed:
            known = self._seen[draft_id] = _Sighting(renewed, now)
        return now - known.since > _STALE.total_seconds()

    def is_dead(self, owner: str) -> bool:
        """Whether a process of this machine has ended; unknown (False) for other machines."""
        host, _, rest = owner.rpartition(":")[0].rpartition(":")
        if host != self.owner.split(":")[0] or not rest.isdecimal():
            return False
        if int(rest) == os.getpid():
            return owner != self.owner
        try:
            os.kill(int(rest), 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        return False

    async def _finish(self, memory: Memory, draft_id: str, cards: Sequence[Card]) -> bool:
        """Move a draft to the log; False if it is still in use, or gone."""
        if not cards or not self._is_abandoned(cards):
            return False
        parts = [card.body for card in cards if not card.name.endswith((_HEADER, _TARGET))]
        text = b"".join(parts).decode()
        conversation, header = cards[0].conversation, _header(cards)
        question = QuestionRef(header.get("question", -1), header.get("hash", ""))
        # Without a header, its conversation was erased together with its first part.
        if text and header and conversation is not None:
            target = await _fix_target(memory, draft_id, conversation)
            if target != conversation:  # a branch: its entries have other hashes
                question = QuestionRef(question.seq)
            if not await _is_answered(memory, target, question.seq, text):
                message, key = interrupted(text, "the server stopped"), answer_key(draft_id)
                try:
                    with suppress(UnknownConversation):
                        await store_answer(memory, target, question, message, key)
                except ConflictError:
                    logger.info("draft: another process has stored the answer")
        await memory.cards.drop(DRAFT, prefix=f"{draft_id}/")
        return True


async def _fix_target(memory: Memory, draft_id: str, conversation: str) -> str:
    """The conversation that the answer of a draft goes to, unless its process has chosen another.

    From now on, no process can choose another one.
    """
    name = f"{draft_id}{_TARGET}"
    body = conversation.encode()
    card = Card(tenant=memory.tenant, kind=DRAFT, name=name, body=body, conversation=conversation)
    if await memory.cards.put(card, absent=True):
        return conversation
    found = await memory.cards.get(DRAFT, name)
    return found.body.decode() if found else conversation


def interrupted(text: str, why: str) -> Message:
    """A message for an incomplete answer."""
    return Message.assistant(text, metadata={INTERRUPTED: why})


async def store_answer(
    memory: Memory,
    conversation: str,
    question: QuestionRef,
    message: Message,
    key: str | None = None,
) -> Appended:
    """Append an answer to the question; `UnknownConversation` if that was erased."""
    for _ in range(limits.ANSWER_TRIES):
        head = await memory.head(conversation)
        if question.seq >= 0 and not await _is_there(memory, head, question):
            raise UnknownConversation(f"{conversation} was erased while it was being answered")
        end = head.entries if head else 0
        try:
            return await memory.append(conversation, message, expected_seq=end, idempotency_key=key)
        except KeyReused:
            raise
        except ConflictError:
            continue  # a concurrent append; check again whether it was erased
    return await memory.append(conversation, message, idempotency_key=key)  # busy, and not erased


async def _is_there(memory: Memory, head: Head | None, question: QuestionRef) -> bool:
    """Whether the question is still in the conversation of this head."""
    if head is None or head.seq < question.seq:
        return False
    if not question.hash:
        return True
    if head.seq == question.seq:
        return head.hash == question.hash
    found = await memory.read(head.conversation, first_seq=question.seq, last_seq=question.seq)
    return [entry.hash for entry in found] == [question.hash]


async def _is_answered(memory: Memory, conversation: str, question: int, text: str) -> bool:
    """Whether the complete answer is in the log: the process died before it dropped the cards."""
    later = await memory.read(conversation, first_seq=question + 1, limit=_ANSWERS_READ)
    answers = (entry.message for entry in later if entry.message.role == "assistant")
    return any(message.text.startswith(text) for message in answers)


def _id(card: Card) -> str:
    return card.name.partition("/")[0]


def _header(cards: Sequence[Card]) -> dict[str, Any]:
    body = next((card.body for card in cards if card.name.endswith(_HEADER)), b"{}")
    header = parse_unique(body)
    return header if isinstance(header, dict) else {}
