"""Messages on numbered subjects, an embedder that knows them, and a clock that a test moves."""

import asyncio
import math
import random
import re
from datetime import UTC, datetime, timedelta
from itertools import chain

from firnline import Memory, Message, strategies
from firnline.errors import ModelError
from firnline.log.message import utc_now
from firnline.topics import Rules

START = datetime(2026, 3, 4, 12, tzinfo=UTC)
DAY = timedelta(days=1)
RULES = Rules(likeness={"subjects": 0.7})
BUDGET = 6_000
_DIMENSIONS = 128
_SUBJECT = re.compile(r"#(\d+)(?:~([\d.]+))?")


class Clock:
    """A clock that the test sets."""

    def __init__(self):
        self.now = START

    def __call__(self):
        return self.now

    def pass_(self, **time):
        self.now += timedelta(**time)


class Subjects:
    """``#3`` is a subject of its own; ``#3~0.71`` has the cosine 0.71 with it, 0 with others."""

    name = "subjects"

    def __init__(self):
        self.asked = []
        self.down = False

    async def embed(self, texts):
        if self.down:
            raise ModelError("the embedder is down")
        self.asked += texts
        return [self._vector(text) for text in texts]

    async def close(self):
        pass

    def _vector(self, text):
        vector = [0.0] * _DIMENSIONS
        number, cosine = _SUBJECT.search(text).groups()
        vector[int(number)] = near = float(cosine or 1)
        vector[-1 - len(self.asked) % 2] = math.sqrt(1 - near * near)
        return vector


def about(subject, number=0):
    """A user's message on a subject."""
    return f"Question {number} on subject #{subject}: which harbour crane lifts {number}00 tonnes?"


def answer(subject, number=0):
    return f"Answer {number} on {subject}: crane {subject}-{number} lifts them, says Ana Silva."


async def ask(memory, subject, number=0, conversation="c", **fields):
    """One question and its answer; returns the question's sequence number."""
    stored = await memory.append(conversation, round_(subject, number, **fields))
    return stored[0].seq


def round_(subject, number, **fields):
    """The messages of a round."""
    asked = Message.user(about(subject, number), **fields)
    return [asked, Message.assistant(answer(subject, number), **fields)]


async def talk(memory, *subjects, conversation="c"):
    """Rounds on these subjects, one after the other, stored at once."""
    said = [round_(subject, number) for number, subject in enumerate(subjects)]
    await memory.append(conversation, list(chain.from_iterable(said)))


def open_memory(url, clock=None, **options):
    """A memory that knows the subjects, with the strategy `topics`."""
    options = {
        "embedder": Subjects(),
        "topic_rules": RULES,
        "strategy": strategies.topics(),
        "worker": False,
        **options,
    }
    return Memory.open(url, clock=clock or Clock(), **options)


async def topic(memory, id_, conversation="c"):
    return await memory.topic_stats(conversation, id_)


async def ids(memory, conversation="c"):
    return {found.topic_id for found in await memory.topics(conversation)}


async def check_books(memory, conversation="c"):
    """Every entry is in exactly one topic, and each topic's counters are correct."""
    topics = await memory.topics(conversation)
    entries = await memory.read(conversation)
    digests = await memory.digests(conversation)
    seqs = []
    for found in topics:
        history = await memory.topic_history(conversation, found.topic_id)
        assert found.total_messages == len(history), found
        assert found.active_messages + found.archived_messages == found.total_messages
        assert 0 <= found.archived_messages <= found.total_messages
        seqs += [entry.seq for entry in history]
        covered = [d for d in digests if d.topic == found.topic_id]
        done = [d.last_seq for d in covered if d.status == "completed"]
        assert found.archived_messages <= sum(e.seq <= max(done, default=-1) for e in history)
    system = [e.seq for e in entries if e.message.role == "system"]
    assert sorted([*seqs, *system]) == [e.seq for e in entries]
    assert await memory.verify(conversation)


def work(url, seed, rounds, barrier):
    """One of several processes: appends, and reads contexts and topics."""
    asyncio.run(_work(url, seed, rounds, barrier))


async def _work(url, seed, rounds, barrier):
    rng = random.Random(seed)
    async with open_memory(url, utc_now, lease_seconds=2) as memory:
        await asyncio.to_thread(barrier.wait)
        for number in range(rounds):
            said = [about(rng.randrange(4), number), answer(seed, number)]
            await memory.append("c", [Message.user(said[0]), Message.assistant(said[1])])
            context = await memory.context("c", BUDGET)
            assert context.tokens <= BUDGET
            assert len(set(context.seqs)) == len(context.seqs)
            if number % 5 == seed % 5:
                await memory.topics("c")
            if number % 10 == 0:
                await memory.feedback("c", rng.randrange(2), 1)
