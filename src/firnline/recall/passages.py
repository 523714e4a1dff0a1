"""The passages of a long message: those that are embedded, and the one that answers. Pure."""

from __future__ import annotations

import math
from typing import Final

from firnline.embedding.token_embedder import TokenEmbedder
from firnline.language.stems import stem
from firnline.language.terms import index_terms
from firnline.log import limits
from firnline.log.message import Message
from firnline.log.regex import regex
from firnline.protocols import Embedder
from firnline.recall.query import parse_question

_END: Final = regex(r"(?<=[.!?。！？])\s+|\n+")  # noqa: RUF001 - full-width signs are meant
_LAST: Final = limits.PASSAGES_MAX // 3


def passages(message: Message) -> list[str]:
    """The texts that are embedded for a message; none if it is empty."""
    text = message.text.strip()
    if not text:
        return []
    speaker = f"{message.name}: " if message.name else ""
    if len(text) <= limits.PASSAGE_CHARS:
        return [speaker + text]
    reach = limits.PASSAGE_CHARS * limits.PASSAGES_MAX
    if len(text) > 2 * reach:
        text = f"{text[:reach]}\n{text[-reach:]}"
    parts = _parts(text)
    if len(parts) > limits.PASSAGES_MAX:  # keep the beginning and the end
        parts = parts[: limits.PASSAGES_MAX - _LAST] + parts[-_LAST:]
    return [speaker + part for part in parts]


def _parts(text: str) -> list[str]:
    """The text in parts of whole sentences; a sentence that is too long is cut."""
    parts = [""]
    for sentence in _END.split(text):
        for at in range(0, len(sentence), limits.PASSAGE_CHARS):
            piece = sentence[at : at + limits.PASSAGE_CHARS]
            if parts[-1] and len(parts[-1]) + len(piece) >= limits.PASSAGE_CHARS:
                parts.append(piece)
            else:
                parts[-1] = f"{parts[-1]} {piece}".strip()
    return [part for part in parts if part]


def passage_at(text: str, question: str) -> int | None:
    """Where the sentence of a long text starts that has most of a question's words.

    The words of the sentence after it count half. None if there are none of them; a text is read up
    to `limits.PASSAGE_PLACE_CHARS`.
    """
    weights = {term.stem: term.weight for term in parse_question(question).terms}
    text = text[: limits.PASSAGE_PLACE_CHARS]
    ends = [*(match.end() for match in _END.finditer(text)), len(text)]
    starts = [0, *ends[:-1]]
    found = [
        frozenset(map(stem, index_terms(text[start:end]))) & weights.keys()
        for start, end in zip(starts, ends, strict=True)
    ]
    best, place = 0.0, None
    for start, words, after in zip(starts, found, [*found[1:], frozenset()], strict=True):
        score = math.fsum(weights[word] for word in words)
        score += math.fsum(weights[word] for word in after - words) / 2
        if score > best:
            best, place = score, start
    return place


def model_key(embedder: Embedder, dimension: int) -> str:
    """The key under which an embedder's vectors are stored: those of one key can be compared."""
    codes = f"+{embedder.codes}" if isinstance(embedder, TokenEmbedder) else ""
    return f"{embedder.name}/{dimension}{codes}"


def is_key_of(model: str, name: str) -> bool:
    """Whether it is the key of an embedder's vectors, of whatever dimension."""
    return model.rpartition("/")[0] == name
