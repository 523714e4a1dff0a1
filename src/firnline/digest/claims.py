"""Finds the checkable claims of a text (names, numbers, dates, URLs) and those without a source.

The check is lenient on purpose: a summary may inflect, shorten, spell out and reformat. It must not
introduce a name, a number, a date or an address that no source mentions.
"""

# ruff: noqa: RUF001 - other scripts and their marks are meant

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from firnline.language import numbers, prose
from firnline.language.lexicon import COMMON
from firnline.language.names import PIECE, fold_name, is_everyday_word, names
from firnline.log.regex import regex

ClaimKind: TypeAlias = Literal["name", "number", "date", "url"]

_URL: Final = regex(
    r"(?:https?|ftp)://[^\s<>\"`{}|\\^。，、；：！？（）「」『』《》]{1,2000}|\bwww\.[\w-]{1,63}\.[^\s<>\"`。，、；]{1,2000}",
    re.IGNORECASE,
)
_EMAIL: Final = regex(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+")
_URL_PARTS: Final = regex(r"(?:([a-z]+)://)?([^/?#]*)(.*)", re.IGNORECASE | re.DOTALL)
_CAMEL: Final = regex(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_FAR: Final = regex(rf"(?!(?<=\d)[千万萬亿億])[{prose.CJK}]")
_ABOUT: Final = regex(
    r"\b(?:about|around|roughly|nearly|almost|over|approximately|approx\.?|some|circa|ca\.?|under|"
    r"more than|less than|up to|at least)\s+[$€£¥]?\Z|[~≈]\s?\Z",
    re.IGNORECASE,
)
_ENDINGS: Final = frozenset(
    ("s", "es", "n", "en", "er", "ers", "an", "ian", "ians", "ish", "ese", "i", "in", "a", "e", "x")
)
_NEAR: Final = 0.06


@dataclass(frozen=True, slots=True)
class TextClaim:
    """One claim of a text: as written, and the plain form for comparison.

    `start` is its position in the text. Not `sure` are words that may be names only because they
    start a sentence, and small numbers in words, which may count things mentioned elsewhere.
    """

    kind: ClaimKind
    value: str
    key: str
    start: int = field(default=0, compare=False)
    sure: bool = field(default=True, compare=False)
    also: tuple[str, ...] = field(default=(), compare=False)

    @property
    def keys(self) -> tuple[str, ...]:
        """All possible readings: 03/04/2025 is one of two days."""
        return (self.key, *self.also)


@lru_cache(maxsize=1_024)  # extractor, check and receipt all read the same messages
def claims(text: str, *, german: bool = False) -> tuple[TextClaim, ...]:
    """The names, numbers, dates and URLs of the text, in order; `german` as for `names`."""
    found = list(_urls(text))
    rest = _mask(text, ((claim.start, claim.start + len(claim.value)) for claim in found))
    days = list(numbers.dates(rest))
    rest = _without_cjk(_mask(rest, ((day.start, day.end) for day in days)))
    times = list(numbers.times(rest))
    rest = _mask(rest, ((time.start, time.end) for time in times))
    found += [_claim("date", text, day) for day in days]
    found += [_claim("number", text, time) for time in times]
    named = list(names(rest, german=german))
    found += [_claim("name", text, name) for name in named]
    ids = ((n.start, n.end) for n in named if any(map(str.isdigit, rest[n.start : n.end])))
    found += [_claim("number", text, number) for number in numbers.numbers(_mask(rest, ids))]
    return tuple(sorted(found, key=lambda claim: (claim.start, claim.kind)))


def _claim(kind: ClaimKind, text: str, span: numbers.Mention) -> TextClaim:
    value = text[span.start : span.end]
    first, *more = span.readings
    return TextClaim(kind, value, first, span.start, span.sure, tuple(more))


def _mask(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """The text with the spans masked; all positions stay the same."""
    places = list(spans)
    if not places:
        return text
    chars = list(text)
    for start, end in places:
        # Not spaces: the words before and after must not look like neighbors.
        chars[start:end] = "\N{REPLACEMENT CHARACTER}" * (end - start)
    return "".join(chars)


def _without_cjk(text: str) -> str:
    return text if text.isascii() else _FAR.sub(" ", text)


# -- addresses --------------------------------------------------------------------------------


def _urls(text: str) -> Iterator[TextClaim]:
    spans = []
    for match in _URL.finditer(text):
        url = trim_url(match[0])
        spans.append((match.start(), match.start() + len(url)))
        yield TextClaim("url", url, url_key(url), match.start())
    if "@" in text:
        for match in _EMAIL.finditer(_mask(text, spans) if spans else text):
            yield TextClaim(
                "name", match[0].rstrip("."), match[0].rstrip(".").casefold(), match.start()
            )


def trim_url(url: str) -> str:
    """The URL without the punctuation of its sentence."""
    while url and _ends_with_punctuation(url):
        url = url[:-1]
    return url


def _ends_with_punctuation(url: str) -> bool:
    """Whether the last character belongs to the sentence rather than to the URL."""
    last = url[-1]
    if last == ")":
        return url.count("(") < url.count(")")
    if last in "]}":
        return "[" not in url and "{" not in url
    return last in ".,;:!?'\"*_~>…’”»"


def url_key(url: str) -> str:
    """The URL for comparison: scheme and host in lower case, no ``www.``, no trailing slash."""
    match = _URL_PARTS.match(trim_url(url.strip()))
    if not match:
        return url
    host = match[2].lower().removeprefix("www.")
    return f"{(match[1] or 'https').lower()}://{host}{match[3].rstrip('/')}"


# -- the facts of sources ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """The facts in some texts, prepared for checking many claims."""

    words: frozenset[str]
    starts: dict[str, tuple[str, ...]]
    numbers: frozenset[str]
    values: tuple[float, ...]
    counted: dict[str, frozenset[str]]
    dates: frozenset[str]
    urls: frozenset[str]
    initials: frozenset[str]


def source_facts(texts: Iterable[str]) -> SourceFacts:
    """The facts of all texts together."""
    return _source_facts("\n\n".join(texts))


@lru_cache(maxsize=32)  # one digest checks the same texts several times
def _source_facts(text: str) -> SourceFacts:
    clear = _without_cjk(text)
    words = frozenset(fold_name(clear).split())
    starts: dict[str, list[str]] = {}
    for word in sorted(words):
        starts.setdefault(word[:3], []).append(word)
    found = claims(text)
    days = {key for claim in found if claim.kind == "date" for key in claim.keys}
    loose = numbers.loose_numbers(text) | {
        key for claim in found if claim.kind == "number" for key in claim.keys
    }
    return SourceFacts(
        words=words,
        starts={start: tuple(group) for start, group in starts.items()},
        numbers=frozenset(loose),
        values=tuple(value for value in map(_float, sorted(loose)) if value),
        counted=_numbers_by_noun(clear, found),
        dates=frozenset(days | {day for day in map(numbers.weekday, days) if day}),
        urls=frozenset(claim.key for claim in found if claim.kind == "url"),
        initials=_initials(clear),
    )


def clear_caches() -> None:
    """Clear the caches of analyzed texts."""
    claims.cache_clear()
    _source_facts.cache_clear()


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _numbers_by_noun(text: str, found: Iterable[TextClaim]) -> dict[str, frozenset[str]]:
    """For each word that follows a number, these numbers."""
    pairs: dict[str, set[str]] = {}
    for claim in found:
        if claim.kind == "number":
            word = _noun_after(text, claim)
            if word:
                pairs.setdefault(word, set()).update(claim.keys)
    return {word: frozenset(keys) for word, keys in pairs.items()}


def _noun_after(text: str, claim: TextClaim) -> str:
    end = claim.start + len(claim.value)
    match = PIECE.search(text, end, end + 30)
    if not match or text[end : match.start()].strip():
        return ""
    return fold_name(match[0]).rstrip("s")


def _initials(text: str) -> frozenset[str]:
    """The initials of every two to five neighboring capitalized words."""
    found: set[str] = set()
    for run in re.findall(r"(?:\b[^\W\d_a-z]\w+\b[ -]?){2,5}", text):
        letters = "".join(piece[0] for piece in PIECE.findall(run)).casefold()
        found.update(
            letters[i:j] for i in range(len(letters)) for j in range(i + 2, len(letters) + 1)
        )
    return frozenset(found)


def supports(sources: SourceFacts, claim: TextClaim, text: str = "") -> bool:
    """Whether the sources support the claim; `text` is the text that contains it, if available."""
    if claim.kind == "url":
        return _knows_url(sources, claim.key)
    if claim.kind == "date":
        return any(_knows_date(sources.dates, key) for key in claim.keys)
    if claim.kind == "number":
        return _knows_number(sources, claim, text)
    if "@" in claim.key:
        return all(piece in sources.words for piece in fold_name(claim.key).split())
    return _knows_name(sources, claim)


def unsupported(summary: str, sources: Iterable[str]) -> tuple[TextClaim, ...]:
    """The claims of the summary that no source supports, each once.

    Lenient to inflection, possessives, parts of names, other formats of numbers and dates, and to
    words that are capitalized only because they start a sentence.
    """
    made = claims(summary)
    if not made:
        return ()
    source = source_facts(sources)
    lost = [claim for claim in made if not supports(source, claim, summary)]
    return tuple({(claim.kind, claim.key): claim for claim in lost}.values())


def _knows_url(sources: SourceFacts, key: str) -> bool:
    if key in sources.urls:
        return True
    return any(url.startswith(key) and url[len(key)] in "/?#" for url in sources.urls)


def _knows_date(dates: frozenset[str], key: str) -> bool:
    """A date is supported if its month and day are; a year may be added, but not contradicted."""
    if key in dates:
        return True
    if key.startswith("weekday"):
        return False
    year, month, day = key.split("-")
    for other in dates:
        if other.startswith("weekday"):
            continue
        other_year, other_month, other_day = other.split("-")
        same = month == other_month and day in (other_day, "*")
        if same and "*" in (year, other_year):
            return True
        if same and year == other_year:
            return True
    return False


def _knows_number(sources: SourceFacts, claim: TextClaim, text: str) -> bool:
    keys = claim.keys
    if any(key in sources.numbers for key in keys):
        return True
    if not claim.sure:
        # Small numbers in words often count things: they are wrong only if they contradict.
        return not sources.counted.get(_noun_after(text, claim))
    if not _ABOUT.search(text[max(0, claim.start - 24) : claim.start]):
        return False
    value = _float(keys[0])
    return any(abs(value - other) <= _NEAR * other for other in sources.values)


def _knows_name(sources: SourceFacts, claim: TextClaim) -> bool:
    pieces = claim.key.split()
    # In "O'Brien" or "Node.js" single letters do not count.
    words = [piece for piece in pieces if len(piece) > 1 or len(pieces) == 1]
    if all(_knows_word(sources, word) for word in words):
        return True
    if claim.value.isupper() and claim.key in sources.initials:
        return True
    parts = [part.casefold() for part in _CAMEL.findall(claim.value)]
    if len(parts) > 1 and len(pieces) == 1 and all(part in sources.words for part in parts):
        return True
    return not claim.sure and is_everyday_word(re.split(r"['’-]", claim.value)[0])


def _knows_word(sources: SourceFacts, word: str) -> bool:
    if word in sources.words or (word in COMMON and not word.isdigit()):
        return True
    return any(_are_inflections(word, other) for other in sources.starts.get(word[:3], ()))


def _are_inflections(word: str, other: str) -> bool:
    """Whether two words with the same start are forms of one word."""
    short, long = sorted((word, other), key=len)
    if long.startswith(short):
        return len(short) > 4 or long[len(short) :] in _ENDINGS  # noqa: PLR2004
    if short.isascii():
        # "study" and "studies", "agree" and "agreed"; names rarely differ like this.
        return len(short) > 4 and long[:-3] == short[:-1] and long.endswith(("ies", "ing"))  # noqa: PLR2004
    same = next(
        (i for i, pair in enumerate(zip(short, long, strict=False)) if pair[0] != pair[1]), 0
    )
    return same >= max(3, len(short) - 2) and len(long) - same <= 3  # noqa: PLR2004
