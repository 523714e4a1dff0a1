"""The results of the tools: structured, and as text (``str``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pydantic import BaseModel, Field

from firnline.log.fence import one_line, speaker
from firnline.log.regex import regex
from firnline.log.text import plural

_BREAK: Final = regex(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")


class QuotedMessage(BaseModel):
    """A message, unchanged; if it is cut, a part of it, or its passages with [...] between them."""

    conversation: str = Field(
        default="", description="Its conversation, if the result has several."
    )
    seq: int = Field(description="Its number in the conversation.")
    role: str
    name: str = ""
    time: str = ""
    text: str
    next_offset: int | None = Field(
        default=None,
        description="The text is cut; continue with first_seq = seq and offset = next_offset.",
    )
    score: float | None = None
    chance: float | None = Field(
        default=None, description="The probability that it is evidence for the query."
    )
    also_in: list[str] = Field(
        default=[], description="Branches that have the same message at the same number."
    )
    superseded_by: int | None = Field(
        default=None, description="It is outdated: the newer message that says what holds now."
    )

    def __str__(self) -> str:
        number = f"{self.conversation} {self.seq}".strip()
        number += f", also in {', '.join(self.also_in)}" if self.also_in else ""
        newer = self.superseded_by
        number += "" if newer is None else f", outdated: see message {newer}"
        on = self.next_offset
        # Not behind the text, which could end like this, too.
        cut = "" if on is None else f"[cut: read first_seq={self.seq} offset={on}]"
        about = " ".join(filter(None, (self.time, speaker(self.role, self.name), cut)))
        return _indent(f"[{number}] {about}: {self.text}")


class MessagePlace(BaseModel):
    """A message that the result has no room for."""

    conversation: str
    seq: int

    def __str__(self) -> str:
        return f"{self.conversation} {self.seq}"


class AppendResult(BaseModel):
    """The messages stored by `append`."""

    conversation: str
    first_seq: int
    last_seq: int
    head: str = Field(description="The hash of the last message; it covers all before it.")
    replayed: bool = Field(
        default=False, description="An earlier call stored them; nothing was added."
    )

    def __str__(self) -> str:
        what = "were already stored" if self.replayed else "stored"
        return f"{self.conversation}: messages {self.first_seq} to {self.last_seq} {what}."


class ConversationSummary(BaseModel):
    """A conversation."""

    name: str
    messages: int
    tokens: int
    created_at: str
    updated_at: str
    project: str = ""

    def __str__(self) -> str:
        project = f", project {self.project}" if self.project else ""
        return f"{self.name}: {plural(self.messages, 'message')}, last {self.updated_at}{project}"


class ConversationList(BaseModel):
    """Conversations by name."""

    conversations: list[ConversationSummary]
    next_after: str = ""

    def __str__(self) -> str:
        more = f"There are more: after={self.next_after}" if self.next_after else ""
        return _lines(*_rows(self.conversations, "No conversations."), more)


class MessagePage(BaseModel):
    """Consecutive messages of a conversation, or the newest of a project."""

    conversation: str = Field(description="Empty for a project.")
    project: str = ""
    total: int = Field(description="The number of messages in the conversation or the project.")
    messages: list[QuotedMessage]
    next_seq: int | None = Field(default=None, description="The first_seq of the next page.")

    def __str__(self) -> str:
        shown = self.messages
        if self.project:
            about = f"{self.project}: the newest {len(shown)} of {plural(self.total, 'message')}"
            return _lines(about, *shown)
        span = (
            f"{shown[0].seq} to {shown[-1].seq} of {self.total}" if shown else "none from here on"
        )
        return _lines(f"{self.conversation}: messages {span}", *shown, _next(self.next_seq))


class SearchResult(BaseModel):
    """Messages that match a query, best first."""

    messages: list[QuotedMessage]
    more: list[MessagePlace] = Field(description="Further matches without room; use read.")
    degraded: list[str] = Field(
        default=[], description="Why matches may be missing; usually empty."
    )

    def __str__(self) -> str:
        nothing = "No message matches. Try other words, or by_date."
        more = ", ".join(map(str, self.more))
        return _lines(
            *_rows(self.messages, nothing),
            f"Further matches, not shown: {more}" if more else "",
            *self.degraded,
        )


class DateResult(BaseModel):
    """The messages of a time span, by conversation and in order."""

    since: str
    until: str
    messages: list[QuotedMessage]
    more: list[MessagePlace] = Field(
        description="More of that time: call again with this conversation and first_seq = seq."
    )
    next_after: str = Field(
        default="", description="There are more conversations: call again with after = this."
    )

    def __str__(self) -> str:
        more = ", ".join(map(str, self.more))
        return _lines(
            f"From {self.since} to {self.until}:",
            *_rows(self.messages, "No messages."),
            f"More (conversation first_seq): {more}" if more else "",
            f"More conversations: after={self.next_after}" if self.next_after else "",
        )


class ContextMessage(BaseModel):
    """A message of a context."""

    role: str
    name: str = ""
    text: str
    tokens: int
    seq: int | None = Field(
        default=None, description="The message's number, if it is one of the conversation."
    )

    def __str__(self) -> str:
        number = "" if self.seq is None else f"[{self.seq}] "
        return _indent(f"{number}{speaker(self.role, self.name)}: {self.text}")


class ContextResult(BaseModel):
    """A context: the parts of a conversation that a model needs."""

    conversation: str
    strategy: str
    tokens: int
    messages: list[ContextMessage]
    accounting: dict[str, int] = Field(description="Where the tokens went.")
    degraded: list[str] = Field(description="Why the context is incomplete; usually empty.")
    explanation: str = Field(description="What is included, what is left out, and why.")

    def __str__(self) -> str:
        return _lines(self.explanation, "", *self.messages)


class TopicRow(BaseModel):
    """A topic."""

    topic: int
    title: str
    messages: int
    active: bool = False
    dormant: bool = False
    inactive_hours: float
    tags: list[str] = []

    def __str__(self) -> str:
        state = ", active" if self.active else ", dormant" if self.dormant else ""
        tags = "".join(f" #{one_line(tag)}" for tag in self.tags)
        title = one_line(self.title) or "(no words)"
        quiet = f"{self.inactive_hours:g} h ago"
        count = plural(self.messages, "message")
        return f"topic {self.topic}: {title} ({count}, {quiet}{state}){tags}"


class TopicList(BaseModel):
    """A conversation's topics, the active one first, and the messages of the requested one."""

    conversation: str
    total: int
    topics: list[TopicRow]
    next_skip: int | None = None
    messages: list[QuotedMessage]
    next_seq: int | None = None

    def __str__(self) -> str:
        nothing = f"{self.conversation} has no topics yet; the first message of a user starts one."
        return _lines(
            *_rows(self.topics, _beyond("topics", self.total) or nothing),
            f"There are more: skip={self.next_skip}" if self.next_skip is not None else "",
            *self.messages,
            _next(self.next_seq),
        )


class DigestRow(BaseModel):
    """A version of a digest."""

    version: int
    status: str
    in_force: bool = False
    first_seq: int
    last_seq: int
    topic: int | None = None
    base: int | None = Field(default=None, description="The version that it continues.")
    made_by: str = ""
    tokens: int
    created_at: str = ""
    text: str = Field(
        default="", description="Only for versions in force and for the requested one."
    )

    def __str__(self) -> str:
        state = "in force" if self.in_force else self.status
        base = "" if self.base is None else f", continues {self.base}"
        topic = "" if self.topic is None else f", topic {self.topic}"
        span = f"messages {self.first_seq} to {self.last_seq}" if self.last_seq >= 0 else "none"
        about = (
            f"digest {self.version} ({state}): {span}{topic}{base}, {plural(self.tokens, 'token')}"
        )
        return _indent(f"{about}\n{self.text}" if self.text else about)


class DigestList(BaseModel):
    """A conversation's digests, newest first, and what the requested version covers."""

    conversation: str
    total: int
    digests: list[DigestRow]
    next_before: int | None = None
    chain: list[int] = Field(description="The newest version, the one it continues, and so on.")
    lost: str = Field(
        default="", description="What the requested version leaves out, from its receipt."
    )
    messages: list[QuotedMessage]
    next_seq: int | None = None

    def __str__(self) -> str:
        nothing = f"{self.conversation} has no digests yet: all messages still fit."
        return _lines(
            *_rows(self.digests, _beyond("digests", self.total) or nothing),
            self.lost,
            f"There are more: before={self.next_before}" if self.next_before is not None else "",
            *self.messages,
            _next(self.next_seq),
        )


class StateFact(BaseModel):
    """A fact from a conversation, and the messages that state it."""

    field: str
    name: str = ""
    value: str
    seqs: list[int] = Field(
        description="The messages that state it; none if the application set it."
    )

    def __str__(self) -> str:
        name = f"{self.field} {self.name}".strip().replace("_", " ")
        evidence = f" [{', '.join(map(str, self.seqs))}]" if self.seqs else ""
        return _indent(f"{name}: {self.value}{evidence}")


class StateResult(BaseModel):
    """What is known of a conversation: facts, and the summary of older messages."""

    conversation: str
    facts: list[StateFact]
    total: int = Field(description="The number of facts.")
    next_skip: int | None = None
    summary: str = ""
    summarized_to: int | None = Field(default=None, description="The last message in the summary.")

    def __str__(self) -> str:
        nothing = f"{self.conversation}: no digest yet; read or search its messages."
        beyond = _beyond("facts", self.total)
        summary = _indent(f"Summary up to message {self.summarized_to}:\n{self.summary}")
        return _lines(
            *_rows(self.facts, beyond if self.total or self.summary else nothing),
            f"There are more: skip={self.next_skip}" if self.next_skip is not None else "",
            summary if self.summary else "",
        )


class FactQuote(BaseModel):
    """Where a fact was stated, in the person's words."""

    conversation: str
    seq: int
    text: str
    time: str = ""

    def __str__(self) -> str:
        return f"[{self.conversation} {self.seq}] {self.time}: {self.text}"


class PersonFact(BaseModel):
    """What a person stated, since when it holds, and the words it rests on."""

    id: str
    attribute: str
    value: str
    since: str
    until: str = Field(default="", description="When it ended, if it did.")
    reverted: str = Field(default="", description="When it was withdrawn, if it was.")
    quotes: list[FactQuote] = Field(description="The newest of the messages that state it.")

    def __str__(self) -> str:
        until = f" until {self.until}" if self.until else ""
        reverted = f", withdrawn {self.reverted}" if self.reverted else ""
        about = f"{self.attribute}: {self.value} (since {self.since}{until}{reverted})"
        return _indent("\n".join([about, *map(str, self.quotes)]))


class FactList(BaseModel):
    """The facts of a person."""

    facts: list[PersonFact]
    total: int
    next_skip: int | None = None

    def __str__(self) -> str:
        return _lines(
            *_rows(self.facts, _beyond("facts", self.total) or "No facts are known."),
            f"There are more: skip={self.next_skip}" if self.next_skip is not None else "",
        )


class ProfileResult(BaseModel):
    """What holds of a person now; the version grows with each change."""

    version: int
    text: str = ""

    def __str__(self) -> str:
        return self.text or "Nothing is known of this person yet."


def _indent(text: str) -> str:
    """Indent further lines, so that no part of a message can look like another row."""
    return _BREAK.sub("\n    ", text)


def _next(seq: int | None) -> str:
    return "" if seq is None else f"There are more: first_seq={seq}"


def _rows(rows: Sequence[object], otherwise: str) -> Sequence[object]:
    return rows or [otherwise]


def _beyond(what: str, total: int) -> str:
    return f"None of the {total} {what} from here on." if total else ""


def _lines(*lines: object) -> str:
    return "\n".join(text for text in map(str, lines) if text)
