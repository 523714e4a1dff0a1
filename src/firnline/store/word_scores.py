"""How search by words chooses and scores entries: the same in every store. Pure.

An entry scores for each wanted word: most for one of its own, little for one of the entry before
it, least for its speaker or date. A rare word weighs more than a common one, and a long entry
counts less than a short one. All of it is computed with whole numbers, so every store orders the
entries in the same way. First come entries with a word of their own, then those whose speaker or
date is named, then those that have a word only in a longer one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from firnline.log import limits

OWN: Final = 10
NEAR: Final = 2
FACT: Final = 1
BEFORE_MAX: Final = 1_000
"""Terms of an entry that a store may have to keep with the next one."""
LENGTH: Final = 260, 3
"""The score is divided by the first, plus the second times the number of the entry's terms."""
_WEIGHT: Final = 1_000


def leading(counts: Sequence[int], *, short: bool) -> list[int]:
    """The numbers of the words that lead to entries, given how many entries have each.

    All if the searched conversation is `short`; else the rarest, as many as a search can rank, and
    at least one that occurs. Entries with only the others would come last; the others still add to
    the score of an entry that has a leading one.
    """
    if short:
        return list(range(len(counts)))
    chosen: list[int] = []
    weighed = 0
    for count, number in sorted((count, number) for number, count in enumerate(counts)):
        if weighed and weighed + count > limits.SEARCH_WEIGHED_MAX:
            break
        chosen.append(number)
        weighed += count
    return sorted(chosen)


def weights(counts: Sequence[int], entries: int) -> list[int]:
    """The weights of words that so many of the entries have; counts end at what is weighed."""
    known = [min(count, limits.SEARCH_WEIGHED_MAX) for count in counts]
    total = max([entries, *known]) + 1
    rarity = (math.log(1 + (total - count + 0.5) / (count + 0.5)) for count in known)
    return [max(round(_WEIGHT * item), 1) for item in rarity]


def score(points: int, terms: int) -> float:
    """The score of an entry with so many points and terms."""
    return points / (LENGTH[0] + LENGTH[1] * terms)
