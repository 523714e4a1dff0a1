"""Turns: what the user says is stored, a model answers, and the answer is stored."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import Final

from fastapi import Request, Response

from firnline.engine.turn import Turn, TurnOptions
from firnline.errors import FirnlineError
from firnline.log.message import Message
from firnline.memory import Memory
from firnline.protocols import ChatModel
from firnline.server.auth import Writing, charge, parts_of
from firnline.server.bodies import head_of, sent
from firnline.server.drafts import Draft, Question
from firnline.server.offline_model import OfflineModel
from firnline.server.problems import as_problem
from firnline.server.prompts import keep_turn
from firnline.server.rest import events, responses, schemas
from firnline.server.rest.contexts import budget_of
from firnline.server.rest.messages import message_of
from firnline.server.rest.openapi import MISSING, REPLAYED, Responses, problems, router
from firnline.server.rest.path_params import Conversation
from firnline.server.rest.requests import IdempotencyKey, TurnRequest
from firnline.server.state import Parts

routes = router("turns")

_EXAMPLE: Final = (
    'event: delta\ndata: {"text":"On 3 March."}\n\nevent: turn\ndata: {"text":...}\n\n'
)
_TAKEN: Final[Responses] = {
    200: {
        "description": "Answered. As events: `delta` with `text`, then `turn`, or else `error`.",
        "headers": REPLAYED,
        # Some readers hold a stream's schema against its text, others against each event.
        "content": {
            events.MEDIA_TYPE: {"schema": {"type": ["string", "object"]}, "example": _EXAMPLE}
        },
    },
    **problems(409, 415, 502, 504),
}


@routes.post("/conversations/{conversation}/turns", response_model=schemas.Turn, responses=_TAKEN)
async def take_turn(
    request: Request,
    memory: Writing,
    conversation: Conversation,
    body: TurnRequest,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Store what the user says, let the model answer, store the answer.

    What the user says is durable before the model is asked: if the model fails, it stays, and the
    same request with the same `Idempotency-Key` asks for the answer alone. Without a model, the
    answer quotes what the conversation holds, and says so.
    """
    parts = parts_of(request)
    spoken = _Spoken(
        memory=memory,
        conversation=conversation,
        message=body.message if isinstance(body.message, str) else message_of(body.message),
        model=parts.tenants.model or OfflineModel(memory, conversation),
        key=idempotency_key,
        options=_options(parts, body),
    )
    if body.stream or events.MEDIA_TYPE in request.headers.get("accept", ""):
        return await _streamed(request, parts, spoken)
    turn = await parts.streams.whole(spoken.answered())
    charge(request, _cost(turn))
    headers = {} if turn.calls else {"idempotent-replayed": "true"}
    return sent(responses.turn(turn, spoken.model.name), headers=headers)


@dataclass(frozen=True, slots=True)
class _Spoken:
    """What is to be answered, by whom and how."""

    memory: Memory
    conversation: str
    message: str | Message
    model: ChatModel
    key: str | None
    options: TurnOptions

    async def answered(self) -> Turn:
        """The turn as a whole; its prompt is kept."""
        turn = await self.memory.turn(
            self.conversation,
            self.message,
            self.model,
            idempotency_key=self.key,
            **self.options,
        )
        await keep_turn(self.memory, turn, self.model.name, "rest")
        return turn

    async def pieces(self) -> AsyncIterator[str | Turn]:
        """The same in pieces."""
        async for piece in self.memory.stream(
            self.conversation,
            self.message,
            self.model,
            idempotency_key=self.key,
            **self.options,
        ):
            if isinstance(piece, Turn):
                await keep_turn(self.memory, piece, self.model.name, "rest")
            yield piece


def _options(parts: Parts, body: TurnRequest) -> TurnOptions:
    options: TurnOptions = {
        "system": body.system,
        "recall": body.recall,
        "recall_tools": body.recall_tools,
    }
    if body.budget is not None:
        options["budget"] = budget_of(parts, body.budget)
    if body.task is not None:
        options["task"] = body.task
    if body.max_tokens is not None:
        options["max_tokens"] = body.max_tokens
    return options


def _cost(turn: Turn) -> int:
    """What the model read and wrote, by its own count if it has one."""
    told = turn.prompt_tokens + turn.completion_tokens
    return (told or turn.context.tokens + turn.answer.tokens) if turn.calls else 0


@routes.post(
    "/conversations/{conversation}/turns/stop",
    response_model=schemas.StoppedTurns,
    responses=MISSING,
)
async def stop_turns(request: Request, memory: Writing, conversation: Conversation) -> Response:
    """End the answers that this process streams into the conversation, where they are.

    What has come of them is stored, marked as interrupted. To go away does not stop an answer.
    """
    await head_of(memory, conversation)
    stopped = await parts_of(request).streams.stop((memory.tenant, conversation))
    return sent({"stopped": stopped})


# -- as events --------------------------------------------------------------------------------


async def _streamed(request: Request, parts: Parts, spoken: _Spoken) -> Response:
    head = await spoken.memory.head(spoken.conversation)
    keeper = _Late(parts, spoken, Question(head.seq, head.hash) if head else Question(0))
    named = (spoken.memory.tenant, spoken.conversation)
    listener = parts.streams.open(_events(request, spoken), keeper, named)
    batches = listener.batches()
    # What goes wrong before the first piece is answered with a status of its own.
    first = await anext(batches)
    return events.stream(_told(first, batches, request.scope["path"]))


async def _events(request: Request, spoken: _Spoken) -> AsyncGenerator[tuple[str, bytes], None]:
    """Each piece of the answer, and the event that tells it."""
    async for piece in spoken.pieces():
        if isinstance(piece, Turn):
            charge(request, _cost(piece))
            yield "", events.event("turn", responses.turn(piece, spoken.model.name))
        else:
            yield piece, events.event("delta", {"text": piece})


async def _told(
    first: list[bytes], batches: AsyncIterator[list[bytes]], path: str
) -> AsyncIterator[bytes]:
    yield b"".join(first)
    try:
        async for batch in batches:
            yield b"".join(batch)
    except FirnlineError as error:
        yield b"event: error\ndata: " + bytes(as_problem(error, path).body) + b"\n\n"


class _Late:
    """A `Keeper` whose draft begins with the answer's first words: the question is stored then."""

    def __init__(self, parts: Parts, spoken: _Spoken, before: Question) -> None:
        self._parts, self._spoken, self._before = parts, spoken, before
        self._draft: Draft | None = None

    async def add(self, text: str) -> None:
        """Make more of the text durable."""
        if self._draft is None:
            self._draft = self._parts.drafts.begin(
                self._spoken.memory, self._spoken.conversation, *self._before
            )
        await self._draft.add(text)

    async def end(self) -> None:
        """The answer is stored."""
        if self._draft is not None:
            await self._draft.end()

    async def cut(self, why: str) -> None:
        """It broke off; store what there is."""
        if self._draft is not None:
            await self._draft.cut(why)
