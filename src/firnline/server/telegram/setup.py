"""Administration of bots: set a webhook, show its state, and run the worker on its own."""

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
        raise InputError(f"no such bot in the settings; configured bots: {known}")
    return chosen


def only(bots: Iterable[BotSettings]) -> BotSettings:
    """The only bot; `InputError` if there are several."""
    first, *others = bots
    if others:
        raise InputError("several bots are configured; choose one with --bot")
    return first


async def set_webhook(bot: BotSettings, url: str) -> str:
    """Set the bot's webhook to the server at `url`; returns the full URL."""
    parts = urlsplit(url)
    schemes = ("https",) if bot.api_url == TELEGRAM else ("https", "http")
    if parts.scheme not in schemes or not parts.hostname:
        raise InputError(f"--url {url}: expected a URL such as https://chat.example.org")
    address = f"{url.rstrip('/')}/telegram/{bot.name}/webhook"
    secret = bot.secret.get_secret_value()
    # Subscribe only to the kinds of updates that are handled.
    await _called(bot, "setWebhook", url=address, secret_token=secret, allowed_updates=list(KINDS))
    return address


async def webhook_info(bot: BotSettings) -> dict[str, Any]:
    """Telegram's information about the bot's webhook, which does not include the secret."""
    found = await _called(bot, "getWebhookInfo")
    return dict(found) if isinstance(found, dict) else {}


async def _called(bot: BotSettings, method: str, **parameters: Any) -> Any:
    api = Api(bot.token, url=bot.api_url)
    try:
        return await api.call(method, **parameters)
    finally:
        await api.close()


async def answer(config: str | None, *, once: bool) -> int:
    """Run the worker for all bots until canceled, or once; returns the number of answers."""
    parts = create_parts(settings.load(config))
    await parts.tenants.open()
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
