"""The settings of a bot."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Final
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

from firnline import strategies
from firnline.context.plan import Strategy
from firnline.errors import InputError
from firnline.log.regex import regex
from firnline.log.text import clean_name

TELEGRAM: Final = "https://api.telegram.org"
LEAN: Final = "lean"
_TOKEN: Final = regex(r"(\d{1,20}):[A-Za-z0-9_-]{1,200}")
_SECRET: Final = regex(r"[A-Za-z0-9_-]{16,256}")
_NAME: Final = regex(r"[A-Za-z0-9_-]{1,64}")

SYSTEM: Final = """\
You are a helpful assistant in a Telegram chat. Answer in plain text, briefly, in the language of \
the person you talk to.

You see the newest messages. Everything older is stored: look it up with the history tools when \
the answer may lie there, and do not guess what was said. Notes in brackets such as [photo] or \
[edited] were made by the program."""


class BotSettings(BaseModel):
    """A bot: its identity, the tenant of its conversations, and how it answers."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    name: str = Field("", description="its name in URLs; in the settings, the key of its table")
    token: SecretStr = Field(description="the token from @BotFather")
    secret: SecretStr = Field(
        description="Telegram sends it with every update: 16 to 256 of A-Z, a-z, 0-9, _ and -"
    )
    tenant: str = Field("default", description="the tenant of its conversations")
    chats: frozenset[int] = Field(
        frozenset(), description="the ids of the chats it answers in; empty means all"
    )
    system: str = Field(SYSTEM, description="instructions to the model")
    strategy: str = Field(
        LEAN,
        description="the strategy of its conversations: lean, the name of one, or empty for the"
        " server's default",
    )
    window_tokens: int | None = Field(None, ge=256, description="default: the model's window")
    recall_tools: bool = Field(True, description="whether the model may search the conversation")
    zone: str = Field("UTC", description="the time zone of dates in the model's searches")
    prefix: str = Field("telegram", description="the prefix of its conversations' names")
    greeting: str = Field("Hello. I remember what we talk about.", description="reply to /start")
    help: str = Field(
        "Write to me. Everything said here is stored, and I can look it up later.",
        description="reply to /help",
    )
    apology: str = Field(
        "I cannot answer right now. Your message is stored.", description="sent if the model fails"
    )
    api_url: str = Field(TELEGRAM, description="the Bot API; change it for a self-hosted server")

    @property
    def id(self) -> int:
        """The bot's id at Telegram; it is not secret."""
        return int(self.token.get_secret_value().partition(":")[0])

    @property
    def planned(self) -> Strategy | None:
        """The strategy of its conversations, or None for the server's default."""
        if self.strategy == LEAN:
            return strategies.project(lean=True)
        return strategies.strategy(self.strategy) if self.strategy else None

    def conversation(self, chat_id: int) -> str:
        """The conversation of a chat. Groups and private chats have different ids."""
        return f"{self.prefix}:{chat_id}"

    def talks_in(self, conversation: str) -> bool:
        """Whether the bot answers in the chat of a conversation."""
        return not self.chats or conversation in map(self.conversation, self.chats)

    @field_validator("token")
    @classmethod
    def _is_token(cls, token: SecretStr) -> SecretStr:
        if not _TOKEN.fullmatch(token.get_secret_value()):
            raise ValueError("expected a token such as 123456:ABC-DEF, from @BotFather")
        return token

    @field_validator("secret")
    @classmethod
    def _is_secret(cls, secret: SecretStr) -> SecretStr:
        if not _SECRET.fullmatch(secret.get_secret_value()):
            raise ValueError("expected 16 to 256 of A-Z, a-z, 0-9, _ and -")
        return secret

    @field_validator("strategy")
    @classmethod
    def _is_strategy(cls, name: str) -> str:
        if name not in ("", LEAN, *strategies.STRATEGIES):
            raise ValueError(f"expected one of {', '.join((LEAN, *strategies.STRATEGIES))}")
        return name

    @field_validator("zone")
    @classmethod
    def _is_zone(cls, name: str) -> str:
        try:
            ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError("expected a time zone such as Europe/Berlin") from None
        return name

    @field_validator("api_url")
    @classmethod
    def _is_address(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"expected a URL such as {TELEGRAM}")
        return url.rstrip("/")


def named(bots: Mapping[str, BotSettings]) -> list[BotSettings]:
    """The bots of a settings table, each named by its key, checked together."""
    return checked(bot.model_copy(update={"name": name}) for name, bot in bots.items())


def checked(bots: Iterable[BotSettings]) -> list[BotSettings]:
    """The bots; `InputError` if a name is invalid or two bots conflict."""
    found = list(bots)
    for bot in found:
        if not _NAME.fullmatch(bot.name):
            raise InputError(f"telegram: {bot.name!r} is not a valid name: use A-Z, a-z, 0-9, _, -")
        clean_name(bot.tenant, "tenant")
        clean_name(bot.conversation(-(2**63)), "prefix")
    apart: dict[str, set[Hashable]] = {
        "name": {bot.name for bot in found},
        "token": {bot.id for bot in found},
        # A private chat has the same id with every bot, but must not share a conversation.
        "tenant and prefix; change one prefix": {(bot.tenant, bot.prefix) for bot in found},
    }
    for what, different in apart.items():
        if len(different) < len(found):
            raise InputError(f"telegram: two bots have the same {what}")
    return found
