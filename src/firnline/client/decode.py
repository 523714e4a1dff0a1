"""The server's JSON as values: what a class has for fields, by their types. Pure.

Fields that a class does not know are passed over, so that a newer server can say more.
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


def read(kind: type[T], value: Any) -> T:
    """The value of class `kind` that the JSON stands for."""
    try:
        made: T = _read(kind, value)
    except (KeyError, TypeError, ValueError) as error:
        name = getattr(kind, "__name__", str(kind))
        raise FirnlineError(f"the server's answer is no {name}: {error}") from error
    return made


def _read(kind: Any, value: Any) -> Any:
    if kind in _OWN:
        return _OWN[kind](value)
    if kind in _PLAIN:
        return _checked(kind, value)
    if is_dataclass(kind) or hasattr(kind, "_fields"):
        return kind(**_given(kind, value))
    return _several(kind, value)


def _several(kind: Any, value: Any) -> Any:
    """What has an inner type; anything else is kept as it came."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is tuple:
        return tuple(_read(inner[0], item) for item in _checked(list, value))
    if origin is Mapping:
        return {name: _read(inner[1], item) for name, item in _checked(dict, value).items()}
    if origin in (Union, types.UnionType) and value is not None:
        arms = [arm for arm in inner if arm is not types.NoneType]
        return _read(arms[0], value) if len(arms) == 1 else value
    return value


def _given(kind: Any, value: Any) -> dict[str, Any]:
    known: Mapping[str, Any] = _checked(dict, value)
    return {name: _read(hint, known[name]) for name, hint in _fields(kind) if name in known}


@cache
def _fields(kind: Any) -> tuple[tuple[str, Any], ...]:
    hints = get_type_hints(kind)
    names = [field.name for field in fields(kind)] if is_dataclass(kind) else kind._fields
    return tuple((name, hints[name]) for name in names)


def _checked(kind: Any, value: Any) -> Any:
    if not isinstance(value, (int, float) if kind is float else kind):
        raise TypeError(f"expected {kind.__name__}, got {type(value).__name__}")
    return value


def _head(value: Any) -> Head:
    """Its strategy is told with some heads only, so with none here: `conversation` has it."""
    return Head(**{**_given(Head, value), "strategy": None})


def _conversation(value: Any) -> Conversation:
    """Its head is told together with the rest."""
    return Conversation(**_given(Conversation, {**_checked(dict, value), "head": value}))


_PLAIN: Final = frozenset({int, str, bool, float})
_OWN: Final[Mapping[Any, Callable[[Any], Any]]] = {
    datetime: parse_time,
    Entry: decode_entry,
    Head: _head,
    Message: Message.from_openai,
    Conversation: _conversation,
    FirnlineError: error_of,
    LogProblem: LogProblem,
}
