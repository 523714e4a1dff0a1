"""The command worker: a process that creates pending digests of all tenants, or of one."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Final

from firnline.cli.arguments import Command, add_model_options
from firnline.cli.open import model_name, run_until_signal, with_memory
from firnline.cli.output import print_json
from firnline.cli.terminal import plain
from firnline.errors import InputError
from firnline.log.entry import Key
from firnline.log.text import plural
from firnline.memory import Memory
from firnline.protocols import Event
from firnline.store import redact_url

_PAGE: Final = 16  # conversations read to see whether there is work left


@dataclass(slots=True)
class _WorkerCounts:
    """What a worker has done."""

    digests: int = 0
    failed: int = 0
    conversations: int = 0
    seconds: float = 0.0


def _worker(options: argparse.Namespace) -> None:
    if not 0 < options.poll <= 3_600:  # noqa: PLR2004 - an hour is long enough
        raise InputError(f"--poll {options.poll:g}: must be more than 0 and at most 3600 seconds")
    counts = _WorkerCounts()
    started = time.monotonic()
    observe = _observer(counts, as_json=options.json)
    if not options.once:
        writer = model_name(options) or "offline"
        whose = f"tenant {options.tenant}" if options.tenant is not None else "all tenants"
        print(
            plain(
                f"worker: watching {redact_url(options.store)}, {whose}, model: {writer};"
                " Ctrl-C stops it"
            ),
            file=sys.stderr,
        )
    try:
        with_memory(options, lambda memory: _work(memory, options), observer=observe)
    finally:
        counts.seconds = round(time.monotonic() - started, 1)
        _print_counts(counts, as_json=options.json)


def _observer(counts: _WorkerCounts, *, as_json: bool) -> Callable[[Event], None]:
    """Counts and prints digests as they are created."""
    seen: set[Key] = set()

    def observe(event: Event) -> None:
        if event.name not in ("fold", "fold_failed"):
            return
        succeeded = event.name == "fold"
        counts.digests += succeeded
        counts.failed += not succeeded
        seen.add(Key(event.tenant, event.conversation))
        counts.conversations = len(seen)
        where = {"tenant": event.tenant, "conversation": event.conversation}
        if as_json:
            print_json({"event": event.name, **where, **event.values})
        else:
            how = (
                f"digested in {event.values['milliseconds']:,} ms"
                if succeeded
                else "the model failed"
            )
            print(plain(f"{event.tenant}/{event.conversation}: {how}"))
        sys.stdout.flush()  # show it at once, in a pipe too

    return observe


def _print_counts(counts: _WorkerCounts, *, as_json: bool) -> None:
    if as_json:
        print_json({"event": "stopped", **asdict(counts)})
        return
    failed = f", {counts.failed:,} failed" if counts.failed else ""
    print(
        f"worker: {plural(counts.digests, 'digest')} created{failed}, "
        f"{plural(counts.conversations, 'conversation')}, {counts.seconds:,.1f} s"
    )


async def _work(memory: Memory, options: argparse.Namespace) -> None:
    """Work until nothing is due, or until a signal; an interrupted digest stays pending."""
    all_tenants = options.tenant is None
    if options.once:
        await run_until_signal(_create_due(memory, all_tenants=all_tenants))
    else:
        working = memory.work(all_tenants=all_tenants, poll_seconds=options.poll)
        await run_until_signal(working)


async def _create_due(memory: Memory, *, all_tenants: bool) -> None:
    """Create digests until none is due, or none can be created."""
    before: list[Key] = []
    created = 0
    while due := await memory.due(limit=_PAGE, all_tenants=all_tenants):
        if due == before and not created:
            break
        before, created = due, await memory.work(once=True, all_tenants=all_tenants)


def add(command: Command) -> None:
    """Add this command to the parser."""
    text = "Create pending digests in the background, of all tenants or of one."
    worker = command("worker", _worker, text)
    worker.add_argument("--once", action="store_true", help="stop when nothing is due")
    worker.add_argument(
        "--poll",
        type=float,
        default=1.0,
        metavar="SECONDS",
        help="how often to look for work (default: %(default)s)",
    )
    add_model_options(worker)
