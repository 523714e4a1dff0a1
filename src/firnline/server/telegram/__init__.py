"""Chats on Telegram as conversations: a webhook that stores, and a replier that answers.

On HTTP alone, without a Telegram library: the Bot API is a few methods of JSON.
"""

from firnline.server.telegram.api import Api, TelegramError
from firnline.server.telegram.replier import Replier
from firnline.server.telegram.settings import BotSettings, named
from firnline.server.telegram.webhook import router

__all__ = ["Api", "BotSettings", "Replier", "TelegramError", "named", "router"]
