"""Standalone follow-up questions: by rules, and by a checked model."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firnline.language.stop_words import split_words
from firnline.log.message import Message
from firnline.topics import check_rewrite, standalone, standalone_messages
from firnline.topics.standalone import SUBJECT_CHARS_MAX
from support.entries import chat, entry, texts
from support.subjects import SUBJECTS

LISBON = chat("Tell me about the Alfama apartment in Lisbon.", "It has two rooms.")


def test_a_followup_gets_what_it_is_about():
    made = standalone("What does it cost?", LISBON)
    assert made == "What does it cost? (Alfama apartment, Lisbon)"
    later = (*LISBON, *(entry(2 + i, e.message) for i, e in enumerate(chat(made, "80 euros."))))
    assert "Lisbon" in standalone("and for two people?", later)


@pytest.mark.parametrize(
    ("question", "said", "needed"),
    [
        ("Und was kostet das?", "Erzähl mir von der Wohnung in Lissabon.", "Wohnung"),
        ("Et le prix ?", "Parle-moi de l'appartement à Lisbonne.", "Lisbonne"),
        ("¿Y el precio?", "Háblame del apartamento en Lisboa.", "apartamento"),
        ("why?", "My tomato plants have yellow leaves.", "tomato plants"),
        ("How far is it from the airport?", "Is the Hotel Mundial any good?", "Hotel Mundial"),
    ],
)
def test_in_four_languages(question, said, needed):
    assert needed in standalone(question, chat(said))


def test_a_person_is_named():
    talk = chat("Who designed the Sagrada Familia?", "The architect was Antoni Gaudí.")
    assert "Antoni Gaudí" in standalone("When was he born?", talk)


def test_the_title_helps_when_the_entries_do_not():
    assert standalone("and then?", chat("ok", "Fine."), "Visa for Japan") == (
        "and then? (Visa, Japan)"
    )
    assert standalone("why?", ()) == "why?"


@pytest.mark.parametrize("text", [text for block in SUBJECTS[:12] for text in block[:1]])
def test_what_stands_alone_is_not_changed(text):
    assert standalone(text, LISBON, "Lisbon") == text


@pytest.mark.parametrize(
    "text",
    [
        "When did Tom get his first cat?",
        "What does Anna do while she paints?",
        "What is one of Anna's favorite films?",
        "Is it likely that Anna moves?",
        "How long did it take for Anna to finish?",
        "What does Tom do that he enjoys?",
    ],
)
def test_a_question_that_names_what_its_pronouns_mean_is_not_changed(text):
    assert standalone(text, LISBON, "Lisbon") == text


@pytest.mark.parametrize(
    "text", ["When was she born?", "Which one of them?", "How long does it take?", "Is it likely?"]
)
def test_a_question_that_does_not_gets_its_subject(text):
    assert "Lisbon" in standalone(text, LISBON)


@given(texts, st.lists(texts, max_size=5), texts)
def test_no_word_is_invented_and_little_is_added(question, said, title):
    entries = chat(*said)
    made = standalone(question, entries, title)
    known = {word for text in (question, title, *said) for word in split_words(text)}
    assert set(split_words(made)) <= known
    assert made == question or made.startswith(question.rstrip())
    assert len(made) <= len(question) + SUBJECT_CHARS_MAX + 30


def test_a_model_gets_the_conversation():
    system, user = standalone_messages("What does it cost?", LISBON)
    assert (system["role"], user["role"]) == ("system", "user")
    assert "user: Tell me about the Alfama apartment" in user["content"]
    assert user["content"].endswith("Last question: What does it cost?")


@pytest.mark.parametrize(
    ("answer", "taken"),
    [
        ("What does the Alfama apartment in Lisbon cost?", True),
        ("  What does the Alfama apartment cost? \n", True),
        ("What do the apartments in Lisbon cost?", True),
        ("What does the Alfama apartment in Porto cost?", False),
        ("What does the luxury apartment cost?", False),
        ("What does it\ncost?", False),
        ("", False),
        ("cost " * 200, False),
    ],
)
def test_a_models_answer_is_accepted_only_if_it_adds_nothing(answer, taken):
    made = check_rewrite(answer, "What does it cost?", LISBON)
    expected = answer.strip() if taken else "What does it cost? (Alfama apartment, Lisbon)"
    assert made == expected


@given(texts, texts)
def test_any_answer_of_a_model_is_survived(answer, question):
    assert isinstance(check_rewrite(answer, question, LISBON), str)
    assert isinstance(standalone(question, [entry(0, Message.user(answer))]), str)
