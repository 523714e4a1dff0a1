"""Pending answers, their claims, and what was sent: cards next to the log.

A job says that a stored message wants an answer. It is dropped when that answer was sent, or cannot
be. A claim is the right to answer in one chat. A delivery says which messages of Telegram's an
answer became. None of them holds a word of what was said.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple, Self

from firnline.errors import ConflictError, StoreCorrupt
from firnline.log.entry import Card
from firnline.protocols import Clock, Store

JOB: Final = "telegram"
DELIVERY: Final = "telegram-sent"
CLAIM: Final = "telegram-claim"
EDIT: Final = "telegram-edit"
MOVED: Final = "telegram-moved"
REFUSED: Final = "telegram-refused"

_PAGE: Final = 1_000


class Place(NamedTuple):
    """A chat of a bot, and the conversation it is kept in."""

    tenant: str
    bot_id: int
    conversation: str

    @property
    def prefix(self) -> str:
        """What the names of its cards begin with."""
        return f"{self.bot_id}/{self.conversation}/"

    def card(self, kind: str, number: int, body: Mapping[str, Any]) -> Card:
        """A card of this chat; those of a kind are in the order of their numbers."""
        return Card(
            tenant=self.tenant,
            kind=kind,
            name=f"{self.prefix}{number:010}",
            body=json.dumps(body).encode(),
            conversation=self.conversation,
        )


# -- jobs -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The message at `seq` wants an answer, from `due` on (seconds since 1970).

    `mentions`: only if the bot has one of these user names; None if in any case. `attempts` that
    came to nothing are counted, and those `failures` among them that were the model's.
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
        """As it is stored."""
        fields = asdict(self)
        del fields["place"]
        return self.place.card(JOB, self.seq, fields)

    @classmethod
    def of(cls, card: Card) -> Self:
        """The job that a card is."""
        body = _body(card)
        # Fields that a newer Firnline has added are not a reason to leave a chat without answers.
        fields = {name: body[name] for name in cls.__slots__ if name in body}
        named = fields.pop("mentions", None)
        try:
            place = Place(card.tenant, int(card.name.partition("/")[0]), card.conversation or "")
            return cls(place=place, mentions=None if named is None else tuple(named), **fields)
        except (TypeError, ValueError) as error:
            raise StoreCorrupt(f"the card {card.name!r} is no job") from error


async def jobs_of(store: Store, tenant: str, prefix: str) -> list[Job]:
    """The jobs whose names begin so: of a bot or of a chat, the oldest of a chat first."""
    found, after = list[Job](), ""
    while page := await store.cards(JOB, tenant=tenant, prefix=prefix, after=after, limit=_PAGE):
        found += map(Job.of, page)
        after = page[-1].name
    return found


async def drop_jobs(store: Store, place: Place, seqs: set[int]) -> None:
    """These messages need no answer any more."""
    names = [place.card(JOB, seq, {}).name for seq in seqs]
    await store.drop_cards(JOB, place.tenant, names=names)


# -- deliveries -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Delivery:
    """The messages that the answer at `seq` became, in order; `error` is why there are no more."""

    place: Place
    seq: int
    message_ids: tuple[int, ...] = ()
    error: str = ""

    async def save(self, store: Store) -> None:
        """Remember it."""
        body = {"message_ids": self.message_ids, "error": self.error}
        await store.put_cards([self.place.card(DELIVERY, self.seq, body)])


async def delivery_of(store: Store, place: Place, seq: int) -> Delivery:
    """How far the answer at `seq` has been sent."""
    name = place.card(DELIVERY, seq, {}).name
    found = await store.cards(DELIVERY, tenant=place.tenant, names=[name])
    fields = _body(found[0]) if found else {}
    return Delivery(place, seq, tuple(fields.get("message_ids", ())), fields.get("error", ""))


# -- claims -----------------------------------------------------------------------------------


class Claim:
    """The right to answer in a chat for a while; of any number of processes one has it.

    Claims are numbered. The next number is taken when the newest claim has run out, and only one
    of those who try can write it; a claim that was taken over is never the newest again. So this
    needs nothing of the store but that a card is written if it is absent.
    """

    def __init__(
        self, store: Store, clock: Clock, seconds: float, place: Place, number: int
    ) -> None:
        self._store, self._clock, self._seconds = store, clock, seconds
        self._place, self._number = place, number
        self._ends = 0.0

    @classmethod
    async def take(
        cls, store: Store, place: Place, *, seconds: float, clock: Clock
    ) -> Claim | None:
        """The claim, or None while another process has it."""
        older = await _claims(store, place)
        if older and _body(older[-1])["until"] > clock().timestamp():
            return None
        last = _number(older[-1], place) if older else 0
        claim = cls(store, clock, seconds, place, last + 1)
        if not await claim._write(seconds, absent=True) or not await claim._is_newest():
            return None  # others are faster, or were: their claims of this number came and went
        if older:
            await store.drop_cards(CLAIM, place.tenant, names=[card.name for card in older])
        return claim

    @property
    def held(self) -> bool:
        """Whether it is still ours by our own watch, which no clock can turn back."""
        return time.monotonic() < self._ends

    async def renew(self) -> None:
        """Keep it; `ConflictError` if it was taken over."""
        if not await self._is_newest() or not await self._write(self._seconds):
            raise ConflictError(f"{self._place.conversation}: another process answers there now")

    async def _is_newest(self) -> bool:
        newest = await _claims(self._store, self._place)
        return bool(newest) and _number(newest[-1], self._place) == self._number

    async def release(self) -> None:
        """Release the claim; the card stays, so that the numbers continue."""
        self._ends = 0.0
        await self._write(0.0)

    async def _write(self, seconds: float, *, absent: bool = False) -> bool:
        ends, until = time.monotonic() + seconds, self._clock().timestamp() + seconds
        card = self._place.card(CLAIM, self._number, {"until": until})
        written = bool(await self._store.put_cards([card], absent=absent))
        if written:
            self._ends = ends
        return written


def _number(card: Card, place: Place) -> int:
    return int(card.name.removeprefix(place.prefix))


async def _claims(store: Store, place: Place) -> list[Card]:
    return await store.cards(CLAIM, tenant=place.tenant, prefix=place.prefix, limit=_PAGE)


def _body(card: Card) -> dict[str, Any]:
    try:
        fields = json.loads(card.body)
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        raise StoreCorrupt(f"the card {card.name!r} ({card.kind}) cannot be read")
    return fields
