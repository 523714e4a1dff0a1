"""Where a message goes in the flow of a conversation: on with the topic, back to one, or to a new.

A vector alone does not show it: a short question names little of its subject, and is the most
likely to continue. So several signs are weighed: how similar the message is to each topic, how much
it says, whether it refers to something or starts like a continuation, and whether the topic has
just begun. Once there is an answer, the answer counts, too: "Can you explain what a stop order is?"
may be about anything, the answer is not. Words such as "by the way" and "back to" and a long pause
speak against the active topic. The weights were learned (`tools/topics`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from firnline.language.cues import RETURNING, SWITCHING, opening
from firnline.language.stop_words import content_weight, has_reference, split_words
from firnline.topics.followup import LOOK_CHARS, starts_like_continuation
from firnline.topics.rules import DefaultThreshold, Rules
from firnline.topics.weights import FLOWS, FlowWeights, ModelFlow

_WORDS_MAX: Final = 5
"""Content words that are counted; a message with more has a clear subject."""

# Weights that were set by hand, because these signs are clear, but rare in any sample.
_SWITCHING: Final = 2.5
_RETURNING: Final = 1.5
_PAUSE: Final = 2.5
_PAUSE_SECONDS: Final = 6 * 3_600.0


def flow_of(model: str, rules: Rules) -> ModelFlow | None:
    """The weights of a model; None if the similarity alone decides.

    It does with models that were not measured, and if a threshold is set.
    """
    is_set = not isinstance(rules.similarity_threshold, DefaultThreshold)
    return None if is_set or model in rules.likeness else FLOWS.get(model)


class FlowSigns(NamedTuple):
    """What a message says about where it belongs, apart from its subject.

    `words` is how many content words it has, up to 5. `refers`: it refers to something outside, or
    starts like a continuation. `switches` and `returns`: it says that it goes to another subject,
    or back to one. `late`: it comes long after the message before it.
    """

    words: int
    refers: bool = False
    switches: bool = False
    returns: bool = False
    late: bool = False


def signs_of(text: str, pause: float) -> FlowSigns:
    """The signs of a message, `pause` seconds after the topic's last one."""
    look = text[:LOOK_CHARS]
    start, found, late = opening(look), split_words(look), pause > _PAUSE_SECONDS
    switches, returns = SWITCHING.search(start) is not None, RETURNING.search(start) is not None
    if switches or returns:  # it is no continuation, however short it is
        return FlowSigns(_WORDS_MAX, switches=switches, returns=returns, late=late)
    refers = has_reference(found) or starts_like_continuation(found)
    words = min(max(content_weight(found), 1), _WORDS_MAX)
    return FlowSigns(words, refers=refers, late=late)


def stay_terms(signs: FlowSigns, likeness: Sequence[float], *, is_new: bool) -> tuple[float, ...]:
    """What is weighed for the active topic; `is_new`: it has one message of the user."""
    words = (float(signs.words == count) for count in range(1, _WORDS_MAX + 1))
    goes_on = is_new and not (signs.switches or signs.returns)
    return (*likeness, *words, float(goes_on), float(signs.refers))


def return_terms(signs: FlowSigns, likeness: Sequence[float], topics: int) -> tuple[float, ...]:
    """What is weighed for another topic; among many one is similar by chance."""
    return (*likeness, 1.0, signs.words / _WORDS_MAX, math.log2(topics))


def stay_offset(signs: FlowSigns) -> float:
    """The part of the active topic's weight that was not learned."""
    return -(
        _SWITCHING * signs.switches
        + _RETURNING * (signs.returns and not signs.switches)
        + _PAUSE * signs.late
    )


def return_offset(signs: FlowSigns) -> float:
    """The same for another topic."""
    return _RETURNING * signs.returns - _SWITCHING * (signs.switches and not signs.returns)


def choose_topic(
    weights: FlowWeights,
    signs: FlowSigns,
    likenesses: Mapping[int, Sequence[float]],
    active: int,
    *,
    is_new: bool,
) -> int | None:
    """The topic that a message belongs to; None if it opens a new one.

    `likenesses` are the similarities of each topic with the message, and once it is answered, with
    the answer and with both as one text. The highest log-odds win; those of a new topic are 0.
    """
    chosen, most = None, 0.0
    for topic, likeness in likenesses.items():
        if topic == active:
            terms = stay_terms(signs, likeness, is_new=is_new)
            odds = _dot(weights.stay, terms) + stay_offset(signs)
        else:
            terms = return_terms(signs, likeness, len(likenesses))
            odds = _dot(weights.go_back, terms) + return_offset(signs)
        if odds > most:
            chosen, most = topic, odds
    return chosen


def _dot(weights: Sequence[float], terms: Sequence[float]) -> float:
    return sum(weight * term for weight, term in zip(weights, terms, strict=True))
