"""A value in a JSON file with its location, for error messages. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from firnline.errors import InputError
from firnline.log.text import clean_text

DEPTH_MAX: Final = 8
"""How deep values are nested: plans of batches of turns of messages, and some to spare."""
_SHOWN_MAX: Final = 40
_FIELDS_MAX: Final = 6
_LABEL_MAX: Final = 10**18


@dataclass(frozen=True, slots=True)
class JsonSpot:
    """A JSON value and its location, such as ``conversation 3, session_2, turn 5``.

    `InputError` if the value is not what a method expects.
    """

    value: object
    where: str

    def wrong(self, expected: str) -> InputError:
        """The error for an unexpected value."""
        return InputError(f"{self.where}: expected {expected}, found {_value_text(self.value)}")

    @property
    def fields(self) -> dict[str, object]:
        """The fields of an object."""
        if not isinstance(self.value, dict):
            raise self.wrong("an object")
        return self.value

    def __getitem__(self, name: str) -> JsonSpot:
        """A required field."""
        found = self.get(name)
        if found is None:
            raise InputError(
                f"{self.where}: expected a field {name!r}, found {_names(self.fields)}"
            )
        return found

    def get(self, name: str) -> JsonSpot | None:
        """An optional field; null counts as absent."""
        value = self.fields.get(name)
        return None if value is None else JsonSpot(value, f"{self.where}, {name}")

    def each(self, called: str) -> Iterator[JsonSpot]:
        """The items of a list; errors name them `called`, counted from 1."""
        if not isinstance(self.value, list):
            raise self.wrong("a list")
        for number, item in enumerate(self.value, 1):
            yield JsonSpot(item, f"{self.where}, {called} {number}")

    @property
    def text(self) -> str:
        """A string, made storable."""
        if not isinstance(self.value, str):
            raise self.wrong("text")
        return clean_text(self.value)

    @property
    def label(self) -> str:
        """A string or an integer as a string: an id."""
        if type(self.value) is int and abs(self.value) <= _LABEL_MAX:
            return str(self.value)
        if not isinstance(self.value, str):
            raise self.wrong("text or a number")
        return clean_text(self.value)


def texts_in(spot: JsonSpot | None, depth: int = 0) -> str:
    """All texts and numbers in a value, joined by spaces; empty if there is none."""
    value = spot.value if spot else None
    if spot is None or value is None or isinstance(value, bool) or depth > DEPTH_MAX:
        return ""
    if isinstance(value, list | dict):
        inner = value.values() if isinstance(value, dict) else value
        return " ".join(texts_in(JsonSpot(one, spot.where), depth + 1) for one in inner)
    return clean_text(str(value))


def _value_text(value: object) -> str:
    if isinstance(value, dict):
        return f"an object with {_names(value)}"
    if isinstance(value, list):
        return f"a list of {len(value):,}"
    if isinstance(value, str):
        short = value if len(value) <= _SHOWN_MAX else value[:_SHOWN_MAX] + "…"
        return f"the text {clean_text(short)!r}"
    return (
        "null" if value is None else str(value).lower() if isinstance(value, bool) else "a number"
    )


def _names(fields: dict[str, object]) -> str:
    if not fields:
        return "no fields"
    names = ", ".join(name[:_SHOWN_MAX] for name in list(fields)[:_FIELDS_MAX])
    return clean_text(names) + (", …" if len(fields) > _FIELDS_MAX else "")
