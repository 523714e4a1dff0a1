"""The benchmarks of contexts and digests run; `make bench` measures."""

import pytest
from benchmarks import contexts, digests, prompts
from benchmarks.bench import Bench
from benchmarks.measure import Pairs

from firnline.strategies import STRATEGIES


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path, quick=True)


async def test_every_strategy_builds_contexts_of_a_long_log(bench):
    rows = [row async for row in contexts.build(bench)]
    assert [row.what.split()[1].strip(",") for row in rows] == list(STRATEGIES)
    assert all(row.ratio and row.target for row in rows)


async def test_a_replay_reports_stability_and_calls(bench):
    rows = [row async for row in contexts.replay(bench)]
    assert len(rows) == len(STRATEGIES) + 1
    assert all(row.ratio is not None and 0 <= row.ratio <= 1 for row in rows)
    layered, *_, rolling = rows[: len(STRATEGIES)]
    assert (layered.missed, layered.other) == (False, "0 calls per 1,000 messages")
    assert rolling.other != layered.other


async def test_prompts_are_compared_with_those_of_the_previous_release(bench):
    used, verbatim, evidence, repeated = [row async for row in prompts.build(bench)]
    assert not any(row.missed for row in (used, verbatim, evidence))
    assert repeated.ratio is not None
    assert float(used.other.split("%")[0]) < used.ratio * 100
    (even,) = [row async for row in prompts.even(bench)]
    assert even.ratio >= 1


async def test_a_digest_is_timed(bench):
    few, many = [row async for row in digests.offline(bench)]
    assert few.ours.endswith(" ms")
    assert many.ratio is not None
    assert Pairs([2.0], [1.0]).cost == 2
