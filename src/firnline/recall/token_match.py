"""Comparing the tokens of a question with those of messages (late interaction). Pure.

A sentence vector says what a message is about as a whole. A question may be about one word of it,
so each of its tokens is compared with the nearest token of the message, and the cosines are
averaged by how much the tokens say: those of rare words most. It is done for the best candidates.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from statistics import fmean
from typing import Final

from firnline.language.stems import stem
from firnline.language.terms import index_terms
from firnline.recall.query import RecallQuery

_ANY: Final = 0.5
"""The weight of a token of any word; those of the question's content words are added to it."""


def token_weights(
    question: str, spans: Sequence[tuple[int, int]], query: RecallQuery, names: Collection[str]
) -> list[float]:
    """The weights of a question's tokens by the words that they are in.

    The speakers' `names` are words like any other: they are in every message of theirs.
    """
    speakers = {stem(word) for name in names for word in index_terms(name)}
    weights = {term.stem: term.weight for term in query.terms if term.stem not in speakers}
    words = {span: index_terms(question[slice(*span)]) for span in spans}
    return [
        _ANY + max((weights.get(stem(word), 0.0) for word in words[span]), default=0.0)
        for span in spans
    ]


def token_feature(
    scores: Mapping[int, float], compared: Collection[int], pool: Collection[int]
) -> dict[int, float]:
    """The feature of all entries of the pool, given the scores of those that were `compared`.

    One that has no codes yet is taken for an average one, and the others for the worst.
    """
    usual, least = fmean(scores.values()), min(scores.values())
    asked = set(compared)
    return {seq: scores.get(seq, usual if seq in asked else least) for seq in pool}
