"""Checkpoints and proofs of a log: reads the hashes that they need, and signs.

The inner nodes of a log's tree are kept as cards next to the log, 256 of one level in each, and are
made of its entries when a checkpoint or a proof first needs them. Each entry is checked then. They
are a view of the log: without them they are made again.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from base64 import b64encode
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias
from urllib.parse import quote

from firnline.errors import InputError, StoreCorrupt, UnknownConversation
from firnline.log import limits
from firnline.log.chain import flaw
from firnline.log.entry import Card, Head, Key, Record, genesis
from firnline.log.merkle import (
    TILE,
    TILE_LEVELS,
    Subtree,
    complete,
    growth_path,
    hashes_of,
    inclusion_path,
    paired,
)
from firnline.log.message import microseconds
from firnline.log.proof_check import (
    CONSISTENCY,
    INCLUSION,
    Checkpoint,
    ProofError,
    check_growth,
    leaf_hash,
    parse_note,
)
from firnline.protocols import Store

TREE: Final = "tree"
CHECKPOINT: Final = "checkpoint"
Sign: TypeAlias = Callable[[Checkpoint], Checkpoint]
"""Returns the checkpoint with a signature."""

_HASH: Final = hashlib.sha256().digest_size


class Prover:
    """Proves what is in the logs of a store; `sign` signs checkpoints."""

    def __init__(self, store: Store, sign: Sign | None = None) -> None:
        self._store, self._sign = store, sign

    async def checkpoint(self, key: Key) -> Checkpoint:
        """The log as it is now, signed. It is kept, and the next one must continue it."""
        log = await _Log.open(self._store, key)
        newest = self._signed(await log.checkpoint(log.size))
        if (last := await last_checkpoint(self._store, log.key, log.head)) is not None:
            await log.check_continues(last)
        if last is None or last.size <= newest.size:
            body = newest.note.encode()
            await self._store.put_cards([log.card(CHECKPOINT, "newest", body)])
        return newest

    async def prove(self, key: Key, seq: int) -> str:
        """The proof that the entry `seq` is in the log as it is now."""
        log = await _Log.open(self._store, key)
        if not 0 <= limits.check_number("seq", seq, None) < log.size:
            raise InputError(f"{key.conversation} has no message {seq}")
        entry = await log.entry(seq)
        path = await log.hashes(inclusion_path(seq, log.size))
        checkpoint = self._signed(await log.checkpoint(log.size))
        return _written(INCLUSION, path, checkpoint, {"entry": entry})

    async def prove_growth(self, key: Key, older: str) -> str:
        """The proof that the log as it is now continues the checkpoint `older`."""
        try:
            old = parse_note(older)
        except ProofError as error:
            raise InputError(f"older: {error}") from error
        log = await _Log.open(self._store, key)
        if old.origin != log.origin:
            raise InputError(f"older: a checkpoint of {old.origin}, not of {log.origin}")
        path = await log.check_continues(old)
        checkpoint = self._signed(await log.checkpoint(log.size))
        return _written(CONSISTENCY, path, checkpoint, {"older": old.note})

    def _signed(self, checkpoint: Checkpoint) -> Checkpoint:
        return self._sign(checkpoint) if self._sign else checkpoint


async def last_checkpoint(store: Store, key: Key, head: Head) -> Checkpoint | None:
    """The newest checkpoint that was made of this log; a damaged one raises `StoreCorrupt`."""
    name = f"{_prefix(key, head)}/newest"
    found = await store.cards(CHECKPOINT, tenant=key.tenant, names=[name])
    try:
        return parse_note(found[0].body.decode()) if found else None
    except ValueError as error:
        raise StoreCorrupt(f"the checkpoint of {key.conversation!r} is damaged") from error


class _Log:
    """One conversation's log as it was when its head was read, and the nodes of its tree."""

    def __init__(self, store: Store, key: Key, head: Head) -> None:
        self._store, self.key, self.head = store, key, head
        self.size = head.entries
        self.origin = f"firnline/{quote(key.tenant, safe='')}/{quote(key.conversation, safe='')}"
        self._tiles: dict[Subtree, bytes] = {}

    @classmethod
    async def open(cls, store: Store, key: Key) -> _Log:
        head = await store.head(key)
        if head is None:
            raise UnknownConversation(f"there is no conversation {key.conversation!r}")
        return cls(store, key, head)

    async def checkpoint(self, size: int) -> Checkpoint:
        """The log when it had `size` entries, not signed."""
        (root,) = await self.hashes([complete(0, size)])
        return Checkpoint(self.origin, size, root)

    async def check_continues(self, old: Checkpoint) -> list[bytes]:
        """The path from an older checkpoint; raises if the log does not continue it."""
        path = await self.hashes(growth_path(old.size, self.size))
        try:
            check_growth(old, await self.checkpoint(self.size), path)
        except ProofError as error:
            raise StoreCorrupt(f"{self.key.conversation}: {error}") from error
        return path

    async def entry(self, seq: int) -> dict[str, Any]:
        """What a proof says of an entry; an erased one has no text."""
        records = await self._records(max(seq - 1, 0), seq + 1)
        record = records[-1]
        if record.erased:
            return {"seq": seq, "hash": record.hash}
        return {
            "seq": seq,
            "hash": record.hash,
            "previous": records[0].hash if seq else genesis(self.key),
            "tokens": record.tokens,
            "tokenizer": record.tokenizer,
            "body": record.body.decode(),
        }

    async def hashes(self, path: Sequence[Sequence[Subtree]]) -> list[bytes]:
        """The hashes of the nodes of a path."""
        known = {part: await self._hash_of(part) for node in path for part in node}
        return hashes_of(path, known.__getitem__)

    async def _hash_of(self, part: Subtree) -> bytes:
        """The hash of a complete subtree: of entries, or of stored nodes."""
        tier, above = divmod(part.level, TILE_LEVELS)
        first, end = part.place << above, part.place + 1 << above
        if tier == 0:
            return await asyncio.to_thread(paired, _leaves(await self._records(first, end)))
        tile = await self._tile(tier, first // TILE)
        at = first % TILE * _HASH
        nodes = [tile[n : n + _HASH] for n in range(at, at + (end - first) * _HASH, _HASH)]
        return await asyncio.to_thread(paired, nodes)

    async def _tile(self, tier: int, index: int) -> bytes:
        """The hashes of the complete subtrees of a tier, 256 of them or as many as there are."""
        place = Subtree(tier, index)
        if place not in self._tiles:
            name = f"{_prefix(self.key, self.head)}/{tier}/{index:08d}"
            stored = await self._store.cards(TREE, tenant=self.key.tenant, names=[name])
            tile = stored[0].body if stored else b""
            there = (self.size >> tier * TILE_LEVELS) - index * TILE
            missing = range(len(tile) // _HASH, min(there, TILE))
            if missing:
                first, level = index * TILE, tier * TILE_LEVELS
                below = [Subtree(level, first + n) for n in missing]
                tile += b"".join([await self._made(part) for part in below])
                await self._store.put_cards([self.card(TREE, f"{tier}/{index:08d}", tile)])
            self._tiles[place] = tile
        return self._tiles[place]

    async def _made(self, part: Subtree) -> bytes:
        """The hash of a complete subtree of a tier, from the tier below it."""
        tier = part.level // TILE_LEVELS - 1
        if tier == 0:
            records = await self._records(part.place * TILE, (part.place + 1) * TILE)
            return await asyncio.to_thread(paired, _leaves(records))
        tile = await self._tile(tier, part.place)
        return paired([tile[n : n + _HASH] for n in range(0, len(tile), _HASH)])

    async def _records(self, first: int, end: int) -> list[Record]:
        """The records of the entries [first, end), checked but for the first one."""
        before = max(first - 1, 0)
        records = await self._store.records(self.key, before, end - before)
        await asyncio.to_thread(self._check, records, range(before, end))
        return [record for record in records if record.seq >= first]

    def _check(self, records: Sequence[Record], expected: range) -> None:
        if [record.seq for record in records] != [*expected]:
            raise StoreCorrupt(f"{self.key.conversation}: messages are missing")
        previous = genesis(self.key) if expected.start == 0 else ""
        for record in records:
            if previous and (problem := flaw(record, previous)):
                raise StoreCorrupt(f"message {record.seq}: {problem}", seq=record.seq)
            previous = record.hash

    def card(self, kind: str, name: str, body: bytes) -> Card:
        """A card of this log; it does not outlive it, even if the name is used again."""
        key, prefix = self.key, _prefix(self.key, self.head)
        name = f"{prefix}/{name}"
        return Card(
            tenant=key.tenant, kind=kind, name=name, body=body, conversation=key.conversation
        )


def _prefix(key: Key, head: Head) -> str:
    """The start of the names of a log's cards."""
    named = f"{key.conversation} {microseconds(head.created_at)}"
    return hashlib.blake2b(named.encode(), digest_size=12).hexdigest()


def _leaves(records: Sequence[Record]) -> list[bytes]:
    return [leaf_hash(record.hash) for record in records]


def _written(kind: str, path: Sequence[bytes], checkpoint: Checkpoint, rest: dict[str, Any]) -> str:
    """A proof as JSON text."""
    hashes = [b64encode(node).decode() for node in path]
    proof = {"proof": kind, **rest, "path": hashes, "checkpoint": checkpoint.note}
    return json.dumps(proof, ensure_ascii=False, indent=1) + "\n"
