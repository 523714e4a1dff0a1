"""The server on standard input and output, for an agent that starts it as a process."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import AsyncIterator
from typing import Any, Final

import anyio
from mcp import stdio_server

from firnline.log import limits
from firnline.log.regex import regex
from firnline.mcp.server import build
from firnline.memory import Memory

_HALF: Final = rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
_HALVES: Final = regex(
    rb"(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\(?!u[dD][89a-fA-F]).)|"
    + _HALF,
    re.DOTALL,
)
"""JSON escapes; the group matches those to keep: a surrogate pair, or any other escape."""


async def serve(memory: Memory, **options: Any) -> None:
    """Respond until the input ends or this is canceled; see `build` for the options.

    While it runs, standard output carries only the protocol; other output goes to standard error.
    """

    async def memory_of() -> Memory:
        return memory

    server = build(memory_of, **options)
    async with stdio_server(_input()) as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def _input() -> Any:
    """Input lines, read without a thread.

    The SDK's reader blocks in a thread that only more input can wake, so Ctrl-C would hang.
    """
    if sys.platform == "win32":
        return None  # pipes cannot be polled there; use the SDK's reader
    return _lines(sys.stdin.fileno())


async def _lines(file: int) -> AsyncIterator[str]:
    waiting = bytearray()
    while chunk := await _chunk(file):
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            complete = bytes(waiting) + line
            waiting.clear()
            yield text_of(complete)
        waiting += rest
    if waiting:
        yield text_of(bytes(waiting))


def text_of(line: bytes) -> str:
    """The line as text, with U+FFFD for invalid bytes and for escapes of lone surrogates.

    JavaScript writes such an escape where it cut a text in the middle of an emoji. The SDK cannot
    read it and skips the line, so its sender would wait forever.
    """
    if re.search(_HALF, line):
        line = _HALVES.sub(lambda found: found[1] or rb"\ufffd", line)
    return line.decode(errors="replace")


async def _chunk(file: int) -> bytes:
    try:
        await anyio.wait_readable(file)
    except PermissionError:  # a regular file is always readable
        await anyio.lowlevel.checkpoint()
    return os.read(file, limits.COPY_BYTES)
