"""Work on users' text takes time in proportion to it, and long work leaves the loop free."""

import asyncio
import json
import re
import threading
import time
from contextlib import contextmanager
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firnline import Message
from firnline.context import marks
from firnline.context.context import Piece, _merged
from firnline.digest import items
from firnline.embedding.wordpiece import wordpiece
from firnline.errors import InputError, MessageTooLarge, ModelError
from firnline.language import date_words, stop_words
from firnline.language.names import fold_name
from firnline.language.statements.preferences import LIST_SPLIT
from firnline.language.terms import fold, index_terms
from firnline.log import json_text, limits, threads
from firnline.log.entry import Entry
from firnline.log.json_text import parse_json
from firnline.log.message import Part, decode, encode, encode_json
from firnline.log.threads import run_by_size, text_size
from firnline.models.answers import AnswerPieces
from firnline.models.events import read_events
from firnline.server.bodies import json_pieces
from firnline.server.proxy.align import overlap
from firnline.server.proxy.blocks import BlockReader
from firnline.server.proxy.json_prefix import JsonPrefix
from firnline.server.proxy.request import find_conversation_name

SECONDS = 4
"""Each case took much longer before, on an idle machine."""
RECALLED = re.escape(marks.RECALLED_START)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@contextmanager
def quick():
    begun = time.process_time()
    yield
    assert time.process_time() - begun < SECONDS


def test_marks_of_recalled_text_without_ends_are_read_once():
    start, end = marks.RECALLED_START, marks.RECALLED_END
    lines = [f"{start}\n", f"x{start}\n", f"\n{end}x\n"]
    for line in lines:
        text = line * 15_000
        with quick():
            assert list(marks.quoted_sections(Entry(9, Message.user(text), 1, 1, "", ""))) == []
            assert marks.without(Message.user(text), frozenset(["x"])).content == text


@given(st.lists(st.sampled_from([marks.RECALLED_START, marks.RECALLED_END, "\n", "\n", "(0) x"])))
def test_a_section_is_from_its_first_line_to_the_next_last_line(pieces):
    text, section = "".join(pieces), f"{RECALLED}\n.*?\n{re.escape(marks.RECALLED_END)}"
    found = re.findall(f"^{section}$", text, re.DOTALL | re.MULTILINE)
    with_seqs = [each for each in found[: limits.ECHO_SECTIONS_MAX] if "\n(0) x" in each]
    sections = list(marks.quoted_sections(Entry(9, Message.user(text), 1, 1, "", "")))
    assert [each.text for each in sections] == with_seqs
    cut = marks.without(Message.user(text), frozenset(found)).content
    assert cut == re.sub(f"^{section}$", " ", text, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(
    ("user", "name"),
    [
        ("user_1_account__session_12345678-ab", "12345678-ab"),
        ("_session_1_session_12345678", "12345678"),
        ("_session_12345678_session_1", "12345678_session_1"),
        ("_session_1234567", None),
        ("a\n_session_12345678", None),
        ("_session_12345678!", None),
        ("_session_" + "1" * 201, None),
        ("_session_" * 30_000 + "!", None),
    ],
)
def test_the_session_in_a_user_id_is_the_last_that_is_long_enough(user, name):
    with quick():
        found = find_conversation_name(None, {}, {"metadata": {"user_id": user}})
    assert (found and found.conversation) == name


def test_a_list_is_split_once_at_each_separator():
    assert LIST_SPLIT.split("a ,  b,and c \n and d y e") == ["a", "b", "c", "d", "e"]
    with quick():
        assert len(LIST_SPLIT.split("a" + " " * 50_000 + "b")) == 1


def test_one_preference_with_many_values_is_merged():
    named = {f"tea{' ' * (i % 100)}{'_' * (i // 100)}": str(i) for i in range(8_000)}
    with quick():
        merged = items.merge((), items.items_from_data({"user_preferences": named}))
    assert [item.value for item in merged if item.superseded_by is None] == ["7999"]


def test_important_data_has_a_limit():
    with pytest.raises(InputError, match="the limit is 1,048,576"):
        items.items_from_data({"important_facts": ["x" * limits.DATA_CHARS_MAX]})


def test_many_neighbours_are_joined():
    messages = [{"role": "user", "content": "x" * 1_000} for _ in range(10_000)]
    with quick():
        assert len(_merged(messages, [Piece(Message.user("x"), 1)] * 10_000)) == 1


async def test_a_long_line_may_come_in_small_pieces():
    async def pieces():
        for _ in range(200_000):
            yield b"12345"
        yield b"\n\n"

    with quick():
        assert [len(data) async for data in read_events(_after(b"data: ", pieces()))] == [1_000_000]


async def _after(first, more):
    yield first
    async for piece in more:
        yield piece


def test_blocks_may_come_in_small_pieces():
    reader, block = BlockReader(), {"type": "tool_use", "input": {}}
    with quick():
        reader.read({"type": "content_block_start", "index": 0, "content_block": block})
        for text in ('{"a": "', *["x" * 8] * 200_000, '"}'):
            delta = {"type": "input_json_delta", "partial_json": text}
            reader.read({"type": "content_block_delta", "index": 0, "delta": delta})
        reader.read({"type": "content_block_start", "index": 1, "content_block": {"type": "text"}})
        for _ in range(100_000):
            delta = {"type": "text_delta", "text": "x" * 8}
            reader.read({"type": "content_block_delta", "index": 1, "delta": delta})
        made = reader.content()
    assert [len(made[0]["input"]["a"]), len(made[1]["text"])] == [1_600_000, 800_000]


@pytest.mark.parametrize(
    ("start", "piece"),
    [('{"a": ', " "), ("{", "\t"), ('{"a": 1', "\n"), ('{"a"', " "), ('{"a": "', "x"), ("{}", " ")],
)
def test_the_input_of_a_call_may_come_in_small_pieces(start, piece):
    prefix = JsonPrefix()
    with quick():
        prefix.add(start)
        for _ in range(20_000):
            prefix.add(piece * 64)


def test_a_number_in_the_input_of_a_call_has_a_limit():
    prefix = JsonPrefix()
    prefix.add('{"a": 1')
    with quick(), pytest.raises(ModelError, match="too long"):
        for _ in range(200_000):
            prefix.add("1" * 8)


def test_arguments_may_come_in_small_pieces():
    pieces = AnswerPieces("test")
    with quick():
        for _ in range(200_000):
            call = {"index": 0, "id": "1", "function": {"name": "f", "arguments": "x" * 8}}
            pieces.add({"choices": [{"delta": {"tool_calls": [call]}}]})
        (made,) = pieces.fields()["tool_calls"]
    assert len(made["function"]["arguments"]) == 1_600_000


MARKS = ("\u0301", "\u0327\u0301", "\u0f73\u0301", "\uff9e\u0f71", "\u0344\u0327")
"""Combining marks, some of them only after decomposition."""


@pytest.mark.parametrize("work", [fold, index_terms, fold_name, date_words.fold, stop_words.fold])
def test_many_combining_marks_are_folded_in_linear_time(work):
    for piece in MARKS:
        with quick():
            work("a" + piece * 20_000)
            work("a" + piece[::-1] * 10_000 + piece[:1] * 10_000)
            work("a" + "".join(sorted(piece * 20_000, reverse=True)))


def test_many_combining_marks_are_embedded_in_linear_time():
    with quick():
        # Marks that its own table does not count as accents.
        list(wordpiece().pieces("a" + "\U0001d16d" * 60_000 + "\U0001d165" * 60_000))


def test_equal_messages_are_aligned_in_linear_time():
    sent = [Message.user("hi")] * 3_000
    log = [Entry(at, message, 1, at + 1, "o200k", "") for at, message in enumerate(sent)]
    with quick():
        assert overlap(sent, log).messages == 3_000


# -- JSON -------------------------------------------------------------------------------------


@given(JSON)
def test_pieces_of_json_are_the_json(value):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "LOOP_CHARS_MAX", 8)
        assert "".join(json_pieces(value)) == encode_json(value)


@given(JSON)
def test_slow_and_fast_encoders_agree(value):
    fast = encode_json(value), json_text.dump_json(value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "_VALUES_MAX", -1)
        assert (encode_json(value), json_text.dump_json(value)) == fast


def test_what_has_many_values_is_encoded_in_python():
    """The fast encoder keeps the interpreter's lock for all that time."""
    assert not threads.has_many_values({"a": [1] * 9_000, "b": {"c": "x" * 10**6}})
    for many in ([[]] * 30_000, {"a": {"b": dict.fromkeys(map(str, range(30_000)))}}):
        assert threads.has_many_values(many)


def test_a_message_has_no_more_parts_than_each_step_can_look_at():
    part = {"type": "text", "text": "x"}
    most = Message.from_openai({"role": "user", "content": [part] * limits.PARTS_MAX})
    assert decode(encode(most)) == most
    with pytest.raises(MessageTooLarge, match="10,001 parts; the limit is 10,000"):
        encode(replace(most, content=(*most.content, Part(part))))


@given(JSON)
def test_slow_and_fast_parsers_agree(value):
    text = json.dumps(value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_text, "_SHORT", -1)
        patch.setattr(json_text, "_COST_MAX", -1)
        assert parse_json(text) == parse_json(text.encode()) == value


@pytest.mark.parametrize("text", ["", "[", "{", "[1,]", '{"a"}', "nul", "NaN", "[" * 100_000])
def test_slow_and_fast_parsers_reject_the_same(text, monkeypatch):
    monkeypatch.setattr(json_text, "_SHORT", -1)
    monkeypatch.setattr(json_text, "_COST_MAX", -1)

    def reject(name):
        raise ValueError(name)

    with pytest.raises((ValueError, RecursionError)):
        parse_json(text, parse_constant=reject)


def test_a_stored_message_of_many_values_is_read_by_the_slow_parser(monkeypatch):
    """The fast one keeps the interpreter's lock for all that time."""
    message, slow = Message.user("x", metadata={"x": [[]] * 400_000}), []
    decode_slow = json_text._SlowDecoder.decode
    monkeypatch.setattr(
        json_text._SlowDecoder, "decode", lambda *a, **b: slow.append(1) or decode_slow(*a, **b)
    )
    assert decode(encode(message)) == message
    assert slow


# -- threads ----------------------------------------------------------------------------------


@given(JSON)
def test_the_size_of_a_value_is_near_that_of_its_json(value):
    size = text_size(value, 10**9)
    assert size <= 9 * len(encode_json(value))
    assert text_size(value, 100) == min(size, 100)


async def test_only_long_work_runs_in_a_thread():
    here = threading.get_ident()
    assert await run_by_size(limits.LOOP_CHARS_MAX, threading.get_ident) == here
    assert await run_by_size(limits.LOOP_CHARS_MAX + 1, threading.get_ident) != here
    await asyncio.sleep(0)
