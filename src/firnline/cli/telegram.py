"""Bots on Telegram: where their updates go, how that is going, and answering as a process apart."""

from __future__ import annotations

import argparse
import asyncio
import signal
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from types import ModuleType
from typing import Any

from firnline.cli.arguments import Command
from firnline.cli.output import print_json
from firnline.cli.terminal import plain, table
from firnline.errors import FirnlineError


def _set_webhook(options: argparse.Namespace) -> None:
    setup = _setup()
    bot = setup.only(setup.bots_of(options.config, options.bot))
    address = asyncio.run(setup.set_webhook(bot, options.url))
    if options.json:
        print_json({"bot": bot.name, "url": address})
    else:
        print(plain(f"{bot.name}: updates go to {address}"))


def _info(options: argparse.Namespace) -> None:
    setup = _setup()
    bots = setup.bots_of(options.config, options.bot)
    found = {bot.name: asyncio.run(setup.webhook_info(bot)) for bot in bots}
    if options.json:
        for name, info in found.items():
            print_json({"bot": name, **info})
    else:
        names = ("bot", "updates go to", "waiting", "last error")
        print(table(names, [_row(name, info) for name, info in found.items()]))


def _row(name: str, info: dict[str, Any]) -> tuple[str, ...]:
    said, date = info.get("last_error_message"), info.get("last_error_date")
    when = f"{datetime.fromtimestamp(date, UTC):%Y-%m-%d %H:%M}: " if date else ""
    url = str(info.get("url") or "nowhere: firnline telegram set-webhook")
    return name, url, str(info.get("pending_update_count", 0)), f"{when}{said}" if said else "none"


def _answer(options: argparse.Namespace) -> None:
    setup = _setup()
    setup.bots_of(options.config)  # complains if there is none

    async def work() -> int:
        answering = asyncio.ensure_future(setup.answer(options.config, once=options.once))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            with suppress(NotImplementedError):  # Windows has none; there Ctrl-C cancels it
                loop.add_signal_handler(number, answering.cancel)
        with suppress(asyncio.CancelledError):  # what was being answered stays to be answered
            return int(await answering)
        return 0

    answers = asyncio.run(work())
    if options.json:
        print_json({"answers": answers})
    elif options.once:
        print(f"{answers:,} answers")


def _setup() -> ModuleType:
    try:
        from firnline.server.telegram import setup  # noqa: PLC0415 - an optional extra
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("firnline"):
            raise
        raise FirnlineError('bots are for the server: pip install "firnline[server]"') from error
    return setup


def add(command: Command) -> None:
    """Tell the parser of these commands."""
    telegram = command("telegram", _info, "Bots on Telegram.", store=False)
    actions = telegram.add_subparsers(title="actions", required=True, metavar="ACTION")
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--config", metavar="FILE", help="settings as TOML (firnline.toml)")
    shared.add_argument("--json", action="store_true", help="print JSON, one object a line")

    def action(name: str, run: Callable[..., None], text: str) -> argparse.ArgumentParser:
        added = actions.add_parser(name, help=text, description=text, parents=[shared])
        added.set_defaults(run=run, words="")
        return added

    setting = action("set-webhook", _set_webhook, "Tell Telegram where the server is.")
    setting.add_argument("--bot", metavar="NAME", help="which bot, if there are several")
    setting.add_argument(
        "--url", required=True, help="the server's address for Telegram: https://chat.example.org"
    )
    info = action("info", _info, "Ask Telegram where it sends updates, and how that is going.")
    info.add_argument("--bot", metavar="NAME", help="this bot alone")
    answer = action(
        "answer", _answer, "Answer in chats, beside servers with FIRNLINE_WORKER=false."
    )
    answer.add_argument("--once", action="store_true", help="stop when nothing is due any more")
