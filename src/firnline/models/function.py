"""Wraps a plain async function as a model."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from firnline.errors import FirnlineError, ModelError, ModelRefused, ModelTimeout
from firnline.log.message import Message
from firnline.models.json_answer import Rung, ask_structured
from firnline.protocols import ChatModel, Completion

FunctionAnswer: TypeAlias = "str | Mapping[str, Any] | Message"
ModelFunction: TypeAlias = Callable[..., Awaitable[FunctionAnswer]]

_TWICE: Final[tuple[Rung, ...]] = ("text", "text")
"""A function has no response format: the prompt asks for JSON, and again with the reason."""


def callable_model(function: ModelFunction, name: str = "callable") -> ChatModel:
    """A model from an async function that receives messages and returns an answer.

    It is called with a list of dicts of the OpenAI chat shape, and returns the answer's text, or a
    dict of that shape, or a `Message`; tool calls may be in the last two. A function with a
    parameter ``tools`` also receives the tools. `name` selects the tokenizer. Whatever it raises
    becomes a `ModelError`.
    """
    return _FunctionModel(function, name)


class _FunctionModel:
    def __init__(self, function: ModelFunction, name: str) -> None:
        self._function = function
        self._name = name
        self._takes_tools = "tools" in inspect.signature(function).parameters

    def __repr__(self) -> str:
        return f"callable_model({self._function!r}, name={self._name!r})"

    @property
    def name(self) -> str:
        return self._name

    async def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,  # noqa: ARG002 - the function has no parameter for it
    ) -> Completion:
        async def send(request: list[dict[str, Any]], _: dict[str, Any] | None) -> Completion:
            return await self._call(request, tools)

        copies = [dict(message) for message in messages]
        if schema is None:
            return await send(copies, None)
        return (await ask_structured(send, copies, schema, _TWICE)).completion

    async def stream(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        max_tokens: int | None = None,
    ) -> AsyncIterator[str | Completion]:
        completion = await self.complete(messages, tools=tools, max_tokens=max_tokens)
        if completion.message.text:
            yield completion.message.text
        yield completion

    async def close(self) -> None:
        """Nothing to release."""

    async def _call(
        self, messages: list[dict[str, Any]], tools: Sequence[Mapping[str, Any]]
    ) -> Completion:
        options = {"tools": list(tools)} if self._takes_tools else {}
        try:
            message = _message(await self._awaitable(self._function(messages, **options)))
        except ModelError:
            raise
        except TimeoutError as error:
            raise ModelTimeout(f"{self._name} took too long") from error
        except Exception as error:
            raise ModelError(f"{self._name} failed: {type(error).__name__}: {error}") from error
        if not message.text.strip() and not message.tool_calls:
            raise ModelError(f"{self._name} returned an empty answer", code="empty")
        reason = "tool_calls" if message.tool_calls else "stop"
        return Completion(message=message, model=self._name, finish_reason=reason)

    def _awaitable(self, answer: Any) -> Awaitable[FunctionAnswer]:
        if not inspect.isawaitable(answer):
            why = "it returned an answer, not a coroutine; define it with `async def`"
            raise ModelRefused(f"{self._name} is not async: {why}")
        return answer


def _message(answer: object) -> Message:
    if isinstance(answer, Message):
        return answer
    if isinstance(answer, str):
        return Message.assistant(answer)
    if isinstance(answer, Mapping):
        return Message.from_openai({"role": "assistant", **answer})
    raise FirnlineError(f"expected text, a dict or a Message, got {type(answer).__name__}")
