"""JSON schemas as a model reads them: nothing that only repeats a name, and nothing to look up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel

_REF: Final = "#/$defs/"
_NULL: Final = {"type": "null"}


def schema_of(kind: type[BaseModel]) -> dict[str, Any]:
    """The schema of a model: definitions in their places, no titles, no nulls.

    What may be null may as well be left out, and that is all a reader has to know.
    """
    made = kind.model_json_schema()
    schema = _plain(made, made.pop("$defs", {}))
    schema.pop("description", None)
    return dict(schema)


def _plain(schema: Any, known: Mapping[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_plain(part, known) for part in schema]
    if not isinstance(schema, dict):
        return schema
    whole = _chosen({**_meant(schema, known)})
    return {name: _plain(part, known) for name, part in whole.items() if not _noise(name, part)}


def _meant(schema: dict[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with the definition that it refers to, if it does."""
    ref = schema.get("$ref")
    if not isinstance(ref, str):
        return schema
    return {**known[ref.removeprefix(_REF)], **{k: v for k, v in schema.items() if k != "$ref"}}


def _chosen(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without the alternative that it is null."""
    choices = schema.get("anyOf", [])
    rest = [choice for choice in choices if choice != _NULL]
    if len(rest) != 1:
        return schema
    return {**rest[0], **{name: part for name, part in schema.items() if name != "anyOf"}}


def _noise(name: str, part: Any) -> bool:
    return (name == "title" and isinstance(part, str)) or (name == "default" and part is None)
