"""``POST /v1/messages``: Anthropic's protocol, with the same memory behind it.

If there is an endpoint of Anthropic's, requests go there in its own shape (`native`); else they are
translated for the one that speaks OpenAI's protocol, or answered by the offline responder
(`translating`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from starlette.responses import Response, StreamingResponse

from firnline.errors import BudgetError, FirnlineError, InputError
from firnline.log.entry import Entry
from firnline.log.message import Message
from firnline.log.tokens import counter
from firnline.log.wire import anthropic_blocks, load_anthropic
from firnline.memory import Memory
from firnline.models.answers import CONTEXT_LENGTH, load_body, read_error
from firnline.models.http import limit_name
from firnline.server.auth import Reading, Writing, caller_of, parts_of
from firnline.server.problems import anthropic_body, as_anthropic
from firnline.server.proxy import anthropic_stream, blocks, openai_stream, translate
from firnline.server.proxy.chat import begin, but_type, read_body
from firnline.server.proxy.dialect import ANTHROPIC
from firnline.server.proxy.exchange import Exchange
from firnline.server.proxy.identity import named
from firnline.server.proxy.openai_stream import Asking
from firnline.server.proxy.upstream import Reply
from firnline.server.streams import StreamListener

router = APIRouter(tags=["proxy"])

_OK: Final = 200
_STREAM: Final = "text/event-stream"
_TOO_LONG: Final = "prompt is too long"
_FREE: Final = {"input_tokens": 0, "output_tokens": 0}
_DOCS: Final = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {"type": "object", "required": ["messages"]},
                "example": {
                    "model": "claude-sonnet-5",
                    "max_tokens": 1024,
                    "messages": [{"role": "user", "content": "Which order was it?"}],
                },
            }
        },
    }
}


class PromptTooLong(InputError):
    """The newest message does not fit; in the words that Anthropic's clients look for."""


@router.post("/v1/messages", summary="Messages, remembered", openapi_extra=_DOCS)
async def messages(request: Request, memory: Writing) -> Response:
    """Anthropic's messages; which conversation it is, is found out."""
    return await _messages(request, memory, None)


@router.post("/c/{conversation}/v1/messages", openapi_extra=_DOCS)
async def messages_in(request: Request, memory: Writing, conversation: str) -> Response:
    """The same for the conversation in the path: the client may send only what is new."""
    return await _messages(request, memory, conversation)


@router.post("/v1/messages/count_tokens", summary="Tokens of a request", openapi_extra=_DOCS)
@router.post("/c/{conversation}/v1/messages/count_tokens", include_in_schema=False)
async def count_tokens(request: Request, memory: Reading) -> Response:  # noqa: ARG001
    """The tokens of a request as it is sent, by our own counter."""
    body = await read_body(request)
    tools = translate.listed(body.get("tools") or [], "tools")
    sent, count = load_anthropic(body), counter(str(body.get("model") or ""))

    def counted() -> int:
        return int(count.sum([count.messages(sent), count.tools(tools)]))

    return JSONResponse({"input_tokens": await asyncio.to_thread(counted)})


async def _messages(request: Request, memory: Memory, path: str | None) -> Response:
    body = await read_body(request)
    exchange = _exchange(request, memory, body)
    await begin(exchange, named(path, request.headers, body))
    try:
        asking = await exchange.build()
    except BudgetError as error:
        floor, most = error.context.get("floor"), error.context.get("available")
        text = f"{_TOO_LONG}: {floor} tokens > {most} maximum; {error}"
        raise PromptTooLong(text, **error.context) from error
    if exchange.where is not None and exchange.where.answer is not None:
        return _again(exchange, exchange.where.answer)
    reply = await asking.send(asking.body)
    if reply.status != _OK:
        return await _refused(exchange, reply)
    headers, streams = but_type(reply.headers), exchange.parts.streams
    if body.get("stream"):
        listener = streams.open(_events(exchange, asking, reply), exchange.keeper())
        headers |= {**exchange.told(), "cache-control": "no-cache"}
        return StreamingResponse(_lines(listener), media_type=_STREAM, headers=headers)
    data = await streams.complete(_whole(exchange, asking, reply))
    return JSONResponse(data, headers={**headers, **exchange.told()})


def _exchange(request: Request, memory: Memory, body: dict[str, Any]) -> Exchange:
    parts = parts_of(request)
    caller, headers = caller_of(request), request.headers
    if parts.anthropic is not None:
        return Exchange(
            parts=parts,
            caller=caller,
            memory=memory,
            body=body,
            headers=headers,
            shape=ANTHROPIC,
            upstream=parts.anthropic,
            query=request.url.query,
        )
    limit = limit_name(parts.settings.upstream or "")
    return Exchange(
        parts=parts,
        caller=caller,
        memory=memory,
        body=translate.translated(body, limit),
        headers=headers,
        shape=translate.TRANSLATED,
        upstream=parts.upstream,
    )


# -- answers ----------------------------------------------------------------------------------


async def _whole(exchange: Exchange, asking: Asking, reply: Reply) -> dict[str, Any]:
    if exchange.shape is ANTHROPIC:
        return await exchange.whole(asking, anthropic_stream.whole(asking, reply))
    await exchange.whole(asking, openai_stream.whole(asking, reply))
    return translate.answer(asking)


def _events(
    exchange: Exchange, asking: Asking, reply: Reply
) -> AsyncGenerator[tuple[str, str], None]:
    if exchange.shape is ANTHROPIC:
        return exchange.events(asking, anthropic_stream.streamed(asking, reply))
    chunks = exchange.events(asking, openai_stream.streamed(asking, reply, with_usage=True))
    tokens = exchange.context.tokens if exchange.context else 0
    return translate.streamed(asking, chunks, tokens)


async def _lines(listener: StreamListener[str]) -> AsyncIterator[bytes]:
    try:
        async for frames in listener.batches():
            yield "".join(frames).encode()
    except FirnlineError as error:
        # The status is sent; Anthropic's clients know an error among the events.
        told = error.context.get("event") or bytes(as_anthropic(error).body).decode()
        yield blocks.framed({"type": "error"}, told).encode()


def _again(exchange: Exchange, entry: Entry) -> Response:
    """What was answered to the same request before."""
    headers = {**exchange.told(), "x-firnline-replayed": "true"}
    data = _stored(entry.message)
    if not exchange.body.get("stream"):
        return JSONResponse(data, headers=headers)
    frames = "".join(blocks.framed(event) for _, event in blocks.spelled(data))
    return Response(frames, media_type=_STREAM, headers=headers)


def _stored(message: Message) -> dict[str, Any]:
    """An answer that is in the log, as its client got it."""
    model = str(message.metadata.get("model") or "firnline")
    usual = "tool_use" if message.tool_calls else "end_turn"
    reason = translate.reason_of(str(message.metadata.get("finish_reason") or usual))
    return blocks.answer(model, anthropic_blocks(message), reason, _FREE)


async def _refused(exchange: Exchange, reply: Reply) -> Response:
    """The endpoint's own error; in Anthropic's shape if it has another."""
    body, headers = await reply.body(), {**reply.headers, **exchange.told()}
    if exchange.shape is ANTHROPIC:
        return Response(body, reply.status, headers)
    code, message = read_error(load_body(body), f"status {reply.status}")
    if code == CONTEXT_LENGTH:
        message = f"{_TOO_LONG}: {message}"
    return JSONResponse(anthropic_body(reply.status, message), reply.status, but_type(headers))
