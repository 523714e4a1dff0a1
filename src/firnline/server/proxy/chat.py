"""``POST /v1/chat/completions``: OpenAI's protocol, with a memory behind it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from starlette.responses import Response, StreamingResponse

from firnline.errors import BudgetError, FirnlineError, InputError
from firnline.log.wire import load_json
from firnline.memory import Memory
from firnline.server.auth import Writing, caller_of, parts_of
from firnline.server.problems import as_openai
from firnline.server.proxy import openai_stream
from firnline.server.proxy.exchange import Exchange
from firnline.server.proxy.identity import Named, named
from firnline.server.proxy.locate import Attempt
from firnline.server.proxy.openai_stream import Asking
from firnline.server.proxy.replay import AnswerAgain
from firnline.server.proxy.upstream import OfflineReply, Reply
from firnline.server.streams import StreamListener

router = APIRouter(tags=["proxy"])

_OK: Final = 200
_STREAM: Final = "text/event-stream"
_DOCS: Final = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {"type": "object", "required": ["messages"]},
                "example": {
                    "model": "gpt-4o-mini",
                    "messages": [{"role": "user", "content": "Which order was it?"}],
                },
            }
        },
    }
}


@router.post("/v1/chat/completions", summary="Chat, remembered", openapi_extra=_DOCS)
async def chat(request: Request, memory: Writing) -> Response:
    """OpenAI's chat completions; which conversation it is, is found out."""
    return await _chat(request, memory, None)


@router.post("/c/{conversation}/v1/chat/completions", openapi_extra=_DOCS)
async def chat_in(request: Request, memory: Writing, conversation: str) -> Response:
    """The same for the conversation in the path: the client may send only what is new."""
    return await _chat(request, memory, conversation)


async def _chat(request: Request, memory: Memory, path: str | None) -> Response:
    body = await read_body(request)
    exchange = Exchange(
        parts=parts_of(request),
        caller=caller_of(request),
        memory=memory,
        body=body,
        headers=request.headers,
        upstream=parts_of(request).upstream,
    )
    await begin(exchange, named(path, request.headers, body))
    try:
        asking = await exchange.build()
    except BudgetError as error:
        raise BudgetError(str(error), **error.context, code="context_length_exceeded") from error
    if exchange.where is not None and exchange.where.answer is not None:
        reply: Reply = OfflineReply(AnswerAgain(exchange.where.answer), body)
        return await again(exchange, reply)
    reply = await asking.send(asking.body)
    if reply.status != _OK:
        return Response(await reply.body(), reply.status, {**reply.headers, **exchange.told()})
    if body.get("stream"):
        return await streamed(exchange, asking, reply)
    data = await exchange.parts.streams.complete(
        exchange.whole(asking, openai_stream.whole(asking, reply))
    )
    headers = {**but_type(reply.headers), **exchange.told()}
    return JSONResponse(data, headers=headers)


async def begin(exchange: Exchange, name: Named | None) -> None:
    """Store what is new in a request, unless it says that it is not to be remembered."""
    if not exchange.body["messages"]:
        raise InputError("messages: there are none")
    if exchange.headers.get("x-firnline-memory", "").lower() != "off":
        await exchange.remember(name, attempt_of(exchange.headers))


async def read_body(request: Request) -> dict[str, Any]:
    """The request's JSON object with its messages; `InputError` if it is not one."""
    body = load_json(await request.body())
    messages = body.get("messages") if isinstance(body, dict) else None
    if not isinstance(body, dict) or not isinstance(messages, list):
        raise InputError("expected a JSON object with a list of messages")
    for at, message in enumerate(messages):
        if not isinstance(message, dict):
            raise InputError(f"messages[{at}]: expected an object")
    for name in ("api_base", "base_url", "api_key"):
        if name in body:
            raise InputError(f"{name}: where requests go is set by the server")
    return body


def attempt_of(headers: Mapping[str, str]) -> Attempt:
    """What the client says of a request that it may have sent before."""
    count = headers.get("x-stainless-retry-count", "0")
    return Attempt(headers.get("idempotency-key", ""), count.isdecimal() and int(count) > 0)


async def streamed(exchange: Exchange, asking: Asking, reply: Reply) -> Response:
    """The answer as it comes; a task of its own reads it, and goes on without the client."""
    options = exchange.body.get("stream_options")
    wanted = isinstance(options, dict) and bool(options.get("include_usage"))
    events = exchange.events(asking, openai_stream.streamed(asking, reply, with_usage=wanted))
    listener = exchange.parts.streams.open(events, exchange.keeper())
    headers = {**but_type(reply.headers), **exchange.told(), "cache-control": "no-cache"}
    return StreamingResponse(_lines(listener), media_type=_STREAM, headers=headers)


async def again(exchange: Exchange, reply: Reply) -> Response:
    """What was answered to the same request before."""
    headers = {**exchange.told(), "x-firnline-replayed": "true"}
    if not exchange.body.get("stream"):
        return JSONResponse(json.loads(await reply.body()), headers=headers)

    async def lines() -> AsyncIterator[bytes]:
        async for data in reply.events():
            yield f"data: {data}\n\n".encode()

    return StreamingResponse(lines(), media_type=_STREAM, headers=headers)


async def _lines(listener: StreamListener[str]) -> AsyncIterator[bytes]:
    try:
        async for batch in listener.batches():
            yield "".join([f"data: {data}\n\n" for data in batch]).encode()
    except FirnlineError as error:
        # The status is sent; OpenAI's clients know an error among the events.
        yield b"data: " + bytes(as_openai(error).body) + b"\n\n"


def but_type(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers of an endpoint's answer for one that we write ourselves."""
    return {name: value for name, value in headers.items() if name != "content-type"}
