"""Tools: accepted arguments, and the schemas for each provider."""

import inspect
import json

import pytest

from firnline.context.tools import Tool, Toolbox, answer, joined
from firnline.errors import InputError
from firnline.log.message import ToolCall

SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer", "minimum": 1, "maximum": 50},
        "share": {"type": ["number", "null"], "minimum": 0},
        "flag": {"type": "boolean"},
        "any": {},
        "odd": {"type": "date"},
    },
    "required": ["text"],
    "additionalProperties": False,
}


def given(text, count=3, share=None, flag=False, any=None, odd=None):  # noqa: A002
    """Say what was given."""
    return {"text": text, "count": count, "any": any}


GIVEN = Tool("given", given, "Say what was given.", SCHEMA)


async def _told(arguments: object) -> dict:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return json.loads(await answer(ToolCall.of("1", "given", text), [GIVEN]))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"text": 1}, "text: expected string, got integer"),
        ({"text": None}, "text: expected string, got null"),
        ({"text": "x", "count": "3"}, "count: expected integer, got string"),
        ({"text": "x", "count": 3.5}, "count: expected integer, got number"),
        ({"text": "x", "count": True}, "count: expected integer, got boolean"),
        ({"text": "x", "count": 0}, "count: 0 is too small; the minimum is 1"),
        ({"text": "x", "count": 51}, "count: 51 is too large; the maximum is 50"),
        ({"text": "x", "count": 10**4000}, "count: the number is too large; the maximum is 50"),
        ({"text": "x", "share": -0.5}, "share: -0.5 is too small; the minimum is 0"),
        ({"text": "x", "share": float("nan")}, "share: the number is too small"),
        ({"text": "x", "share": []}, "share: expected number or null, got array"),
        ({"text": "x", "flag": 1}, "flag: expected boolean, got integer"),
        ({"text": {}, "count": {}}, "text: expected string, got object; count: expected integer"),
        ({"text": "x", "tenant": "b"}, "unknown arguments: tenant; known: text, count"),
        ({"text": "x", "\ud800": 1}, "unknown arguments: \ufffd"),
        ({"a" * 10_000: 1}, "known: text, count"),
        ({}, "missing arguments: text"),
        ([], "not a JSON object"),
        ("[" * 100_000, "not JSON"),
        ("{", "not JSON"),
    ],
)
async def test_arguments_that_do_not_fit_are_named(arguments, problem):
    assert problem in (await _told(arguments))["error"]


@pytest.mark.parametrize(
    "arguments",
    [
        {"text": "", "count": 1},
        {"text": "x", "count": 50, "share": None, "flag": True},
        {"text": "x", "share": 3, "any": [{}], "odd": 7},
    ],
)
async def test_valid_arguments_are_accepted(arguments):
    assert (await _told(arguments))["text"] == arguments["text"]


async def test_an_input_error_is_the_arguments_fault_and_not_logged(caplog):
    def picky():
        raise InputError("say it otherwise")

    told = await answer(ToolCall.of("1", "picky", {}), [Tool("picky", picky)])
    assert json.loads(told) == {"error": "say it otherwise"}
    assert not caplog.records


def test_a_toolbox_is_a_sequence_in_every_shape():
    other = Tool("other", given)
    box = Toolbox([GIVEN, other])
    assert (len(box), box[0], list(box), list(box[1:])) == (2, GIVEN, [GIVEN, other], [other])
    assert repr(box) == "Toolbox(given, other)"
    assert [tool["function"]["name"] for tool in box.to_openai()] == ["given", "other"]
    assert box.to_anthropic()[0] == {
        "name": "given",
        "description": "Say what was given.",
        "input_schema": SCHEMA,
    }
    with pytest.raises(KeyError, match="known: given, other"):
        box["no such tool"]
    mine = Tool("given", print)
    assert joined([mine], box) == (mine, other)


async def test_a_tool_is_a_plain_function_that_never_raises():
    call = Toolbox([GIVEN])["given"]
    assert inspect.signature(call) == inspect.signature(given)
    assert (call.__name__, call.__doc__) == ("given", "Say what was given.")
    assert inspect.iscoroutinefunction(call)
    assert json.loads(await call("x", 4))["count"] == 4
    assert json.loads(await call(text="x"))["count"] == 3
    assert "given twice: text" in await call("x", text="y")
    assert "7 arguments; known: text" in await call(*range(7))
    assert "too small" in await call("x", count=0)


def test_through_something_that_waits_no_await_is_needed():
    def drain(coroutine):
        try:
            coroutine.send(None)
        except StopIteration as done:
            return done.value

    call = Toolbox([GIVEN]).through(drain)["given"]
    assert not inspect.iscoroutinefunction(call)
    assert inspect.signature(call) == inspect.signature(given)
    assert json.loads(call("x", count=5))["count"] == 5
