"""What the tools return: values for programs, and the same as text (``str``) for readers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pydantic import BaseModel, Field

from firnline.log.regex import regex

_BREAK: Final = regex(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")


class Said(BaseModel):
    """A message, word for word."""

    conversation: str = Field(default="", description="Where it was said, if that is not clear.")
    seq: int = Field(description="Its number in the conversation.")
    role: str
    name: str = ""
    time: str = ""
    text: str
    next_offset: int | None = Field(
        default=None, description="Cut here; read on with first_seq = seq and offset = next_offset."
    )
    score: float | None = None

    def __str__(self) -> str:
        number = f"{self.conversation} {self.seq}".strip()
        speaker = f"{self.role} ({self.name})" if self.name else self.role
        on = self.next_offset
        cut = "" if on is None else f" [cut: read first_seq={self.seq} offset={on}]"
        return _one(f"[{number}] {' '.join(filter(None, (self.time, speaker)))}: {self.text}{cut}")


class Place(BaseModel):
    """Where more can be read."""

    conversation: str
    seq: int

    def __str__(self) -> str:
        return f"{self.conversation} {self.seq}"


class Appended(BaseModel):
    """What was stored."""

    conversation: str
    first_seq: int
    last_seq: int
    head: str = Field(description="The hash of the last message; it covers all before it.")
    replayed: bool = Field(
        default=False, description="It had been stored before; nothing was added."
    )

    def __str__(self) -> str:
        what = "was stored before" if self.replayed else "stored"
        return f"{self.conversation}: messages {self.first_seq} to {self.last_seq} {what}."


class Row(BaseModel):
    """A conversation."""

    name: str
    messages: int
    tokens: int
    created_at: str
    updated_at: str
    project: str = ""

    def __str__(self) -> str:
        project = f", project {self.project}" if self.project else ""
        return f"{self.name}: {self.messages} messages, last {self.updated_at}{project}"


class Listing(BaseModel):
    """Conversations by name."""

    conversations: list[Row]
    next_after: str = ""

    def __str__(self) -> str:
        more = f"There are more: after={self.next_after}" if self.next_after else ""
        return _lines(*_rows(self.conversations, "No conversations."), more)


class Page(BaseModel):
    """Neighbouring messages of a conversation."""

    conversation: str
    total: int = Field(description="How many messages the conversation has.")
    messages: list[Said]
    next_seq: int | None = Field(default=None, description="The first_seq to go on with.")

    def __str__(self) -> str:
        shown = self.messages
        span = f"{shown[0].seq} to {shown[-1].seq} of {self.total}" if shown else "none there"
        return _lines(f"{self.conversation}: messages {span}", *shown, _next(self.next_seq))


class Hits(BaseModel):
    """Messages that fit a query, best first."""

    messages: list[Said]
    more: list[Place] = Field(description="These fit, too, but had no room; read shows them.")

    def __str__(self) -> str:
        nothing = "No message fits. Try other words, or by_date."
        more = ", ".join(map(str, self.more))
        return _lines(*_rows(self.messages, nothing), f"Also, without room: {more}" if more else "")


class Days(BaseModel):
    """What was said in a time, by conversation and in order."""

    since: str
    until: str
    messages: list[Said]
    more: list[Place] = Field(
        description="Here is more of that time: ask for this conversation, with first_seq = seq."
    )
    next_after: str = Field(default="", description="There are more conversations: after = this.")

    def __str__(self) -> str:
        more = ", ".join(map(str, self.more))
        return _lines(
            f"From {self.since} to {self.until}:",
            *_rows(self.messages, "Nothing was said."),
            f"More from (conversation first_seq): {more}" if more else "",
            f"More conversations: after={self.next_after}" if self.next_after else "",
        )


class Shown(BaseModel):
    """A message of a context."""

    role: str
    name: str = ""
    text: str
    tokens: int
    seq: int | None = Field(default=None, description="The message it is, if it is one of them.")

    def __str__(self) -> str:
        number = "" if self.seq is None else f"[{self.seq}] "
        speaker = f"{self.role} ({self.name})" if self.name else self.role
        return _one(f"{number}{speaker}: {self.text}")


class Prepared(BaseModel):
    """A context: what a model should see of a conversation."""

    conversation: str
    strategy: str
    tokens: int
    messages: list[Shown]
    accounting: dict[str, int] = Field(description="Where the tokens went.")
    degraded: list[str] = Field(description="Why this is less than was wanted; mostly empty.")
    explanation: str = Field(description="What is in it, what is not, and why.")

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
        tags = "".join(f" #{tag}" for tag in self.tags)
        title = " ".join(self.title.split()) or "(no words)"
        quiet = f"{self.inactive_hours:g} h ago"
        return f"topic {self.topic}: {title} ({self.messages} messages, {quiet}{state}){tags}"


class TopicList(BaseModel):
    """A conversation's topics, the active one first, and the messages of the one asked for."""

    conversation: str
    total: int
    topics: list[TopicRow]
    next_skip: int | None = None
    messages: list[Said]
    next_seq: int | None = None

    def __str__(self) -> str:
        nothing = f"{self.conversation} has no topics yet: they begin with a user's message."
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
    text: str = Field(default="", description="Of versions in force, and of the one asked for.")

    def __str__(self) -> str:
        state = "in force" if self.in_force else self.status
        base = "" if self.base is None else f", continues {self.base}"
        topic = "" if self.topic is None else f", topic {self.topic}"
        span = f"messages {self.first_seq} to {self.last_seq}" if self.last_seq >= 0 else "given"
        about = f"digest {self.version} ({state}): {span}{topic}{base}, {self.tokens} tokens"
        return _one(f"{about}\n{self.text}" if self.text else about)


class DigestList(BaseModel):
    """A conversation's digests, the newest first, and what the version asked for covers."""

    conversation: str
    total: int
    digests: list[DigestRow]
    next_before: int | None = None
    chain: list[int] = Field(description="From the newest version back over what each continues.")
    lost: str = Field(
        default="", description="What the version asked for leaves out, by its receipt."
    )
    messages: list[Said]
    next_seq: int | None = None

    def __str__(self) -> str:
        nothing = f"{self.conversation} has no digests yet: all of it still fits."
        return _lines(
            *_rows(self.digests, _beyond("digests", self.total) or nothing),
            self.lost,
            f"There are more: before={self.next_before}" if self.next_before is not None else "",
            *self.messages,
            _next(self.next_seq),
        )


class Fact(BaseModel):
    """Something that a conversation settled, and the messages that say so."""

    field: str
    name: str = ""
    value: str
    seqs: list[int] = Field(description="The messages that say it; none if the application did.")

    def __str__(self) -> str:
        name = f"{self.field} {self.name}".strip().replace("_", " ")
        said = f" [{', '.join(map(str, self.seqs))}]" if self.seqs else ""
        return _one(f"{name}: {self.value}{said}")


class Known(BaseModel):
    """What the memory of a conversation holds: facts, and the summary of what is out of sight."""

    conversation: str
    facts: list[Fact]
    total: int = Field(description="How many facts there are.")
    next_skip: int | None = None
    summary: str = ""
    summarised_to: int | None = Field(default=None, description="The last message in the summary.")

    def __str__(self) -> str:
        nothing = f"{self.conversation}: nothing was digested yet; read or search its messages."
        beyond = _beyond("facts", self.total)
        summary = f"Summary up to message {self.summarised_to}:\n{self.summary}"
        return _lines(
            *_rows(self.facts, beyond if self.total or self.summary else nothing),
            f"There are more: skip={self.next_skip}" if self.next_skip is not None else "",
            summary if self.summary else "",
        )


def _one(text: str) -> str:
    """A row of several lines, so that nothing inside a message can look like another one."""
    return _BREAK.sub("\n    ", text)


def _next(seq: int | None) -> str:
    return "" if seq is None else f"There are more: first_seq={seq}"


def _rows(rows: Sequence[object], otherwise: str) -> Sequence[object]:
    return rows or [otherwise]


def _beyond(what: str, total: int) -> str:
    return f"None of the {total} {what} from here on." if total else ""


def _lines(*lines: object) -> str:
    return "\n".join(text for text in map(str, lines) if text)
