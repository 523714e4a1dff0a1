"""Arguments that several commands share."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Final, TypeAlias

from firnline.memory import DEFAULT_TENANT

DEFAULT_STORE: Final = "sqlite:///firnline.db"

Command: TypeAlias = Callable[..., argparse.ArgumentParser]
"""Adds a command: its name, the function that runs it, its help, and where extra words go.

``store=False``: the command does not have the shared options.
"""


def count(text: str) -> int:
    """Parse an option that is a count."""
    if not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 0")
    return int(text)


def shared_options() -> argparse.ArgumentParser:
    """The options of every command."""
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument(
        "--store",
        default=os.environ.get("FIRNLINE_STORE") or DEFAULT_STORE,  # the same as the server
        metavar="URL",
        help=f"the store (default: $FIRNLINE_STORE, or {DEFAULT_STORE})",
    )
    shared.add_argument(
        "--tenant",
        help=f"the owner of the conversations (default: {DEFAULT_TENANT}; of a worker, all)",
    )
    shared.add_argument("--json", action="store_true", help="print JSON, one object per line")
    return shared


def server_options() -> argparse.ArgumentParser:
    """The options of every action that uses the server's settings."""
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument(
        "--config", metavar="FILE", help="settings as TOML (default: firnline.toml)"
    )
    shared.add_argument("--json", action="store_true", help="print JSON, one object per line")
    return shared


def add_actions(
    parser: argparse.ArgumentParser, shared: argparse.ArgumentParser
) -> Callable[[str, Callable[..., None], str], argparse.ArgumentParser]:
    """Give a command actions; returns a function that adds one."""
    actions = parser.add_subparsers(title="actions", required=True, metavar="ACTION")

    def add_action(name: str, run: Callable[..., None], text: str) -> argparse.ArgumentParser:
        added = actions.add_parser(name, help=text, description=text, parents=[shared])
        added.set_defaults(run=run, words="")
        return added

    return add_action


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose the model for digests."""
    writer = parser.add_argument_group(
        "model that writes digests (default: FIRNLINE_MODEL with its _URL and _KEY; else offline)"
    )
    writer.add_argument(
        "--model", metavar="NAME", help="for example openai/gpt-4o-mini or ollama/qwen3"
    )
    writer.add_argument("--url", help="the model's base URL, ending in /v1")
    writer.add_argument(
        "--key-variable",
        metavar="VARIABLE",
        help="the environment variable that holds the API key for --url",
    )
