"""Which messages repeat a better hit, and which only resemble one."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from firnline.log.hit import Hit
from firnline.log.message import Message, Part, ToolCall
from firnline.recall.limits import REPEATS_COMPARED
from firnline.recall.repeats import without_repeats
from support.entries import entry

NOW = datetime(2026, 3, 11, 12, tzinfo=UTC)
TEXT = "My favorite restaurant is the Blue Lotus on Main Street."


def _hits(*messages, conversation="c"):
    found = [Message.user(m) if isinstance(m, str) else m for m in messages]
    return [
        Hit(conversation, entry(seq, message), float(-seq)) for seq, message in enumerate(found)
    ]


def _kept(*messages):
    return [hit.seq for hit in without_repeats(_hits(*messages))]


@pytest.mark.parametrize(
    "repeat",
    [
        TEXT,
        "my favorite restaurant is the blue lotus, on main street",
        "As I said, my favorite restaurant is the Blue Lotus on Main Street!",
        "My favorite restaurant is Blue Lotus on Main Street.",
    ],
)
def test_the_same_statement_is_there_once_and_the_better_hit_stays(repeat):
    assert _kept(TEXT, "Something else was said.", repeat) == [0, 1]
    assert _kept(repeat, "Something else was said.", TEXT) == [0, 1]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("My order is 48213 and it is late again", "My order is 48214 and it is late again"),
        (
            "We meet on the first floor on Monday at the office",
            "We meet on the first floor at the office",
        ),
        ("I like coffee in the morning with milk", "I do not like coffee in the morning with milk"),
        ("I don't eat meat on any day of the week", "I eat meat on any day of the week"),
        (
            "I flew to Oslo with my sister and her dog",
            "I flew to Oslo with my sister Ana and her dog",
        ),
        ("The new blender in the kitchen is red", "The new blender in the kitchen is grey"),
        ("Ana called Ben about the broken car", "Ben called Ana about the broken car"),
        ("We fly from Oslo to Rome on the train", "We fly to Oslo from Rome on the train"),
        ("I would like to live in the old house", "I like to live in the old house"),
        ("It has two rooms and a nice view of it", "It has rooms and a nice view of it"),
        ("Yes, sure!", "Yes, sure!"),
        ("The cat", "The cat sleeps on the sofa all day"),
    ],
)
def test_what_differs_in_a_number_name_date_or_negation_stays(one, other):
    assert _kept(one, other) == [0, 1]
    assert _kept(other, one) == [0, 1]


def test_a_longer_one_that_adds_something_stays():
    short = "I drink coffee in the morning with a little milk"
    long = "I drink strong coffee in the morning with a little milk"
    assert _kept(long, short) == [0]
    assert _kept(short, long) == [0, 1]


def test_another_speaker_or_conversation_repeats_nothing():
    assert _kept(Message.user(TEXT), Message.assistant(TEXT)) == [0, 1]
    assert _kept(Message.user(TEXT, name="Ana"), Message.user(TEXT, name="Ben")) == [0, 1]
    both = [*_hits(TEXT), *_hits(TEXT, conversation="d")]
    assert without_repeats(both) == both


def test_the_same_words_on_another_day_can_be_another_event():
    ran, likes = "I ran five kilometers today.", "I like to run along the river."
    for text, kept in ((ran, [0, 1]), (likes, [0])):
        days = [Message.user(text, created_at=NOW - timedelta(days=days)) for days in (0, 3)]
        assert _kept(*days) == kept
    assert _kept(*(Message.user(ran, created_at=NOW) for _ in range(2))) == [0]


def test_a_message_that_is_more_than_text_repeats_nothing():
    image = Message.user([Part.of_text(TEXT), Part.image("https://example.org/a.png")])
    call = replace(Message.assistant(TEXT), tool_calls=(ToolCall.of("1", "find", {}),))
    assert _kept(image, image) == [0, 1]
    assert _kept(call, call) == [0, 1]


def test_a_long_text_repeats_only_an_equal_one():
    long = "The report says that the harbor was closed. " * 200
    assert _kept(long, long, f"{long} Really.") == [0, 2]


def test_equal_words_are_found_however_far_down():
    others = [f"Statement number {number} about one thing." for number in range(REPEATS_COMPARED)]
    assert _kept(TEXT, *others, TEXT) == list(range(REPEATS_COMPARED + 1))
