"""A client of OpenAI's Responses API, whichever protocol the endpoint speaks.

A dialect is made for each request, because its answer has an id before there is one. The messages
of a request are ours until it is sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from firnline.errors import BudgetError, FirnlineError
from firnline.log.entry import Card, Entry
from firnline.log.message import Message
from firnline.log.openai_items import ITEMS, items_of, output_message
from firnline.server.proxy.dialect import Body, Dialect, Location, UpstreamAnswer
from firnline.server.proxy.openai import OPENAI
from firnline.server.proxy.response_events import (
    NO_USAGE,
    EventWriter,
    Item,
    finished,
    whole_events,
)
from firnline.server.proxy.response_places import RESPONSE, ResponsePlace, item_cards
from firnline.server.proxy.response_translate import AnswerItems


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseTask:
    """One request for a response: the `head` of its answer, and what writes the rest.

    `leading` are items of the application that are not stored in the log; requests that continue
    the response need not repeat them. `unused` are fields without effect at the endpoint;
    `owner` is this process. `polls` if the client does not wait for the answer.
    """

    head: Item
    items: AnswerItems
    writer: EventWriter
    leading: tuple[Item, ...] = ()
    unused: tuple[str, ...] = ()
    owner: str = ""
    polls: bool = False


class ResponseClient(Dialect):
    """What the client gets; subclasses know the endpoint."""

    def __init__(self, task: ResponseTask) -> None:
        self.task = task

    @property
    def background_body(self) -> Body | None:
        """See `Dialect.background_body`."""
        return self.task.head if self.task.polls else None

    @property
    def stream_name(self) -> str | None:
        """See `Dialect.stream_name`."""
        return f"response {self.task.head['id']}"

    def headers(self) -> dict[str, str]:
        """See `Dialect.headers`."""
        return {"x-firnline-unused": ", ".join(self.task.unused)} if self.task.unused else {}

    def read_request(self, body: Body, url: str) -> Body:  # noqa: ARG002
        """The request as it was translated before."""
        return body

    def load_messages(self, body: Mapping[str, Any]) -> list[Message]:
        """See `Dialect.load_messages`."""
        return list(body["messages"])

    def put_messages(self, body: Body, messages: Sequence[Message]) -> Body:
        """See `Dialect.put_messages`."""
        return {**body, "messages": messages}

    def load_answer(self, answer: UpstreamAnswer) -> Message:
        """See `Dialect.load_answer`."""
        output = answer.fields["output"]
        message = output_message(output) if output else Message.assistant(metadata={ITEMS: []})
        about = {**message.metadata, **answer.metadata, RESPONSE: self.task.head["id"]}
        return replace(message, metadata=about)

    def start_cards(self, tenant: str, location: Location) -> list[Card]:
        """See `Dialect.start_cards`."""
        return self._cards(tenant, location, self.task.head)

    def answer_cards(
        self, tenant: str, location: Location, answer: UpstreamAnswer, entry: Entry
    ) -> list[Card]:
        """See `Dialect.answer_cards`."""
        items = item_cards(tenant, entry, location.conversation)
        return [*self._cards(tenant, location, answer.fields["response"], entry.seq), *items]

    def _cards(
        self, tenant: str, location: Location, response: Mapping[str, Any], answer: int = -1
    ) -> list[Card]:
        """The card of the response, if the client may refer to it later."""
        if self.task.head["store"] is False:
            return []
        place = ResponsePlace(
            conversation=location.conversation,
            first=location.first,
            question=location.question,
            answer=answer,
            head={name: value for name, value in response.items() if name != "output"},
            leading=self.task.leading,
            owner=self.task.owner,
        )
        return [place.card(tenant)]

    def replay_body(self, message: Message) -> Body:
        """See `Dialect.replay_body`."""
        head = {**self.task.head, "id": message.metadata.get(RESPONSE) or self.task.head["id"]}
        model = message.metadata.get("model") or head["model"]
        return finished(head, items_of(message), "", model=model, usage=NO_USAGE)

    def replay_events(self, message: Message, body: Body) -> Iterator[str]:  # noqa: ARG002
        """See `Dialect.replay_events`."""
        return whole_events(self.replay_body(message))

    def error_event(self, error: FirnlineError) -> str:
        """See `Dialect.error_event`."""
        if "response_event" in error.context:
            return str(error.context["response_event"])
        code = error.context.get("code") or error.code
        return self.task.writer.error(str(code), str(error))

    def context_too_long(self, error: BudgetError) -> FirnlineError:
        """See `Dialect.context_too_long`."""
        return OPENAI.context_too_long(error)
