"""all-MiniLM-L6-v2 inside this process: English, 384 numbers, no network, one core.

Needs the extra ``firnline[recall]``, from the first text on; creating one costs nothing.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from firnline.embedding.model_thread import EMBED_CHARS_MAX, ModelThread, model_thread
from firnline.embedding.token_embedder import EncodedText, QuestionTokens
from firnline.embedding.wordpiece import END, START, WordPieceToken, wordpiece

if TYPE_CHECKING:
    from firnline.embedding.onnx import Session

NAME: Final = "all-MiniLM-L6-v2-int8"
CODES: Final = "tokens-1"
"""The version of the codes of tokens (`firnline.embedding.codebook`)."""
CODE_BYTES: Final = 2
"""Of a token."""
PIECES_MAX: Final = 256
"""Word pieces of a text that are used, including marks; the model was trained on no more."""
BATCH_TEXTS_MAX: Final = 32
BATCH_PIECES_MAX: Final = 512
"""Pieces of a batch, including padding; larger ones are slower, and other calls wait longer."""
WINDOW_TEXTS: Final = 256
"""Texts that are tokenized at once and sorted by length."""

T = TypeVar("T")


class MiniLM:
    """An `Embedder`. All instances of a process share the weights and one thread.

    Vectors have length one. The same text has the same vector in every call, up to 1e-5, whatever
    the other texts. Text after `PIECES_MAX` word pieces is ignored; a text without words has a
    vector, too. `weights` is a file with the published weights, if not the package's.
    """

    def __init__(self, *, weights: Path | None = None, threads: int = 1) -> None:
        self._weights = weights
        self._threads = threads
        self._lane: ModelThread[Session] | None = None

    def __repr__(self) -> str:
        return f"MiniLM(threads={self._threads})"

    @property
    def name(self) -> str:
        """Model and version."""
        return NAME

    @property
    def codes(self) -> str:
        """The version of the codes of tokens."""
        return CODES

    async def embed(self, texts: Sequence[str]) -> list[array[float]]:
        """One vector of 384 numbers for each text; they are 32-bit floats."""
        return await self._each(texts, _vectors)

    async def encode(self, texts: Sequence[str]) -> list[EncodedText]:
        """The same with the codes of each text's tokens, from the same pass."""
        return await self._each(texts, _encoded)

    async def read_question(self, text: str) -> QuestionTokens:
        """A question's vector and tokens, to compare them with those of texts."""
        return await self._running().run(_question, text)

    def token_starts(self, text: str) -> list[int]:
        """Where the word of each token starts."""
        return [piece.start for piece in _pieces(text)]

    def slice_codes(self, codes: bytes, first: int, last: int) -> bytes:
        """The codes of some of a text's tokens."""
        return codes[:1] + codes[1 + CODE_BYTES * first : 1 + CODE_BYTES * last]

    async def _each(
        self, texts: Sequence[str], job: Callable[[Session, list[list[int]]], list[T]]
    ) -> list[T]:
        """The job's result for each text, in batches of similar lengths."""
        running = self._running()
        all_texts = list(texts)
        found: list[T] = []
        for first in range(0, len(all_texts), WINDOW_TEXTS):
            pieces = await running.run(cut, all_texts[first : first + WINDOW_TEXTS])
            made: dict[int, T] = {}
            for places in batches([len(ids) for ids in pieces]):
                batch = [pieces[place] for place in places]
                made.update(zip(places, await running.run(job, batch), strict=True))
            found += (made[place] for place in range(len(pieces)))
        return found

    def _running(self) -> ModelThread[Session]:
        self._lane = self._lane or model_thread(NAME, self._load, self._weights, self._threads)
        return self._lane

    async def close(self) -> None:
        """Release the weights, if no other instance uses them; a later call loads them again."""
        self._lane = None

    def _load(self) -> Session:
        from firnline.embedding.onnx import Session  # noqa: PLC0415 - an extra, and slow

        return Session.load(self._weights, self._threads)


def batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """The positions of all lengths in batches of similar lengths."""
    batch: list[int] = []
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        pieces = (len(batch) + 1) * lengths[place]  # padded to the longest, which is the newest
        if batch and (len(batch) == BATCH_TEXTS_MAX or pieces > BATCH_PIECES_MAX):
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def cut(_: Session, texts: Sequence[str]) -> list[list[int]]:
    """The numbers of each text's pieces, with the marks of start and end."""
    return [[START, *(piece.id for piece in _pieces(text)), END] for text in texts]


def _pieces(text: str) -> Iterator[WordPieceToken]:
    return islice(wordpiece().pieces(text[:EMBED_CHARS_MAX]), PIECES_MAX - 2)


def _vectors(session: Session, batch: list[list[int]]) -> list[array[float]]:
    return session.texts(batch)


def _encoded(session: Session, batch: list[list[int]]) -> list[EncodedText]:
    return session.encoded(batch)


def _question(session: Session, text: str) -> QuestionTokens:
    pieces = list(_pieces(text))
    return session.question([START, *(p.id for p in pieces), END], [p[1:] for p in pieces])
