"""Turns: store a user message, let a model answer, store the answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final

from fastapi import Request, Response

from firnline.engine.turn import Turn, TurnOptions
from firnline.errors import FirnlineError, InputError
from firnline.log.message import Message
from firnline.memory import Memory
from firnline.models.http import HttpModel
from firnline.protocols import ChatModel
from firnline.server.auth import Writing, caller_of, charge, parts_of, person_of
from firnline.server.bodies import json_response, require_head
from firnline.server.drafts import AnswerDraft, QuestionRef, answer_key, new_id
from firnline.server.offline_model import OfflineModel
from firnline.server.problems import as_problem
from firnline.server.prompts import record_turn
from firnline.server.rest import events, responses, schemas
from firnline.server.rest.contexts import budget_of
from firnline.server.rest.messages import message_of
from firnline.server.rest.openapi import (
    CONVERSATION,
    MISSING,
    REPLAYED,
    Responses,
    problems,
    router,
)
from firnline.server.rest.path_params import Conversation
from firnline.server.rest.requests import IdempotencyKey, TurnRequest
from firnline.server.state import Parts

routes = router("turns", CONVERSATION)

_EXAMPLE: Final = (
    'event: delta\ndata: {"text":"On 3 March."}\n\nevent: turn\ndata: {"text":...}\n\n'
)
_ANSWERED: Final[Responses] = {
    200: {
        "description": "Answered. Events: `delta` with `text`, then `turn`, or `error`.",
        "headers": REPLAYED,
        # Some tools validate the text of a stream, others each event.
        "content": {
            events.MEDIA_TYPE: {"schema": {"type": ["string", "object"]}, "example": _EXAMPLE}
        },
    },
    **problems(409, 415, 502, 504),
}


@routes.post("/turns", response_model=schemas.Turn, responses=_ANSWERED)
async def take_turn(
    request: Request,
    memory: Writing,
    conversation: Conversation,
    body: TurnRequest,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Store a user message, let the model answer, store the answer.

    The message is durable before the model is called. If the model fails, retry with the same
    `Idempotency-Key`: only the answer is requested again. Without a model, the answer consists of
    quotes from the conversation, and says so; `model` chooses one behind the proxy's endpoint.
    """
    parts = parts_of(request)
    own = parts.tenants.model or OfflineModel(memory, conversation)
    call = _TurnCall(
        memory=memory,
        conversation=conversation,
        message=body.message if isinstance(body.message, str) else message_of(body.message),
        model=own if body.model in (None, own.name) else _upstream_model(request, body.model),
        is_own=body.model in (None, own.name),
        key=idempotency_key,
        options=_options(parts, memory, body, person_of(request, body.person)),
    )
    if body.stream or events.MEDIA_TYPE in request.headers.get("accept", ""):
        return await _stream(request, parts, call)
    turn = await parts.streams.complete(call.run())
    charge(request, _cost(turn))
    headers = {} if turn.calls else {"idempotent-replayed": "true"}
    return json_response(responses.turn(turn, call.model.name), headers=headers)


def _upstream_model(request: Request, name: str) -> ChatModel:
    """The model `name` of the proxy's endpoint, with the key that the proxy would send."""
    settings = parts_of(request).settings
    if settings.upstream is None:
        raise InputError(
            f"model: {name!r} is not the server's model, and there is no endpoint to choose one"
            " from; omit it, or set FIRNLINE_UPSTREAM"
        )
    key = settings.upstream_key.get_secret_value() if settings.upstream_key else None
    return HttpModel(name, url=settings.upstream, api_key=key or caller_of(request).token or None)


@dataclass(frozen=True, slots=True)
class _TurnCall:
    """A user message, and the model and options to answer it.

    A model that is not the server's own is opened for this turn, and closed after it.
    """

    memory: Memory
    conversation: str
    message: str | Message
    model: ChatModel
    is_own: bool
    key: str | None
    options: TurnOptions

    async def run(self) -> Turn:
        """The complete turn; its prompt is recorded."""
        async with self._model() as model:
            turn = await self.memory.turn(
                self.conversation, self.message, model, idempotency_key=self.key, **self.options
            )
        await record_turn(self.memory, turn, self.model.name, "rest")
        return turn

    async def pieces(self) -> AsyncIterator[str | Turn]:
        """The turn in pieces of text, then the turn."""
        async with self._model() as model:
            async for piece in self.memory.stream(
                self.conversation, self.message, model, idempotency_key=self.key, **self.options
            ):
                if isinstance(piece, Turn):
                    await record_turn(self.memory, piece, self.model.name, "rest")
                yield piece

    @asynccontextmanager
    async def _model(self) -> AsyncIterator[ChatModel]:
        try:
            yield self.model
        finally:
            if not self.is_own:
                await self.model.close()


def _options(parts: Parts, memory: Memory, body: TurnRequest, person: str | None) -> TurnOptions:
    options: TurnOptions = {
        "system": body.system,
        "recall": body.recall,
        "recall_tools": body.recall_tools,
    }
    if body.budget is not None:
        options["budget"] = budget_of(parts, memory, body.budget)
    if body.task is not None:
        options["task"] = body.task
    if body.tool_tokens is not None:
        options["tool_tokens"] = body.tool_tokens
    if body.max_tokens is not None:
        options["max_tokens"] = body.max_tokens
    if person is not None:
        options["person"] = person
    return options


def _cost(turn: Turn) -> int:
    """Tokens that the model read and wrote, by its own count if it reports one."""
    counted = turn.prompt_tokens + turn.completion_tokens
    return (counted or turn.context.tokens + turn.answer.tokens) if turn.calls else 0


@routes.post("/turns/stop", response_model=schemas.StoppedTurns, responses=MISSING)
async def stop_turns(request: Request, memory: Writing, conversation: Conversation) -> Response:
    """Stop the answers that this process is streaming into the conversation.

    The text so far is stored and marked as interrupted. Closing the connection does not stop an
    answer.
    """
    await require_head(memory, conversation)
    stopped = await parts_of(request).streams.stop((memory.tenant, conversation))
    return json_response({"stopped": stopped})


# -- events -----------------------------------------------------------------------------------


async def _stream(request: Request, parts: Parts, call: _TurnCall) -> Response:
    head = await call.memory.head(call.conversation)
    draft_id = new_id()
    call = replace(call, options={**call.options, "answer_key": answer_key(draft_id)})
    before = QuestionRef(head.seq, head.hash) if head else QuestionRef(0)
    keeper = _LazyDraft(parts, call, before, draft_id)
    named = (call.memory.tenant, call.conversation)
    listener = parts.streams.open(_events(request, call), keeper, named)
    batches = listener.batches()
    # An error before the first piece is returned with its own status.
    first = await anext(batches)
    return events.stream(_join(first, batches, request.scope["path"]))


async def _events(request: Request, call: _TurnCall) -> AsyncGenerator[tuple[str, bytes], None]:
    """Each piece of the answer, and its event."""
    async for piece in call.pieces():
        if isinstance(piece, Turn):
            charge(request, _cost(piece))
            yield "", events.event("turn", responses.turn(piece, call.model.name))
        else:
            yield piece, events.event("delta", {"text": piece})


async def _join(
    first: list[bytes], batches: AsyncIterator[list[bytes]], path: str
) -> AsyncIterator[bytes]:
    yield b"".join(first)
    try:
        async for batch in batches:
            yield b"".join(batch)
    except FirnlineError as error:
        yield b"event: error\ndata: " + bytes(as_problem(error, path).body) + b"\n\n"


class _LazyDraft:
    """A draft that starts with the first words of the answer: the question is stored by then."""

    def __init__(self, parts: Parts, call: _TurnCall, before: QuestionRef, draft_id: str) -> None:
        self._parts, self._call, self._before, self._id = parts, call, before, draft_id
        self._draft: AnswerDraft | None = None

    async def add(self, text: str) -> None:
        """Store more of the text."""
        if self._draft is None:
            call = self._call
            self._draft = self._parts.drafts.begin(
                call.memory, call.conversation, *self._before, draft_id=self._id
            )
        await self._draft.add(text)

    async def end(self) -> None:
        """The answer is stored."""
        if self._draft is not None:
            await self._draft.end()

    async def cut(self, why: str) -> None:
        """The answer was interrupted; store the text so far."""
        if self._draft is not None:
            await self._draft.cut(why)
