"""The similarity of a message and a topic: a cosine, calibrated to one scale for every model.

The threshold of 0.7 assumes a model with high cosines; those of sentence models are lower. So the
calibrated similarity is linear through (-1, 0), (the model's likeness, 0.7) and (1, 1).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from heapq import nsmallest
from typing import Final, NamedTuple

from firnline.embedding.likeness import likeness_of
from firnline.embedding.quantize import signs as sign_code
from firnline.log.entry import Topic
from firnline.topics.rules import Rules
from firnline.topics.vectors import Floats, dot, norm, unit, unpack

COMPARED_MAX: Final = 100
"""Topics that one message is compared with."""
ANCHOR: Final = 0.7
"""The calibrated similarity of the likeness."""


class TopicMatch(NamedTuple):
    """A topic that a message was compared with: the raw cosine and the calibrated similarity."""

    topic: int
    raw: float
    similarity: float


def likeness(model: str, rules: Rules) -> float:
    """The raw cosine that means 0.7 for this model."""
    return rules.likeness.get(model, likeness_of(model))


def calibrate(raw: float, likeness_: float) -> float:
    """The similarity for a raw cosine, from 0 to 1; monotone."""
    raw = max(-1.0, min(1.0, raw))
    if raw <= likeness_:
        return ANCHOR * (raw + 1) / (likeness_ + 1)
    return ANCHOR + (1 - ANCHOR) * (raw - likeness_) / (1 - likeness_)


def match_topics(
    vector: Floats, model: str, topics: Iterable[Topic], rules: Rules
) -> list[TopicMatch]:
    """The similarity of each topic, best first; of equal ones the most recently active first.

    Topics without a vector, with one of another model or dimension, and merged topics are left out.
    Of very many topics only those whose signs agree most are compared.
    """
    at = likeness(model, rules)
    length = norm(vector)
    found: list[tuple[TopicMatch, int]] = []
    for topic in _preselect(vector, [t for t in topics if is_comparable(t, model, len(vector))]):
        mean = _read_mean(topic.vector)
        raw = dot(vector, mean.values) / ((length * mean.norm) or 1.0)
        found.append((TopicMatch(topic.id, raw, calibrate(raw, at)), topic.last_seq))
    found.sort(key=lambda pair: (-pair[0].raw, -pair[1], pair[0].topic))
    return [match for match, _ in found]


def _preselect(vector: Floats, topics: list[Topic]) -> list[Topic]:
    """The topics; of very many those whose means differ in the fewest signs.

    This is a hundred times cheaper than a cosine.
    """
    if len(topics) <= COMPARED_MAX:
        return topics
    signs = int.from_bytes(sign_code(vector), "big")
    return nsmallest(
        COMPARED_MAX, topics, key=lambda topic: (signs ^ _read_mean(topic.vector).signs).bit_count()
    )


class _Mean(NamedTuple):
    """A topic's mean vector, prepared for comparison."""

    values: Floats
    norm: float
    signs: int


@lru_cache(maxsize=16_384)
def _read_mean(body: bytes) -> _Mean:
    values = unpack(body)
    return _Mean(values, norm(values), int.from_bytes(sign_code(values), "big"))


def flow_likeness(
    said: Sequence[Floats], center: tuple[float, ...], topics: Iterable[Topic]
) -> dict[int, tuple[float, ...]]:
    """The cosine of each comparable topic with each vector; `center` is subtracted before."""
    around = [_without_center(vector, center) for vector in said]
    found: dict[int, tuple[float, ...]] = {}
    for topic in topics:
        if topic.vectors and len(topic.vector) == 4 * len(said[0]):
            mean = _read_direction(topic.vector, center)
            found[topic.id] = tuple(dot(vector, mean) for vector in around)
    return found


@lru_cache(maxsize=4_096)
def _read_direction(body: bytes, center: tuple[float, ...]) -> Floats:
    mean = unpack(body)
    return _without_center(unit(mean) or mean, center)


def _without_center(vector: Floats, center: tuple[float, ...]) -> Floats:
    if len(center) != len(vector):
        return vector
    left = [number - common for number, common in zip(vector, center, strict=True)]
    return unit(left) or left


def is_comparable(topic: Topic, model: str, dimension: int) -> bool:
    """Whether the topic has a vector of this model and dimension."""
    same = topic.model == model and len(topic.vector) == 4 * dimension  # bytes of a float32
    return same and topic.vectors > 0 and topic.merged_into is None
