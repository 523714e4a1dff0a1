"""Validation, queries and checksums of cards, shared by all backends."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple, TypedDict, Unpack

from firnline.errors import InputError, StoreCorrupt
from firnline.log import limits
from firnline.log.entry import Card, Key, genesis
from firnline.log.message import encode_json, from_microseconds, microseconds
from firnline.log.text import clean_name
from firnline.protocols import Damage, Store
from firnline.store.rows import SEQ_MAX
from firnline.store.seals import ADVICE, CARDS

PROMPT: Final = "prompt"
DRAFT: Final = "draft"
KEY: Final = "key"
REVOKED: Final = "key-revoked"
FACT: Final = "fact"
ERASURES: Final = "fact-erasures"
_LAST: Final = "\U0010ffff"


def prompt_name(conversation: str, seq: int | None = None) -> str:
    """The name of the card with the prompt of the answer `seq`; without it, the prefix of all.

    Names of newer answers sort before those of older ones.
    """
    prefix = hashlib.blake2b(conversation.encode(), digest_size=12).hexdigest()
    return f"{prefix}/" if seq is None else f"{prefix}/{SEQ_MAX - seq:010d}"


def quoting_cards(conversation: str, seq: int) -> tuple[tuple[str, str, str], ...]:
    """The cards of a conversation that may quote entry `seq`, as kinds and ranges of names.

    A prompt shows only what came before its answer.
    """
    prompts = prompt_name(conversation), prompt_name(conversation, seq)
    return (PROMPT, *prompts), (DRAFT, "", _LAST)


class CardFilters(TypedDict, total=False):
    """Filters for cards of a kind: by names, by prefix, after a name; at most `limit`."""

    names: Sequence[str] | None
    prefix: str
    after: str
    limit: int


class TenantCards:
    """The cards of one tenant: small named values that an edge stores next to the log."""

    def __init__(self, store: Store, tenant: str) -> None:
        self._store, self._tenant = store, tenant

    async def get(self, kind: str, name: str) -> Card | None:
        """The card with this name, or None."""
        found = await self.find(kind, names=[name])
        return found[0] if found else None

    async def find(
        self, kind: str, *, all_tenants: bool = False, **which: Unpack[CardFilters]
    ) -> list[Card]:
        """Cards of a kind by name; see `Store.cards`. `all_tenants`: for the server's own work."""
        tenant = None if all_tenants else self._tenant
        return await self._store.cards(kind, tenant=tenant, **which)

    async def put(self, *cards: Card, absent: bool = False) -> int:
        """Write cards in one transaction; returns the number written. See `Store.put_cards`."""
        if any(card.tenant != self._tenant for card in cards):
            raise InputError(f"card: the tenant must be {self._tenant!r}")
        return await self._store.put_cards(cards, absent=absent)

    async def drop(
        self, kind: str, *, names: Sequence[str] | None = None, prefix: str | None = None
    ) -> int:
        """Drop cards by names or by prefix; returns the number dropped."""
        return await self._store.drop_cards(kind, self._tenant, names=names, prefix=prefix)


class CardQuery(NamedTuple):
    """A query for cards of one kind."""

    kind: str
    tenant: str | None
    names: frozenset[str] | None
    prefix: str = ""
    after: str = ""

    def has(self, card: Card) -> bool:
        """Whether the card matches; names are compared by their UTF-8 bytes."""
        return (
            card.kind == self.kind
            and self.tenant in (None, card.tenant)
            and (self.names is None or card.name in self.names)
            and card.name.startswith(self.prefix)
            and card.name.encode() > self.after.encode()
        )


def check_card(card: Card) -> None:
    """Raise `InputError` if the card is invalid."""
    _check_place(card.kind, card.tenant)
    clean_name(card.name, "card")
    if card.conversation is not None:
        clean_name(card.conversation, "conversation")
    if not isinstance(card.body, bytes):
        raise InputError(f"card: the body must be bytes, not {type(card.body).__name__}")
    if len(card.body) > limits.CARD_BYTES_MAX:
        raise InputError(
            f"card: {len(card.body):,} bytes; the limit is {limits.CARD_BYTES_MAX:,} bytes"
        )


def card_query(
    kind: str, tenant: str | None, names: Sequence[str] | None, prefix: str, after: str = ""
) -> CardQuery:
    """Build a query from checked arguments."""
    _check_place(kind, tenant)
    for text in (prefix, after):
        if len(text) > limits.NAME_CHARS_MAX or not text.isprintable():
            raise InputError(f"card: {text!r} is not a valid name or prefix")
    if after and tenant is None:
        raise InputError("card: after requires a tenant; names are unique only within a tenant")
    wanted = None if names is None else frozenset(clean_name(name, "card") for name in names)
    return CardQuery(kind, tenant, wanted, prefix, after)


def drop_query(
    kind: str, tenant: str, names: Sequence[str] | None, prefix: str | None
) -> CardQuery:
    """Build a query for deletion; requires names or a prefix, so that none deletes all."""
    if names is None and prefix is None:
        raise InputError('card: pass names or prefix; prefix="" drops every name')
    return card_query(kind, tenant, names, prefix or "")


def _check_place(kind: str, tenant: str | None) -> None:
    clean_name(kind, "kind of card")
    if tenant:
        clean_name(tenant, "tenant")


def card_time(card: Card, now: int, *, keep_times: bool) -> int:
    """When the card was updated, in microseconds: `now`, or its own time."""
    return microseconds(card.updated_at) if keep_times and card.updated_at else now


def card_checksum(card: Card, conversation: int | None, updated_at: int) -> bytes:
    """The checksum of a card's complete row, verified on every read."""
    row = encode_json([card.kind, card.tenant, card.name, conversation, updated_at]).encode()
    return hashlib.sha256(len(row).to_bytes(8, "big") + row + card.body).digest()


def verify_card(
    card: Card, number: int | None, of: tuple[Key, str] | None, updated_at: int, checksum: bytes
) -> Card:
    """The card of a row; raises `StoreCorrupt` if the row is damaged.

    The checksum must match, and the conversation must belong to the card's tenant: `of` is the key
    and the genesis hash of the conversation with the id `number`.
    """
    if number is not None:
        if of is None or of[0].tenant != card.tenant or genesis(of[0]) != of[1]:
            raise StoreCorrupt("the row of a card is damaged: its conversation does not match")
        card = replace(card, conversation=of[0].conversation)
    if card_checksum(card, number, updated_at) != checksum:
        raise StoreCorrupt(f"the card {card.name!r} ({card.kind}) does not match its checksum")
    try:
        return replace(card, updated_at=from_microseconds(updated_at))
    except (ValueError, OverflowError, TypeError) as error:
        raise StoreCorrupt("the row of a card is damaged") from error


def missing_card(kind: str, name: str) -> StoreCorrupt:
    """The error for a card that vanished, or whose row is not the one written last."""
    return StoreCorrupt(f"{_missing(kind, name)}; {ADVICE}")


def card_damage(name: str, kind: str, card: str) -> Damage:
    """The damage that is a missing card of a conversation; of a tenant if it has no name."""
    of = f"{name}: " if name else ""
    return Damage(CARDS, f"{of}{_missing(kind, card)}")


def _missing(kind: str, name: str) -> str:
    return f"the card {name!r} ({kind}) is missing, or older than the one written last"


def dropped_with(kind: str, name: str) -> tuple[tuple[str, str], ...]:
    """What a repair drops with a missing card, as kinds and names; none if others repair it.

    A key whose revocation is missing must not be valid again.
    """
    if kind in (FACT, ERASURES):
        return ()
    return ((REVOKED, name), (KEY, name)) if kind == REVOKED else ((kind, name),)
