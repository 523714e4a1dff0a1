"""The webhook for Telegram updates: checks and stores them, and returns 200 immediately.

Telegram repeats an update until it gets a 200, so an invalid update is set aside, not rejected.
The message and the update's id are one transaction, so a repeated update stores nothing.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, TypeAlias

from fastapi import APIRouter, Request, Response
from pydantic import SecretStr

from firnline.engine.events import Events
from firnline.errors import ConflictError, FirnlineError, InputError
from firnline.log.entry import Card
from firnline.log.json_text import dump_json
from firnline.log.message import Message, utc_now
from firnline.log.text import Json
from firnline.log.threads import run_by_size
from firnline.log.wire import load_json, parse_unique
from firnline.memory import Memory
from firnline.protocols import Clock, Event, Observer
from firnline.server.limits import TELEGRAM_BODY_BYTES_MAX
from firnline.server.telegram import updates
from firnline.server.telegram.jobs import EDIT, MOVED, REFUSED, Place, ReplyJob
from firnline.server.telegram.settings import BotSettings, checked
from firnline.server.telegram.updates import Incoming

logger: Final = logging.getLogger("firnline.telegram")

MemoryOf: TypeAlias = Callable[[str], Awaitable[Memory]]
"""Returns the memory of a tenant."""

HEADER: Final = "X-Telegram-Bot-Api-Secret-Token"
_UNKNOWN: Final = SecretStr("no bot has this secret: it has spaces")


def router(
    bots: Sequence[BotSettings],
    memory_of: MemoryOf,
    *,
    observer: Observer | None = None,
    wake: Callable[[], None] | None = None,
    clock: Clock = utc_now,
) -> APIRouter:
    """The route ``POST /telegram/{bot}/webhook`` for these bots.

    `wake` is called when there is a message to answer, `observer` for every update.
    """
    intakes = {bot.name: _Intake(bot, memory_of, observer, wake, clock) for bot in checked(bots)}
    routes = APIRouter(tags=["telegram"])

    @routes.post("/telegram/{bot}/webhook", include_in_schema=False)
    async def webhook(bot: str, request: Request) -> Response:
        intake = intakes.get(bot)
        given = request.headers.getlist(HEADER)
        # Always compare, so the response time does not reveal which bots exist.
        secret = intake.bot.secret if intake else _UNKNOWN
        same = _same(given, secret)
        if intake is None or not same:
            return Response(status_code=401)
        body = await _body(request)
        return Response(status_code=413 if body is None else await intake.take(body))

    return routes


def _same(given: Sequence[str], secret: SecretStr) -> bool:
    """Whether the request has exactly one secret, and it is this one."""
    sent = given[0] if len(given) == 1 else ""
    return hmac.compare_digest(sent.encode(), secret.get_secret_value().encode())


async def _body(request: Request) -> bytes | None:
    """The body, or None as soon as it is too large."""
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > TELEGRAM_BODY_BYTES_MAX:
            return None
    return body


class _Intake:
    """Handles the updates of one bot."""

    def __init__(
        self,
        bot: BotSettings,
        memory_of: MemoryOf,
        observer: Observer | None,
        wake: Callable[[], None] | None,
        clock: Clock,
    ) -> None:
        self.bot, self._memory_of, self._clock = bot, memory_of, clock
        self._events, self._wake = Events(bot.tenant, observer), wake
        self._editing = asyncio.Lock()

    async def take(self, body: bytes) -> int:
        """Handle an update; returns the HTTP status."""
        try:
            update = await run_by_size(len(body), partial(load_json, body))
        except InputError:
            self._tell("malformed")
            logger.warning("%s: received an update that is not JSON", self.bot.name)
            return 400
        kind = updates.kind_of(update)
        if kind not in updates.KINDS:
            self._tell("unhandled", kind)
            logger.info("%s: ignored an update of kind %.40r", self.bot.name, kind)
            return 200
        try:
            await self._store(update if isinstance(update, dict) else {}, kind, len(body))
        except FirnlineError as error:
            # Do not acknowledge what is not stored: Telegram sends it again.
            self._tell("failed", kind)
            logger.error("%s: update not stored: %s", self.bot.name, error)  # noqa: TRY400
            return 503
        return 200

    async def _store(self, update: dict[str, Json], kind: str, size: int) -> None:
        memory = await self._memory_of(self.bot.tenant)
        try:
            incoming = await run_by_size(size, partial(updates.read, update, self.bot.id))
            name = await self._name(memory, incoming)
            if not self.bot.talks_in(name):
                self._tell("stranger", kind)
                return
            place = self._place(incoming, name)
            store = self._edit if incoming.edited else self._message
            new = await store(memory, place, incoming)
        except InputError as error:
            await self._put_aside(memory, update, error)
        except ConflictError as error:
            # It was stored with other content: by another version, or between two edits.
            self._tell("repeated", kind)
            logger.info("%s: update was stored before: %s", self.bot.name, error)
        else:
            self._tell("stored" if new else "repeated", kind, place.conversation)

    async def _message(self, memory: Memory, place: Place, incoming: Incoming) -> bool:
        """Store a message, and a job if it needs an answer; returns whether it is new."""
        appended = await memory.append(
            place.conversation,
            incoming.message,
            idempotency_key=self._key(incoming),
            person=await _person_of(memory, place, incoming),
        )
        if incoming.asks and incoming.mentions != ():
            job = ReplyJob(
                place=place,
                seq=appended.seq,
                update_id=incoming.update_id,
                chat_id=incoming.chat_id,
                message_id=incoming.message_id,
                forum_topic=incoming.forum_topic,
                group=incoming.group,
                mentions=incoming.mentions,
                command=incoming.command,
                queued=self._clock().timestamp(),
            )
            # Also for a repeated update: the first attempt may have failed before this.
            await memory.cards.put(job.card(), absent=True)
            if self._wake is not None:
                self._wake()
        return not appended.replayed

    async def _edit(self, memory: Memory, place: Place, incoming: Incoming) -> bool:
        """Store a new version of a message next to the old one; returns whether it is new."""
        async with self._editing:  # versions are numbered one at a time
            return await self._version(memory, place, incoming)

    async def _version(self, memory: Memory, place: Place, incoming: Incoming) -> bool:
        newest = place.card(EDIT, incoming.message_id, {})
        found = await memory.cards.get(EDIT, newest.name)
        version = parse_unique(found.body)["version"] + 1 if found else 2
        about: dict[str, Json] = {"edits": incoming.message_id, "version": version}
        appended = await memory.append(
            place.conversation, _with(incoming.message, about), idempotency_key=self._key(incoming)
        )
        # Last: after an earlier failure, Telegram sends the update again, and it is counted then.
        counted = place.card(EDIT, incoming.message_id, {"version": version})
        await memory.cards.put(counted)
        return not appended.replayed

    def _key(self, incoming: Incoming) -> str:
        return f"telegram:{self.bot.id}:{incoming.update_id}"

    async def _name(self, memory: Memory, incoming: Incoming) -> str:
        """The chat's conversation. A group that gets a new id keeps its conversation."""
        name = self.bot.conversation(incoming.chat_id)
        if incoming.moved_from is not None:
            await self._moved(memory, incoming.moved_from, incoming.chat_id)
        if incoming.moved_to is not None:
            await self._moved(memory, incoming.chat_id, incoming.moved_to)
        if incoming.group:
            card = self._moved_card(incoming.chat_id, "")
            found = await memory.cards.get(MOVED, card.name)
            name = found.body.decode() if found else name
        return name

    def _place(self, incoming: Incoming, name: str) -> Place:
        """The place of the message: its chat's conversation, or its topic's."""
        topic = incoming.forum_topic
        conversation = name if topic is None else f"{name}:{topic}"
        return Place(self.bot.tenant, self.bot.id, conversation)

    async def _moved(self, memory: Memory, before: int, after: int) -> None:
        card = self._moved_card(after, self.bot.conversation(before))
        await memory.cards.put(card, absent=True)

    def _moved_card(self, chat_id: int, conversation: str) -> Card:
        """A card that maps a new chat id to the conversation, and is erased with it."""
        return Card(
            tenant=self.bot.tenant,
            kind=MOVED,
            name=f"{self.bot.id}/{chat_id}",
            body=conversation.encode(),
            conversation=conversation,
        )

    async def _put_aside(self, memory: Memory, update: Json, error: InputError) -> None:
        """Store an invalid update, for the operator of the server."""
        self._tell("refused", updates.kind_of(update))
        logger.error("%s: invalid update set aside: %s", self.bot.name, error)
        try:
            number = updates.number_of(update)
        except InputError:
            return  # not from Telegram
        name, text = f"{self.bot.id}/{number}", await asyncio.to_thread(dump_json, update)
        body = text.encode()
        card = Card(tenant=self.bot.tenant, kind=REFUSED, name=name, body=body)
        await memory.cards.put(card)

    def _tell(self, outcome: str, kind: str = "", conversation: str = "") -> None:
        known = kind if kind in updates.KINDS else "other"
        values = {"bot": self.bot.name, "outcome": outcome, "kind": known}
        self._events(Event("telegram_update", self.bot.tenant, conversation, values))


async def _person_of(memory: Memory, place: Place, incoming: Incoming) -> str | None:
    """Whom a private chat is with; None if the application has said so itself."""
    head = await memory.head(place.conversation) if incoming.person else None
    return incoming.person if head is None or head.person is None else None


def _with(message: Message, metadata: dict[str, Json]) -> Message:
    """The message with additional metadata."""
    return Message.user(
        message.content or "",
        name=message.name,
        created_at=message.created_at,
        metadata={**message.metadata, **metadata},
    )
