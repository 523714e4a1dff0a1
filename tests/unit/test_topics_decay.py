"""Decay of topics: both tables of the seed, exactly."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firnline.errors import InputError
from firnline.log.entry import Topic
from firnline.testing.drafts import START
from firnline.topics import Rules, half_life, memory_type, priority, survival, topic_stats
from firnline.topics.rules import DAY

RULES = Rules()


def topic(**fields):
    return Topic(**{"id": 0, "title": "t", "created_at": START, "last_active_at": START, **fields})


def after(days, accesses, importance=1.0):
    faded = topic(access_count=accesses, importance=importance)
    return priority(faded, START + timedelta(days=days), RULES)


@pytest.mark.requirement("C3")
@pytest.mark.parametrize(
    ("accesses", "days"), [(0, (0, 1, 2, 3, 4, 5)), (20, (0, 16, 32, 48, 64, 80))]
)
def test_priority_by_day_is_the_seeds_table(accesses, days):
    shown = [after(day, accesses) for day in days]
    assert shown == [1.0, 0.5, 0.25, 0.125, 0.0625, 0.03125]
    assert [value < RULES.priority_floor for value in shown] == [False] * 5 + [True]


TIMELINE = [  # accesses, half-life in days, memory type, days until it is gone
    (range(5), 1, "short-term", 5),
    (range(5, 10), 2, "transitioning", 10),
    (range(10, 15), 4, "long-term", 20),
    (range(15, 20), 8, "long-term", 40),
    (range(20, 25), 16, "long-term", 80),
    ((25, 26, 30, 50, 10**9), 30, "long-term", 150),
]


@pytest.mark.requirement("C3")
@pytest.mark.parametrize(("counts", "days", "kind", "gone"), TIMELINE)
def test_consolidation_is_the_seeds_table(counts, days, kind, gone):
    for accesses in counts:
        assert half_life(accesses, RULES) == days * DAY
        assert memory_type(accesses, RULES) == kind
        # The seed counts in whole half-lives: after five of them a topic is below 5 %.
        halves = next(n for n in range(99) if after(n * days, accesses) < RULES.priority_floor)
        assert halves * days == gone
        exact = survival(accesses, RULES)
        assert gone - days < exact / DAY < gone
        assert after(exact / DAY, accesses) == pytest.approx(RULES.priority_floor)


@given(st.floats(0, 1), st.integers(0, 200), st.floats(-1e7, 1e9))
def test_priority_is_between_nothing_and_the_importance(importance, accesses, seconds):
    faded = topic(importance=importance, access_count=accesses)
    now = START + timedelta(seconds=seconds)
    value = priority(faded, now, RULES)
    assert 0 <= value <= importance
    assert value <= priority(replace(faded, access_count=accesses + 5), now, RULES)
    if seconds <= 0:
        assert value == importance


def test_survival_at_the_limits():
    assert survival(0, RULES, importance=0.05) == 0
    assert survival(0, Rules(priority_floor=0.0)) == float("inf")


@pytest.mark.parametrize(
    "fields",
    [
        {"max_topics": 0},
        {"access_threshold_for_lt": 0},
        {"base_half_life_seconds": 0},
        {"base_half_life_seconds": 2, "max_half_life_seconds": 1},
        {"recent_message_keep": 0},
        {"recent_message_keep": 13},
        {"similarity_threshold": 0.9},
        {"importance": 1.1},
        {"priority_floor": -0.1},
        {"likeness": {"m": 1.0}},
    ],
)
def test_invalid_rules_are_rejected(fields):
    with pytest.raises(InputError):
        Rules(**fields)


def test_stats_say_what_the_seed_says():
    kept = topic(
        id=7, title="Features", importance=0.5, access_count=15, entries=12, archived=8, tags=("a",)
    )
    kept = replace(kept, last_active_at=START + timedelta(seconds=3_480))
    told = topic_stats(kept, START + timedelta(hours=1), RULES, has_summary=True).to_json()
    assert told.pop("priority") == pytest.approx(0.5, rel=1e-3)
    assert told == {
        "topic_id": 7,
        "title": "Features",
        "active_messages": 4,
        "archived_messages": 8,
        "total_messages": 12,
        "has_summary": True,
        "importance": 0.5,
        "access_count": 15,
        "memory_type": "long-term",
        "half_life_days": 8.0,
        "age_seconds": 3600.0,
        "inactive_seconds": 120.0,
        "tags": ["a"],
        "dormant": False,
    }
