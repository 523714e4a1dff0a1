"""Splits text into sentences and words, in any script. Pure; linear in the text's length."""

# ruff: noqa: RUF001 - other scripts and their marks are meant

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from firnline.language.lexicon import ABBREVIATIONS, COMMON, MONTHS, SENTENCE_STARTS
from firnline.log import limits
from firnline.log.regex import regex

Count: TypeAlias = Callable[[str], int]
"""Counts the tokens of a text."""

ELLIPSIS: Final = "…"
CJK: Final = (
    r"\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3040-\u30ff\u3100-\u31ff"
    r"\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
"""The characters of scripts that are written without spaces, for a character class."""

_CJK: Final = regex(f"[{CJK}]")
_LETTER_OR_DIGIT: Final = regex(r"\w")
_END: Final = regex(
    r"(?P<far>[。！？｡]+[」』”’）)]*)|(?P<line>\n+)|"
    r"(?<![.!?…])(?P<near>[.!?…।؟۔]{1,20}[\"'”’»)\]*_]{0,6})(?=\s)"
)
_END_START: Final = regex("[。！？｡\n.!?…।؟۔]")
"""The first characters of an end: searching for these first is many times faster."""
_LAST_WORD: Final = regex(r"[^\s(\[\"'“„«]*\Z")
_SPACED: Final = regex(
    r"\b(?:z\. ?B|d\. ?h|u\. ?[aÄ]|o\. ?[aÄ]|i\. ?d\. ?R|i\. ?A|z\. ?T|[0-9] ?(?:Mio|Mrd))\Z"
)
"""Abbreviations of several words without the last period, and those that follow a number."""
_LETTER: Final = regex(r"[^\W\d_]\.")
_SHORT_NUMBER: Final = regex(r"(?<![\w.,:-])[0-9]{1,2}\Z")
_REST_OF_DATE: Final = regex(r"[0-9]{1,2}\.\s?[0-9]{2,4}\b")
_DAY_AND_MONTH: Final = regex(r"(?<![\w.,])[0-9]{1,2}\.\s?[0-9]{1,2}\Z")
_ARTICLE: Final = regex(
    r"(?<![^\W_])(?:(?<!\bi )am|im|ins|beim|vom|zum|zur|bis|ab|de[rnms]|die|das|jede[rnms]?"
    r"|(?:k?ein|mein|dein|sein|ihr|unser|diese)(?:e[rnms]?|[rnms])?)\s+[0-9]{1,2}\Z",
    re.IGNORECASE,
)
"""A German word that makes the number after it an ordinal; "I am 30" is English."""
_MONTH_NAMES: Final = MONTHS.keys() - {"may", "march", "mars", "mar", "set"}
"""Not those that are English words: "There were 3. May I?" has two sentences."""
_NEAR_END: Final = regex(r"[.!?…؟۔।][\"'”’»)\]]{0,3}\s|[。！？｡]|\n")
_BLANK: Final = regex(r"\s")
_DIGITS: Final = regex(r"\d")
_NEAR_SHARE: Final = 4  # a quarter of a piece may be dropped to cut at a clean edge
_CODE_START: Final = regex(
    r"File \"|at [\w.$<>]+ ?\(|\$ |\||@@|---|\+\+\+|Traceback \(|def \w+\(|class \w+[:(]"
    r"|from [\w.]+ import |(?:const|let|var) \w+ ?=|[{}]|\[[{\"\]]"
)
_INDENTED: Final = regex(r"\n[ \t]{2,}\S")
_BULLET: Final = regex(r"\s*(?:[-*•+>]|#{1,6}|\d{1,3}[.)])\s")


def count_words(text: str) -> int:
    """The number of words between spaces; two Chinese or Japanese characters count as one word."""
    return (half_words(text) + 1) // 2


def half_words(text: str) -> int:
    """Twice the number of words, so that the lengths of pieces add up."""
    if text.isascii() or not _CJK.search(text):
        return 2 * len(text.split())
    halves = 0
    for piece in text.split():
        if piece.isascii():
            halves += 2
            continue
        near, far = _CJK.subn(" ", piece)
        halves += far + 2 * len(list(filter(_LETTER_OR_DIGIT.search, near.split()))) if far else 2
    return halves


def is_unspaced(char: str) -> bool:
    """Whether the character is of a script without spaces and capitals."""
    return bool(_CJK.match(char))


def sentences(text: str) -> list[str]:
    """The sentences of a text in order, without surrounding spaces.

    A sentence ends at its punctuation, at a line break unless the next line starts in lower case,
    and after `SENTENCE_CHARS_MAX` characters; not at abbreviations, initials, numbers or URLs.
    """
    return [text[start:end] for start, end in spans(text)]


def spans(text: str) -> list[tuple[int, int]]:
    """The start and end of each sentence of a text."""
    found: list[tuple[int, int]] = []
    start = 0
    first = _END_START.search(text)
    if first is None or first.end() == len(text):  # one sentence, as most calls have
        _add_span(found, text, 0, len(text))
        return found
    for match in _sentence_ends(text):
        if _is_end(text, start, match):
            _add_span(found, text, start, match.start() if match["line"] else match.end())
            start = match.end()
    _add_span(found, text, start, len(text))
    return found


def _sentence_ends(text: str) -> Iterator[re.Match[str]]:
    at = 0
    while begin := _END_START.search(text, at):
        match = _END.match(text, begin.start())
        if match:
            yield match
        at = match.end() if match else begin.end()


def _is_end(text: str, start: int, match: re.Match[str]) -> bool:
    after = text[match.end() : match.end() + 80].lstrip()
    if match["far"]:
        return True
    if match["line"]:
        return len(match["line"]) > 1 or not after[:1].islower() or bool(_BULLET.match(after))
    if after[:1].islower():
        return False
    if match["near"] != ".":
        return True
    return not _is_abbreviation(text[max(start, match.start() - 20) : match.start()], after)


def _is_abbreviation(before: str, after: str) -> bool:
    """Whether the period after `before` belongs to its last word."""
    found = _LAST_WORD.search(before)
    word = found[0] if found else ""
    follows = after.split(maxsplit=1)[0].casefold().strip(".,") if after else ""
    if word.isdigit():
        # "1. The first point": the number of a list item
        return len(before.strip()) == len(word) or _is_ordinal(before, follows, after)
    if word.lower() == "no":
        return after[:1].isdigit()
    if word.lower() in ABBREVIATIONS or _SPACED.search(before):
        return True
    if word.lower().endswith("str"):  # "Hauptstr. 5", "Hauptstr. Nord"
        return follows not in SENTENCE_STARTS
    if len(word) != 1:
        return False
    # "J. Smith" is a name, "d. M." an abbreviation; "X causes Y. This" is neither.
    return bool(_LETTER.match(after)) or (
        word.isupper() and follows not in COMMON and follows not in SENTENCE_STARTS
    )


def _is_ordinal(before: str, follows: str, after: str) -> bool:
    """Whether the number that `before` ends with is a German ordinal, or part of "3. 4. 2026"."""
    if not _SHORT_NUMBER.search(before):
        return False
    if follows in _MONTH_NAMES or _REST_OF_DATE.match(after):
        return True
    if after[:1].isdigit():
        return bool(_DAY_AND_MONTH.search(before))
    return bool(_ARTICLE.search(before)) and follows not in SENTENCE_STARTS


def _add_span(found: list[tuple[int, int]], text: str, start: int, end: int) -> None:
    piece = text[start:end]
    start += len(piece) - len(piece.lstrip())
    end = start + len(piece.strip())
    while end - start > limits.SENTENCE_CHARS_MAX:
        blank = text.rfind(
            " ", start + limits.SENTENCE_CHARS_MAX // 2, start + limits.SENTENCE_CHARS_MAX
        )
        middle = blank if blank > 0 else start + limits.SENTENCE_CHARS_MAX
        found.append((start, middle))
        start = middle + (1 if blank > 0 else 0)
    if end > start:
        found.append((start, end))


def is_code(sentence: str) -> bool:
    """Whether it is a line of code, a traceback, a diff, a table or a terminal."""
    return bool(_CODE_START.match(sentence) or _INDENTED.search(sentence))


def fold_text(text: str) -> str:
    """The text for comparison: case folded, runs of spaces as one."""
    return " ".join(text.casefold().split())


def beginning(text: str, chars: int) -> str:
    """At most the first `chars` characters, up to the end of a sentence or a word.

    A number is never cut, because it would become a different one.
    """
    if chars >= len(text):
        return text
    near = text[chars - chars // _NEAR_SHARE : chars]
    for edge in (_NEAR_END, _BLANK):
        ends = [match.end() for match in edge.finditer(near)]
        if ends:
            return text[: chars - len(near) + ends[-1]]
    while chars and _DIGITS.match(text[chars]) and _DIGITS.match(text[chars - 1]):
        chars -= 1
    return text[:chars]


def ending(text: str, chars: int) -> str:
    """At most the last `chars` characters, from the start of a sentence or a word."""
    if chars >= len(text):
        return text
    start = len(text) - chars
    near = text[start : start + chars // _NEAR_SHARE]
    for edge in (_NEAR_END, _BLANK):
        if found := edge.search(near):
            return text[start + found.end() :]
    while start < len(text) and _DIGITS.match(text[start]) and _DIGITS.match(text[start - 1]):
        start += 1
    return text[start:]


def cut_words(text: str, words_max: int) -> str:
    """The first `words_max` words, with an ellipsis if there are more."""
    if count_words(text) <= words_max:
        return text
    low, high = 0, len(text)
    # The number of words grows with the text, so binary search finds the longest start.
    while low < high:
        middle = (low + high + 1) // 2
        if count_words(text[:middle]) <= words_max:
            low = middle
        else:
            high = middle - 1
    return _shorten(text, low)


def cut_to(text: str, words_max: int, tokens_max: int | None, count: Count | None) -> str:
    """The longest start of the text that ends with a sentence and is within both limits.

    If the first sentence is too long, it is cut at a word, with an ellipsis.
    """

    def fits(piece: str) -> bool:
        if count_words(piece) > words_max:
            return False
        return tokens_max is None or count is None or count(piece) <= tokens_max

    if fits(text):
        return text
    ends = [end for _, end in spans(text)]
    kept = _largest_fitting(len(ends), lambda number: fits(text[: ends[number - 1]]))
    if kept:
        return text[: ends[kept - 1]].strip()
    first = text[: ends[0]] if ends else ""
    chars = _largest_fitting(len(first), lambda number: fits(_shorten(first, number)))
    return _shorten(first, chars) if chars else ""


def _shorten(text: str, chars: int) -> str:
    """The first characters, back to the end of a word if possible, with an ellipsis."""
    piece = text[:chars]
    inside = chars < len(text) and not text[chars].isspace() and not _CJK.match(text[chars])
    if inside:
        blank = max(piece.rfind(" "), piece.rfind("\n"))
        piece = piece[:blank] if blank > 0 else piece
    piece = piece.rstrip().rstrip(",;:-").rstrip()
    return piece + ELLIPSIS if piece else ""


def _largest_fitting(number: int, fits: Callable[[int], bool]) -> int:
    """The largest number up to `number` that fits, if fitting is monotone; 0 if none does."""
    low, high = 0, number
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low
