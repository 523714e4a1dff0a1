"""One turn of a chat: the question is stored, the model answers, the answer is stored.

The question is durable before the model is asked, and each tool call before the tool runs, so a
crash at any moment loses nothing that happened. The number of tool rounds is bounded; in the last
one the model gets no tools and has to answer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol, TypedDict

from firnline.context.budget import Budget, BudgetLike, Windows, as_budget
from firnline.context.context import Context, as_system
from firnline.context.plan import ends_round, is_question
from firnline.context.tools import Tool, answer, as_tools
from firnline.context.view import is_still
from firnline.engine.events import Timed, Values
from firnline.engine.options import check_names
from firnline.errors import (
    BudgetError,
    ConflictError,
    KeyReused,
    ModelError,
    UnknownConversation,
    outline,
)
from firnline.log import limits
from firnline.log.entry import Appended, Entry, Key
from firnline.log.message import Message
from firnline.log.threads import run_by_size
from firnline.models.model_like import ModelLike
from firnline.protocols import ChatModel, Completion, Retriever, Store

logger: Final = logging.getLogger("firnline.turn")

_TOKEN_CHARS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """The result of a turn: the entries it stored, the last context and the tokens spent.

    `degraded` is the reason if the answer is not from the model.
    """

    question: Entry
    answer: Entry
    context: Context
    calls: int
    prompt_tokens: int = 0
    completion_tokens: int = 0
    degraded: str = ""
    tool_results: tuple[Entry, ...] = field(default=())

    @property
    def text(self) -> str:
        """The answer's text."""
        return self.answer.message.text


class TurnOptions(TypedDict, total=False):
    """The options of a turn."""

    budget: BudgetLike
    """For the context; default: the model's window."""
    system: str | Message | None
    """The application's instructions to the model."""
    tools: Sequence[Tool]
    """Tools that the model may call."""
    recall: bool
    """Whether old entries that fit the question are recalled; default True."""
    recall_tools: bool
    """Whether the tools of `Memory.tools` are offered, too; default False."""
    tool_tokens: int
    """The most tokens of one result of these tools; default: as the window allows."""
    task: str
    """The current task; default: the project's."""
    person: str | None
    """Whom the conversation is with."""
    retriever: Retriever
    """Finds documents for the remaining room."""
    larger: ModelLike
    """A model with a larger window, used if even a context with digests does not fit."""
    rounds_max: int
    """The maximum number of rounds of tool calls."""
    max_tokens: int
    """The maximum length of an answer."""
    apology: str
    """The answer if the model fails; without one, its error is raised."""
    answer_key: str
    """The idempotency key of the answer: `KeyReused` if another one is stored under it."""


class Append(Protocol):
    """Stores messages at the end of the conversation that a question was asked in."""

    def __call__(self, question: Entry, /, *messages: Message) -> Awaitable[Appended]:
        """Durable when it returns; `UnknownConversation` if the question was erased."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialogue:
    """What a turn needs: how to store messages and build contexts, the model, the question."""

    append: Append
    build: Callable[..., Awaitable[Context]]
    model: ChatModel
    text: str
    options: TurnOptions
    larger: ChatModel | None
    budget_of: Callable[[str], Budget]
    timed: Callable[[str], Timed]


def check_options(options: TurnOptions, windows: Windows) -> None:
    """Raise `InputError` for invalid options, before the question is stored."""
    check_names(options, TurnOptions)
    if (budget := options.get("budget")) is not None:
        as_budget(budget, windows)
    as_system(options.get("system"))
    as_tools(options.get("tools", ()))


def of_turn(turn: Turn) -> Values:
    """The values of a turn's event; a repeated turn made no calls."""
    return {
        "calls": turn.calls,
        "tool_results": len(turn.tool_results),
        "prompt_tokens": turn.prompt_tokens,
        "completion_tokens": turn.completion_tokens,
        "degraded": int(bool(turn.degraded)),
        "replayed": int(not turn.calls and not turn.degraded),
    }


def of_completion(completion: Completion) -> Values:
    """The values of a model's answer in an event."""
    return {
        "prompt_tokens": completion.prompt_tokens,
        "completion_tokens": completion.completion_tokens,
    }


def _of_model(model: ChatModel) -> Values:
    return {"model": model.name}


async def run_turn(dialogue: Dialogue, question: Entry) -> Turn:
    """Ask until there is an answer; `ModelError` if the model fails and there is no apology."""
    turn: Turn | None = None
    async for item in stream_turn(dialogue, question, whole=True):
        if isinstance(item, Turn):
            turn = item
    if turn is None:
        raise ModelError("the model returned no answer")
    return turn


async def find_answer(store: Store, key: Key, question: Entry) -> Entry | None:
    """The answer that an earlier try of the turn has stored for this question."""
    first = question.seq + 1
    for entry in await store.read(key, first, limit=limits.ANSWER_REACH):
        if is_question(entry.message):
            return None
        if ends_round(entry.message):
            return entry
    return None


async def append_to_turn(
    store: Store,
    append: Callable[..., Awaitable[Appended]],
    key: Key,
    question: Entry,
    messages: Sequence[Message],
    answer_key: str | None = None,
) -> Appended:
    """Append to a turn in progress; a conversation erased meanwhile is not created again.

    What ends the turn is stored under `answer_key`.
    """
    idempotency_key = answer_key if ends_round(messages[-1]) else None
    for _ in range(limits.ANSWER_TRIES):
        head = await store.head(key)
        if head is None or not await is_still(store, key, question):
            raise UnknownConversation(f"{key.conversation!r} was erased in the meantime")
        # If another message was stored first, check again that it was not erased.
        try:
            return await append(
                key.conversation,
                messages,
                expected_seq=head.entries,
                idempotency_key=idempotency_key,
            )
        except KeyReused:
            raise
        except ConflictError:
            continue
    # So many conflicts prove that it exists.
    return await append(key.conversation, messages, idempotency_key=idempotency_key)


async def repeat_turn(dialogue: Dialogue, question: Entry, answer: Entry) -> Turn:
    """The turn of an earlier try, whose answer is stored: the model is not asked again."""
    _, context = await _context(dialogue, dialogue.options.get("tools", ()))
    return Turn(question=question, answer=answer, context=context, calls=0)


async def stream_turn(
    dialogue: Dialogue, question: Entry, *, whole: bool = False
) -> AsyncIterator[str | Turn]:
    """Yields the answer's text in pieces, then the `Turn`; with `whole` only the `Turn`."""
    tally = _Tally(question)
    try:
        async for item in _rounds(dialogue, tally, whole=whole):
            yield item
    except ModelError as error:
        apology = dialogue.options.get("apology")
        if apology is None or tally.context is None:
            raise
        logger.error("the model failed: %s", outline(error))  # noqa: TRY400 - no traceback needed
        sorry = Message.assistant(apology, metadata={"degraded": True})
        stored = await dialogue.append(question, sorry)
        if not whole:
            yield apology
        yield tally.turn(stored[-1], degraded=str(error))


@dataclass(slots=True)
class _Tally:
    """The state of a turn in progress."""

    question: Entry
    context: Context | None = None
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    results: list[Entry] = field(default_factory=list)

    def add(self, completion: Completion) -> None:
        self.calls += 1
        self.prompt_tokens += completion.prompt_tokens
        self.completion_tokens += completion.completion_tokens

    def turn(self, answer: Entry, degraded: str = "") -> Turn:
        if self.context is None:
            raise ModelError("the turn ended before the model was called")
        return Turn(
            question=self.question,
            answer=answer,
            context=self.context,
            calls=self.calls,
            prompt_tokens=self.prompt_tokens,
            completion_tokens=self.completion_tokens,
            degraded=degraded,
            tool_results=tuple(self.results),
        )


async def _rounds(dialogue: Dialogue, tally: _Tally, *, whole: bool) -> AsyncIterator[str | Turn]:
    """Ask, run the tools that the model calls, and ask again, until it answers."""
    while True:
        most = dialogue.options.get("rounds_max", limits.TOOL_ROUNDS_MAX)
        tools = dialogue.options.get("tools", ()) if tally.calls < most else ()
        model, tally.context = await _context(dialogue, tools)
        if not tally.calls:  # later messages are shown with the tool results
            tally.context = tally.context.up_to(tally.question.seq)
        completion: Completion | None = None
        async for item in _ask(dialogue, model, tally.context, tools, whole=whole):
            if isinstance(item, Completion):
                completion = item
            else:
                yield item
        if completion is None:
            raise ModelError("the model's stream ended without a final event")
        tally.add(completion)
        if not completion.message.tool_calls or not tools:
            said = _without_calls(completion.message, dialogue.options.get("tools", ()))
            stored = await dialogue.append(tally.question, said)
            yield tally.turn(stored[-1])
            return
        tally.results += await _tool_round(dialogue, tally.question, completion.message, tools)


async def _context(dialogue: Dialogue, tools: Sequence[Tool]) -> tuple[ChatModel, Context]:
    """The context and its model: the larger one if the first one's window is full."""
    options = dialogue.options
    request = {
        "question": dialogue.text if options.get("recall", True) else None,
        "system": options.get("system"),
        "tools": [tool.to_openai() for tool in tools],
        "task": options.get("task"),
        "retriever": options.get("retriever"),
    }
    larger = dialogue.larger
    near = options.get("budget") or dialogue.budget_of(dialogue.model.name)
    far = dialogue.budget_of(larger.name) if larger else None
    fell_back, context = await within(lambda budget: dialogue.build(budget, **request), near, far)
    if larger is None or not fell_back:
        return dialogue.model, context
    dialogue.timed("fallback").done(_of_model, larger)
    return larger, context


async def within(
    build: Callable[[BudgetLike], Awaitable[Context]], near: BudgetLike, far: BudgetLike | None
) -> tuple[bool, Context]:
    """A context for `near`; if it does not fit there, one for `far`, and True."""
    try:
        context = await build(near)
        if far is None or not context.crowded:
            return False, context
    except BudgetError:
        if far is None:
            raise
    return True, await build(far)


async def _ask(
    dialogue: Dialogue, model: ChatModel, context: Context, tools: Sequence[Tool], *, whole: bool
) -> AsyncIterator[str | Completion]:
    chars = _TOKEN_CHARS * context.tokens
    messages = await run_by_size(chars, partial(context.to_openai, merge=True))
    schemas = [tool.to_openai() for tool in tools]
    most = dialogue.options.get("max_tokens")

    def described(completion: Completion) -> Values:
        compacted = int(context.accounting.digests > 0)
        about = {**_of_model(model), "stream": int(not whole), "compacted": compacted}
        return {**about, **of_completion(completion)}

    with dialogue.timed("chat") as timer:
        if whole:
            completion = await model.complete(messages, tools=schemas, max_tokens=most)
            timer.done(described, completion)
            yield completion
            return
        async for item in model.stream(messages, tools=schemas, max_tokens=most):
            if isinstance(item, Completion):
                timer.done(described, item)
            yield item


async def _tool_round(
    dialogue: Dialogue, question: Entry, message: Message, tools: Sequence[Tool]
) -> Sequence[Entry]:
    """Store the calls, run the tools concurrently, store the results in the order of the calls."""
    await dialogue.append(question, message)
    answers = await asyncio.gather(*(answer(call, tools) for call in message.tool_calls))
    results = [
        Message.tool(text, tool_call_id=call.id)
        for call, text in zip(message.tool_calls, answers, strict=True)
    ]
    return tuple(await dialogue.append(question, *results))


def _without_calls(message: Message, offered: Sequence[Tool]) -> Message:
    """The answer without tool calls, which will not be run."""
    if not message.tool_calls:
        return message
    why = "within the allowed rounds" if offered else "but a call of a tool that was not offered"
    return Message.assistant(message.text or f"(no answer {why})")
