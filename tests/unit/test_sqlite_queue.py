"""The writer's queue: in order, with a reliable timeout."""

import queue
import threading
import time

import pytest

from firnline.store.sqlite.queue import JobQueue


def test_first_come_first_served():
    line = JobQueue()
    for number in range(3):
        line.put(number)
    assert len(line) == 3
    assert [line.get(0) for _ in range(3)] == [0, 1, 2]


@pytest.mark.parametrize("timeout", [0, 1e-9, 0.001, 0.05])
@pytest.mark.parametrize("rung", [0, 1, 2])
def test_a_timeout_is_kept(timeout, rung):
    line = JobQueue()
    for number in range(rung):  # the bell may still tell of these
        line.put(number)
        line.get(0)
    started = time.monotonic()
    with pytest.raises(queue.Empty):
        line.get(timeout)
    assert timeout <= time.monotonic() - started + 0.001 < 10


def test_a_waiter_is_woken_for_each_item():
    line, taken = JobQueue(), []
    threads = [threading.Thread(target=_put, args=(line, first)) for first in (0, 1000, 2000)]
    for thread in threads:
        thread.start()
    while len(taken) < 3 * 500:
        taken.append(line.get(30))
    for first in (0, 1000, 2000):
        assert [x for x in taken if first <= x < first + 500] == list(range(first, first + 500))
    for thread in threads:
        thread.join()


def _put(line, first):
    for number in range(first, first + 500):
        line.put(number)
        if number % 7 == 0:
            time.sleep(0)


def test_a_crowd_is_waited_for():
    line = JobQueue()
    gathered = threading.Thread(target=line.gather, args=(3, 30))
    gathered.start()
    for number in range(2):
        line.put(number)
    gathered.join(0.05)
    assert gathered.is_alive(), "two are not enough"
    line.put(2)
    gathered.join(20)
    assert not gathered.is_alive()
    assert [line.get(0) for _ in range(3)] == [0, 1, 2]


def test_missing_callers_are_not_waited_for_and_later_ones_are_served():
    line = JobQueue()
    line.put(0)
    line.gather(5, 0.001)
    assert line.get(0) == 0
    later = threading.Timer(0.01, line.put, [1])
    later.start()
    assert line.get(30) == 1, "one is enough again"
    later.join()
