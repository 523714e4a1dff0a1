"""Facts are a view of what was said: adding statement by statement is the same as all at once."""

import asyncio
import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firnline import Memory, Message
from firnline.digest.fact import Revert, profile_facts
from firnline.digest.facts import FactState, all_facts, statements_of
from firnline.digest.testimony import read_statements
from firnline.engine.person import moment
from firnline.errors import InputError, StoreCorrupt
from firnline.log.entry import Entry

START = datetime(2026, 3, 11, 12, tzinfo=UTC)
TEXTS = [
    "I live in Berlin.",
    "I moved to Lisbon.",
    "I no longer live in Lisbon.",
    "I live in Lisbon, Portugal.",
    "I'm vegan.",
    "I've started eating meat again.",
    "I have a dog named Rex.",
    "I have a cat named Tom.",
    "Order 7 is pending.",
    "Order 7 has shipped.",
    "My sister lives in Oslo.",
    "We use Postgres for the backend.",
    "We switched from Postgres to MySQL.",
    "I left Siemens and joined Bosch.",
    "I work at Siemens.",
    "The weather is fine.",
]


def entry(seq, text, minute, role="user", name=None):
    at = START + timedelta(minutes=minute)
    message = Message(role, text, name=name, created_at=at)
    return Entry(seq, message, 1, 1, "", "o200k_base")


def read(*texts):
    """What texts state, each in a conversation of its own, a minute apart."""
    return [
        one
        for n, text in enumerate(texts)
        for one in read_statements(f"c{n}", "ana", [entry(0, text, n)])
    ]


def held(facts):
    return [fact for fact in facts if fact.valid_until is None and fact.reverted_at is None]


def shown(facts):
    return sorted((f.id, f.subject, f.attribute, f.value, f.evidence) for f in facts)


@given(st.lists(st.sampled_from(TEXTS), max_size=14))
@settings(max_examples=60, deadline=None)
def test_a_stored_state_goes_on_as_if_it_had_seen_everything(texts):
    said = read(*texts)
    state = FactState("ana", forgets=True)
    for number, one in enumerate(said, 1):
        state.add(one)
        state = FactState.from_json("ana", json.loads(json.dumps(state.to_json())))
        assert shown(state.in_force) == shown(held(all_facts("ana", said[:number])))


_SAID = st.tuples(st.sampled_from("abc"), st.sampled_from(TEXTS), st.integers(0, 60))


@pytest.mark.promise("one-person")
@given(st.lists(_SAID, min_size=1, max_size=8))
@settings(max_examples=30, deadline=None)
def test_at_every_message_facts_and_profile_equal_the_replay_of_the_log(said):
    """Also of messages that are dated before others, and as known at each of their times."""

    async def run():
        entries = []
        async with Memory.open("memory:", embedder=None, worker=False) as memory:
            for name, text, minute in said:
                at = START + timedelta(minutes=minute)
                stored = await memory.append(name, Message.user(text, created_at=at), person="ana")
                entries.append((name, stored[0]))
                replayed = [
                    one
                    for conversation in "abc"
                    for one in read_statements(
                        conversation, "ana", [e for n, e in entries if n == conversation]
                    )
                ]
                expected = held(all_facts("ana", replayed))
                assert shown((await memory._engine.people.current("ana")).facts) == shown(expected)
                assert shown(await memory.facts(person="ana")) == shown(expected)
            for moment in {one.said_at for f in all_facts("ana", replayed) for one in f.evidence}:
                known = [one for one in replayed if one.evidence.said_at <= moment]
                found = await memory.facts(person="ana", known_at=moment)
                assert shown(found) == shown(held(all_facts("ana", known)))
            count = len(await memory.facts(person="ana"))
            assert await memory.rebuild_facts("ana") == count
            assert shown((await memory.profile("ana")).facts) == shown(expected)

    asyncio.run(run())


@given(st.lists(st.sampled_from(TEXTS), min_size=1, max_size=8), st.data())
@settings(max_examples=40, deadline=None)
def test_a_revert_is_as_if_it_had_never_been_said(texts, data):
    said = read(*texts)
    known = statements_of("ana", said, [])
    if not known:
        return
    ids = frozenset(known[data.draw(st.sampled_from(sorted(known)))])
    without = [one for one in said if one.id not in ids]
    later = max(one.at for one in said) + 1
    found = all_facts("ana", said, [Revert(later, ids)])
    assert shown(held(found)) == shown(held(all_facts("ana", without)))
    assert {fact.id for fact in found if fact.reverted_at} <= ids
    before = all_facts("ana", said, [Revert(later, ids)], START + timedelta(days=-1))
    assert before == []


def test_a_statement_that_is_read_twice_counts_once():
    said = read("I live in Berlin.", "I moved to Lisbon.")
    assert all_facts("ana", [*said, *said]) == all_facts("ana", said)


def test_what_is_said_again_is_evidence_and_the_value_that_says_more_is_shown():
    (fact,) = all_facts("ana", read(*["I live in New York."] * 20, "I live in New York City."))
    assert fact.value == "New York City"
    assert [one.conversation for one in fact.evidence[:1]] == ["c0"]
    assert fact.evidence[-1].conversation == "c20"
    assert len(fact.evidence) <= 8


def test_a_newer_value_is_named_by_the_one_that_it_supersedes():
    facts = all_facts("ana", read("I live in Berlin.", "I moved to Lisbon."))
    berlin, lisbon = sorted(facts, key=lambda fact: fact.value)
    assert (lisbon.value, lisbon.superseded_by) == ("Lisbon", None)
    assert berlin.superseded_by == lisbon.id
    assert berlin.ended_by.quote == "I moved to Lisbon."


def test_an_ending_ends_a_value_without_a_new_one():
    berlin = all_facts("ana", read("I live in Berlin.", "I no longer live in Berlin."))[0]
    assert (berlin.value, berlin.superseded_by) == ("Berlin", None)
    assert berlin.ended_by.quote == "I no longer live in Berlin."
    assert berlin.holds_at(START)
    assert not berlin.holds_at(START + timedelta(minutes=1))


def test_a_state_stays_small_and_a_profile_smaller():
    state = FactState("ana", forgets=True)
    for one in read(*(f"Order {n} is pending." for n in range(700)), "I live in Berlin."):
        state.add(one)
    assert len(state.in_force) == 500
    assert state.in_force[-1].value == "Berlin"
    assert len(profile_facts(state.in_force)) == 60
    assert profile_facts(state.in_force)[0].value == "Berlin"
    assert len(json.dumps(state.to_json())) < 500_000


def test_of_many_orders_only_those_that_may_be_meant_are_compared():
    state = FactState("ana")
    for one in read(*(f"Order {number} has shipped." for number in range(300))):
        state.add(one)
    slots = state._slots
    assert set(slots._alike("order 7", "status")) == {("order 7", "status")}
    assert len(set(slots._alike("order", "status"))) == 300, "any of them may be meant"
    assert len(state.facts) == 300


def test_a_damaged_state_is_not_used():
    with pytest.raises(StoreCorrupt):
        FactState.from_json("ana", {"last": [0, "", 0, 0], "count": 1, "facts": [{}], "held": []})


def test_quotes_are_verbatim_and_code_states_nothing():
    text = "Look:\n```\nI live in Rome.\n```\nI'm vegan. I live in Berlin."
    found = read_statements("c", "ana", [entry(0, text, 0)])
    assert [one.statement.value for one in found] == ["vegan", "Berlin"]
    assert all(one.quote in text for one in found)


@pytest.mark.parametrize(
    "at", ["soon", "2026-13-01", START.replace(tzinfo=None), 5, "2026-01-01T00:00"]
)
def test_a_time_must_be_one(at):
    with pytest.raises(InputError, match="as_of"):
        moment("as_of", at)
