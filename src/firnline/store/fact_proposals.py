"""What a model proposed as facts, as cards next to the log: a model is asked once.

The first answer for a span of messages counts, also if two processes ask at once, so all of them
have the same facts; and facts that are made again need no model. Cards are erased with their
conversation.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from firnline.errors import StoreCorrupt
from firnline.log import limits
from firnline.log.entry import Card, Key, genesis
from firnline.log.message import encode_json
from firnline.protocols import Store

PROPOSALS: Final = "fact-proposals"
PROPOSED: Final = "fact-proposed"


class ProposedFacts(NamedTuple):
    """What a model proposed for the messages from `first_seq` up to before `next_seq`."""

    first_seq: int
    next_seq: int
    facts: tuple[Mapping[str, Any], ...]


def _name(key: Key) -> str:
    return genesis(key).removeprefix("sha256:")


async def put(store: Store, key: Key, person: str, proposed: ProposedFacts) -> ProposedFacts:
    """Record an answer; returns what counts, which is another's if that was recorded first."""
    name = f"{_name(key)}/{proposed.first_seq:012d}"
    body = encode_json({"person": person, **proposed._asdict()}).encode()
    card = Card(
        tenant=key.tenant, kind=PROPOSALS, name=name, body=body, conversation=key.conversation
    )
    if await store.put_cards([card], absent=True):
        return proposed
    found = await store.cards(PROPOSALS, tenant=key.tenant, names=[name])
    known = [one for card in found if (one := _decode(card, person)) is not None]
    return known[0] if known else proposed


async def recorded(store: Store, key: Key, person: str) -> list[ProposedFacts]:
    """All that was proposed for a conversation of this person, in order."""
    prefix, found = f"{_name(key)}/", list[Card]()
    while True:
        page = await store.cards(
            PROPOSALS,
            tenant=key.tenant,
            prefix=prefix,
            after=found[-1].name if found else "",
            limit=limits.PAGE_MAX,
        )
        found += page
        if len(page) < limits.PAGE_MAX:
            return [one for card in found if (one := _decode(card, person)) is not None]


async def drop(store: Store, key: Key, person: str, first_seq: int) -> None:
    """Drop what was proposed for messages from `first_seq` on: they are about to be erased."""
    prefix = f"{_name(key)}/"
    gone = [one for one in await recorded(store, key, person) if one.next_seq > first_seq]
    names = [f"{prefix}{one.first_seq:012d}" for one in gone]
    await store.drop_cards(PROPOSALS, key.tenant, names=names)
    again = min([first_seq, *(one.first_seq for one in gone)])
    if again < await progress(store, key, person):
        await set_progress(store, key, person, again)


async def progress(store: Store, key: Key, person: str) -> int:
    """How many first messages a model was asked about, for this person."""
    found = await store.cards(PROPOSED, tenant=key.tenant, names=[_name(key)])
    fields = json.loads(found[0].body) if found else {}
    return int(fields["next_seq"]) if fields.get("person") == person else 0


async def set_progress(store: Store, key: Key, person: str, next_seq: int) -> None:
    """Record how many it was asked about."""
    body = encode_json({"person": person, "next_seq": next_seq}).encode()
    card = Card(
        tenant=key.tenant, kind=PROPOSED, name=_name(key), body=body, conversation=key.conversation
    )
    await store.put_cards([card])


def _decode(card: Card, person: str) -> ProposedFacts | None:
    """What was proposed; None if it was for another person."""
    try:
        fields = json.loads(card.body)
        if fields["person"] != person:
            return None
        facts: Sequence[Mapping[str, Any]] = fields["facts"]
        return ProposedFacts(fields["first_seq"], fields["next_seq"], tuple(facts))
    except (KeyError, TypeError, ValueError) as error:
        raise StoreCorrupt(f"the card {card.name!r} of proposed facts is damaged") from error
