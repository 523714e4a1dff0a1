"""Asks every question, and records how much of its evidence is in the result."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import count
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias

from firnline.cli.bench.baselines import Baselines, PackedTurn, names, pack, turn_of, turn_tokens
from firnline.cli.bench.cases import BenchCase, BenchQuestion, own_sentence
from firnline.context.context import Context
from firnline.errors import BudgetError, InputError
from firnline.log.entry import Head
from firnline.log.hit import Hit, TextSpan
from firnline.log.message import Message
from firnline.protocols import Embedder, Progress

AskMode: TypeAlias = Literal["recall", "context"]
"""What the memory is asked for: matching entries, or a context."""

Watch: TypeAlias = Callable[[str], AbstractContextManager[Progress]]
"""A progress bar with a label."""

OURS: Final = "Firnline"

_APPEND_PAGE: Final = 500


class BenchMemory(Protocol):
    """The part of `firnline.Memory` that a benchmark uses."""

    async def head(self, conversation: str, /) -> Head | None:
        """The conversation's head."""
        ...

    async def append(self, conversation: str, messages: Sequence[Message], /) -> object:
        """Append messages."""
        ...

    async def embed(self, conversation: str, /, *, progress: Progress | None = None) -> int:
        """Create the missing embeddings."""
        ...

    async def recall(self, conversation: str, query: str, /, *, tokens: int) -> Sequence[Hit]:
        """Entries that match the question, with at most `tokens` in total, best first."""
        ...

    async def context(self, conversation: str, budget: int, question: str | None, /) -> Context:
        """The context for a model."""
        ...


# -- what came out ----------------------------------------------------------------------------


class BudgetResult(NamedTuple):
    """The result within one budget.

    `evidence` says for each piece whether it was found: in whole messages, or in a passage that has
    the piece's own sentence; `whole` only counts whole messages. `over`: the result was larger than
    the budget, and what did not fit does not count. `refused`: it was too small for a context.
    """

    evidence: tuple[bool, ...]
    whole: tuple[bool, ...]
    tokens: int
    milliseconds: float
    over: bool = False
    refused: bool = False


@dataclass(frozen=True, slots=True)
class QuestionResult:
    """The results of one method for a question, by budget."""

    conversation: str
    question: BenchQuestion
    found: dict[int, BudgetResult] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BenchRun:
    """A complete run: for each method the results of all questions, in the same order."""

    cases: tuple[BenchCase, ...]
    tokens: tuple[int, ...]
    answers: dict[str, list[QuestionResult]]


class _Retrieved(NamedTuple):
    """The entries that are in the result in full, or by passage, and its tokens."""

    seqs: frozenset[int]
    tokens: int
    passages: Mapping[int, Sequence[TextSpan]] = {}
    over: bool = False
    refused: bool = False


# -- the run ----------------------------------------------------------------------------------


async def measure(
    memory: BenchMemory,
    cases: Sequence[BenchCase],
    tokens: Sequence[int],
    *,
    ways: Sequence[AskMode] = ("recall",),
    baselines: bool = False,
    embedder: Embedder | None = None,
    watch: Watch,
) -> BenchRun:
    """Append every conversation to the memory, embed it, and ask every question.

    `embedder` is for the baselines; the memory has its own.
    """
    await _fill(memory, cases, watch)
    with watch("embedding") as progress:
        for case in cases:
            await memory.embed(case.conversation, progress=progress)
    methods = [*(names(embedder) if baselines else ()), *(f"{OURS} {way}" for way in ways)]
    answers: dict[str, list[QuestionResult]] = {name: [] for name in methods}
    total = len(methods) * sum(len(case.questions) for case in cases) * len(tokens)
    with watch("asking") as progress:
        asked = count(1)
        for case in cases:
            run = _Run(memory, case, tokens, lambda: progress(next(asked), total))
            async for name, answer in run.answers(ways, embedder, baselines=baselines):
                answers[name].append(answer)
    return BenchRun(tuple(cases), tuple(tokens), answers)


async def _fill(memory: BenchMemory, cases: Sequence[BenchCase], watch: Watch) -> None:
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
    """Asks the questions of one conversation."""

    def __init__(
        self, memory: BenchMemory, case: BenchCase, tokens: Sequence[int], tick: Callable[[], None]
    ) -> None:
        self.memory, self.case, self.tokens, self.tick = memory, case, tokens, tick
        self.turns = [turn_of(message) for message in case.messages]

    async def answers(
        self, ways: Sequence[AskMode], embedder: Embedder | None, *, baselines: bool
    ) -> AsyncIterator[tuple[str, QuestionResult]]:
        """The results, each with the name of its method."""
        if baselines:
            plain = Baselines(self.turns, embedder)
            await plain.prepare()
            for name in names(embedder):
                for question in self.case.questions:
                    yield name, await self._ask_baseline(plain, name, question)
        for way in ways:
            for answer in await self._ask_memory(way):
                yield f"{OURS} {way}", answer

    async def _ask_baseline(
        self, plain: Baselines, name: str, question: BenchQuestion
    ) -> QuestionResult:
        """Rank once with a baseline, and pack the ranking for each budget."""
        answer = QuestionResult(self.case.conversation, question)
        started = time.perf_counter()
        ranked = await plain.rank(name, question.text)
        took = time.perf_counter() - started
        for budget in self.tokens:
            taken = pack(ranked, self.turns, budget)
            answer.found[budget] = self._result(question, _retrieved(taken, self.turns), took)
            self.tick()
        return answer

    async def _ask_memory(self, way: AskMode) -> list[QuestionResult]:
        """Ask the memory again for each budget, the largest first.

        Otherwise digests created for a small budget would be in force for a larger one.
        """
        ask = self._by_recall if way == "recall" else self._by_context
        answers = [
            QuestionResult(self.case.conversation, question) for question in self.case.questions
        ]
        for budget in sorted(self.tokens, reverse=True):
            if way == "context":  # so that digests are made before the clock runs
                await self._by_context(None, budget)
            for answer in answers:
                started = time.perf_counter()
                given = await ask(answer.question.text, budget)
                took = time.perf_counter() - started
                answer.found[budget] = self._result(answer.question, given, took)
                self.tick()
        return answers

    async def _by_recall(self, question: str, budget: int) -> _Retrieved:
        """Hits with the complete entry or passages of it, packed as the baselines are."""
        hits = await self.memory.recall(self.case.conversation, question, tokens=budget)
        whole, passages, left = set[int](), dict[int, Sequence[TextSpan]](), budget
        for hit in hits:
            turn = self.turns[hit.seq]
            if hit.message.text != turn.text or hit.seq in whole or hit.seq in passages:
                continue
            size = turn.tokens if not hit.passage else turn_tokens(turn.speaker, hit.text)
            if size > left:
                return _Retrieved(frozenset(whole), budget - left, passages, over=True)
            left -= size
            if hit.passage:
                passages[hit.seq] = hit.passage
            else:
                whole.add(hit.seq)
        return _Retrieved(frozenset(whole), budget - left, passages)

    def _result(
        self, question: BenchQuestion, retrieved: _Retrieved, seconds: float
    ) -> BudgetResult:
        """Which evidence of a question is in what was retrieved."""
        whole = tuple(bool(piece.seqs & retrieved.seqs) for piece in question.evidence)
        found = tuple(
            there or any(self._has_sentence(question, seq, retrieved) for seq in piece.seqs)
            for there, piece in zip(whole, question.evidence, strict=True)
        )
        milliseconds = seconds * 1_000
        return BudgetResult(
            found, whole, retrieved.tokens, milliseconds, retrieved.over, retrieved.refused
        )

    def _has_sentence(self, question: BenchQuestion, seq: int, retrieved: _Retrieved) -> bool:
        """Whether the passages of an entry have the sentence that is the evidence."""
        spans = retrieved.passages.get(seq, ())
        if not spans:
            return False
        own = own_sentence(self.turns[seq].text, question.text, question.answer)
        return own is not None and any(a <= own.start and own.end <= b for a, b in spans)

    async def _by_context(self, question: str | None, budget: int) -> _Retrieved:
        """Entries that the context lists and whose text is in its messages."""
        try:
            context = await self.memory.context(self.case.conversation, budget, question)
        except BudgetError:
            return _Retrieved(frozenset(), 0, refused=True)
        if context.tokens > budget:
            return _Retrieved(frozenset(), context.tokens, over=True)
        return _Retrieved(entries_in(context, self.turns), context.tokens)


def _retrieved(seqs: Sequence[int], turns: Sequence[PackedTurn]) -> _Retrieved:
    return _Retrieved(frozenset(seqs), sum(turns[seq].tokens for seq in seqs))


def entries_in(context: Context, turns: Sequence[PackedTurn]) -> frozenset[int]:
    """The entries that are in a context in full.

    An entry is a message, or it is quoted with its number. A text without its number does not
    count: it may be another "Yes!".
    """
    own = {
        piece.entry.seq
        for piece in context.pieces
        if piece.entry and piece.whole and turns[piece.entry.seq].text == piece.message.text
    }
    quoted = {
        entry.seq
        for piece in context.pieces
        for entry in piece.quoted
        if _is_quoted(entry.seq, turns[entry.seq].text, piece.message.text)
    }
    return frozenset(own | quoted)


def _is_quoted(seq: int, text: str, quotes: str) -> bool:
    return re.search(rf"\b{seq}\b[^\n]*?{re.escape(text)}", quotes) is not None
