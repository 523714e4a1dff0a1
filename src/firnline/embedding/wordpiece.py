"""BERT's uncased WordPiece: text to the numbers that MiniLM was trained on. Pure.

The same pieces as the reference tokenizer, except that ``[SEP]`` and the like in a text are plain
text. The vocabulary is part of the package and is checked against the published SHA-256. So are the
classes of characters: those of the reference are from Unicode 8 and must not change with Python's
tables, or the same text would get a different vector.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from importlib import resources
from typing import Final, NamedTuple

from firnline.errors import ModelRefused
from firnline.log import limits
from firnline.log.regex import regex
from firnline.log.text import normalize

VOCABULARY_SHA256: Final = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
WORD_CHARS_MAX: Final = 100
"""Characters of a word; a longer one is unknown."""

UNKNOWN: Final = 100
START: Final = 101
END: Final = 102

_WORD: Final = regex(r"[^ \t\n\r\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
_ASCII_RUNS: Final = regex(r"[a-z0-9]+|[^a-z0-9]")


class WordPieceToken(NamedTuple):
    """A piece's number, and the start and end of its word in the text."""

    id: int
    start: int
    end: int


class WordPiece:
    """Splits text into the pieces of a vocabulary; never fails.

    `classes` are sets of characters in regular expression syntax: ``silent`` ones (controls,
    accents) are dropped, and ``alone`` ones are words by themselves (punctuation, Han).
    """

    def __init__(self, vocabulary: Mapping[str, int], classes: Mapping[str, str]) -> None:
        self._vocabulary = vocabulary
        self._silent = re.compile(f"[{classes['silent']}]+")
        self._runs = re.compile(f"[{classes['alone']}]|[^{classes['alone']}]+")
        self._remembered = lru_cache(maxsize=limits.WORDS_REMEMBERED)(self._cut)

    def pieces(self, text: str) -> Iterator[WordPieceToken]:
        """The pieces of a text in order, without the marks of its start and end."""
        for match in _WORD.finditer(text):
            word = match.group()
            cut = self._remembered if len(word) <= WORD_CHARS_MAX else self._cut
            for number in cut(word):
                yield WordPieceToken(number, match.start(), match.end())

    def _cut(self, word: str) -> tuple[int, ...]:
        return tuple(number for run in self._plain(word) for number in self._longest(run))

    def _plain(self, word: str) -> list[str]:
        """A word without accents, in lower case, split at punctuation."""
        if word.isascii() and word.isprintable():
            return _ASCII_RUNS.findall(word.lower())
        drop = self._silent.sub
        bare = drop("", normalize("NFD", drop("", word)))
        # One character at a time: at the end of a word, Python lowers a sigma differently.
        return self._runs.findall("".join(map(str.lower, bare)))

    def _longest(self, word: str) -> list[int]:
        """The longest piece that the word starts with, and so on; unknown if any part is."""
        if len(word) > WORD_CHARS_MAX:
            return [UNKNOWN]
        numbers: list[int] = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            for end in range(len(word), start, -1):
                number = self._vocabulary.get(prefix + word[start:end])
                if number is not None:
                    break
            else:
                return [UNKNOWN]
            numbers.append(number)
            start = end
        return numbers


@cache
def wordpiece() -> WordPiece:
    """The tokenizer of MiniLM; takes about 20 ms, once."""
    folder = resources.files("firnline.embedding")
    plain = gzip.decompress(folder.joinpath("vocabulary.txt.gz").read_bytes())
    if hashlib.sha256(plain).hexdigest() != VOCABULARY_SHA256:
        text = "MiniLM's vocabulary has a wrong checksum; reinstall firnline"
        raise ModelRefused(text, code="checksum")
    words = plain.decode().split("\n")[:-1]
    classes = _classes(folder.joinpath("characters.txt").read_text(encoding="ascii"))
    return WordPiece({word: number for number, word in enumerate(words)}, classes)


def _classes(text: str) -> dict[str, str]:
    """Sets of characters from lines: a name, then indented code points and ranges."""
    classes: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith(" "):
            classes[name] += re.sub(r"\w+", lambda code: rf"\U{code[0]:0>8}", line).replace(" ", "")
        else:
            name = line
            classes[name] = ""
    return classes
