"""The Bot API of Telegram: the few methods that are needed, over plain HTTP.

The token is a part of every address there, so this module also keeps it out of logs and errors.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, ClassVar, Final

import httpx2
from pydantic import SecretStr

from firnline.errors import FirnlineError
from firnline.log.regex import regex

_TOKEN: Final = regex(r"(/bot\d+):[^/\s\"']+")
_SECONDS: Final = 30.0
_FORBIDDEN: Final = 403
_BAD_REQUEST: Final = 400


class TelegramError(FirnlineError):
    """Telegram did not do what it was asked to.

    ``context`` has ``code`` (Telegram's own, 0 if there was no answer), ``retry_after`` if it wants
    to be left alone for so many seconds, and ``moved_to`` if the chat has another number now.
    """

    status: ClassVar[int] = 502
    retryable: ClassVar[bool] = True

    @property
    def final(self) -> bool:
        """Whether trying again cannot help: the chat does not want us, or the request is wrong."""
        return self.context.get("code") in (_BAD_REQUEST, _FORBIDDEN)


class Api:
    """One bot's side of the Bot API at `url`. Every failure is a `TelegramError`."""

    def __init__(self, token: SecretStr, *, url: str, seconds: float = _SECONDS) -> None:
        self._token, self._url, self._seconds = token, url.rstrip("/"), seconds
        self._client: httpx2.AsyncClient | None = None

    async def call(self, method: str, **parameters: Any) -> Any:
        """What Telegram answers; parameters that are None are left out."""
        if self._client is None:
            self._client = httpx2.AsyncClient(timeout=self._seconds)
        given = {name: value for name, value in parameters.items() if value is not None}
        address = f"{self._url}/bot{self._token.get_secret_value()}/{method}"
        try:
            async with asyncio.timeout(self._seconds):
                response = await self._client.post(address, json=given)
        except (httpx2.RequestError, httpx2.InvalidURL, TimeoutError) as error:
            text = f"{method}: Telegram cannot be reached: {type(error).__name__}: {error}"
            # Not from the error: it knows the address, and with it the token.
            raise TelegramError(self._hidden(text), code=0) from None
        return self._result(method, response)

    async def close(self) -> None:
        """Let go of connections; a later call makes new ones."""
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
        said = str(answer.get("description") or "no reason given")
        parameters = answer.get("parameters") or {}
        facts = {
            "retry_after": parameters.get("retry_after"),
            "moved_to": parameters.get("migrate_to_chat_id"),
        }
        known = {name: value for name, value in facts.items() if value is not None}
        text = self._hidden(f"{method}: Telegram says {code}: {said}")
        raise TelegramError(text, code=code, **known)

    def _hidden(self, text: str) -> str:
        return text.replace(self._token.get_secret_value(), "***")


def hide_tokens(record: logging.LogRecord) -> bool:
    """Take tokens out of a line of the HTTP client's log; it tells every address at level INFO."""
    if isinstance(record.args, tuple):
        record.args = tuple(map(_without_token, record.args))
    return True


def _without_token(argument: object) -> object:
    text = str(argument)
    return _TOKEN.sub(r"\1:***", text) if _TOKEN.search(text) else argument


logging.getLogger("httpx2").addFilter(hide_tokens)
