"""Connections: time limits, a limit on headers, and a cap that leaves room for health checks.

uvicorn itself limits only how long a connection is kept open between requests. A client that sends
nothing, or half a request, or does not read its response, would keep its connection forever, and
enough of them would use up the process's file descriptors. A response may take as long as it needs:
streams are limited only by how long their client reads nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable
from dataclasses import dataclass, field
from enum import Enum, auto
from http import HTTPStatus
from typing import Any, Final, cast

import h11
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from firnline.errors import FirnlineError, HeadersTooLarge, InputError, NotReady, RequestTimeout
from firnline.log import limits
from firnline.server.problems import error_response
from firnline.server.settings import Settings

try:
    import resource
except ImportError:  # Windows has no such limit
    resource = None  # type: ignore[assignment]

logger: Final = logging.getLogger("firnline.connections")

HEALTH: Final = frozenset({"/livez", "/readyz"})
"""Paths that are answered beyond the cap too."""


def raise_descriptor_limit() -> None:
    """Allow this process as many file descriptors as the system lets it have."""
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = limits.DESCRIPTORS_MAX
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        with contextlib.suppress(ValueError, OSError):  # macOS allows less than it says
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def connections_max() -> int:
    """How many connections the file descriptors allow.

    Each may need a second one, to a model; some are kept for the store and for connections that are
    being rejected.
    """
    if resource is None:
        return limits.CONNECTIONS_MAX
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return limits.CONNECTIONS_MAX
    reserved = min(limits.DESCRIPTORS_RESERVED, soft // 2)
    return min(limits.CONNECTIONS_MAX, (soft - reserved) // 2)


def protocol(settings: Settings) -> type[asyncio.Protocol]:
    """The protocol of uvicorn's connections, with the limits of the settings."""
    crowd = _Crowd(settings.connections_max or connections_max())

    def connect(**options: Any) -> BoundedConnection:
        return BoundedConnection(settings, crowd, **options)

    return cast("type[asyncio.Protocol]", connect)  # uvicorn only calls it


@dataclass(slots=True)
class _Crowd:
    """The cap, and the connections beyond it that have not sent their request, oldest first."""

    most: int
    admitted: int = 0
    waiting: dict[BoundedConnection, None] = field(default_factory=dict)

    def add(self, connection: BoundedConnection) -> None:
        """Wait for a request; the oldest makes room, for a health check is sent at once."""
        self.waiting[connection] = None
        if len(self.waiting) > limits.CONNECTIONS_OVER_MAX:
            oldest = next(iter(self.waiting))
            del self.waiting[oldest]
            oldest.transport.abort()


class _Phase(Enum):
    """What a connection waits for."""

    HEAD = auto()  # the request's headers
    BODY = auto()  # the request's body
    DRAIN = auto()  # the rest of a body whose request has been answered
    ANSWER = auto()  # the application, or the client's reading
    IDLE = auto()  # the next request; uvicorn closes it


_UNREAD: Final = (_Phase.ANSWER, _Phase.IDLE)
"""Phases in which a client is late only if it does not read."""


class _Parser(h11.Connection):
    """A parser that measures complete headers too: h11 limits only incomplete ones."""

    def __init__(self, header_bytes_max: int) -> None:
        super().__init__(h11.SERVER, header_bytes_max)
        self._most = header_bytes_max
        self.status = HTTPStatus.BAD_REQUEST
        self.method = b""

    def next_event(self) -> h11.Event | type[h11.NEED_DATA | h11.PAUSED]:
        """See h11. `status` is the status for the error that it raises."""
        try:
            event = super().next_event()
        except h11.RemoteProtocolError as error:
            self.status = HTTPStatus(error.error_status_hint)
            raise
        if isinstance(event, h11.Request):
            self.method = event.method
            size = len(event.method) + len(event.target)
            if size + sum(len(name) + len(value) for name, value in event.headers) > self._most:
                self.status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
                raise h11.RemoteProtocolError("headers too large", self.status)
        return event


class BoundedConnection(H11Protocol):
    """A connection that is closed if its client takes too long, or sends too many headers."""

    def __init__(
        self,
        settings: Settings,
        crowd: _Crowd,
        *,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._settings, self._crowd = settings, crowd
        self.conn: _Parser = _Parser(settings.header_bytes_max)
        self._application: ASGIApp = self.app
        self.app = self._answer
        self._header_seconds = settings.header_seconds
        self._timer: asyncio.TimerHandle | None = None
        self._over = self._ended = self._answered = False
        self._phase, self._since = _Phase.HEAD, self.loop.time()
        self._window, self._received, self._was_paused = self._since, 0, False
        self._unsent = -1

    # -- asyncio's protocol -------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client has connected."""
        super().connection_made(transport)
        self._over = self._crowd.admitted >= self._crowd.most
        if self._over:
            logger.warning(
                "connections: the limit of %d is reached; more get 503", self._crowd.most
            )
            self._header_seconds = min(self._header_seconds, limits.OVER_SECONDS)
            self.app = self._answer_health
            self._crowd.add(self)
        else:
            self._crowd.admitted += 1
        self._arm(self._header_seconds)

    def data_received(self, data: bytes) -> None:
        """More of a request has arrived."""
        if self._ended:
            return  # it is read only so that the client can read our response
        self._received += len(data)
        super().data_received(data)
        self._follow()

    def on_response_complete(self) -> None:
        """The response has been sent; a request that was sent in advance is next."""
        super().on_response_complete()
        self._follow()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed."""
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        if self._over:
            self._crowd.waiting.pop(self, None)
        else:
            self._crowd.admitted -= 1
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # -- time ---------------------------------------------------------------------------------

    def _follow(self) -> None:
        """Start the clock again if the connection waits for something else now."""
        phase = self._current_phase()
        if phase is self._phase:
            return
        if self._over and self.cycle is not None:
            self._crowd.waiting.pop(self, None)
            self.cycle.keep_alive = False
        if phase is _Phase.HEAD:
            self._unset_keepalive_if_required()
        self._phase, self._since = phase, self.loop.time()
        self._window, self._received, self._was_paused = self._since, 0, self.flow.read_paused
        self._arm(self._remaining())

    def _current_phase(self) -> _Phase:
        ours, theirs = self.conn.our_state, self.conn.their_state
        if theirs is h11.SEND_BODY:
            answered = self._answered or ours is h11.DONE or ours is h11.MUST_CLOSE
            return _Phase.DRAIN if answered else _Phase.BODY
        if ours is h11.IDLE and theirs is h11.IDLE:
            begun = self.cycle is None or bool(self.conn.trailing_data[0])
            return _Phase.HEAD if begun else _Phase.IDLE
        return _Phase.ANSWER

    def _arm(self, seconds: float) -> None:
        """Look again after so many seconds, or earlier if that is planned already."""
        when = self.loop.time() + seconds
        if self._timer is not None:
            if self._timer.when() <= when:
                return
            self._timer.cancel()
        self._timer = self.loop.call_at(when, self._look)

    def _look(self) -> None:
        """End the connection if the client is late."""
        self._timer = None
        seconds = self._remaining()
        if seconds > 0:
            self._arm(seconds)
        elif self._ended or self.transport.is_closing() or self._phase in _UNREAD:
            self.transport.abort()
        elif self._phase is _Phase.HEAD and not self.conn.trailing_data[0]:
            self.transport.close()  # nothing was asked
        else:
            what = "headers" if self._phase is _Phase.HEAD else "body"
            text = f"the request's {what} took too long to arrive; the connection was closed"
            logger.warning("connections: %s", text)
            self._end(RequestTimeout(text))

    def _remaining(self) -> float:
        """Seconds until the client is late; 0 or less if it is."""
        age = self.loop.time() - self._since
        if self._ended or self.transport.is_closing():
            return self._unread_seconds()
        if self._phase is _Phase.HEAD:
            return self._header_seconds - age
        if self._phase is _Phase.DRAIN:
            return limits.DRAIN_SECONDS - age
        if self._phase is _Phase.BODY:
            return min(self._settings.body_seconds - age, self._body_window())
        return self._unread_seconds()

    def _body_window(self) -> float:
        """Seconds until this part of the body must have arrived; 0 if it has not.

        A client that may not send, because we do not read, is not late.
        """
        stall = self._settings.body_stall_seconds
        left = self._window + stall - self.loop.time()
        if left > 0:
            return left
        paused = self.flow.read_paused or self.cycle.waiting_for_100_continue
        late = self._received < max(1, stall * self._settings.body_bytes_per_second)
        if late and not paused and not self._was_paused:
            return 0
        self._window, self._received, self._was_paused = self.loop.time(), 0, paused
        return stall

    def _unread_seconds(self) -> float:
        """Seconds until the client must have read something; 0 if it has not."""
        waits = self.flow.write_paused or self.transport.is_closing()
        unsent = self.transport.get_write_buffer_size() if waits else -1
        if waits and unsent == self._unsent:
            return 0
        self._unsent = unsent
        return self._settings.send_seconds

    # -- rejections ---------------------------------------------------------------------------

    def send_400_response(self, msg: str) -> None:
        """The request is not HTTP, or its headers are too large."""
        most = self._settings.header_bytes_max
        too_large = self.conn.status is HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
        large = HeadersTooLarge(f"headers too large: the limit is {most:,} bytes")
        self._end(large if too_large else InputError(msg))

    def _end(self, error: FirnlineError) -> None:
        """Answer with the error unless a response has begun, and close the connection."""
        path, cycle = "", self.cycle
        if cycle is not None and not cycle.response_complete:
            path = cycle.scope["path"]
            cycle.disconnected = True
            cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            response = error_response(error, path)
            headers = [*response.raw_headers, (b"connection", b"close")]
            reason = HTTPStatus(response.status_code).phrase.encode()
            body = b"" if self.conn.method == b"HEAD" else bytes(response.body)
            for event in (
                h11.Response(status_code=response.status_code, headers=headers, reason=reason),
                h11.Data(data=body),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        self._ended = True
        self._unset_keepalive_if_required()
        self.flow.resume_reading()
        # Closing with unread data would reset the connection before the client reads the response.
        self.transport.write_eof()
        self.loop.call_later(limits.LINGER_SECONDS, self.transport.abort)

    def _answer(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """The application; the rest of a request that it has not read is read before its end.

        Otherwise uvicorn would close the connection with unread data, which resets it, and a client
        that first sends all of its request would never read the response.
        """

        async def send_and_drain(message: Message) -> None:
            is_last = message["type"] == "http.response.body" and not message.get("more_body")
            if is_last and self.conn.their_state is h11.SEND_BODY and _closes(scope):
                await send({**message, "more_body": True})
                self._answered = True
                self._follow()
                while (await receive()).get("more_body"):
                    pass
                message = {"type": "http.response.body"}
            await send(message)

        return self._application(scope, receive, send_and_drain)

    async def _answer_health(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The application beyond the cap."""
        if scope["path"] in HEALTH:
            await self._application(scope, receive, send)
            return
        text = f"too many connections: the limit is {self._crowd.most}; retry in a moment"
        response = error_response(NotReady(text), scope["path"])
        response.headers["connection"] = "close"
        await response(scope, receive, send)


def _closes(scope: Scope) -> bool:
    """Whether the connection ends with this request."""
    options = [value.lower() for name, value in scope["headers"] if name == b"connection"]
    if scope["http_version"] == "1.0":
        return b"keep-alive" not in options
    return b"close" in options
