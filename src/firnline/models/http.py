"""A model behind an HTTP endpoint that speaks the OpenAI chat completions protocol.

Needs the extra ``firnline[models]``. Get one from `firnline.models.open_model`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final
from urllib.parse import urlsplit

from firnline.errors import ModelError
from firnline.models.answers import AnswerPieces, read_completion
from firnline.models.endpoint import Body, ModelEndpoint, TransientFailure
from firnline.models.events import read_events
from firnline.models.json_answer import RUNGS, ask_structured
from firnline.protocols import Completion

_PATH: Final = "/chat/completions"


class HttpModel(ModelEndpoint):
    """A `ChatModel` at `url` (up to and including ``/v1``); see `ModelEndpoint` for errors."""

    _rung = 0

    async def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
    ) -> Completion:
        """One answer; with a JSON `schema` its text is JSON that satisfies it.

        The rung of the ladder that worked is tried first next time.
        """
        body = self._body(messages, tools, max_tokens)
        if schema is None:
            return await self._complete(body)

        async def send(request: list[Body], response_format: Body | None) -> Completion:
            options = {"response_format": response_format} if response_format else {}
            return await self._complete({**body, "messages": request, **options})

        answer = await ask_structured(send, body["messages"], schema, RUNGS[self._rung :])
        self._rung = RUNGS.index(answer.rung)
        return answer.completion

    async def stream(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        max_tokens: int | None = None,
    ) -> AsyncIterator[str | Completion]:
        """The text in pieces, then the whole `Completion`.

        A stream that has started is not retried; the text so far is in the error's ``partial``.
        """
        body = self._body(messages, tools, max_tokens)
        body |= {"stream": True, "stream_options": {"include_usage": True}}
        deadline = self._deadline()
        pieces = AnswerPieces(self._name)
        response = await self._begin(_PATH, body, deadline)
        try:
            # Some endpoints do not stream, or not their errors: then the body is one event.
            is_json = response.headers.get("content-type", "").startswith("application/json")
            read = _whole_body if is_json else read_events
            async with aclosing(read(self._pieces(response, deadline))) as arriving:
                async for data in arriving:
                    if text := pieces.take(data):
                        yield text
                    if pieces.done:
                        break
            completion = pieces.completion()
        except TransientFailure as failure:
            text = f"the model's answer was interrupted: {failure}"
            raise ModelError(text, code="cut", partial=pieces.text) from failure.__cause__
        except ModelError as error:
            error.context.setdefault("partial", pieces.text)
            raise
        finally:
            await response.aclose()
        yield completion

    # -- one request --------------------------------------------------------------------------

    def _body(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]],
        max_tokens: int | None,
    ) -> Body:
        body: Body = {"model": self._name, "messages": [dict(message) for message in messages]}
        if tools:
            body["tools"] = list(tools)
        if max_tokens is not None:
            body[limit_name(self._url)] = max_tokens
        return body

    async def _complete(self, body: Body) -> Completion:
        return read_completion(await self._ask(_PATH, body), self._name)


def limit_name(url: str) -> str:
    """The endpoint's parameter name for the longest answer.

    OpenAI's newer models accept only the long name, all others know the short one.
    """
    host = urlsplit(url).hostname or ""
    openai = host.endswith((".openai.com", ".openai.azure.com"))
    return "max_completion_tokens" if openai else "max_tokens"


# -- pieces -----------------------------------------------------------------------------------


async def _whole_body(pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[str, None]:
    yield b"".join([piece async for piece in pieces]).decode(errors="replace")
