"""Which sentence needs another one: answers their questions, "yes" what it agrees to."""

# ruff: noqa: RUF001 - marks of other scripts are meant

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firnline import Message
from firnline.context.render import SUPPOSED
from firnline.digest import replies
from firnline.language import prose

SPEAKERS = ("User", "Assistant")
SAID = [
    "Which port does it use?", "5672.", "Yes please.", "No.", "Book a table for two.", "At seven.",
    "It is red.", "Suppose we had ten times the traffic, would it still hold?", "Good.",
    "If we moved to Austria, it might be seven.", "Imagine we lived in Oslo.", "I'll add them.",
    "But today we have 12.", "We decided to use PostgreSQL 17 for the orders.", "Who pays for it?",
    "Frau Petersen zahlt das.", "你喜欢茶吗？", "喜欢。", "ok let's do that",
    "The garden is behind the house.",
]  # fmt: skip
turns = st.lists(
    st.tuples(
        st.sampled_from([*SPEAKERS, "Tool", "Ana"]),
        st.lists(st.sampled_from(SAID), max_size=5),
        st.booleans(),
    ),
    max_size=20,
)


def _linked(*said: str) -> list[replies.Said]:
    """Messages of a user and the assistant in turn."""
    return replies.linked(
        [(SPEAKERS[i % 2], prose.sentences(text), False) for i, text in enumerate(said)]
    )


def _with(found: list[replies.Said], text: str) -> list[str]:
    """What comes with a sentence."""
    at = next(i for i, said in enumerate(found) if said.text.removeprefix(SUPPOSED).strip() == text)
    return [found[i].text for i in replies.together(found, at)]


@given(turns)
def test_what_is_together_is_bounded_and_in_order(said):
    found = replies.linked(said)
    pieces = [(speaker, piece) for speaker, texts, _ in said for piece in texts]
    shown = [(one.speaker, one.text.removeprefix(f"{SUPPOSED} ")) for one in found]
    assert shown == pieces, "every sentence is there, word for word"
    for number, one in enumerate(found):
        assert -1 <= one.needs < number
        assert one.answer == -1 or one.answer > number
        there = replies.together(found, number)
        assert there == sorted(set(there))
        assert len(there) <= replies.TOGETHER_MAX
        assert not there or {number, *([one.needs] * (one.needs >= 0))} <= set(there)
        for other in there:
            assert found[other].answer in (-1, *there), "a question comes with its answer"


@given(st.integers(1, 60))
def test_a_chain_that_is_too_long_is_nothing(length):
    found = [replies.Said("User", f"It is {i}.", needs=i - 1) for i in range(length)]
    whole = list(range(length)) if length <= replies.TOGETHER_MAX else []
    assert replies.together(found, length - 1) == whole


@pytest.mark.parametrize(
    ("said", "text", "together"),
    [
        (
            ("Which port does the broker use?", "5672, and 15672 for the console."),
            "5672, and 15672 for the console.",
            ["Which port does the broker use?", "5672, and 15672 for the console."],
        ),
        (
            ("Which port does the broker use?", "5672, and 15672 for the console."),
            "Which port does the broker use?",
            ["Which port does the broker use?", "5672, and 15672 for the console."],
        ),
        (
            ("Who else needs access?", "Marek and the on-call group.", "yes", "I'll add them."),
            "I'll add them.",
            ["Who else needs access?", "Marek and the on-call group.", "yes", "I'll add them."],
        ),
        (
            ("I moved.", "Noted. How many bags?", "Two. My train leaves at nine from Munich."),
            "Two.",
            ["How many bags?", "Two."],
        ),
        (
            ("I moved.", "Noted. How many bags?", "Two. My train leaves at nine from Munich."),
            "My train leaves at nine from Munich.",
            ["My train leaves at nine from Munich."],
        ),
        (("你喜欢茶吗？", "喜欢。"), "喜欢。", ["你喜欢茶吗？", "喜欢。"]),
        (
            ("The garden is behind the old house. It is red.",),
            "It is red.",
            ["The garden is behind the old house.", "It is red."],
        ),
    ],
)
def test_answers_and_references_come_with_what_they_need(said, text, together):
    assert _with(_linked(*said), text) == together


@pytest.mark.parametrize(
    ("said", "supposed"),
    [
        (("What does the law say?", "Ten years.", "If we moved, it might be seven."), [2]),
        (("Suppose we had ten users, would it hold?", "Probably. It has room for 20."), [1, 2]),
        (("I plan.", "Suppose it slips: would that do?", "No. The server runs in Oslo now."), [2]),
        (("Imagine we had 900 users. The bill doubles. But today we have 12.",), [0, 1]),
        (("Wie alt ist er?", "80 Jahre.", "Wenn er krank wäre, müsste er weg."), [2]),
        (("We decided to use PostgreSQL. Is it fast?", "Yes, it is."), []),
        (("Could you book a table for two?", "It is booked for seven."), []),
    ],
)
def test_what_is_only_supposed_is_marked(said, supposed):
    found = _linked(*said)
    assert [i for i, one in enumerate(found) if one.text.startswith(SUPPOSED)] == supposed


@pytest.mark.parametrize(
    ("message", "bare"),
    [
        (Message.assistant("5672, and 15672 for the console."), True),
        (Message.user("Yes please."), True),
        (Message.user("It is the blue one."), True),
        (Message.assistant("The broker uses port 5672, and 15672 for the console."), False),
        (Message.user("Thanks a lot!"), False),
        (Message.assistant(f"Yes. {'The garden is behind the old house in Oslo. ' * 9}"), False),
        (Message.system("Yes."), False),
    ],
)
def test_a_bare_answer_says_little_alone(message, bare):
    assert replies.is_bare_answer(message) is bare


@pytest.mark.parametrize("role", ["user", "assistant"])
@pytest.mark.parametrize("text", ["", " ", "..."])
def test_what_has_no_sentence_asks_for_nothing(role, text):
    assert not replies.asks(Message(role, text))
