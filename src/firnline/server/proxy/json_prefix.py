"""Checks the beginning of a JSON object, piece by piece: the input of a call in a stream. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from firnline.errors import ModelError
from firnline.log import limits
from firnline.log.regex import regex

_SPACE: Final = r"[ \t\n\r]*"
_NUMBER: Final = r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?=[ \t\n\r,\]}])"
_VALUE: Final = rf'[{{["]|true|false|null|{_NUMBER}'
_PAIR: Final = r"[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_CODE: Final = rf"[0-9a-cA-CefEF][0-9a-fA-F]{{3}}|[dD][0-7][0-9a-fA-F]{{2}}|{_PAIR}"
_STRING: Final = rf'[^"\\\x00-\x1f]+|\\(?:["\\/bfnrt]|u(?:{_CODE}))|"'
_TOKENS: Final[Mapping[str, re.Pattern[str]]] = {
    "object": regex(rf"{_SPACE}(\{{)"),
    "value": regex(rf"{_SPACE}({_VALUE})"),
    "value or end": regex(rf"{_SPACE}({_VALUE}|\])"),
    "key": regex(rf'{_SPACE}(")'),
    "key or end": regex(rf'{_SPACE}(["}}])'),
    "colon": regex(rf"{_SPACE}(:)"),
    "more": regex(rf"{_SPACE}([,}}\]])"),
    "string": regex(f"({_STRING})"),
    "key's string": regex(f"({_STRING})"),
    "nothing": regex(r"(?!)"),
}
"""What may come next, by what is expected."""
_CUT_VALUE: Final = regex(
    rf"{_SPACE}(?:-?(?:(?:0|[1-9]\d*)(?:\.\d*)?(?:(?<=\d)[eE][+-]?\d*)?)?"
    r"|t(?:ru?)?|f(?:a(?:ls?)?)?|n(?:ul?)?)"
)
_CUT_STRING: Final = regex(
    r"\\(?:u[0-9a-fA-F]{0,3}|u[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u(?:[dD](?:[c-fC-F][0-9a-fA-F]?)?)?)?)?)?"
)
_CUT: Final = {
    "object": regex(r"(?!)"),  # Anthropic's SDK fails if there is only space
    **dict.fromkeys(("value", "value or end"), _CUT_VALUE),
    **dict.fromkeys(("string", "key's string"), _CUT_STRING),
}
_BLANK: Final = regex(_SPACE)
_KEEPS_BLANK: Final = frozenset({"object", "string", "key's string"})
"""In strings, spaces are text; before the object, they are not accepted."""
_AFTER: Final = {"{": "key or end", "[": "value or end", ":": "value"}
_OPENING: Final = {"}": "{", "]": "["}


def malformed(what: str) -> ModelError:
    """The error for an answer that is none."""
    return ModelError(f"the upstream answer is malformed: {what}", code="malformed")


class JsonPrefix:
    """Checks that text is the beginning of one JSON object, piece by piece; each is read once."""

    def __init__(self) -> None:
        self._stack: list[str] = []
        self._wanted, self._rest = "object", ""

    def add(self, text: str) -> None:
        """Read more; `ModelError` if no JSON object begins like this."""
        text, at = self._rest + text, 0
        while part := _TOKENS[self._wanted].match(text, at):
            at = part.end()
            self._read(part[1])
        if self._wanted not in _KEEPS_BLANK and (blank := _BLANK.match(text, at)):
            at = blank.end()  # or each piece would read all spaces before it again
        self._rest = text[at:]
        if len(self._rest) > limits.INTEGER_DIGITS_MAX:
            raise malformed("the input of a call has a number that is too long")
        if self._rest and not _CUT.get(self._wanted, _BLANK).fullmatch(self._rest):
            raise malformed("the input of a call is not JSON")

    def _read(self, part: str) -> None:
        """What is expected behind a part."""
        if self._wanted in ("string", "key's string"):
            if part == '"':
                self._wanted = "colon" if self._wanted == "key's string" else "more"
        elif part == '"':
            self._wanted = "key's string" if self._wanted.startswith("key") else "string"
        elif part == ",":
            self._wanted = "key" if self._stack[-1] == "{" else "value"
        elif part in _OPENING:
            if self._stack.pop() != _OPENING[part]:
                raise malformed("the input of a call is not JSON")
            self._wanted = "more" if self._stack else "nothing"
        else:
            self._wanted = _AFTER.get(part, "more")
            self._stack += [part] if part in "{[" else []
            if len(self._stack) > limits.JSON_DEPTH_MAX:
                raise malformed("the input of a call is nested too deep")
