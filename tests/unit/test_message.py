"""Messages: the OpenAI shape in and out, the canonical form, the chain."""

import json
from datetime import UTC, datetime, timedelta, timezone
from enum import Enum

import pytest
from hypothesis import given
from openai.types.chat import ChatCompletionMessage

from firnline import Message, Part, ToolCall
from firnline.errors import InputError, MessageTooLarge, StoreCorrupt
from firnline.log.entry import Key, genesis, next_hash
from firnline.log.message import (
    decode,
    encode,
    format_time,
    from_microseconds,
    microseconds,
    parse_time,
)
from firnline.log.wire import dump_openai, load_json, load_openai
from support.message_strategies import anything, json_objects, messages, openai_messages, times

pytestmark = pytest.mark.promise("byte-exact")

NOON = datetime(2026, 3, 4, 12, 0, 0, 123456, tzinfo=UTC)


@given(openai_messages)
def test_the_openai_shape_goes_in_and_out_without_loss(shape):
    before = json.dumps(shape)
    message = Message.from_openai(shape)
    assert message.to_openai() == shape
    assert decode(encode(message)).to_openai() == shape
    assert json.dumps(shape) == before  # the caller's dict is left alone
    for name, value in message.extra.items():
        assert json.dumps(value) == json.dumps(shape[name])  # order of keys included


@given(messages)
def test_the_canonical_form_gives_the_message_back(message):
    assert decode(encode(message)) == message
    assert encode(decode(encode(message))) == encode(message)


@given(anything, json_objects)
def test_any_text_can_be_stored_and_alterations_are_flagged(text, metadata):
    message = Message.user(text, name=text[:5], metadata={"note": text, **metadata})
    assert decode(encode(message)) == message
    storable = "\0" not in text and not any("\ud800" <= c <= "\udfff" for c in text)
    assert message.normalised == (not storable)
    if storable:
        assert message.content == text


def test_the_constructors():
    assert Message.system("s").role == "system"
    assert Message.developer("d").role == "developer"
    assert Message.user("u", name="Ana", created_at=NOON).created_at == NOON
    assert Message.tool("42", tool_call_id="c1").tool_call_id == "c1"
    message = Message.assistant(tool_calls=[ToolCall.of("c1", "add", {"a": 1})])
    assert message.to_openai() == {
        "role": "assistant",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a":1}'}}
        ],
    }
    call = message.tool_calls[0]
    assert (call.id, call.name, call.arguments) == ("c1", "add", '{"a":1}')


def test_parts_of_every_kind():
    parts = [
        (Part.of_text("hi"), "text", "hi"),
        (Part.image("https://x/y.png", detail="low"), "image", ""),
        (Part.file("f1", filename="a.pdf"), "file", ""),
        (Part.tool_call("c1", "f", {"a": 1}), "tool_call", ""),
        (Part.tool_result("c1", "42"), "tool_result", "42"),
        (Part.tool_result("c1", [{"text": "x"}]), "tool_result", '[{"text":"x"}]'),
        (Part.reasoning("hm", signature="s"), "reasoning", ""),
        (Part({"type": "brand_new", "x": 1}), "unknown", ""),
    ]
    assert [(part.kind, part.text) for part, _, _ in parts] == [(k, t) for _, k, t in parts]
    message = Message.user([part for part, _, _ in parts])
    assert decode(encode(message)) == message
    assert message.text.startswith("hi\n42")


def test_custom_tool_calls_are_understood():
    call = ToolCall({"id": "c", "type": "custom", "custom": {"name": "sql", "input": "select 1"}})
    assert (call.name, call.arguments) == ("sql", "select 1")


def test_an_sdk_object_is_accepted_as_it_is():
    shape = {
        "role": "assistant",
        "content": None,
        "refusal": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        ],
    }
    message = Message.from_openai(ChatCompletionMessage.model_validate(shape))
    assert message.to_openai() == shape


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"role": "wizard", "content": "x"},
        {"role": "user", "content": 42},
        {"role": "user", "content": ["x"]},
        {"role": "user", "content": "x", "name": 7},
        {"role": "assistant", "tool_calls": "x"},
        {"role": "assistant", "tool_calls": ["x"]},
        {"role": "tool", "tool_call_id": 1},
        {"role": "user", "content": "x", "extra": float("nan")},
        "hello",
        None,
        [1],
    ],
)
def test_a_malformed_message_is_a_clear_error(wrong):
    with pytest.raises(InputError) as caught:
        Message.from_openai(wrong)
    assert str(caught.value)


def test_wrong_values_are_rejected_at_once():
    for wrong in (
        {"role": "user", "content": [{"type": "text"}]},
        {"role": "user", "created_at": "2026-01-01"},
        {"role": "user", "created_at": datetime(2026, 1, 1)},  # noqa: DTZ001 - that is the point
        {"role": "user", "metadata": [1]},
        {"role": "user", "tool_calls": ["x"]},
        {"role": "user", "created_at": datetime.min.replace(tzinfo=timezone(timedelta(hours=3)))},
    ):
        with pytest.raises(InputError):
            Message(**wrong)


def test_a_message_over_the_limit_is_rejected():
    with pytest.raises(MessageTooLarge):
        encode(Message.user("x" * (16 * 1024 * 1024)))


def test_metadata_is_a_copy():
    metadata = {"a": [1]}
    message = Message.user("x", metadata=metadata)
    metadata["a"].append(2)
    assert message.metadata == {"a": [1]}


@given(times)
def test_times_are_utc_to_the_microsecond(time):
    assert parse_time(format_time(time)) == time
    assert from_microseconds(microseconds(time)) == time
    local = time.astimezone(timezone(timedelta(hours=5, minutes=45)))
    assert encode(Message.user("x", created_at=local)) == encode(Message.user("x", created_at=time))
    assert encode(Message.user("x").at(local)) == encode(Message.user("x", created_at=time))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b'{"role":"x"}',
        b"\xff",
        b'{"role":"user","created_at":"x"}',
        b'{"role":"user","content":7}',
        b'{"role":"user","content":["x"]}',
        b'{"role":"user","name":7}',
        b'{"role":"user","tool_calls":{}}',
        b'{"role":"user","tool_calls":["x"]}',
        b'{"role":"user","metadata":null}',
        b'{"role":"user","metadata":{"n":NaN}}',
        b'{"role":"user","extra":{"n":1e999}}',
        b'{"role":"user","content":"\xed\xa0\x80"}',  # half a character, as no UTF-8 has it
        '{"role":"user","content":"x"}'.encode("utf-16"),
    ],
)
def test_what_is_not_a_message_is_corrupt(body):
    with pytest.raises(StoreCorrupt):
        decode(body)


@pytest.mark.parametrize("where", ["metadata", "extra", "content", "tool_calls"])
def test_escapes_of_unstorable_characters_are_replaced_and_flagged(where):
    fields = b'{"type":"text","text":"a\\u0000b\\ud800"}'
    value = fields if where in {"metadata", "extra"} else b"[%s]" % fields
    message = decode(b'{"role":"user","%s":%s}' % (where.encode(), value))
    held = getattr(message, where)
    clean = {"type": "text", "text": "a\u2400b\ufffd"}
    assert (held if isinstance(held, dict) else held[0].fields) == clean
    assert message.normalised


def test_lists_of_messages():
    shapes = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    assert dump_openai(load_openai(shapes)) == shapes
    assert load_openai(shapes[0]) == load_openai([Message.user("a")])
    for wrong in ("text", b"x", 7, None):
        with pytest.raises(InputError):
            load_openai(wrong)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "NaN",
        "[Infinity]",
        "[" * 100_000,
        "1" * 5000,
        b"\xff",
        '{"a": -Infinity}',
        "[" * 70 + "]" * 70,
    ],
)
def test_json_from_outside_is_strict(text):
    with pytest.raises(InputError):
        load_json(text)


@pytest.mark.promise("tamper-evident")
def test_golden_hashes():
    """They are in users' databases: a change here is a change of format."""
    message = Message.user(
        "Grüße 東京 👋", name="Ana", created_at=NOON, metadata={"b": 1, "a": [None]}
    )
    body = encode(message)
    assert body.decode() == (
        '{"role":"user","content":"Grüße 東京 👋","name":"Ana",'
        '"metadata":{"b":1,"a":[null]},"created_at":"2026-03-04T12:00:00.123456Z"}'
    )
    start = genesis(Key("default", "ticket-42"))
    assert start == ("sha256:5b00671cd6bddcfa5ab5eff4f9cced3b9d6477fcc9e7ebc8cfa40a6ee60f2c63")
    assert next_hash(start, body, 7, "o200k_base") == (
        "sha256:9976651fc802ef65d7fd05b0a32197aff463992e676f4d0d58e9417bc277c0ed"
    )


@pytest.mark.promise("tamper-evident")
def test_the_order_of_all_fields_is_part_of_the_format():
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    shape = {"role": "assistant", "content": "a\0", "name": "Ana", "tool_calls": [call], "x": 1}
    message = Message.from_openai(shape, metadata={"m": 2}, created_at=NOON)
    assert encode(message).decode() == (
        '{"role":"assistant","content":"a␀","name":"Ana","tool_calls":[{"id":"c",'
        '"type":"function","function":{"name":"f","arguments":"{}"}}],"extra":{"x":1},'
        '"metadata":{"m":2},"created_at":"2026-03-04T12:00:00.123456Z","normalised":true}'
    )
    assert decode(encode(message)) == message


@pytest.mark.promise("tamper-evident")
def test_the_chain_depends_on_everything_before_it():
    starts = {genesis(Key(t, c)) for t, c in (("a", "b"), ("b", "a"), ("a", "b c"), ("a b", "c"))}
    assert len(starts) == 4
    hashes = {
        next_hash(previous, body, tokens, tokenizer)
        for previous in ("x", "y")
        for body in (b"a", b"b")
        for tokens in (1, 2)
        for tokenizer in ("o200k_base", "o200k_base~")
    }
    assert len(hashes) == 16


class Bot(str, Enum):  # noqa: UP042 - whose str() is its name
    HELPER = "helper"


def test_text_of_other_classes_is_kept_as_its_characters():
    message = Message("tool", Bot.HELPER, name=Bot.HELPER, tool_call_id=Bot.HELPER)
    assert decode(encode(message)).to_openai() == {
        "role": "tool", "content": "helper", "name": "helper", "tool_call_id": "helper",
    }  # fmt: skip


def test_text_that_was_altered_on_its_way_in_is_flagged_and_plain_in_the_message():
    part = r'{"type": "text", "text": "a\u0000"}'
    said = load_json(rf'{{"role": "user", "content": [{part}], "x\ud800": "y\u0000"}}')
    message = Message.from_openai(said)
    assert message.normalised
    (part,) = message.content
    texts = [part.fields["text"], *message.extra, *message.extra.values()]
    assert [type(text) for text in texts] == [str, str, str]
    assert not Message.from_openai(load_json(r'{"role": "user", "content": "\ufffd"}')).normalised


def test_an_error_quotes_the_beginning_and_the_end_of_what_is_wrong():
    with pytest.raises(InputError) as caught:
        Message("x" * 100_000, "hello")
    text = str(caught.value)
    assert text.startswith("role: 'xxx")
    assert "xxx' is not one of " in text[-200:]
    assert len(text) < 3_000
