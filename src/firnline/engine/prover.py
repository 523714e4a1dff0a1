"""Checkpoints and proofs of a log.

No checkpoint is made unless the whole log was read, every entry checked and the last checkpoint
continued. A message is proven by a checkpoint that was made so, without reading the log again: what
leads there is compared with its root. Its signature shows that it is ours, and of unsigned ones the
memory of this process: what is stored can be forged. Every proof is checked before it is returned.
"""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from firnline.engine.limits import CHECKPOINTS_REMEMBERED_MAX, SIGNER_NAME_CHARS_MAX
from firnline.engine.log_tree import LogTree
from firnline.errors import InputError, StoreCorrupt
from firnline.log import limits
from firnline.log.entry import Key
from firnline.log.merkle import growth_path, inclusion_path
from firnline.log.proof_check import (
    CONSISTENCY,
    INCLUSION,
    Checkpoint,
    ProofError,
    check_proof,
    check_signature,
    parse_note,
)
from firnline.protocols import Store

if TYPE_CHECKING:
    from firnline.engine.signer import Signer  # needs an optional extra


ORIGIN: Final = "firnline"
"""How the names of logs begin, unless an operator has chosen something else."""


class Prover:
    """Proves what is in the logs of a store; `signer` signs checkpoints.

    Names of logs begin with `origin`, so that those of two operators differ.
    """

    def __init__(self, store: Store, signer: Signer | None = None, origin: str = ORIGIN) -> None:
        self._store, self._signer, self._origin = store, signer, _clean_origin(origin)
        self._public = signer.public if signer else None
        self._unsigned: dict[str, Checkpoint] = {}  # the last ones made here, by their logs' names

    async def checkpoint(self, key: Key) -> Checkpoint:
        """The log as it is now, signed. It is kept, and the next one must continue it."""
        return await self._new(await self._open(key))

    async def prove(self, key: Key, seq: int) -> str:
        """The proof that the entry `seq` is in the log.

        It ends at the last checkpoint of ours if that has the entry, else at a new one.
        """
        log = await self._open(key)
        if not 0 <= limits.check_number("seq", seq, None) < log.size:
            raise InputError(f"{key.conversation} has no message {seq}")
        last = self._last(log)
        if last is not None and seq < last.size <= log.size:
            with suppress(ProofError):  # stored nodes are wrong, or the log is: reading it shows
                return await self._inclusion(log, seq, last)
        try:
            return await self._inclusion(log, seq, await self._new(log))
        except ProofError as error:
            raise _changed(key) from error

    async def prove_growth(self, key: Key, older: str) -> str:
        """The proof that the log as it is now continues the checkpoint `older`."""
        old = _parse(older)
        log = await self._open(key)
        if old.origin != log.origin:
            raise InputError(f"older: a checkpoint of {old.origin}, not of {log.origin}")
        new = await self._new(log, old)
        try:
            path = await log.hashes(growth_path(old.size, new.size))
            rest = {"older": old.note}
            return await asyncio.to_thread(self._written, CONSISTENCY, path, new, rest, old)
        except ProofError as error:
            raise _changed(key) from error

    async def _open(self, key: Key) -> LogTree:
        return await LogTree.open(self._store, key, self._origin)

    async def _new(self, log: LogTree, *older: Checkpoint) -> Checkpoint:
        """A new checkpoint: the only place where something is signed."""
        checkpoint = await log.read(older)
        if self._signer is not None:
            checkpoint = self._signer.sign(checkpoint)
        else:
            self._unsigned.pop(log.origin, None)
            self._unsigned[log.origin] = checkpoint
            if len(self._unsigned) > CHECKPOINTS_REMEMBERED_MAX:
                del self._unsigned[next(iter(self._unsigned))]
        await log.keep(checkpoint)
        return checkpoint

    def _last(self, log: LogTree) -> Checkpoint | None:
        """The last checkpoint that we made of this log, if that is certain."""
        if self._public is None:
            return self._unsigned.get(log.origin)
        if log.last is None or log.last.origin != log.origin:
            return None
        try:
            check_signature(log.last, self._public)
        except ProofError:
            return None
        return log.last

    async def _inclusion(self, log: LogTree, seq: int, checkpoint: Checkpoint) -> str:
        """The proof of an entry, checked; raises `ProofError` if it does not hold."""
        rest = {"entry": await log.entry(seq)}
        path = await log.hashes(inclusion_path(seq, checkpoint.size))
        return await asyncio.to_thread(self._written, INCLUSION, path, checkpoint, rest, checkpoint)

    def _written(
        self,
        kind: str,
        path: Sequence[bytes],
        checkpoint: Checkpoint,
        rest: dict[str, Any],
        known: Checkpoint,
    ) -> str:
        """A proof as JSON text; raises `ProofError` if it does not hold."""
        hashes = [b64encode(node).decode() for node in path]
        proof = {"proof": kind, **rest, "path": hashes, "checkpoint": checkpoint.note}
        text = json.dumps(proof, ensure_ascii=False, indent=1) + "\n"
        check_proof(text, key=self._public, known=known)
        return text


def _clean_origin(origin: object) -> str:
    name = origin.rstrip("/") if isinstance(origin, str) else ""
    plain = name.isprintable() and "://" not in name and not {*" +"} & {*name}
    if not plain or not 0 < len(name) <= SIGNER_NAME_CHARS_MAX:
        raise InputError(
            f"log_origin: expected a URL without its scheme, 1 to {SIGNER_NAME_CHARS_MAX}"
            " printable characters without spaces and plus signs"
        )
    return name


def _parse(older: object) -> Checkpoint:
    if not isinstance(older, str):
        raise InputError(f"older: expected the text of a checkpoint, got {type(older).__name__}")
    try:
        return parse_note(older)
    except ProofError as error:
        raise InputError(f"older: {error}") from error


def _changed(key: Key) -> StoreCorrupt:
    return StoreCorrupt(f"{key.conversation}: the log changed while it was proven")
