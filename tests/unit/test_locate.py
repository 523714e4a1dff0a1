"""Passages of long messages: which sentences answer, and how they are shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from firnline.log.entry import Entry
from firnline.log.hit import CUT, Hit, TextSpan, excerpt
from firnline.log.message import Message
from firnline.log.tokens import counter
from firnline.recall import limits
from firnline.recall.locate import Located, passages_of, sentences
from firnline.recall.passage_finder import PassageFinder
from firnline.recall.passages import parts
from firnline.recall.query import AskedQuestion, parse_question
from support.long_texts import essay

KEY = "The spare key hangs behind the kitchen clock, on a red ribbon."
CODE = "The combination of the bicycle lock is 38-12-7."


def _passage(text, question):
    asked = AskedQuestion(question, parse_question(question))
    there = [Located(Message.user(text), counter().text(text))]
    (passage,) = passages_of(asked, there, limits.PASSAGE_TOKENS)
    return passage


@pytest.mark.parametrize("place", [0, 17, 39])
def test_the_sentence_that_answers_is_shown_with_those_around_it(place):
    text = essay(40, {place: KEY})
    passage = _passage(text, "Where is the spare key?")
    shown = excerpt(text, passage)
    assert KEY in shown
    assert counter().text(shown) <= 1.25 * limits.PASSAGE_TOKENS
    assert counter().text(shown) >= 0.5 * limits.PASSAGE_TOKENS, "not the sentence alone"
    assert shown.startswith(CUT) == (passage[0].start > 0)
    assert shown.endswith(CUT) == (passage[-1].end < len(text))


def test_what_is_in_two_places_is_shown_from_both():
    text = essay(60, {5: KEY, 50: CODE})
    shown = excerpt(
        text,
        _passage(text, "Which combination does the lock have, and where does the spare key hang?"),
    )
    assert KEY in shown
    assert CODE in shown
    assert shown.count(CUT) == 3
    assert counter().text(shown) <= 1.25 * limits.PASSAGE_TOKENS


def test_the_sentence_after_a_question_is_shown_with_it():
    text = essay(40, {20: "Where did we put the spare key? Behind the kitchen clock."})
    assert "Behind the kitchen clock." in excerpt(text, _passage(text, "the spare key"))


def test_of_a_message_that_is_little_longer_all_is_shown():
    text = essay(9, {3: KEY})
    assert _passage(text, "Where is the spare key?") == ()
    assert excerpt(text, ()) == text


@pytest.mark.parametrize("text", ["", " \n ", "x" * 5_000, "a\n" * 3_000, "東京に行きたい。" * 500])
def test_any_text_has_a_passage_or_none(text):
    passage = _passage(text, "Where?")
    assert sum(end - start for start, end in passage) <= max(len(text), 1)


@given(some.text("ab. ?!\n東。", max_size=3_000), some.text("ab? 東", max_size=40))
def test_a_passage_is_parts_of_the_text_in_order(text, question):
    passage = _passage(text, question)
    at = 0
    for start, end in passage:
        assert at <= start < end <= len(text)
        at = end + 1
    pieces = [text[start:end] for start, end in passage]
    assert not pieces or all(piece in excerpt(text, passage) for piece in pieces)


def test_places_count_characters_whatever_they_are():
    text = essay(60, {2: "The flag 🇵🇹 and e\u0301clairs 👩‍💻 are here.", 31: f"🔑 {KEY} 🔑"})
    passage = _passage(text, "Where is the spare key?")
    assert any(KEY in text[start:end] for start, end in passage)
    assert all(text[start:end] in excerpt(text, passage) for start, end in passage)


async def test_what_is_read_of_all_long_messages_is_bounded():
    text = essay(60, {31: KEY}) + " And so on." * 6_000
    hits = [
        Hit("c", Entry(seq, Message.user(text), counter().text(text), seq, "", "o200k_base"), 1.0)
        for seq in range(12)
    ]
    asked = AskedQuestion("Where is the spare key?", parse_question("Where is the spare key?"))
    found = await PassageFinder(None, None).find("", asked, hits, limit=12, tokens=None)
    most = limits.PASSAGE_CHARS_ALL // limits.PASSAGE_CHARS_READ
    assert [bool(hit.passage) for hit in found] == [True] * most + [False] * (12 - most)
    assert [hit.entry for hit in found] == [hit.entry for hit in hits]


def test_sentences_are_bounded():
    spans = sentences(f"{'word ' * 1_000}. {essay(5, {})}")
    assert max(end - start for start, end in spans) <= limits.PASSAGE_SENTENCE_CHARS


@given(some.text("ab. \n", min_size=1, max_size=4_000), some.sampled_from([None, "Ann"]))
def test_every_character_that_is_embedded_has_its_place(text, name):
    message = Message.user(text, name=name)
    for part in parts(message):
        for at, char in enumerate(part.text):
            place = part.place(at)
            if place >= 0 and not char.isspace():
                assert message.text[place] == char
        assert part.place(0) == (-1 if name else part.pieces[0].start - min(part.offsets[0], 0))


def test_parts_of_an_excerpt_may_touch_the_ends():
    text = "One. Two. Three."
    assert excerpt(text, (TextSpan(0, 4),)) == f"One. {CUT}"
    assert excerpt(text, (TextSpan(0, 4), TextSpan(10, 16))) == f"One. {CUT} Three."
    assert excerpt(text, (TextSpan(10, 16),)) == f"{CUT} Three."
