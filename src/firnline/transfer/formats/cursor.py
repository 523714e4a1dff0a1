"""Reads JSON value by value from a stream, with the memory of one value.

Values are parsed by the standard library's scanner, so the results are those of `json.loads`.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from typing import Any, Final

from firnline.errors import InputError
from firnline.log import limits
from firnline.log.regex import regex
from firnline.transfer.formats.records import Notes, SourceFile, Stream

_DECODER: Final = json.JSONDecoder()
_BLANKS: Final = regex(r"[ \t\n\r\x1e]*")  # U+001E may precede each value of a sequence
_NEAR_END: Final = 16
"""An error this near to the end of the buffer may come from data not read yet."""


class Malformed(InputError):
    """The file is not valid JSON."""

    @property
    def code(self) -> str:
        """The error code of callers."""
        return "InputError"


class Cursor:
    """A position in a JSON stream. After entering an array or object, read its values."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        # A byte that is not UTF-8 becomes a surrogate, and U+FFFD in a message, which says so.
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape").decode
        self._text, self._at = "", 0
        self._read_bytes = 0
        self._ended = False
        self._broken: Malformed | None = None

    def peek(self) -> str:
        """The next character that is not whitespace; empty at the end."""
        while True:
            blanks = _BLANKS.match(self._text, self._at)
            self._at = blanks.end() if blanks else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def take(self, character: str) -> bool:
        """Skip this character if it is the next one."""
        found = self.peek() == character
        self._at += found
        return found

    def value(self) -> Any:
        """The next value."""
        self.peek()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                if not self._may_go_on(error) or not self._more():
                    raise self.malformed(error.msg) from error
            except (RecursionError, ValueError) as error:
                raise self.malformed(str(error)) from error
            else:
                # A number at the end of what was read may have more digits.
                open_end = end + _NEAR_END * (type(value) in (int, float)) >= len(self._text)
                if not open_end or self._ended:
                    self._at = end
                    return value
                self._more()

    def items(self) -> Iterator[int]:
        """Enter an array: yields the number of each item, which the caller must read."""
        self._expect("[")
        number = 0
        if self.take("]"):
            return
        while True:
            yield number
            number += 1
            if self.take("]"):
                return
            self._expect(",")

    def members(self) -> Iterator[str]:
        """Enter an object: yields the name of each member, whose value the caller must read."""
        self._expect("{")
        if self.take("}"):
            return
        while True:
            name = self.value()
            if not isinstance(name, str):
                raise self.malformed("the name of a member is not a string")
            self._expect(":")
            yield name
            if self.take("}"):
                return
            self._expect(",")

    def skip_line(self) -> None:
        """Skip the rest of the line."""
        while (end := self._text.find("\n", self._at)) < 0:
            self._at = len(self._text)
            if not self._more():
                return
        self._at = end + 1

    def stop(self, error: Malformed) -> None:
        """Keep the error: every later call raises it again."""
        self._broken, self._text, self._at, self._ended = error, "", 0, True

    def malformed(self, what: str) -> Malformed:
        """The error for the current position."""
        if self._broken is not None:
            return self._broken
        rest = self._text[self._at :].encode("utf-8", "surrogateescape")
        return Malformed(f"not JSON at byte {self._read_bytes - len(rest):,}: {what}")

    def _expect(self, character: str) -> None:
        if not self.take(character):
            raise self.malformed(f"expected {character!r}")

    def _may_go_on(self, error: json.JSONDecodeError) -> bool:
        """Whether the error could come from data that is not read yet."""
        cut_off = error.msg.startswith("Unterminated string")
        return cut_off or error.pos >= len(self._text) - _NEAR_END

    def _more(self) -> bool:
        """Read more, at most doubling the buffer, so that the cost stays linear."""
        if self._ended:
            return False
        rest = self._text[self._at :]
        if len(rest) > limits.IMPORT_VALUE_CHARS_MAX:
            raise self.malformed(
                f"a value over the limit of {limits.IMPORT_VALUE_CHARS_MAX:,} characters"
            )
        data = self._stream.read(max(limits.IMPORT_READ_BYTES, len(rest)))
        self._ended = not data
        self._read_bytes += len(data)
        self._text, self._at = rest + self._decode(data, final=not data), 0
        return bool(data)


def records(source: SourceFile, notes: Notes) -> Iterator[tuple[str, Any]]:
    """The items of an array, or the values of JSON Lines, each with its location.

    An invalid line is noted and skipped. In an array, everything after an error is skipped, and a
    note says so.
    """
    cursor = Cursor(source.stream)
    try:
        if cursor.peek() == "[":
            for number in cursor.items():
                yield f"{source.name}, item {number}", cursor.value()
            if cursor.peek():
                raise cursor.malformed("unexpected data after the array")
            return
    except Malformed as error:
        notes.reject("the rest of a file that is not valid JSON", f"{source.name}: {error}")
        return
    yield from _lines(source.name, cursor, notes)


def _lines(name: str, cursor: Cursor, notes: Notes) -> Iterator[tuple[str, Any]]:
    number = 0
    while True:
        where = f"{name}, item {number}"
        try:
            if not cursor.peek():
                return
            value = cursor.value()
        except Malformed as error:
            notes.reject("a line that is not JSON", f"{where}: {error}")
            cursor.skip_line()
        else:
            yield where, value
        number += 1
