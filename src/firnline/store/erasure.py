"""Erasing some messages of a conversation: the rules that all backends share.

An erased entry becomes a tombstone: it keeps its sequence number, hash and tokens, so numbers have
no holes, the chain continues, and running totals stay true. A tombstone is never archived.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Final

from firnline.errors import ConflictError, InputError
from firnline.log.entry import Erased, Erasure, Head, Key, Record, runs

NEVER: Final = -(1 << 62)
"""The time of an erased entry in an index: before all others. It has no words there."""


def check_erasure(key: Key, erasure: Erasure, entries: int, version: int, revision: int) -> None:
    """Raise unless the entries exist, and digests and topics are those it was decided for."""
    if not all(0 <= seq < entries for seq in erasure.seqs):
        raise InputError(f"{key.conversation} has {entries} messages; not all of these exist")
    if (erasure.version, erasure.revision) != (version, revision):
        raise ConflictError(f"{key.conversation}: digests or topics have changed; retry")


def certificate(
    head: Head,
    gone: Collection[Record],
    erasure: Erasure,
    now: datetime,
    *,
    segments: int,
    vectors: int,
    cards: Mapping[str, int],
) -> Erased:
    """The certificate for entries, by their records before."""
    return Erased(
        head.conversation,
        entries=len(gone),
        digests=sum(digest.version <= erasure.version for digest in erasure.digests),
        segments=segments,
        tokens=sum(record.tokens for record in gone),
        head=head.hash,
        erased_at=now,
        vectors=vectors,
        topics=len(erasure.topics),
        cards=cards,
        spans=tuple(runs(sorted(record.seq for record in gone))),
    )
