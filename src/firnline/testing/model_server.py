"""A local HTTP server with the OpenAI and Anthropic APIs, which can inject faults.

It has chat completions, responses, embeddings, and messages. A request that breaks a provider's
rules fails as it does there. For tests of code that calls a model, over real sockets and without
a model::

    with ModelServer() as server:                     # or: async with
        model = open_model("test", url=server.url)
        server.say("Hello.", call_tool("lookup", {"city": "Rome"}))   # the next two answers
        server.fail("429", "cut", None, repeat=True)  # in turn; None is a normal answer

Other requests are answered by rule: a summary if one is requested, JSON that satisfies the schema,
else a short echo; embeddings are computed from the words of a text. Or run it:
``python -m firnline.testing.model_server --port 8099``.
"""

from __future__ import annotations

import argparse
import json
import random
import socket
import struct
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler
from itertools import cycle
from typing import Any, Self

from firnline.errors import InputError
from firnline.testing import claude, responses
from firnline.testing.embeddings import EMBEDDING_FAULTS, embeddings_answer, embeddings_complaint
from firnline.testing.listener import Listener, held
from firnline.testing.replies import (
    BODIES,
    FAULTS,
    Answer,
    Request,
    chunks_of,
    is_status,
    prompt_tokens,
    spoiled,
    to_message,
    usage_of,
)
from firnline.testing.scripted_model import call_tool, complaint, think

__all__ = ["EMBEDDING_FAULTS", "FAULTS", "ModelServer", "call_tool", "main"]


class ModelServer:
    """The server. Use it as a context manager, async or not; it runs in its own threads.

    `requests` has the bodies of all requests in order of arrival, `headers` their headers (names in
    lower case), `paths` their paths. Set `answer` to a function of the request to customize the
    answers, and `list_models` to a function that returns the status and the JSON of the list of
    models. `formats` are the accepted response formats, `window_tokens` is the longest prompt.
    Set `responses` to False for an endpoint without the Responses API.
    """

    def __init__(
        self,
        *,
        port: int = 0,
        model: str = "test-model",
        window_tokens: int | None = None,
        formats: Sequence[str] = ("text", "json_object", "json_schema"),
        pause: float = 0.2,
        retry_after: str = "0",
        seed: int = 0,
    ) -> None:
        self.requests: list[Request] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.answer: Callable[[Request], Answer] | None = None
        self.list_models: Callable[[], tuple[int, Any]] | None = None
        self.model = model
        self.window_tokens = window_tokens
        self.formats = tuple(formats)
        self.pause = pause
        self.retry_after = retry_after
        self.responses = True
        self._port = port
        self._random = random.Random(seed)
        self._said: deque[Answer] = deque()
        self._faults: Iterator[str | None] = iter(())
        self._lock = threading.Lock()
        self._listener: Listener[ModelServer] | None = None
        self._port_held = ExitStack()
        self._timer: threading.Timer | None = None
        self._closing = threading.Event()

    # -- life ---------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """The base URL, including ``/v1``."""
        return f"http://127.0.0.1:{self._port}/v1"

    def __enter__(self) -> Self:
        self.accept()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def accept(self) -> None:
        """Accept connections, on the same port as before."""
        with self._lock:
            if self._listener is None and not self._closing.is_set():
                self._port_held.close()
                self._listener = Listener(self, _ModelHandler, self._port)
                self._port = self._listener.port

    def refuse(self) -> None:
        """Refuse connections until `accept`, and close the open ones."""
        with self._lock:
            listener, self._listener = self._listener, None
            if listener is not None:
                listener.stop()
                if not self._closing.is_set():
                    self._port_held.enter_context(held(self._port))

    def close(self) -> None:
        """Stop permanently."""
        self._closing.set()
        if self._timer is not None:
            self._timer.cancel()
        self.refuse()
        with self._lock:
            self._port_held.close()

    # -- what it does -------------------------------------------------------------------------

    def say(self, *answers: Answer) -> None:
        """Queue answers: text, or a message with tool calls (see `call_tool`)."""
        self._said.extend(answers)

    def fail(self, *faults: str | None, repeat: bool = False) -> None:
        """Plan faults by name for the next requests, one each; None is a normal answer.

        With `repeat` the plan starts again at its end. A new plan replaces the old one.
        """
        for fault in faults:
            known = fault in FAULTS or fault in EMBEDDING_FAULTS
            if fault is not None and not known and not is_status(fault):
                names = ", ".join((*FAULTS, *EMBEDDING_FAULTS))
                raise InputError(f"unknown fault {fault!r}; use {names} or an HTTP status")
        self._faults = cycle(faults) if repeat and faults else iter(faults)

    def shake(self, rate: float, faults: Sequence[str] = tuple(FAULTS)) -> None:
        """Let requests fail at random, each with probability `rate`."""

        def draw() -> Iterator[str | None]:
            while True:
                fails = self._random.random() < rate
                yield self._random.choice(faults) if fails else None

        self._faults = draw()

    def heal(self) -> None:
        """Discard the planned faults, and accept connections again."""
        self._faults = iter(())
        self.accept()

    # -- called by the handlers ---------------------------------------------------------------

    def receive(self, request: Request, headers: dict[str, str], path: str) -> str | None:
        """Record a request; returns its fault."""
        with self._lock:
            self.requests.append(request)
            self.headers.append(headers)
            self.paths.append(path)
            return next(self._faults, None)

    def compose(self, request: Request, fault: str | None, chat: Request | None = None) -> Answer:
        """The answer to a request; `chat` is the request in the OpenAI format."""
        with self._lock:
            if self._said:
                # An answer that is cut off stays in the queue for the next attempt.
                return self._said[0] if fault == "cut" else self._said.popleft()
        return self.answer(request) if self.answer else think(chat or request)

    def refuse_for_a_while(self) -> None:
        """Refuse connections for `pause` seconds."""
        timer = threading.Timer(self.pause, self.accept)  # requests may be concurrent
        timer.daemon = True
        self.refuse()
        timer.start()
        self._timer = timer

    def wait(self, seconds: float) -> None:
        """Wait, at most until the server stops."""
        self._closing.wait(seconds)


# -- the protocol -----------------------------------------------------------------------------


class _ModelHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Listener[ModelServer]

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name in the base class
        """Log nothing: requests are in `ModelServer.requests`."""

    def do_GET(self) -> None:
        owner = self.server.owner
        if self.path.partition("?")[0].rstrip("/") != "/v1/models":
            self._error(404, f"there is no {self.path}")
            return
        if owner.list_models is not None:
            self._json(*owner.list_models())
            return
        model = {"id": owner.model, "object": "model", "created": 0, "owned_by": "firnline"}
        self._json(200, {"object": "list", "data": [model]})

    def do_POST(self) -> None:
        owner = self.server.owner
        try:
            request = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)))
        except ValueError:
            request = None
        answers = {
            "/v1/chat/completions": self._chat,
            "/v1/embeddings": self._embeddings,
            claude.PATH: self._messages,
        }
        if owner.responses:
            answers[responses.PATH] = self._responses
        answer = answers.get(self.path.partition("?")[0].rstrip("/"))
        if answer is None or not isinstance(request, dict):
            self._error(400 if request is None else 404, f"not a request to {self.path}")
            return
        if self._is_responses and not request:  # a probe
            self._error(400, "Missing required parameter: 'model'.")
            return
        names = {name.lower(): value for name, value in self.headers.items()}
        fault = owner.receive(request, names, self.path)
        if not self._fails(request, fault):
            answer(request, fault)

    def _chat(self, request: Request, fault: str | None) -> None:
        if not self._rejects(request):
            message = to_message(self.server.owner.compose(request, fault))
            self._answer(request, message, fault)

    def _messages(self, request: Request, fault: str | None) -> None:
        owner = self.server.owner
        if (reason := claude.complaint(request, owner.window_tokens)) is not None:
            return self._error(400, reason)
        composed = owner.compose(request, fault, claude.as_chat(request))
        message, why = spoiled(to_message(composed), fault)
        answer = claude.answer_of(request, message, why, len(owner.requests))
        if fault == "slow":
            owner.wait(owner.pause)
        if request.get("stream"):
            return self._stream([*claude.events_of(answer)], fault)
        return self._send(200, json.dumps(answer).encode(), "application/json", fault)

    def _responses(self, request: Request, fault: str | None) -> None:
        owner = self.server.owner
        if (reason := responses.complaint(request, owner.window_tokens)) is not None:
            too_long = reason.startswith("maximum context length")
            return self._error(400, reason, "context_length_exceeded" if too_long else "invalid")
        composed = owner.compose(request, fault, responses.as_chat(request))
        message, why = spoiled(to_message(composed), fault)
        answer = responses.answer_of(request, message, why, len(owner.requests))
        if fault == "slow":
            owner.wait(owner.pause)
        if request.get("stream"):
            return self._stream([*responses.events_of(answer)], fault)
        return self._send(200, json.dumps(answer).encode(), "application/json", fault)

    def _embeddings(self, request: Request, fault: str | None) -> None:
        owner = self.server.owner
        if (reason := embeddings_complaint(request)) is not None:
            self._error(400, reason)
            return
        if fault == "slow":
            owner.wait(owner.pause)
        model = str(request.get("model") or owner.model)
        self._send(200, embeddings_answer(request, model, fault), "application/json", fault)

    # -- what is not an answer ----------------------------------------------------------------

    def _rejects(self, request: Request) -> bool:
        owner = self.server.owner
        wanted = (request.get("response_format") or {}).get("type", "text")
        reason, code = complaint(request), "invalid_request_error"
        if reason is None and wanted not in owner.formats:
            reason = f"response_format: {wanted} is not supported"
        if reason is None and owner.window_tokens is not None:
            tokens = prompt_tokens(request)
            if tokens > owner.window_tokens:
                reason = f"maximum context length is {owner.window_tokens} tokens, not {tokens}"
                code = "context_length_exceeded"
        if reason is not None:
            self._error(400, reason, code)
        return reason is not None

    def _fails(self, request: Request, fault: str | None) -> bool:
        """Apply a fault that replaces the answer; returns whether it was one."""
        owner = self.server.owner
        if fault == "refused":
            self.close_connection = True
            owner.refuse_for_a_while()
        elif fault == "reset":
            # Closing with a linger time of zero sends a reset (RST).
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.close_connection = True
            self.connection.close()
        elif fault == "context_length":
            self._error(
                400, "this model's maximum context length is 8 tokens", "context_length_exceeded"
            )
        elif fault is not None and is_status(fault):
            self._error(int(fault), f"status {fault} on demand", "on_demand")
        elif fault is not None and fault in BODIES:
            bodies = responses.BODIES if self._is_responses else BODIES
            body = (claude.BODIES if self._is_anthropic else bodies)[fault]
            if request.get("stream"):
                named = b"event: error\n" if self._is_anthropic else b""
                self._stream([named + b"data: " + body + b"\n\n"], None)
            else:
                self._send(200, body, "application/json")
        else:
            return False
        return True

    @property
    def _is_anthropic(self) -> bool:
        return self.path.startswith(claude.PATH)

    @property
    def _is_responses(self) -> bool:
        return self.path.startswith(responses.PATH)

    def _error(self, status: int, message: str, code: str = "invalid_request_error") -> None:
        if self._is_anthropic:
            self._json(status, claude.error_body(status, message))
            return
        self._json(
            status, {"error": {"message": message, "type": code, "code": code, "param": None}}
        )

    # -- an answer ----------------------------------------------------------------------------

    def _answer(self, request: Request, message: dict[str, Any], fault: str | None) -> None:
        owner = self.server.owner
        message, reason = spoiled(message, fault)
        head = {
            "id": f"chatcmpl-{len(owner.requests)}",
            "created": int(time.time()),
            "model": str(request.get("model") or owner.model),
        }
        usage = usage_of(request, message)
        if fault == "slow":
            owner.wait(owner.pause)
        if not request.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": reason, "logprobs": None}
            whole = {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
            self._send(200, json.dumps(whole).encode(), "application/json", fault)
            return
        chunks = [*chunks_of(message, reason)]
        events = [{**head, "object": "chat.completion.chunk", "choices": [one]} for one in chunks]
        if (request.get("stream_options") or {}).get("include_usage"):
            events.append({**events[-1], "choices": [], "usage": usage})
        lines = [f"data: {json.dumps(event)}\n\n".encode() for event in events]
        self._stream([*lines, b"data: [DONE]\n\n"], fault)

    def _json(self, status: int, body: Mapping[str, Any]) -> None:
        self._send(status, json.dumps(body).encode(), "application/json")

    def _send(self, status: int, body: bytes, kind: str, fault: str | None = None) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        if status in (429, 503):
            self.send_header("retry-after", self.server.owner.retry_after)
        self.end_headers()
        if fault == "cut":
            self.close_connection = True
            body = body[: len(body) // 2]
        self._write(body, fault)

    def _stream(self, events: Sequence[bytes], fault: str | None) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        cut = fault == "cut"
        for event in events[: len(events) // 2] if cut else events:
            self._write(b"%x\r\n%b\r\n" % (len(event), event), fault)
        if cut:
            self.close_connection = True
        else:
            self._write(b"0\r\n\r\n", fault)

    def _write(self, data: bytes, fault: str | None) -> None:
        if fault != "trickle":
            self.wfile.write(data)
            return
        for byte in data:
            self.wfile.write(bytes([byte]))
            self.server.owner.wait(self.server.owner.pause)


# -- by hand ----------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(prog="python -m firnline.testing.model_server")
    parser.add_argument("--port", type=int, default=8099)
    parser.add_argument("--model", default="test-model", help="the name of the listed model")
    parser.add_argument("--fail", nargs="*", default=[], metavar="FAULT", help=", ".join(FAULTS))
    given = parser.parse_args(arguments)
    with ModelServer(port=given.port, model=given.model) as server:
        if given.fail:
            server.fail(*(None if name == "ok" else name for name in given.fail), repeat=True)
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
