"""An embedder behind an HTTP endpoint that speaks the OpenAI embeddings protocol.

Needs the extra ``firnline[models]``. Get one from `firnline.embedding.open_embedder`.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Sequence
from typing import Any, Final

from firnline.errors import ModelError
from firnline.log.text import clean_text
from firnline.models.answers import read_error
from firnline.models.endpoint import ModelEndpoint

REQUEST_TEXT_CHARS_MAX: Final = 8_000
"""Characters of a text that are sent; endpoints reject texts that are too long for the model."""
BATCH_TEXTS_MAX: Final = 64
BATCH_CHARS_MAX: Final = 100_000
"""Characters in one request; providers limit the total tokens of a request."""

_BLANK: Final = "."
"""Replaces an empty text, which many endpoints reject."""


class HttpEmbedder(ModelEndpoint):
    """An `Embedder` at `url` (up to and including ``/v1``); see `ModelEndpoint` for errors.

    Vectors are scaled to length one. An answer without exactly one vector of finite numbers for
    each text, or with another dimension than before, raises `ModelError`.
    """

    _dimension = 0

    async def embed(self, texts: Sequence[str]) -> list[array[float]]:
        """One vector for each text; they are 32-bit floats."""
        found: list[array[float]] = []
        for batch in _batches(texts):
            answer = await self._ask("/embeddings", {"model": self._name, "input": batch})
            found += (self._unit(numbers) for numbers in _vectors(answer, len(batch)))
        return found

    def _unit(self, numbers: list[Any]) -> array[float]:
        try:
            length = math.hypot(*numbers)
        except (TypeError, OverflowError) as error:
            raise _answer_error(
                "has a vector with a value that is not a number", "numbers"
            ) from error
        if not numbers or not math.isfinite(length):
            raise _answer_error("has a vector that is empty or not finite", "numbers")
        if len(numbers) != (self._dimension or len(numbers)):
            text = f"has a vector of {len(numbers)} numbers instead of {self._dimension}"
            raise _answer_error(text, "dimension")
        self._dimension = len(numbers)
        return array("f", [number / (length or 1.0) for number in numbers])


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    chars = 0
    for original in texts:
        text = clean_text(original[:REQUEST_TEXT_CHARS_MAX])
        text = text if text.strip() else _BLANK
        if batch and (len(batch) == BATCH_TEXTS_MAX or chars + len(text) > BATCH_CHARS_MAX):
            yield batch
            batch, chars = [], 0
        batch.append(text)
        chars += len(text)
    if batch:
        yield batch


def _vectors(answer: object, count: int) -> list[list[Any]]:
    """The vectors of an answer in the order of the texts; `ModelError` unless there are `count`."""
    if not isinstance(answer, dict):
        raise _answer_error("is not a JSON object", "not_json")
    if answer.get("error"):
        code, message = read_error(answer)
        raise ModelError(f"the embedder failed: {message}", code=code or "error_body")
    data = answer.get("data")
    rows = data if isinstance(data, list) else []
    found: dict[int, list[Any]] = {}
    for place, row in enumerate(rows):
        fields = row if isinstance(row, dict) else {}
        index, numbers = fields.get("index", place), fields.get("embedding")
        if isinstance(index, int) and isinstance(numbers, list):
            found[index] = numbers
    if len(rows) != count or sorted(found) != list(range(count)):
        raise _answer_error(f"does not have one vector for each of {count} texts", "count")
    return [found[place] for place in range(count)]


def _answer_error(what: str, code: str) -> ModelError:
    return ModelError(f"the embedder's answer {what}", code=code)
