"""Tools that a model may call during a turn: a schema for the model, a function for us."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from firnline.message import ToolCall

logger: Final = logging.getLogger("firnline.turn")

Run: TypeAlias = Callable[..., "Awaitable[Any] | Any"]


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that a model may call by name.

    `parameters` is the JSON schema of its arguments, which are passed by keyword. What it returns
    is given to the model as text, anything but a string as JSON.
    """

    name: str
    run: Run
    description: str = ""
    parameters: Mapping[str, Any] = field(
        default_factory=lambda: {"type": "object", "properties": {}, "additionalProperties": False}
    )

    def to_openai(self) -> dict[str, Any]:
        """The tool in the OpenAI shape."""
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": dict(self.parameters),
        }
        return {"type": "function", "function": function}


async def answer(call: ToolCall, tools: Sequence[Tool]) -> str:
    """What a tool call returns; what is wrong with it is an answer, too, one the model can read."""
    tool = next((tool for tool in tools if tool.name == call.name), None)
    if tool is None:
        names = ", ".join(tool.name for tool in tools) or "none"
        return _error(f"there is no tool {call.name!r}; there are: {names}")
    try:
        arguments = json.loads(call.arguments or "{}")
    except ValueError as error:
        return _error(f"the arguments are not JSON: {error}")
    if not isinstance(arguments, dict):
        return _error("the arguments are not a JSON object")
    if problem := _unfit(arguments, tool.parameters):
        return _error(problem)
    try:
        result = tool.run(**arguments)
        if inspect.isawaitable(result):
            result = await result
        return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
    except asyncio.CancelledError:
        raise
    except Exception as error:
        # Whatever a tool does wrong is its own; the model is told, and the turn goes on.
        logger.exception("the tool %s failed", tool.name)
        return _error(f"{type(error).__name__}: {error}")


def _unfit(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """Why the arguments cannot be taken; empty if they can."""
    known = schema.get("properties", {})
    if unknown := [name for name in arguments if name not in known]:
        return f"unknown arguments: {', '.join(unknown)}; known: {', '.join(known) or 'none'}"
    if missing := [name for name in schema.get("required", ()) if name not in arguments]:
        return f"missing arguments: {', '.join(missing)}"
    return ""


def _error(text: str) -> str:
    return json.dumps({"error": text}, ensure_ascii=False)
