"""JSON read value by value from a stream: a file of any size takes the memory of one value.

Values are parsed by the standard library's scanner, so what comes out is what `json.loads` gives.
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
"""How near to the end of what was read an error may come from what was not read yet."""


class Malformed(InputError):
    """The file is not the JSON it should be."""

    @property
    def code(self) -> str:
        """The name that callers know."""
        return "InputError"


class Cursor:
    """A place in a stream of JSON. Whoever steps into an array or object takes what is in it."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        # A byte that is not UTF-8 becomes a surrogate, and U+FFFD in a message, which says so.
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape").decode
        self._text, self._at = "", 0
        self._read_bytes = 0
        self._ended = False
        self._broken: Malformed | None = None

    def peek(self) -> str:
        """The next character that is not blank; empty at the end."""
        while True:
            blanks = _BLANKS.match(self._text, self._at)
            self._at = blanks.end() if blanks else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def take(self, character: str) -> bool:
        """Step over this character, if it is the next one."""
        found = self.peek() == character
        self._at += found
        return found

    def value(self) -> Any:
        """The next value, whole."""
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
        """Step through an array: the number of each item, which the caller takes."""
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
        """Step through an object: the name of each member, whose value the caller takes."""
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
        """Step over the rest of the line."""
        while (end := self._text.find("\n", self._at)) < 0:
            self._at = len(self._text)
            if not self._more():
                return
        self._at = end + 1

    def stop(self, error: Malformed) -> None:
        """There is no going on behind this error; whoever tries to gets it again."""
        self._broken, self._text, self._at, self._ended = error, "", 0, True

    def malformed(self, what: str) -> Malformed:
        """The error for what is at this place."""
        if self._broken is not None:
            return self._broken
        rest = self._text[self._at :].encode("utf-8", "surrogateescape")
        return Malformed(f"not JSON at byte {self._read_bytes - len(rest):,}: {what}")

    def _expect(self, character: str) -> None:
        if not self.take(character):
            raise self.malformed(f"{character!r} should be here")

    def _may_go_on(self, error: json.JSONDecodeError) -> bool:
        """Whether more of the file could make sense of this."""
        cut_off = error.msg.startswith("Unterminated string")
        return cut_off or error.pos >= len(self._text) - _NEAR_END

    def _more(self) -> bool:
        """Read on; what is left is at most doubled, so a long value costs no more than it has."""
        if self._ended:
            return False
        rest = self._text[self._at :]
        if len(rest) > limits.IMPORT_VALUE_CHARS_MAX:
            raise self.malformed(
                f"a value of more than {limits.IMPORT_VALUE_CHARS_MAX:,} characters"
            )
        data = self._stream.read(max(limits.IMPORT_READ_BYTES, len(rest)))
        self._ended = not data
        self._read_bytes += len(data)
        self._text, self._at = rest + self._decode(data, final=not data), 0
        return bool(data)


def records(source: SourceFile, notes: Notes) -> Iterator[tuple[str, Any]]:
    """The items of an array, or the values of JSON Lines, each with where it is.

    A line that is not JSON is noted and stepped over. In an array everything behind such a place is
    lost, so it is noted that the rest was not read.
    """
    cursor = Cursor(source.stream)
    try:
        if cursor.peek() == "[":
            for number in cursor.items():
                yield f"{source.name}, item {number}", cursor.value()
            if cursor.peek():
                raise cursor.malformed("there is more behind the array")
            return
    except Malformed as error:
        notes.reject("the rest of a file, which is not JSON", f"{source.name}: {error}")
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
