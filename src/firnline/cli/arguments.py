"""What the grammars of several commands share."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Final, TypeAlias

DEFAULT_STORE: Final = "sqlite:///firnline.db"

Command: TypeAlias = Callable[..., argparse.ArgumentParser]
"""Adds a command: its name, the function that runs it, a sentence on it, where loose words go.

``store=False``: it works on no store of the user's, and takes none of the shared options.
"""


def count(text: str) -> int:
    """A number of things, as an option takes it."""
    if not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 on")
    return int(text)


def shared_options() -> argparse.ArgumentParser:
    """The options of every command."""
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument(
        "--store",
        default=os.environ.get("FIRNLINE_STORE") or DEFAULT_STORE,  # as the server takes it
        metavar="URL",
        help=f"where the conversations are (default: $FIRNLINE_STORE, else {DEFAULT_STORE})",
    )
    shared.add_argument("--tenant", default="default", help="whose they are (default: %(default)s)")
    shared.add_argument("--json", action="store_true", help="print JSON, one object a line")
    return shared


def add_writer(parser: argparse.ArgumentParser) -> None:
    """The options that say who writes digests."""
    writer = parser.add_argument_group("who writes digests; without a model, they are made offline")
    writer.add_argument(
        "--model", metavar="NAME", help="such as openai/gpt-4o-mini or ollama/qwen3"
    )
    writer.add_argument("--url", help="the model's endpoint, up to and including /v1")
    writer.add_argument(
        "--key-variable", metavar="VARIABLE", help="the environment variable with the key for --url"
    )
