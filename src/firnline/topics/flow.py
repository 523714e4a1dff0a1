"""Where a message goes in the flow of a conversation: on with the topic, back to one, or to a new.

A vector alone does not show it: a short question names little of its subject, and is the most
likely to continue. So the similarity to the active topic counts more the less a message says, if it
refers to something, or if it starts like a continuation; after a long pause, less. Words such as
"by the way" and "back to" speak against the active topic. The figures of a model are measured; see
docs/strategies/topics.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from firnline.language.cues import RETURNING, SWITCHING, opening
from firnline.language.stop_words import content_weight, split_words
from firnline.topics.followup import LOOK_CHARS, has_reference, starts_like_continuation
from firnline.topics.rules import DefaultThreshold, Rules
from firnline.topics.similarity import TopicMatch


class Flow(NamedTuple):
    """The cosines of a model above which a message stays in the active topic, or goes back to one.

    One that goes back is nearer to that topic than to the active one by `margin`.
    """

    stay: float
    back: float
    margin: float


FLOWS: Final[Mapping[str, Flow]] = {
    "all-MiniLM-L6-v2-int8": Flow(0.21, 0.22, 0.04),
    "universal-sentence-encoder-multilingual-3": Flow(0.31, 0.29, 0.04),
    "words-1": Flow(0.1, 0.1, 0.04),
}
"""By the name of the embedder. With others, and if a threshold is set, similarity decides."""

# Added to the similarity, as multiples of what is enough to stay, by the weight of what is said.
_SHORT: Final = (2.0, 1.4, 0.5, 0.15)
_REFERRING: Final = 0.3
_CONTINUING: Final = 0.3
_SWITCHING: Final = 0.2
_RETURNING: Final = 0.1
_FEW: Final = 6
_MANY: Final = 0.22
_PAUSE_SECONDS: Final = 6 * 3_600.0


def flow_of(model: str, rules: Rules) -> Flow | None:
    """The figures of a model; None if the similarity alone decides."""
    is_set = not isinstance(rules.similarity_threshold, DefaultThreshold)
    return None if is_set or model in rules.likeness else FLOWS.get(model)


class FlowSigns(NamedTuple):
    """What a message says about where it belongs, apart from its subject.

    `push` counts for the active topic, as a multiple of the model's `stay`. `switches` and
    `returns`: it says that it goes to another subject, or back to one.
    """

    push: float
    switches: bool
    returns: bool


def signs_of(text: str, pause: float) -> FlowSigns:
    """The signs of a message, `pause` seconds after the topic's last one."""
    look = text[:LOOK_CHARS]
    start = opening(look)
    switches = SWITCHING.search(start) is not None
    returns = RETURNING.search(start) is not None
    if switches or returns:
        return FlowSigns(0.0, switches, returns)
    found = split_words(look)
    weight = content_weight(found)
    push = _SHORT[weight] if weight < len(_SHORT) else 0.0
    push += _REFERRING * has_reference(found) + _CONTINUING * starts_like_continuation(found)
    return FlowSigns(push / 2 if pause > _PAUSE_SECONDS else push, switches, returns)


def choose_topic(
    flow: Flow, signs: FlowSigns, matches: Sequence[TopicMatch], active: int | None
) -> int | None:
    """The topic that a message belongs to; None if it opens a new one.

    `matches` are the topics with their similarities, best first.
    """
    here = next((match.raw for match in matches if match.topic == active), -1.0)
    other = next((match for match in matches if match.topic != active), None)
    stay = flow.stay + _SWITCHING * signs.switches
    here += signs.push * flow.stay - _SWITCHING * signs.returns
    # Among many topics one is similar by chance.
    many = _MANY * flow.back * max(math.log2(len(matches) / _FEW), 0.0)
    back = flow.back + many - _RETURNING * signs.returns
    if other is not None and other.raw > max(back, here + flow.margin):
        return other.topic
    return active if here > stay else None
