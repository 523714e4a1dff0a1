"""Stems of words. Every search index holds them: if a stem changes, indexes must be rebuilt."""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import Final

import apsw

from firnline.log.regex import regex

_CHARS_MAX: Final = 40
_PORTER: Final = apsw.Connection(":memory:").fts5_tokenizer("porter", ["unicode61"])
_ONE_AT_A_TIME: Final = threading.Lock()  # a connection is for one thread at a time
_ENGLISH: Final = regex("[a-z]+")


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """A folded word without its English ending; other words are returned unchanged."""
    if len(word) > _CHARS_MAX or not _ENGLISH.fullmatch(word):
        return word
    with _ONE_AT_A_TIME:
        found = _PORTER(word.encode(), apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False)
        return str(next(iter(found))[0])
