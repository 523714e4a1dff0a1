"""The tree over one conversation's log: made of its entries, and each of them is checked.

Nodes over 256 entries are stored as cards, so that a message of a long log can be proven without
reading all of it. They are a view that anyone who writes to the database can forge: what is made
of them must be compared with a root that was made of the entries.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final
from urllib.parse import quote

from firnline.errors import FirnlineError, StoreCorrupt, StoreReadOnly, UnknownConversation
from firnline.log import limits
from firnline.log.chain import flaw
from firnline.log.entry import Card, Head, Key, Record, genesis
from firnline.log.merkle import TILE, TILE_LEVELS, Blocks, Subtree, hashes_of, paired
from firnline.log.message import microseconds
from firnline.log.proof_check import Checkpoint, ProofError, leaf_hash, parse_note
from firnline.protocols import Store

TREE: Final = "tree"
CHECKPOINT: Final = "checkpoint"

_HASH: Final = hashlib.sha256().digest_size


async def newest_state(store: Store, key: Key, head: Head) -> tuple[Head, Checkpoint | None]:
    """The log's last checkpoint, if there is one, and a head that is not older than it.

    A damaged checkpoint raises `StoreCorrupt`.
    """
    found = await _checkpoint_cards(store, key, head)
    try:
        kept = [parse_note(card.body.decode()) for card in found]
    except ValueError as error:
        raise StoreCorrupt(f"the checkpoint of {key.conversation!r} is damaged") from error
    last = max(kept, key=lambda checkpoint: checkpoint.size, default=None)
    if last is not None and last.size > head.entries:  # unless both came since the head was read
        now = await store.head(key)
        head = now if now is not None and now.created_at == head.created_at else head
    return head, last


class LogTree:
    """The tree of a log as it was when its head was read, and its `last` checkpoint."""

    def __init__(
        self, store: Store, key: Key, origin: str, head: Head, last: Checkpoint | None
    ) -> None:
        self._store, self._key, self._head = store, key, head
        self.size, self.last = head.entries, last
        self.origin = "/".join([origin, *(quote(name, safe="") for name in key)])
        self._tiles: dict[Subtree, bytes] = {}

    @classmethod
    async def open(cls, store: Store, key: Key, origin: str) -> LogTree:
        """The tree of a conversation; no entry is read yet."""
        head = await store.head(key)
        if head is None:
            raise UnknownConversation(f"there is no conversation {key.conversation!r}")
        return cls(store, key, origin, *await newest_state(store, key, head))

    async def read(self, older: Iterable[Checkpoint] = ()) -> Checkpoint:
        """Read the whole log; returns its checkpoint, not signed.

        Raises `StoreCorrupt` unless it is complete and continues its last checkpoint and `older`.
        """
        known = [*older, *([self.last] if self.last else [])]
        for one in known:
            if one.size > self.size:
                raise await self._failure(f"it had {one.size} messages and now has {self.size}")
        blocks = Blocks([self.size, *(one.size for one in known)])
        async for records in self._records(0, self.size):
            await asyncio.to_thread(blocks.extend, map(_leaf, records))
            if records[-1].seq == self.size - 1 and records[-1].hash != self._head.hash:
                raise await self._failure("the last hash does not match the recorded head")
        if not all(blocks.roots[one.size] == one.root for one in known):
            raise await self._failure("the log was rewritten: it does not continue a checkpoint")
        self._tiles = _tiles(blocks.nodes)
        return Checkpoint(self.origin, self.size, blocks.roots[self.size])

    async def keep(self, checkpoint: Checkpoint) -> None:
        """Store the checkpoint of the log as it was read, in place of those before it.

        An unsigned one does not replace a signed one, and a store that cannot be written stays as
        it is. Two at the same time leave the larger one.
        """
        cards = [self._card(TREE, _tile_name(place), body) for place, body in self._tiles.items()]
        with suppress(StoreReadOnly):
            await self._store.put_cards(cards)
            if checkpoint.signatures or not (self.last and self.last.signatures):
                await self._keep_newest(checkpoint)

    async def _keep_newest(self, checkpoint: Checkpoint) -> None:
        name = f"{checkpoint.size:020d}"
        kept = self._card(CHECKPOINT, name, checkpoint.note.encode())
        await self._store.put_cards([kept])
        there = await _checkpoint_cards(self._store, self._key, self._head)
        before = [card.name for card in there if card.name < kept.name]
        await self._store.drop_cards(CHECKPOINT, self._key.tenant, names=before)

    async def entry(self, seq: int) -> dict[str, Any]:
        """What a proof says of an entry; an erased one has no text."""
        before = max(seq - 1, 0)
        records = [one async for page in self._records(before, seq + 1) for one in page]
        record = records[-1]
        if record.erased:
            return {"seq": seq, "hash": record.hash}
        return {
            "seq": seq,
            "hash": record.hash,
            "previous": records[0].hash if seq else genesis(self._key),
            "tokens": record.tokens,
            "tokenizer": record.tokenizer,
            "body": record.body.decode(),
        }

    async def hashes(self, path: Sequence[Sequence[Subtree]]) -> list[bytes]:
        """The hashes of the nodes of a path; `ProofError` if stored nodes are missing.

        Stored nodes are used as they are, unless the log was read.
        """
        known = {part: await self._hash_of(part) for node in path for part in node}
        return hashes_of(path, known.__getitem__)

    async def _hash_of(self, part: Subtree) -> bytes:
        """The hash of a complete subtree: of entries, or of nodes over 256 of them."""
        tier, above = divmod(part.level, TILE_LEVELS)
        first, end = part.place << above, part.place + 1 << above
        if tier == 0:
            pages = [[_leaf(one) for one in page] async for page in self._records(first, end)]
            return paired([leaf for page in pages for leaf in page])
        tile = await self._tile(Subtree(tier, first // TILE))
        at = first % TILE * _HASH
        nodes = [tile[n : n + _HASH] for n in range(at, at + (end - first) * _HASH, _HASH)]
        if len(nodes[-1]) != _HASH:
            raise ProofError("a node of the tree is not stored")
        return paired(nodes)

    async def _tile(self, place: Subtree) -> bytes:
        if place not in self._tiles:
            name = f"{_prefix(self._key, self._head)}/{_tile_name(place)}"
            stored = await self._store.cards(TREE, tenant=self._key.tenant, names=[name])
            self._tiles[place] = stored[0].body if stored else b""
        return self._tiles[place]

    async def _records(self, first: int, end: int) -> AsyncIterator[list[Record]]:
        """The records of the entries [first, end) page by page, checked, the first one in part."""
        at, previous = first, "" if first else genesis(self._key)
        while at < end:
            page = min(limits.READ_PAGE, end - at)
            records = await self._store.records(self._key, at, page)
            if not records or [one.seq for one in records] != [*range(at, at + len(records))]:
                raise await self._failure("messages are missing")
            await asyncio.to_thread(_check, records, previous)
            yield records
            at, previous = at + len(records), records[-1].hash

    async def _failure(self, problem: str) -> FirnlineError:
        """The error of a log with a problem, or that it was erased in the meantime."""
        name, now = self._key.conversation, await self._store.head(self._key)
        if now is None or now.created_at != self._head.created_at:
            return UnknownConversation(f"{name!r} was erased while it was read")
        return StoreCorrupt(f"{name}: {problem}")

    def _card(self, kind: str, name: str, body: bytes) -> Card:
        """A card of this log; it does not outlive it, even if the name is used again."""
        tenant, conversation = self._key
        name = f"{_prefix(self._key, self._head)}/{name}"
        return Card(tenant=tenant, kind=kind, name=name, body=body, conversation=conversation)


async def _checkpoint_cards(store: Store, key: Key, head: Head) -> list[Card]:
    """The kept checkpoints; their names sort by size."""
    return await store.cards(CHECKPOINT, tenant=key.tenant, prefix=f"{_prefix(key, head)}/")


def _prefix(key: Key, head: Head) -> str:
    """The start of the names of a log's cards."""
    named = f"{key.conversation} {microseconds(head.created_at)}"
    return hashlib.blake2b(named.encode(), digest_size=12).hexdigest()


def _tile_name(place: Subtree) -> str:
    return f"{place.level}/{place.place:08d}"


def _leaf(record: Record) -> bytes:
    return leaf_hash(record.hash)


def _check(records: Sequence[Record], previous: str) -> None:
    """Raise `StoreCorrupt` at a flaw; without a hash before them, the first one is not checked."""
    for record in records:
        if previous and (problem := flaw(record, previous)):
            raise StoreCorrupt(f"message {record.seq}: {problem}", seq=record.seq)
        previous = record.hash


def _tiles(nodes: Sequence[bytes]) -> dict[Subtree, bytes]:
    """The nodes over 256 entries, and those over 256 of them and so on, 256 together."""
    tiles, tier = {}, 1
    while nodes:
        groups = [nodes[at : at + TILE] for at in range(0, len(nodes), TILE)]
        for index, group in enumerate(groups):
            tiles[Subtree(tier, index)] = b"".join(group)
        nodes, tier = [paired(group) for group in groups if len(group) == TILE], tier + 1
    return tiles
