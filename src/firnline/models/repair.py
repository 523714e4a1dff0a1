"""Reads JSON as models write it: in prose, fenced, with trailing commas and single quotes. Pure.

Only the syntax is repaired, never the content: truncated text is rejected, not completed, and
nothing is invented.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final, NoReturn

from firnline.log import limits
from firnline.log.regex import regex

ANSWER_CHARS_MAX: Final = 2_000_000
"""Longer answers are not parsed."""
REPAIR_CHARS_MAX: Final = 400_000
"""Longer answers are not repaired, because that is slow."""
_WORK_CHARS_MAX: Final = 5_000_000
_REPAIR_WORK_CHARS_MAX: Final = 1_000_000
"""Characters that may be read in total, from all possible starts of a value."""
_STARTS_MIN: Final = 4
"""Starts that are always tried, however long the text is."""

_THOUGHTS: Final = regex(r"\A\s*<(think|thinking|reasoning)>.*?</\1>", re.DOTALL)
_BLANK: Final = regex(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_WORD: Final = regex(r"[A-Za-z_$][\w$-]*")
_NUMBER: Final = regex(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_CODES: Final = regex(r"[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|[0-9a-fA-F]{4}")
_QUOTES: Final = {'"': '"', "'": "'", "\u201c": "\u201d", "\u2018": "\u2019", "`": "`"}
_LITERALS: Final = {
    "true": True, "True": True, "TRUE": True,
    "false": False, "False": False, "FALSE": False,
    "null": None, "None": None, "NULL": None, "undefined": None,
}  # fmt: skip
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_ENDS: Final = frozenset(",:}]")


def json_values(text: str, opening: str = "{[") -> Iterator[Any]:
    """Every JSON object and array that can be read in `text`, the likeliest first.

    First the valid ones, outer before inner, then those that become valid by repair. `opening`
    are the brackets that count. Tagged reasoning before the answer is skipped.
    """
    if len(text) > ANSWER_CHARS_MAX:
        return
    bare = _THOUGHTS.sub("", text)
    starts = [match.start() for match in re.finditer(f"[{re.escape(opening)}]", bare)]
    tries = max(_STARTS_MIN, _WORK_CHARS_MAX // (len(bare) + 1))
    for start in starts[:tries]:
        try:
            yield _STRICT.raw_decode(bare, start)[0]
        except (ValueError, RecursionError):
            continue
    if len(bare) > REPAIR_CHARS_MAX:
        return
    tries = max(_STARTS_MIN, _REPAIR_WORK_CHARS_MAX // (len(bare) + 1))
    for start in starts[:tries]:
        try:
            yield LenientParser(bare, start).value()
        except ValueError:
            continue


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_STRICT: Final = json.JSONDecoder(parse_constant=_no_constant)


class LenientParser:
    """Reads one value from `text` at `start` leniently; `ValueError` if it cannot.

    Allows comments, trailing and missing commas, bare keys, any kind of quotes, raw line breaks and
    unescaped quotes in strings, Python's literals, and numbers such as ``+1`` and ``.5``.
    """

    def __init__(self, text: str, start: int = 0) -> None:
        self._text = text
        self._at = start

    def value(self, depth: int = 0) -> Any:
        """The value that begins here."""
        if depth > limits.JSON_DEPTH_MAX:
            raise ValueError("nested too deeply")
        char = self._peek()
        if char == "{":
            return self._object(depth)
        if char == "[":
            return self._array(depth)
        if char in _QUOTES:
            return self._string()
        return self._scalar()

    def _object(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        self._at += 1
        while (char := self._peek()) != "}":
            key = self._string() if char in _QUOTES else self._match(_WORD, "a key")
            if self._peek() != ":":
                raise ValueError("a key without a value")
            self._at += 1
            found[key] = self.value(depth + 1)
            self._comma()
        self._at += 1
        return found

    def _array(self, depth: int) -> list[Any]:
        found: list[Any] = []
        self._at += 1
        while self._peek() != "]":
            found.append(self.value(depth + 1))
            self._comma()
        self._at += 1
        return found

    def _comma(self) -> None:
        if self._peek() == ",":
            self._at += 1

    def _scalar(self) -> Any:
        if _NUMBER.match(self._text, self._at):
            digits = self._match(_NUMBER, "a number")
            if len(digits) > limits.INTEGER_DIGITS_MAX:
                raise ValueError("a number is too long")
            return int(digits) if digits.lstrip("+-").isdecimal() else float(digits)
        word = self._match(_WORD, "a value")
        if word not in _LITERALS:
            raise ValueError(f"{word} is not a value")
        return _LITERALS[word]

    def _string(self) -> str:
        closing = _QUOTES[self._text[self._at]]
        self._at += 1
        pieces: list[str] = []
        while True:
            char = self._char()
            if char == "\\":
                pieces.append(self._escape())
            elif char == closing and self._ends_string():
                return "".join(pieces)
            else:
                pieces.append(char)

    def _ends_string(self) -> bool:
        """Whether a quote is the string's last: a quote inside it is followed by more text."""
        after = _BLANK.match(self._text, self._at)
        end = after.end() if after else self._at
        return (
            end >= len(self._text) or self._text[end] in _ENDS or "\n" in self._text[self._at : end]
        )

    def _escape(self) -> str:
        char = self._char()
        if char != "u":
            return _ESCAPES.get(char, char)
        # A pair of surrogates is one character, which the strict decoder knows how to make.
        codes = self._match(_CODES, "four hexadecimal digits")
        return str(_STRICT.decode(f'"\\u{codes}"'))

    def _match(self, pattern: re.Pattern[str], what: str) -> str:
        match = pattern.match(self._text, self._at)
        if match is None:
            raise ValueError(f"expected {what}")
        self._at = match.end()
        return match[0]

    def _peek(self) -> str:
        """The next character that is not a space; `ValueError` at the end of the text."""
        blank = _BLANK.match(self._text, self._at)
        self._at = blank.end() if blank else self._at
        if self._at >= len(self._text):
            raise ValueError("the text is truncated")
        return self._text[self._at]

    def _char(self) -> str:
        if self._at >= len(self._text):
            raise ValueError("the text is truncated inside a string")
        self._at += 1
        return self._text[self._at - 1]
