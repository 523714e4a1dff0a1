"""What people stated, as cards next to the log: read once from the messages, and kept in order.

The statements of a person are a chain of numbered cards, the newest first. A card belongs to the
conversation in which it was said, and is erased with it. Two processes cannot write the same
number, so none overwrites another; if both read the same messages, the facts are as if one had.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from weakref import WeakValueDictionary

from firnline.digest.fact import SAID, DatedStatement, Revert
from firnline.errors import StoreCorrupt, StoreUnavailable, UnknownConversation, outline
from firnline.language.statements.patterns import Statement
from firnline.log import limits
from firnline.log.entry import Card, Key, genesis
from firnline.log.message import encode_json
from firnline.protocols import Store
from firnline.store.cards import ERASURES, FACT
from firnline.store.limits import FACT_TRIES

logger: Final = logging.getLogger("firnline.facts")

PROFILE: Final = "profile"
PROGRESS: Final = "fact-progress"
_LAST: Final = 10**12  # numbers are counted down from here, so that the newest card sorts first
_AT_ONCE: Final = 200


class StatedCard(NamedTuple):
    """A card of the chain: statements of a span of a conversation, or what was reverted."""

    name: str
    number: int
    seal: str
    conversation: str
    first_seq: int
    next_seq: int
    said: tuple[DatedStatement, ...]
    revert: Revert | None


def person_name(tenant: str, person: str) -> str:
    """The name of a person's cards: of one length, however long the person's name is."""
    return hashlib.blake2b(encode_json([tenant, person]).encode(), digest_size=16).hexdigest()


async def newest(store: Store, tenant: str, person: str) -> StatedCard | None:
    """The newest card of a person, or None."""
    prefix = f"{person_name(tenant, person)}/"
    found = await store.cards(FACT, tenant=tenant, prefix=prefix, limit=1)
    return _decode(found[0]) if found else None


async def read_until(
    store: Store, tenant: str, person: str, known: str = ""
) -> tuple[list[StatedCard], bool]:
    """A person's cards, the oldest first: those after the card `known`, if it is there, else all.

    Also whether it is there.
    """
    prefix = f"{person_name(tenant, person)}/"
    found: list[StatedCard] = []
    while True:
        page = await store.cards(
            FACT,
            tenant=tenant,
            prefix=prefix,
            after=found[-1].name if found else "",
            limit=limits.PAGE_MAX,
        )
        for card in page:
            one = _decode(card)
            if one.seal == known:
                return found[::-1], True
            found.append(one)
        if len(page) < limits.PAGE_MAX:
            return found[::-1], False


async def exist(store: Store, tenant: str, names: Sequence[str]) -> bool:
    """Whether all of these cards are still there."""
    for at in range(0, len(names), limits.PAGE_MAX):
        page = names[at : at + limits.PAGE_MAX]
        if len(await store.cards(FACT, tenant=tenant, names=page, limit=len(page))) < len(page):
            return False
    return True


# -- writing ----------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class _Waiting:
    """A card that waits for its number, and what became of it."""

    key: Key
    body: bytes
    done: bool = False
    erased: bool = False


class StatementChain:
    """Adds cards to the chains of people. What waits at the same time is written together."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: dict[str, list[_Waiting]] = {}
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def add_statements(
        self, key: Key, person: str, span: tuple[int, int], said: Sequence[DatedStatement]
    ) -> None:
        """Add what the messages of a span of a conversation state."""
        fields: list[dict[str, Any]] = []
        for at in range(0, len(said), limits.STATEMENTS_PER_CARD):
            some = said[at : at + limits.STATEMENTS_PER_CARD]
            fields.append({"span": span, "said": list(map(_row, some))})
        await self._add(person, [(key, one) for one in fields])

    async def add_revert(
        self, tenant: str, person: str, revert: Revert, conversations: Iterable[str]
    ) -> None:
        """Add what the application reverts, to each conversation in which it was said."""
        fields = {"revert": sorted(revert.ids), "at": revert.at}
        await self._add(person, [(Key(tenant, name), fields) for name in conversations])

    async def _add(self, person: str, cards: Sequence[tuple[Key, Mapping[str, Any]]]) -> None:
        """Add cards; `UnknownConversation` if the conversation of one was erased."""
        own = [
            _Waiting(key, encode_json({"conversation": key.conversation, **fields}).encode())
            for key, fields in cards
        ]
        if not own:
            return
        prefix = f"{person_name(cards[0][0].tenant, person)}/"
        self._waiting.setdefault(prefix, []).extend(own)
        lock = self._locks.setdefault(prefix, asyncio.Lock())
        async with lock:
            if not all(one.done for one in own):
                await self._write(prefix, self._waiting.pop(prefix, []))
        if gone := next((one for one in own if one.erased), None):
            raise UnknownConversation(f"there is no conversation {gone.key.conversation!r}")

    async def _write(self, prefix: str, batch: list[_Waiting]) -> None:
        """Write cards with the next numbers; those that are not written wait for the next call."""
        left = list(batch)
        try:
            for _ in range(FACT_TRIES):
                if not left:
                    return
                some, rest = left[:_AT_ONCE], left[_AT_ONCE:]
                await self._put(prefix, some)
                left = [*(one for one in some if not one.done), *rest]
            raise StoreUnavailable("too many processes write facts of one person; retry")
        finally:
            if remaining := [one for one in batch if not one.done]:
                self._waiting[prefix] = [*remaining, *self._waiting.get(prefix, ())]

    async def _put(self, prefix: str, batch: Sequence[_Waiting]) -> None:
        """Write cards; those whose numbers another process took are not done."""
        tenant = batch[0].key.tenant
        last = await self._store.cards(FACT, tenant=tenant, prefix=prefix, limit=1)
        number = _number(last[0].name) + 1 if last else 1
        cards = [
            Card(
                tenant=tenant,
                kind=FACT,
                name=f"{prefix}{_LAST - at:012d}",
                body=one.body,
                conversation=one.key.conversation,
            )
            for at, one in enumerate(batch, number)
        ]
        if await self._store.put_cards(cards, absent=True) == len(cards):
            for one in batch:
                one.done = True
            return
        names = [card.name for card in cards]
        stored = await self._store.cards(FACT, tenant=tenant, names=names, limit=len(names))
        there = {card.name: card.body for card in stored}
        for card, one in zip(cards, batch, strict=True):
            one.done = there.get(card.name) == one.body
            if card.name not in there and await self._store.head(one.key) is None:
                one.done = one.erased = True


def _row(one: DatedStatement) -> list[Any]:
    return [one.at, one.seq, one.speaker, one.quote, *one.statement, *one[6:]]


def _number(name: str) -> int:
    return _LAST - int(name.rpartition("/")[2])


def _decode(card: Card) -> StatedCard:
    try:
        fields = json.loads(card.body)
        conversation = fields["conversation"]
        said = tuple(_statement(conversation, row) for row in fields.get("said", ()))
        revert = Revert(fields["at"], frozenset(fields["revert"])) if "revert" in fields else None
        first_seq, next_seq = fields.get("span", (0, 0))
        seal = hashlib.blake2b(card.name.encode() + card.body, digest_size=16).hexdigest()
        return StatedCard(
            card.name, _number(card.name), seal, conversation, first_seq, next_seq, said, revert
        )
    except (KeyError, TypeError, ValueError) as error:
        raise StoreCorrupt(f"the card {card.name!r} of facts is damaged") from error


def _statement(conversation: str, row: Sequence[Any]) -> DatedStatement:
    at, seq, speaker, quote, *rest = row
    fields = len(Statement._fields)
    since, until, source = rest[fields:] or (None, None, SAID)
    one = Statement(*rest[:fields])
    return DatedStatement(at, conversation, seq, speaker, quote, one, since, until, source)


async def drop(store: Store, tenant: str, person: str, names: Iterable[str] | None = None) -> int:
    """Drop a person's cards, or these; returns how many there were."""
    if names is not None:
        return await store.drop_cards(FACT, tenant, names=list(names))
    return await store.drop_cards(FACT, tenant, prefix=f"{person_name(tenant, person)}/")


# -- how far a conversation was read ----------------------------------------------------------


class FactProgress(NamedTuple):
    """How many first entries were read for a person's facts, by which rules.

    `called` is what the person is called in the conversation, None if no user has spoken yet.
    """

    next_seq: int = 0
    called: str | None = None
    rules: int = 0


async def progress(store: Store, key: Key, person: str) -> FactProgress:
    """How far a conversation was read for this person's facts."""
    found = await _derived(store, PROGRESS, key.tenant, _progress_name(key))
    fields = json.loads(found[0].body) if found else {}
    if fields.get("person") != person:
        return FactProgress()
    return FactProgress(int(fields["next_seq"]), fields.get("called"), fields.get("rules", 0))


async def set_progress(store: Store, key: Key, person: str, done: FactProgress) -> None:
    """Record how far it was read."""
    body = encode_json({"person": person, **done._asdict()}).encode()
    card = Card(
        tenant=key.tenant,
        kind=PROGRESS,
        name=_progress_name(key),
        body=body,
        conversation=key.conversation,
    )
    await store.put_cards([card])


def _progress_name(key: Key) -> str:
    return genesis(key).removeprefix("sha256:")


# -- the facts that hold, ready to be read ----------------------------------------------------


async def _derived(store: Store, kind: str, tenant: str, name: str) -> list[Card]:
    """A card that is made again and replaced if it is missing; none if it is damaged."""
    try:
        return await store.cards(kind, tenant=tenant, names=[name])
    except StoreCorrupt as error:
        logger.warning("a card of the kind %s is made again: %s", kind, outline(error))
        return []


async def stored_state(store: Store, tenant: str, person: str) -> bytes:
    """The stored state of a person's facts as JSON; empty if there is none."""
    found = await _derived(store, PROFILE, tenant, person_name(tenant, person))
    return found[0].body if found else b""


async def store_state(store: Store, tenant: str, person: str, body: bytes) -> None:
    """Store the state of a person's facts."""
    name = person_name(tenant, person)
    await store.put_cards([Card(tenant=tenant, kind=PROFILE, name=name, body=body)])


async def drop_state(store: Store, tenant: str, person: str) -> None:
    """Drop the stored state, which can be computed again."""
    await store.drop_cards(PROFILE, tenant, names=[person_name(tenant, person)])


# -- erasures ---------------------------------------------------------------------------------


async def erasures(store: Store, tenant: str, person: str) -> int:
    """How often something of a person was erased; what was read before is not stored after it."""
    found = await store.cards(ERASURES, tenant=tenant, names=[person_name(tenant, person)])
    return int(found[0].body) if found else 0


async def count_erasure(store: Store, tenant: str, person: str) -> None:
    """Count an erasure."""
    count = str(await erasures(store, tenant, person) + 1).encode()
    name = person_name(tenant, person)
    await store.put_cards([Card(tenant=tenant, kind=ERASURES, name=name, body=count)])


async def drop_erasures(store: Store, tenant: str, person: str) -> None:
    """Drop the count, with the person."""
    await store.drop_cards(ERASURES, tenant, names=[person_name(tenant, person)])
