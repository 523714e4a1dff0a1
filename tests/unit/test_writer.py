"""Writing to SQLite: by the writer's thread, or at once on the caller's own."""

import asyncio
import queue
import threading
import time

import apsw
import pytest

from firnline import limits
from firnline.errors import (
    InputError,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreNotOpen,
    StoreUnavailable,
)
from firnline.store.sqlite.connection import CHECKPOINT_PAGES, Place, connect
from firnline.store.sqlite.writer import Writer, _Job

BUSY_SECONDS = 20.0


class Hooks:
    """Nothing to do but what a transaction needs; counts the quiet moments."""

    def __init__(self):
        self.quiet = 0
        self.more = False

    def begin(self, connection):
        pass

    def mark(self, connection):
        return connection.total_changes()

    def commit(self, connection):
        connection.execute("COMMIT")

    def forget(self):
        pass

    def idle(self, connection):
        self.quiet += 1
        return self.more


@pytest.fixture
def place(tmp_path):
    place = Place(tmp_path / "store.db", busy_seconds=BUSY_SECONDS)
    with connect(place, writer=True) as connection:
        connection.execute("CREATE TABLE t (x)")
    connection.close()
    return place


@pytest.fixture
def hooks():
    return Hooks()


@pytest.fixture
def writer(place, hooks):
    writer = Writer(place, connect(place, writer=True), hooks)
    yield writer
    writer.close()


@pytest.fixture
def quick(monkeypatch):
    """A disk that is trusted, however slow it is today."""
    monkeypatch.setattr(limits, "COMMIT_QUICK_SECONDS", 60.0)
    monkeypatch.setattr(limits, "COMMITS_PROVING", 0)


def writing(x):
    """Work that writes `x`, and returns on which thread it was done."""

    def work(connection):
        connection.execute("INSERT INTO t VALUES (?)", (x,))
        return threading.current_thread()

    return work


def stored(place):
    connection = connect(place, writer=False)
    try:
        return [x for (x,) in connection.execute("SELECT x FROM t ORDER BY rowid")]
    finally:
        connection.close()


def here(threads):
    return [thread is threading.current_thread() for thread in threads]


@pytest.mark.usefixtures("quick")
async def test_a_small_write_that_is_alone_stays_on_the_callers_thread(writer, place):
    small = await writer.run(writing(1), small=True)
    large = await writer.run(writing(2))
    alone = await writer.run(writing(3), alone=True)
    assert here([small, large, alone]) == [True, False, False]
    assert stored(place) == [1, 2, 3]


@pytest.mark.usefixtures("quick")
async def test_those_who_come_together_share_a_commit_in_their_order(writer, place):
    commits = []
    await writer.run(lambda con: con.set_commit_hook(lambda: bool(commits.append(1))), alone=True)
    threads = await asyncio.gather(*(writer.run(writing(i), small=True) for i in range(50)))
    assert here(threads) == [False] * 50
    assert stored(place) == list(range(50))
    assert len(commits) < 10


@pytest.mark.usefixtures("quick")
async def test_whoever_shared_a_commit_goes_straight_to_where_the_next_is_shared(writer):
    await asyncio.gather(*(writer.run(writing(i), small=True) for i in range(50)))
    threads = [await writer.run(writing(i), small=True) for i in range(2)]
    assert here(threads) == [False, True]


async def test_a_disk_is_trusted_after_a_proof_and_put_to_it_again(writer, monkeypatch):
    monkeypatch.setattr(limits, "COMMIT_QUICK_SECONDS", 60.0)
    monkeypatch.setattr(limits, "COMMITS_PROVING", 3)
    monkeypatch.setattr(limits, "COMMITS_AT_ONCE_MAX", 10)
    threads = [await writer.run(writing(i), small=True) for i in range(25)]
    proof, trust = [False] * 3, [True] * 7
    assert here(threads) == (proof + trust) * 2 + proof + trust[:2]


async def test_one_slow_commit_and_the_thread_takes_over(writer, monkeypatch):
    monkeypatch.setattr(limits, "COMMIT_QUICK_SECONDS", 0.05)
    monkeypatch.setattr(limits, "COMMITS_PROVING", 2)

    def slow(connection):
        time.sleep(0.06)
        return writing(0)(connection)

    works = [writing(1), writing(2), slow, writing(3), writing(4), writing(5)]
    threads = [await writer.run(work, small=True) for work in works]
    # The machine may be slow of itself, so what is sure is only who does not stay here.
    assert here(threads)[:2] == [False, False]
    assert here(threads)[3:5] == [False, False]


async def test_a_slow_disk_never_holds_up_the_loop(writer, monkeypatch):
    monkeypatch.setattr(limits, "COMMIT_QUICK_SECONDS", 0.0)
    threads = [await writer.run(writing(i), small=True) for i in range(limits.COMMITS_PROVING * 2)]
    assert not any(here(threads))


@pytest.mark.usefixtures("quick")
async def test_another_process_is_waited_for_by_the_thread_alone(writer, place):
    assert here([await writer.run(writing(1), small=True)]) == [True]
    other = apsw.Connection(str(place.path))
    other.execute("BEGIN IMMEDIATE")
    waits = asyncio.create_task(writer.run(writing(2), small=True))
    started = time.monotonic()
    for _ in range(100):
        await asyncio.sleep(0)
    assert time.monotonic() - started < BUSY_SECONDS / 2, "the loop was held up"
    assert not waits.done()
    assert writer._pace._quick_ones == 1, "what was not committed proves nothing"
    other.execute("INSERT INTO t VALUES ('other')")
    other.execute("COMMIT")
    other.close()
    assert here([await waits]) == [False]
    assert stored(place) == [1, "other", 2]


@pytest.mark.usefixtures("quick")
async def test_whoever_is_told_that_it_failed_stored_nothing(writer, place):
    def fails(connection):
        writing(1)(connection)
        raise ValueError("no")

    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            await writer.run(fails, small=True)
    assert here([await writer.run(writing(2), small=True)]) == [True]
    assert stored(place) == [2]


@pytest.mark.usefixtures("quick")
async def test_a_commit_that_fails_at_once_is_rolled_back(writer, place):
    await writer.run(lambda con: con.set_commit_hook(lambda: True), alone=True)
    with pytest.raises(Exception, match="constraint"):
        await writer.run(writing(1), small=True)
    await writer.run(lambda con: con.set_commit_hook(None), alone=True)
    await writer.run(writing(2), small=True)
    assert stored(place) == [2]


@pytest.mark.usefixtures("quick")
async def test_the_quiet_moment_comes_after_writes_at_once_too(writer, hooks, monkeypatch):
    monkeypatch.setattr(limits, "INDEX_IDLE_SECONDS", 0.01)
    for number in range(3):
        async with asyncio.timeout(30):
            while hooks.quiet == number:  # the thread then waits for work, not for a moment
                await asyncio.sleep(0.005)
        with writer._in_use:  # until it is over
            pass
        assert here([await writer.run(writing(number), small=True)]) == [True]


@pytest.mark.usefixtures("quick")
async def test_the_quiet_moment_is_not_between_writes_at_once(writer, hooks, monkeypatch):
    monkeypatch.setattr(limits, "INDEX_IDLE_SECONDS", 0.001)
    hooks.more = True
    await writer.run(writing(1), small=True)
    quiet, writer._last = hooks.quiet, time.monotonic() + 3_600  # as if it went on
    writer._jobs.put(None)  # it begins to wait anew
    await asyncio.sleep(0.05)
    assert hooks.quiet <= quiet + 1  # one may have begun already


@pytest.mark.usefixtures("quick")
async def test_the_log_is_emptied_all_the_same(writer, place, monkeypatch):
    monkeypatch.setattr(limits, "COMMITS_PROVING", 1)
    monkeypatch.setattr(limits, "COMMITS_AT_ONCE_MAX", 100)
    for _ in range(3 * CHECKPOINT_PAGES // 10):
        await writer.run(writing(b"x" * 40_000), small=True)
    log = place.path.with_name(f"{place.path.name}-wal")
    assert log.stat().st_size < 2 * CHECKPOINT_PAGES * 4096


@pytest.mark.usefixtures("quick")
async def test_closing_while_some_are_on_their_way_in(place, hooks):
    writer = Writer(place, connect(place, writer=True), hooks)
    tasks = [asyncio.create_task(writer.run(writing(i), small=True)) for i in range(3)]
    await asyncio.sleep(0)
    writer.close()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [StoreNotOpen] * 3
    assert stored(place) == []


@pytest.mark.usefixtures("quick")
async def test_closing_finishes_what_is_in_the_queue(place, hooks):
    writer = Writer(place, connect(place, writer=True), hooks)
    busy, go = threading.Event(), threading.Event()

    def holds(_):
        busy.set()
        go.wait(30)

    tasks = [asyncio.create_task(writer.run(holds, alone=True))]
    await asyncio.to_thread(busy.wait, 30)
    writer._jobs.put(None)  # as a write at once does
    tasks.append(asyncio.create_task(writer.run(writing(1))))
    closing = threading.Thread(target=writer.close)
    async with asyncio.timeout(30):
        while len(writer._jobs) < 2:
            await asyncio.sleep(0)
        closing.start()
        while not writer._closed:
            await asyncio.sleep(0.001)
        go.set()
        await asyncio.gather(*tasks)
    closing.join(30)
    assert stored(place) == [1]


@pytest.mark.usefixtures("quick")
async def test_loops_on_several_threads(writer, place):
    async def many(first):
        for number in range(100):
            await writer.run(writing(first + number), small=True)

    firsts = (0, 1000, 2000, 3000)
    await asyncio.gather(*(asyncio.to_thread(asyncio.run, many(first)) for first in firsts))
    found = stored(place)
    for first in firsts:
        assert [x for x in found if first <= x < first + 100] == list(range(first, first + 100))


@pytest.mark.usefixtures("quick")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_nobody_waits_for_a_thread_that_is_gone(place, hooks, monkeypatch):
    """However that may come about: it is a mistake of ours."""
    writer = Writer(place, connect(place, writer=True), hooks)
    on_their_way = [asyncio.create_task(writer.run(writing(i))) for i in range(3)]
    await asyncio.sleep(0)
    monkeypatch.setattr(writer._transactions, "run_alone", lambda _: 1 / 0)
    writer._jobs.put(_Job(writing(9), asyncio.get_running_loop().create_future(), alone=True))
    writer._thread.join(30)
    async with asyncio.timeout(30):
        outcomes = await asyncio.gather(*on_their_way, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [StoreCorrupt] * 3
        for small in (True, False):
            with pytest.raises(StoreCorrupt, match="has stopped"):
                await writer.run(writing(1), small=small)
    writer.close()


class StalledQueue(queue.SimpleQueue):
    """What CPython's is before 3.13, on a machine that stalls when it begins to wait."""

    def get(self, block=True, timeout=None):
        return super().get(block)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_nobody_is_left_by_a_thread_that_goes(place, hooks, monkeypatch):
    monkeypatch.setattr(limits, "BATCH_WRITES_MAX", 2)
    writer = Writer(place, connect(place, writer=True), hooks)
    monkeypatch.setattr(writer._transactions, "begin", lambda: 1 / 0)
    with writer._in_use:  # those in its hands, an `alone` behind them, and all others
        tasks = [asyncio.create_task(writer.run(writing(i), alone=i == 1)) for i in range(9)]
        await asyncio.sleep(0)
    async with asyncio.timeout(30):
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [StoreError] * 9
    writer.close()


async def test_a_stalled_machine_stops_nobody(place, hooks, monkeypatch):
    monkeypatch.setattr(queue, "SimpleQueue", StalledQueue)
    writer = Writer(place, connect(place, writer=True), hooks)
    try:
        async with asyncio.timeout(30):
            await asyncio.gather(*(writer.run(writing(i)) for i in range(8)))
            await writer.run(writing(8))  # waits for those who shared the last commit; none comes
    finally:
        writer.close()
    assert stored(place) == list(range(9))


@pytest.mark.usefixtures("quick")
async def test_whoever_gave_up_is_not_overtaken(writer, place):
    """What was in line is stored all the same, and before what the same caller wrote next."""
    with writer._in_use:  # the thread has not come to it yet
        given_up = asyncio.create_task(writer.run(writing(1)))
        for _ in range(3):
            await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.wait([given_up])
    await writer.run(writing(2), small=True)
    assert stored(place) == [1, 2]


async def test_nobody_is_overtaken_when_the_disk_turns_slow(writer, place, monkeypatch):
    trusted = iter([True, False, False, False])
    monkeypatch.setattr(writer._pace, "is_quick", lambda: next(trusted))
    await asyncio.gather(writer.run(writing(1), small=True), writer.run(writing(2), small=True))
    assert stored(place) == [1, 2]


async def test_what_writes_nothing_proves_no_disk(writer, monkeypatch):
    monkeypatch.setattr(limits, "COMMIT_QUICK_SECONDS", 60.0)

    def refuses(connection):
        raise InputError("no")

    for _ in range(limits.COMMITS_PROVING):
        await writer.run(lambda con: None, small=True)
        with pytest.raises(InputError):
            await writer.run(refuses, small=True)
    assert here([await writer.run(writing(1), small=True)]) == [False]


async def test_each_caller_gets_an_error_of_its_own(writer, place, monkeypatch):
    def refuse():
        raise apsw.FullError("full")

    await writer.run(lambda con: con.set_commit_hook(refuse), alone=True)
    writes = (writer.run(writing(i)) for i in range(5))
    errors = await asyncio.gather(*writes, return_exceptions=True)
    assert [type(error) for error in errors] == [StoreFull] * 5
    assert len({id(error) for error in errors}) == 5
    assert len({str(error) for error in errors}) == 1
    assert all(isinstance(error.__cause__, apsw.FullError) for error in errors)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("small", [True, False])
async def test_what_fails_unexpectedly_is_undone_even_if_no_change_shows(
    writer, hooks, monkeypatch, small
):
    undone = []
    monkeypatch.setattr(hooks, "forget", lambda: undone.append(1))

    def fails(connection):
        raise MemoryError

    with pytest.raises(MemoryError):
        await writer.run(fails, small=small)
    assert undone


@pytest.mark.usefixtures("quick")
async def test_what_the_caller_is_handling_stays_as_it_is(writer):
    """The frames of an error of ours are let go, not those of whoever meets it."""
    box, go = [], asyncio.Event()

    async def waits():
        kept = "still here"
        try:
            {}["nothing"]
        except LookupError as error:
            box.append(error)
            await go.wait()
        return kept

    def refuses(connection):
        raise InputError("no")

    waiting = asyncio.create_task(waits())
    await asyncio.sleep(0)
    try:
        raise box.pop()
    except LookupError:
        with pytest.raises(InputError):
            await writer.run(refuses, small=True)
    go.set()
    async with asyncio.timeout(30):
        assert await waiting == "still here"


async def test_too_many_waiting(writer, monkeypatch):
    monkeypatch.setattr(limits, "WRITES_WAITING_MAX", 0)
    with pytest.raises(StoreUnavailable, match="slow down"):
        await writer.run(writing(1))
