"""A client for the Telegram Bot API over plain HTTP.

The token is part of every URL, so this module also keeps it out of logs and errors.
"""

from __future__ import annotations

import asyncio
import logging
from http import HTTPStatus
from typing import Any, ClassVar, Final

import httpx2
from pydantic import SecretStr

from firnline.errors import FirnlineError
from firnline.log.regex import regex
from firnline.server.limits import TELEGRAM_SECONDS

_TOKEN: Final = regex(r"(/bot\d+):[^/\s\"']+")


class TelegramError(FirnlineError):
    """A call of the Bot API failed.

    ``context`` has ``code`` (Telegram's error code, 0 if there was no response), ``retry_after`` in
    seconds if Telegram asks the client to wait, and ``moved_to`` if the chat has a new id.
    """

    status: ClassVar[int] = 502
    retryable: ClassVar[bool] = True

    @property
    def final(self) -> bool:
        """Whether a retry cannot help: the bot is blocked, or the request is invalid."""
        return self.context.get("code") in (HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN)


class Api:
    """Calls the Bot API at `url` for one bot. Every failure is a `TelegramError`."""

    def __init__(self, token: SecretStr, *, url: str, seconds: float = TELEGRAM_SECONDS) -> None:
        self._token, self._url, self._seconds = token, url.rstrip("/"), seconds
        self._client: httpx2.AsyncClient | None = None

    async def call(self, method: str, **parameters: Any) -> Any:
        """Call a method and return its result; parameters that are None are omitted."""
        if self._client is None:
            self._client = httpx2.AsyncClient(timeout=self._seconds)
        given = {name: value for name, value in parameters.items() if value is not None}
        address = f"{self._url}/bot{self._token.get_secret_value()}/{method}"
        try:
            async with asyncio.timeout(self._seconds):
                response = await self._client.post(address, json=given)
        except (httpx2.RequestError, httpx2.InvalidURL, TimeoutError) as error:
            text = f"{method}: Telegram cannot be reached: {type(error).__name__}: {error}"
            # Not chained: the original error contains the URL, and with it the token.
            raise TelegramError(self._hidden(text), code=0) from None
        return self._result(method, response)

    async def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def _result(self, method: str, response: httpx2.Response) -> Any:
        try:
            body = response.json()
        except ValueError:
            body = None
        answer = body if isinstance(body, dict) else {}
        if response.is_success and answer.get("ok") is True:
            return answer.get("result")
        code = answer.get("error_code") or response.status_code
        said = str(answer.get("description") or "no description")
        parameters = answer.get("parameters") or {}
        facts = {
            "retry_after": parameters.get("retry_after"),
            "moved_to": parameters.get("migrate_to_chat_id"),
        }
        known = {name: value for name, value in facts.items() if value is not None}
        text = self._hidden(f"{method}: Telegram returned {code}: {said}")
        raise TelegramError(text, code=code, **known)

    def _hidden(self, text: str) -> str:
        return text.replace(self._token.get_secret_value(), "***")


def hide_tokens(record: logging.LogRecord) -> bool:
    """Remove tokens from the log lines of the HTTP client, which logs every URL at level INFO."""
    if isinstance(record.args, tuple):
        record.args = tuple(map(_without_token, record.args))
    return True


def _without_token(argument: object) -> object:
    text = str(argument)
    return _TOKEN.sub(r"\1:***", text) if _TOKEN.search(text) else argument


logging.getLogger("httpx2").addFilter(hide_tokens)
