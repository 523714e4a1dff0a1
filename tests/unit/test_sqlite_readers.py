"""Reading from SQLite: on a reader thread, or directly on the caller's thread."""

import asyncio
import threading

import apsw
import pytest

from firnline.errors import StoreNotOpen, StoreUnavailable
from firnline.store.sqlite.connection import DatabaseFile, connect
from firnline.store.sqlite.readers import Readers


@pytest.fixture
def readers(tmp_path):
    place = DatabaseFile(tmp_path / "store.db")
    with connect(place, writer=True) as connection:
        connection.execute("CREATE TABLE t (x); INSERT INTO t VALUES (7)")
    connection.close()
    readers = Readers(place)
    yield readers
    readers.close()


async def test_a_glance_stays_on_the_callers_thread(readers):
    threads = []

    def work(connection):
        threads.append(threading.current_thread())
        return connection.execute("SELECT x FROM t").get

    assert await readers.glance(work) == 7
    assert await readers.run(work) == 7
    assert threads[0] is threading.current_thread()
    assert threads[1] is not threading.current_thread()


async def test_a_glance_that_would_have_to_wait_is_a_threads_affair(readers):
    here = threading.current_thread()

    def work(connection):
        if threading.current_thread() is here:
            raise apsw.BusyError("somebody has it")
        return connection.execute("SELECT x FROM t").get

    assert await readers.glance(work) == 7


async def test_an_error_on_a_thread_is_raised(readers):
    def work(_):
        raise apsw.BusyError("somebody has it")

    with pytest.raises(StoreUnavailable, match="another process"):
        await readers.glance(work)


async def test_a_failed_glance_leaves_no_snapshot_behind(readers, tmp_path):
    def work(connection):
        connection.execute("SELECT x FROM t").get  # noqa: B018 - it begins the snapshot
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await readers.glance(work)
    with connect(DatabaseFile(tmp_path / "store.db"), writer=True) as connection:
        connection.execute("UPDATE t SET x = 8")
    connection.close()
    assert await readers.glance(lambda con: con.execute("SELECT x FROM t").get) == 8


async def test_several_loops_may_glance_at_once(readers):
    def glances():
        async def many():
            return [
                await readers.glance(lambda con: con.execute("SELECT x FROM t").get)
                for _ in range(200)
            ]

        return asyncio.run(many())

    seen = await asyncio.gather(*(asyncio.to_thread(glances) for _ in range(4)))
    assert seen == [[7] * 200] * 4


async def test_closing_waits_for_a_glance_on_another_thread(readers):
    begun, go = threading.Event(), threading.Event()

    def work(connection):
        rows = connection.execute("SELECT x FROM t")
        begun.set()
        go.wait(30)
        return rows.get

    glance = asyncio.create_task(asyncio.to_thread(asyncio.run, readers.glance(work)))
    await asyncio.to_thread(begun.wait, 30)
    closing = asyncio.create_task(asyncio.to_thread(readers.close))
    await asyncio.sleep(0.05)
    go.set()
    assert await glance == 7
    await closing


async def test_a_read_during_closing_is_an_error(readers):
    readers.close()
    for read in (readers.glance, readers.run):
        with pytest.raises(StoreNotOpen):
            await read(lambda _: None)
