"""What differs between the protocols that clients and endpoints speak, and the rounds of a request.

A dialect reads and writes requests in the shape of the endpoint, and answers in the shape of the
client. The steps of the proxy are the same for all dialects.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Collection,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Final, TypeAlias

from starlette.responses import Response

from firnline.context.tools import Tool, answer
from firnline.errors import BudgetError, FirnlineError, ModelError, TooFast
from firnline.log.entry import Card, Entry
from firnline.log.message import Message
from firnline.log.threads import run_by_size
from firnline.log.tokens import TokenCounter
from firnline.server.proxy import limits
from firnline.server.proxy.upstream import OK, TOO_MANY, Reply

_USUAL_REASONS: Final = frozenset({"", "stop", "tool_calls", "end_turn", "tool_use"})
_NO_ROOM: Final = '{"error":"there is no room for this result: ask for less, in one call"}'
Body: TypeAlias = dict[str, Any]
Send: TypeAlias = Callable[[Body], Awaitable[Reply]]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamRequest:
    """A request as it is sent: its `body`, and the recall `tools` that it offers.

    `client_body` is what the client sent, `prompt_tokens` the size of the context if there is one.
    `tool_tokens` is the largest result of a tool, `room` what all rounds may add to the request,
    counted with `count`.
    """

    client_body: Body
    body: Body
    count: TokenCounter
    prompt_tokens: int = 0
    tools: Sequence[Tool] = ()
    tool_tokens: int = 0
    room: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamAnswer:
    """A complete answer: the `fields` of its message, in the shape of the endpoint's protocol.

    Calls of recall tools are not in it. In a stream it comes before the events that end the answer,
    so that it is stored before the client sees that it is complete.
    """

    fields: Mapping[str, Any]
    model: str
    finish_reason: str
    usage: Mapping[str, Any]

    @property
    def metadata(self) -> dict[str, Any]:
        """What the log keeps of it apart from the message."""
        metadata: dict[str, Any] = {"model": self.model} if self.model else {}
        if self.finish_reason not in _USUAL_REASONS:
            metadata["finish_reason"] = self.finish_reason
        return metadata


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """Where a request belongs in the log.

    `question` is the last entry of its history, `hash` that entry's hash if it was stored just now,
    `next_seq` where the log continues. `answer` is the stored answer, if this request repeats one
    that was answered. `hashes` are those of the history's prefixes, the longest last; `key` is the
    client's own key for the request.

    `anonymous` if the request names neither a conversation nor a user. Then someone else may have
    sent the same history, so nothing may come from memory that this request has not sent itself.

    `first` is the first entry that the request added, if it added any. In a thread (`is_thread`),
    what the application said in earlier requests is valid still. `compacted` if the client has
    replaced a part of its history by a summary: then the model gets what it sends.
    """

    conversation: str
    source: str
    named: bool
    hashes: tuple[str, ...]
    anonymous: bool = False
    key: str = ""
    question: int = -1
    hash: str = ""
    next_seq: int = 0
    answer: Entry | None = None
    first: int = -1
    is_thread: bool = False
    compacted: bool = False


StreamEvent: TypeAlias = tuple[str, str]
"""The text that an event adds to the answer, and the event as the client gets it."""
AnswerStream: TypeAlias = AsyncGenerator[StreamEvent | UpstreamAnswer, None]
"""The events of an answer; the answer itself comes before the events that end it."""


class Dialect(ABC):
    """One protocol: requests go to `path`, `put_messages` may add `margin_tokens` to them."""

    path: str
    margin_tokens: ClassVar[int] = 0
    forwards_query: ClassVar[bool] = False

    # -- requests -----------------------------------------------------------------------------

    @abstractmethod
    def read_request(self, body: Body, url: str) -> Body:
        """The client's request in the shape of the endpoint at `url`."""

    @abstractmethod
    def load_messages(self, body: Mapping[str, Any]) -> list[Message]:
        """The messages of a request."""

    @abstractmethod
    def put_messages(self, body: Body, messages: Sequence[Message]) -> Body:
        """The request with other messages."""

    @abstractmethod
    def add_messages(self, body: Body, messages: Sequence[Message]) -> Body:
        """The request with more messages."""

    @abstractmethod
    def tool_definition(self, tool: Tool) -> dict[str, Any]:
        """A tool as a request offers it."""

    @abstractmethod
    def tool_name(self, definition: object) -> str | None:
        """The name of a tool that a request offers; None if it has none."""

    @abstractmethod
    def remove_tools(self, body: Body, names: Collection[str]) -> Body:
        """The request without the tools of these names."""

    def finish_request(self, body: Body) -> Body:
        """The request as it is sent."""
        return body

    # -- answers ------------------------------------------------------------------------------

    @property
    def background_body(self) -> Body | None:
        """What the client gets at once, if it does not wait for the answer."""
        return None

    @property
    def stream_name(self) -> str | None:
        """The name by which the stream of the answer can be stopped."""
        return None

    def headers(self) -> dict[str, str]:
        """Response headers about the request."""
        return {}

    @abstractmethod
    async def read_answer(
        self, rounds: UpstreamRounds, reply: Reply
    ) -> tuple[Body, UpstreamAnswer]:
        """The JSON that the client gets, and the answer in it."""

    @abstractmethod
    def stream_answer(self, rounds: UpstreamRounds, reply: Reply) -> AnswerStream:
        """The events that the client gets, and the answer."""

    @abstractmethod
    def load_answer(self, answer: UpstreamAnswer) -> Message:
        """The answer as a message."""

    def start_cards(self, tenant: str, location: Location) -> list[Card]:  # noqa: ARG002
        """What is kept next to the log of a request that is stored at `location`."""
        return []

    def answer_cards(
        self,
        tenant: str,  # noqa: ARG002
        location: Location,  # noqa: ARG002
        answer: UpstreamAnswer,  # noqa: ARG002
        entry: Entry,  # noqa: ARG002
    ) -> list[Card]:
        """What is kept next to the log of an answer that is stored as `entry`."""
        return []

    def rejection(self, status: int, body: bytes, headers: Mapping[str, str]) -> Response:
        """The response for an error of the endpoint."""
        return Response(body, status, headers)

    # -- what Firnline answers itself ---------------------------------------------------------

    @abstractmethod
    def replay_body(self, message: Message) -> Body:
        """A stored answer."""

    @abstractmethod
    def replay_events(self, message: Message, body: Body) -> Iterator[str]:
        """A stored answer in events, for the request `body`."""

    @abstractmethod
    def error_event(self, error: FirnlineError) -> str:
        """An error after the stream has started."""

    @abstractmethod
    def context_too_long(self, error: BudgetError) -> FirnlineError:
        """The error for a question that does not fit the window."""


# -- rounds -----------------------------------------------------------------------------------


class UpstreamRounds:
    """The rounds of one request: recall tools run between two of them, within their tokens.

    `send` sends a body. `number` counts the rounds of recall, `usage` adds up what all rounds cost.
    """

    def __init__(self, dialect: Dialect, request: UpstreamRequest, send: Send) -> None:
        self.request, self.tools = request, request.tools
        self.tool_names = frozenset(tool.name for tool in request.tools)
        self.number = 0
        self.usage: dict[str, Any] = {}
        self._dialect, self._send = dialect, send
        self._body, self._room = request.body, request.room

    def is_recall(self, calls: Collection[object]) -> bool:
        """Whether the model calls recall tools and no others; `calls` are the tools' names."""
        recalls = bool(calls) and all(name in self.tool_names for name in calls)
        return recalls and self.number < limits.ROUNDS_MAX

    async def send_tool_results(self, load: Callable[[], Message], size: int) -> Reply:
        """Run the recall tools that a message calls, and send their results.

        `load` makes the message of an answer of so many characters.
        """
        message = await run_by_size(size, load)
        calls = message.tool_calls
        if len(calls) > limits.CALLS_MAX:
            raise ModelError(
                f"the upstream answer calls {len(calls):,} recall tools; the limit is "
                f"{limits.CALLS_MAX}",
                code="too_large",
            )
        texts = await asyncio.gather(*(answer(call, self.tools) for call in calls))
        results = [
            Message.tool(text, tool_call_id=call.id)
            for call, text in zip(calls, texts, strict=True)
        ]
        bounded = partial(_bounded, message, results, self._room, self.request.count)
        more, used = await run_by_size(size + sum(map(len, texts)), bounded)
        self._room -= used
        self.number += 1
        if self.number >= limits.ROUNDS_MAX or self._room < self.request.tool_tokens:
            self._body = self._dialect.remove_tools(self._body, self.tool_names)
        add = partial(self._dialect.add_messages, self._body, more)
        self._body = await run_by_size(size, add)
        reply = await self._send(self._body)
        if reply.status == TOO_MANY:
            wait = reply.headers.get("retry-after", "")
            seconds = float(wait) if wait.isdecimal() else 1.0
            raise TooFast("the upstream endpoint limits requests", retry_after=seconds)
        if reply.status != OK:
            raise ModelError(f"the upstream endpoint answered {reply.status} after a recall")
        return reply

    def add_usage(self, usage: object) -> None:
        """Add what a round cost."""
        self.usage = _sum_usage(self.usage, usage if isinstance(usage, Mapping) else {})


def _bounded(
    call: Message, results: Sequence[Message], room: int, count: TokenCounter
) -> tuple[list[Message], int]:
    """The call and its results with their tokens; results for which there is no room say so."""
    messages, used = [call], int(count.message(call))
    for result in results:
        size = int(count.message(result))
        if used + size > room:
            short = replace(result, content=_NO_ROOM)
            result, size = short, int(count.message(short))  # noqa: PLW2901 - it takes its place
        messages.append(result)
        used += size
    return messages, used


def _sum_usage(total: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Counts are added up, also those inside counts; of other values the last one is kept."""
    found = dict(total)
    for name, value in more.items():
        before = found.get(name)
        if isinstance(value, Mapping):
            found[name] = _sum_usage(before if isinstance(before, Mapping) else {}, value)
        elif isinstance(value, int) and isinstance(before, int):
            found[name] = before + value
        elif value is not None or before is None:
            found[name] = value
    return found
