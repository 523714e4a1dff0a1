"""Backoff, breaker and spend guard in virtual time."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firnline.log.entry import Key
from firnline.models.guard import Allowance, Backoff, Breaker, Spend


class Ticks:
    """A clock that moves on request."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


# -- backoff ----------------------------------------------------------------------------------


def test_the_wait_doubles_from_two_seconds_to_a_quarter_of_an_hour():
    backoff = Backoff(chance=lambda: 1.0)
    assert [backoff.delay(n) for n in range(4)] == [2, 4, 8, 16]
    assert backoff.delay(9) == backoff.delay(10_000) == 900


@given(st.integers(0, 10_000), st.integers())
def test_the_full_wait_is_random(attempt, seed):
    backoff = Backoff(chance=random.Random(seed).random)
    assert 0 <= backoff.delay(attempt) <= min(900, 2 * 2 ** min(attempt, 20))


# -- breaker ----------------------------------------------------------------------------------


def _breaker(clock, **options):
    return Breaker(failures=3, pause=30, clock=clock, chance=lambda: 0.0, **options)


def test_failures_in_a_row_open_the_circuit_and_a_success_between_does_not():
    breaker = _breaker(Ticks())
    for report in (
        breaker.failed,
        breaker.failed,
        breaker.succeeded,
        breaker.failed,
        breaker.failed,
    ):
        report()
        assert breaker.allow() == 0
    breaker.failed()
    assert breaker.state() == "open"
    assert breaker.allow() == 30


def test_after_the_pause_one_caller_may_try():
    clock = Ticks()
    breaker = _breaker(clock)
    for _ in range(3):
        breaker.failed()
    clock.now = 30
    assert breaker.state() == "half-open"
    assert breaker.allow() == 0
    assert breaker.allow() == 30
    breaker.failed()
    assert breaker.allow() == 30
    clock.now = 60
    assert breaker.allow() == 0
    breaker.succeeded()
    assert breaker.state() == "closed"
    assert breaker.allow() == breaker.allow() == 0


def test_a_caller_that_never_reports_does_not_block_the_circuit_for_ever():
    clock = Ticks()
    breaker = _breaker(clock)
    for _ in range(3):
        breaker.failed()
    clock.now = 30
    assert breaker.allow() == 0
    clock.now = 60
    assert breaker.allow() == 0


def test_each_key_has_its_own_circuit_and_their_number_is_bounded():
    breaker = _breaker(Ticks(), keys_max=10)
    for key in range(100):
        for _ in range(3):
            breaker.failed(key)
    assert len(breaker._circuits) == 10
    assert breaker.allow(99) == 30
    assert breaker.allow("other") == 0


@given(st.lists(st.tuples(st.floats(0, 40), st.booleans()), max_size=80), st.integers())
def test_a_broken_endpoint_gets_few_calls(steps, seed):
    """Between two calls of an open circuit lies at least the pause."""
    clock = Ticks()
    breaker = Breaker(failures=3, pause=30, clock=clock, chance=random.Random(seed).random)
    failed_in_a_row, last = 0, 0.0
    for passed, works in steps:
        clock.now += passed
        if breaker.allow():
            continue
        if failed_in_a_row >= 3:
            assert clock.now - last >= 30
        last = clock.now
        failed_in_a_row = 0 if works else failed_in_a_row + 1
        (breaker.succeeded if works else breaker.failed)()


# -- spend ------------------------------------------------------------------------------------

KEY = Key("acme", "c")
STEPS = st.lists(
    st.tuples(
        st.floats(0, 300),  # seconds since the last step
        st.sampled_from("ab"),  # tenant
        st.sampled_from("xyz"),  # conversation
        st.integers(0, 120),  # tokens
        st.integers(0, 30),  # tokens more than that, recorded afterwards
    ),
    max_size=120,
)


@pytest.mark.requirement("A8")
@given(STEPS)
def test_never_more_calls_or_tokens_than_allowed_in_any_window(steps):
    clock = Ticks()
    conversation, tenant, seconds = Allowance(4, 200), Allowance(6, 300), 600.0
    spend = Spend(conversation=conversation, tenant=tenant, seconds=seconds, clock=clock)
    made: list[tuple[float, str, str, int]] = []
    for passed, who, where, tokens, _ in steps:
        clock.now += passed
        if spend.allow(Key(who, where), tokens) == 0:
            made.append((clock.now, who, where, tokens))
    for end, *_ in made:
        recent = [row for row in made if row[0] <= end < row[0] + seconds]
        for who in "ab":
            theirs = [row for row in recent if row[1] == who]
            assert len(theirs) <= tenant.calls
            assert sum(row[3] for row in theirs) <= tenant.tokens
            for where in "xyz":
                its = [row for row in theirs if row[2] == where]
                assert len(its) <= conversation.calls
                assert sum(row[3] for row in its) <= conversation.tokens


def test_a_window_ends_at_one_moment_however_the_clock_rounds():
    first = 1.2599999999999998  # plus 600, less 600: not the same number again
    clock = Ticks(first)
    spend = Spend(conversation=Allowance(1, 200), tenant=Allowance(6, 300), clock=clock)
    assert spend.allow(KEY, 1) == 0
    clock.now = first + 600
    assert spend.allow(KEY, 1) == 0
    assert spend.allow(KEY, 1) > 0


@given(STEPS)
def test_after_the_announced_wait_the_call_is_allowed(steps):
    clock = Ticks()
    spend = Spend(conversation=Allowance(3, 200), tenant=Allowance(5, 300), clock=clock)
    for passed, who, where, tokens, more in steps:
        clock.now += passed
        wait = spend.allow(Key(who, where), tokens)
        assert 0 <= wait <= 600 + 1e-6
        if wait:
            clock.now += wait + 1e-6
            assert spend.allow(Key(who, where), tokens) == 0
        spend.record(Key(who, where), more)


@given(STEPS)
def test_memory_is_bounded_whatever_is_recorded(steps):
    clock = Ticks()
    spend = Spend(conversation=Allowance(3, 200), tenant=Allowance(5, 300), clock=clock, keys_max=4)
    for passed, who, where, tokens, more in steps:
        clock.now += passed
        spend.allow(Key(who, where), tokens)
        for _ in range(20):
            spend.record(Key(who, where), more, calls=1)
        assert len(spend._spent) <= 4
        assert all(len(spent.rows) <= 5 for spent in spend._spent.values())


def test_a_loop_gets_twenty_four_calls_in_ten_minutes():
    clock = Ticks()
    spend = Spend(clock=clock)
    assert [spend.allow(KEY, 100) for _ in range(24)] == [0] * 24
    assert spend.allow(KEY, 100) == 600
    assert spend.allow(Key("acme", "other"), 100) == 0
    clock.now = 600
    assert spend.allow(KEY, 100) == 0


def test_what_a_call_cost_beyond_the_estimate_counts():
    spend = Spend(conversation=Allowance(24, 1_000), clock=Ticks())
    assert spend.allow(KEY, 100) == 0
    spend.record(KEY, 850, calls=2)
    assert spend.allow(KEY, 100) > 0
    assert spend.allow(KEY, 50) == 0


def test_a_call_larger_than_the_allowance_gets_through_alone():
    clock = Ticks()
    spend = Spend(conversation=Allowance(24, 1_000), clock=clock)
    assert spend.allow(KEY, 5_000) == 0
    assert spend.allow(KEY, 1) == 600
    clock.now = 600
    assert spend.allow(KEY, 5_000) == 0


def test_no_allowance_means_no_calls():
    assert Spend(conversation=Allowance(0, 0), clock=Ticks()).allow(KEY, 1) == 600


def test_a_full_table_rejects_rather_than_forgets():
    clock = Ticks()
    spend = Spend(clock=clock, keys_max=4)  # a tenant and three conversations
    assert [spend.allow(Key("t", name), 1) for name in "abc"] == [0, 0, 0]
    assert spend.allow(Key("t", "d"), 1) == 600
    clock.now = 600
    assert spend.allow(Key("t", "d"), 1) == 0
