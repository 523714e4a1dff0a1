"""The receipt counts what a digest kept and lists what it lost."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firnline import Message
from firnline.context.render import residue_line
from firnline.digest.evidence import check_items
from firnline.digest.items import merge
from firnline.digest.receipt import KINDS, describe, receipt
from firnline.digest.rules import extract
from firnline.log import limits
from firnline.log.text import clean_json
from support.entries import chat, chats, entry, texts
from support.message_strategies import json_objects

ENTRIES = chat(
    "I'm Ana. My budget is 1,500 euros until March 3. I prefer short answers.",
    "Fine. See https://example.com/a for details.",
    "We decided to use PostgreSQL. What does Redis cost?",
    "About 20 euros.",
    "And who pays for it?",
)


def _kinds(paper: dict) -> dict:
    return {kind: (tally["kept"], tally["total"]) for kind, tally in paper["kinds"].items()}


def test_a_receipt_says_what_is_covered_kept_and_lost():
    paper = receipt(ENTRIES, "User: I'm Ana. We decided to use PostgreSQL for 1500 euros.", ())
    assert paper["covers"] == {"first_seq": 0, "last_seq": 4, "entries": 5, "tokens": 100}
    assert _kinds(paper) == {
        "names": (2, 3),
        "numbers": (1, 2),
        "dates": (0, 1),
        "urls": (0, 1),
        "decisions": (1, 1),
        "preferences": (0, 1),
        "questions": (0, 1),
    }
    assert paper["kinds"]["numbers"]["lost"] == [{"value": "20", "seq": 3}]
    assert [(row["seq"], row["kind"]) for row in paper["residue"]] == [
        (0, "preferences"),
        (4, "questions"),
        (1, "urls"),
        (0, "dates"),
        (3, "numbers"),
    ]
    assert paper["residue"][3]["quote"] == "My budget is 1,500 euros until March 3."


def test_what_the_items_hold_is_kept():
    items = merge((), check_items(extract(ENTRIES), ENTRIES)[0])
    paper = receipt(ENTRIES, "", items)
    assert [row["quote"] for row in paper["residue"]] == ["And who pays for it?", "About 20 euros."]


def test_a_full_text_loses_nothing():
    text = "\n".join(e.message.text for e in ENTRIES)
    paper = receipt(ENTRIES, text, ())
    assert paper["residue"] == []
    assert all(tally["kept"] == tally["total"] for tally in paper["kinds"].values())


def test_only_questions_without_an_answer_are_open():
    paper = receipt(chat("Is it red?", "Yes.", "Is it big?"), "", ())
    assert paper["kinds"]["questions"]["lost"] == [{"value": "Is it big?", "seq": 2}]


def test_residue_is_carried_along_until_the_text_has_it():
    first = receipt(ENTRIES, "Ana asked something.", ())
    later = chat("Thanks a lot.", "You are welcome.")
    second = receipt(later, "Ana said thanks.", (), first["residue"])
    assert second["residue"] == first["residue"]
    text = "Ana prefers short answers; my budget is 1,500 euros until March 3."
    third = receipt(later, text, (), second["residue"])
    quotes = [row["quote"] for row in third["residue"]]
    assert "My budget is 1,500 euros until March 3." not in quotes
    assert "And who pays for it?" in quotes


def test_recalled_text_and_tool_numbers_do_not_count():
    entries = (
        entry(0, Message.user("Ana paid 99 euros.", metadata={"firnline": "recalled"})),
        entry(1, Message.tool("Tom 1 2 3 4 https://t.org", tool_call_id="c")),
    )
    paper = receipt(entries, "", ())
    assert {kind: total for kind, (_, total) in _kinds(paper).items() if total} == {"urls": 1}


def test_lists_are_bounded_and_counts_exact():
    entries = chat(
        *(f"It costs {i} euros, says https://example.com/{i}" for i in range(1000, 1200))
    )
    paper = receipt(entries, "", ())
    assert paper["kinds"]["urls"]["total"] == 200
    assert len(paper["kinds"]["urls"]["lost"]) == limits.LOST_MAX
    assert len(paper["residue"]) <= limits.RESIDUE_MAX
    assert "and 190 more" in describe(paper)


def test_long_quotes_share_the_room():
    filler = (
        "so many words about nothing at all that nobody would ever want to read them again " * 3
    )
    entries = chat(*(f"It costs {i} euros, {filler}." for i in range(1000, 1040)))
    residue = receipt(entries, "", ())["residue"]
    assert 0 < sum(len(row["quote"]) for row in residue) <= limits.RESIDUE_CHARS_MAX


def test_a_quote_from_a_long_sentence_shows_what_was_lost():
    sentence = "word " * 200 + "the code is 4711 " + "word " * 100
    paper = receipt(chat(sentence), "", ())
    assert "4711" in paper["residue"][0]["quote"]
    assert paper["residue"][0]["quote"] in sentence


def test_a_receipt_can_be_read():
    text = describe(receipt(ENTRIES, "Ana.", ()))
    assert text.startswith("covers messages 0 to 4: 5 messages, 100 tokens")
    assert "numbers: 0 of 2 kept; lost: 1,500 [0], 20 [3]" in text
    assert "[4] And who pays for it?" in text
    assert describe(receipt((), "", ())) == "covers nothing"


@pytest.mark.parametrize("row", [{}, {"seq": "1"}, {"seq": 1, "kind": "x", "quote": "y"}])
def test_damaged_residue_is_left_out(row):
    assert receipt((), "", (), [row])["residue"] == []


@given(chats, texts, st.lists(json_objects, max_size=2))
@settings(deadline=None)
def test_any_conversation_has_a_bounded_receipt_in_json(entries, text, carried):
    paper = receipt(entries, text, (), carried)
    assert clean_json(paper) == paper
    assert list(paper["kinds"]) == list(KINDS)
    assert len(paper["residue"]) <= limits.RESIDUE_MAX
    assert sum(len(row["quote"]) for row in paper["residue"]) <= limits.RESIDUE_CHARS_MAX
    said = {e.seq: e.message.text for e in entries}
    for tally in paper["kinds"].values():
        assert 0 <= tally["kept"] <= tally["total"]
        assert len(tally["lost"]) == min(tally["total"] - tally["kept"], limits.LOST_MAX)
        assert all(row["value"] in said[row["seq"]] for row in tally["lost"])
    assert all(row["quote"] in said[row["seq"]] for row in paper["residue"])
    assert describe(paper)
    again = receipt(entries, text, (), paper["residue"])
    assert again == paper


@pytest.mark.parametrize(
    "said", ["我们决定使用PostgreSQL数据库。", "我叫王小明。", "我喜欢绿茶和红茶。"]
)
def test_what_is_there_without_blanks_is_kept(said):
    paper = receipt(chat(said), f"User: {said} 博物馆早上开门。", ())
    assert paper["residue"] == []
    assert receipt(chat(said), "User: 博物馆早上开门。", ())["residue"] != []


def test_residue_names_the_speaker():
    said = [("Ana", "I prefer tea."), ("Bob", "I prefer mate.")]
    entries = [entry(i, Message.user(text, name=name)) for i, (name, text) in enumerate(said)]
    paper = receipt(entries, "Nothing.", ())
    assert {row["speaker"]: row["quote"] for row in paper["residue"]} == dict(said)
    again = receipt(chat("Thanks."), "Nothing.", (), paper["residue"])
    assert again["residue"] == paper["residue"]


def test_residue_comes_with_what_it_answers_and_suppositions_are_marked():
    entries = chat(
        "Which port does the broker use?",
        "5672, and 15672 for the console.",
        "Suppose we had ten times the traffic, would it hold?",
        "Probably up to 20,000 messages.",
        "Noted. The server has 64 GB.",
    )
    residue = receipt(entries, "User: Hello.", ())["residue"]
    assert [residue_line(row) for row in residue] == [
        "- User: The server has 64 GB.",
        f"- User: {entries[2].message.text} Assistant: (supposed) {entries[3].message.text}",
        "- User: Which port does the broker use? Assistant: 5672, and 15672 for the console.",
    ]
    again = receipt(chat("Thanks."), "User: Thanks.", (), residue)["residue"]
    assert again == residue


def test_of_an_answered_question_nothing_is_carried_along():
    """The question is not a statement; its numbers still count as lost."""
    entries = chat("Is 40,000 euros enough by 3 May?", "No, it takes 55,000 euros.", "And 60,000?")
    paper = receipt(entries, "", ())
    assert [(row["quote"], row.get("answers")) for row in paper["residue"]] == [
        ("And 60,000?", None),
        ("No, it takes 55,000 euros.", "User: Is 40,000 euros enough by 3 May?"),
    ]
    assert paper["kinds"]["numbers"]["total"] == 3


def test_what_a_quote_answers_is_bounded():
    entries = chat(f"Is it {'x' * 50_000}?", "Yes, 4711.")
    row = receipt(entries, "", ())["residue"][0]
    assert row["quote"] == "Yes, 4711."
    assert 0 < len(row["answers"]) <= 250


def test_of_code_only_addresses_count():
    code = (
        "It fails:\n```diff\n@@ -5,3 +5,3 @@\n+ get(30) # see https://example.com/a/b\n```\nWhy 17?"
    )
    paper = receipt(chat(code), "", ())
    assert paper["kinds"]["numbers"]["total"] == 1
    assert [row["quote"] for row in paper["residue"]] == ["Why 17?", "https://example.com/a/b"]


def test_a_row_of_a_table_is_not_carried_along():
    paper = receipt(
        chat("Here:\n\n| key | value |\n|---|---|\n| port | 8080 |\n\nIt has 12 rows."), "", ()
    )
    assert [row["quote"] for row in paper["residue"]] == ["It has 12 rows."]
    assert paper["kinds"]["numbers"]["total"] == 2


def test_a_quote_begins_and_ends_with_full_words():
    words = " ".join(f"word{n}" for n in range(200))
    sentence = f"{words} and the code of the door is 4711 and {words}."
    quotes = [row["quote"] for row in receipt(chat(sentence), "", ())["residue"]]
    assert quotes
    assert all(set(quote.rstrip(".").split()) <= set(sentence[:-1].split()) for quote in quotes)
