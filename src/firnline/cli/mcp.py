"""The command mcp: an MCP server on standard input and output."""

from __future__ import annotations

import argparse
import logging
import sys

from firnline.cli.arguments import Command, add_model_options
from firnline.cli.open import needs_extra, run_until_signal, with_memory
from firnline.memory import Memory


def _mcp(options: argparse.Namespace) -> None:
    with needs_extra("MCP", "mcp"):
        from firnline.mcp import serve  # noqa: PLC0415 - the SDK is an optional extra
    # Standard output carries the protocol, so logs go to standard error.
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(name)s: %(message)s")

    async def work(memory: Memory) -> None:
        writable = not options.read_only
        await run_until_signal(serve(memory, zone=options.zone, may_write=lambda: writable))

    with_memory(options, work, create=True, worker=True, embedder=_embedder(options.embedder))


def _embedder(name: str) -> str | None:
    return None if name == "none" else name


def add(command: Command) -> None:
    """Add this command to the parser."""
    text = "Run an MCP server on standard input and output, for an agent to start."
    mcp = command("mcp", _mcp, text)
    mcp.add_argument("--read-only", action="store_true", help="do not offer the tool append")
    mcp.add_argument(
        "--zone",
        default="UTC",
        help="the time zone of dates and times (default: %(default)s)",
    )
    mcp.add_argument(
        "--embedder",
        default="auto",
        metavar="NAME",
        help="auto (the default), minilm, multilingual, words or PROVIDER/MODEL; "
        "none: search by words only",
    )
    add_model_options(mcp)
