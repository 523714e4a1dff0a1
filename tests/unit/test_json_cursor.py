"""JSON read value by value: the same values as `json.loads`, in the memory of one."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firnline.log import limits
from firnline.transfer.formats.cursor import Cursor, Malformed, records
from firnline.transfer.formats.records import Notes, SourceFile
from support.message_strategies import json_values


class Trickle(io.BytesIO):
    """A stream that gives a few bytes at a time, whatever is asked for."""

    def __init__(self, data, step):
        super().__init__(data)
        self._step = step

    def read(self, size=-1, /):
        return super().read(min(size, self._step) if size >= 0 else self._step)


@given(st.lists(json_values, max_size=5), st.integers(1, 9), st.booleans())
def test_the_items_of_an_array_are_those_of_json_loads(values, step, ascii_only):
    data = json.dumps(values, ensure_ascii=ascii_only, indent=step % 3 or None).encode()
    cursor = Cursor(Trickle(data, step))
    assert [cursor.value() for _ in cursor.items()] == values
    assert cursor.peek() == ""


@given(
    st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), json_values),
    st.integers(1, 9),
)
def test_the_members_of_an_object_are_those_of_json_loads(value, step):
    cursor = Cursor(Trickle(json.dumps(value).encode(), step))
    assert {name: cursor.value() for name in cursor.members()} == value


@given(st.lists(json_values, max_size=5), st.integers(1, 9))
def test_json_lines_are_read_line_by_line(values, step):
    data = "".join(json.dumps(value) + "\n" for value in values if value != []).encode()
    notes = Notes()
    stream = Trickle(data, step)
    if not data.startswith(b"["):
        got = [value for _, value in records(SourceFile("x", stream), notes)]
        assert got == [value for value in values if value != []]
        assert not notes.not_understood


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"[1,", b"[1 2]", b"[1]]", b"{]", b'{"a" 1}', b"{1:2}", b"nope", b"[" * 200_000),
        *(b"[" + b"9" * 5_000 + b"]", b'["\xff', b"[NaN}"),
    ],
)
def test_what_is_not_json_is_an_error_that_says_where(data):
    cursor = Cursor(io.BytesIO(data))
    with pytest.raises(Malformed, match="not JSON at byte"):
        for _ in cursor.items() if data.startswith(b"[") else cursor.members():
            cursor.value()
        raise cursor.malformed("there is more") if cursor.peek() else AssertionError


def test_a_value_that_never_ends_is_not_read_to_its_end(monkeypatch):
    monkeypatch.setattr(limits, "IMPORT_VALUE_CHARS_MAX", 4 * 1024**2)
    stream = io.BytesIO(b'["' + b"x" * 32 * 1024**2)
    cursor = Cursor(stream)
    with pytest.raises(Malformed, match="limit of 4,194,304 characters"):
        for _ in cursor.items():
            cursor.value()
    assert stream.tell() <= 16 * 1024**2


def test_an_error_early_in_a_large_file_is_found_at_once():
    stream = io.BytesIO(b"[1 2" + b" " * 32 * 1024**2)
    cursor = Cursor(stream)
    with pytest.raises(Malformed, match="at byte 3"):
        for _ in cursor.items():
            cursor.value()
    assert stream.tell() <= 2 * 1024**2
