"""Finds names in text by their spelling and the words around them."""

# ruff: noqa: RUF001 - other scripts and their marks are meant

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, Literal

from firnline.language import prose
from firnline.language.lexicon import (
    AFTER_NAMES,
    COMMON,
    COMMON_ENDINGS,
    GERMAN_MARKERS,
    GIVEN_NAMES,
    PLACE_NAMES,
)
from firnline.language.numbers import Mention
from firnline.log import tokens
from firnline.log.regex import regex

PIECE: Final = regex(r"[^\W_]+")
"""A run of letters and digits."""
_TOKEN: Final = regex(r"(?<![\w])[^\W\d_](?:\w|['’&-](?=\w)|\.(?=[a-z]))*")
_BEFORE_CHARS: Final = 12
_INITIAL_BEFORE: Final = regex(r"(?:^|[:;“”\"'(\[{•*>#|/=]|\s[-–—])\s{0,12}[\"'“‘(\[*_]{0,12}\Z")
_LABELLED: Final = regex(r"\w: \Z")
_ALONE: Final = ("", ".", ",", ";", "\n", ")")
_SHOUT: Final = 0.6
_GERMAN_SHARE: Final = 0.12


def names(text: str) -> Iterator[Mention]:
    """The names of a text, in order; a name that is only a sentence's first word is not sure."""
    german = _is_german(text)
    for start, end in prose.spans(text):
        words = list(_TOKEN.finditer(text, start, end))
        shouting = len(words) > 2 and _is_shouted(text[start:end])  # noqa: PLR2004
        run: list[re.Match[str]] = []
        for token in words:
            initial = _is_initial(text, start, token.start())
            kind = None if shouting else _kind(_without_possessive(token[0]), initial=initial)
            glued = bool(run) and text[run[-1].end() : token.start()] == " "
            if run and (kind != "sure" or not glued or _is_possessive(run[-1][0])):
                yield from _run_name(text, run, german=german)
                run = []
            if kind != "sure" and initial and not german and _starts_full_name(text, token, kind):
                kind = "sure"
            if kind == "sure" or _may_lead(token[0], initial=initial or shouting):
                run.append(token)
            elif kind == "maybe" and not german and _is_followed_like_name(text, token):
                yield _mention(token.start(), _without_possessive(token[0]), sure=False)
        if run:
            yield from _run_name(text, run, german=german)


def _is_shouted(text: str) -> bool:
    """Whether most of its letters are capitals."""
    letters = list(filter(str.isalpha, text))
    return sum(map(str.isupper, letters)) > _SHOUT * len(letters)


def _starts_full_name(text: str, token: re.Match[str], kind: str | None) -> bool:
    """Whether a sentence's first word starts a full name: the "Maria" of "Maria Lopez"."""
    after = _TOKEN.match(text, token.end() + 1)
    if after is None or text[token.end()] != " ":
        return False
    first, second = token[0], _without_possessive(after[0])
    if not (first.istitle() and second.istitle()):
        return False
    if first.casefold() in GIVEN_NAMES:
        return _kind(second, initial=False) is not None
    known = f"{first} {second}".casefold() in PLACE_NAMES
    return known or (kind == "maybe" and not is_everyday_word(first))


def _may_lead(word: str, *, initial: bool) -> bool:
    """Whether an everyday word may start a name: the "New" of "New York"."""
    return not initial and len(word) > 1 and word[0].isupper() and word[1:].islower()


def _is_followed_like_name(text: str, token: re.Match[str]) -> bool:
    """Whether the words after a sentence's first word show that it is a person's name."""
    if _is_possessive(token[0]):
        return True
    after = _TOKEN.search(text, token.end(), token.end() + 30)
    alone = text[token.end() : token.end() + 1] in _ALONE and not token[0].endswith("ed")
    if alone and _LABELLED.search(text[max(0, token.start() - 3) : token.start()]):
        return True  # "Owner: Ana." A single word after a label is usually a name.
    gap = text[token.end() : after.start()] if after else ""
    if after is None or gap not in {" ", ", "}:
        return False
    word = after[0]
    if word in {"and", "or", "und", "y", "et"} or gap == ", ":
        other = _TOKEN.search(text, after.end(), after.end() + 30) if gap == " " else after
        return other is not None and _kind(_without_possessive(other[0]), initial=False) is not None
    acting = word in AFTER_NAMES or (word.islower() and word.endswith("ed"))
    verb = acting and text[after.end() : after.end() + 1] != ":"
    return verb or _kind(_without_possessive(word), initial=False) is not None


def _run_name(text: str, run: list[re.Match[str]], *, german: bool) -> Iterator[Mention]:
    value = _without_possessive(text[run[0].start() : run[-1].end()])
    if all(_kind(_without_possessive(token[0]), initial=False) is None for token in run):
        return
    strong = len(run) > 1 or not value[1:].islower()
    if strong or not german:
        yield _mention(run[0].start(), value)


def _mention(start: int, value: str, *, sure: bool = True) -> Mention:
    return Mention(start, start + len(value), (fold_name(value),), sure)


def _is_german(text: str) -> bool:
    words = PIECE.findall(text)
    return sum(word.casefold() in GERMAN_MARKERS for word in words) > _GERMAN_SHARE * max(
        len(words), 1
    )


def _is_initial(text: str, start: int, at: int) -> bool:
    if at >= start + 2 and text[at - 1] == " " and text[at - 2].isalnum():
        return False  # as are most words
    before = text[start:at]
    return not PIECE.search(before) or bool(_INITIAL_BEFORE.search(before[-_BEFORE_CHARS:]))


def _is_possessive(word: str) -> bool:
    return word.endswith(("'s", "’s"))


def _without_possessive(word: str) -> str:
    return word[:-2] if _is_possessive(word) else word


@lru_cache(4_096)
def _kind(word: str, *, initial: bool) -> Literal["sure", "maybe"] | None:
    """Whether the word is a name where it stands."""
    head = re.split(r"['’-]", word, maxsplit=1)[0].casefold()
    if word.casefold() in COMMON or (head in COMMON and not any(map(str.isdigit, word))):
        return None
    if any(map(str.isdigit, word)):
        return "sure"
    first, rest = word[0], word[1:]
    if any(map(str.isupper, rest)) and not rest.casefold().endswith("'t"):
        return "sure"
    if not first.isupper() or len(word) == 1:
        return None
    if not initial:
        return "sure"
    return None if word.endswith(COMMON_ENDINGS) else "maybe"


def fold_name(text: str) -> str:
    """A name for comparison: no accents, no case, pieces separated by one space."""
    if not text.isascii():
        marked = unicodedata.normalize("NFKD", text)
        text = "".join(char for char in marked if not unicodedata.combining(char))
    return " ".join(PIECE.findall(text.casefold()))


@lru_cache(4_096)
def is_everyday_word(word: str) -> bool:
    """Whether a word is more often written in lower case than capitalized.

    The tokenizer's vocabulary is sorted by frequency: a smaller number means a more frequent word.
    """
    encode = tokens.reference_encoder().encode_ordinary
    small, great = encode(f" {word.lower()}"), encode(f" {word}")
    return len(small) == 1 and (len(great) > 1 or small < great)
