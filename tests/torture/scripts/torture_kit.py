"""What tests and their scripts share: sizes, opening a store, what was promised."""

import asyncio
import json
import os
import re
import signal
import sys
from collections import Counter, defaultdict
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from firnline.log.message import Message, utc_now
from firnline.memory import Memory
from firnline.store.mongo import MongoStore
from firnline.store.postgres import PostgresStore
from firnline.store.sqlite import SqliteStore

SCRIPTS = Path(__file__).parent
TORTURE = bool(os.environ.get("FIRNLINE_TORTURE"))
PATIENCE = 60.0
"""Seconds after which a test stops waiting: something hangs."""

BATCH = re.compile(r"(\S+) (\d+)/(\d+)\b")


def store_at(place, **options):
    """The store at a file's path or at a server's URL."""
    for scheme, kind in (("postgresql:", PostgresStore), ("mongodb:", MongoStore)):
        if str(place).startswith(scheme):
            return kind(str(place), **options)
    return SqliteStore(place, **options)


def memory_at(place, **options):
    # Without an embedder, as in all tests: importing numpy would take most of a short life.
    return Memory(store_at(place, **options), embedder=None)


async def soon(awaitable, seconds=PATIENCE):
    """The result, or a failure instead of a hang."""
    try:
        return await asyncio.wait_for(awaitable, seconds)
    except TimeoutError:
        raise AssertionError(f"no answer within {seconds} s: it hangs") from None


def said(texts):
    return [Message.user(text) for text in texts]


class Script:
    """A script of this folder as a separate process: a line of JSON in, lines of JSON out."""

    def __init__(self, name, *arguments):
        self._command = (sys.executable, str(SCRIPTS / name), *map(str, arguments))

    async def __aenter__(self):
        pipe = asyncio.subprocess.PIPE
        self.process = await asyncio.create_subprocess_exec(
            *self._command, stdin=pipe, stdout=pipe, start_new_session=True
        )
        return self

    async def __aexit__(self, *_):
        # With all it has forked: one of them left alone would hold the pipe, and us, for ever.
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        await self.process.communicate()

    def tell(self, line):
        self.process.stdin.write(json.dumps(line).encode() + b"\n")

    async def hear(self):
        line = await soon(self.process.stdout.readline())
        assert line, "the script ended; see its error output"
        return json.loads(line)

    async def ask(self, line):
        self.tell(line)
        return await self.hear()


def say(*fields):
    """Report to the parent process; one write, so lines of several processes never mix."""
    os.write(1, json.dumps(fields).encode() + b"\n")


class Ledger:
    """What was acknowledged, and the check that all of it is there."""

    def __init__(self):
        self.acked = defaultdict(dict)
        self.keyed = {}

    def ack(self, conversation, seq, text):
        before = self.acked[conversation].setdefault(seq, text)
        assert before == text, f"{conversation} {seq} was given to two messages"

    def ack_all(self, conversation, appended):
        for entry in appended:
            self.ack(conversation, entry.seq, entry.message.text)

    async def check(self, memory, conversations=None):
        for conversation in conversations or self.acked:
            await self.check_one(memory, conversation)

    async def check_one(self, memory, conversation):
        texts = [entry.message.text for entry in await soon(memory.read(conversation))]
        head = await memory.head(conversation)
        assert len(texts) == (head.entries if head else 0)
        missing = {
            seq: text
            for seq, text in self.acked[conversation].items()
            if texts[seq : seq + 1] != [text]
        }
        assert not missing, f"{conversation}: acknowledged, and gone: {missing}"
        check_batches(texts)
        if head is not None:
            verification = await soon(memory.verify(conversation))
            assert verification.ok, str(verification)
            assert verification.entries == len(texts)


def check_batches(texts):
    """Texts are unique; those of one batch (``tag i/n``) are all there, side by side, in order."""
    repeated = [text for text, count in Counter(texts).items() if count > 1]
    assert not repeated, f"stored twice: {repeated}"
    at = {}
    for place, text in enumerate(texts):
        if match := BATCH.match(text):
            at.setdefault((match[1], int(match[3])), []).append((place, int(match[2])))
    for (tag, size), found in at.items():
        first = found[0][0]
        assert found == [(first + i, i) for i in range(size)], f"batch {tag} is torn: {found}"


async def assert_healthy(memory):
    findings = await soon(memory.check(thorough=True))
    broken = [finding for finding in findings if finding.state == "broken"]
    assert not broken, broken


class Clock:
    """The real time, and later on demand: leases and postponed work expire at once."""

    def __init__(self):
        self.ahead = timedelta()

    def __call__(self):
        return utc_now() + self.ahead


async def settle_all(memory, clock):
    """One healthy worker creates all pending digests, once the leases of the dead expired."""
    for _ in range(50):
        clock.ahead += timedelta(minutes=20)
        await soon(memory.work(once=True))
        if not await memory.store.due(clock() + timedelta(days=1)):
            return
    raise AssertionError("conversations are stuck")
