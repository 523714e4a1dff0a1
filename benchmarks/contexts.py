"""What contexts cost for long logs, how stable they are, and how often a model is called."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from statistics import mean

from benchmarks.bench import LONG, SHORT, Bench, opened, url
from benchmarks.measure import Side, in_turns, milliseconds, timed
from benchmarks.table import Row, at_least, at_most, progress
from firnline import Memory, Message
from firnline.digest import offline_extractor, offline_summarizer
from firnline.engine.options import MemoryOptions
from firnline.log.limits import BATCH_MESSAGES_MAX
from firnline.log.tokens import counter
from firnline.models import Allowance, Spend
from firnline.protocols import Brief, Extractor, Summarizer, Written
from firnline.strategies import STRATEGIES

BUDGET = 1_000
"""Less than a hundred messages of the sample take, so that both conversations have digests."""
SHORT_ENTRIES = 100
SAME = 50
"""The newest entries, which are the same in both, so that both contexts show the same."""
REPLAY_BUDGET = 8_000


async def build(bench: Bench) -> AsyncIterator[Row]:
    """A context of a long conversation and of a short one in the same file, with nothing to digest.

    Each conversation is digested beforehand as far as the strategy wants it, with this budget.
    """
    entries = bench.size(100_000, 500)
    async with opened(url(bench.new_path("contexts")), worker=False) as memory:
        for name, length in ((SHORT, SHORT_ENTRIES), (LONG, entries)):
            await _fill(bench, memory, name, length)
        for strategy in STRATEGIES:
            for name in (SHORT, LONG):
                await memory.set_strategy(name, strategy)
                await _digest_all(memory, name, f"context: {strategy}, {name}")
            ours, other = _context(memory, LONG), _context(memory, SHORT)
            pairs = await in_turns(ours, other, bench.size(200, 5), "context")
            yield Row(
                f"context: {strategy}, {entries:,} entries",
                milliseconds(pairs.ours),
                f"{milliseconds(pairs.other)} at {SHORT_ENTRIES}",
                pairs.cost,
                at_most(1.5),
            )


async def _fill(bench: Bench, memory: Memory, name: str, entries: int) -> None:
    messages = islice(bench.endless_messages(), entries - SAME)
    while batch := list(islice(messages, BATCH_MESSAGES_MAX)):
        await memory.append(name, batch)
    await memory.append(name, bench.messages[:SAME])


async def _digest_all(memory: Memory, name: str, what: str) -> None:
    """Create digests until none is pending, for the budget of the first context."""
    await memory.context(name, BUDGET)
    made = 0
    while more := await memory.digest(name):
        made += more
        progress(f"{what}: {made} digests made")


def _context(memory: Memory, name: str) -> Side:
    return timed(lambda: memory.context(name, BUDGET))


# -- a long chat, turn by turn ----------------------------------------------------------------


_STABLE = {1: 0.94, 6: 0.75}
"""By lines of a message: with large ones, a full prompt is new sooner; see docs/decisions.md."""
_LAVISH = Spend(conversation=Allowance(10**9, 10**12), tenant=Allowance(10**9, 10**12))
"""All the calls that a chat of hours makes are made within minutes here."""


@dataclass(slots=True)
class _Replay:
    """The result of a chat: the share of each prompt that was repeated, and model calls."""

    stability: list[float] = field(default_factory=list)
    calls: int = 0
    tokens: int = 0

    def asked(self, offline: Summarizer | Extractor) -> Summarizer:
        """A model that writes what the offline mode would, and counts how often it is asked."""

        async def write(brief: Brief) -> Written:
            self.calls += 1
            return replace(await offline(brief), made_by="model", calls=1)

        return write


async def replay(bench: Bench) -> AsyncIterator[Row]:
    """The same chat with each strategy; with the default one also with turns of several lines."""
    turns = bench.size(500, 20)
    for lines, strategies in ((1, tuple(STRATEGIES)), (6, ("layered",))):
        for strategy in strategies:
            done = await _replayed(bench, strategy, turns, lines)
            size = done.tokens // (2 * turns)
            share = mean(done.stability)
            yield Row(
                f"replay: {strategy}, {turns} turns, {size} tokens each",
                f"{share:.1%} repeated",
                f"{done.calls / turns * 500:,.0f} calls per 1,000 messages",
                share,
                at_least(_STABLE[lines]) if strategy == "layered" else None,
            )


async def _replayed(bench: Bench, strategy: str, turns: int, lines: int) -> _Replay:
    done = _Replay()
    said = _longer(bench, lines)
    model: MemoryOptions = {
        "summarizer": done.asked(offline_summarizer(counter().text)),
        "extractor": done.asked(offline_extractor()),
    }
    async with opened("memory:", worker=False, spend=_LAVISH, **model) as memory:
        await memory.append("chat", Message.system("You are a friendly assistant."))
        await memory.set_strategy("chat", strategy)
        for turn in range(turns):
            progress(f"replay: {strategy}, {turn} of {turns} turns")
            await memory.append("chat", Message.user(next(said)))
            context = await memory.context("chat", REPLAY_BUDGET)
            if context.stability is not None:
                done.stability.append(context.stability)
            await memory.append("chat", Message.assistant(next(said)))
            if (await memory.strategy("chat")).background:
                await memory.digest("chat")  # as if a worker had done it before the next turn
        head = await memory.head("chat")
        done.tokens = head.tokens if head else 0
    return done


def _longer(bench: Bench, lines: int) -> Iterator[str]:
    """The sample's texts, `lines` of them joined into one."""
    messages = bench.endless_messages()
    while True:
        yield "\n".join(message.text for message in islice(messages, lines))
