"""The protocol of embedders that also have a vector for each token of a text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from firnline.protocols import Embedder


class EncodedText(NamedTuple):
    """A text's vector, and the codes of its tokens' own vectors, some bytes for each."""

    vector: Sequence[float]
    codes: bytes


class QuestionTokens(NamedTuple):
    """A question's vector, and its tokens: where they are in the text, and their comparison.

    `compare` takes the vectors of texts, as the rows of an array, and their codes. It returns an
    array with the cosine of each of the question's tokens and the nearest token of each text.
    """

    vector: Sequence[float]
    spans: Sequence[tuple[int, int]]
    compare: Callable[[Any, Sequence[bytes]], Any]


@runtime_checkable
class TokenEmbedder(Embedder, Protocol):
    """An embedder that also has a vector for each token, and codes of a few bytes for them."""

    @property
    def codes(self) -> str:
        """The version of the codes. Those of different versions are never compared."""
        ...

    async def encode(self, texts: Sequence[str]) -> Sequence[EncodedText]:
        """What `embed` returns for each text, with the codes of its tokens."""
        ...

    async def read_question(self, text: str) -> QuestionTokens:
        """A question, to be compared with the codes of texts."""
        ...

    def token_starts(self, text: str) -> Sequence[int]:
        """Where each token of a text starts of which there is a code, in order."""
        ...

    def slice_codes(self, codes: bytes, first: int, last: int) -> bytes:
        """The codes of a text's tokens from number `first` up to `last`, as those of a text."""
        ...
