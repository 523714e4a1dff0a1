"""Pending answers, their claims, and what was sent: cards next to the log.

A job records that a stored message needs an answer; it is deleted when the answer was sent or
cannot be sent. A claim is the exclusive right to answer in one chat. A delivery records the
Telegram messages in which an answer was sent. None of them contains message text.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple, Self

from firnline.errors import ConflictError, StoreCorrupt
from firnline.log import limits
from firnline.log.entry import Card
from firnline.log.wire import parse_unique
from firnline.protocols import Clock
from firnline.store.cards import TenantCards

JOB: Final = "telegram"
DELIVERY: Final = "telegram-sent"
CLAIM: Final = "telegram-claim"
EDIT: Final = "telegram-edit"
MOVED: Final = "telegram-moved"
REFUSED: Final = "telegram-refused"


class Place(NamedTuple):
    """A chat of a bot, and the conversation that stores it."""

    tenant: str
    bot_id: int
    conversation: str

    @property
    def prefix(self) -> str:
        """The prefix of its cards' names."""
        return f"{self.bot_id}/{self.conversation}/"

    def card(self, kind: str, number: int, body: Mapping[str, Any]) -> Card:
        """A card of this chat; cards of a kind sort by their numbers."""
        return Card(
            tenant=self.tenant,
            kind=kind,
            name=f"{self.prefix}{number:010}",
            body=json.dumps(body).encode(),
            conversation=self.conversation,
        )


# -- jobs -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyJob:
    """The message at `seq` needs an answer, from `due` on (seconds since 1970).

    With `mentions`, only if the bot has one of these usernames; None means always. `attempts`
    counts the failed attempts; `failures` counts those that the model caused.
    """

    place: Place
    seq: int
    update_id: int
    chat_id: int
    message_id: int
    forum_topic: int | None = None
    group: bool = False
    mentions: tuple[str, ...] | None = None
    command: str = ""
    queued: float = 0.0
    attempts: int = 0
    failures: int = 0
    due: float = 0.0

    def card(self) -> Card:
        """The card in which the job is stored."""
        fields = asdict(self)
        del fields["place"]
        return self.place.card(JOB, self.seq, fields)

    @classmethod
    def of(cls, card: Card) -> Self:
        """The job stored in a card."""
        body = _body(card)
        # Ignore fields added by a newer version, so that its jobs are answered, too.
        fields = {name: body[name] for name in cls.__slots__ if name in body}
        named = fields.pop("mentions", None)
        try:
            place = Place(card.tenant, int(card.name.partition("/")[0]), card.conversation or "")
            return cls(place=place, mentions=None if named is None else tuple(named), **fields)
        except (TypeError, ValueError) as error:
            raise StoreCorrupt(f"the card {card.name!r} is not a valid job") from error


def is_ahead(at: float, clock: Clock, most: float) -> bool:
    """Whether a stored time is still to come; not if it is further away than it can be.

    It was stored with a wrong clock then, and must not stop a chat until that date.
    """
    return 0 < at - clock().timestamp() <= most


async def jobs_of(cards: TenantCards, prefix: str) -> list[ReplyJob]:
    """The jobs whose names begin with `prefix`, of a bot or a chat; each chat's oldest first."""
    found, after = list[ReplyJob](), ""
    while page := await cards.find(JOB, prefix=prefix, after=after, limit=limits.PAGE_MAX):
        found += map(ReplyJob.of, page)
        after = page[-1].name
    return found


async def drop_jobs(cards: TenantCards, place: Place, seqs: set[int]) -> None:
    """Delete the jobs of these messages."""
    names = [place.card(JOB, seq, {}).name for seq in seqs]
    await cards.drop(JOB, names=names)


# -- deliveries -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Delivery:
    """The Telegram messages of the answer at `seq`, in order; `error` is why sending stopped."""

    place: Place
    seq: int
    message_ids: tuple[int, ...] = ()
    error: str = ""

    async def save(self, cards: TenantCards) -> None:
        """Store it."""
        body = {"message_ids": self.message_ids, "error": self.error}
        await cards.put(self.place.card(DELIVERY, self.seq, body))


async def delivery_of(cards: TenantCards, place: Place, seq: int) -> Delivery:
    """How far the answer at `seq` has been sent."""
    found = await cards.get(DELIVERY, place.card(DELIVERY, seq, {}).name)
    fields = _body(found) if found else {}
    return Delivery(place, seq, tuple(fields.get("message_ids", ())), fields.get("error", ""))


# -- claims -----------------------------------------------------------------------------------


class Claim:
    """The exclusive right to answer in a chat for a limited time; one process has it.

    Claims are numbered. When the newest claim has expired, processes try to write the next number,
    and only one succeeds; a claim that was taken over is never the newest again. The only
    requirement on the cards is that one can be written if it is absent.
    """

    def __init__(
        self, cards: TenantCards, clock: Clock, seconds: float, place: Place, number: int
    ) -> None:
        self._cards, self._clock, self._seconds = cards, clock, seconds
        self._place, self._number = place, number
        self._ends = 0.0

    @classmethod
    async def take(
        cls, cards: TenantCards, place: Place, *, seconds: float, clock: Clock
    ) -> Claim | None:
        """Acquire the claim; None while another process holds it."""
        older = await _claims(cards, place)
        if older and is_ahead(_body(older[-1])["until"], clock, limits.LEASE_SECONDS_MAX):
            return None
        last = _number(older[-1], place) if older else 0
        claim = cls(cards, clock, seconds, place, last + 1)
        if not await claim._write(seconds, absent=True) or not await claim._is_newest():
            return None  # another process took this number first, and may have released it since
        if older:
            await cards.drop(CLAIM, names=[card.name for card in older])
        return claim

    @property
    def held(self) -> bool:
        """Whether the claim has not expired, by the monotonic clock."""
        return time.monotonic() < self._ends

    async def renew(self) -> None:
        """Extend the claim; `ConflictError` if it was taken over."""
        if not await self._is_newest() or not await self._write(self._seconds):
            raise ConflictError(f"{self._place.conversation}: another process claimed the chat")

    async def _is_newest(self) -> bool:
        newest = await _claims(self._cards, self._place)
        return bool(newest) and _number(newest[-1], self._place) == self._number

    async def release(self) -> None:
        """Release the claim; the card stays, so the numbering continues."""
        self._ends = 0.0
        await self._write(0.0)

    async def _write(self, seconds: float, *, absent: bool = False) -> bool:
        ends, until = time.monotonic() + seconds, self._clock().timestamp() + seconds
        card = self._place.card(CLAIM, self._number, {"until": until})
        written = bool(await self._cards.put(card, absent=absent))
        if written:
            self._ends = ends
        return written


def _number(card: Card, place: Place) -> int:
    return int(card.name.removeprefix(place.prefix))


async def _claims(cards: TenantCards, place: Place) -> list[Card]:
    return await cards.find(CLAIM, prefix=place.prefix, limit=limits.PAGE_MAX)


def _body(card: Card) -> dict[str, Any]:
    try:
        fields = parse_unique(card.body)
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        raise StoreCorrupt(f"the card {card.name!r} ({card.kind}) cannot be read")
    return fields
