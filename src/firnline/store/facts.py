"""What people stated, as cards next to the log: read once from the messages, and kept in order.

The statements of a person are a chain of numbered cards, the newest first. A card belongs to the
conversation in which it was said, and is erased with it. Two processes cannot write the same
number, so none overwrites another; if both read the same messages, the facts are as if one had.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from firnline.digest.facts import DatedStatement, Revert
from firnline.digest.slots import Statement
from firnline.errors import StoreCorrupt, UnknownConversation
from firnline.log import limits
from firnline.log.entry import Card, Key, genesis
from firnline.log.message import encode_json
from firnline.protocols import Store

FACT: Final = "fact"
PROFILE: Final = "profile"
PROGRESS: Final = "fact-progress"
_LAST: Final = 10**12  # numbers are counted down from here, so that the newest card sorts first
_NUMBERS_TRIED: Final = 50


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


async def add_statements(
    store: Store, key: Key, person: str, span: tuple[int, int], said: Sequence[DatedStatement]
) -> None:
    """Add what the messages of a span of a conversation state."""
    for at in range(0, len(said), limits.STATEMENTS_PER_CARD):
        rows = [
            [one.at, one.seq, one.speaker, one.quote, *one.statement]
            for one in said[at : at + limits.STATEMENTS_PER_CARD]
        ]
        await _add(store, key, person, {"span": span, "said": rows})


async def add_revert(store: Store, key: Key, person: str, revert: Revert) -> None:
    """Add what the application reverts; `key` is the conversation in which it was said."""
    fields = {"revert": sorted(revert.ids), "at": revert.at}
    await _add(store, key, person, fields)


async def _add(store: Store, key: Key, person: str, fields: Mapping[str, Any]) -> None:
    prefix = f"{person_name(key.tenant, person)}/"
    body = encode_json({"conversation": key.conversation, **fields}).encode()
    for _ in range(_NUMBERS_TRIED):
        last = await store.cards(FACT, tenant=key.tenant, prefix=prefix, limit=1)
        number = _number(last[0].name) + 1 if last else 1
        card = Card(
            tenant=key.tenant,
            kind=FACT,
            name=f"{prefix}{_LAST - number:012d}",
            body=body,
            conversation=key.conversation,
        )
        if await store.put_cards([card], absent=True):
            return
        if await store.head(key) is None:
            raise UnknownConversation(f"there is no conversation {key.conversation!r}")
    raise StoreCorrupt(f"{key.conversation}: its facts cannot be stored: too many others")


def _number(name: str) -> int:
    return _LAST - int(name.rpartition("/")[2])


def _decode(card: Card) -> StatedCard:
    try:
        fields = json.loads(card.body)
        conversation = fields["conversation"]
        said = tuple(
            DatedStatement(at, conversation, seq, speaker, quote, Statement(*one))
            for at, seq, speaker, quote, *one in fields.get("said", ())
        )
        revert = Revert(fields["at"], frozenset(fields["revert"])) if "revert" in fields else None
        first_seq, next_seq = fields.get("span", (0, 0))
        seal = hashlib.blake2b(card.name.encode() + card.body, digest_size=16).hexdigest()
        return StatedCard(
            card.name, _number(card.name), seal, conversation, first_seq, next_seq, said, revert
        )
    except (KeyError, TypeError, ValueError) as error:
        raise StoreCorrupt(f"the card {card.name!r} of facts is damaged") from error


async def drop(store: Store, tenant: str, person: str, names: Iterable[str] | None = None) -> int:
    """Drop a person's cards, or these; returns how many there were."""
    if names is not None:
        return await store.drop_cards(FACT, tenant, names=list(names))
    return await store.drop_cards(FACT, tenant, prefix=f"{person_name(tenant, person)}/")


# -- how far a conversation was read ----------------------------------------------------------


async def progress(store: Store, key: Key, person: str) -> int:
    """How many of a conversation's first entries were read for this person's facts."""
    found = await store.cards(PROGRESS, tenant=key.tenant, names=[_progress_name(key)])
    fields = json.loads(found[0].body) if found else {}
    return int(fields["next_seq"]) if fields.get("person") == person else 0


async def set_progress(store: Store, key: Key, person: str, next_seq: int) -> None:
    """Record how many were read."""
    body = encode_json({"person": person, "next_seq": next_seq}).encode()
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


async def stored_state(store: Store, tenant: str, person: str) -> dict[str, Any] | None:
    """The stored state of a person's facts, or None."""
    found = await store.cards(PROFILE, tenant=tenant, names=[person_name(tenant, person)])
    fields: dict[str, Any] = json.loads(found[0].body) if found else {}
    return fields or None


async def store_state(store: Store, tenant: str, person: str, fields: Mapping[str, Any]) -> None:
    """Store the state of a person's facts."""
    body = encode_json(dict(fields)).encode()
    name = person_name(tenant, person)
    await store.put_cards([Card(tenant=tenant, kind=PROFILE, name=name, body=body)])


async def drop_state(store: Store, tenant: str, person: str) -> None:
    """Drop the stored state, which can be rebuilt."""
    await store.drop_cards(PROFILE, tenant, names=[person_name(tenant, person)])
