"""Answers in the making, kept durable ahead of what the client sees of them.

The log takes whole messages only. So the text of an answer that is being streamed is kept in cards
beside it, part by part, and each part is on disk before the client gets it. When the answer is in
the log, the cards go. If the process dies, whoever finds the cards puts what they hold into the
log, marked as interrupted: what a client saw is never lost, and nothing stays unfinished.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import groupby
from typing import Any, Final, NamedTuple

from firnline.errors import ConflictError, FirnlineError, KeyReused, UnknownConversation
from firnline.log import limits
from firnline.log.entry import Appended, Card, Head
from firnline.log.message import Message, utc_now
from firnline.memory import Memory
from firnline.protocols import Store

logger: Final = logging.getLogger("firnline.server")

INTERRUPTED: Final = "interrupted"
"""In the metadata of an answer that did not come to its end: why."""
_KIND: Final = "draft"
_BEAT_SECONDS: Final = 15.0
_STALE: Final = timedelta(seconds=60)
_SEEN_MAX: Final = 10_000
_REACH: Final = 50


class Question(NamedTuple):
    """The entry that an answer is for, or one before it; its hash, if known, tells it from others.

    A conversation that was erased may be begun anew under its name while the answer is made.
    """

    seq: int = -1
    hash: str = ""


@dataclass(slots=True)
class Draft:
    """The text of one answer so far; a `Keeper`. `question` is the entry it answers."""

    memory: Memory
    conversation: str
    question: Question
    owner: str
    ended: Callable[[Draft], object]
    id: str = field(default_factory=lambda: secrets.token_hex(12))
    text: str = ""
    parts: int = 0

    async def add(self, text: str) -> None:
        """Keep more of the text; it is durable when this returns."""
        # The first part says whose it is; before there is any text, there is nothing to recover.
        cards = [] if self.parts else [self._header]
        self.parts += 1
        self.text += text
        await self.memory.cards.put(*cards, self._card(self.parts, text.encode()))

    async def beat(self) -> None:
        """Say that whoever makes it is still alive."""
        if self.parts:
            await self.memory.cards.put(self._header)

    async def end(self) -> None:
        """The answer is in the log."""
        self.ended(self)
        await self._drop()

    async def leave(self) -> None:
        """Whoever looks for left drafts is to store it."""
        self.ended(self)

    async def cut(self, why: str) -> None:
        """The answer broke off; what there is goes into the log."""
        self.ended(self)  # if storing fails, it is found and stored later
        if self.text:
            message = interrupted(self.text, why)
            with suppress(UnknownConversation):
                await store_answer(self.memory, self.conversation, self.question, message)
        await self._drop()

    async def _drop(self) -> None:
        if self.parts:
            await self.memory.cards.drop(_KIND, prefix=f"{self.id}/")

    @property
    def _header(self) -> Card:
        header = {"owner": self.owner, "question": self.question.seq, "hash": self.question.hash}
        return self._card(0, json.dumps(header).encode())

    def _card(self, part: int, body: bytes) -> Card:
        return Card(
            tenant=self.memory.tenant,
            kind=_KIND,
            name=f"{self.id}/{part:06d}",
            body=body,
            conversation=self.conversation,
        )


class Drafts:
    """The drafts of this process; it also looks after those that others left behind."""

    def __init__(self, store: Store, memory_of: Callable[[str], Awaitable[Memory]]) -> None:
        self._store, self._memory_of = store, memory_of
        self._owner = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        self._live: dict[str, Draft] = {}
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Finish what a process that is gone has left, and go on looking for such."""
        await self.recover()
        self._task = asyncio.create_task(self._watch())

    async def stop(self) -> None:
        """Stop looking."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    @property
    def live(self) -> int:
        """How many answers are in the making here."""
        return len(self._live)

    def begin(self, memory: Memory, conversation: str, question: int, known: str = "") -> Draft:
        """A new draft; it is in the store when it has its first words.

        `known` is the hash of the question's entry.
        """
        asked = Question(question, known)
        draft = Draft(memory, conversation, asked, self._owner, self._ended)
        self._live[draft.id] = draft
        return draft

    def _ended(self, draft: Draft) -> None:
        self._live.pop(draft.id, None)

    async def recover(self) -> int:
        """Put what dead processes left into the log; returns how many answers those were."""
        found = await self._store.cards(_KIND, limit=_SEEN_MAX)
        recovered = 0
        for (tenant, draft_id), group in groupby(found, lambda card: (card.tenant, _id(card))):
            cards = list(group)
            if draft_id not in self._live and self._is_left(cards):
                # Read again: whoever is gone by now may have written more since then.
                recovered += await self._finish(tenant, draft_id, await self._all(tenant, draft_id))
        return recovered

    async def _all(self, tenant: str, draft_id: str) -> list[Card]:
        """All parts of a draft, in order."""
        found: list[Card] = []
        about: dict[str, Any] = {"tenant": tenant, "prefix": f"{draft_id}/", "limit": _SEEN_MAX}
        while page := await self._store.cards(_KIND, **about):
            found += page
            about["after"] = page[-1].name
        return found

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_BEAT_SECONDS)
            try:
                for draft in list(self._live.values()):
                    await draft.beat()
                await self.recover()
            except FirnlineError as error:
                logger.warning("cannot look after answers in the making: %s", error)

    def _is_left(self, cards: Sequence[Card]) -> bool:
        newest = max(card.updated_at for card in cards if card.updated_at)
        owner = str(_header(cards).get("owner", ""))
        return utc_now() - newest > _STALE or self._is_dead(owner)

    def _is_dead(self, owner: str) -> bool:
        """Whether a process of this machine is no more; of other machines nobody can tell."""
        host, _, rest = owner.rpartition(":")[0].rpartition(":")
        if host != self._owner.split(":")[0] or not rest.isdecimal():
            return False
        if int(rest) == os.getpid():
            return owner != self._owner
        try:
            os.kill(int(rest), 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        return False

    async def _finish(self, tenant: str, draft_id: str, cards: Sequence[Card]) -> bool:
        """Put a draft into the log; False if it is in the making still, or no more there."""
        if not cards or not self._is_left(cards):
            return False
        text = b"".join(card.body for card in cards if not card.name.endswith("/000000")).decode()
        conversation, header = cards[0].conversation, _header(cards)
        question = Question(header.get("question", -1), header.get("hash", ""))
        # Without a header it has lost its beginning, with the conversation that it was of.
        if text and header and conversation is not None:
            memory = await self._memory_of(tenant)
            if not await _is_answered(memory, conversation, question.seq, text):
                message, key = interrupted(text, "the server stopped"), f"draft:{draft_id}"
                try:
                    with suppress(UnknownConversation):
                        await store_answer(memory, conversation, question, message, key)
                except ConflictError:
                    logger.info("an interrupted answer was stored by somebody else")
        await self._store.drop_cards(_KIND, tenant, prefix=f"{draft_id}/")
        return True


def interrupted(text: str, why: str) -> Message:
    """What there is of an answer that broke off."""
    return Message.assistant(text, metadata={INTERRUPTED: why})


async def store_answer(
    memory: Memory, conversation: str, question: Question, message: Message, key: str | None = None
) -> Appended:
    """Append behind the question; `UnknownConversation` if that was erased: it stays so."""
    for _ in range(limits.ANSWER_TRIES):
        head = await memory.head(conversation)
        if question.seq >= 0 and not await _is_there(memory, head, question):
            raise UnknownConversation(f"{conversation} was erased meanwhile")
        end = head.entries if head else 0
        try:
            return await memory.append(conversation, message, expected_seq=end, idempotency_key=key)
        except KeyReused:
            raise
        except ConflictError:
            continue  # others have said something; it is looked again whether it was erased
    return await memory.append(conversation, message, idempotency_key=key)  # busy: it is there


async def _is_there(memory: Memory, head: Head | None, question: Question) -> bool:
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
    """Whether the whole answer is in the log: the process died between that and dropping cards."""
    later = await memory.read(conversation, first_seq=question + 1, limit=_REACH)
    said = (entry.message for entry in later if entry.message.role == "assistant")
    return any(message.text.startswith(text) for message in said)


def _id(card: Card) -> str:
    return card.name.partition("/")[0]


def _header(cards: Sequence[Card]) -> dict[str, Any]:
    body = next((card.body for card in cards if card.name.endswith("/000000")), b"{}")
    header = json.loads(body)
    return header if isinstance(header, dict) else {}
