"""Server-sent events with JSON data, and keep-alive comments in pauses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, Final

from fastapi.responses import StreamingResponse

from firnline.log.message import encode_json
from firnline.server.limits import EVENT_ALIVE_SECONDS

MEDIA_TYPE: Final = "text/event-stream"
_ALIVE: Final = b": alive\n\n"
_HEADERS: Final = {"cache-control": "no-store", "x-accel-buffering": "no"}


def event(name: str, data: Any) -> bytes:
    """One event; its JSON has no line breaks."""
    return f"event: {name}\ndata: {encode_json(data)}\n\n".encode()


def stream(events: AsyncIterator[bytes]) -> StreamingResponse:
    """The events as a response."""
    return StreamingResponse(_keep_alive(events), media_type=MEDIA_TYPE, headers=_HEADERS)


async def _keep_alive(events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The events, with comments in long pauses so that proxies keep the connection open."""
    coming = asyncio.ensure_future(anext(events, None))
    try:
        while True:
            await asyncio.wait([coming], timeout=EVENT_ALIVE_SECONDS)
            if not coming.done():
                yield _ALIVE
                continue
            arrived = coming.result()
            if arrived is None:
                return
            yield arrived
            coming = asyncio.ensure_future(anext(events, None))
    finally:
        coming.cancel()
        with suppress(asyncio.CancelledError):
            await coming
        await events.aclose()  # type: ignore[attr-defined]
