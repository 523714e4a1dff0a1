"""Important data has evidence, merges in order, and remembers what it replaced."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firnline import Message
from firnline.digest.evidence import check_items
from firnline.digest.items import (
    DICT_FIELDS,
    FIELDS,
    Item,
    from_json,
    important_data,
    items_from_data,
    merge,
    restore,
    set_aside,
    to_json,
)
from firnline.digest.rules import extract
from firnline.errors import InputError, StoreCorrupt
from firnline.log import limits
from support.entries import chat, entry

EMPTY = {
    "user_preferences": {},
    "key_decisions": [],
    "important_facts": [],
    "source_urls": [],
    "document_structure": {},
    "entities": [],
    "custom_fields": {},
}
ENTRIES = chat(
    "I prefer   dark mode\nat night.", "OK, see https://example.com/A.", "I prefer it light."
)


def _raw(**fields) -> dict:
    plain = {"field": "user_preferences", "name": "theme", "value": "dark", "seqs": [0]}
    return {**plain, "quote": "I prefer dark mode", **fields}


def _prefer(value: str, *seqs: int) -> Item:
    return Item("user_preferences", "theme", value, seqs, f"I prefer {value}")


# -- evidence -----------------------------------------------------------------------------------


@pytest.mark.requirement("A4")
def test_a_quote_counts_whatever_its_case_and_blanks():
    items, aside = check_items([_raw(quote="“i PREFER dark  mode at night”")], ENTRIES)
    assert [item.seqs for item in items] == [(0,)]
    assert aside == ()


@pytest.mark.parametrize("seqs", [[], None, [7], [1], "0", [True]])
def test_a_quote_under_a_wrong_number_is_found_where_it_is(seqs):
    items, _ = check_items([_raw(seqs=seqs)], ENTRIES)
    assert items[0].seqs == (0,)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (_raw(quote="I prefer blue mode"), "its quote is in none of the messages"),
        (_raw(value="Solarized by Ethan"), "its messages do not mention"),
        (_raw(value="17"), "its messages do not mention 17"),
        (_raw(field="favourites"), "it has no such field"),
        (_raw(name=" "), "it has no name"),
        (_raw(name=None), "it has no name"),
        (_raw(value=""), "it has no value"),
        (_raw(quote="a"), "it has no quote"),
        (_raw(value=object()), "is not JSON"),
        ("nonsense", "it has no such field"),
    ],
)
def test_what_has_no_evidence_is_set_aside_with_the_reason(raw, reason):
    items, aside = check_items([raw], ENTRIES)
    assert items == ()
    assert reason in aside[0]["reason"]
    assert "item" in aside[0]
    assert set_aside(to_json(items, aside)) == aside


def test_recalled_text_is_no_evidence():
    recalled = entry(0, Message.user("I prefer dark mode", metadata={"firnline": "recalled"}))
    assert check_items([_raw()], [recalled])[0] == ()


def test_without_a_quote_the_value_is_the_quote():
    urls = {"field": "source_urls", "value": "https://example.com/A", "seqs": [1]}
    items, _ = check_items([urls], ENTRIES)
    assert (items[0].quote, items[0].seqs) == ("https://example.com/A", (1,))


# -- merging ------------------------------------------------------------------------------------


@pytest.mark.requirement("A4")
def test_a_newer_value_wins_and_the_older_one_is_kept():
    items = merge([_prefer("dark", 1)], [_prefer("light", 5)])
    assert items == (Item(*_row(_prefer("dark", 1))[:5], 5), _prefer("light", 5))
    assert important_data(items)["user_preferences"] == {"theme": "light"}
    again = merge(items, [_prefer("dark", 9)])
    assert important_data(again)["user_preferences"] == {"theme": "dark"}
    assert [(item.value, item.seqs) for item in again] == [("dark", (1, 9)), ("light", (5,))]


def _row(item: Item) -> tuple:
    return (item.field, item.name, item.value, item.seqs, item.quote, item.superseded_by)


def test_an_older_value_that_comes_late_does_not_win():
    items = merge([_prefer("light", 5)], [_prefer("dark", 1)])
    assert important_data(items)["user_preferences"] == {"theme": "light"}
    assert [item.superseded_by for item in items] == [5, None]


def test_only_the_same_subject_is_superseded():
    other = Item("custom_fields", "theme", "light", (5,), "light")
    colour = Item("user_preferences", "colour", "red", (6,), "red")
    same = Item("user_preferences", "The_me".replace("_", ""), "blue", (7,), "blue")
    items = merge([_prefer("dark", 1)], [other, colour, same])
    assert [item.superseded_by for item in items] == [7, None, None, None]


def test_a_repetition_adds_evidence():
    items = merge([_prefer("dark", 1)], [_prefer("Dark", 4), _prefer("dark", 4)])
    assert [(item.value, item.seqs) for item in items] == [("dark", (1, 4))]


@pytest.mark.requirement("A4")
def test_lists_continue_in_order_without_repeating_urls_and_entities():
    old = [
        Item("source_urls", "", "https://Example.com/a/", (1,), "x"),
        Item("entities", "", "Ana Silva", (1,), "x"),
    ]
    new = [
        Item("source_urls", "", "https://b.org", (5,), "x"),
        Item("source_urls", "", "https://www.example.com/a", (4,), "x"),
        Item("entities", "", "ana  silva", (6,), "x"),
        Item("entities", "", "Tom", (3,), "x"),
    ]
    data = important_data(merge(old, new))
    assert data["source_urls"] == ["https://Example.com/a/", "https://b.org"]
    assert data["entities"] == ["Ana Silva", "Tom"]


def test_a_replacement_can_be_undone():
    items = restore(merge([_prefer("dark", 1)], [_prefer("light", 5)]), 5)
    assert important_data(items)["user_preferences"] == {"theme": "dark"}
    assert [item.superseded_by for item in items] == [None, 1]
    assert important_data(restore(items, 1))["user_preferences"] == {"theme": "light"}


def test_what_the_application_states_wins_when_it_is_stated():
    items = merge([_prefer("dark", 5)], items_from_data({"user_preferences": {"theme": "light"}}))
    assert important_data(items)["user_preferences"] == {"theme": "light"}
    assert important_data(restore(items, -1))["user_preferences"] == {"theme": "dark"}
    later = merge(items, [_prefer("blue", 9)])
    assert important_data(later)["user_preferences"] == {"theme": "blue"}
    assert important_data(merge(from_json(to_json(later)), ())) == important_data(later)


@pytest.mark.parametrize(
    "data", [{"themes": {}}, {"entities": {}}, {"custom_fields": []}, {"entities": [object()]}]
)
def test_what_the_application_states_has_the_right_shape(data):
    with pytest.raises(InputError):
        items_from_data(data)


def test_there_is_a_bound_and_the_oldest_entities_leave_first():
    entities = [Item("entities", "", f"E{i}", (i,), "x") for i in range(limits.ITEMS_MAX)]
    facts = [Item("important_facts", "", f"F{i}", (i,), "x") for i in range(30)]
    items = merge(entities, facts)
    assert len(items) == limits.ITEMS_MAX
    assert important_data(items)["entities"][0] == "E30"
    assert len(important_data(items)["important_facts"]) == 30


_values = st.sampled_from(["dark", "light", "Ana", "Tom", "https://a.org", "https://A.org/"])
_items = st.builds(
    lambda field, name, value, seqs: Item(
        field, name if field in DICT_FIELDS else "", value, tuple(sorted(seqs)), value
    ),
    st.sampled_from(FIELDS),
    st.sampled_from(["theme", "Theme", "colour"]),
    _values,
    st.sets(st.integers(0, 30), min_size=1, max_size=3),
)
_lists = st.lists(_items, max_size=12)


@given(_lists, _lists)
@settings(deadline=None)
def test_merging_again_changes_nothing_and_order_is_kept(old, new):
    merged = merge(old, new)
    assert merge(merged, new) == merged
    assert merge(merged, ()) == merged
    assert merge((), merged) == merged
    assert [item.seqs[0] for item in merged] == sorted(item.seqs[0] for item in merged)


@given(_lists, _lists)
@settings(deadline=None)
def test_merging_loses_nothing_and_leaves_one_value_for_each_name(old, new):
    merged = merge(old, new)
    said = {seq for item in (*old, *new) for seq in item.seqs}
    kept = {seq for item in merged for seq in item.seqs}
    proved = any(len(item.seqs) == limits.EVIDENCE_MAX for item in merged)
    assert kept == said or (proved and kept < said)
    live = [(item.field, item.name.casefold()) for item in merged if item.superseded_by is None]
    named = [key for key in live if key[0] in DICT_FIELDS]
    assert len(named) == len(set(named))


# -- speakers -----------------------------------------------------------------------------------


def _said(*messages: tuple[str, str | None], first: int = 0) -> tuple[Item, ...]:
    """The items that rules find in what users with these names say."""
    entries = [
        entry(first + i, Message.user(text, name=name)) for i, (text, name) in enumerate(messages)
    ]
    return check_items(extract(entries), entries)[0]


def _preferences(*found: Item) -> dict:
    return important_data(found)["user_preferences"]


GROUP = (
    ("My name is Anna. I am allergic to peanuts.", "Anna"),
    ("My name is Bob. I prefer tea.", "Bob"),
)
BOTH = {
    "name (Anna)": "Anna",
    "peanuts (Anna)": "allergic",
    "name (Bob)": "Bob",
    "tea (Bob)": "prefer",
}


def test_in_a_group_no_user_replaces_facts_about_another():
    assert _preferences(*merge((), _said(*GROUP))) == BOTH


def test_speakers_are_distinguished_across_digests():
    first = from_json(to_json(merge((), _said(GROUP[0]))))
    second = from_json(to_json(merge((), _said(GROUP[1], first=1))))
    assert _preferences(*first) == {"name": "Anna", "peanuts": "allergic"}
    assert _preferences(*merge(first, second)) == BOTH


def test_speakers_of_a_group_are_named_even_if_only_one_has_preferences():
    found = merge((), _said(("I prefer tea.", "Anna"), ("Good morning.", "Bob")))
    assert _preferences(*from_json(to_json(found))) == {"tea (Anna)": "prefer"}


def test_a_single_speaker_needs_no_name():
    found = merge((), _said(("My name is Anna.", None), ("My name is Anne.", "Anna")))
    assert _preferences(*found) == {"name": "Anne"}
    assert [item.superseded_by for item in found if item.name] == [1, None]
    assert "speaker" not in to_json(_said(("I prefer tea.", None)))["items"][0]


def test_in_a_group_a_change_of_mind_and_the_application_replace_the_speakers_own():
    found = merge(_said(*GROUP), _said(("My name is Robert.", "Bob"), first=5))
    assert _preferences(*found) == {**BOTH, "name (Bob)": "Robert"}
    assert _preferences(*restore(found, 5)) == BOTH
    corrected = merge(found, items_from_data({"user_preferences": {"name (Anna)": "Anne"}}))
    assert _preferences(*corrected)["name (Anna)"] == "Anne"


# -- shapes -------------------------------------------------------------------------------------


@pytest.mark.requirement("A4")
@pytest.mark.requirement("A2")
def test_no_items_give_the_empty_structure():
    assert important_data(()) == EMPTY
    assert list(important_data(())) == list(FIELDS)


@pytest.mark.requirement("A4")
def test_plain_structures_merge_like_the_seed_says():
    old = {
        "user_preferences": {"theme": "dark", "tone": "short"},
        "source_urls": ["https://example.com/a"],
        "entities": ["Ana"],
        "important_facts": ["X causes Y"],
    }
    new = {
        "user_preferences": {"Theme": "light"},
        "source_urls": ["https://EXAMPLE.com/a/", "https://b.org"],
        "entities": ["ana", "Tom"],
        "important_facts": ["Z is late"],
    }
    assert important_data(merge(items_from_data(old), items_from_data(new))) == {
        **EMPTY,
        "user_preferences": {"Theme": "light", "tone": "short"},
        "source_urls": ["https://example.com/a", "https://b.org"],
        "entities": ["Ana", "Tom"],
        "important_facts": ["X causes Y", "Z is late"],
    }


@given(_lists)
@settings(deadline=None)
def test_items_come_back_as_they_were_stored(items):
    merged = merge((), items)
    assert from_json(to_json(merged)) == merged


@pytest.mark.parametrize(
    "data",
    [
        {"items": {}},
        {"items": ["x"]},
        {"items": [{"field": "x", "name": "", "value": 1, "seqs": [], "quote": ""}]},
        {"items": [{"field": "entities", "name": "", "value": 1, "seqs": [1.5], "quote": ""}]},
        {"items": [{"field": "entities", "name": "", "value": 1, "seqs": "1", "quote": ""}]},
        {"items": [{"field": "entities", "name": "", "seqs": [1], "quote": ""}]},
        {"items": [{"field": "entities", "name": "", "value": "x", "seqs": [1], "speaker": 5}]},
    ],
)
def test_damaged_data_is_an_error(data):
    with pytest.raises(StoreCorrupt):
        from_json(data)
    assert from_json({}) == ()


def test_damaged_set_aside_is_an_error():
    with pytest.raises(StoreCorrupt):
        set_aside({"set_aside": [1]})


def test_in_a_group_a_fact_says_whose_it_is():
    said = [("I live in Porto.", "Ana"), ("I live in Bonn.", "Bob"), ("I live in Bonn.", "Cy")]
    told = merge((), _said(*said))
    assert important_data(told)["important_facts"] == [
        "Ana: I live in Porto.",
        "Bob: I live in Bonn.",
        "Cy: I live in Bonn.",
    ]
    assert merge(told, told) == told
    assert from_json(to_json(told)) == told
    alone = _said(("I live in Porto.", "Ana"), ("We decided to stay.", "Ana"))
    assert important_data(alone)["important_facts"] == ["I live in Porto."]
    assert important_data(alone)["key_decisions"] == ["We decided to stay."]
