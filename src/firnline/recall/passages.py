"""The passages of a long message: those that are embedded, and the one that answers. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from firnline.embedding.token_embedder import TokenEmbedder
from firnline.log import limits
from firnline.log.hit import TextSpan
from firnline.log.message import Message
from firnline.log.regex import regex
from firnline.protocols import Embedder

_END: Final = regex(r"(?<=[.!?。！？])\s+|\n+")  # noqa: RUF001 - full-width signs are meant
_LAST: Final = limits.PASSAGES_MAX // 3


class EmbeddedPart(NamedTuple):
    """A part of a message that is embedded: its text, its pieces, and where the text has them."""

    text: str
    pieces: tuple[TextSpan, ...]
    offsets: tuple[int, ...]

    def place(self, at: int) -> int:
        """Where a character of the text is in the message; before it, if it is the speaker's."""
        number = bisect_right(self.offsets, at) - 1
        return self.pieces[number].start + at - self.offsets[number] if number >= 0 else -1


def passages(message: Message) -> list[str]:
    """The texts that are embedded for a message; none if it is empty."""
    return [part.text for part in parts(message)]


def parts(message: Message) -> list[EmbeddedPart]:
    """The same with their places: one part, or for a long message parts of whole sentences."""
    whole = message.text
    text = whole.strip()
    if not text:
        return []
    speaker = speaker_prefix(message)
    begin = len(whole) - len(whole.lstrip())
    if len(text) <= limits.PASSAGE_CHARS:
        return [
            EmbeddedPart(speaker + text, (TextSpan(begin, begin + len(text)),), (len(speaker),))
        ]
    reach = limits.PASSAGE_CHARS * limits.PASSAGES_MAX
    pieces = list(_pieces(text[:reach] if len(text) > 2 * reach else text, begin))
    if len(text) > 2 * reach:
        pieces += _pieces(text[-reach:], begin + len(text) - reach)
    grouped = list(_grouped(whole, pieces))
    if len(grouped) > limits.PASSAGES_MAX:  # keep the beginning and the end
        grouped = grouped[: limits.PASSAGES_MAX - _LAST] + grouped[-_LAST:]
    return [
        EmbeddedPart(speaker + text, pieces, tuple(at + len(speaker) for at in offsets))
        for text, pieces, offsets in grouped
    ]


def speaker_prefix(message: Message) -> str:
    """What comes before the text of a message when it is embedded."""
    return f"{message.name}: " if message.name else ""


def _pieces(text: str, offset: int) -> Iterator[TextSpan]:
    """The sentences of a text, as places; one that is too long in pieces."""
    ends = [*((match.start(), match.end()) for match in _END.finditer(text)), (len(text),) * 2]
    start = 0
    for end, after in ends:
        for at in range(start, end, limits.PASSAGE_CHARS):
            yield TextSpan(offset + at, offset + min(at + limits.PASSAGE_CHARS, end))
        start = after


def _grouped(text: str, pieces: Iterable[TextSpan]) -> Iterator[EmbeddedPart]:
    """The pieces joined into parts of about the same length."""
    joined, held, offsets = "", list[TextSpan](), list[int]()
    for piece in pieces:
        added = text[piece.start : piece.end]
        if joined and len(joined) + len(added) >= limits.PASSAGE_CHARS:
            yield EmbeddedPart(joined, tuple(held), tuple(offsets))
            joined, held, offsets = added, [piece], [0]
            continue
        whole = f"{joined} {added}"
        dropped = len(whole) - len(whole.lstrip())
        offsets = [*(at - dropped for at in offsets), len(joined) + 1 - dropped]
        joined, held = whole.strip(), [*held, piece]
    if joined:
        yield EmbeddedPart(joined, tuple(held), tuple(offsets))


def model_key(embedder: Embedder, dimension: int) -> str:
    """The key under which an embedder's vectors are stored: those of one key can be compared."""
    codes = f"+{embedder.codes}" if isinstance(embedder, TokenEmbedder) else ""
    return f"{embedder.name}/{dimension}{codes}"


def is_key_of(model: str, name: str) -> bool:
    """Whether it is the key of an embedder's vectors, of whatever dimension."""
    return model.rpartition("/")[0] == name
