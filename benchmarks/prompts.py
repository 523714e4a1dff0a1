"""How good prompts are at every budget: ten conversations, budgets that grow and shrink.

Each conversation has a chat with questions and their evidence (`tests/support/evidence_chats.json`)
scattered over other messages. The previous release's default strategy runs on the same.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from statistics import mean
from typing import Any, Final, NamedTuple

from benchmarks.bench import Bench, opened
from benchmarks.previous import previous_layered
from benchmarks.table import Row, at_least, at_most, progress
from firnline import Context, Memory, Message, Strategy
from firnline.strategies import layered

_CHATS: Final = Path(__file__).parent.parent / "tests" / "support" / "evidence_chats.json"
_GROWING: Final = (1_000, 2_000, 4_000, 8_000, 16_000, 32_000)
_BUDGETS: Final = (*_GROWING, *_GROWING[-2::-1])
_PART: Final = 3  # messages of the chat that stay together
_OTHERS: Final = 30  # messages before each part, and more in later conversations
_QUESTIONS: Final = 2  # at each budget
_EVEN_BUDGET: Final = 4_000


class _Talk(NamedTuple):
    """A conversation, and its questions with the numbers of the messages that answer them."""

    messages: list[Message]
    questions: list[tuple[str, frozenset[int]]]


def _talks(bench: Bench) -> list[_Talk]:
    """Ten conversations of some 4,000 to 20,000 tokens, nearly the same in every run."""
    others = bench.endless_messages()
    chats = json.loads(_CHATS.read_text(encoding="utf-8"))
    return [
        _talk(chat, list(islice(others, 4_000)), bench.size(_OTHERS + 8 * number, 5))
        for number, chat in enumerate(chats[: bench.size(10, 1)])
    ]


def _talk(chat: dict[str, Any], others: Sequence[Message], apart: int) -> _Talk:
    messages: list[Message] = []
    numbers: dict[str, int] = {}
    filler = iter(others)
    for at, turn in enumerate(chat["conversation"]["session_1"]):
        if at % _PART == 0:
            messages += islice(filler, apart)
        numbers[turn["dia_id"]] = len(messages)
        role = "assistant" if turn["speaker"] == "assistant" else "user"
        messages.append(Message(role, turn["text"]))
    asked = [(one["question"], one["evidence"]) for one in chat["qa"] if one["evidence"]]
    return _Talk(messages, [(text, frozenset(numbers[n] for n in names)) for text, names in asked])


@dataclass(slots=True)
class _Quality:
    """What the contexts of a strategy are like, each as a share."""

    used: list[float] = field(default_factory=list)
    verbatim: list[float] = field(default_factory=list)
    evidence: list[float] = field(default_factory=list)
    repeated: list[float] = field(default_factory=list)

    def add(self, context: Context, tokens: dict[int, int]) -> None:
        """Count what is used of the budget, and what is shown of as much history as it holds."""
        most = min(context.budget.limit, context.whole_tokens)
        self.used.append(context.tokens / most)
        shown = sum(tokens[seq] for seq in context.seqs)
        self.verbatim.append(min(shown / min(sum(tokens.values()), context.budget.limit), 1))


async def build(bench: Bench) -> AsyncIterator[Row]:
    """The prompts of `layered`, and of what it was in the previous release."""
    talks = _talks(bench)
    ours = await _quality(talks, layered(), bench)
    other = await _quality(talks, previous_layered(), bench)
    titles = {
        "used": ("share of the budget used", at_least(0.9)),
        "verbatim": ("of the history that fits, shown word for word", at_least(0.8)),
        "evidence": ("evidence found", at_least(0.95)),
        "repeated": ("repeated from the last prompt", at_least(0.8)),
    }
    for name, (title, target) in titles.items():
        mine, its = mean(getattr(ours, name)), mean(getattr(other, name))
        yield Row(f"prompts: {title}", f"{mine:.1%}", f"{its:.1%} before", mine, target)


async def _quality(talks: Sequence[_Talk], strategy: Strategy, bench: Bench) -> _Quality:
    """Contexts at budgets that grow and shrink: for questions, and for two turns without one."""
    found = _Quality()
    for number, talk in enumerate(talks):
        async with opened("memory:", worker=False, strategy=strategy) as memory:
            await memory.append("talk", talk.messages)
            said = iter(bench.messages)
            for step, budget in enumerate(_BUDGETS):
                progress(f"prompts: {strategy.name}, {number + 1} of {len(talks)} conversations")
                await _asked(memory, talk, budget, step, found)
                await memory.context("talk", budget)
                await memory.append("talk", [next(said), next(said)])
                context = await memory.context("talk", budget)
                found.repeated.append(context.stability or 0)
    return found


async def _asked(memory: Memory, talk: _Talk, budget: int, step: int, found: _Quality) -> None:
    tokens = {entry.seq: entry.tokens for entry in await memory.read("talk")}
    for number in range(_QUESTIONS):
        text, evidence = talk.questions[(step * _QUESTIONS + number) % len(talk.questions)]
        context = await memory.context("talk", budget, text)
        found.add(context, tokens)
        found.evidence.append(len(evidence & set(context.seqs)) / len(evidence))


# -- how even a chat's contexts are -----------------------------------------------------------


async def even(bench: Bench) -> AsyncIterator[Row]:
    """The slowest context of a chat against the usual one, while digests are made beside it."""
    turns = bench.size(300, 20)
    said = bench.endless_messages()
    taken: list[float] = []
    async with opened("memory:") as memory:
        for turn in range(turns):
            progress(f"prompts: {turn} of {turns} turns")
            text = " ".join(message.text for message in islice(said, 3))
            await memory.append("chat", Message.user(text))
            started = time.process_time()
            await memory.context("chat", _EVEN_BUDGET, text)
            taken.append(time.process_time() - started)
            await memory.append("chat", Message.assistant(next(said).text))
    taken.sort()
    usual, slow = taken[len(taken) // 2], taken[int(len(taken) * 0.99)]
    yield Row(
        f"prompts: p99 of {turns} turns with a question",
        f"{slow * 1000:.1f} ms",
        f"{usual * 1000:.1f} ms at the median",
        slow / usual,
        at_most(3),
    )
