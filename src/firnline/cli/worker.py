"""The worker: a process that makes the digests nobody waits for, of every tenant."""

from __future__ import annotations

import argparse
import asyncio
import random
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Final

from firnline.cli.arguments import Command, add_writer
from firnline.cli.open import with_memory
from firnline.cli.output import print_json
from firnline.cli.terminal import plain
from firnline.errors import FirnlineError, InputError
from firnline.log.entry import Key
from firnline.memory import Memory
from firnline.protocols import Event
from firnline.store import shown

_PAGE: Final = 16  # conversations looked at to see whether the work goes on


@dataclass(slots=True)
class _Tally:
    """What a worker has done."""

    digests: int = 0
    failed: int = 0
    conversations: int = 0
    seconds: float = 0.0


def _worker(options: argparse.Namespace) -> None:
    if not 0 < options.poll <= 3_600:  # noqa: PLR2004 - an hour is long enough
        raise InputError(f"--poll {options.poll:g}: more than 0 and up to 3600 seconds")
    tally = _Tally()
    started = time.monotonic()
    observe = _observer(tally, as_json=options.json)
    if not options.once:
        writer = options.model or "offline"
        print(
            plain(f"worker: looking after {shown(options.store)}, {writer}; Ctrl-C stops it"),
            file=sys.stderr,
        )
    try:
        with_memory(options, lambda memory: _work(memory, options), observer=observe)
    finally:
        tally.seconds = round(time.monotonic() - started, 1)
        _say(tally, as_json=options.json)


def _observer(tally: _Tally, *, as_json: bool) -> Callable[[Event], None]:
    """Counts what happens, and tells it as it happens."""
    seen: set[Key] = set()

    def observe(event: Event) -> None:
        if event.name not in ("fold", "fold_failed"):
            return
        made = event.name == "fold"
        tally.digests += made
        tally.failed += not made
        seen.add(Key(event.tenant, event.conversation))
        tally.conversations = len(seen)
        where = {"tenant": event.tenant, "conversation": event.conversation}
        if as_json:
            print_json({"event": event.name, **where, **event.values})
        else:
            how = f"digested in {event.values['milliseconds']:,} ms" if made else "the model failed"
            print(plain(f"{event.tenant}/{event.conversation}: {how}"))
        sys.stdout.flush()  # whoever watches a worker wants to see it now

    return observe


def _say(tally: _Tally, *, as_json: bool) -> None:
    if as_json:
        print_json({"event": "stopped", **asdict(tally)})
        return
    failed = f", {tally.failed:,} failed" if tally.failed else ""
    print(
        f"worker: {tally.digests:,} digests made{failed}, {tally.conversations:,} conversations, "
        f"{tally.seconds:,.1f} s"
    )


async def _work(memory: Memory, options: argparse.Namespace) -> None:
    """Work until there is nothing left, or for ever; a signal ends both."""
    work = asyncio.ensure_future(_pay_all(memory) if options.once else _run(memory, options.poll))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # Windows has none; there Ctrl-C cancels all the same
            loop.add_signal_handler(number, work.cancel)
    with suppress(asyncio.CancelledError):  # what was being digested stays owed
        await work


async def _run(memory: Memory, poll_seconds: float) -> None:
    while True:
        try:
            await _pay_all(memory)
        except FirnlineError as error:
            print(plain(f"worker: cannot look for work: {error}"), file=sys.stderr)
        await asyncio.sleep(poll_seconds * random.uniform(0.5, 1.5))  # noqa: S311 - jitter


async def _pay_all(memory: Memory) -> None:
    """Make what is due, until nothing is, or nothing changes any more."""
    before: list[Key] = []
    made = 0
    while due := await memory.due(limit=_PAGE, all_tenants=True):
        if due == before and not made:
            break
        before, made = due, await memory.work(once=True, all_tenants=True)


def add(command: Command) -> None:
    """Tell the parser of this command."""
    worker = command("worker", _worker, "Make the digests that are owed, of every tenant.")
    worker.add_argument("--once", action="store_true", help="stop when nothing is due any more")
    worker.add_argument(
        "--poll", type=float, default=1.0, metavar="SECONDS", help="how often to look (%(default)s)"
    )
    add_writer(worker)
