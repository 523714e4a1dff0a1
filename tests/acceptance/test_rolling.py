"""Seed E: after each round a digest of the newest window, in the background."""

import asyncio
import logging
from datetime import UTC, datetime, timedelta

import pytest

from firnline import Memory, Message, strategies
from firnline.digest import items
from firnline.errors import ConflictError, ModelError
from firnline.strategies.rolling import span

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
PATIENCE = 60.0
"""Seconds after which a test stops waiting: something hangs."""


class Clock:
    def __init__(self):
        self.now = NOW

    def __call__(self):
        return self.now


@pytest.fixture
async def memory(url):
    """A memory whose worker runs when the test says so."""
    async with Memory.open(url, strategy=strategies.rolling(), worker=False) as memory:
        yield memory


async def round_(memory, number, conversation="c"):
    """Save one round: sequence numbers 2n and 2n + 1."""
    asked = Message.user(f"Round {number}: what about item {number}00?")
    told = Message.assistant(
        f"Item {number}00 is in room {number}. It was brought there in spring, when the shelf had"
        " become too small for it, and everything else was put into the cellar."
    )  # a digest of shorter messages would be longer than they are
    await memory.append(conversation, [asked, told])


async def spans(memory, conversation="c"):
    return [(d.first_seq, d.last_seq) for d in await memory.digests(conversation)]


# -- E2, and with it E3, E5, E7 -----------------------------------------------------------------


@pytest.mark.requirement("E2")
@pytest.mark.parametrize(
    ("last", "window"), [(5, (0, 5)), (13, (0, 13)), (15, (2, 15)), (19, (6, 19)), (14, (2, 14))]
)
def test_the_window_is_the_seeds_table(last, window):
    assert span(last) == window


@pytest.mark.requirement("E2")
@pytest.mark.requirement("E3")
@pytest.mark.requirement("E5")
@pytest.mark.requirement("E7")
async def test_a_full_conversation(memory):
    for number in range(12):
        await round_(memory, number)
        await memory.work(once=True)
    assert await spans(memory) == [span(last) for last in range(5, 24, 2)], "E2: the windows"
    _is_a_chain(await memory.digests("c"), await memory.lineage("c"))
    (digest,) = await memory.in_force("c")
    assert (digest.first_seq, digest.last_seq) == (10, 23)
    assert "room 1." not in digest.text, "E5: what lies before the window drops out"
    assert "400" not in digest.text
    assert "1100" in digest.text


def _is_a_chain(digests, lineage):
    """E3: the versions can be listed; E7: times and windows are recorded."""
    assert [d.base for d in digests] == [None, *range(1, len(digests))]
    assert all(d.status == "completed" and d.text and d.created_at for d in digests)
    assert lineage.chain == tuple(range(len(digests), 0, -1))
    assert lineage.stuck == ()
    assert 0 <= lineage.mean_milliseconds <= lineage.max_milliseconds
    assert [d.last_seq - d.first_seq + 1 for d in lineage.digests][-1] == 14


@pytest.mark.requirement("E5")
async def test_important_data_leaves_with_its_messages(memory):
    sizes = []
    for number in range(12):
        asked = (
            f"I always order dish {number} at Cafe Lindqvist{number}. My order {number} was sent."
        )
        await memory.append("c", [Message.user(asked), Message.assistant("Noted.")])
        if not number:
            await memory.remember("c", {"custom_fields": {"plan": "gold"}})
        await memory.work(once=True)
        sizes.append(len(str((await memory.state("c")).important_data)))
    (digest,) = await memory.in_force("c")
    known = items.from_json(digest.data)
    assert {seq for item in known for seq in item.seqs} == set(range(10, 24, 2))
    assert (await memory.state("c")).important_data["custom_fields"] == {"plan": "gold"}
    assert "dish 11" in str(known)
    assert sizes[-1] <= sizes[7] + 20, "a constant size: only the numbers have more digits"
    left = digest.receipt["residue"]
    assert all(row["seq"] >= digest.first_seq for row in left)


@pytest.mark.requirement("E5")
async def test_a_window_starts_with_a_question(memory):
    await memory.append("c", Message.system("Be brief."))
    for number in range(9):
        await round_(memory, number)
    await memory.work(once=True)
    (digest,) = await memory.in_force("c")
    assert (digest.first_seq, digest.last_seq) == (7, 18)
    assert (await memory.read("c"))[digest.first_seq].message.role == "user"
    assert digest.text.startswith("User:")


# -- E1 -----------------------------------------------------------------------------------------


@pytest.mark.requirement("E1")
async def test_nothing_happens_before_sequence_five(memory):
    for number in range(2):
        await round_(memory, number)
        await memory.work(once=True)
    assert await memory.digests("c") == []
    await memory.append("c", Message.user("Third?"))
    await memory.work(once=True)
    assert await memory.digests("c") == [], "a round ends with its answer"
    await memory.append("c", Message.assistant("Third."))
    await memory.work(once=True)
    assert await spans(memory) == [(0, 5)]


@pytest.mark.requirement("E1")
async def test_it_runs_in_the_background_by_itself(url):
    started, go = asyncio.Event(), asyncio.Event()

    async def slow(brief):
        started.set()
        await go.wait()
        return await offline(brief)

    from firnline.digest import offline_summarizer  # noqa: PLC0415
    from firnline.log.tokens import counter  # noqa: PLC0415

    offline = offline_summarizer(counter().text)
    async with Memory.open(url, strategy=strategies.rolling(), summarizer=slow) as memory:
        for number in range(3):
            await asyncio.wait_for(round_(memory, number), PATIENCE)
        await asyncio.wait_for(started.wait(), PATIENCE)
        context = await memory.context("c", 4_000)
        assert context.seqs == (0, 1, 2, 3, 4, 5), "nobody waits for a digest"
        go.set()
        async with asyncio.timeout(PATIENCE):
            while not await memory.in_force("c"):
                await asyncio.sleep(0.01)
        assert await spans(memory) == [(0, 5)]


# -- E4, E5 -------------------------------------------------------------------------------------


@pytest.mark.requirement("E4")
async def test_reading_is_the_newest_digest_and_what_comes_after(memory):
    for number in range(4):
        await round_(memory, number)
    await memory.work(once=True)
    await memory.append("c", Message.user("And now?"))
    context = await memory.context("c", 4_000)
    assert context.seqs == (8,)
    assert [s.name for s in context.sections][-2:] == ["digests", "recent"]
    (digest,) = await memory.in_force("c")
    assert digest.text in context["digests"].messages[0].text


@pytest.mark.requirement("E4")
async def test_without_a_digest_the_messages_are_read_as_they_are(memory):
    for number in range(4):
        await round_(memory, number)
    context = await memory.context("c", 4_000)
    assert context.seqs == tuple(range(8))
    assert not context["digests"].pieces


@pytest.mark.requirement("E5")
async def test_a_model_gets_the_base_and_only_the_messages_since(url):
    briefs = []

    async def summarizer(brief):
        briefs.append(brief)
        return await offline(brief)

    from firnline.digest import offline_summarizer  # noqa: PLC0415
    from firnline.log.tokens import counter  # noqa: PLC0415

    offline = offline_summarizer(counter().text)
    options = {"strategy": strategies.rolling(), "summarizer": summarizer, "worker": False}
    async with Memory.open(url, **options) as memory:
        for number in range(9):
            await round_(memory, number)
            await memory.work(once=True)
        texts = [d.text for d in await memory.digests("c")]
    last = briefs[-1]
    assert [entry.seq for entry in last.entries] == [16, 17]
    assert last.earlier == (texts[-2],)
    assert last.first_seq == 4


# -- E6 -----------------------------------------------------------------------------------------


@pytest.mark.requirement("E6")
async def test_one_task_at_a_time_and_a_stuck_one_is_replaced(url):
    clock, hang = Clock(), asyncio.Event()

    async def hanging(brief):
        await hang.wait()
        raise ModelError("came back too late")

    options = {"strategy": strategies.rolling(), "worker": False, "clock": clock}
    async with Memory.open(url, summarizer=hanging, lease_seconds=300, **options) as memory:
        for number in range(3):
            await round_(memory, number)
        stuck = asyncio.create_task(memory.digest("c"))
        while not await memory.digests("c"):
            await asyncio.sleep(0.01)
        other = Memory(memory.store, lease_seconds=300, **options)
        with pytest.raises(ConflictError):
            await other.digest("c")
        clock.now += timedelta(minutes=5, seconds=1)
        lineage = await memory.lineage("c")
        assert [d.version for d in lineage.stuck] == [1]
        assert await other.digest("c") == 1
        hang.set()
        with pytest.raises((ConflictError, ModelError)):
            await stuck
        statuses = [(d.version, d.status) for d in await memory.digests("c")]
        assert statuses == [(1, "failed"), (2, "completed")]


# -- E7 -----------------------------------------------------------------------------------------


@pytest.mark.requirement("E7")
async def test_the_seeds_log_lines(memory, caplog):
    with caplog.at_level(logging.DEBUG, "firnline"):
        for number in range(8):
            await round_(memory, number)
            await memory.work(once=True)
        await memory.digest("c")
    lines = [(record.levelname, record.getMessage()) for record in caplog.records]
    texts = [text for _, text in lines]
    assert any(t.startswith("Summarized messages 2-15 for c in ") for t in texts)
    assert ("INFO", "Sliding window: dropping seq 0-1 for c") in lines
    assert ("DEBUG", "No new messages to summarize for c") in lines
    assert ("DEBUG", "Memory 6 status updated to completed") in lines


@pytest.mark.requirement("E7")
async def test_a_task_in_progress_is_logged(url, caplog):
    async with Memory.open(url, strategy=strategies.rolling(), worker=False) as memory:
        for number in range(3):
            await round_(memory, number)
        key = memory._key("c")
        await memory.store.lease(key, "somebody", 60)
        with caplog.at_level(logging.DEBUG, "firnline"), pytest.raises(ConflictError):
            await memory.digest("c")
    assert "Summarization already in progress for c" in caplog.text


# -- E8's timeline, here on SQLite and in memory ---------------------------------------------------


@pytest.mark.requirement("E8")
async def test_the_seeds_timeline(memory):
    for number in range(3):
        await round_(memory, number)
    key = memory._key("c")
    lease = await memory.store.lease(key, "the worker", 60)  # round 3 ends: a task begins
    await memory.append("c", Message.user("Round 4?"))
    context = await memory.context("c", 4_000)
    assert context.seqs == tuple(range(7)), "round 4 starts: raw messages 0-6"
    await memory.append("c", Message.assistant("Round 4."))
    assert await memory.work(once=True) == 0, "round 4 ends: skipped, a task is processing"
    await memory.store.release(lease)
    assert await memory.digest("c") == 1
    assert await spans(memory) == [(0, 7)]
    await memory.append("c", Message.user("Round 5?"))
    context = await memory.context("c", 4_000)
    assert context.seqs == (8,), "round 5 starts: the digest and what came after it"
    await memory.append("c", Message.assistant("Round 5."))
    await memory.digest("c")
    assert (await spans(memory))[-1] == (0, 9)
    for number in range(5, 8):
        await round_(memory, number)
        await memory.digest("c")
    assert (await spans(memory))[-1] == (2, 15), "round 8 ends: the window slides"
    digests = await memory.digests("c")
    assert [d.base for d in digests] == [None, *(d.version for d in digests[:-1])]


async def test_closing_never_waits_for_a_worker_that_was_just_woken(tmp_path):
    """At any step of its work: the digest stays pending, and the next worker creates it."""
    url = f"sqlite:///{tmp_path}/store.db"

    async def session(steps):
        async with Memory.open(url, strategy=strategies.rolling()) as memory:
            await round_(memory, steps)  # the append wakes the worker
            for _ in range(steps):
                await asyncio.sleep(0)

    for steps in range(40):
        # Not `timeout`, which would cancel it once more.
        closed, _ = await asyncio.wait([asyncio.ensure_future(session(steps))], timeout=PATIENCE)
        assert closed, f"after {steps} steps"
    later = Clock()
    later.now = datetime.now(UTC) + timedelta(hours=1)  # a lease that was left behind has expired
    rolling = strategies.rolling()
    async with Memory.open(url, strategy=rolling, worker=False, clock=later) as memory:
        assert len(await memory.read("c", limit=100)) == 80
        await memory.work(once=True)
        assert (await spans(memory))[-1] == span(79)


@pytest.mark.promise("tenants-apart")
async def test_a_worker_leaves_other_tenants_alone(tmp_path):
    url = f"sqlite:///{tmp_path}/store.db"
    seen = []

    async def model(messages):
        seen.append(str(messages))
        return "A summary."

    async with Memory.open(url, tenant="b", strategy=strategies.rolling(), worker=False) as private:
        for number in range(4):
            await round_(private, number)
    async with Memory.open(url, tenant="a", model=model) as memory:
        assert await memory.work(once=True) == 0
        assert seen == []
        assert await memory.work(once=True, all_tenants=True) == 1


async def test_a_worker_elsewhere_plans_as_the_application_does(tmp_path):
    """It knows only the store: the application's default strategy is noted there."""
    url = f"sqlite:///{tmp_path}/store.db"
    async with Memory.open(url, strategy=strategies.rolling(), worker=False) as memory:
        for number in range(4):
            await round_(memory, number)
    async with Memory.open(url) as elsewhere:
        assert await elsewhere.work(once=True) == 1
        assert await spans(elsewhere) == [(0, 7)]
        assert (await elsewhere.strategy("c")).name == "layered", "only noted, not chosen"
