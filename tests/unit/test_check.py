"""A summary is accepted only if it is within bounds, shorter than its source, true, no refusal."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firnline.digest.check import SummaryProblem, complaint, cut_to, find_problems
from firnline.digest.extractive import summarize
from firnline.log.tokens import counter
from firnline.protocols import Brief
from support.entries import chat, chats, texts

COUNT = counter("gpt-4o-mini").text
ENTRIES = chat(
    *(f"Ana planted {i} trees in Lisbon on day {i}, and they grew well." for i in range(40))
)
BRIEF = Brief(entries=ENTRIES, words_min=10, words_max=40)


def _codes(text: str, brief: Brief = BRIEF, covered: int = 1_000) -> list[str]:
    return [problem.code for problem in find_problems(brief, text, covered, COUNT)]


LONG = (
    "Watering took long every day, because the soil was dry and nobody else had time to help with "
    "it, which is a pity since there was so much to do before the summer heat came back again."
)
GOOD = "Ana planted many trees in Lisbon over 39 days, and all of them grew well."


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        (GOOD, []),
        ("", ["empty"]),
        (" \n", ["empty"]),
        (GOOD + " " + LONG, ["too_long"]),
        ("Trees grew.", ["too_short"]),
        ("I'm sorry, but I can't help with that request at all today.", ["refusal"]),
        ("As an AI, I do not summarise conversations about trees or about planting.", ["refusal"]),
        ("Es tut mir leid, aber dabei kann ich dir heute leider nicht helfen, nie.", ["refusal"]),
        ("Lo siento, pero no puedo ayudar con esto ni hoy ni nunca jamás, amigo.", ["refusal"]),
        ("Marta planted many trees in Lisbon, and all of them grew well there.", ["unsupported"]),
        ("Ana planted 77 trees in Lisbon, and all of them grew well over there.", ["unsupported"]),
        ("Ana planted trees. " * 6, ["echo"]),
        ("Ana planted trees. Here it is, all of it, as asked: ```json {the trees", ["broken"]),
    ],
)
def test_each_problem_has_its_code(text, codes):
    assert _codes(text) == codes


def test_a_summary_must_be_shorter_than_what_it_covers():
    assert _codes(GOOD, covered=int(COUNT(GOOD))) == ["not_shorter"]
    assert _codes(GOOD, covered=int(COUNT(GOOD)) + 1) == []


def test_tokens_are_bounded_too():
    assert _codes(GOOD, Brief(entries=ENTRIES, words_max=40, tokens_max=5)) == ["too_long"]


def test_short_is_fine_when_there_is_little_to_say():
    assert _codes("Ana paid.", Brief(entries=chat("Ana paid."), words_min=100, words_max=150)) == []


def test_an_apology_inside_a_summary_is_no_refusal():
    text = "Ana said she was sorry that she can't plant trees in Lisbon every day."
    assert _codes(text) == []


def test_earlier_text_the_prompt_and_the_date_are_sources_too():
    brief = Brief(entries=ENTRIES, earlier=("Tom came on May 5.",), prompt="Write as Zoe.")
    assert _codes("Zoe tells: Tom came on May 5 and saw that Ana planted trees.", brief) == []


def test_a_wordless_loop_is_an_echo():
    assert "echo" in _codes(
        "red green blue and black are here " * 12, Brief(entries=(), words_max=99)
    )
    assert "echo" in _codes("我们决定使用" * 30, Brief(entries=(), words_max=99))


def test_the_complaint_says_what_to_mend():
    found = find_problems(BRIEF, "Marta planted trees.", 1_000, COUNT)
    text = complaint(found)
    assert "Marta" in text
    assert "at least 10" in text
    assert complaint([]) == ""
    assert complaint([SummaryProblem("empty", "it is empty")]) == (
        "The last summary was rejected: it is empty."
    )


@pytest.mark.requirement("X4")
@pytest.mark.parametrize("words", [(100, 150), (200, 250), (0, 120)])
def test_the_offline_summary_passes_its_own_checks(words):
    brief = Brief(entries=ENTRIES, words_min=words[0], words_max=words[1], tokens_max=1_000)
    assert _codes(summarize(brief, COUNT), brief) == []


@given(chats, texts, st.integers(0, 30), st.integers(0, 30))
@settings(deadline=None)
def test_any_text_can_be_judged_and_cut_within_its_bounds(entries, text, low, more):
    brief = Brief(entries=entries, words_min=low, words_max=low + more, tokens_max=more)
    find_problems(brief, text, 50, COUNT)
    cut = cut_to(text, brief.words_max, brief.tokens_max, COUNT)
    assert "too_long" not in [problem.code for problem in find_problems(brief, cut, 50, COUNT)]
