"""Parses server-sent events as they arrive."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

_AT_ONCE: Final = 256
"""Lines that are read before other work gets its turn."""


async def read_events(pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[str, None]:
    """The data of server-sent events. Lines end with LF or CRLF only: JSON may hold the others."""
    held, data = list[bytes](), list[str]()  # held: the pieces of a line without an end
    async with aclosing(pieces):
        async for piece in pieces:
            held.append(piece)
            if b"\n" not in piece:
                continue
            *lines, rest = b"".join(held).split(b"\n")
            held = [rest]
            for number, line in enumerate(lines, 1):
                if number % _AT_ONCE == 0:
                    await asyncio.sleep(0)  # many small events in one piece hold up the loop
                name, _, value = line.rstrip(b"\r").decode(errors="replace").partition(":")
                if name == "data":
                    data.append(value.removeprefix(" "))
                elif data and not name and not value:
                    yield "\n".join(data)
                    data = []
    if data:
        yield "\n".join(data)
