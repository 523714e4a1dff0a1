"""Writing to SQLite: on the writer thread, or directly on the caller's thread."""

import asyncio
import math
import queue
import threading
import time
import traceback

import apsw
import pytest

from firnline.errors import (
    InputError,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreNotOpen,
    StoreUnavailable,
)
from firnline.log import limits
from firnline.store.sqlite.connection import CHECKPOINT_PAGES, DatabaseFile, connect
from firnline.store.sqlite.writer import Writer, _Job

BUSY_SECONDS = 20.0


class Hooks:
    """Nothing to do but what a transaction needs; counts the quiet moments."""

    def __init__(self):
        self.quiet = 0
        self.more = False
        self.pages_late = 0

    def begin(self, connection):
        pass

    def mark(self, connection):
        return connection.total_changes()

    def flush(self, connection):
        pass

    def committed(self, connection):
        pass

    def forget(self):
        pass

    def idle(self, connection):
        self.quiet += 1
        return self.more

    def is_far_behind(self):
        return self.pages_late > 0

    def rest(self):
        self.pages_late = max(self.pages_late - 1, 0)


@pytest.fixture
def place(tmp_path):
    place = DatabaseFile(tmp_path / "store.db", busy_seconds=BUSY_SECONDS)
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


async def together(writer, **options):
    return await asyncio.gather(*(writer.run(writing(i), **options) for i in range(5)))


async def counted_commits(writer):
    """Grows with every commit."""
    commits = []
    await writer.run(lambda con: con.set_commit_hook(lambda: bool(commits.append(1))), alone=True)
    return commits


def here(threads):
    return [thread is threading.current_thread() for thread in threads]


@pytest.mark.usefixtures("quick")
async def test_a_small_write_that_is_alone_stays_on_the_callers_thread(writer, place):
    small = await writer.run(writing(1), size=1)
    large = await writer.run(writing(2))
    alone = await writer.run(writing(3), alone=True)
    assert here([small, large, alone]) == [True, False, False]
    assert stored(place) == [1, 2, 3]


@pytest.mark.usefixtures("quick")
async def test_the_first_concurrent_caller_writes_for_all_in_order(writer, place):
    commits = await counted_commits(writer)
    threads = await asyncio.gather(*(writer.run(writing(i), size=1) for i in range(50)))
    assert here(threads) == [True] * 50
    assert stored(place) == list(range(50))
    assert len(commits) == 1


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("size", [1, math.inf])
async def test_each_caller_of_a_shared_commit_gets_its_own_answer(writer, size):
    works = [lambda _, number=number: number for number in range(50)]
    answers = await asyncio.gather(*(writer.run(work, size=size) for work in works))
    assert answers == list(range(50))


@pytest.mark.usefixtures("quick")
async def test_repeated_callers_share_every_commit(writer, place):
    commits = await counted_commits(writer)

    async def caller(name):
        for number in range(20):
            await writer.run(writing(f"{name} {number}"), size=1)

    await asyncio.gather(*(caller(name) for name in range(9)))
    assert stored(place) == [f"{name} {number}" for number in range(20) for name in range(9)]
    assert len(commits) == 20


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("sizes", [[limits.COMMIT_AT_ONCE_BYTES, 1], [1, math.inf]])
async def test_a_crowd_that_writes_much_is_handed_to_the_thread_in_its_order(writer, place, sizes):
    writes = (writer.run(writing(i), size=size) for i, size in enumerate(sizes))
    assert here(await asyncio.gather(*writes)) == [False, False]
    assert stored(place) == [0, 1]


@pytest.mark.usefixtures("quick")
async def test_a_crowd_that_is_too_large_is_handed_to_the_thread(writer, place, monkeypatch):
    monkeypatch.setattr(limits, "BATCH_WRITES_MAX", 3)
    threads = await asyncio.gather(*(writer.run(writing(i), size=1) for i in range(4)))
    assert here(threads) == [False] * 4
    assert stored(place) == [0, 1, 2, 3]


@pytest.mark.usefixtures("quick")
async def test_a_rejected_write_in_a_shared_commit_fails_alone(writer, place):
    def refuses(connection):
        raise InputError("no")

    works = [writing(1), refuses, writing(2)]
    writes = (writer.run(work, size=1) for work in works)
    one, refused, two = await asyncio.gather(*writes, return_exceptions=True)
    assert isinstance(refused, InputError)
    assert here([one, two]) == [True, True]
    assert stored(place) == [1, 2]


@pytest.mark.usefixtures("quick")
async def test_a_write_that_breaks_a_shared_commit_fails_alone(writer, place):
    def breaks(connection):
        writing("half")(connection)
        raise ValueError("no")

    works = [writing(1), breaks, writing(2)]
    writes = (writer.run(work, size=1) for work in works)
    outcomes = await asyncio.gather(*writes, return_exceptions=True)
    assert [isinstance(outcome, ValueError) for outcome in outcomes] == [False, True, False]
    assert stored(place) == [1, 2]


async def test_what_fails_after_a_commit_fails_no_write(writer, place, hooks, monkeypatch):
    """It is durable: its callers must not write it again."""

    def fails(connection):
        monkeypatch.undo()
        raise MemoryError

    for size in (1, math.inf):
        monkeypatch.setattr(limits, "COMMITS_PROVING", 0)
        monkeypatch.setattr(hooks, "committed", fails)
        writes = (writer.run(writing(i), size=size) for i in range(2))
        await asyncio.gather(*writes)
    assert stored(place) == [0, 1] * 2


@pytest.mark.usefixtures("quick")
async def test_a_caller_cancelled_while_entering_blocks_no_other(writer, place):
    tasks = [asyncio.create_task(writer.run(writing(i), size=1)) for i in range(4)]
    await asyncio.sleep(0)
    tasks[0].cancel()  # the first, who would have written for all
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(outcomes[0], asyncio.CancelledError)
    assert here(outcomes[1:]) == [True] * 3
    assert stored(place) == [1, 2, 3]


@pytest.mark.usefixtures("quick")
async def test_a_lone_caller_cancelled_while_entering_wrote_nothing(writer, place):
    task = asyncio.create_task(writer.run(writing(1), size=1))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert not writer._coming
    assert here([await writer.run(writing(2), size=1)]) == [True]
    assert stored(place) == [2]


async def test_a_disk_is_trusted_after_a_proof(writer, monkeypatch):
    monkeypatch.setattr(limits, "COMMIT_QUICK_SECONDS", 60.0)
    monkeypatch.setattr(limits, "COMMITS_PROVING", 3)
    threads = [await writer.run(writing(i), size=1) for i in range(9)]
    assert here(threads) == [False] * 3 + [True] * 6


async def test_a_crowd_proves_a_disk_too(writer, monkeypatch):
    monkeypatch.setattr(limits, "COMMIT_QUICK_SECONDS", 60.0)
    monkeypatch.setattr(limits, "COMMITS_PROVING", 1)
    threads = [await together(writer, size=1) for _ in range(9)]
    assert here(threads[0]) == [False] * 5
    assert here(threads[-1]) == [True] * 5


async def test_one_slow_commit_and_the_thread_takes_over(writer, monkeypatch):
    monkeypatch.setattr(limits, "COMMIT_QUICK_SECONDS", 0.05)
    monkeypatch.setattr(limits, "COMMITS_PROVING", 2)
    pauses = iter([0, 0, 0.06, 0, 0, 0])

    def pause():
        return bool(time.sleep(next(pauses)))

    await writer.run(lambda con: con.set_commit_hook(pause), alone=True)
    threads = [await writer.run(writing(i), size=1) for i in range(6)]
    # The machine may be slow of itself, so what is sure is only who does not stay here.
    assert here(threads)[:2] == [False, False]
    assert here(threads)[3:5] == [False, False]


async def test_a_slow_caller_is_no_slow_disk(writer, monkeypatch):
    monkeypatch.setattr(limits, "COMMIT_QUICK_SECONDS", 60.0)
    monkeypatch.setattr(limits, "COMMITS_PROVING", 1)

    late, clock = 0.0, time.perf_counter
    monkeypatch.setattr(time, "perf_counter", lambda: clock() + late)

    def takes_its_time(connection):
        nonlocal late
        late += 3_600
        return writing(0)(connection)

    await writer.run(takes_its_time, size=1)
    assert here([await writer.run(writing(1), size=1)]) == [True]


async def test_a_slow_disk_never_holds_up_the_loop(writer, monkeypatch):
    monkeypatch.setattr(limits, "COMMIT_QUICK_SECONDS", 0.0)
    threads = [await writer.run(writing(i), size=1) for i in range(limits.COMMITS_PROVING * 2)]
    assert not any(here(threads))


@pytest.mark.usefixtures("quick")
async def test_another_process_is_waited_for_by_the_thread_alone(writer, place):
    assert here([await writer.run(writing(1), size=1)]) == [True]
    other = apsw.Connection(str(place.path))
    other.execute("BEGIN IMMEDIATE")
    waits = asyncio.create_task(writer.run(writing(2), size=1))
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
async def test_a_write_that_failed_stored_nothing(writer, place):
    def fails(connection):
        writing(1)(connection)
        raise ValueError("no")

    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            await writer.run(fails, size=1)
    assert here([await writer.run(writing(2), size=1)]) == [True]
    assert stored(place) == [2]


@pytest.mark.usefixtures("quick")
async def test_a_commit_that_fails_at_once_is_rolled_back(writer, place):
    await writer.run(lambda con: con.set_commit_hook(lambda: True), alone=True)
    with pytest.raises(Exception, match="constraint"):
        await writer.run(writing(1), size=1)
    await writer.run(lambda con: con.set_commit_hook(None), alone=True)
    await writer.run(writing(2), size=1)
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
        assert here([await writer.run(writing(number), size=1)]) == [True]


@pytest.mark.usefixtures("quick")
async def test_the_quiet_moment_is_not_between_writes_at_once(writer, hooks, monkeypatch):
    monkeypatch.setattr(limits, "INDEX_IDLE_SECONDS", 0.001)
    hooks.more = True
    await writer.run(writing(1), size=1)
    quiet, writer._last = hooks.quiet, time.monotonic() + 3_600  # as if it went on
    writer._jobs.put(None)  # it starts to wait again
    await asyncio.sleep(0.05)
    assert hooks.quiet <= quiet + 1  # one may have begun already


@pytest.mark.parametrize("size", [1, math.inf])
@pytest.mark.usefixtures("quick")
async def test_what_cannot_wait_for_a_quiet_moment_comes_between_two_writes(
    writer, hooks, size, monkeypatch
):
    monkeypatch.setattr(limits, "INDEX_IDLE_SECONDS", 3_600)
    hooks.pages_late, hooks.more = 3, True
    await writer.run(writing(1), size=size)
    async with asyncio.timeout(30):
        while hooks.pages_late:
            await asyncio.sleep(0.005)
    with writer._in_use:
        assert hooks.quiet == 3


async def test_other_writes_wait_for_a_few_pages_at_most(writer, hooks, monkeypatch):
    monkeypatch.setattr(limits, "INDEX_IDLE_SECONDS", 3_600)
    hooks.more = True
    late = []
    with writer._in_use:
        hooks.pages_late = 1_000
        writes = [
            asyncio.ensure_future(writer.run(lambda _: late.append(hooks.pages_late), alone=True))
            for _ in range(3)
        ]
        await asyncio.sleep(0.05)
    await asyncio.gather(*writes)
    assert len(late) == 3
    assert all(0 < late[n] - late[n + 1] <= limits.INDEX_TURNS for n in range(2))
    hooks.pages_late = 0


@pytest.mark.usefixtures("quick")
async def test_the_log_is_emptied_all_the_same(writer, place, monkeypatch):
    write = writing(b"x" * 40_000)
    threads = [await writer.run(write, size=1) for _ in range(3 * CHECKPOINT_PAGES // 10)]
    by_the_thread = here(threads).count(False)
    assert 1 <= by_the_thread < len(threads) / 10
    log = place.path.with_name(f"{place.path.name}-wal")
    assert log.stat().st_size < 2 * CHECKPOINT_PAGES * 4096


@pytest.mark.usefixtures("quick")
async def test_after_much_by_the_thread_writes_stay_on_the_callers_thread_again(writer):
    for _ in range(CHECKPOINT_PAGES // 200):
        await writer.run(writing(b"x" * 4096 * 250))
    assert here([await writer.run(writing(1), size=1)]) == [True]


@pytest.mark.usefixtures("quick")
async def test_no_caller_writes_for_callers_of_another_loop(writer, place):
    """Who could then give up and write again before that is done."""
    coming = asyncio.create_task(writer.run(writing("here"), size=1))
    await asyncio.sleep(0)
    other = threading.Thread(target=asyncio.run, args=(writer.run(writing("there"), size=1),))
    other.start()
    other.join(30)  # this loop stands still meanwhile
    assert stored(place) == ["there"]
    await coming
    assert stored(place) == ["there", "here"]


@pytest.mark.usefixtures("quick")
async def test_closing_while_some_are_on_their_way_in(place, hooks):
    writer = Writer(place, connect(place, writer=True), hooks)
    tasks = [asyncio.create_task(writer.run(writing(i), size=1)) for i in range(3)]
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
            await writer.run(writing(first + number), size=1)

    async def crowd(first):
        async with asyncio.timeout(30):
            await asyncio.gather(*(many(first + 100 * caller) for caller in range(5)))

    firsts = (0, 1000, 2000, 3000)
    await asyncio.gather(*(asyncio.to_thread(asyncio.run, crowd(first)) for first in firsts))
    found = stored(place)
    assert len(found) == 2_000
    for first in (first + 100 * caller for first in firsts for caller in range(5)):
        assert [x for x in found if first <= x < first + 100] == list(range(first, first + 100))


@pytest.mark.usefixtures("quick")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_no_caller_waits_for_a_thread_that_ended(place, hooks, monkeypatch):
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
        for size in (1, math.inf):
            with pytest.raises(StoreCorrupt, match="has stopped"):
                await writer.run(writing(1), size=size)
    writer.close()


class StalledQueue(queue.SimpleQueue):
    """What CPython's is before 3.13, on a machine that stalls when it begins to wait."""

    def get(self, block=True, timeout=None):
        return super().get(block)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_no_caller_is_left_behind_by_a_thread_that_ends(place, hooks, monkeypatch):
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


async def test_a_stalled_machine_stops_no_write(place, hooks, monkeypatch):
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
async def test_a_cancelled_write_is_not_overtaken(writer, place):
    """What was in line is stored all the same, and before what the same caller wrote next."""
    with writer._in_use:  # the thread has not come to it yet
        given_up = asyncio.create_task(writer.run(writing(1)))
        for _ in range(3):
            await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.wait([given_up])
    await writer.run(writing(2), size=1)
    assert stored(place) == [1, 2]


async def test_no_write_is_overtaken_when_the_disk_becomes_slow(writer, place, monkeypatch):
    trusted = iter([True, False, False, False])
    monkeypatch.setattr(writer._pace, "is_quick", lambda: next(trusted))
    writes = (writer.run(writing(i), size=1) for i in (1, 2))
    assert here(await asyncio.gather(*writes)) == [False, False]
    assert stored(place) == [1, 2]


async def test_what_writes_nothing_proves_no_disk(writer, monkeypatch):
    monkeypatch.setattr(limits, "COMMIT_QUICK_SECONDS", 60.0)

    def refuses(connection):
        raise InputError("no")

    for _ in range(limits.COMMITS_PROVING):
        await writer.run(lambda con: None, size=1)
        with pytest.raises(InputError):
            await writer.run(refuses, size=1)
    assert here([await writer.run(writing(1), size=1)]) == [False]


async def test_each_caller_gets_its_own_error(writer, place, monkeypatch):
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
@pytest.mark.parametrize("size", [1, math.inf])
async def test_what_fails_unexpectedly_is_undone_even_if_no_change_shows(
    writer, hooks, monkeypatch, size
):
    undone = []
    monkeypatch.setattr(hooks, "forget", lambda: undone.append(1))

    def fails(connection):
        raise MemoryError

    with pytest.raises(MemoryError):
        await writer.run(fails, size=size)
    assert undone


@pytest.mark.usefixtures("quick")
async def test_no_error_contains_data_of_another_caller(writer):
    def refuses(connection):
        try:
            connection.execute("no sql")
        except apsw.SQLError as error:
            raise InputError("no") from error

    assert "no sql" in await told_to_the_second(writer, refuses)

    def full():
        raise apsw.FullError("no room")

    await writer.run(lambda con: con.set_commit_hook(full), alone=True)
    assert "no room" in await told_to_the_second(writer, writing(1))


async def told_to_the_second(writer, work):
    """The caller whose error it is, and no other."""

    async def first():
        try:
            {}["a secret of the one who writes for all"]
        except LookupError:
            await writer.run(work, size=1)

    both = first(), writer.run(work, size=1)
    _, error = await asyncio.gather(*both, return_exceptions=True)
    told = "".join(traceback.format_exception(error))
    assert "secret" not in told
    return told


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("size", [1, math.inf])
async def test_whatever_is_raised_comes_to_its_caller(writer, place, size):
    class OddError(BaseException):
        pass

    def fails(connection):
        raise OddError

    await writer.run(writing(1), size=1)
    with pytest.raises(OddError):
        await writer.run(fails, size=size)
    await writer.run(writing(2))
    assert stored(place) == [1, 2]


@pytest.mark.usefixtures("quick")
async def test_what_the_caller_is_handling_stays_as_it_is(writer):
    """The frames of our own error are released, not those of its caller."""
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
            await writer.run(refuses, size=1)
    go.set()
    async with asyncio.timeout(30):
        assert await waiting == "still here"


async def test_too_many_waiting(writer, monkeypatch):
    monkeypatch.setattr(limits, "WRITES_WAITING_MAX", 0)
    with pytest.raises(StoreUnavailable, match="slow down"):
        await writer.run(writing(1))


@pytest.mark.usefixtures("quick")
async def test_too_many_on_their_way_in(writer, place, monkeypatch):
    monkeypatch.setattr(limits, "WRITES_WAITING_MAX", 2)
    writes = (writer.run(writing(i), size=1) for i in range(3))
    outcomes = await asyncio.gather(*writes, return_exceptions=True)
    assert isinstance(outcomes[2], StoreUnavailable)
    assert stored(place) == [0, 1]
