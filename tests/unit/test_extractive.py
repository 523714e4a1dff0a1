"""The offline summary: the source's own sentences, to the word, in order, never a word invented."""

# ruff: noqa: RUF001 - other scripts and their marks are meant

import random
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firnline import Message
from firnline.cli.bench import facts
from firnline.digest import extractive, offline_summarizer
from firnline.language import prose
from firnline.log.tokens import counter
from firnline.protocols import Brief
from support.entries import chat, chats, entry, texts

CHATS = Path(__file__).parents[1] / "support" / "fact_chats.json"
COUNT = counter("gpt-4o-mini").text
A5 = [(100, 150), (200, 250), (300, 350), (400, 450), (500, 750)]
OPENERS = ["We should look at", "I think about", "Nobody knows", "Remember", "The team likes"]
THINGS = [
    "the garden behind the house", "Lisbon in March", "the budget of 1,500 euros", "a new bicycle",
    "PostgreSQL 17", "the train to Porto", "our customers", "the review", "coffee from Kenya",
]  # fmt: skip


def _talk(seed: int, turns: int) -> tuple:
    rng = random.Random(seed)
    return chat(*(
        " ".join(
            f"{rng.choice(OPENERS)} {rng.choice(THINGS)} and {rng.choice(THINGS)}, item {i}-{j}."
            for j in range(rng.randint(1, 4))
        )
        for i in range(turns)
    ))  # fmt: skip


@pytest.mark.requirement("A5")
@pytest.mark.requirement("X4")
@pytest.mark.parametrize(("least", "most"), A5)
def test_the_word_targets_of_every_version_are_met(least, most):
    for seed in range(10):
        brief = Brief(entries=_talk(seed, 80), words_min=least, words_max=most)
        assert least <= len(extractive.summarize(brief).split()) <= most


@pytest.mark.requirement("A5")
def test_later_versions_continue_from_the_earlier_text_and_only_new_messages():
    text = ""
    for version, (least, most) in enumerate(A5):
        entries = tuple(
            entry(version * 40 + e.seq, e.message) for e in _talk(version, 40)
        )  # only those since
        brief = Brief(
            entries=entries, earlier=(text,) if text else (), words_min=least, words_max=most
        )
        before, text = text, extractive.summarize(brief)
        assert least <= len(text.split()) <= most
        old = {s for line in before.splitlines() for s in prose.sentences(line.split(": ", 1)[-1])}
        kept = [sentence for sentence in old if sentence.rstrip(".;…") in text]
        assert len(kept) >= len(old) / 2  # what was worth keeping stays


@pytest.mark.requirement("E5")
def test_what_lies_before_the_window_is_gone():
    entries = chat(
        "My cat is called Minka.", "Nice.", "The dog is Balu.", "Good.", "And Rex.", "OK"
    )
    brief = Brief(
        entries=entries[4:], earlier=("User: My cat is called Minka.",), window=entries, first_seq=2
    )
    text = extractive.summarize(brief)
    assert "Minka" not in text
    assert "Balu" in text


def test_a_summary_reads_as_turns_in_their_order():
    entries = chat(
        "I prefer dark mode. The deadline is March 3",
        "Noted: dark mode it is for you and for everybody else in the whole wide world.",
        "We decided to use PostgreSQL 17. It was https://example.com/a",
        "Good.",
        "Ana agreed with 5 others",
    )
    assert extractive.summarize(Brief(entries=entries, words_max=26)) == (
        "User: I prefer dark mode. The deadline is March 3; We decided to use PostgreSQL 17. "
        "It was https://example.com/a Ana agreed with 5 others"
    )


def test_users_with_names_are_distinguished():
    said = (
        Message.user("My name is Anna. I am allergic to peanuts.", name="Anna"),
        Message.user("My name is Bob. I prefer tea.", name="Bob"),
    )
    entries = tuple(entry(i, message) for i, message in enumerate(said))
    assert extractive.summarize(Brief(entries=entries, words_min=15, words_max=20)) == (
        "Anna: My name is Anna. I am allergic to peanuts.\nBob: My name is Bob. I prefer tea."
    )


@pytest.mark.parametrize(
    ("name", "label"),
    [
        (None, "User"),
        ("Bob: the\nbuilder", "Bob the builder"),
        ("+49 170 123 4567", "+49 170 123 4567"),
        ("李明", "李明"),
        ("assistant", "User"),
        ("System", "User"),
        ("***", "User"),
        ("x" * 99, "x" * 40),
    ],
)
def test_a_name_becomes_a_label_if_it_can_be_read_as_one(name, label):
    said = entry(0, Message.user("The key is under the mat. It is red.", name=name))
    text = extractive.summarize(Brief(entries=(said,), words_max=40))
    assert text.startswith(f"{label}: ")
    again = extractive.summarize(Brief(entries=(), earlier=(text,), words_max=40))
    assert again.startswith(f"{label}: ")


def test_users_keep_their_names_in_later_versions():
    earlier = "Anna: I am allergic to peanuts. The flat in Oslo is mine.\nBob: I prefer tea."
    new = (entry(9, Message.user("We sail on 3 May 2025.", name="Bob")),)
    brief = Brief(entries=new, earlier=(earlier,), words_max=12)
    text = extractive.summarize(brief)
    assert prose.count_words(text) <= 12
    lines = dict(line.split(": ", 1) for line in text.splitlines())
    assert "Bob" in lines
    assert "peanuts" not in lines["Bob"]
    assert "Oslo" not in lines["Bob"]


def test_labels_of_several_words_count_as_such():
    said = [Message.user(f"Item {i} is red.", name=f"Ana Maria {'ST'[i % 2]}.") for i in range(20)]
    entries = tuple(entry(i, message) for i, message in enumerate(said))
    text = extractive.summarize(Brief(entries=entries, words_min=30, words_max=40))
    assert 30 <= prose.count_words(text) <= 40
    assert text.count("Ana Maria") > 2


def test_important_sentences_come_before_small_talk():
    entries = chat(
        "Hello, how are things? Nice weather today, is it not.",
        "Hi! Yes, it is rather nice today, thank you.",
        "We decided to use PostgreSQL 17 from May 3 on. Well, let me see, what else is there.",
        "Sure, take as much time as you need for that.",
        "I prefer short answers. Right, that is it I guess, more or less.",
    )
    text = extractive.summarize(Brief(entries=entries, words_min=12, words_max=20))
    assert "PostgreSQL 17" in text
    assert "short answers" in text


def test_nothing_is_repeated_in_other_words():
    entries = chat(
        "The red train to Porto leaves at noon.",
        "At noon the red train leaves to Porto.",
        "To Porto leaves the red train at noon, yes.",
        "My bicycle has a flat tyre.",
    )
    text = extractive.summarize(Brief(entries=entries, words_min=14, words_max=19))
    assert text.count("Porto") == 1
    assert "bicycle" in text


def test_repetitions_code_and_tool_output_are_shortened():
    code = "```python\nimport os\n" + "\n".join(f"x{i} = {i}" for i in range(200)) + "\n```"
    entries = (
        entry(0, Message.user("Please run it. Please run it. Please run it!")),
        entry(1, Message.assistant(f"Here it is:\n{code}\nThat is all there is to it.")),
        entry(2, Message.tool("row " * 5_000, tool_call_id="c")),
        entry(3, Message.user("The result was 42 for Ana.")),
    )
    text = extractive.summarize(Brief(entries=entries, words_max=200))
    assert text.count("Please run it") == 1
    assert "x150" not in text
    assert "import os…" in text
    assert text.count("row") <= 40
    assert "42 for Ana" in text


def test_a_short_source_gets_shorter_still():
    entries = chat(
        "I like tea. I like rain. I like the sea and long walks in the evening.", "Good."
    )
    brief = Brief(entries=entries, words_min=100, words_max=150)
    assert 0 < len(extractive.summarize(brief).split()) < extractive.source_words(brief)


def test_nothing_gives_nothing():
    assert extractive.summarize(Brief(entries=())) == ""
    injected = Message.user("Recalled text.", metadata={"firnline": "recalled"})
    assert extractive.summarize(Brief(entries=(entry(0, injected),))) == ""


def test_chinese_counts_two_characters_as_a_word():
    assert prose.count_words("我更喜欢深色模式。") == 4
    assert prose.count_words("用PostgreSQL吧, ok") == 3
    sentence = "我们决定在三月使用新的数据库{}，预算是一千五百元。"
    entries = chat(*(sentence.format(i) for i in range(60)))
    text = extractive.summarize(Brief(entries=entries, words_min=100, words_max=150))
    assert 100 <= prose.count_words(text) <= 150


async def test_the_offline_summarizer_keeps_the_token_cap():
    brief = Brief(entries=_talk(1, 60), words_min=100, words_max=150, tokens_max=60)
    written = await offline_summarizer(COUNT)(brief)
    assert 0 < COUNT(written.text) <= 60
    assert (written.made_by, written.calls, written.spent_tokens) == ("offline", 0, 0)


briefs = st.builds(
    lambda entries, earlier, windowed, low, more, tokens: Brief(
        entries=entries, earlier=tuple(earlier), window=entries if windowed else (),
        first_seq=2 if windowed else 0, words_min=low, words_max=low + more, tokens_max=tokens,
    ),
    chats, st.lists(texts, max_size=2), st.booleans(), st.integers(0, 60), st.integers(1, 60),
    st.none() | st.integers(1, 50),
)  # fmt: skip


@given(briefs)
def test_any_conversation_can_be_summarized_within_its_bounds(brief):
    text = extractive.summarize(brief, COUNT)
    assert prose.count_words(text) <= brief.words_max
    if brief.tokens_max is not None:
        assert COUNT(text) <= brief.tokens_max
    elif extractive.source_words(brief) >= brief.words_min:
        assert prose.count_words(text) >= brief.words_min
    assert text == extractive.summarize(brief, COUNT)


@given(st.lists(st.lists(st.sampled_from(THINGS), min_size=1, max_size=9), min_size=1, max_size=40))
def test_no_word_is_invented_and_the_target_is_met(turns):
    entries = chat(*(". ".join(turn) + "." for turn in turns))
    brief = Brief(entries=entries, words_min=20, words_max=30)
    text = extractive.summarize(brief)
    source = {word.strip(".;…") for e in entries for word in e.message.text.split()}
    assert {word.strip(".;…") for word in text.split()} - {"User:", "Assistant:"} <= source
    if extractive.source_words(brief) >= 20:
        assert 20 <= len(text.split()) <= 30


# -- sentences ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("One. Two! Three? Four", 4),
        ("Dr. Keller met J. Smith at 3.30 p.m. in St. Louis.", 1),
        ("See https://a.b/c.d?e=f. It costs 1.5 million, i.e. a lot.", 2),
        ("So X causes Y. This is critical.", 2),
        ("我喜欢茶。你呢？好！", 3),
        ("- first\n- second\n\nThird", 3),
        ("a line that goes\non in the next. End", 2),
        ('He said "Stop." Then he left.', 2),
        ("1. The first point\n2. The second", 2),
        ("No. 5 is alive. No. Never.", 3),
        ("Die Rechnung 1002 ist am 3. März 2026 fällig und beträgt 44 Euro.", 1),
        ("Das Büro ist im 2. Stock, der 3. Versuch gelang. Am 4. Dezember ist Pause.", 2),
        ("Wir brauchen z. B. Schrauben, d. h. Eisen, u. a. Nägel, i. d. R. Alteisen.", 1),
        ("Fällig am 18. d. M. und am 3. 4. 2026, vom 5. Okt. 2026 an.", 1),
        ("Nr. A7 in der Hauptstr. 5, ca. Mitte Mai, bzw. Juni, für 5 Mio. Euro.", 1),
        ("There were 3. Then we left. I am 30. Paris is nice. We saw 3. May I go?", 6),
        ("Sie wohnt im 2. Das ist hoch. Es waren 14. Alle gingen. Er kam 2026. März war kalt.", 6),
        ("Er nahm Vitamin C. Das half. Sie wohnt in der Hauptstr. Dort ist es laut.", 4),
        ("", 0),
    ],
)
def test_sentences_end_where_people_end_them(text, parts):
    assert len(extractive.sentences(text)) == parts, extractive.sentences(text)


@given(st.text())
@settings(deadline=None)
def test_sentences_keep_everything_but_blanks(text):
    assert "".join("".join(extractive.sentences(text)).split()) == "".join(text.split())


# -- cuts ---------------------------------------------------------------------------------------


@given(texts, st.integers(0, 40), st.none() | st.integers(0, 40))
def test_a_cut_never_exceeds_its_bounds(text, words, tokens):
    cut = prose.cut_to(text, words, tokens, COUNT)
    assert prose.count_words(cut) <= words
    assert tokens is None or COUNT(cut) <= tokens
    if prose.count_words(text) <= words and tokens is None:
        assert cut == text
    assert prose.count_words(prose.cut_words(text, words)) <= words


def test_a_cut_ends_with_a_sentence_if_one_fits():
    text = "One two three. Four five six.\nSeven eight nine ten."
    assert prose.cut_to(text, 7, None, None) == "One two three. Four five six."
    assert prose.cut_to(text, 2, None, None) == "One two…"


@given(st.text(), st.integers(0, 60))
def test_a_beginning_and_an_ending_are_parts_of_the_text(text, chars):
    start, end = prose.beginning(text, chars), prose.ending(text, chars)
    assert text.startswith(start)
    assert text.endswith(end)
    assert max(len(start), len(end)) <= chars or chars >= len(text)


@pytest.mark.parametrize("chars", range(20, 90))
def test_a_cut_never_makes_another_number(chars):
    spaced = "Rent is 120500 euros. Heat is 38400 euros. Gas is 7712345 euros. Tax is 99123 euros."
    for text in (spaced, "租金是120500元。电费是38400元，煤气费是7712345元，税是99123元。" * 2):
        known = set(re.findall(r"\d+", text))
        for piece in (prose.beginning(text, chars), prose.ending(text, chars)):
            assert set(re.findall(r"\d+", piece)) <= known


def test_a_colon_announces_only_what_stood_next_to_it():
    code = "Use pytest for the tests of Module Seven:\n```python\nit\nis\n```"
    talk = [Message.assistant(code), Message.assistant("Lisbon has 7 hills and 30 trams.")]
    entries = tuple(entry(i, message) for i, message in enumerate(talk))
    text = extractive.summarize(Brief(entries=entries, words_min=0, words_max=16))
    assert (
        text
        == "Assistant: Use pytest for the tests of Module Seven:… Lisbon has 7 hills and 30 trams."
    )


@given(st.text(st.sampled_from("aB .!?…。！\n\"')’»*1")))
def test_ends_are_all_those_that_a_plain_search_finds(text):
    found = [match.span() for match in prose._sentence_ends(text)]
    assert found == [match.span() for match in prose._END.finditer(text)]


# -- a summary that reads like one ----------------------------------------------------------------


def _unasked(entries, text: str) -> list[str]:
    """The lines that begin with an answer whose question is missing."""
    missing = []
    for line in text.splitlines():
        if not line.startswith("Assistant: "):
            continue
        said = line.removeprefix("Assistant: ").removeprefix("(supposed) ")
        first = prose.sentences(said)[0].removesuffix(prose.ELLIPSIS)
        at = next(i for i, one in enumerate(entries) if first in " ".join(one.message.text.split()))
        asked = [one for one in entries[:at] if one.message.role == "user"][-1:]
        questions = [
            one
            for e in asked
            for one in prose.sentences(e.message.text)
            if one.endswith(("?", "？"))
        ]
        if questions and " ".join(questions[-1].split()[:6]) not in text:
            missing.append(line)
    return missing


@pytest.mark.requirement("A4")
@pytest.mark.parametrize("most", [40, 80, 150])
def test_no_line_begins_with_an_answer_whose_question_is_missing(most):
    for labelled in facts.load(CHATS):
        brief = Brief(entries=labelled.entries, words_min=most * 2 // 3, words_max=most)
        assert _unasked(labelled.entries, extractive.summarize(brief)) == [], labelled.name


def test_an_answer_comes_with_its_question():
    entries = chat(
        "We are four people from Porto, and we need a room from Monday to Thursday in May.",
        "Which room do you want?",
        "The blue one.",
        "How many nights shall I book for the four of you in the blue room?",
    )
    text = extractive.summarize(Brief(entries=entries, words_max=34))
    if "The blue one." in text:
        assert "Which room do you want?" in text
    asked = (
        entry(0, Message.user("Can dogs eat chocolate or grapes at all?")),
        entry(1, Message.assistant("Never: theobromine and tartaric acid poison them.")),
    )
    text = extractive.summarize(Brief(entries=asked, words_min=16, words_max=17))
    assert text.splitlines() == [
        "User: Can dogs eat chocolate or grapes at all?",
        "Assistant: Never: theobromine and tartaric acid poison them.",
    ]
    text = extractive.summarize(Brief(entries=asked, words_max=9))
    assert text.startswith("User: Can dogs")


ASKED = ["Which port does the {} use?", "Who pays for the {}?", "Could you check the {}?"]
ANSWERED = ["{} and {} for the console.", "It is {}, and {} later.", "About {} euros, {} in May."]


@given(
    st.lists(st.tuples(st.sampled_from(ASKED), st.sampled_from(ANSWERED)), min_size=3, max_size=30),
    st.integers(30, 200),
)
def test_a_question_and_its_answer_are_both_there_or_neither(rounds, most):
    said, pairs = [], []
    for number, (ask, answer) in enumerate(rounds):
        question, reply = ask.format(f"broker{number}"), answer.format(9 * number, 7 * number + 1)
        said += [f"We bought the broker{number} in Oslo. {question}", reply]
        pairs.append((question, reply))
    brief = Brief(entries=chat(*said), words_min=most // 2, words_max=most)
    text = extractive.summarize(brief)
    assert prose.count_words(text) <= most
    if extractive.source_words(brief) >= most // 2:
        assert prose.count_words(text) >= most // 2
    known = Counter(reply for _, reply in pairs)
    for question, reply in pairs:
        if known[reply] == 1:
            assert (question in text) == (reply in text), text


def test_a_word_is_not_cut_out_of_a_sentence_to_fill_a_summary():
    entries = chat(
        "Should we use Kafka or RabbitMQ for the order events?",
        "RabbitMQ; your volume is low and you need acks.",
        "ok let's do that",
        "Good.",
        "The owner of the service is Lena Krüger from the payments team, her deadline is 4 May.",
        "Noted.",
    )
    text = extractive.summarize(Brief(entries=entries, words_min=18, words_max=25))
    assert "Noted." not in text
    assert "Good." not in text
    assert all(len(line.split()) > 3 for line in text.splitlines())


def test_a_long_question_is_cut_only_if_there_is_more_to_say():
    long = f"Could you {' and '.join(f'read page {n}' for n in range(40))}?"
    entries = (entry(0, Message.user(long)), entry(1, Message.assistant("All pages are read.")))
    text = extractive.summarize(Brief(entries=entries, words_min=60, words_max=70))
    assert 60 <= len(text.split()) <= 70


def test_what_is_only_supposed_is_marked_until_it_ends():
    said = "Imagine we had 900 users in Oslo. The bill doubles to 800 euros. But today we have 12."
    text = extractive.summarize(Brief(entries=chat(said), words_min=18, words_max=60))
    assert text == (
        "User: (supposed) Imagine we had 900 users in Oslo. (supposed) The bill doubles to 800"
        " euros. But today we have 12."
    )
    again = extractive.summarize(Brief(entries=(), earlier=(text,), words_min=20, words_max=60))
    assert again == text
