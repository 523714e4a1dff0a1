"""The MCP server on standard input and output, for an agent that starts it."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
import sys
from contextlib import suppress

from firnline.cli.arguments import Command, add_writer
from firnline.cli.open import with_memory
from firnline.errors import FirnlineError
from firnline.memory import Memory


def _mcp(options: argparse.Namespace) -> None:
    try:
        from firnline.mcp import serve  # noqa: PLC0415 - the SDK is an optional extra
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("firnline"):
            raise
        raise FirnlineError('MCP needs an extra: pip install "firnline[mcp]"') from error
    # Standard output is the protocol's; whatever there is to say goes to standard error.
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(name)s: %(message)s")

    async def work(memory: Memory) -> None:
        answering = asyncio.ensure_future(
            serve(memory, zone=options.zone, may_write=lambda: not options.read_only)
        )
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            with suppress(NotImplementedError):  # Windows has none; there Ctrl-C cancels it
                loop.add_signal_handler(number, answering.cancel)
        with suppress(asyncio.CancelledError):
            await answering

    with_memory(options, work, create=True, worker=True, embedder=_embedder(options.embedder))


def _embedder(name: str) -> str | None:
    return None if name == "none" else name


def add(command: Command) -> None:
    """Tell the parser of this command."""
    text = "Serve tools to an agent over standard input and output (MCP)."
    mcp = command("mcp", _mcp, text)
    mcp.add_argument("--read-only", action="store_true", help="without the tool append")
    mcp.add_argument(
        "--zone",
        default="UTC",
        help="the time zone that dates are meant and times shown in (default: %(default)s)",
    )
    mcp.add_argument(
        "--embedder",
        default="auto",
        metavar="NAME",
        help="auto (the default), minilm, multilingual, words or PROVIDER/MODEL; "
        "none for search by words alone",
    )
    add_writer(mcp)
