"""A local HTTP server with the Telegram Bot API, which can inject faults and push updates.

For tests of bots, over real sockets and without Telegram::

    with TelegramServer() as telegram:                       # or: async with
        telegram.fail("429", "cut")                          # the next two messages to be sent
        telegram.push(telegram.said("Hello"), url, secret)   # until the webhook answers 200
        telegram.sent                                        # what arrived in chats, in order

It enforces the same rules: a valid token, at most 4,096 UTF-16 code units, no empty text.
"""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler
from itertools import count, cycle
from typing import Any, Final, NamedTuple, Self
from urllib.parse import urlsplit

from firnline.errors import InputError
from firnline.testing.listener import Listener

FAULTS: Final[Mapping[str, str]] = {
    "400": "a bad request",
    "401": "the token is invalid",
    "403": "the bot was blocked by the user",
    "429": "too many requests: retry after `retry_after` seconds",
    "500": "a server error",
    "cut": "done, but the connection closes in the middle of the answer",
    "lost": "done, but the connection closes without an answer",
    "timeout": "no answer for `pause` seconds, then the connection closes; nothing is done",
    "not_json": "200 with a body that is not JSON",
}
"""Every fault by name, and what it does."""

UNITS_MAX: Final = 4_096
HEADER: Final = "X-Telegram-Bot-Api-Secret-Token"
_OK: Final = 200


class Call(NamedTuple):
    """A method that was called, with its parameters."""

    method: str
    parameters: dict[str, Any]


class TelegramServer:
    """The server. Use it as a context manager, async or not; it runs in its own threads.

    `calls` has all calls with a valid token in order of arrival, `sent` the messages that arrived
    in chats. Chats in `blocked` have blocked the bot; those in `moved` have a new id.
    """

    def __init__(
        self,
        *,
        port: int = 0,
        token: str = "42:test-token",  # noqa: S107 - a test token
        username: str = "firnline_bot",
        retry_after: int = 1,
        pause: float = 0.2,
    ) -> None:
        self.calls: list[Call] = []
        self.sent: list[dict[str, Any]] = []
        self.webhook: dict[str, Any] = {"url": "", "pending_update_count": 0}
        self.blocked: set[int] = set()
        self.moved: dict[int, int] = {}
        self.token, self.username = token, username
        self.retry_after, self.pause = retry_after, pause
        self._port = port
        self._faults: dict[str, Iterator[str | None]] = defaultdict(lambda: iter(()))
        self._lock = threading.Lock()
        self._updates, self._messages = count(1_000), count(1)
        self._closing = threading.Event()
        self._listener: Listener[TelegramServer] | None = None

    # -- life ---------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """The base URL, in place of ``https://api.telegram.org``."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def id(self) -> int:
        """The bot's id."""
        return int(self.token.partition(":")[0])

    def __enter__(self) -> Self:
        self._listener = Listener(self, _BotHandler, self._port)
        self._port = self._listener.port
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop permanently; running deliveries are abandoned."""
        self._closing.set()
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.stop()

    def wait(self, seconds: float) -> None:
        """Wait, at most until the server stops."""
        self._closing.wait(seconds)

    # -- the bot's side -----------------------------------------------------------------------

    def fail(self, *faults: str | None, method: str = "sendMessage", repeat: bool = False) -> None:
        """Plan faults by name for the next calls of a method, one each; None is a normal answer."""
        for fault in faults:
            if fault is not None and fault not in FAULTS:
                raise InputError(f"unknown fault {fault!r}; use {', '.join(FAULTS)}")
        self._faults[method] = cycle(faults) if repeat and faults else iter(faults)

    def texts(self, chat_id: int) -> list[str]:
        """The texts that arrived in a chat."""
        return [message["text"] for message in self.sent if message["chat"]["id"] == chat_id]

    def receive(self, method: str, parameters: dict[str, Any]) -> tuple[str | None, dict[str, Any]]:
        """Handle a call; returns the fault planned for it, and the answer."""
        with self._lock:
            self.calls.append(Call(method, parameters))
            fault = next(self._faults[method], None)
            if fault == "timeout" or (fault is not None and fault.isdecimal()):
                return fault, self._complaint(int(fault) if fault.isdecimal() else 0)
            return fault, self._do(method, parameters)

    def _do(self, method: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        me = {"id": self.id, "is_bot": True, "first_name": "Bot", "username": self.username}
        if method == "getMe":
            return _done(me)
        if method == "sendMessage":
            return self._message(parameters, me)
        if method == "sendChatAction":
            return _done(result=True)
        if method == "setWebhook":
            self.webhook |= {"allowed_updates": None, **parameters}
            return _done(result=True)
        if method == "getWebhookInfo":
            secret = "secret_token"  # noqa: S105 - the name of the omitted field
            told = {name: value for name, value in self.webhook.items() if name != secret}
            return _done({"has_custom_certificate": False, **told})
        return _failed(404, "Not Found")

    def _message(self, given: Mapping[str, Any], me: Mapping[str, Any]) -> dict[str, Any]:
        chat_id, text = given.get("chat_id"), given.get("text")
        if not isinstance(chat_id, int) or not isinstance(text, str):
            return _failed(400, "Bad Request: chat_id or text is missing")
        if chat_id in self.blocked:
            return self._complaint(403)
        if chat_id in self.moved:
            moved = {"migrate_to_chat_id": self.moved[chat_id]}
            why = "Bad Request: group chat was upgraded to a supergroup chat"
            return _failed(400, why, moved)
        if not text.strip():
            return _failed(400, "Bad Request: message text is empty")
        if len(text.encode("utf-16-le", "surrogatepass")) > 2 * UNITS_MAX:
            return _failed(400, "Bad Request: message is too long")
        message = {
            "message_id": 10_000 + next(self._messages),
            "date": int(time.time()),
            "chat": {"id": chat_id, "type": "private" if chat_id > 0 else "supergroup"},
            "from": dict(me),
            "text": text.strip(),
        }
        about = {name: given[name] for name in _ABOUT_SENT if name in given}
        self.sent.append({**message, **about})
        return _done(message)

    def _complaint(self, code: int) -> dict[str, Any]:
        if code == 429:
            why = f"Too Many Requests: retry after {self.retry_after}"
            return _failed(code, why, {"retry_after": self.retry_after})
        return _failed(code, _REASONS.get(code, "Internal Server Error"))

    # -- Telegram's side ----------------------------------------------------------------------

    def said(self, text: str | None = None, *, chat_id: int = 7, **fields: Any) -> dict[str, Any]:
        """Create an update with a message. `fields` are message fields; None is omitted.

        Chats with negative ids are groups.
        """
        number = next(self._messages)
        private = chat_id > 0
        message = {
            "message_id": number,
            "date": int(time.time()),
            "chat": {"id": chat_id, "type": "private" if private else "supergroup"},
            "from": {"id": 7, "is_bot": False, "first_name": "Ada", "username": "ada"},
            "text": text,
            **fields,
        }
        told = {name: value for name, value in message.items() if value is not None}
        return {"update_id": next(self._updates), "message": told}

    def edited(self, update: Mapping[str, Any], text: str) -> dict[str, Any]:
        """Create an update that edits the message of an earlier one."""
        message = {**update["message"], "text": text, "edit_date": int(time.time())}
        return {"update_id": next(self._updates), "edited_message": message}

    def deliver(self, update: Mapping[str, Any]) -> list[int]:
        """Push an update to the URL set by `setWebhook`."""
        return self.push(update, self.webhook["url"], self.webhook.get("secret_token", ""))

    def push(
        self,
        update: Mapping[str, Any],
        url: str,
        secret: str,
        *,
        tries: int | None = None,
        again: float = 0.05,
    ) -> list[int]:
        """Post an update until it is answered with 2xx, as Telegram does; returns the statuses.

        0 means no answer. It stops after `tries` attempts, if given, or with the server.
        """
        statuses: list[int] = []
        while not self._closing.is_set() and (tries is None or len(statuses) < tries):
            statuses.append(_post(url, json.dumps(update).encode(), secret))
            if statuses[-1] // 100 == 2:
                break
            self.wait(again)
        return statuses


_ABOUT_SENT: Final = ("message_thread_id", "reply_parameters")
_REASONS: Final = {
    400: "Bad Request: chat not found",
    401: "Unauthorized",
    403: "Forbidden: bot was blocked by the user",
}


def _done(result: Any) -> dict[str, Any]:
    return {"ok": True, "result": result}


def _failed(code: int, why: str, parameters: Mapping[str, Any] | None = None) -> dict[str, Any]:
    about = {"parameters": dict(parameters)} if parameters else {}
    return {"ok": False, "error_code": code, "description": why, **about}


def _post(url: str, body: bytes, secret: str) -> int:
    """The status of the answer, or 0 if there is none."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 80, timeout=60)
    headers = {"content-type": "application/json", **({HEADER: secret} if secret else {})}
    try:
        connection.request("POST", parts.path, body, headers)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        connection.close()


# -- the protocol -----------------------------------------------------------------------------


class _BotHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Listener[TelegramServer]

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name in the base class
        """Log nothing: calls are in `TelegramServer.calls`."""

    def do_POST(self) -> None:
        owner = self.server.owner
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        _, bot, method = (*self.path.split("/"), "", "")[:3]
        if bot != f"bot{owner.token}":
            self._answer(_failed(401, "Unauthorized"))
            return
        try:
            parameters = json.loads(body or b"{}")
        except ValueError:
            self._answer(_failed(400, "Bad Request: the body is not JSON"))
            return
        fault, answer = owner.receive(method, parameters)
        if fault in ("timeout", "lost"):
            owner.wait(owner.pause if fault == "timeout" else 0)
            self.close_connection = True
            return
        self._answer(answer, fault)

    def _answer(self, answer: Mapping[str, Any], fault: str | None = None) -> None:
        body = b"<html>" if fault == "not_json" else json.dumps(answer).encode()
        self.send_response(answer.get("error_code", _OK))
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if fault == "cut":
            self.close_connection = True
            body = body[: len(body) // 2]
        self.wfile.write(body)
