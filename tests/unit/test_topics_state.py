"""The state machine of topics: examples of each rule, and invariants."""

import unicodedata
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firnline.context.plan import is_question
from firnline.errors import InputError
from firnline.log.entry import Topic
from firnline.log.message import Message, ToolCall
from firnline.testing.conversations import conversations
from firnline.testing.drafts import START
from firnline.topics import (
    Rules,
    TopicState,
    apply_feedback,
    apply_use,
    assign,
    change_tags,
    is_followup,
    mark_folded,
    merge_pair,
    merge_topics,
    needs_vector,
    replay,
    title_of,
)
from firnline.topics.vectors import pack, unit, unpack
from support.entries import entry

EAST, NORTH, UP = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]
RULES = Rules(likeness={"m": 0.5})
TEXT = "Sourdough bread recipe ingredients"


def said(seq, text=TEXT, *, days=0.0, make=Message.user, **fields):
    at = START + timedelta(days=days, seconds=seq)
    return entry(seq, make(text, created_at=at, **fields))


def run(*pairs, state=None, rules=RULES):
    """The steps of entries with their vectors."""
    steps = []
    for item, vector in pairs:
        now = steps[-1].state if steps else state or TopicState()
        steps.append(assign(now, item, vector, model="m", rules=rules))
    return steps


def test_a_message_joins_the_most_similar_topic_or_opens_one():
    steps = run((said(0), EAST), (said(1), NORTH), (said(2), [0.9, 0.3, 0.0]), (said(3), UP))
    assert [step.topic for step in steps] == [0, 1, 0, 3]
    assert [step.opened for step in steps] == [0, 1, None, 3]
    assert steps[2].match.raw == pytest.approx(0.9487, abs=1e-3)
    assert steps[2].match.similarity > 0.7 > steps[3].match.similarity
    topic = steps[-1].state.topics[0]
    assert (topic.title, topic.entries, topic.access_count, topic.vectors) == (TEXT, 2, 1, 2)
    assert topic.last_active_at == START + timedelta(seconds=2)
    assert steps[-1].state.active == 3


def test_exactly_the_threshold_is_not_enough():
    (_, step) = run((said(0), [1.0, 0.0]), (said(1), [0.5, 0.75**0.5]))
    assert step.match.raw == pytest.approx(0.5, abs=1e-6)
    assert step.topic == (0 if step.match.similarity > 0.7 else 1)


def test_what_the_user_did_not_say_stays_in_the_active_topic():
    call = Message.assistant(tool_calls=[ToolCall.of("c", "f", {})], created_at=START)
    result = Message.tool("3", tool_call_id="c", created_at=START)
    rest = [entry(2, call), entry(3, result), said(4, make=Message.system)]
    steps = run((said(0), EAST), (said(1), NORTH), *((item, EAST) for item in rest))
    assert [step.topic for step in steps[2:]] == [1, 1, 1]
    topic = steps[-1].state.topics[1]
    assert (topic.entries, topic.last_seq, topic.access_count, topic.vectors) == (4, 4, 0, 1)


def test_what_comes_before_the_first_question():
    steps = run(
        (said(0, "Be kind.", make=Message.system), None),
        (said(1, "Hi! How may I help?", make=Message.assistant), None),
        (said(2), EAST),
    )
    assert [step.topic for step in steps] == [None, 1, 1]
    assert (steps[1].opened, steps[2].opened) == (1, None)
    topic = steps[-1].state.topics[1]
    assert (topic.title, topic.entries, topic.access_count) == (TEXT, 2, 0)


def test_a_followup_stays_and_is_no_example_of_the_topic():
    first, second = run((said(0), EAST), (said(1, "and what about the price?"), NORTH))
    assert (second.topic, second.match) == (0, None)
    assert second.state.topics[0].vector == first.state.topics[0].vector
    assert second.state.topics[0].access_count == 1
    assert not needs_vector(said(1, "why?").message)
    assert needs_vector(said(1).message)


def test_a_greeting_opens_a_topic_that_the_first_subject_names():
    steps = run((said(0, "hello"), EAST), (said(1), NORTH), (said(2), UP))
    assert [step.topic for step in steps] == [0, 0, 2]
    assert steps[0].state.topics[0].title == "hello"
    assert steps[-1].state.topics[0].title == TEXT


@pytest.mark.parametrize("vector", [None, [], [0.0, 0.0], [float("nan"), 1.0], [float("inf")]])
def test_without_a_vector_the_active_topic_continues(vector):
    steps = run((said(0), EAST), (said(1), vector), (said(2), None))
    assert [step.topic for step in steps] == [0, 0, 0]
    assert run((said(0), vector), (said(1), EAST))[-1].topic == 0


def test_vectors_of_another_model_or_dimension_are_not_compared():
    (first,) = run((said(0), EAST))
    other = assign(first.state, said(1), EAST, model="n", rules=RULES)
    assert (other.topic, other.match) == (1, None)
    assert assign(first.state, said(1), [1.0, 0.0], model="m", rules=RULES).topic == 1


def test_an_archived_topic_comes_back_when_it_is_spoken_of_again():
    steps = run((said(0), EAST), (said(1, make=Message.assistant), None), (said(2), NORTH))
    state = steps[-1].state
    state = state.having(mark_folded(state.topics[0], [0, 1]))
    (back,) = run((said(3), EAST), state=state)
    topic = back.state.topics[0]
    assert (back.restored, topic.restored_by) == (0, 3)
    assert (topic.active_from, topic.archived, topic.entries) == (0, 0, 3)


def test_a_topic_that_continues_does_not_get_its_archive_back():
    (first,) = run((said(0), EAST))
    state = first.state.having(mark_folded(first.state.topics[0], [0]))
    (step,) = run((said(1), EAST), state=state)
    assert step.restored is None
    assert (step.state.topics[0].active_from, step.state.topics[0].archived) == (1, 1)


def test_too_many_topics_and_the_faded_ones_leave_lowest_first_until_they_fit_again():
    rules = replace(RULES, max_topics=2)
    steps = run(
        (said(0), EAST),
        (said(1, days=1), NORTH),
        (said(2, days=9), UP),
        (said(3, days=9.1), EAST),
        rules=rules,
    )
    assert [step.dormant for step in steps] == [(), (), (0, 1), ()]
    assert steps[3].restored == 0
    state = steps[3].state
    assert not state.topics[0].dormant
    assert state.topics[1].dormant
    assert [topic.id for topic in state.working()] == [0, 2]
    fresh = run((said(0), EAST), (said(1), NORTH), (said(2), UP), rules=rules)
    assert fresh[-1].dormant == ()  # too many, but none has faded


def test_importance_can_be_sent_with_a_message():
    one = run((said(0, metadata={"importance": 0.3}), EAST))[-1].state
    assert one.topics[0].importance == 0.3
    more = run((said(1, metadata={"importance": 0.6}), EAST), state=one)[-1].state
    assert more.topics[0].importance == 0.6
    same = run((said(1, metadata={"importance": 0.1}), EAST), state=one)[-1].state
    assert same.topics[0].importance == 0.3
    for wrong in (True, "high", 7, -1):
        state = run((said(0, metadata={"importance": wrong}), EAST))[-1].state
        assert state.topics[0].importance == 1.0


def test_an_entry_is_put_into_a_topic_once_and_needs_a_time():
    (first,) = run((said(3), EAST))
    with pytest.raises(InputError, match="not after 3"):
        run((said(3), EAST), state=first.state)
    with pytest.raises(InputError, match="no time"):
        run((entry(0, Message.user("Hi")), EAST))


# -- what holds whatever happens ------------------------------------------------------------------


@st.composite
def talks(draw):
    """Entries with times, and vectors for some of them."""
    messages = draw(conversations(steps_max=25))
    days = draw(st.lists(st.floats(-1, 9), min_size=len(messages), max_size=len(messages)))
    at, found = START, []
    for seq, (message, gap) in enumerate(zip(messages, days, strict=True)):
        at += timedelta(days=gap)
        found.append(entry(seq, message.at(at)))
    vector = st.lists(st.floats(-1, 1, width=32), min_size=3, max_size=3) | st.none()
    given = {item.seq: draw(vector) for item in found}
    return found, {seq: vector for seq, vector in given.items() if vector is not None}


few = st.builds(
    Rules, max_topics=st.integers(1, 4), likeness=st.floats(-0.5, 0.9).map(lambda raw: {"m": raw})
)


@given(talks(), few)
def test_every_entry_has_one_topic_and_nothing_is_lost(talk, rules):
    entries, vectors = talk
    steps = list(replay(entries, vectors, model="m", rules=rules))
    state = steps[-1].state
    of = {item.seq: step.topic for item, step in zip(entries, steps, strict=True)}
    placed = [seq for seq, topic in of.items() if topic is not None]
    for item in entries[: len(entries) - len(placed)]:
        assert item.message.role in ("system", "developer")  # and only at the beginning
    assert placed == list(range(len(entries) - len(placed), len(entries)))
    for topic in state.topics.values():
        own = [seq for seq, id_ in of.items() if id_ == topic.id]
        assert (topic.id, topic.entries, topic.last_seq) == (own[0], len(own), own[-1])
    for item, step in zip(entries, steps, strict=True):
        active = step.state.active_topic
        assert active is None or (active.id == step.topic and not active.dormant)
        assert step.state == TopicState.of(step.state.topics.values())
        assert is_question(item.message) or step.opened is None or step.topic == item.seq
        assert all(step.state.topics[topic.id] == topic for topic in step.changed)


@given(talks(), few, st.data())
def test_replay_gives_the_same_from_any_point(talk, rules, data):
    entries, vectors = talk
    steps = list(replay(entries, vectors, model="m", rules=rules))
    assert steps == list(replay(entries, vectors, model="m", rules=rules))
    cut = data.draw(st.integers(0, len(entries) - 1))
    # As a store gives it back: the topics alone, in any order.
    kept = data.draw(st.permutations(list(steps[cut].state.topics.values())))
    rest = replay(entries[cut + 1 :], vectors, state=TopicState.of(kept), model="m", rules=rules)
    assert [step.topic for step in rest] == [step.topic for step in steps[cut + 1 :]]


@given(talks(), few, st.booleans())
def test_merging_preserves_totals(talk, rules, whole):
    entries, vectors = talk
    state = list(replay(entries, vectors, model="m", rules=rules))[-1].state
    among = None if whole or state.active is None else {state.active}
    done = merge_topics(state, rules, among)
    before, after = state.topics.values(), done.state.topics.values()
    for name in ("entries", "access_count"):
        left = [getattr(t, name) for t in after if t.merged_into is None]
        assert sum(left) == sum(getattr(t, name) for t in before)
    assert sum(t.vectors for t in after) == sum(t.vectors for t in before)
    assert set(done.state.topics) == set(state.topics)
    for younger, match in done.into.items():
        assert match.topic < younger
        assert match.similarity >= rules.merge_threshold
        assert done.state.current(younger).merged_into is None
    if state.active is not None:
        assert done.state.active == done.state.current(state.active).id
        assert not done.state.active_topic.dormant
    again = merge_topics(done.state, rules, among if among is None else {done.state.active})
    assert again.into == {}
    assert {topic.id for topic in done.changed} >= set(done.into)


def topic(id_, **fields):
    return Topic(
        **{"id": id_, "title": "t", "created_at": START, "last_active_at": START, **fields}
    )


def test_what_merging_makes_of_two():
    older = topic(
        2, entries=3, archived=2, active_from=9, access_count=4, importance=0.2, dormant=True,
        tags=("b",), model="m", vectors=3, vector=pack(EAST), last_seq=20,
    )  # fmt: skip
    younger = topic(
        5, entries=2, access_count=1, importance=0.9, tags=("a", "b"), model="m", vectors=1,
        vector=pack(NORTH), last_seq=30, last_active_at=START + timedelta(1),
    )  # fmt: skip
    whole, gone = merge_pair(older, younger)
    assert list(unpack(whole.vector)) == [0.75, 0.25, 0.0]
    assert (whole.entries, whole.access_count, whole.importance, whole.tags) == (
        5, 5, 0.9, ("a", "b"),
    )  # fmt: skip
    assert (whole.active_from, whole.archived, whole.dormant, whole.last_seq) == (0, 0, False, 30)
    assert whole.last_active_at == START + timedelta(1)
    assert (gone.merged_into, gone.entries, gone.vectors) == (2, 0, 0)
    other, _ = merge_pair(older, replace(younger, model="n"))
    assert (other.vector, other.vectors) == (older.vector, 3)
    bare, _ = merge_pair(topic(1), younger)
    assert (bare.model, bare.vector, bare.vectors) == ("m", younger.vector, 1)


# -- feedback, tags, titles, vectors --------------------------------------------------------------


@given(st.lists(st.sampled_from(["praise", "blame", "use"]), max_size=60), st.floats(0, 1))
def test_importance_stays_in_its_range_with_smaller_and_smaller_steps(votes, importance):
    kept = topic(0, importance=importance)
    for vote in votes:
        moved = (
            apply_use(kept)
            if vote == "use"
            else apply_feedback(kept, 1 if vote == "praise" else -1)
        )
        assert 0 <= moved.importance <= 1
        up = moved.importance - kept.importance
        room = 1 - kept.importance
        expected = {"praise": 0.25 * room, "use": 0.05 * room, "blame": -0.25 * kept.importance}
        assert up == pytest.approx(expected[vote])
        assert moved.access_count == kept.access_count + (vote == "praise")
        kept = moved
    with pytest.raises(InputError):
        apply_feedback(kept, 2)


def test_tags_are_clean_sorted_and_not_too_many():
    kept = change_tags(topic(0), ["b", "a", "b"])
    assert kept.tags == ("a", "b")
    assert change_tags(kept, ["c"], ["a", "unknown"]).tags == ("b", "c")
    assert len(change_tags(kept, map(str, range(48))).tags) == 50
    for wrong in (["  x"], [""], [7], "abc", map(str, range(49))):
        with pytest.raises(InputError):
            change_tags(kept, wrong)


@given(st.text(max_size=300))
def test_a_title_ends_with_a_full_word(text):
    title = title_of(text)
    collapsed = " ".join(text.split())
    assert len(title) <= 80
    assert collapsed.startswith(title)
    assert title == title.strip()
    if title != collapsed and not unicodedata.category(collapsed[0]).startswith("M"):
        rest = collapsed[len(title) :].lstrip()
        assert not unicodedata.category(rest[0]).startswith("M") or len(title) == 80


def test_a_title_is_not_cut_inside_a_character():
    assert title_of("a" * 79 + "e\u0301 and more") == "a" * 79
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    assert title_of("a" * 78 + family + " at home") == "a" * 78
    flag = "\U0001f1f5\U0001f1f9"
    assert title_of("a" * 79 + flag + " x") == "a" * 79
    assert title_of("a" * 78 + flag + " x") == "a" * 78 + flag
    assert title_of("a" + "\u0301" * 200) == "a" + "\u0301" * 79
    assert title_of(" two\n\t words ") == "two words"


@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=20))
def test_vectors_survive_their_bytes(values):
    assert list(unpack(pack(values))) == values
    made = unit(values)
    assert made is None or sum(x * x for x in made) == pytest.approx(1, abs=1e-4)


@given(st.text(max_size=200))
def test_any_text_is_a_followup_or_not(text):
    assert is_followup(text) in (True, False)


def test_a_title_has_only_words_of_the_messages():
    recalled = said(0, "I hate rain.", metadata={"firnline": "recalled"})
    (step,) = run((recalled, EAST))
    assert "rain" not in "".join(topic.title for topic in step.state.topics.values())
