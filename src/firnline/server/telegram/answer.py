"""Answers to stored messages: each is stored once, no matter how often it is attempted.

An answer lists the messages it answers (``answers`` in its metadata). Its idempotency key is
derived from the oldest of them. So an answer is found again after a crash, and if two processes
answer at the same time, only one answer is stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from firnline.context.plan import ends_round
from firnline.engine.events import Events
from firnline.engine.turn import Dialogue, TurnOptions, of_turn, run_turn
from firnline.errors import ConflictError, ModelError, ModelTimeout, UnknownConversation
from firnline.log import limits
from firnline.log.entry import Appended, Entry, live
from firnline.log.message import Message
from firnline.memory import Memory
from firnline.protocols import ChatModel
from firnline.server.limits import TELEGRAM_CONFLICTS_MAX
from firnline.server.prompts import record_turn
from firnline.server.telegram.jobs import ReplyJob
from firnline.server.telegram.settings import BotSettings


class Overtaken(Exception):
    """A new message arrived while the model was answering; the answer should include it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """The input for an answer: jobs and their messages, oldest first, and the model.

    `overtaken` returns whether new messages have arrived; then the answer is not stored and
    `Overtaken` is raised.
    """

    memory: Memory
    bot: BotSettings
    model: ChatModel
    jobs: Sequence[ReplyJob]
    questions: Sequence[Entry]
    seconds: float
    overtaken: Callable[[], Awaitable[bool]]
    events: Events

    @property
    def conversation(self) -> str:
        """The conversation that the messages belong to."""
        return self.jobs[0].place.conversation


async def questions_of(memory: Memory, jobs: Sequence[ReplyJob]) -> Sequence[Entry]:
    """The messages to answer; `UnknownConversation` if they do not exist."""
    conversation = jobs[0].place.conversation
    found = await memory.read_at(conversation, [job.seq for job in jobs])
    if len(live(found)) < len(jobs):
        raise UnknownConversation(f"{conversation} was erased before it was answered")
    return found


async def answer_to(memory: Memory, conversation: str, seq: int) -> Entry | None:
    """The answer to the message at `seq`, if there is one."""
    first = seq + 1
    while page := await memory.read(conversation, first_seq=first, limit=limits.ANSWER_REACH):
        for entry in page:
            if seq in answered_by(entry):
                return entry
        first = page[-1].seq + 1
    return None


def answered_by(entry: Entry) -> set[int]:
    """The sequence numbers of the messages that an entry answers."""
    seqs = entry.message.metadata.get("answers")
    return {seq for seq in seqs if isinstance(seq, int)} if isinstance(seqs, list) else set()


async def answer(asking: Asking) -> Entry:
    """Create an answer and store it, unless another process has stored one."""
    fixed = _fixed(asking)
    with suppress(ConflictError):  # the key was used: an answer is already stored
        if fixed is None:
            await _ask(asking)
        else:
            await _store_answer(asking, Message.assistant(fixed))
    return await _stored(asking)


async def apologize(asking: Asking) -> Entry:
    """Store an apology in place of an answer."""
    sorry = Message.assistant(asking.bot.apology, metadata={"degraded": True})
    with suppress(ConflictError):
        await _store_answer(asking, sorry)
    return await _stored(asking)


async def _stored(asking: Asking) -> Entry:
    oldest = asking.jobs[0].seq
    found = await answer_to(asking.memory, asking.conversation, oldest)
    if found is None:
        raise ConflictError(f"{asking.conversation}: there is no answer to message {oldest} yet")
    return found


def _fixed(asking: Asking) -> str | None:
    """The fixed answer to a command, which needs no model."""
    texts = {"start": asking.bot.greeting, "help": asking.bot.help}
    return texts.get(asking.jobs[-1].command)


async def _ask(asking: Asking) -> None:
    memory, bot, conversation = asking.memory, asking.bot, asking.conversation
    head = await memory.head(conversation)
    if head is not None and head.strategy is None and bot.planned is not None:
        with suppress(ConflictError):  # set meanwhile; or erased, which must not be undone
            await memory.set_strategy(conversation, bot.planned, known=head)

    async def append(_: Entry, *messages: Message) -> Appended:
        if len(messages) == 1 and ends_round(messages[0]):
            return await _store_answer(asking, messages[0])
        return await _append(asking, messages)

    dialogue = Dialogue(
        append=append,
        build=lambda budget, **request: memory.context(conversation, budget, **request),
        model=asking.model,
        text="\n".join(question.message.text for question in asking.questions),
        options=_options(asking),
        larger=None,
        budget_of=memory.budget_of,
        timed=lambda name: asking.events.timed(name, conversation),
    )
    with asking.events.timed("turn", conversation) as told:
        try:
            async with asyncio.timeout(asking.seconds):
                turn = await run_turn(dialogue, asking.questions[-1])
            told.done(of_turn, turn)
        except TimeoutError as error:
            raise ModelTimeout(f"no answer within {asking.seconds:g} s") from error
    await record_turn(memory, turn, asking.model.name, "telegram")


def _options(asking: Asking) -> TurnOptions:
    bot = asking.bot
    options: TurnOptions = {"system": bot.system or None}
    if bot.window_tokens is not None:
        options["budget"] = bot.window_tokens
    if bot.recall_tools:
        budget = options.get("budget") or asking.model.name
        tools = asking.memory.tools(asking.conversation, zone=bot.zone, budget=budget)
        options["tools"] = tools
    return options


async def _store_answer(asking: Asking, message: Message) -> Appended:
    if not message.text.strip():
        raise ModelError("the model's answer is empty")
    if await asking.overtaken():
        raise Overtaken
    seqs: list[Any] = [job.seq for job in asking.jobs]
    known = replace(message, metadata={**message.metadata, "answers": seqs})
    oldest = asking.jobs[0]
    key = f"telegram:{oldest.place.bot_id}:{oldest.update_id}:answer"
    return await _append(asking, [known], key)


async def _append(asking: Asking, messages: Sequence[Message], key: str | None = None) -> Appended:
    """Append after the question; a conversation erased meanwhile is not created again."""
    memory, conversation = asking.memory, asking.conversation
    for _ in range(TELEGRAM_CONFLICTS_MAX):
        head = await memory.head(conversation)
        if head is None or await questions_of(memory, asking.jobs) != asking.questions:
            raise UnknownConversation(f"{conversation} was erased while it was answered")
        try:
            return await memory.append(
                conversation, messages, expected_seq=head.entries, idempotency_key=key
            )
        except ConflictError as error:
            if "expected_seq" not in error.context:
                raise  # the key was used before
    raise ConflictError(f"{conversation}: too many concurrent messages; retry")
