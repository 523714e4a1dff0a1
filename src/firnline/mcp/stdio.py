"""The server on standard input and output, for an agent that starts it as a process of its own."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from typing import Any, Final

import anyio
from mcp import stdio_server

from firnline.mcp.server import build
from firnline.memory import Memory

_CHUNK: Final = 1 << 20


async def serve(memory: Memory, **options: Any) -> None:
    """Answer until the input ends or this is cancelled; see `build` for the options.

    While it runs, standard output is the protocol's alone: what else is printed goes to standard
    error.
    """

    async def only() -> Memory:
        return memory

    server = build(only, **options)
    async with stdio_server(_input()) as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def _input() -> Any:
    """Lines that can be waited for without a thread.

    The SDK's own reader sits in a thread that nothing but more input can wake: Ctrl-C would hang.
    """
    if sys.platform == "win32":
        return None  # there a pipe cannot be watched; the SDK's reader has to do
    return _lines(sys.stdin.fileno())


async def _lines(file: int) -> AsyncIterator[str]:
    waiting = bytearray()
    while chunk := await _chunk(file):
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            whole = bytes(waiting) + line
            waiting.clear()
            yield whole.decode(errors="replace")
        waiting += rest
    if waiting:
        yield waiting.decode(errors="replace")


async def _chunk(file: int) -> bytes:
    try:
        await anyio.wait_readable(file)
    except PermissionError:  # a file: there is nothing to wait for
        await anyio.lowlevel.checkpoint()
    return os.read(file, _CHUNK)
