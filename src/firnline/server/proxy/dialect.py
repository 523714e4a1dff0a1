"""What differs between the protocols that clients and endpoints speak.

A dialect reads and writes requests in the shape of the endpoint, and answers in the shape of the
client. The steps of the proxy are the same for all dialects.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

from starlette.responses import Response

from firnline.context.tools import Tool
from firnline.errors import BudgetError, FirnlineError
from firnline.log.message import Message
from firnline.server.proxy.upstream import Reply, UpstreamAnswer, UpstreamRounds

Body: TypeAlias = dict[str, Any]
StreamEvent: TypeAlias = tuple[str, str]
"""The text that an event adds to the answer, and the event as the client gets it."""
AnswerStream: TypeAlias = AsyncGenerator[StreamEvent | UpstreamAnswer, None]
"""The events of an answer; the answer itself comes before the events that end it."""


class Dialect(ABC):
    """One protocol: requests go to `path`, `put_messages` may add `margin_tokens` to them."""

    path: ClassVar[str]
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
    def tool_name(self, definition: object) -> object:
        """The name of a tool that a request offers."""

    @abstractmethod
    def remove_tools(self, body: Body, names: Collection[str]) -> Body:
        """The request without the tools of these names."""

    def finish_request(self, body: Body) -> Body:
        """The request as it is sent."""
        return body

    # -- answers ------------------------------------------------------------------------------

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
