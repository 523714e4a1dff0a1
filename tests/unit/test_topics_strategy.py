"""What is digested of a topic, and what the strategy plans for the view of one topic."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firnline import Budget, strategies
from firnline.context.plan import View, check, units
from firnline.errors import InputError
from firnline.log.entry import Digest, Topic
from firnline.log.message import Message, ToolCall
from firnline.testing.conversations import conversations
from firnline.testing.drafts import START
from firnline.topics import entries_to_fold, is_just_restored, mark_folded
from support.entries import chat, entry

BUDGET = Budget(4_000)
TOPIC = Topic(id=3, title="Bread", created_at=START, last_active_at=START, last_seq=1_000)


def sparse(count, step=3, first=3):
    """Entries of a topic among others: every third of the log."""
    said = chat(*(f"Message {n} on bread." for n in range(count)))
    return tuple(entry(first + step * n, e.message) for n, e in enumerate(said))


def view(entries, topic=TOPIC, **fields):
    return View(next_seq=entries[-1].seq + 1, entries=entries, topic=topic, **fields)


def test_up_to_twelve_nothing_is_digested_and_above_all_but_four():
    assert entries_to_fold(sparse(12)) == ()
    assert entries_to_fold(sparse(13)) == tuple(e.seq for e in sparse(13)[:9])
    with pytest.raises(InputError):
        entries_to_fold(sparse(3), 4, 5)


def test_a_tool_call_is_not_parted_from_its_results():
    calls = Message.assistant(tool_calls=[ToolCall.of(f"c{n}", "f", {}) for n in range(5)])
    results = [Message.tool("1", tool_call_id=f"c{n}") for n in range(5)]
    more = [entry(40 + n, message) for n, message in enumerate([calls, *results])]
    assert entries_to_fold((*sparse(8), *more)) == tuple(e.seq for e in sparse(8))


@settings(deadline=None)
@given(conversations(steps_max=40), st.integers(1, 14), st.integers(1, 6), st.integers(1, 4))
def test_folds_end_between_units_and_keep_enough(messages, most, keep, step):
    entries = [entry(n * step, message) for n, message in enumerate(messages)]
    keep = min(keep, most)
    seqs = entries_to_fold(entries, most, keep)
    assert seqs == tuple(e.seq for e in entries[: len(seqs)])
    assert not seqs or len(entries) - len(seqs) >= keep
    assert len(entries) > most or not seqs
    for unit in units(entries):
        inside = {e.seq for e in unit.entries} & set(seqs)
        assert not inside or len(inside) == len(unit.entries)


def test_the_plan_of_a_young_topic_shows_all_of_it():
    plan = strategies.topics()(view(sparse(5)), BUDGET)
    assert (plan.recent_from, plan.recent_count, plan.digests, plan.folds) == (3, 5, (), ())
    assert plan.heading == "Topic summary: Bread"


def test_the_first_fold_and_the_next_one_that_continues_it():
    entries = sparse(13)
    seen = view(entries)
    plan = strategies.topics()(seen, BUDGET)
    check(seen, plan)
    (fold,) = plan.folds
    assert (fold.topic, fold.first_seq, fold.last_seq) == (3, 3, entries[8].seq)
    assert (fold.fresh_from, fold.takes) == (3, ())
    made = Digest(version=7, first_seq=3, last_seq=entries[8].seq, status="completed")
    later = sparse(22)
    seen = view(
        later[9:],
        topic=mark_folded(TOPIC, entries_to_fold(entries)),
        digests=(made,),
        first_open=entries[8].seq + 1,
    )
    plan = strategies.topics()(seen, BUDGET)
    check(seen, plan)
    (fold,) = plan.folds
    assert (plan.digests, plan.recent_from, plan.recent_count) == ((7,), later[9].seq, 13)
    assert (fold.first_seq, fold.takes, fold.fresh_from) == (3, (7,), later[9].seq)
    assert fold.last_seq == later[17].seq


def test_a_restored_topic_is_shown_in_full_and_not_digested_before_the_answer():
    entries = sparse(21)  # the last is a question
    made = Digest(version=7, first_seq=3, last_seq=entries[15].seq, status="completed")
    back = replace(TOPIC, restored_by=entries[-1].seq)
    options = {"topic": back, "digests": (made,), "first_open": entries[15].seq + 1}
    plan = strategies.topics()(view(entries, **options), BUDGET)
    assert (plan.recent_from, plan.recent_count, plan.digests) == (3, 21, (7,))
    assert plan.folds == ()
    seen = view(sparse(22), **options)
    plan = strategies.topics()(seen, BUDGET)
    check(seen, plan)
    assert plan.folds[0].fresh_from == entries[15].seq + 1
    assert plan.folds[0].last_seq == entries[17].seq


def test_a_round_ends_with_an_answer_or_with_the_next_question():
    back = replace(TOPIC, restored_by=9)
    call = Message.assistant(tool_calls=[ToolCall.of("c", "f", {})])
    asked = entry(9, Message.user("Bread again."))
    assert is_just_restored(back, [asked, entry(10, call)])
    assert not is_just_restored(back, [asked, entry(10, Message.assistant("Yes."))])
    assert not is_just_restored(back, [asked, entry(10, Message.user("Well?"))])
    assert not is_just_restored(TOPIC, [asked])


def test_a_digest_that_covers_all_that_would_be_digested_is_not_made_again():
    entries = sparse(14)
    made = Digest(version=1, first_seq=3, last_seq=entries[10].seq, status="completed")
    seen = view(entries, digests=(made,), first_open=entries[10].seq + 1)
    plan = strategies.topics()(seen, BUDGET)
    assert plan.folds == ()
    assert entries_to_fold(entries) == tuple(e.seq for e in entries[:10])


@settings(deadline=None)
@given(conversations(steps_max=40), st.integers(1, 5))
def test_plans_for_a_topic_among_others_are_lawful(messages, step):
    entries = tuple(entry(3 + n * step, message) for n, message in enumerate(messages))
    seen = view(entries)
    plan = strategies.topics()(seen, BUDGET)
    check(seen, plan)
    assert plan == strategies.topics()(seen, BUDGET)


def test_parameters_are_json_and_checked():
    made = strategies.topics(max_messages=6, keep=2, words=(10, 20))
    assert made.parameters == {"max_messages": 6, "keep": 2, "words": [10, 20]}
    assert strategies.strategy("topics", made.parameters).to_json() == made.to_json()
    for wrong in ({"keep": 0}, {"keep": 13}, {"words": (0, 5)}, {"words": (9, 5)}):
        with pytest.raises(InputError):
            strategies.topics(**wrong)
