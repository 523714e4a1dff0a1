"""The commands serve and mcp: run the HTTP server, or an MCP server for one agent."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from typing import Any

from firnline.cli.arguments import Command, add_model_options
from firnline.cli.open import needs_extra, run_until_signal, with_memory
from firnline.cli.terminal import plain
from firnline.log.text import clean_name
from firnline.memory import Memory


def _serve(options: argparse.Namespace) -> None:
    with needs_extra("the server", "server"):
        from firnline.server import serve as server  # noqa: PLC0415 - an optional extra
        from firnline.server import settings  # noqa: PLC0415
    chosen: dict[str, Any] = {
        name: getattr(options, name)
        for name in ("store", "host", "port", "auth", "model", "upstream", "log_level")
    }
    chosen["trusted_proxies"] = options.trusted_proxies
    found = settings.load(options.config, **chosen)
    for name in server.unknown_variables(found):
        print(plain(f"firnline: {name} is set, but it is not a setting"), file=sys.stderr)
    asyncio.run(server.serve(found, sample=options.sample, tell=_print_line))


def _print_line(line: str) -> None:
    print(plain(line), flush=True)


def add(command: Command) -> None:
    """Add these commands to the parser."""
    text = "Run the HTTP server: REST API, OpenAI-compatible proxy, MCP, and Telegram."
    serve = command("serve", _serve, text, store=False)
    serve.set_defaults(json=False)
    serve.add_argument("--store", metavar="URL", help="the store (default: sqlite:///firnline.db)")
    serve.add_argument("--host", help="the address to listen on (default: 127.0.0.1)")
    serve.add_argument("--port", type=int, help="the port (default: 8080); 0 selects a free one")
    serve.add_argument(
        "--auth",
        choices=["auto", "required", "proxy"],
        help="auto: direct requests from this machine need no key; "
        "proxy: requests through trusted proxies need none either",
    )
    serve.add_argument(
        "--trusted-proxy",
        action="append",
        dest="trusted_proxies",
        metavar="ADDRESS",
        help="believe X-Forwarded-For of a proxy at this address or network; repeatable",
    )
    serve.add_argument("--model", metavar="NAME", help="the model for turns and digests")
    serve.add_argument(
        "--upstream", metavar="URL", help="the provider behind the proxy, ending in /v1"
    )
    serve.add_argument(
        "--log-level", choices=["debug", "info", "warning", "error"], help="default: info"
    )
    serve.add_argument("--config", metavar="FILE", help="settings as TOML (default: firnline.toml)")
    serve.add_argument("--sample", action="store_true", help="add a sample conversation")
    serve.epilog = (
        "All settings can be set as FIRNLINE_... variables or in the file; docs/server.md lists"
        " them."
    )
    _add_mcp(command)


def _mcp(options: argparse.Namespace) -> None:
    with needs_extra("MCP", "mcp"):
        from firnline.mcp import serve  # noqa: PLC0415 - the SDK is an optional extra
    # Standard output carries the protocol, so logs go to standard error.
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(name)s: %(message)s")

    person = None if options.person is None else clean_name(options.person, "person")

    async def work(memory: Memory) -> None:
        writable = not options.read_only
        await run_until_signal(
            serve(memory, zone=options.zone, may_write=lambda: writable, person=lambda: person)
        )

    with_memory(options, work, create=True, worker=True, embedder=_embedder(options.embedder))


def _embedder(name: str) -> str | None:
    return None if name == "none" else name


def _add_mcp(command: Command) -> None:
    text = "Run an MCP server on standard input and output, for an agent to start."
    mcp = command("mcp", _mcp, text)
    mcp.add_argument("--read-only", action="store_true", help="do not offer the tool append")
    mcp.add_argument(
        "--person",
        metavar="NAME",
        help="whom the agent talks with: only their conversations, their profile and facts",
    )
    mcp.add_argument(
        "--zone", default="UTC", help="the time zone of dates and times (default: %(default)s)"
    )
    mcp.add_argument(
        "--embedder",
        default="auto",
        metavar="NAME",
        help="auto (the default), minilm, multilingual, words or PROVIDER/MODEL; "
        "none: search by words only",
    )
    add_model_options(mcp)
