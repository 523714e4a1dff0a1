"""Withdrawing digests whose entries are erased. Pure.

A digest may hold words of every entry and digest before it, so all digests from the first one on
that covers an erased entry are withdrawn: their texts, data and receipts go. They are created again
from what is left. What the application stated itself cannot be created again, and is kept.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from firnline.context.render import NOTHING_YET
from firnline.digest import items
from firnline.log.entry import Digest

WITHDRAWN: Final = "withdrawn: some of its messages were erased"


def withdraw(digests: Sequence[Digest], seqs: Sequence[int], now: datetime) -> list[Digest]:
    """What to write: the withdrawn digests, and perhaps one with what the application stated.

    `seqs` are the erased entries in ascending order.
    """
    first = min((d.version for d in digests if _covers_any(d, seqs)), default=None)
    if first is None:
        return []
    gone = [_without_words(digest) for digest in digests if digest.version >= first]
    left = [digest for digest in digests if digest.version < first]
    stated = [item for item in _known(_in_force(digests)) if not item.seqs]
    stated = [
        replace(item, superseded_by=None) if item.superseded_by in seqs else item for item in stated
    ]
    force = _in_force(left)
    if not set(map(repr, stated)) - set(map(repr, _known(force))):
        return gone
    return [*gone, _restated(force, stated, digests[-1].version + 1, now)]


def _covers_any(digest: Digest, seqs: Sequence[int]) -> bool:
    place = bisect_left(seqs, digest.first_seq)
    return place < len(seqs) and seqs[place] <= digest.last_seq


def _without_words(digest: Digest) -> Digest:
    return replace(
        digest,
        status="failed" if digest.status == "failed" else "undone",
        text="",
        data={},
        receipt={},
        tokens=0,
        error=WITHDRAWN,
    )


def _in_force(digests: Sequence[Digest]) -> list[Digest]:
    """The digests in force of the conversation as a whole, oldest span first."""
    completed = [d for d in digests if d.status == "completed" and d.topic is None]
    if not completed:
        return []
    newest = max(completed, key=lambda digest: digest.version)
    force = [d for d in digests if d.version in newest.beside]
    return sorted((*force, newest), key=lambda digest: (digest.first_seq, digest.last_seq))


def _known(force: Sequence[Digest]) -> tuple[items.Item, ...]:
    known: tuple[items.Item, ...] = ()
    for digest in force:
        known = items.merge(known, items.from_json(digest.data))
    return known


def _restated(
    force: Sequence[Digest], stated: Sequence[items.Item], version: int, now: datetime
) -> Digest:
    """A new version of the newest digest that is left, with what the application stated."""
    last = force[-1] if force else Digest(version=0, first_seq=0, last_seq=-1)
    known = items.merge(items.from_json(last.data), stated)
    return replace(
        last,
        version=version,
        base=max((digest.version for digest in force), default=None),
        beside=tuple(sorted(digest.version for digest in force if digest is not last)),
        parts=(last.version,) if force else (),
        status="completed",
        made_by="application",
        calls=0,
        spent_tokens=0,
        milliseconds=0,
        text=last.text or NOTHING_YET,
        data=items.to_json(known, items.set_aside(last.data)),
        created_at=now,
    )
