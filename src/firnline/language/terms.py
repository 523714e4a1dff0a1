"""Text to search terms: the same analysis for every store, for the index and for queries.

Words are folded (NFKC, case, accents) and stemmed. Scripts written without spaces are indexed
character by character and by pairs of neighbors, and searched by pairs, so that two characters are
enough. A store indexes `entry_terms` and `fact_terms` and looks up `search_terms`, each as it is:
no store stems or splits anything itself, so all of them find the same entries.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from datetime import date
from functools import lru_cache
from itertools import islice, pairwise
from typing import Final, TypeAlias

from firnline.language.stems import stem
from firnline.log import limits
from firnline.log.message import Message, decode
from firnline.log.regex import regex

# Kana, Han, Hangul, Thai, Lao, Khmer, Burmese (no spaces between words, or attached endings), and
# emoji.
_RUN: Final = (
    "\u2600-\u27bf\U0001f000-\U0001faff\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
_TERM: Final = regex(f"[{_RUN}]+|(?:(?![{_RUN}])\\w)+")
_WORD: Final = regex(r"\w+")
_RUN_START: Final = regex(f"[{_RUN}]")


def fold(text: str) -> str:
    """Text without the differences that a search ignores."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    marks = {c for c in set(folded) if unicodedata.category(c) == "Mn"}  # one lookup per character
    kept = "".join(c for c in folded if c not in marks) if marks else folded
    return unicodedata.normalize("NFC", kept)


def searchable_text(message: Message) -> str:
    """The searchable text of a message: its text and its tool calls."""
    calls = (f"{call.name} {call.arguments}" for call in message.tool_calls)
    return " ".join((message.text, *calls))


def index_terms(text: str) -> list[str]:
    """The words of a text and its unspaced characters, folded, in order."""
    folded = fold(text)
    if not _RUN_START.search(folded):
        return _WORD.findall(folded)  # the same, and much faster
    terms: list[str] = []
    for term in _TERM.findall(folded):
        if _RUN_START.match(term):
            terms.extend(term)
        else:
            terms.append(term)
    return terms


def is_unspaced(term: str) -> bool:
    """Whether it is a character of a script without spaces between words."""
    return _RUN_START.match(term) is not None


def spellings(terms: Sequence[str]) -> Iterator[str]:
    """The terms, the words in names like ``find_order``, and pairs of unspaced characters."""
    for term in terms:
        yield term
        if "_" in term:
            yield from filter(None, term.split("_"))
    for first, second in pairwise(terms):
        if is_unspaced(first) and is_unspaced(second):
            yield first + second


def text_terms(text: str) -> list[str]:
    """The terms by which a text is found, in order."""
    return [stem(term) for term in spellings(index_terms(text))]


def entry_terms(message: Message) -> list[str]:
    """The terms by which a message is found, in order."""
    return text_terms(searchable_text(message))


def fact_terms(message: Message) -> list[str]:
    """Terms for the speaker and the date: role, name, weekday, day, month and year."""
    at = message.created_at
    name = text_terms(message.name) if message.name else []
    return [role_term(message.role), *name, *(_day_terms(at.date()) if at else ())]


@lru_cache(maxsize=1_024)
def _day_terms(day: date) -> tuple[str, ...]:
    """A day's terms; cached, because neighboring messages share their day."""
    return tuple(text_terms(f"{day:%A} {day.day} {day:%B %Y}"))


def role_term(role: str) -> str:
    """The search term for the entries of a role."""
    return stem(f"role{role}")


def search_terms(query: str) -> list[str]:
    """The terms that a query looks for, each once: any of them may match.

    A name like ``find_order`` is looked for as a whole and by its words.
    """
    said = ("".join(term) for term in query_terms(query))
    terms = dict.fromkeys(stem(part) for term in said for part in spellings([term]))
    return list(islice(terms, limits.QUERY_TERMS_MAX))


Terms: TypeAlias = frozenset[str]
"""Terms of a message, or of a query."""


class AnalyzedMessages(dict[bytes, tuple[Message, Terms, Terms]]):
    """Messages by their bodies, with their terms and fact terms; a cache filled on demand.

    The analysis takes longer than the search, and a body never changes.
    """

    def __missing__(self, body: bytes) -> tuple[Message, Terms, Terms]:
        message = decode(body)
        self[body] = message, frozenset(entry_terms(message)), frozenset(fact_terms(message))
        return self[body]


def match_score(wanted: Terms, terms: Terms, facts: Terms, before: Terms) -> float:
    """How many of the wanted terms a message has.

    `terms` and `facts` are its own, `before` are the terms of the message before it. Facts and
    `before` count little, and `before` alone does not count at all. A backend's index may weigh
    terms differently.
    """
    matching = len(wanted & terms)
    near = 0.2 * len(wanted & before) if matching else 0.0
    return matching + near + 0.1 * len(wanted & facts)


def query_terms(query: str) -> list[tuple[str, ...]]:
    """The terms of a query: single words, and pairs of neighbors of unspaced scripts."""
    wanted: dict[tuple[str, ...], None] = {}
    for term in _TERM.findall(fold(query)):
        if not _RUN_START.match(term) or len(term) == 1:
            wanted[(term,)] = None
        else:
            wanted.update(dict.fromkeys(pairwise(term)))
    return list(wanted)[: limits.QUERY_TERMS_MAX]
