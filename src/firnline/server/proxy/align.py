"""How far a history that a client sends again agrees with the log. Pure.

Some clients keep only what was said, and send no calls of tools and no results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from firnline.context.marks import INTERRUPTED
from firnline.context.plan import is_of_tool
from firnline.log.entry import Entry
from firnline.log.message import Message
from firnline.server.proxy.request import fingerprint, is_spoken


class Agreement(NamedTuple):
    """The sequence numbers of the messages that were found, and how many entries those span."""

    seqs: tuple[int, ...]
    entries: int

    @property
    def messages(self) -> int:
        """How many messages were found."""
        return len(self.seqs)


def agree(sent: Sequence[Message], log: Sequence[Entry], *, strict: bool = False) -> Agreement:
    """How far the log starts with these messages.

    Of an interrupted answer, the client may send what it saw, or nothing, and calls of tools may be
    left out with their results; with `strict`, all of it must be sent. What the application said in
    between is not compared.
    """
    return _agree(sent, log, 0, _Fingerprints(), strict=strict)


class _Fingerprints(dict[int, str]):
    """The fingerprints of messages, each computed once."""

    def of(self, message: Message) -> str:
        if id(message) not in self:
            self[id(message)] = fingerprint(message)
        return self[id(message)]


def _agree(
    sent: Sequence[Message],
    log: Sequence[Entry],
    start: int,
    prints: _Fingerprints,
    *,
    strict: bool = False,
) -> Agreement:
    """How far the log agrees from `start` on; its entries are counted from there."""
    seqs: list[int] = []
    at = start
    while at < len(log):
        entry, here = log[at], sent[len(seqs)] if len(seqs) < len(sent) else None
        if here and _same(here, entry.message, prints, strict=strict):
            seqs.append(entry.seq)
        elif is_spoken(entry.message) and (strict or not _is_cut(entry.message)):
            behind = None if strict or not here else _end_of_tools(here, log, at, prints)
            if behind is None:
                break
            at = behind
            continue
        elif entry.erased_at is not None and _is_erased_one(sent[len(seqs) :], log[at + 1 :]):
            seqs.append(entry.seq)  # the client still has it: it is not stored again
        at += 1
    return Agreement(tuple(seqs), at - start)


def _is_cut(message: Message) -> bool:
    return INTERRUPTED in message.metadata


def _is_erased_one(sent: Sequence[Message], later: Sequence[Entry]) -> bool:
    """Whether the first message sent is the erased one: what follows both is the same."""
    spoken = [entry.message for entry in later if is_spoken(entry.message)]
    return len(sent) > 1 and bool(spoken) and fingerprint(sent[1]) == fingerprint(spoken[0])


def _same(sent: Message, stored: Message, prints: _Fingerprints, *, strict: bool) -> bool:
    if strict or not (_is_cut(stored) or stored.tool_calls):
        return is_spoken(stored) and prints.of(sent) == prints.of(stored)
    text = sent.text.strip()
    if _is_cut(stored):
        return sent.role == "assistant" and bool(text) and stored.text.strip().startswith(text)
    if text and not sent.tool_calls:  # the client keeps what was said, and no calls
        return prints.of(sent) == fingerprint(replace(stored, tool_calls=()))
    return prints.of(sent) == prints.of(stored)


def _end_of_tools(
    sent: Message, log: Sequence[Entry], start: int, prints: _Fingerprints
) -> int | None:
    """Where calls and results that begin at `start` end, if what is sent comes right behind them.

    None if the client has not left them out.
    """
    at = start
    while at < len(log) and (is_of_tool(log[at].message) or not is_spoken(log[at].message)):
        at += 1
    if at in (start, len(log)):
        return None
    return at if _same(sent, log[at].message, prints, strict=False) else None


def overlap(sent: Sequence[Message], tail: Sequence[Entry]) -> Agreement | None:
    """Where the messages start in the tail of a log, for clients that drop their oldest messages.

    The start with the longest agreement wins; None if the first message is not there. `entries`
    counts from the start of the tail.
    """
    if not sent:
        return None
    prints, best = _Fingerprints(), None
    first = prints.of(sent[0])
    for start, entry in enumerate(tail):
        if best is not None and len(tail) - start < best.messages:
            break  # what is left is shorter
        if is_spoken(entry.message) and prints.of(entry.message) == first:
            found = _agree(sent, tail, start, prints)
            if best is None or found.messages >= best.messages:
                best = Agreement(found.seqs, start + found.entries)
    return best
