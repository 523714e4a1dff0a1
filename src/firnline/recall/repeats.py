"""Messages that say again, word for word or nearly, what a better hit says already. Pure.

A message repeats another if the same speaker said it, and the words of the one, in order, are all
in the other, which has few more. No word is exchanged for another, and none of the additional words
may change what is said: no number, date, name, negation or condition. If the message that would be
left out is the longer one, it may add nothing but fillers. In case of doubt both are kept.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import date
from functools import lru_cache
from typing import Final, NamedTuple

from firnline.language import lexicon
from firnline.language.date_words import MONTHS, WEEKDAYS
from firnline.language.terms import index_terms
from firnline.log.hit import Hit
from firnline.log.message import Message
from firnline.log.regex import regex
from firnline.recall.features import read_features
from firnline.recall.limits import REPEAT_CHARS_MAX, REPEATS_COMPARED

_WORDS_MIN: Final = 3  # "Yes!" is the answer to many questions
_NEW_SHARE: Final = 0.25  # of the words of the shorter text; fillers do not count
_WORD: Final = regex(r"[^\W\d_][\w']*")
_CHANGES: Final = lexicon.QUALIFIERS.union(
    MONTHS, WEEKDAYS, lexicon.SMALL_NUMBERS, lexicon.FOREIGN_NUMBERS, lexicon.TENS
)


class _Statement(NamedTuple):
    """What is compared of a message: speaker, words, and, if it mentions a time, its day."""

    speaker: str
    words: tuple[str, ...]
    day: date | None


def without_repeats(hits: Iterable[Hit]) -> list[Hit]:
    """The hits, best first, without those that repeat a better one of their conversation."""
    kept: list[Hit] = []
    exact: set[tuple[str, _Statement]] = set()
    compared: defaultdict[tuple[str, str, date | None], list[tuple[_Statement, Message]]]
    compared = defaultdict(list)
    for number, hit in enumerate(hits):
        statement = _statement(hit.message) if number < 4 * REPEATS_COMPARED else None
        if statement is not None:
            if (hit.conversation, statement) in exact:
                continue
            if number < REPEATS_COMPARED:
                alike = compared[hit.conversation, statement.speaker, statement.day]
                mine = statement, hit.message
                if any(_repeats(mine, better) for better in alike):
                    continue
                alike.append(mine)
            exact.add((hit.conversation, statement))
        kept.append(hit)
    return kept


def _statement(message: Message) -> _Statement | None:
    """None for a short message, and for one that is more than text: it repeats nothing."""
    if not isinstance(message.content, str) or message.tool_calls:
        return None
    speaker = f"{message.role} {message.name or ''}"
    if len(message.text) > REPEAT_CHARS_MAX:
        return _Statement(speaker, (message.text,), None)
    words = tuple(index_terms(message.text))
    if len(words) < _WORDS_MIN:
        return None
    timely = message.created_at is not None and read_features(message.text).timely
    day = message.created_at.date() if timely and message.created_at else None
    return _Statement(speaker, words, day)


def _repeats(one: tuple[_Statement, Message], better: tuple[_Statement, Message]) -> bool:
    """Whether a message nearly repeats a better one."""
    (mine, _), (its, other) = one, better
    if len(mine.words) > len(its.words):
        return _new_words(its.words, mine.words) == []
    new = _new_words(mine.words, its.words)
    if new is None:
        return False
    names = _capitalized(other.text)
    return not any(word in _CHANGES or word in names or not word.isalpha() for word in new)


def _new_words(short: Sequence[str], long: Sequence[str]) -> list[str] | None:
    """The few words besides fillers that only `long` has; None if it lacks words, or has many."""
    new, at = list[str](), 0
    for word in long:
        if at < len(short) and word == short[at]:
            at += 1
        elif word not in lexicon.FILLERS:
            new.append(word)
            if len(new) > _NEW_SHARE * len(short):
                return None
    return new if at == len(short) else None


@lru_cache(maxsize=256)
def _capitalized(text: str) -> frozenset[str]:
    """The words that are written with a capital letter: names, above all."""
    names = (word for word in _WORD.findall(text) if not word[0].islower())
    return frozenset(index_terms(" ".join(names)))
