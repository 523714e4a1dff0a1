"""The routes of the proxy, and the steps of one request."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any, Final
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from starlette.responses import Response, StreamingResponse

from firnline.errors import FirnlineError, InputError, ModelError, NotFound, outline
from firnline.log.draft import messages_size
from firnline.log.entry import FAILED, Entry
from firnline.log.threads import run_by_size, text_size
from firnline.log.tokens import counter
from firnline.log.wire import load_anthropic
from firnline.models.answers import load_body, read_error
from firnline.server.auth import Reading, Writing, caller_of, parts_of
from firnline.server.bodies import encode_body, json_response
from firnline.server.drafts import AnswerDraft
from firnline.server.offline_model import NAME, OfflineModel
from firnline.server.proxy import limits
from firnline.server.proxy.anthropic import ANTHROPIC
from firnline.server.proxy.completion import OfflineReply
from firnline.server.proxy.dialect import (
    AnswerStream,
    Body,
    Dialect,
    StreamEvent,
    UpstreamAnswer,
    UpstreamRounds,
)
from firnline.server.proxy.json_prefix import malformed
from firnline.server.proxy.locate import locate_conversation, record_answer, separate_request
from firnline.server.proxy.openai import OPENAI
from firnline.server.proxy.ownership import OwnMemory
from firnline.server.proxy.request import MemoryStatus, ProxyRequest, parse_request, read_body
from firnline.server.proxy.request_context import build_request_context
from firnline.server.proxy.translate import TRANSLATED, check_tools
from firnline.server.proxy.upstream import BAD_REQUEST, NOT_FOUND, OK, Reply, Upstream
from firnline.server.streams import StreamListener

logger: Final = logging.getLogger("firnline.proxy")

router = APIRouter(tags=["proxy"])
passthrough = APIRouter(include_in_schema=False)

_STREAM: Final = "text/event-stream"
_PASSED: Final = frozenset({"models", "embeddings", "moderations", "audio", "images"})
_FEW_TOKENS: Final = 2_000
_CHARS_OF_A_TOKEN: Final = 16  # or more: values of a part are no tokens
"""Stored answers up to this long are written in the event loop."""
_RELATIVE: Final = frozenset({"", ".", ".."})


def _document(**example: Any) -> dict[str, Any]:
    """The body of a request in the OpenAPI document."""
    example["messages"] = [{"role": "user", "content": "Which order was it?"}]
    schema = {"type": "object", "required": ["messages"]}
    content = {"application/json": {"schema": schema, "example": example}}
    return {"requestBody": {"required": True, "content": content}}


_CHAT: Final = _document(model="gpt-4o-mini")
_MESSAGES: Final = _document(model="claude-sonnet-5", max_tokens=1024)


# -- OpenAI's protocol ------------------------------------------------------------------------


@router.post("/v1/chat/completions", summary="Chat, remembered", openapi_extra=_CHAT)
async def chat(request: Request, memory: Writing) -> Response:
    """OpenAI's chat completions; which conversation it is, is found out."""
    upstream = _chat_upstream(request)
    return await answer_request(await parse_request(request, memory, None, OPENAI, upstream))


@router.post("/c/{conversation}/v1/chat/completions", openapi_extra=_CHAT)
async def chat_in(request: Request, memory: Writing, conversation: str) -> Response:
    """The same for the conversation in the path: the client may send only what is new."""
    upstream = _chat_upstream(request)
    parsed = await parse_request(request, memory, conversation, OPENAI, upstream)
    return await answer_request(parsed)


def _chat_upstream(request: Request) -> Upstream | None:
    """The endpoint for chat completions; None if the server has no endpoint at all."""
    parts = parts_of(request)
    if parts.upstream is None and parts.anthropic is not None:
        raise InputError(
            "this server's only endpoint is Anthropic's (FIRNLINE_ANTHROPIC), which has no chat"
            " completions: use /v1/responses or /v1/messages, or set FIRNLINE_UPSTREAM"
        )
    return parts.upstream


# -- Anthropic's protocol ---------------------------------------------------------------------


@router.post("/v1/messages", summary="Messages, remembered", openapi_extra=_MESSAGES)
async def messages(request: Request, memory: Writing) -> Response:
    """Anthropic's messages; which conversation it is, is found out."""
    return await answer_request(
        await parse_request(request, memory, None, *_anthropic_way(request))
    )


@router.post("/c/{conversation}/v1/messages", openapi_extra=_MESSAGES)
async def messages_in(request: Request, memory: Writing, conversation: str) -> Response:
    """The same for the conversation in the path: the client may send only what is new."""
    return await answer_request(
        await parse_request(request, memory, conversation, *_anthropic_way(request))
    )


def _anthropic_way(request: Request) -> tuple[Dialect, Upstream | None]:
    parts = parts_of(request)
    if parts.anthropic is not None:
        return ANTHROPIC, parts.anthropic
    return TRANSLATED, parts.upstream


@router.post("/v1/messages/count_tokens", summary="Tokens of a request", openapi_extra=_MESSAGES)
@router.post("/c/{conversation}/v1/messages/count_tokens", include_in_schema=False)
async def count_tokens(request: Request, memory: Reading) -> Response:  # noqa: ARG001
    """The tokens of a request as it is sent, by our own counter."""
    body = await read_body(request)
    tools = check_tools(body.get("tools") or [])
    count = counter(str(body.get("model") or ""))

    def total() -> int:
        return int(count.sum([count.messages(load_anthropic(body)), count.tools(tools)]))

    return JSONResponse({"input_tokens": await asyncio.to_thread(total)})


# -- the steps --------------------------------------------------------------------------------


async def answer_request(request: ProxyRequest) -> Response:
    """The response to a request."""
    located = await locate_conversation(request)
    status = located.status
    try:
        prepared, status = await build_request_context(request, located)
        if (moved := await separate_request(request, located, status)) is not None:
            prepared, status = await build_request_context(request, moved)
    except FirnlineError:
        await note_failure(request, status)
        raise
    if status.context is not None:
        request.parts.tokens.charge(request.caller.id, status.context.tokens)
    if status.location is not None and status.location.answer is not None:
        return await _replay_response(request, status, status.location.answer)
    rounds = UpstreamRounds(request.dialect, prepared, partial(send_upstream, request, status))
    reply = await _first_reply(request, status, prepared.body)
    if reply.status != OK:
        return await _reject(request, status, reply)
    if request.streams:
        return await _stream_response(request, status, rounds, reply)
    recording = _read_and_record_answer(request, status, rounds, reply)
    body, status = await request.parts.streams.complete(recording)
    return json_response(body, headers=_headers(request, status, reply))


async def _reject(request: ProxyRequest, status: MemoryStatus, reply: Reply) -> Response:
    """The endpoint's error; if it has no such path, with what may be wrong in the settings."""
    headers, error = {**reply.headers, **status.headers()}, await reply.body()
    upstream = request.upstream
    if upstream is not None and upstream.hint and reply.status == NOT_FOUND:
        _, message = await run_by_size(len(error), lambda: read_error(load_body(error), ""))
        logger.warning("the endpoint answered 404: %s", upstream.hint)
        raise NotFound(f"{upstream.hint}: the endpoint answered 404 {message}".strip())
    if upstream is not None and status.context is not None and status.window is None:
        upstream.listed.learn(request.model, error)
    reject = partial(request.dialect.rejection, reply.status, error, headers)
    return await run_by_size(len(error), reject)


async def _first_reply(request: ProxyRequest, status: MemoryStatus, body: Body) -> Reply:
    """The endpoint's answer, or its error, which the client gets."""
    try:
        reply = await send_upstream(request, status, body)
        if reply.status < BAD_REQUEST and reply.status != OK:
            raise ModelError(f"the upstream endpoint answered {reply.status}", code="status")
    except FirnlineError:
        await note_failure(request, status)
        raise
    if reply.status != OK:
        await note_failure(request, status)
    return reply


async def note_failure(request: ProxyRequest, status: MemoryStatus) -> None:
    """Leave a conversation out of lists that is only this request, which failed.

    Its messages stay, and the same request continues it.
    """
    location = status.location
    if location is None or location.first != 0:
        return
    try:
        head = await request.memory.head(location.conversation)
        if head is not None and head.hash == location.hash:
            metadata = {**head.metadata, FAILED: head.hash}
            await request.memory.describe(head.conversation, metadata=metadata, known=head)
    except FirnlineError as error:
        logger.warning("a failed request stays listed: %s", outline(error))


def _headers(request: ProxyRequest, status: MemoryStatus, reply: Reply) -> dict[str, str]:
    return {**_own_headers(reply.headers), **status.headers(), **request.dialect.headers()}


async def send_upstream(request: ProxyRequest, status: MemoryStatus, body: Body) -> Reply:
    """Send a body to the endpoint; without one, the offline model answers."""
    if request.upstream is None:
        location, memory = status.location, request.memory
        own = OwnMemory(memory, location.question) if location and location.anonymous else memory
        conversation = location.conversation if location else None
        return OfflineReply(OfflineModel(own, conversation), body)
    return await request.upstream.send(
        "POST",
        request.dialect.path,
        content=await run_by_size(text_size(body), partial(encode_body, body)),
        headers=request.headers,
        token=request.caller.token,
        query=request.query,
    )


async def _read_and_record_answer(
    request: ProxyRequest, status: MemoryStatus, rounds: UpstreamRounds, reply: Reply
) -> tuple[Body, MemoryStatus]:
    """The answer as the client gets it, stored before that."""
    try:
        body, answer = await request.dialect.read_answer(rounds, reply)
    except Exception as error:
        await note_failure(request, status)
        raise _upstream_error(error) from error
    return body, await record_answer(request, status, answer)


def _upstream_error(error: Exception) -> FirnlineError:
    """An error while an answer is read: the client's request is not what is wrong."""
    if isinstance(error, FirnlineError) and not isinstance(error, InputError):
        return error
    if not isinstance(error, InputError):
        logger.error("internal error while reading an upstream answer", exc_info=error)
    return malformed(outline(error))


async def _stream_response(
    request: ProxyRequest, status: MemoryStatus, rounds: UpstreamRounds, reply: Reply
) -> Response:
    """The answer as it arrives; a background task reads it, and continues without the client.

    An error before the first event is an error response. But an endpoint that takes its time does
    not keep the client waiting for the headers.
    """
    location, draft = status.location, None
    if location is not None:
        begin = request.parts.drafts.begin
        draft = begin(request.memory, location.conversation, location.question, location.hash)
    keeper = _ProxyDraft(draft)
    answer = request.dialect.stream_answer(rounds, reply)
    events = _record_stream(request, status, answer, keeper, reply.note_text)
    body = request.dialect.background_body
    named = request.dialect.stream_name
    listener = request.parts.streams.open(events, keeper, name=named)
    headers = {**_headers(request, status, reply), "cache-control": "no-cache"}
    if body is not None:
        listener.detach()
        return json_response(body, headers=headers)
    try:
        await listener.wait(limits.FIRST_EVENT_SECONDS)
    except FirnlineError as error:
        if "event" not in error.context:  # else the client gets the endpoint's own
            raise
    return StreamingResponse(_frames(listener, request), media_type=_STREAM, headers=headers)


async def _record_stream(
    request: ProxyRequest,
    status: MemoryStatus,
    answer: AnswerStream,
    keeper: _ProxyDraft,
    note_text: Callable[[], None],
) -> AsyncGenerator[StreamEvent, None]:
    """The events of the answer; it is stored before the events that end it."""
    try:
        async with aclosing(answer) as arriving:
            async for item in arriving:
                if isinstance(item, UpstreamAnswer):
                    recorded = await record_answer(request, status, item, keeper.draft)
                    keeper.answer_unsaved = recorded.answer_unsaved
                else:
                    if item[0]:
                        note_text()
                    yield item
    except Exception as error:
        await note_failure(request, status)
        raise _upstream_error(error) from error


async def _frames(listener: StreamListener[str], request: ProxyRequest) -> AsyncIterator[bytes]:
    try:
        async for frames in listener.batches():
            yield "".join(frames).encode(errors="replace")  # halves of pairs are not UTF-8
    except FirnlineError as error:  # the status is sent; clients expect the error as an event
        yield request.dialect.error_event(error).encode()


async def _replay_response(request: ProxyRequest, status: MemoryStatus, answer: Entry) -> Response:
    """The stored answer to the same request."""
    headers = {**status.headers(), "x-firnline-replayed": "true"}
    message = answer.message
    size = max(answer.tokens, messages_size(message) // _CHARS_OF_A_TOKEN)
    if not request.streams:
        body = await run_by_size(size, partial(request.dialect.replay_body, message), _FEW_TOKENS)
        return json_response(body, headers=headers)
    replay = partial(request.dialect.replay_events, message, request.body)
    events = await run_by_size(size, lambda: "".join(replay()), _FEW_TOKENS)
    return Response(events, media_type=_STREAM, headers=headers)


def _own_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers of an endpoint's answer, for a body that is written here."""
    return {name: value for name, value in headers.items() if name != "content-type"}


class _ProxyDraft:
    """The draft of a proxied answer: its failures do not end the chat. Without one, it is idle."""

    def __init__(self, draft: AnswerDraft | None) -> None:
        self.draft = draft
        self.answer_unsaved = False
        self._failed = False

    async def add(self, text: str) -> None:
        await self._try("add", text)

    async def end(self) -> None:
        # An answer that could not be stored is recovered from its draft later.
        await self._try("leave" if self.answer_unsaved else "end")

    async def cut(self, why: str) -> None:
        await self._try("cut", why)

    async def _try(self, verb: str, *arguments: str) -> None:
        if self.draft is None or self._failed:
            return
        try:
            await getattr(self.draft, verb)(*arguments)
        except FirnlineError as error:
            logger.error("the draft of an answer cannot be stored: %s", error)  # noqa: TRY400
            self._failed = True
            await self.draft.leave()


# -- other paths ------------------------------------------------------------------------------


@passthrough.get("/v1/{path:path}")
@passthrough.get("/c/{conversation}/v1/{path:path}")
async def pass_get(request: Request, memory: Reading, path: str) -> Response:  # noqa: ARG001
    """The endpoint's own answer."""
    return await _pass_through(request, path)


@passthrough.post("/v1/{path:path}")
@passthrough.post("/c/{conversation}/v1/{path:path}")
async def pass_post(request: Request, memory: Writing, path: str) -> Response:  # noqa: ARG001
    """The endpoint's own answer; it may cost something, so a key that only reads is not enough."""
    return await _pass_through(request, path)


async def _pass_through(request: Request, path: str) -> Response:
    parts = parts_of(request)
    segments = path.split("/")
    # Requests carry the server's own key, so no path may lead elsewhere.
    if segments[0] not in _PASSED or not _RELATIVE.isdisjoint(segments):
        raise NotFound(f"/v1/{path} is not forwarded; docs/proxy.md lists the paths that are")
    is_anthropic = "anthropic-version" in request.headers
    upstream = (parts.anthropic if is_anthropic else None) or parts.upstream
    if upstream is None:
        if path == "models":
            model = {"id": NAME, "object": "model", "created": 0, "owned_by": "firnline"}
            return JSONResponse({"object": "list", "data": [model]})
        raise NotFound("no upstream endpoint is configured: set FIRNLINE_UPSTREAM")
    reply = await upstream.send(
        request.method,
        "".join(f"/{quote(segment, safe='')}" for segment in segments),
        content=await request.body(),
        headers=request.headers,
        token=caller_of(request).token,
        query=request.url.query,
    )
    return StreamingResponse(reply.raw(), reply.status, reply.headers)
