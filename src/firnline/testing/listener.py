"""The HTTP listener of the test servers; it can close connections and reuse its port."""

from __future__ import annotations

import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")

_HERE: Final = "127.0.0.1"


class Listener(ThreadingHTTPServer, Generic[T]):
    """Accepts connections for its `owner` in its own threads, until `stop`."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, owner: T, handler: type[BaseHTTPRequestHandler], port: int) -> None:
        self.owner = owner
        self._live: set[Any] = set()
        self._ended = False
        super().__init__((_HERE, port), handler)
        name = type(owner).__name__
        self._thread = threading.Thread(target=self._accept, name=name, daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self.server_address[1])

    def stop(self) -> None:
        """Stop listening and close all connections."""
        self._ended = True
        socket.create_connection((_HERE, self.port)).close()  # wakes the accept loop
        self._thread.join()
        self.server_close()
        for connection in tuple(self._live):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # already closed

    def _accept(self) -> None:
        """Accept connections; `serve_forever` would poll for its end many times a second."""
        while not self._ended:
            self.handle_request()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Handle a connection, and track it until it is closed; the last one is from `stop`."""
        if self._ended:
            self.shutdown_request(request)
            return
        self._live.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        self._live.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report an error, except for closed connections, which these tests cause on purpose."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


def held(port: int) -> socket.socket:
    """Reserve a port without listening, so that the system does not assign it again."""
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind((_HERE, port))
    return holder
