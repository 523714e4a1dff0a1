"""A `ChatModel` that says what is in the log already."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from firnline.log.entry import Entry
from firnline.protocols import Completion


class AnswerAgain:
    """Answers with an entry, whatever it is asked."""

    def __init__(self, entry: Entry) -> None:
        self._message = entry.message

    @property
    def name(self) -> str:
        """The model that gave the answer."""
        return str(self._message.metadata.get("model") or "firnline")

    async def complete(
        self,
        messages: Sequence[Mapping[str, Any]],  # noqa: ARG002
        *,
        tools: Sequence[Mapping[str, Any]] = (),  # noqa: ARG002
        schema: Mapping[str, Any] | None = None,  # noqa: ARG002
        max_tokens: int | None = None,  # noqa: ARG002
    ) -> Completion:
        """The answer."""
        return Completion(message=self._message, model=self.name)

    async def stream(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] = (),  # noqa: ARG002
        max_tokens: int | None = None,  # noqa: ARG002
    ) -> AsyncIterator[str | Completion]:
        """The answer, in one piece."""
        done = await self.complete(messages)
        if done.message.text:
            yield done.message.text
        yield done

    async def close(self) -> None:
        """There is nothing to let go of."""
