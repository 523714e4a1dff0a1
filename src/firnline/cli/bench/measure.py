"""Ask every question, and note what of its evidence came back within so many tokens."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import count
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias

from firnline.cli.bench.baselines import Baselines, Turn, names, pack, turn_of
from firnline.cli.bench.cases import Case, Question
from firnline.context.context import Context
from firnline.errors import BudgetError, InputError
from firnline.log.entry import Head, Hit
from firnline.log.message import Message
from firnline.protocols import Embedder, Progress

Way: TypeAlias = Literal["recall", "context"]
"""How the memory is asked: for entries that fit the question, or for a whole context."""

Watch: TypeAlias = Callable[[str], AbstractContextManager[Progress]]
"""A progress bar for what it is told."""

OURS: Final = "Firnline"

_APPEND_PAGE: Final = 500


class Asked(Protocol):
    """What is asked of a memory; `firnline.Memory` is one."""

    async def head(self, conversation: str, /) -> Head | None:
        """Where the conversation stands."""
        ...

    async def append(self, conversation: str, messages: Sequence[Message], /) -> object:
        """Add messages to its end."""
        ...

    async def embed(self, conversation: str, /, *, progress: Progress | None = None) -> int:
        """Finish the vectors that are owed."""
        ...

    async def recall(self, conversation: str, query: str, /, *, tokens: int) -> Sequence[Hit]:
        """Entries that fit the question and take at most `tokens` together, best first."""
        ...

    async def context(self, conversation: str, budget: int, question: str | None, /) -> Context:
        """What a model should see."""
        ...


# -- what came out ----------------------------------------------------------------------------


class Found(NamedTuple):
    """What came back within one budget.

    `evidence` says of each piece whether it is there. `over`: more came back than was asked for;
    what did not fit counts as not there. `refused`: there was no room for a context at all.
    """

    evidence: tuple[bool, ...]
    tokens: int
    milliseconds: float
    over: bool = False
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """What one method found for a question, by budget."""

    conversation: str
    question: Question
    found: dict[int, Found] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Measured:
    """All of a run: for each method the answers to all questions, in the same order."""

    cases: tuple[Case, ...]
    tokens: tuple[int, ...]
    answers: dict[str, list[Answer]]


class _Given(NamedTuple):
    """The entries that are there word for word, and the tokens all of it takes."""

    seqs: frozenset[int]
    tokens: int
    over: bool = False
    refused: bool = False


# -- the run ----------------------------------------------------------------------------------


async def measure(
    memory: Asked,
    cases: Sequence[Case],
    tokens: Sequence[int],
    *,
    ways: Sequence[Way] = ("recall",),
    baselines: bool = False,
    embedder: Embedder | None = None,
    watch: Watch,
) -> Measured:
    """Append every conversation to the memory, finish its vectors, ask every question.

    `embedder` is for the baselines; the memory has its own.
    """
    await _fill(memory, cases, watch)
    with watch("embedding") as progress:
        for case in cases:
            await memory.embed(case.conversation, progress=progress)
    methods = [*(names(embedder) if baselines else ()), *(f"{OURS} {way}" for way in ways)]
    answers: dict[str, list[Answer]] = {name: [] for name in methods}
    total = len(methods) * sum(len(case.questions) for case in cases) * len(tokens)
    with watch("asking") as progress:
        asked = count(1)
        for case in cases:
            run = _Run(memory, case, tokens, lambda: progress(next(asked), total))
            async for name, answer in run.answers(ways, embedder, baselines=baselines):
                answers[name].append(answer)
    return Measured(tuple(cases), tuple(tokens), answers)


async def _fill(memory: Asked, cases: Sequence[Case], watch: Watch) -> None:
    total, done = sum(len(case.messages) for case in cases), 0
    with watch("appending") as progress:
        for case in cases:
            if await memory.head(case.conversation) is not None:
                raise InputError(
                    f"the store has a conversation {case.conversation!r} already; "
                    "a benchmark needs an empty one"
                )
            for at in range(0, len(case.messages), _APPEND_PAGE):
                page = case.messages[at : at + _APPEND_PAGE]
                await memory.append(case.conversation, page)
                done += len(page)
                progress(done, total)


class _Run:
    """The questions of one conversation, asked of one after the other."""

    def __init__(
        self, memory: Asked, case: Case, tokens: Sequence[int], tick: Callable[[], None]
    ) -> None:
        self.memory, self.case, self.tokens, self.tick = memory, case, tokens, tick
        self.turns = [turn_of(message) for message in case.messages]

    async def answers(
        self, ways: Sequence[Way], embedder: Embedder | None, *, baselines: bool
    ) -> AsyncIterator[tuple[str, Answer]]:
        """The answers with the name of the method that gave them."""
        if baselines:
            plain = Baselines(self.turns, embedder)
            await plain.prepare()
            for name in names(embedder):
                for question in self.case.questions:
                    yield name, await self._ranked(plain, name, question)
        for way in ways:
            for answer in await self._remembered(way):
                yield f"{OURS} {way}", answer

    async def _ranked(self, plain: Baselines, name: str, question: Question) -> Answer:
        """A baseline ranks once; the budgets differ in how much of it is taken."""
        answer = Answer(self.case.conversation, question)
        started = time.perf_counter()
        ranked = await plain.rank(name, question.text)
        took = time.perf_counter() - started
        for budget in self.tokens:
            taken = pack(ranked, self.turns, budget)
            answer.found[budget] = _found(question, _given(taken, self.turns), took)
            self.tick()
        return answer

    async def _remembered(self, way: Way) -> list[Answer]:
        """A memory is asked anew for each budget, the largest first.

        Digests that a small budget makes due would still be in force for a larger one.
        """
        ask = self._by_recall if way == "recall" else self._by_context
        answers = [Answer(self.case.conversation, question) for question in self.case.questions]
        for budget in sorted(self.tokens, reverse=True):
            if way == "context":  # so that digests are made before the clock runs
                await self._by_context(None, budget)
            for answer in answers:
                started = time.perf_counter()
                given = await ask(answer.question.text, budget)
                took = time.perf_counter() - started
                answer.found[budget] = _found(answer.question, given, took)
                self.tick()
        return answers

    async def _by_recall(self, question: str, budget: int) -> _Given:
        """Hits that are the entry word for word, packed as the baselines are."""
        hits = await self.memory.recall(self.case.conversation, question, tokens=budget)
        whole = [hit.seq for hit in hits if hit.message.text == self.turns[hit.seq].text]
        taken = pack(dict.fromkeys(whole), self.turns, budget)
        return _given(taken, self.turns, over=len(taken) < len(whole))

    async def _by_context(self, question: str | None, budget: int) -> _Given:
        """Entries that the context says it holds, and whose text really is in its messages."""
        try:
            context = await self.memory.context(self.case.conversation, budget, question)
        except BudgetError:
            return _Given(frozenset(), 0, refused=True)
        if context.tokens > budget:
            return _Given(frozenset(), context.tokens, over=True)
        return _Given(shown(context, self.turns), context.tokens)


def _given(seqs: Sequence[int], turns: Sequence[Turn], *, over: bool = False) -> _Given:
    return _Given(frozenset(seqs), sum(turns[seq].tokens for seq in seqs), over)


def _found(question: Question, given: _Given, seconds: float) -> Found:
    there = tuple(bool(piece.seqs & given.seqs) for piece in question.evidence)
    return Found(there, given.tokens, seconds * 1_000, given.over, given.refused)


def shown(context: Context, turns: Sequence[Turn]) -> frozenset[int]:
    """The entries that are in a context word for word: it says so, and they are.

    An entry has a message of its own, or it is quoted in the recalled ones behind its number. A
    text that is there without its number may be somebody else's "Yes!", so it does not count.
    """
    own = {
        piece.entry.seq
        for piece in context.pieces
        if piece.entry and piece.whole and turns[piece.entry.seq].text == piece.message.text
    }
    recalled = "\n".join(piece.message.text for piece in context["recalled"].pieces)
    quoted = {
        seq
        for seq in (hit.seq for hit in context.hits)
        if re.search(rf"\b{seq}\b[^\n]*?{re.escape(turns[seq].text)}", recalled)
    }
    return frozenset(own | quoted)
