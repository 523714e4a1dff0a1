"""Who answers when there is no model: it quotes what the conversation holds, and says so."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

from firnline.log.entry import Hit
from firnline.log.message import Message
from firnline.memory import Memory
from firnline.protocols import Completion

NAME: Final = "firnline-offline"
_QUOTES: Final = 3
_LOOKED_AT: Final = 12
_QUOTE_CHARS: Final = 400
_NEWEST: Final = 16  # entries; others may have said something since
_PREFACE: Final = "There is no language model here, only memory."


class OfflineModel:
    """A `ChatModel` for one conversation: recall in plain words. For none, it knows nothing."""

    def __init__(self, memory: Memory, conversation: str | None) -> None:
        self._memory, self._conversation = memory, conversation

    @property
    def name(self) -> str:
        """As clients see it."""
        return NAME

    async def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] = (),  # noqa: ARG002 - it calls none
        schema: Mapping[str, Any] | None = None,  # noqa: ARG002 - and writes no JSON
        max_tokens: int | None = None,  # noqa: ARG002 - and is brief
    ) -> Completion:
        """What was said before that fits the newest question."""
        if self._conversation is None:
            text = f"{_PREFACE} This request was not to be remembered, so nothing is known of it."
        else:
            question = await self._asked(self._conversation, question_of(messages))
            found = await self._memory.recall(self._conversation, question, limit=_LOOKED_AT)
            text = told(question, found)
        return Completion(message=Message.assistant(text), model=NAME)

    async def stream(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        max_tokens: int | None = None,
    ) -> AsyncIterator[str | Completion]:
        """The same, line by line."""
        done = await self.complete(messages, tools=tools, max_tokens=max_tokens)
        for line in done.message.text.splitlines(keepends=True):
            yield line
        yield done

    async def close(self) -> None:
        """There is nothing to let go of."""

    async def _asked(self, conversation: str, sent: str) -> str:
        """What was asked, without the summaries and recalled text that a turn puts before it."""
        head = await self._memory.head(conversation)
        newest = max(head.seq - _NEWEST, 0) if head else 0
        asked = ""
        for entry in reversed(await self._memory.read(conversation, first_seq=newest)):
            longer = f"{entry.message.text.strip()}\n\n{asked}".strip()
            if entry.message.role == "user" and sent.endswith(longer):
                asked = longer
            elif asked:
                break
        return asked or sent


def question_of(messages: Sequence[Mapping[str, Any]]) -> str:
    """The newest words of the user."""
    for message in reversed(messages):
        if message.get("role") == "user":
            return Message.from_openai(message).text.strip()
    return ""


def told(question: str, found: Sequence[Hit]) -> str:
    """An answer of quotes: what others than this answerer said, and not the question itself."""
    said = [hit for hit in found if _is_said(hit, question)][:_QUOTES]
    if not said:
        return f"{_PREFACE} Nothing said here so far fits; it is noted, word for word."
    lines = [f"{_PREFACE} This conversation holds:"]
    lines += [f"- “{_quote(hit)}” ({_source(hit)})" for hit in said]
    return "\n".join(lines)


def _is_said(hit: Hit, question: str) -> bool:
    text = hit.message.text.strip()
    ours = hit.message.role == "assistant" and text.startswith(_PREFACE)
    return bool(text) and not ours and text != question and hit.message.role != "tool"


def _quote(hit: Hit) -> str:
    text = " ".join(hit.message.text.split())
    return text if len(text) <= _QUOTE_CHARS else f"{text[:_QUOTE_CHARS].rstrip()}…"


def _source(hit: Hit) -> str:
    who = hit.message.name or hit.message.role
    when = f", {hit.time:%Y-%m-%d}" if hit.time else ""
    return f"{who}{when}, entry {hit.seq}"
