"""What is done by hand: telling Telegram where a bot lives, asking how it is, answering apart."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

from firnline.errors import InputError
from firnline.server import settings
from firnline.server.app import create_parts
from firnline.server.telegram.api import Api
from firnline.server.telegram.settings import TELEGRAM, BotSettings, named
from firnline.server.telegram.updates import KINDS


def bots_of(config: str | None, name: str | None = None) -> list[BotSettings]:
    """The bots in the server's settings, or the one called `name`; at least one."""
    found = named(settings.load(config).telegram)
    chosen = [bot for bot in found if name in (None, bot.name)]
    if not chosen:
        known = ", ".join(bot.name for bot in found) or "none; see docs/telegram.md"
        raise InputError(f"there is no such bot in the settings; there is: {known}")
    return chosen


def only(bots: Iterable[BotSettings]) -> BotSettings:
    """The bot that is meant if there is one; `InputError` if there are more."""
    first, *others = bots
    if others:
        raise InputError("there are several bots; say which with --bot")
    return first


async def set_webhook(bot: BotSettings, url: str) -> str:
    """Have the bot's updates sent to the server at `url`; returns the whole address."""
    parts = urlsplit(url)
    schemes = ("https",) if bot.api_url == TELEGRAM else ("https", "http")
    if parts.scheme not in schemes or not parts.hostname:
        raise InputError(f"--url {url}: Telegram takes an address such as https://chat.example.org")
    address = f"{url.rstrip('/')}/telegram/{bot.name}/webhook"
    secret = bot.secret.get_secret_value()
    # Only what is taken: everything else would be sent for nothing.
    await _called(bot, "setWebhook", url=address, secret_token=secret, allowed_updates=list(KINDS))
    return address


async def webhook_info(bot: BotSettings) -> dict[str, Any]:
    """What Telegram knows of the bot's webhook; its secret is not a part of it."""
    found = await _called(bot, "getWebhookInfo")
    return dict(found) if isinstance(found, dict) else {}


async def _called(bot: BotSettings, method: str, **parameters: Any) -> Any:
    api = Api(bot.token, url=bot.api_url)
    try:
        return await api.call(method, **parameters)
    finally:
        await api.close()


async def answer(config: str | None, *, once: bool) -> int:
    """Answer in the chats of all bots until cancelled, or what is due now; returns how many."""
    parts = create_parts(settings.load(config))
    await parts.tenants.store.open()
    try:
        if once:
            return await parts.telegram_worker.once()
        await parts.telegram_worker.run()
        return 0
    finally:
        await parts.telegram_worker.stop()
        await parts.tenants.close()
        if parts.tracer is not None:
            await asyncio.to_thread(parts.tracer.close)
