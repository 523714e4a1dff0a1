"""The model of a server without a model: it quotes from the conversation, and says so."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

from firnline.log.hit import Hit
from firnline.log.message import Message
from firnline.protocols import Completion
from firnline.recall.tools import RecallMemory

NAME: Final = "firnline-offline"
_QUOTES: Final = 3
_LOOKED_AT: Final = 12
_QUOTE_CHARS: Final = 400
_NEWEST: Final = 16  # entries; there may be newer ones of other clients
_PREFACE: Final = "There is no language model here, only memory."


class OfflineModel:
    """A `ChatModel` that answers with recalled entries of one conversation."""

    def __init__(self, memory: RecallMemory, conversation: str | None) -> None:
        self._memory, self._conversation = memory, conversation

    @property
    def name(self) -> str:
        """The name that clients see."""
        return NAME

    async def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] = (),  # noqa: ARG002 - it calls no tools
        schema: Mapping[str, Any] | None = None,  # noqa: ARG002 - it writes no JSON
        max_tokens: int | None = None,  # noqa: ARG002 - it is brief
    ) -> Completion:
        """Answer with entries that match the newest question."""
        if self._conversation is None:
            text = f"{_PREFACE} This request is not stored, so there is nothing to quote."
        else:
            question = await self._find_question(self._conversation, question_of(messages))
            found = await self._memory.recall(self._conversation, question, limit=_LOOKED_AT)
            text = quote(question, found)
        return Completion(message=Message.assistant(text), model=NAME)

    async def stream(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        max_tokens: int | None = None,
    ) -> AsyncIterator[str | Completion]:
        """The same answer, line by line."""
        done = await self.complete(messages, tools=tools, max_tokens=max_tokens)
        for line in done.message.text.splitlines(keepends=True):
            yield line
        yield done

    async def close(self) -> None:
        """Nothing to close."""

    async def _find_question(self, conversation: str, sent: str) -> str:
        """The question, without the summaries and recalled text that a turn puts before it."""
        head = await self._memory.head(conversation)
        newest = max(head.seq - _NEWEST, 0) if head else 0
        question = ""
        for entry in reversed(await self._memory.read(conversation, first_seq=newest)):
            longer = f"{entry.message.text.strip()}\n\n{question}".strip()
            if entry.message.role == "user" and sent.endswith(longer):
                question = longer
            elif question:
                break
        return question or sent


def question_of(messages: Sequence[Mapping[str, Any]]) -> str:
    """The text of the newest user message."""
    for message in reversed(messages):
        if message.get("role") == "user":
            return Message.from_openai(message).text.strip()
    return ""


def quote(question: str, found: Sequence[Hit]) -> str:
    """An answer of quotes, without the question and earlier answers of this model."""
    quotable = [hit for hit in found if _is_quotable(hit, question)]
    quoted = sorted(quotable, key=_only_asks)[:_QUOTES]
    if not quoted:
        return f"{_PREFACE} No earlier message matches; your message is stored."
    lines = [f"{_PREFACE} This conversation holds:"]
    lines += [f"- “{_quote(hit)}” ({_source(hit)})" for hit in quoted]
    return "\n".join(lines)


def _is_quotable(hit: Hit, question: str) -> bool:
    text, role = hit.message.text.strip(), hit.message.role
    ours = role == "assistant" and text.startswith(_PREFACE)
    asks = role == "user" and text.casefold().endswith(question.casefold())  # the same once more
    return bool(text) and not ours and not asks and role != "tool"


def _only_asks(hit: Hit) -> bool:
    """Whether it is a single question: it answers none."""
    text = hit.message.text.strip()
    return text.endswith("?") and not any(end in text[:-1] for end in ".!?")


def _quote(hit: Hit) -> str:
    # More words than it has characters, and the rest.
    text = " ".join(hit.message.text.split(maxsplit=_QUOTE_CHARS)[:_QUOTE_CHARS])
    return text if len(text) <= _QUOTE_CHARS else f"{text[:_QUOTE_CHARS].rstrip()}…"


def _source(hit: Hit) -> str:
    who = hit.message.name or hit.message.role
    when = f", {hit.time:%Y-%m-%d}" if hit.time else ""
    return f"{who}{when}, message {hit.seq}"
