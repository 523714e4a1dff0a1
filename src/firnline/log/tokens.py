"""Exact token counts, offline.

The encoder is the reference one (tiktoken); its two vocabularies are part of the package and are
checked against the published SHA-256 when they are loaded, so nothing is ever downloaded.
Counting never fails: special tokens in text are plain text, and text that cannot be counted exactly
in bounded time gets an overestimate that is marked as one.
"""

from __future__ import annotations

import gzip
import hashlib
import threading
from binascii import a2b_base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any, Final, NamedTuple, Self

import tiktoken

from firnline.errors import FirnlineError, InputError
from firnline.log import limits
from firnline.log.attachment import Attachment, Split, find_attachment
from firnline.log.media_rules import USUAL_RULE, MediaRule, find_media_rule
from firnline.log.media_tokens import measure
from firnline.log.media_wire import placeholder_text
from firnline.log.message import Message, Part, encode_json
from firnline.log.model_table import find_model
from firnline.log.regex import regex
from firnline.log.text import Json, clean_json, provider_name, provider_tool_name
from firnline.log.wire import MessageLike, load_openai


class TokenCount(int):
    """A number of tokens and how it was counted.

    `tokenizer` is the encoding's name, followed by ``~`` if this is an overestimate.
    """

    tokenizer: str

    def __new__(cls, tokens: int, tokenizer: str) -> Self:
        """`tokens` as counted by `tokenizer`."""
        count = int.__new__(cls, tokens)
        count.tokenizer = tokenizer
        return count

    @property
    def exact(self) -> bool:
        """Whether the reference encoder returns the same number."""
        return not self.tokenizer.endswith("~")

    @property
    def encoding(self) -> str:
        """The encoding's name."""
        return self.tokenizer.removesuffix("~")


_exact_count = lru_cache(maxsize=4_096)(
    TokenCount
)  # most counts are small, and come again and again


DEFAULT_MODEL: Final = "gpt-4o"
"""The model that is assumed: of the usual encoding, window and cost of images."""

MESSAGE_TOKENS: Final = 3
"""Framing around each message: its start, the end of its role, its end."""
NAME_TOKENS: Final = 1
"""Framing of a message's name."""
REPLY_TOKENS: Final = 3
"""Tokens that prime the answer, once per request."""
CALL_TOKENS: Final = 8
"""Framing of a tool call or result: its id, its type, the text around its name."""
TOOL_TOKENS: Final = 12
"""Framing of a tool's schema; how providers render it is not published."""


@dataclass(frozen=True, slots=True)
class TokenCounter:
    """Counts text, messages and tool schemas for one model. Get one from `counter`."""

    encoding: str
    factor: float
    count_text: Callable[[str], tuple[int, bool]]
    count_role: Callable[[str], tuple[int, bool]]
    media: MediaRule

    @property
    def estimate(self) -> str:
        """How it estimates, such as ``o200k_base x 1.25``; empty if it counts exactly."""
        return "" if self.factor == 1.0 else f"{self.encoding} x {self.factor:g}"

    def is_like(self, other: TokenCounter) -> bool:
        """Whether the other one counts the same."""
        return (self.encoding, self.factor, self.media) == (
            other.encoding,
            other.factor,
            other.media,
        )

    def text(self, text: str) -> TokenCount:
        """The tokens of plain text."""
        return self._make(*self.count_text(text))

    def message(self, message: Message) -> TokenCount:
        """The tokens of a message: role, name, content, tool calls and the framing around them."""
        tokens, exact = self.count_role(message.role)
        tokens += MESSAGE_TOKENS
        if isinstance(message.content, str) and not _has_more(message):  # most of them
            more, sure = self.count_text(message.content)
            return self._make(tokens + more, exact and sure)
        found = _MessageContent(message, self.media)
        for text in found.texts:
            more, sure = self.count_text(text)
            tokens += more
            exact &= sure
        fixed, sure = _framing_tokens(message)
        return self._make(tokens + fixed, exact and sure, found.media_tokens)

    def messages(self, messages: Iterable[Message]) -> TokenCount:
        """The tokens of a whole request: its messages and the priming of the answer."""
        return self.sum(map(self.message, messages), REPLY_TOKENS)

    def tools(self, tools: Iterable[Mapping[str, Any]]) -> TokenCount:
        """The tokens of tool schemas, counted as compact JSON; a high estimate."""
        texts = [encode_json(clean_json(tool, "tool")) for tool in tools]
        return self._make(sum(self.count_text(text)[0] + TOOL_TOKENS for text in texts), not texts)

    def sum(self, counts: Iterable[TokenCount], framing: int = 0) -> TokenCount:
        """The sum of counts; exact if each of them is."""
        total, exact = framing, self.factor == 1.0
        for count in counts:
            total += count
            exact &= count.exact
        return TokenCount(total, self.encoding if exact else f"{self.encoding}~")

    def _make(self, tokens: int, exact: bool, media_tokens: int = 0) -> TokenCount:
        if exact and self.factor == 1.0:
            return _exact_count(tokens, self.encoding)
        # The factor is a margin for text; images and the like have rules of their own.
        tokens = int(tokens * self.factor) + (self.factor > 1.0) + media_tokens
        return TokenCount(tokens, f"{self.encoding}~")


def counter(model: str = DEFAULT_MODEL, *, encoding: str | None = None) -> TokenCounter:
    """The counter for `model`, or for an encoding by name."""
    if encoding is not None:
        return _counter(encoding, 1.0)
    return _model_counter(model)


def count_tokens(
    what: str | MessageLike | Iterable[MessageLike],
    model: str = DEFAULT_MODEL,
    *,
    encoding: str | None = None,
    tools: Sequence[Mapping[str, Any]] = (),
) -> TokenCount:
    """Count text, one message, or a whole request (messages, with their framing, and `tools`).

    Messages are `Message` values or dicts of the OpenAI shape. The result is an int with a property
    `exact`.
    """
    count = counter(model, encoding=encoding)
    if isinstance(what, str):
        counted = count.text(what)
    elif isinstance(what, Message | Mapping) or hasattr(what, "model_dump"):
        counted = count.message(load_openai(what)[0])
    else:
        counted = count.messages(load_openai(what))
    return count.sum((counted, count.tools(tools))) if tools else counted


# -- the cost of a message besides its role ---------------------------------------------------


def _has_more(message: Message) -> object:
    """Whether more than a message's content costs tokens."""
    return message.name or message.tool_calls or message.tool_call_id is not None or message.extra


class _MessageContent:
    """What a message costs besides its role and framing: its texts, and tokens of what is none."""

    def __init__(self, message: Message, rule: MediaRule) -> None:
        self.texts: list[str] = []
        self.media_tokens = 0
        self._rule = rule
        if isinstance(message.content, str):
            self.texts.append(message.content)
        for part in message.content if isinstance(message.content, tuple) else ():
            self._add_part(part)
        if message.name:
            self.texts.append(provider_name(message.name))
        for call in message.tool_calls:
            self.texts += (provider_tool_name(call.name), call.arguments)
        for name, value in message.extra.items():
            if value:
                self._add_json(value, name)

    def _add_part(self, part: Part) -> None:
        note = placeholder_text(part.fields) if part.kind == "file" else ""
        if part.kind == "text" or note:
            self.texts.append(note or part.text)
        elif (found := find_attachment(part.fields)) is not None:
            self._add_attachment(found)
        else:
            self._add_json(part.fields)

    def _add_json(self, value: Json, name: str = "") -> None:
        split = Split(value, name)
        self.texts.append(encode_json(split.rest))
        for found in split.attachments:
            self._add_attachment(found)

    def _add_attachment(self, found: Attachment) -> None:
        measured = measure(found, self._rule)
        self.media_tokens += measured.tokens
        self.texts += measured.texts


def _framing_tokens(message: Message) -> tuple[int, bool]:
    """Tokens that are not text, and whether their number is exact."""
    tokens = NAME_TOKENS if message.name else 0
    calls = len(message.tool_calls) + (message.tool_call_id is not None)
    tokens += CALL_TOKENS * calls
    # How providers frame calls and unknown fields is not published.
    exact = not (calls or any(message.extra.values()))
    if isinstance(message.content, tuple):
        exact &= all(part.kind == "text" for part in message.content)
    return tokens, exact


# -- the encoder ------------------------------------------------------------------------------

_LETTERS: Final = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
)


class _Vocabulary(NamedTuple):
    sha256: str
    pattern: str


_VOCABULARIES: Final[Mapping[str, _Vocabulary]] = {
    "o200k_base": _Vocabulary(
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        _LETTERS + r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
    "cl100k_base": _Vocabulary(
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
        r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    ),
}

_SEAM: Final = regex(r"(?<=[A-Za-z]) (?=[A-Za-z])")
"""A position that no token spans: both encodings have a space only at the start of a piece."""


_loading: Final = threading.Lock()


def reference_encoder(name: str = "o200k_base") -> tiktoken.Encoding:
    """Load an encoder; takes a fifth of a second, once per process."""
    with _loading:
        return _load_encoder(name)


@lru_cache(maxsize=len(_VOCABULARIES))
def _load_encoder(name: str) -> tiktoken.Encoding:
    vocabulary = _VOCABULARIES[name]
    packed = resources.files("firnline.log").joinpath(f"vocabulary/{name}.tiktoken.gz").read_bytes()
    plain = gzip.decompress(packed)
    if hashlib.sha256(plain).hexdigest() != vocabulary.sha256:
        raise FirnlineError(f"the vocabulary {name} is damaged; reinstall firnline")
    words = plain.split()
    ranks = dict(zip(map(a2b_base64, words[::2]), map(int, words[1::2]), strict=True))
    return tiktoken.Encoding(
        name, pat_str=vocabulary.pattern, mergeable_ranks=ranks, special_tokens={}
    )


@lru_cache(maxsize=64)
def _counter(encoding: str, factor: float, media: MediaRule = USUAL_RULE) -> TokenCounter:
    if encoding not in _VOCABULARIES:
        raise InputError(f"encoding: {encoding!r} is not one of {', '.join(_VOCABULARIES)}")
    encode = None

    def count_text(text: str) -> tuple[int, bool]:
        nonlocal encode
        if encode is None:
            encode = reference_encoder(encoding).encode_ordinary
        if len(text) > limits.COUNT_PIECE_CHARS:
            return _count_long(encode, text)
        try:
            return len(encode(text)), True
        except BaseException as error:  # noqa: BLE001 - a panic of the encoder is no Exception
            return _over_estimate(text, error), False

    return TokenCounter(encoding, factor, count_text, lru_cache(maxsize=16)(count_text), media)


@lru_cache(maxsize=256)
def _model_counter(model: str) -> TokenCounter:
    known = find_model(model)
    return _counter(known.encoding, known.factor, find_media_rule(model))


def _over_estimate(text: str, error: BaseException) -> int:
    """The count if the encoder fails: no text has more tokens than bytes."""
    if isinstance(error, KeyboardInterrupt | SystemExit | MemoryError):
        raise error
    return len(text.encode(errors="replace"))


def _count_long(encode: Callable[[str], list[int]], text: str) -> tuple[int, bool]:
    """Count piece by piece, cut where no token spans the cut; exact if there are such cuts."""
    tokens, exact, start = 0, True, 0
    while start < len(text):
        end = start + limits.COUNT_PIECE_CHARS
        if end < len(text):
            seam = _last_seam(text, start, end)
            exact &= seam is not None
            end = seam or end
        try:
            tokens += len(encode(text[start:end]))
        except BaseException as error:  # noqa: BLE001 - a panic of the encoder is no Exception
            tokens += _over_estimate(text[start:end], error)
            exact = False
        start = end
    # Cut elsewhere, a piece can need only a token or two more.
    return (tokens, True) if exact else (tokens + len(text) // limits.COUNT_PIECE_CHARS, False)


def _last_seam(text: str, start: int, end: int) -> int | None:
    """The last seam in the second half of text[start:end]; a small tail is searched first."""
    for tail in (1_024, limits.COUNT_PIECE_CHARS // 2):
        seams = [match.start() for match in _SEAM.finditer(text, max(start + 1, end - tail), end)]
        if seams:
            return seams[-1]
    return None
