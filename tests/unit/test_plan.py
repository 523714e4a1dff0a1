"""Tool calls and their results stay together, in every shape."""

import pytest

from firnline.log.message import Message, call_ids

CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


@pytest.mark.parametrize(
    "part",
    [
        {"type": "tool_use", "id": "c1", "name": "f", "input": {}},
        {"type": "function_call", "id": "fc1", "call_id": "c1", "name": "f", "arguments": "{}"},
    ],
    ids=lambda part: part["type"],
)
def test_a_call_that_the_content_repeats_is_one_call(part):
    said = {"role": "assistant", "content": [part]}
    assert call_ids(Message.from_openai(said)) == ["c1"]
    assert call_ids(Message.from_openai({**said, "tool_calls": [CALL]})) == ["c1"]
