"""Which of the found messages go into a number of tokens: what a token buys. Pure.

A long message takes the place of several short ones, so its length is part of its score (`price`).
Up to about the length of a paragraph nothing is deducted. After that an assistant's answers lose
more than what people say: they are mostly general text, and what a question asks for is mostly a
fact that was said once, in few words. If the question is about the assistant's words, all are
equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple, TypeVar

from firnline.log.entry import Entry
from firnline.log.hit import Hit
from firnline.recall.limits import PASSAGE_TOKENS, PASSAGES_SHOWN
from firnline.recall.repeats import without_repeats

Item = TypeVar("Item")


class _Tariff(NamedTuple):
    """From how many tokens a message has a price, and how fast it grows."""

    free: int
    slope: float


_SAID: Final = _Tariff(160, 1.0)
_GENERATED: Final = _Tariff(80, 2.5)
_LONGER: Final = 1.25
_FRAME: Final = 4
_GENERATED_ROLES: Final = frozenset(("assistant", "tool"))


def price(hit: Hit, role: str = "", room: int | None = None) -> float:
    """What the length of a hit deducts from its score; `role` is the one that is asked about.

    `room` are the tokens of a passage; None if the hit is shown whole.
    """
    message = hit.message
    generated = not message.name and message.role in _GENERATED_ROLES and message.role != role
    tariff = _GENERATED if generated else _SAID
    tokens = hit.entry.tokens if room is None else least_tokens(hit.entry, room)
    return tariff.slope * math.log(max(tokens / tariff.free, 1.0))


def passage_room(tokens: int | None) -> int:
    """About how many tokens of a long message are shown: more if there are `tokens` for more."""
    return max(PASSAGE_TOKENS, (tokens or 0) // PASSAGES_SHOWN)


def is_long(entry: Entry, room: int) -> bool:
    """Whether only a passage of so many tokens of the entry is shown."""
    return entry.tokens > _LONGER * room


def least_tokens(entry: Entry, room: int) -> int:
    """About how many tokens of an entry are shown: of a long one a passage."""
    return room if is_long(entry, room) else entry.tokens


def shown_tokens(hit: Hit) -> int:
    """About how many tokens a hit takes: those of its passage, if it has one."""
    if not hit.passage:
        return hit.entry.tokens
    share = len(hit.text) / max(len(hit.message.text), 1)
    return math.ceil(hit.entry.tokens * share) + _FRAME


def by_value(hits: Iterable[Hit], role: str = "", room: int | None = None) -> list[Hit]:
    """The hits in the order in which they are packed; what decides it is part of their scores.

    Those that repeat a better one come last: they are taken only if nothing else is left.
    """
    priced = [_less(hit, "price", price(hit, role, room)) for hit in hits]
    priced.sort(key=lambda hit: -hit.score)  # stable: equal scores keep their order
    first = without_repeats(priced)
    kept = {(hit.conversation, hit.seq) for hit in first}
    repeats = [hit for hit in priced if (hit.conversation, hit.seq) not in kept]
    return first + [_less(hit, "repeat", hit.score - priced[-1].score) for hit in repeats]


def pack(items: Sequence[Item], size: Callable[[Item], int], tokens: int) -> list[Item]:
    """The first items that fit into `tokens`; one that does not fit is skipped."""
    packed: list[Item] = []
    for item in items:
        if tokens <= 0:
            break
        needed = size(item)
        if needed <= tokens:
            packed.append(item)
            tokens -= needed
    return packed


def _less(hit: Hit, why: str, deducted: float) -> Hit:
    if not deducted:
        return hit
    return replace(hit, score=hit.score - deducted, parts={**hit.parts, why: -deducted})
