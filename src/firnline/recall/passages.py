"""The texts of a message that are embedded: with the speaker's name, in passages if long. Pure."""

from __future__ import annotations

from typing import Final

from firnline.embedding.token_embedder import TokenEmbedder
from firnline.log import limits
from firnline.log.message import Message
from firnline.log.regex import regex
from firnline.protocols import Embedder

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


def model_key(embedder: Embedder, dimension: int) -> str:
    """The key under which an embedder's vectors are stored: those of one key can be compared."""
    codes = f"+{embedder.codes}" if isinstance(embedder, TokenEmbedder) else ""
    return f"{embedder.name}/{dimension}{codes}"


def is_key_of(model: str, name: str) -> bool:
    """Whether it is the key of an embedder's vectors, of whatever dimension."""
    return model.rpartition("/")[0] == name
