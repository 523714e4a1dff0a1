"""Search by words in memory: what every store finds, in the fewest words. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import NamedTuple

from firnline.language.terms import EntryTerms, WantedWord
from firnline.log.entry import IndexMatch, Key
from firnline.log.message import Message
from firnline.store import word_scores


class RamEntry(NamedTuple):
    """An entry, its terms, and those of the one before it."""

    key: Key
    seq: int
    message: Message
    terms: EntryTerms
    before: AbstractSet[str]


def _points(
    wanted: Sequence[WantedWord],
    weights: Sequence[int],
    led: Collection[int],
    entry: EntryTerms,
    before: AbstractSet[str],
) -> tuple[int, int]:
    """Why an entry is found: 0 its own words, 1 speaker or date, 2 longer words; and its points."""
    own = {n for n, word in enumerate(wanted) if not entry.own.isdisjoint(word.terms)}
    facts = {n for n, word in enumerate(wanted) if not entry.facts.isdisjoint(word.facts)}
    if own.isdisjoint(led) and not facts:
        return 2, sum(bool(word.parts) and set(word.parts) <= entry.parts for word in wanted)
    near = {n for n in led if not before.isdisjoint(wanted[n].terms)}
    by_kind = (own, word_scores.OWN), (near, word_scores.NEAR), (facts, word_scores.FACT)
    points = sum(weights[n] * factor for numbers, factor in by_kind for n in numbers)
    return int(own.isdisjoint(led)), points


def rank(
    wanted: Sequence[WantedWord],
    entries: Sequence[RamEntry],
    inside: Sequence[RamEntry],
    *,
    total: int,
    short: bool,
) -> list[IndexMatch]:
    """What is found of the entries in scope, best first; see `word_scores`.

    `entries` are all of the tenant, `total` counts erased ones, too, and `short` is about the
    searched conversation.
    """
    counts = [sum(not item.terms.own.isdisjoint(word.terms) for item in entries) for word in wanted]
    weights = word_scores.weights(counts, total)
    kinds: tuple[list[IndexMatch], ...] = ()
    for led in (word_scores.leading(counts, short=short), list(range(len(wanted)))):
        kinds = [], [], []
        for item in inside:
            kind, points = _points(wanted, weights, led, item.terms, item.before)
            if points:
                value = word_scores.score(points, item.terms.size)
                kinds[kind].append(IndexMatch(item.key.conversation, item.seq, value))
        if kinds[0]:
            break
    order = (sorted(some, key=lambda m: (-m.score, m.conversation, -m.seq)) for some in kinds)
    return list(chain.from_iterable(order))
