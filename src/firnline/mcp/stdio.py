"""The server on standard input and output, for an agent that starts it as a process of its own."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import AsyncIterator
from typing import Any, Final

import anyio
from mcp import stdio_server

from firnline.log.regex import regex
from firnline.mcp.server import build
from firnline.memory import Memory

_CHUNK: Final = 1 << 20
_HALF: Final = rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
_HALVES: Final = regex(
    rb"(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\(?!u[dD][89a-fA-F]).)|"
    + _HALF,
    re.DOTALL,
)
"""Escapes of JSON: first those that stay, a pair that is one character or any other escape."""


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
            yield text_of(whole)
        waiting += rest
    if waiting:
        yield text_of(bytes(waiting))


def text_of(line: bytes) -> str:
    """The line, with U+FFFD for bytes that are no text and for escapes of half a character.

    JavaScript writes such an escape where it cut a text in the middle of an emoji. The SDK cannot
    read it and passes the line over: its sender would wait for an answer for ever.
    """
    if re.search(_HALF, line):
        line = _HALVES.sub(lambda found: found[1] or rb"\ufffd", line)
    return line.decode(errors="replace")


async def _chunk(file: int) -> bytes:
    try:
        await anyio.wait_readable(file)
    except PermissionError:  # a file: there is nothing to wait for
        await anyio.lowlevel.checkpoint()
    return os.read(file, _CHUNK)
