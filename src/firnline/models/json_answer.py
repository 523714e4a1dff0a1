"""Answers that satisfy a JSON schema, from models with different capabilities.

The ladder: the endpoint enforces the schema (``json_schema``), or it guarantees JSON and the schema
is in the prompt (``json_object``), or the prompt asks for JSON and the answer is repaired
(``text``). The result is checked against the schema on every rung.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args

from firnline.errors import InputError, ModelError, ModelRefused
from firnline.log.message import Message, encode_json
from firnline.log.regex import regex
from firnline.log.text import Json, clean_json
from firnline.models.repair import REPAIR_CHARS_MAX, LenientParser, json_values
from firnline.protocols import Completion

Rung: TypeAlias = Literal["json_schema", "json_object", "text"]
RUNGS: Final[tuple[Rung, ...]] = get_args(Rung)

Schema: TypeAlias = Mapping[str, Any]
Request: TypeAlias = list[dict[str, Any]]
Send: TypeAlias = Callable[[Request, dict[str, Any] | None], Awaitable[Completion]]
"""Calls the model once, with messages and the ``response_format`` of the rung, if it has one."""

_FENCE: Final = regex(r"```\w*\s")

RAW_CHARS_MAX: Final = 16_384
"""Characters of an invalid answer that the error includes."""

_NOT_SUPPORTED: Final = frozenset({400, 415, 422})
"""Statuses that an endpoint may return if it does not support a ``response_format``."""


# -- the schema -------------------------------------------------------------------------------

_CHECKED: Final = {"type", "properties", "required", "items", "enum", "additionalProperties"}
_REMARKS: Final = {"title", "description", "default", "examples", "$schema"}
_TYPES: Final[Mapping[str, Callable[[Any], bool]]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: (
        (isinstance(value, int) or (isinstance(value, float) and value.is_integer()))
        and not isinstance(value, bool)
    ),
}


def check_schema(schema: Schema, where: str = "schema") -> None:
    """Raise `InputError` if the schema has a keyword that `schema_problem` does not check."""
    if not isinstance(schema, Mapping):
        raise InputError(f"{where}: expected an object")
    if unknown := set(schema) - _CHECKED - _REMARKS:
        raise InputError(f"{where}: {', '.join(sorted(unknown))} is not supported")
    if unknown := set(_types(schema)) - set(_TYPES):
        raise InputError(f"{where}: there is no type {', '.join(sorted(unknown))}")
    if schema.get("additionalProperties", False) not in (True, False):
        raise InputError(f"{where}: additionalProperties must be true or false")
    for name, inner in schema.get("properties", {}).items():
        check_schema(inner, f"{where}.{name}")
    if "items" in schema:
        check_schema(schema["items"], f"{where}[]")


def schema_problem(value: object, schema: Schema, where: str = "answer") -> str | None:
    """The first problem of `value`, in words a model understands, or None.

    Supports type, enum, properties, required, additionalProperties and items.
    """
    types = _types(schema)
    if types and not any(_TYPES[name](value) for name in types):
        return f"{where}: expected {' or '.join(types)}"
    if "enum" in schema and not any(_same(value, allowed) for allowed in schema["enum"]):
        return f"{where}: expected one of {encode_json(list(schema['enum']))}"
    if isinstance(value, dict):
        return _object_problem(value, schema, where)
    if isinstance(value, list) and "items" in schema:
        found = (
            schema_problem(item, schema["items"], f"{where}[{i}]") for i, item in enumerate(value)
        )
        return next((text for text in found if text), None)
    return None


def _object_problem(value: dict[str, Any], schema: Schema, where: str) -> str | None:
    properties: Mapping[str, Schema] = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            return f"{where}: {name} is missing"
    for name, item in value.items():
        if name in properties:
            if found := schema_problem(item, properties[name], f"{where}.{name}"):
                return found
        elif schema.get("additionalProperties") is False:
            return f"{where}: {name} is not allowed"
    return None


def _types(schema: Schema) -> tuple[str, ...]:
    types = schema.get("type", ())
    return (types,) if isinstance(types, str) else tuple(types)


def _same(value: object, allowed: object) -> bool:
    # In Python True equals 1, in JSON it does not.
    return value == allowed and isinstance(value, bool) == isinstance(allowed, bool)


# -- reading an answer ------------------------------------------------------------------------


def read_json(text: str, schema: Schema) -> Json:
    """The first value in a model's answer that satisfies `schema`, or `ModelError`.

    The error's ``context`` has the first problem (``reason``) and the answer's start (``raw``).
    """
    reason = ""
    for value in json_values(text, "{" if _types(schema) == ("object",) else "{["):
        found = schema_problem(value, schema)
        if found is None:
            return clean_json(value, "answer")
        reason = reason or found
    wrapped = _wrap_bare_list(text, schema)
    if wrapped is not None:
        return clean_json(wrapped, "answer")
    reason = reason or "the answer contains no JSON"
    raise ModelError(
        f"the model's answer does not satisfy the schema: {reason}",
        code="invalid_json",
        reason=reason,
        raw=text[:RAW_CHARS_MAX],
    )


def _wrap_bare_list(text: str, schema: Schema) -> Json:
    """A bare list as an object with that list in its only required field.

    It must be the whole answer: a list inside a truncated answer is not accepted.
    """
    names = list(schema.get("required", ()))
    bare = _bare_list(text) if len(text) <= REPAIR_CHARS_MAX else ""
    if not bare or len(names) != 1 or _types(schema) != ("object",):
        return None
    try:
        whole = {names[0]: LenientParser(bare).value()}
    except ValueError:
        return None
    return whole if schema_problem(whole, schema) is None else None


def _bare_list(text: str) -> str:
    """The list that is the whole text, except for a code fence; empty if there is none."""
    whole = text.strip()
    fence = _FENCE.match(whole)
    inner = whole[fence.end() :].lstrip() if fence else whole
    inner = inner.removesuffix("```").rstrip()
    return inner if len(inner) > 1 and inner[0] == "[" and inner[-1] == "]" else ""


# -- the ladder -------------------------------------------------------------------------------


class StructuredAnswer(NamedTuple):
    """A completion whose text is JSON that satisfies the schema, and its rung."""

    completion: Completion
    rung: Rung


async def ask_structured(
    send: Send, messages: Request, schema: Schema, rungs: Sequence[Rung] = RUNGS
) -> StructuredAnswer:
    """Ask on each of `rungs` until an answer satisfies the schema; else the last `ModelError`.

    The next rung is tried if the endpoint does not support the format or the answer does not
    satisfy the schema. Other failures are raised at once, and so is an answer that was truncated:
    another rung would be truncated, too.
    """
    check_schema(schema)
    if not _types(schema) or set(_types(schema)) - {"object", "array"}:
        raise InputError("schema: the answer as a whole must be an object or an array")
    failure = ModelError("no format of a structured answer to try")
    spent: list[Completion] = []
    for rung in rungs:
        try:
            completion = await send(*_rung_request(rung, messages, schema, failure))
            spent.append(completion)
            value = _read(completion, schema)
        except ModelError as error:
            if not _may_try_next(error):
                raise
            failure = error
        else:
            return StructuredAnswer(_with_total_cost(completion, value, spent), rung)
    raise failure


def _rung_request(
    rung: Rung, messages: Request, schema: Schema, failure: ModelError
) -> tuple[Request, dict[str, Any] | None]:
    if rung == "json_schema":
        name = re.sub(r"[^A-Za-z0-9_-]", "_", str(schema.get("title") or "answer"))[:64]
        wanted = {"name": name, "strict": _is_strict(schema), "schema": _close_schema(schema)}
        return messages, {"type": "json_schema", "json_schema": wanted}
    order = (
        "Answer with one JSON value that satisfies this JSON schema, and nothing else: no "
        f"explanation, no code fence.\n{encode_json(clean_json(schema, 'schema'))}"
    )
    if reason := failure.context.get("reason"):
        order += f"\nYour last answer was rejected: {reason}."
    return _with_order(messages, order), {"type": "json_object"} if rung == "json_object" else None


def _with_order(messages: Request, order: str) -> Request:
    """The order after everything else, so that the start of the prompt stays cached."""
    last = messages[-1] if messages else {}
    if last.get("role") == "user" and isinstance(last.get("content"), str):
        # Many local models do not accept two user messages in a row.
        return [*messages[:-1], {**last, "content": f"{last['content']}\n\n{order}"}]
    return [*messages, {"role": "user", "content": order}]


def _read(completion: Completion, schema: Schema) -> Json:
    if completion.finish_reason == "length":
        partial = completion.message.text[:RAW_CHARS_MAX]
        raise ModelError(
            "the model's answer was truncated at its length limit", code="length", partial=partial
        )
    return read_json(completion.message.text, schema)


def _may_try_next(error: ModelError) -> bool:
    if isinstance(error, ModelRefused):
        known = error.context.get("code") == "context_length_exceeded"
        return not known and error.context.get("status") in _NOT_SUPPORTED
    return error.context.get("code") == "invalid_json"


def _with_total_cost(
    completion: Completion, value: Json, spent: Sequence[Completion]
) -> Completion:
    """The answer with its text in canonical form, and the total cost of all attempts."""
    return replace(
        completion,
        message=Message.assistant(encode_json(value)),
        prompt_tokens=sum(one.prompt_tokens for one in spent),
        completion_tokens=sum(one.completion_tokens for one in spent),
    )


def _is_strict(schema: Schema) -> bool:
    """Whether every field is required, as providers demand for strict schemas."""
    properties = schema.get("properties", {})
    inner = [*properties.values(), *([schema["items"]] if "items" in schema else [])]
    return set(properties) == set(schema.get("required", ())) and all(map(_is_strict, inner))


def _close_schema(schema: Schema) -> dict[str, Any]:
    """The schema without additional fields, as strict enforcement demands."""
    closed = dict(schema)
    if "properties" in closed:
        closed["properties"] = {
            name: _close_schema(inner) for name, inner in closed["properties"].items()
        }
        closed.setdefault("additionalProperties", False)
    if "items" in closed:
        closed["items"] = _close_schema(closed["items"])
    return closed
