"""The commands for Telegram bots: set the webhook, show its state, and answer messages."""

from __future__ import annotations

import argparse
import asyncio
from datetime import UTC, datetime
from types import ModuleType
from typing import Any

from firnline.cli.arguments import Command, add_actions, server_options
from firnline.cli.open import needs_extra, run_until_signal
from firnline.cli.output import print_json
from firnline.cli.terminal import plain, table
from firnline.log.text import plural


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
    url = str(info.get("url") or "not set: run firnline telegram set-webhook")
    return name, url, str(info.get("pending_update_count", 0)), f"{when}{said}" if said else "none"


def _answer(options: argparse.Namespace) -> None:
    setup = _setup()
    setup.bots_of(options.config)  # fails if there is none

    async def work() -> int:
        work = setup.answer(options.config, once=options.once)
        return int(await run_until_signal(work) or 0)  # an interrupted answer stays pending

    answers = asyncio.run(work())
    if options.json:
        print_json({"answers": answers})
    elif options.once:
        print(plural(answers, "answer"))


def _setup() -> ModuleType:
    with needs_extra("Telegram", "server"):
        from firnline.server.telegram import setup  # noqa: PLC0415 - an optional extra
    return setup


def add(command: Command) -> None:
    """Add these commands to the parser."""
    telegram = command(
        "telegram", _info, "Set up Telegram bots and answer their messages.", store=False
    )
    action = add_actions(telegram, server_options())

    setting = action("set-webhook", _set_webhook, "Set the URL that Telegram sends updates to.")
    setting.add_argument("--bot", metavar="NAME", help="which bot, if there are several")
    setting.add_argument(
        "--url",
        required=True,
        help="the public URL of the server, such as https://chat.example.org",
    )
    info = action("info", _info, "Show where Telegram sends updates, and the last error.")
    info.add_argument("--bot", metavar="NAME", help="only this bot")
    answer = action(
        "answer", _answer, "Answer messages, for servers that run with FIRNLINE_WORKER=false."
    )
    answer.add_argument("--once", action="store_true", help="stop when no message is waiting")
