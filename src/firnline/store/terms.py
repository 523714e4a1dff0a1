"""Text to search terms: one analysis for every backend, for what is indexed and what is asked.

Words are folded (NFKC, case, accents). Scripts written without blanks between words are taken
character by character, and asked for as pairs of neighbours, so that two characters are enough.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise
from typing import Final

from firnline import limits
from firnline.message import Message

# Kana, Han, Hangul, Thai, Lao, Khmer, Burmese: no blanks between words, or endings glued on; and
# pictures.
_RUN: Final = (
    "\u2600-\u27bf\U0001f000-\U0001faff\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
_TERM: Final = re.compile(f"[{_RUN}]+|(?:(?![{_RUN}])\\w)+")
_RUN_START: Final = re.compile(f"[{_RUN}]")


def fold(text: str) -> str:
    """Text with differences removed that a reader would not search by."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    kept = "".join(c for c in folded if unicodedata.category(c) != "Mn")
    return unicodedata.normalize("NFC", kept)


def searchable(message: Message) -> str:
    """The words by which a message can be found."""
    calls = (f"{call.name} {call.arguments}" for call in message.tool_calls)
    return " ".join((message.name or "", message.text, *calls))


def index_terms(text: str) -> list[str]:
    """The terms a text is indexed under, in order."""
    terms: list[str] = []
    for term in _TERM.findall(fold(text)):
        if _RUN_START.match(term):
            terms.extend(term)
        else:
            terms.append(term)
    return terms


def all_terms(message: Message) -> set[tuple[str, ...]]:
    """Whatever `query_terms` could ask for that is in the message."""
    terms = index_terms(searchable(message))
    return {(term,) for term in terms} | set(pairwise(terms))


def query_terms(query: str) -> list[tuple[str, ...]]:
    """What a query asks for: words, each alone, and pairs of neighbours of unspaced scripts."""
    asked: dict[tuple[str, ...], None] = {}
    for term in _TERM.findall(fold(query)):
        if not _RUN_START.match(term) or len(term) == 1:
            asked[(term,)] = None
        else:
            asked.update(dict.fromkeys(pairwise(term)))
    return list(asked)[: limits.QUERY_TERMS_MAX]
