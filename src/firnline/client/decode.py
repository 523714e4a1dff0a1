"""JSON from the server as values, by the types of their fields. Pure.

Unknown fields are ignored, so that newer servers can add fields.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from functools import cache
from typing import Any, Final, TypeVar, Union, get_args, get_origin, get_type_hints

from firnline.client.problems import error_of
from firnline.client.values import Conversation
from firnline.client.wire import decode_entry
from firnline.errors import FirnlineError
from firnline.log.chain import LogProblem
from firnline.log.entry import Entry, Head
from firnline.log.message import Message, parse_time

T = TypeVar("T")


def decode(kind: type[T], value: Any) -> T:
    """The JSON as a value of class `kind`."""
    try:
        made: T = _decode(kind, value)
    except (KeyError, TypeError, ValueError) as error:
        name = getattr(kind, "__name__", str(kind))
        raise FirnlineError(f"the response is not a valid {name}: {error}") from error
    return made


def _decode(kind: Any, value: Any) -> Any:
    if kind in _DECODERS:
        return _DECODERS[kind](value)
    if kind in _PLAIN:
        return _check(kind, value)
    if is_dataclass(kind) or hasattr(kind, "_fields"):
        return kind(**_field_values(kind, value))
    return _decode_inner(kind, value)


def _decode_inner(kind: Any, value: Any) -> Any:
    """A type with inner types; any other value is returned as it is."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is tuple:
        return tuple(_decode(inner[0], item) for item in _check(list, value))
    if origin is Mapping:
        return {name: _decode(inner[1], item) for name, item in _check(dict, value).items()}
    if origin in (Union, types.UnionType) and value is not None:
        arms = [arm for arm in inner if arm is not types.NoneType]
        return _decode(arms[0], value) if len(arms) == 1 else value
    return value


def _field_values(kind: Any, value: Any) -> dict[str, Any]:
    values: Mapping[str, Any] = _check(dict, value)
    return {name: _decode(hint, values[name]) for name, hint in _fields(kind) if name in values}


@cache
def _fields(kind: Any) -> tuple[tuple[str, Any], ...]:
    hints = get_type_hints(kind)
    names = [field.name for field in fields(kind)] if is_dataclass(kind) else kind._fields
    return tuple((name, hints[name]) for name in names)


def _check(kind: Any, value: Any) -> Any:
    if not isinstance(value, (int, float) if kind is float else kind):
        raise TypeError(f"expected {kind.__name__}, got {type(value).__name__}")
    return value


def _head(value: Any) -> Head:
    """A head; its strategy is part of `conversation` only."""
    return Head(**{**_field_values(Head, value), "strategy": None})


def _conversation(value: Any) -> Conversation:
    """A conversation; the fields of its head are in the same object."""
    return Conversation(**_field_values(Conversation, {**_check(dict, value), "head": value}))


_PLAIN: Final = frozenset({int, str, bool, float})
_DECODERS: Final[Mapping[Any, Callable[[Any], Any]]] = {
    datetime: parse_time,
    Entry: decode_entry,
    Head: _head,
    Message: Message.from_openai,
    Conversation: _conversation,
    FirnlineError: error_of,
    LogProblem: LogProblem,
}
