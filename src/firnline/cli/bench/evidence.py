"""Which sentence of a long message is the evidence: the one that says most of the answer. Pure.

The sets name messages only. Where a message is long and only a passage of it was returned, that
counts if this sentence is in it.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final

from firnline.language import prose
from firnline.language.stems import stem
from firnline.language.terms import index_terms
from firnline.log.hit import TextSpan
from firnline.recall.query import parse_question

_ASKED: Final = 0.25
"""The weight of a word of the question, compared with one of the answer."""


@lru_cache(maxsize=4_096)
def own_sentence(text: str, question: str, answer: str) -> TextSpan | None:
    """The sentence with most of the answer's words, by weight, then of the question's.

    None if there is no such word: then only the whole text will do.
    """
    weights: dict[str, float] = {}
    for share, source in ((_ASKED, question), (1.0, answer)):
        for term in parse_question(source).terms:
            weights[term.stem] = max(weights.get(term.stem, 0.0), share * term.weight)
    best, found = 0.0, None
    for start, end in prose.spans(text):
        words = frozenset(map(stem, index_terms(text[start:end])))
        score = math.fsum(weights[word] for word in words if word in weights)
        if score > best:
            best, found = score, TextSpan(start, end)
    return found
