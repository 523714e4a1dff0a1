"""Text to search terms: the same analysis for every store, for the index and for queries.

Words are folded (NFKC, case, accents) and stemmed. Names of code, paths, addresses and numbers with
letters are indexed whole and by part. Scripts written without spaces are indexed character by
character and by pairs of neighbors, and searched by pairs, so that two characters are enough. Long
words are also indexed by all their runs of five letters, and by the four at their start and end, so
that words are found in longer ones; hashes by their start. A store indexes `index_entry` and looks
up `wanted_words`, as they are: no store stems or splits anything itself, so all of them find the
same entries.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Container, Iterable, Iterator, KeysView, Sequence
from datetime import date
from functools import lru_cache
from itertools import chain, pairwise
from typing import Final, NamedTuple

from firnline.language.stems import ALL_LANGUAGES, languages_of, stems
from firnline.language.stop_words import CORE
from firnline.log import limits
from firnline.log.message import Message, decode
from firnline.log.regex import regex
from firnline.log.text import normalize, slices

# Kana, Han, Hangul, Thai, Lao, Khmer, Burmese (no spaces between words, or attached endings), and
# emoji.
_RUN: Final = (
    "\u2600-\u27bf\U0001f000-\U0001faff\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
_TERM: Final = regex(f"[{_RUN}]+|(?:(?![{_RUN}])\\w)+")
_WORD: Final = regex(r"\w+")
_RUN_START: Final = regex(f"[{_RUN}]")
_HUMP: Final = regex(r"[a-z](?=[A-Z])|[A-Z](?=[A-Z][a-z])|[^\W\d_](?=\d)|\d(?=[^\W\d_])")
_PIECE: Final = regex(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+")
_CODE_CHARS: Final = 5
"""Shorter words with digits, such as 10am, are no codes."""
_JOINT: Final = regex(r"[-./@:\\#+~=&?%$]")
_COMPOUND: Final = regex(r"(?<!\w)\w++(?:[-./@:\\#+~=&?%$]++\w++)++")
_SLASHES: Final = regex(r"[/\\?&=:#@]+")
_COMPOUND_CHARS: Final = 100
_WORD_CHARS: Final = 40
PART_CHARS: Final = 5
"""The letters of the shortest word that is found anywhere in longer ones."""
_EDGE_CHARS: Final = 4
"""The letters of the shortest word that is found at their start and end."""
_STEM_CHARS: Final = 6
_ENDING_CHARS: Final = 2
"""A word is found in longer ones without so long an ending, if enough of it is left."""
_HASH: Final = regex(r"(?=[a-f]{0,127}\d)[\da-f]{16,128}")
_HASH_START: Final = regex(r"(?=[a-f]{0,127}\d)[\da-f]{7,128}")
_HASH_CHARS: Final = 7  # as git shortens them
_LONG_CHARS: Final = 7
_PART: Final = "~"
_FACT: Final = "@"


def fold(text: str) -> str:
    """Text without the differences that a search ignores."""
    if text.isascii():
        return text.lower()
    return "".join(map(_fold, slices(text)))


def _fold(text: str) -> str:
    folded = normalize("NFKD", normalize("NFKC", text).casefold())
    marks = {c for c in set(folded) if unicodedata.category(c) == "Mn"}  # one lookup per character
    kept = "".join(c for c in folded if c not in marks) if marks else folded
    return normalize("NFC", kept)


def searchable_text(message: Message) -> str:
    """The searchable text of a message: its text and its tool calls."""
    calls = (f"{call.name} {call.arguments}" for call in message.tool_calls)
    return " ".join((message.text, *calls))


def index_terms(text: str) -> list[str]:
    """The words of a text and its unspaced characters, folded, in order."""
    return [term for part in slices(fold(text)) for term in _terms(part)]


def _terms(folded: str) -> Iterable[str]:
    if not _RUN_START.search(folded):
        return _WORD.findall(folded)  # the same, and much faster
    terms = _TERM.findall(folded)
    return chain.from_iterable(term if _RUN_START.match(term) else (term,) for term in terms)


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
        if not first.isascii() and is_unspaced(first) and is_unspaced(second):
            yield first + second


def identifier_parts(text: str) -> list[str]:
    """The parts of names that are written together, folded: ``getUserName``, ``TS2322``."""
    found: dict[str, None] = {}
    with_humps = filter(_HUMP.search, slices(text))
    for word in chain.from_iterable(map(_WORD.findall, with_humps)):
        if not _HUMP.search(word):
            continue
        pieces = _PIECE.findall(word)
        code = not word.isdigit() and any(map(str.isdigit, word))
        if len(pieces) > 1 and (not code or len(word) >= _CODE_CHARS):
            both = chain(pieces, _joined(pieces))
            found.update((fold(piece), None) for piece in both if len(piece) > 1)
    return list(found)


def _joined(pieces: Sequence[str]) -> Iterator[str]:
    """Pieces that mean little apart: a single letter and a word, a word and a number."""
    before = ""
    for piece in pieces:
        if before and (len(before) == 1 or piece.isdigit()):
            before += piece
            yield before
        else:
            before = piece


def compounds(folded: str) -> list[str]:
    """Paths, addresses, codes and the like as a whole, and the names and hosts within them."""
    found: dict[str, None] = {}
    for match in chain.from_iterable(map(_COMPOUND.finditer, slices(folded))):
        for item in (match[0], *_SLASHES.split(match[0])):
            if len(item) <= _COMPOUND_CHARS and _JOINT.search(item) and not is_unspaced(item):
                found[item] = None
    return list(found)


def text_terms(text: str) -> list[str]:
    """The terms by which a text is found, each once, in order."""
    return list(_analyze(text)[0])


def _analyze(text: str) -> tuple[dict[str, None], Sequence[str]]:
    """The terms of a text, and its words."""
    terms = index_terms(text)
    words = [*spellings(terms), *identifier_parts(text)]
    languages, accented = languages_of(terms), _accented(text)
    found: dict[str, None] = {}
    for word in words:
        for item in _stems(word, accented.get(word), languages):
            found[item] = None
    found.update(dict.fromkeys(compounds(fold(text))))
    return found, words


def _stems(word: str, accented: str | None, languages: tuple[str, ...]) -> tuple[str, ...]:
    """The stems of a folded word; endings may need the accents that folding takes off."""
    if accented is None:
        return stems(word, languages)
    return *stems(word, languages), *map(fold, stems(accented, languages))


def _accented(text: str) -> dict[str, str]:
    """The words of a text with their accents, by what they are without."""
    if text.isascii():
        return {}
    plain = (normalize("NFKC", part).casefold() for part in slices(text))
    words = frozenset(chain.from_iterable(map(_WORD.findall, plain)))
    pairs = ((fold(word), word) for word in words if not word.isascii())
    return {plain: word for plain, word in pairs if plain != word}


def _part_terms(words: Iterable[str]) -> dict[str, None]:
    """Terms for the runs of letters in long words."""
    return dict.fromkeys(chain.from_iterable(map(_parts, dict.fromkeys(words))))


@lru_cache(maxsize=65_536)
def _parts(word: str) -> tuple[str, ...]:
    if _HASH.fullmatch(word):
        return (_PART + word[:_HASH_CHARS],)
    if not _LONG_CHARS <= len(word) <= _WORD_CHARS or not word.isalpha():
        return ()
    return (*_runs(word), _PART + word[:_EDGE_CHARS], _PART + word[-_EDGE_CHARS:])


def _wanted_parts(word: str, stems: Sequence[str]) -> tuple[str, ...]:
    """The terms of longer words that have a word as a part; empty if it is too short for that."""
    if _HASH_START.fullmatch(word):
        return (_PART + word[:_HASH_CHARS],)
    if not _EDGE_CHARS <= len(word) <= _WORD_CHARS or not word.isalpha():
        return ()
    if len(word) == _EDGE_CHARS:
        return () if word in CORE else (_PART + word,)
    least = max(_STEM_CHARS, len(word) - _ENDING_CHARS)
    short = [stem for stem in stems if len(stem) >= least and word.startswith(stem)]
    return _runs(min(short, key=len, default=word))


def _runs(word: str) -> tuple[str, ...]:
    last = len(word) - PART_CHARS + 1
    return tuple(_PART + word[at : at + PART_CHARS] for at in range(last))


class EntryTerms(NamedTuple):
    """The terms by which an entry is found, each once, with marks that tell their kinds apart."""

    own: KeysView[str]
    """Of its text and its tool calls, in order."""
    facts: KeysView[str]
    """Of the speaker and the date: role, name, weekday, day, month and year."""
    parts: KeysView[str]
    """Of parts of its long words."""

    @property
    def every(self) -> list[str]:
        """All of them."""
        return [*self.own, *self.facts, *self.parts]

    @property
    def size(self) -> int:
        """Their number."""
        return len(self.own) + len(self.facts) + len(self.parts)

    def have(self, word: WantedWord) -> bool:
        """Whether the entry has a wanted word at all, be it in a longer one."""
        whole = {*word.terms, *word.facts}
        in_longer = bool(word.parts) and self.parts >= set(word.parts)
        return in_longer or not whole.isdisjoint(self.own | self.facts)


def index_entry(message: Message) -> EntryTerms:
    """The terms of a message."""
    at, name = message.created_at, message.name
    names = text_terms(name) if name else []
    facts = [role_term(message.role), *map(_fact, names), *(_day_terms(at.date()) if at else ())]
    own, words = _analyze(searchable_text(message))
    return EntryTerms(own.keys(), dict.fromkeys(facts).keys(), _part_terms(words).keys())


@lru_cache(maxsize=1_024)
def _day_terms(day: date) -> tuple[str, ...]:
    """A day's terms; cached, because neighboring messages share their day."""
    return tuple(map(_fact, text_terms(f"{day:%A} {day.day} {day:%B %Y}")))


def _fact(term: str) -> str:
    return _FACT + term


def role_term(role: str) -> str:
    """The search term for the entries of a role."""
    return _fact(f"role{role}")


def is_part(term: str) -> bool:
    """Whether it is a term for a part of a long word."""
    return term.startswith(_PART)


class WantedWord(NamedTuple):
    """A word that a query looks for."""

    terms: tuple[str, ...]
    """Its stems. An entry with any of them has the word."""
    parts: tuple[str, ...]
    """An entry with all of them has the word in a longer one; empty if it is too short for that."""

    @property
    def facts(self) -> tuple[str, ...]:
        """Terms of speakers and dates with this word."""
        return tuple(map(_fact, self.terms))


def wanted_words(query: str) -> list[WantedWord]:
    """The words that a query looks for, each once: any of them may match.

    A name like ``find_order`` is looked for as a whole and by its words.
    """
    accented = _accented(query)
    words = [part for term in query_terms(query) for part in spellings(["".join(term)])]
    found: dict[str, WantedWord] = {}
    for word in (*words, *name_parts(query)):
        terms = tuple(dict.fromkeys(_stems(word, accented.get(word), ALL_LANGUAGES)))
        found.setdefault(terms[0], WantedWord(terms, _wanted_parts(word, terms)))
    for whole in compounds(fold(query)):
        found.setdefault(whole, WantedWord((whole,), ()))
    return list(found.values())[: limits.QUERY_TERMS_MAX]


def name_parts(text: str) -> list[str]:
    """The words in names like ``getUserName``; a code with digits is looked for as a whole."""
    parts = identifier_parts(" ".join(filter(str.isalpha, _WORD.findall(text))))
    return [part for part in parts if part not in CORE]


class AnalyzedMessages(dict[bytes, tuple[Message, EntryTerms]]):
    """Messages by their bodies, with their terms; a cache filled on demand.

    The analysis takes longer than the search, and a body never changes.
    """

    def __missing__(self, body: bytes) -> tuple[Message, EntryTerms]:
        message = decode(body)
        self[body] = message, index_entry(message)
        return self[body]


def without_words(query: str, words: Container[str]) -> str:
    """A query without these words, folded; what is written together stays together."""
    kept = (some for some in query.split() if any(w not in words for w in index_terms(some)))
    return " ".join(kept)


def query_terms(query: str) -> list[tuple[str, ...]]:
    """The terms of a query: single words, and pairs of neighbors of unspaced scripts."""
    wanted: dict[tuple[str, ...], None] = {}
    for term in _TERM.findall(fold(query)):
        if not _RUN_START.match(term) or len(term) == 1:
            wanted[(term,)] = None
        else:
            wanted.update(dict.fromkeys(pairwise(term)))
    return list(wanted)[: limits.QUERY_TERMS_MAX]
