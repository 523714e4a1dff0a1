"""Laying a re-sent history beside the log: how far they agree. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from firnline.log.entry import Entry
from firnline.log.message import Message
from firnline.server.drafts import INTERRUPTED
from firnline.server.proxy.identity import fingerprint, is_spoken


class Agreed(NamedTuple):
    """How many messages were found, each one's sequence number, and how many entries that took."""

    seqs: tuple[int, ...]
    entries: int

    @property
    def messages(self) -> int:
        """How many messages were found."""
        return len(self.seqs)


def agree(sent: Sequence[Message], log: Sequence[Entry]) -> Agreed:
    """How far the messages are what the log goes on with.

    An interrupted answer may be in what is sent as far as the client saw it, or not at all. What
    the application said in between is not compared.
    """
    seqs: list[int] = []
    at = 0
    while at < len(log):
        entry, here = log[at], len(seqs)
        broken = INTERRUPTED in entry.message.metadata
        if here < len(sent) and _same(sent[here], entry.message, broken=broken):
            seqs.append(entry.seq)
        elif is_spoken(entry.message) and not broken:
            break
        at += 1
    return Agreed(tuple(seqs), at)


def _same(sent: Message, stored: Message, *, broken: bool) -> bool:
    if broken:
        text = sent.text.strip()
        return sent.role == "assistant" and bool(text) and stored.text.strip().startswith(text)
    return is_spoken(stored) and fingerprint(sent) == fingerprint(stored)


def overlap(sent: Sequence[Message], tail: Sequence[Entry]) -> Agreed | None:
    """Where the messages begin within the end of a log, for clients that drop the oldest.

    The beginning with the longest agreement wins; None if not even the first message is there.
    `entries` then counts from the tail's start.
    """
    if not sent:
        return None
    first, best = fingerprint(sent[0]), None
    for start, entry in enumerate(tail):
        if is_spoken(entry.message) and fingerprint(entry.message) == first:
            found = agree(sent, tail[start:])
            if best is None or found.messages >= best.messages:
                best = Agreed(found.seqs, start + found.entries)
    return best
