"""The server, as a command."""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import Any

from firnline.cli.arguments import Command
from firnline.cli.terminal import plain
from firnline.errors import FirnlineError


def _serve(options: argparse.Namespace) -> None:
    try:
        from firnline.server import serve as server  # noqa: PLC0415 - an optional extra
        from firnline.server import settings  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("firnline"):
            raise
        raise FirnlineError('serving needs an extra: pip install "firnline[server]"') from error
    chosen: dict[str, Any] = {
        name: getattr(options, name)
        for name in ("store", "host", "port", "auth", "model", "upstream", "log_level")
    }
    found = settings.load(options.config, **chosen)
    for name in server.unknown_variables(found):
        print(plain(f"firnline: {name} is set, but there is no such setting"), file=sys.stderr)
    asyncio.run(server.serve(found, sample=options.sample, tell=_tell))


def _tell(line: str) -> None:
    print(plain(line), flush=True)


def add(command: Command) -> None:
    """Tell the parser of this command."""
    text = "Serve REST, the OpenAI-compatible proxy, MCP and Telegram over HTTP."
    serve = command("serve", _serve, text, store=False)
    serve.set_defaults(json=False)
    serve.add_argument("--store", metavar="URL", help="where the conversations are")
    serve.add_argument("--host", help="the address to listen at (127.0.0.1)")
    serve.add_argument("--port", type=int, help="its port (8080); 0 lets the system choose")
    serve.add_argument(
        "--auth", choices=["auto", "required"], help="auto: no key is needed on this machine"
    )
    serve.add_argument("--model", metavar="NAME", help="who answers turns and writes digests")
    serve.add_argument(
        "--upstream", metavar="URL", help="the endpoint behind the proxy, up to and including /v1"
    )
    serve.add_argument("--log-level", choices=["debug", "info", "warning", "error"])
    serve.add_argument("--config", metavar="FILE", help="settings as TOML (firnline.toml)")
    serve.add_argument(
        "--sample", action="store_true", help="begin with a sample conversation, if it is not there"
    )
    serve.epilog = (
        "All settings can be given as FIRNLINE_... in the environment or in the file; they are in"
        " docs/server.md."
    )
