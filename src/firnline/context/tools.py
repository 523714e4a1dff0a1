"""Tools that a model may call during a turn: a schema for the model, a function for us."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import Any, Final, TypeAlias, overload

from firnline.errors import InputError
from firnline.log import limits
from firnline.log.json_text import parse_json
from firnline.log.message import ToolCall
from firnline.log.text import clean_text
from firnline.log.threads import run_by_size

logger: Final = logging.getLogger("firnline.turn")

Run: TypeAlias = Callable[..., "Awaitable[Any] | Any"]
Through: TypeAlias = Callable[[Coroutine[Any, Any, str]], str]
"""Waits for a tool's result, for synchronous callers."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that a model may call by name.

    `parameters` is the JSON schema of its arguments, passed by keyword. The model gets the
    result as text; anything but a string becomes JSON.
    """

    name: str
    run: Run
    description: str = ""
    parameters: Mapping[str, Any] = field(
        default_factory=lambda: {"type": "object", "properties": {}, "additionalProperties": False}
    )

    def to_openai(self) -> dict[str, Any]:
        """The tool in OpenAI's format."""
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": dict(self.parameters),
        }
        return {"type": "function", "function": function}

    def to_anthropic(self) -> dict[str, Any]:
        """The tool in Anthropic's format."""
        return {
            "name": self.name,
            "description": self.description,
            "input_schema": dict(self.parameters),
        }


class Toolbox(Sequence[Tool]):
    """Tools in order; each is also available as a function by its name.

    ``toolbox["find"](order=1)`` checks the arguments and returns text; errors are returned as text,
    too. The functions are coroutines, unless `through` is set, which waits for them.
    """

    def __init__(self, tools: Iterable[Tool], through: Through | None = None) -> None:
        self._tools = tuple(tools)
        self._through = through

    @overload
    def __getitem__(self, which: int) -> Tool: ...
    @overload
    def __getitem__(self, which: slice) -> Toolbox: ...
    @overload
    def __getitem__(self, which: str) -> Callable[..., Any]: ...
    def __getitem__(self, which: int | slice | str) -> Tool | Toolbox | Callable[..., Any]:
        if isinstance(which, slice):
            return Toolbox(self._tools[which], self._through)
        if isinstance(which, int):
            return self._tools[which]
        for tool in self._tools:
            if tool.name == which:
                return _plain(tool, self._through)
        raise KeyError(_unknown(which, self._tools))

    def __len__(self) -> int:
        return len(self._tools)

    def __repr__(self) -> str:
        return f"Toolbox({', '.join(tool.name for tool in self._tools)})"

    def through(self, through: Through) -> Toolbox:
        """The same tools, with functions that need no await."""
        return Toolbox(self._tools, through)

    def to_openai(self) -> list[dict[str, Any]]:
        """The tools in OpenAI's format."""
        return [tool.to_openai() for tool in self._tools]

    def to_anthropic(self) -> list[dict[str, Any]]:
        """The tools in Anthropic's format."""
        return [tool.to_anthropic() for tool in self._tools]


def joined(given: Iterable[Tool], more: Iterable[Tool]) -> tuple[Tool, ...]:
    """The given tools, then those of `more` with other names."""
    first = tuple(given)
    names = {tool.name for tool in first}
    return (*first, *(tool for tool in more if tool.name not in names))


def as_schemas(tools: Iterable[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    """The tools as schemas, which a context counts."""
    return _of_kind(tools, Mapping, "schemas in OpenAI's format, as Tool.to_openai() returns them")


def as_tools(tools: Iterable[Tool]) -> tuple[Tool, ...]:
    """The tools as `Tool` objects, which a turn runs."""
    return _of_kind(tools, Tool, "Tool objects, each with its function")


def _of_kind(given: Any, kind: type, wanted: str) -> tuple[Any, ...]:
    listed = tuple(given) if isinstance(given, Iterable) else (given,)
    for tool in listed:
        if not isinstance(tool, kind):
            raise InputError(f"tools: expected a list of {wanted}; got {type(tool).__name__}")
    return listed


async def answer(call: ToolCall, tools: Sequence[Tool]) -> str:
    """The result of a tool call; errors are results, too, which the model can read."""
    tool = next((tool for tool in tools if tool.name == call.name), None)
    if tool is None:
        return _error(_unknown(call.name, tools))
    try:
        text = call.arguments or "{}"
        arguments = await run_by_size(len(text), partial(parse_json, text))
    except (ValueError, RecursionError) as error:
        return _error(f"the arguments are not JSON: {error}")
    if not isinstance(arguments, dict):
        return _error("the arguments are not a JSON object")
    return await _result(tool, arguments)


async def _result(tool: Tool, arguments: Mapping[str, Any]) -> str:
    if problem := _unfit(arguments, tool.parameters):
        return _error(problem)
    try:
        result = tool.run(**arguments)
        if inspect.isawaitable(result):
            result = await result
        return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
    except asyncio.CancelledError:
        raise
    except InputError as error:
        return _error(str(error))  # caused by the arguments, not the tool
    except Exception as error:
        # A failing tool must not fail the turn: the model gets the error.
        logger.exception("the tool %s failed", tool.name)
        return _error(f"{type(error).__name__}: {error}")


def _plain(tool: Tool, through: Through | None) -> Callable[..., Any]:
    """The tool as a function with its name, signature and docstring."""

    @wraps(tool.run)
    async def waited(*positional: Any, **named: Any) -> str:
        names = list(tool.parameters.get("properties", {}))
        if len(positional) > len(names):
            return _error(f"{len(positional)} arguments; known: {', '.join(names) or 'none'}")
        arguments = dict(zip(names, positional, strict=False))
        if twice := arguments.keys() & named.keys():
            return _error(f"given twice: {', '.join(sorted(twice))}")
        return await _result(tool, {**arguments, **named})

    if through is None:
        return waited

    @wraps(tool.run)
    def plain(*positional: Any, **named: Any) -> str:
        return through(waited(*positional, **named))

    return plain


# -- checking the arguments -------------------------------------------------------------------

_KINDS: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (dict,),
    "null": (type(None),),
}


def _unfit(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """The problem with the arguments; empty if there is none."""
    known = schema.get("properties", {})
    if unknown := [name for name in arguments if name not in known]:
        names = ", ".join(name[: limits.NAME_CHARS_MAX] for name in unknown[:3])
        return f"unknown arguments: {names}; known: {', '.join(known) or 'none'}"
    if missing := [name for name in schema.get("required", ()) if name not in arguments]:
        return f"missing arguments: {', '.join(missing)}"
    problems = (_misfit(value, known[name]) for name, value in arguments.items())
    return "; ".join(
        f"{name}: {problem}" for name, problem in zip(arguments, problems, strict=True) if problem
    )


def _misfit(value: object, schema: object) -> str:
    """The problem with the value of one argument: its type or its range."""
    if not isinstance(schema, Mapping):
        return ""
    kinds = schema.get("type", ())
    kinds = (kinds,) if isinstance(kinds, str) else tuple(kinds)
    if kinds and not any(_is(value, kind) for kind in kinds):
        return f"expected {' or '.join(kinds)}, got {_kind(value)}"
    low, high = schema.get("minimum"), schema.get("maximum")
    if isinstance(value, int | float) and not isinstance(value, bool):
        if low is not None and not value >= low:
            return f"{_written(value)} is too small; the minimum is {low}"
        if high is not None and not value <= high:
            return f"{_written(value)} is too large; the maximum is {high}"
    return ""


def _is(value: object, kind: str) -> bool:
    """Whether a value has a JSON type; unknown types are left to the tool."""
    if kind not in _KINDS:
        return True
    return isinstance(value, _KINDS[kind]) and (kind == "boolean" or not isinstance(value, bool))


def _kind(value: object) -> str:
    return next((kind for kind in (*_KINDS,) if _is(value, kind)), type(value).__name__)


def _written(number: float) -> str:
    """A number, unless it is too long for CPython to print."""
    return str(number) if abs(number) < 1e15 else "the number"  # noqa: PLR2004


def _unknown(name: str, tools: Iterable[Tool]) -> str:
    names = ", ".join(tool.name for tool in tools) or "none"
    return f"there is no tool {name[: limits.NAME_CHARS_MAX]!r}; known: {names}"


def _error(text: str) -> str:
    short = clean_text(text)[: limits.TOOL_ERROR_CHARS_MAX]
    return json.dumps({"error": short}, ensure_ascii=False)
