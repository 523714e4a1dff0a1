"""The chance that a message is evidence: bounded, in the order of scores, and shared."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as some

from firnline.recall import weights
from firnline.recall.chance import EARNED_CHANCE, chances, count_earned
from firnline.recall.limits import EARNED_MAX
from firnline.recall.rank import RankedEntry

SCORES = some.lists(some.floats(-50, 1_000), max_size=40)


def _scored(*scores, covered=1.0, meaning=None):
    parts = {"around": covered * weights.of(() if meaning is None else ("meaning",))["around"]}
    if meaning is not None:
        parts["meaning"] = meaning * weights.MEANING["meaning"]
    return [RankedEntry(seq, score, parts) for seq, score in enumerate(scores)]


@given(SCORES, some.floats(0, 1), some.none() | some.floats(-1, 1))
def test_every_chance_is_a_probability_in_the_order_of_scores(scores, covered, meaning):
    scores.sort(reverse=True)
    found = chances(_scored(*scores, covered=covered, meaning=meaning))
    assert len(found) == len(scores)
    assert all(math.isfinite(chance) and 0 <= chance <= 1 for chance in found)
    assert all(one >= other for one, other in pairwise(found))


def test_a_sure_answer_ends_the_list_and_likely_ones_share():
    assert count_earned(chances(_scored(14, 6, 5, 5, 4))) == 1
    assert count_earned(chances(_scored(14, 13.8, 13.5, 13.2, 6, 5))) == 4
    assert count_earned(chances(_scored(*[10.0] * 200))) == 0


@pytest.mark.parametrize("meaning", [None, 0.6])
def test_a_question_that_finds_little_has_lower_chances(meaning):
    good = chances(_scored(14, 10, 9, covered=1.0, meaning=meaning))
    poor = chances(_scored(4, 0, -1, covered=0.1, meaning=meaning and meaning / 4))
    assert all(one > other for one, other in zip(good, poor, strict=True))
    assert good[0] > 0.5


def test_what_earns_its_place_goes_up_to_the_last_that_is_likely_enough():
    likely, unlikely = EARNED_CHANCE, EARNED_CHANCE / 2
    assert count_earned([]) == 0
    assert count_earned([unlikely] * 3) == 0
    assert count_earned([likely, unlikely, unlikely]) == 1
    assert count_earned([unlikely, likely, unlikely]) == 2, "a current fact before an outdated one"
    assert count_earned([likely] * 99) == EARNED_MAX


def test_all_weights_of_chances_speak_for_a_message():
    for table in (weights.CHANCE_LEXICAL, weights.CHANCE_MEANING):
        assert all(weight >= 0 for name, weight in table.items() if name != "always")
