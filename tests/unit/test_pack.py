"""What goes into a number of tokens: the price of a message, repeats, and packing."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from firnline.log.entry import Entry
from firnline.log.hit import Hit
from firnline.log.message import Message
from firnline.recall.limits import PASSAGE_TOKENS
from firnline.recall.pack import by_value, pack, passage_room, price


def _hit(seq, score, tokens=20, message=None):
    message = message or Message.user(f"What is said in message number {seq}.")
    return Hit("c", Entry(seq, message, tokens, 0, "", "o200k_base"), score, {"words": score})


@given(some.lists(some.integers(0, 50)), some.integers(-5, 100))
def test_what_is_packed_fits_and_nothing_that_would_have_is_left_out(sizes, tokens):
    packed = pack(sizes, lambda size: size, tokens)
    assert sum(packed) <= max(tokens, 0)
    left, kept = tokens, iter(packed)
    for size in sizes:
        if left > 0 and size <= left:
            assert next(kept) == size
            left -= size


def test_one_that_does_not_fit_is_passed_over():
    assert pack([3, 90, 4], lambda size: size, 10) == [3, 4]


@pytest.mark.parametrize("role", ["user", "assistant", "tool"])
def test_a_short_message_has_no_price_and_a_longer_one_never_a_lower_one(role):
    message = Message(role, "text", tool_call_id="1" if role == "tool" else None)
    sizes = (0, 1, 40, 80, 300, 2_000, 10**6)
    prices = [price(_hit(0, 1.0, tokens, message), room=500) for tokens in sizes]
    assert prices[:4] == [0.0] * 4
    assert prices == sorted(prices)
    assert prices[-1] == prices[-2] > 0, "of a long one a passage is shown, however long it is"


def test_a_long_message_that_is_shown_whole_has_the_price_of_all_of_it():
    prices = [price(_hit(0, 1.0, tokens)) for tokens in (40, 300, 2_000, 10**6)]
    assert prices == sorted(set(prices))
    assert prices[1] < price(_hit(0, 1.0, 2_000), room=500) < prices[2]
    assert price(_hit(0, 1.0, 2_000), room=180) < prices[1]


def test_passages_are_as_long_as_there_is_room_for():
    rooms = [passage_room(tokens) for tokens in (None, 0, 500, 1_000, 2_000, 4_000, 10**6)]
    assert rooms[:2] == [PASSAGE_TOKENS] * 2
    assert rooms == sorted(rooms)
    assert rooms[-1] > 100_000, "all of any message"


def test_an_answer_costs_more_than_what_a_person_said_unless_it_is_what_is_asked_for():
    answer, said = Message.assistant("text"), Message.user("text")
    named = Message.assistant("text", name="Ann")
    assert price(_hit(0, 1, 900, answer)) > 2 * price(_hit(0, 1, 900, said)) > 0
    assert price(_hit(0, 1, 900, answer), "assistant") == price(_hit(0, 1, 900, said))
    assert price(_hit(0, 1, 900, named)) == price(_hit(0, 1, 900, said)), "a person in a chat"


def test_a_long_message_comes_after_several_short_ones_that_are_nearly_as_good():
    answer = Message.assistant("A long answer.")
    ordered = by_value(
        [_hit(1, 5.0, 2_000, answer), _hit(2, 4.5), _hit(3, 3.5), _hit(4, 1.0)], room=180
    )
    assert [hit.seq for hit in ordered] == [2, 3, 1, 4]
    assert [hit.score for hit in ordered] == [sum(hit.parts.values()) for hit in ordered]
    assert ordered[2].parts["price"] < 0


def test_one_that_is_far_better_stays_first_however_long_it_is():
    assert by_value([_hit(1, 12.0, 2_000), _hit(2, 4.0)])[0].seq == 1


def test_repeats_are_packed_last_and_none_is_lost():
    twice = Message.user("The red bicycle has a flat tire again.")
    hits = [_hit(1, 5.0, message=twice), _hit(2, 4.0, message=twice), _hit(3, 1.0)]
    ordered = by_value(hits)
    assert [hit.seq for hit in ordered] == [1, 3, 2]
    assert [hit.score for hit in ordered] == [5.0, 1.0, 1.0]
    assert ordered[-1].parts["repeat"] == -3.0


def test_nothing_found_is_nothing_packed():
    assert by_value([]) == []
