"""Forks workers that create pending digests, and kills and pauses them at random.

One line on stdin is one storm. The workers are forked from here, because this process has loaded
the tokenizer already and opened nothing. Their summaries are the offline ones, only slower, so that
they are mostly hit in the middle of one.
"""

import asyncio
import json
import os
import random
import signal
import sys
import time

from torture_kit import say, store_at

from firnline.digest import offline_summarizer
from firnline.log.tokens import counter
from firnline.memory import Memory

LEASE_SECONDS = 0.5
PAUSE_SECONDS = (0.2, 1.5)  # some of them longer than the lease
STEP_SECONDS = (0.02, 0.15)


def main():
    counter().text("load the tokenizer before the first fork")
    for line in sys.stdin:
        say("done", Storm(**json.loads(line)).blow())


class Storm:
    """Keeps `count` workers at work for a while, whatever happens to them.

    It strikes `calm` times as seldom: where the machine has much else to do, nobody would come to
    the end of a digest otherwise.
    """

    def __init__(self, path, seed, seconds, count, calm):
        self._path, self._seconds, self._count = path, seconds, count
        self._calm = calm
        self._random = random.Random(seed)
        self._workers = []
        self._paused = {}
        self._happened = {"killed": 0, "paused": 0, "killed while paused": 0}

    def blow(self):
        end = time.monotonic() + self._seconds
        while time.monotonic() < end:
            self._replace()
            time.sleep(self._random.uniform(*STEP_SECONDS) * self._calm)
            self._wake(time.monotonic())
            self._strike(self._random.choice(self._workers))
        for pid in [*self._workers]:
            self._kill(pid)
        return self._happened

    def _replace(self):
        while len(self._workers) < self._count:
            self._workers.append(fork(self._path, self._random.randrange(2**32)))

    def _wake(self, now):
        for pid in [pid for pid, until in self._paused.items() if until <= now]:
            del self._paused[pid]
            os.kill(pid, signal.SIGCONT)

    def _strike(self, pid):
        if self._random.random() < 0.4:
            self._happened["killed"] += 1
            self._happened["killed while paused"] += pid in self._paused
            self._kill(pid)
        elif pid not in self._paused:
            self._happened["paused"] += 1
            self._paused[pid] = time.monotonic() + self._random.uniform(*PAUSE_SECONDS)
            os.kill(pid, signal.SIGSTOP)

    def _kill(self, pid):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        self._workers.remove(pid)
        self._paused.pop(pid, None)


def fork(path, seed):
    pid = os.fork()
    if pid:
        return pid
    try:
        asyncio.run(work(path, random.Random(seed)))
    except BaseException as error:
        say("error", repr(error))
        raise
    finally:
        os._exit(1)


async def work(path, rng):
    memory = Memory(
        store_at(path),
        summarizer=slowly(offline_summarizer(counter().text), rng),
        lease_seconds=LEASE_SECONDS,
        embedder=None,
    )
    async with memory:
        await memory.work()


def slowly(summarize, rng):
    async def summarizer(brief):
        await asyncio.sleep(rng.uniform(0.0, 0.2))
        return await summarize(brief)

    return summarizer


if __name__ == "__main__":
    main()
