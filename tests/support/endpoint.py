"""An endpoint that answers whatever a test sets, byte for byte."""

import socket
import struct
from http.server import BaseHTTPRequestHandler

from firnline.testing.listener import Listener


class Endpoint:
    """Answers every request with the `head` and the `body` that the test has set."""

    def __init__(self):
        self.reply = (200, "application/json", b"{}", "whole")

    def __enter__(self):
        self._listener = Listener(self, _Handler, 0)
        self.url = f"http://127.0.0.1:{self._listener.port}/v1"
        return self

    def __exit__(self, *_):
        self._listener.stop()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        status, kind, body, ending = self.server.owner.reply
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("connection", "close")
        self.close_connection = True
        if ending == "short":  # the connection closes before all of it has come
            self.send_header("content-length", str(len(body) + 9))
        self.end_headers()
        self.wfile.write(body)
        if ending == "reset":
            self.wfile.flush()
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
