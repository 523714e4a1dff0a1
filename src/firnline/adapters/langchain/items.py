"""Items of a LangGraph store as cards: names and values."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal
from urllib.parse import quote, unquote

from langgraph.store.base import Item, MatchCondition, get_text_at_path

from firnline.log.entry import Card
from firnline.log.message import parse_time
from firnline.log.wire import parse_unique


def folder_of(namespace: tuple[str, ...]) -> str:
    """A namespace as the prefix of its items' names."""
    return "".join(f"{quote(part, safe='')}/" for part in namespace)


def name_of(namespace: tuple[str, ...], key: str) -> str:
    """The name of an item's card."""
    return f"{folder_of(namespace)}={quote(key, safe='')}"


def item_of(card: Card) -> Item:
    """The item of a card."""
    folder, _, key = card.name.rpartition("=")
    body = parse_unique(card.body)
    return Item(
        value=body["value"],
        key=unquote(key),
        namespace=tuple(map(unquote, folder.split("/")[:-1])),
        created_at=parse_time(body["created_at"]),
        updated_at=parse_time(body["updated_at"]),
    )


def fields_of(item: Item) -> dict[str, Any]:
    """The fields of an item."""
    return {name: getattr(item, name) for name in Item.__slots__}


def texts_of(value: Any, index: Sequence[str] | Literal[False] | None) -> list[str]:
    """The searchable texts of a value: those at these paths, or all."""
    if index is not None:
        return [text for path in index or () for text in get_text_at_path(value, path)]
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for part in inner for text in texts_of(part, None)]


_HOLD: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "$eq": operator.eq,
    "$ne": operator.ne,
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def holds(value: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether a value has these fields, or fields that compare so."""
    for name, want in wanted.items():
        compared = want if isinstance(want, dict) and want.keys() <= _HOLD.keys() else {"$eq": want}
        if not all(
            (sign in ("$eq", "$ne") and _HOLD[sign](value.get(name), than))
            or (name in value and _HOLD[sign](value[name], than))
            for sign, than in compared.items()
        ):
            return False
    return True


def matches(namespace: tuple[str, ...], condition: MatchCondition) -> bool:
    """Whether a namespace has the prefix or suffix of the condition."""
    path = condition.path
    if len(path) > len(namespace):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[-len(path) :]
    return all(wanted in ("*", given) for wanted, given in zip(path, part, strict=True))
