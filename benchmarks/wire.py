"""A bare HTTP client and a bare endpoint: their own cost must not hide the server's."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def connect(url: str) -> Streams:
    parts = urlsplit(url)
    return await asyncio.open_connection(parts.hostname, parts.port)


def request(path: str, body: object) -> bytes:
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data


async def exchange(streams: Streams, data: bytes) -> int:
    """Send a request, read the complete answer, return its status."""
    reader, writer = streams
    writer.write(data)
    head = await reader.readuntil(b"\r\n\r\n")
    length = head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]
    await reader.readexactly(int(length))
    return int(head[9:12])


async def first_event(streams: Streams, data: bytes) -> bytes:
    """Send a request, and read until the first event of its answer."""
    reader, writer = streams
    writer.write(data)
    await reader.readuntil(b"\r\n\r\n")
    return await reader.readuntil(b"data: ")


async def whole_stream(streams: Streams, data: bytes) -> None:
    """Send a request, and read its streamed answer to the end."""
    reader, writer = streams
    writer.write(data)
    await reader.readuntil(b"[DONE]")
    await reader.readuntil(b"0\r\n\r\n")


WORDS = [f"word{n} " for n in range(30)]


def _event(delta: dict[str, str], reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "gpt-4o-mini"}
    return f"data: {json.dumps({**chunk, 'choices': [choice]})}\n\n".encode()


def _chunked(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


@asynccontextmanager
async def endpoint(*, idle: asyncio.Event | None = None) -> AsyncIterator[str]:
    """An endpoint that streams an answer of 30 words at once; with `idle`, one word until then."""
    head = (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    events = [_event({"content": word}) for word in WORDS]
    last = _chunked(_event({}, "stop")) + _chunked(b"data: [DONE]\n\n") + b"0\r\n\r\n"

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                asked = await reader.readuntil(b"\r\n\r\n")
                length = asked.lower().split(b"content-length: ")[1].split(b"\r\n")[0]
                await reader.readexactly(int(length))
                writer.write(head + _chunked(events[0]))
                if idle is not None:
                    await idle.wait()
                writer.write(b"".join(map(_chunked, events[1:])) + last)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=2_048, limit=1 << 22)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}/v1"
