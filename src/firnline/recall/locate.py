"""Which sentences of a long message answer a question: its passage. Pure.

A sentence is scored by the question's words in it and next to it, and by how near its tokens are to
the question's, or the part of the message that it is in, if there are vectors; all of that as it
weighs in ranking. The best sentence is shown with those around it, up to a number of tokens.
Sentences elsewhere that are nearly as good, or have what the best one lacks, share this room.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final, NamedTuple, TypeAlias

from firnline.embedding.quantize import SCALE_BYTES, dots
from firnline.embedding.token_embedder import QuestionTokens, TokenEmbedder
from firnline.language import prose
from firnline.language.terms import index_terms
from firnline.log.hit import TextSpan
from firnline.log.message import Message
from firnline.protocols import Embedder
from firnline.recall import limits, weights
from firnline.recall.features import read_passage
from firnline.recall.passages import parts
from firnline.recall.query import AskedQuestion, QueryTerm, RecallQuery, token_weights
from firnline.recall.rank import TermHits, match

TokenScore: TypeAlias = Callable[
    [QuestionTokens, Sequence[float], Sequence[tuple[int, bytes, bytes]]], Mapping[int, float]
]
"""Says how near a question's tokens are to those of numbered parts: a vector and codes each."""

_NEXT: Final = 0.5
"""The weight of what is in a neighboring sentence."""
_NEARLY: Final = 0.85
"""How good another sentence has to be, compared with the best, to be shown, too."""
_LACKED: Final = 0.25
"""Or how much of the weight of the question's words it has that are not shown yet."""
_MOST: Final = 0.8
"""If a passage would have more of a message than this, the message is shown as it is."""


class _ScoredSentence(NamedTuple):
    """A sentence: its place, its score, and the question's words in it."""

    place: int
    span: TextSpan
    score: float
    hits: TermHits


def sentences(text: str) -> list[TextSpan]:
    """The places of a text's sentences, up to `limits.PASSAGE_CHARS_READ`; long ones in pieces."""
    step = limits.PASSAGE_SENTENCE_CHARS
    return [
        TextSpan(at, min(at + step, end))
        for start, end in prose.spans(text[: limits.PASSAGE_CHARS_READ])
        for at in range(start, end, step)
    ]


class Located(NamedTuple):
    """A message in which a passage is looked for.

    `vectors` are those of its parts, each with the codes of its tokens, if it has some.
    """

    message: Message
    tokens: int
    vectors: Sequence[tuple[bytes, bytes]] = ()


def passages_of(
    asked: AskedQuestion,
    found: Sequence[Located],
    room: int,
    embedder: Embedder | None = None,
    score: TokenScore | None = None,
) -> list[tuple[TextSpan, ...]]:
    """The parts of each message that answer best, of about `room` tokens; none if it is all."""
    spans = [sentences(one.message.text) for one in found]
    near = _nearness(asked, found, spans, embedder, score)
    return [
        _passage(asked.parsed, one, room, places, scores)
        for one, places, scores in zip(found, spans, near, strict=True)
    ]


def _passage(
    query: RecallQuery, one: Located, room: int, spans: Sequence[TextSpan], near: Sequence[float]
) -> tuple[TextSpan, ...]:
    if not spans:
        return ()
    text = one.message.text
    scored = _scored(query, text, spans, near)
    places = list(_best_places(scored))
    chars = len(text) * room // max(one.tokens, 1) // len(places)
    chosen: set[int] = set()
    for place in places:
        chosen |= _around(place, scored, chars, chosen)
    passage = tuple(_joined([spans[place] for place in sorted(chosen)], text))
    return () if sum(end - start for start, end in passage) > _MOST * len(text) else passage


# -- vectors ----------------------------------------------------------------------------------


def _nearness(
    asked: AskedQuestion,
    found: Sequence[Located],
    spans: Sequence[Sequence[TextSpan]],
    embedder: Embedder | None,
    score: TokenScore | None,
) -> list[list[float]]:
    """What the vectors say for each sentence, as it weighs in ranking; 0 where there are none."""
    pieces = [
        (number, *piece)
        for number, (one, places) in enumerate(zip(found, spans, strict=True))
        for piece in _pieces(one, places, embedder)
    ]
    near = [[0.0] * len(places) for places in spans]
    numbered = [(at, code, codes) for at, (_, _, code, codes) in enumerate(pieces)]
    weight, scores = weights.TOKENS["tokens"], dict[int, float]()
    if asked.tokens is not None and score is not None:
        names = {one.message.name or "" for one in found}
        shares = token_weights(asked.text, asked.tokens.spans, asked.parsed, names)
        scores = dict(score(asked.tokens, shares, numbered))
    if not scores and asked.vector is not None:
        weight = weights.MEANING["meaning"]
        codes = [code for _, code, _ in numbered if len(code) == len(asked.vector) + SCALE_BYTES]
        scores = dict(enumerate(dots(asked.vector, codes))) if len(codes) == len(numbered) else {}
    for at, cosine in scores.items():
        number, place, *_ = pieces[at]
        near[number][place] = max(near[number][place], weight * cosine)
    return near


def _pieces(
    one: Located, spans: Sequence[TextSpan], embedder: Embedder | None
) -> Iterator[tuple[int, bytes, bytes]]:
    """The sentences of a message with the vector of their part and the codes of their tokens."""
    starts = [span.start for span in spans]
    embedded = parts(one.message)
    if len(embedded) != len(one.vectors):
        return  # its vectors were made by rules of another version
    for part, (code, codes) in zip(embedded, one.vectors, strict=True):
        if codes and isinstance(embedder, TokenEmbedder):
            at = [part.place(start) for start in embedder.token_starts(part.text)]
            held = [bisect_right(starts, place) - 1 for place in at]
            first = 0
            for place, group in groupby(held):
                last = first + len(list(group))
                if place >= 0:
                    yield place, code, embedder.slice_codes(codes, first, last)
                first = last
        else:
            inside = {bisect_right(starts, piece.start) - 1 for piece in part.pieces}
            yield from ((place, code, b"") for place in sorted(inside) if place >= 0)


# -- words ------------------------------------------------------------------------------------


def _scored(
    query: RecallQuery, text: str, spans: Sequence[TextSpan], near: Sequence[float]
) -> list[_ScoredSentence]:
    read = [read_passage(index_terms(text[start:end])) for start, end in spans]
    terms = _weighed(query.terms, [passage.counts for passage in read])
    hits = [match(terms, passage)[1] for passage in read]
    own = [math.fsum(terms[n].weight * hit for n, hit in there.items()) for there in hits]
    table = weights.TOKENS
    scores = [
        table["around"] * (score + _NEXT * max(own[max(n - 1, 0) : n + 2])) + vectors
        for n, (score, vectors) in enumerate(zip(own, near, strict=True))
    ]
    share = [{n: terms[n].weight * hit for n, hit in there.items()} for there in hits]
    return [
        _ScoredSentence(n, span, score, held)
        for n, (span, score, held) in enumerate(zip(spans, scores, share, strict=True))
    ]


def _weighed(terms: Sequence[QueryTerm], counts: Sequence[Mapping[str, int]]) -> list[QueryTerm]:
    """The words with weights that add up to 1: one that many sentences have says less."""
    found = []
    for term in terms:
        having = sum(term.stem in words for words in counts)
        rarity = 1 - math.log(having) / math.log(len(counts) + 1) if having > 1 else 1.0
        found.append(term._replace(weight=term.weight * rarity))
    whole = math.fsum(term.weight for term in found) or 1.0
    return [term._replace(weight=term.weight / whole) for term in found]


def _best_places(scored: Sequence[_ScoredSentence]) -> Iterator[int]:
    """The best sentence, and others that are nearly as good or have other words of the question."""
    ordered = sorted(scored, key=lambda one: (-one.score, one.place))
    best, taken, shown = ordered[0], 0, TermHits()
    for one in ordered:
        lacked = math.fsum(max(hit - shown.get(n, 0.0), 0.0) for n, hit in one.hits.items())
        if one is best or one.score >= _NEARLY * best.score or lacked >= _LACKED:
            yield one.place
            taken += 1
            for n, hit in one.hits.items():
                shown[n] = max(hit, shown.get(n, 0.0))
        if taken == limits.PASSAGE_PLACES_MAX:
            return


def _around(
    place: int, scored: Sequence[_ScoredSentence], chars: int, chosen: set[int]
) -> set[int]:
    """The sentence with those around it that fit, the better side first."""
    first = last = place
    room = chars - _length(scored[place])
    while room > 0:
        sides = [n for n in (last + 1, first - 1) if 0 <= n < len(scored)]
        fitting = [n for n in sides if n in chosen or _length(scored[n]) <= room]
        if not fitting:
            break
        side = max(fitting, key=lambda n: (scored[n].score, n))
        first, last = min(first, side), max(last, side)
        room -= 0 if side in chosen else _length(scored[side])
    return set(range(first, last + 1))


def _length(one: _ScoredSentence) -> int:
    return one.span.end - one.span.start + 1


def _joined(spans: Sequence[TextSpan], text: str) -> Iterator[TextSpan]:
    """The spans, those as one that only spaces separate."""
    held: TextSpan | None = None
    for span in spans:
        if held is not None and not text[held.end : span.start].strip():
            held = TextSpan(held.start, span.end)
            continue
        if held is not None:
            yield held
        held = span
    if held is not None:
        yield held
