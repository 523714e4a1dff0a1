"""Adds a model with a larger window for requests that are too large for the first."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final, TypeAlias, cast

from firnline.errors import InputError, ModelRefused
from firnline.log import limits
from firnline.log.model_table import find_model
from firnline.log.tokens import count_tokens
from firnline.protocols import ChatModel, Completion

NEAR: Final = 0.95
Messages: TypeAlias = Sequence[Mapping[str, Any]]


class FallbackModel:
    """A `ChatModel` made of two. `fallbacks` counts how often the larger one was used."""

    def __init__(
        self, model: ChatModel, larger: ChatModel, *, near: float, window_tokens: int | None
    ) -> None:
        self.fallbacks = 0
        self._model = model
        self._larger = larger
        self._limit = int(near * window_tokens) if window_tokens is not None else None

    def __repr__(self) -> str:
        return f"with_fallback({self._model!r}, {self._larger!r})"

    @property
    def name(self) -> str:
        """The first model's name."""
        return self._model.name

    async def complete(
        self,
        messages: Messages,
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
    ) -> Completion:
        """One answer, from the first model if the request fits its window."""
        if not await self._is_near(messages, tools, max_tokens):
            try:
                return await self._model.complete(
                    messages, tools=tools, schema=schema, max_tokens=max_tokens
                )
            except ModelRefused as error:
                _raise_unless_too_long(error)
        self.fallbacks += 1
        return await self._larger.complete(
            messages, tools=tools, schema=schema, max_tokens=max_tokens
        )

    async def stream(
        self,
        messages: Messages,
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        max_tokens: int | None = None,
    ) -> AsyncIterator[str | Completion]:
        """The text in pieces, then the whole `Completion`, from the model that `complete` uses."""
        if not await self._is_near(messages, tools, max_tokens):
            try:
                async with _closed(
                    self._model.stream(messages, tools=tools, max_tokens=max_tokens)
                ) as items:
                    async for item in items:
                        yield item
            except ModelRefused as error:
                _raise_unless_too_long(error)  # raised before the first piece, or never
            else:
                return
        self.fallbacks += 1
        async with _closed(
            self._larger.stream(messages, tools=tools, max_tokens=max_tokens)
        ) as items:
            async for item in items:
                yield item

    async def close(self) -> None:
        """Close both."""
        try:
            await self._model.close()
        finally:
            await self._larger.close()

    async def _is_near(
        self, messages: Messages, tools: Sequence[Mapping[str, Any]], max_tokens: int | None
    ) -> bool:
        limit = self._limit
        if limit is None:
            return False

        def count() -> int:
            return count_tokens(messages, self._model.name, tools=tools)

        size = sum(len(str(message.get("content"))) for message in messages)
        if size > limits.COUNT_INLINE_CHARS:
            # The encoder releases the GIL, so the event loop continues meanwhile.
            counted = await asyncio.to_thread(count)
        else:
            counted = count()
        return counted + (max_tokens or 0) > limit


def with_fallback(
    model: ChatModel, larger: ChatModel, *, near: float = NEAR, window_tokens: int | None = None
) -> FallbackModel:
    """`model`, and `larger` for requests near the first one's window.

    A request is near if its tokens, the tools' and the answer's `max_tokens` are more than `near`
    of the window; one that the first model rejects as too long also goes to the larger one. The
    window is found by the model's name, or passed as `window_tokens`; if it is unknown, only the
    rejected ones do.
    """
    if not 0.0 < near <= 1.0:
        raise InputError(f"near: expected a share of the window such as 0.95, got {near}")
    small = window_tokens or find_model(model.name).window_tokens
    large = find_model(larger.name).window_tokens
    if small is not None and large is not None and large <= small:
        raise InputError(
            f"{larger.name} has a window of {large:,} tokens, no larger than the "
            f"{small:,} of {model.name}"
        )
    return FallbackModel(model, larger, near=near, window_tokens=small)


def _raise_unless_too_long(error: ModelRefused) -> None:
    if error.context.get("code") != "context_length_exceeded":
        raise error


def _closed(stream: AsyncIterator[str | Completion]) -> aclosing[AsyncGenerator[Any, None]]:
    return aclosing(cast("AsyncGenerator[Any, None]", stream))
