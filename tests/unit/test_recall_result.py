"""Results of recall tools, without a store: limits, and how few reads stats need."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from firnline import Entry, Head, Message
from firnline.engine.stats import measured
from firnline.log.entry import ProjectEntry
from firnline.log.hit import TextSpan
from firnline.log.tokens import counter
from firnline.recall.result import RecallPage, RecallWriter, format_runs, readable_text

NOW = datetime(2026, 3, 11, 12, tzinfo=UTC)
TEXTS = some.text(max_size=40) | some.integers(0, 3_000).map(lambda n: "wort \u2603" * n)


def _entries(texts, times=None):
    times = times or [NOW] * len(texts)
    totals = accumulate(len(text) for text in texts)
    return [
        Entry(seq, Message.user(text, created_at=at), len(text), total, "", "o200k_base")
        for seq, (text, at, total) in enumerate(zip(texts, times, totals, strict=True))
    ]


def _page(entries, *, ranked=False):
    own = [ProjectEntry("c", entry) for entry in entries]
    return RecallPage(tool="t", entries=own, rest=lambda _: "ask by id.", own="c", ranked=ranked)


@settings(deadline=None)
@given(some.lists(TEXTS, min_size=1, max_size=12), some.integers(200, 2_000), some.booleans())
def test_a_result_is_within_its_tokens_and_shows_something(texts, tokens_max, ranked):
    count = counter()
    text = RecallWriter(UTC, tokens_max, count).write(_page(_entries(texts), ranked=ranked))
    assert count.text(text) <= tokens_max
    assert '"id":0' in text


def test_a_text_with_more_tokens_than_its_parts_stays_within_its_limit():
    def more(text):
        return len(text) // 4 + (len(text) // 400) * 100, True

    count = replace(counter(), count_text=more, count_role=more)
    writer = RecallWriter(UTC, 500, count)
    text = writer.write(_page(_entries(["some words " * 8] * 20)))
    assert 0 < text.count('"id"') < 20
    assert more(text)[0] <= 500


LONG = (
    "The committee discussed the agenda of the quarter in some detail. " * 200
    + "Then Maria said that the key of the boathouse hangs behind the clock. It has a red ribbon. "
    + "Nothing else was decided on that day. " * 200
)


@pytest.mark.parametrize("limit", [300, 600, 2_000])
def test_of_a_long_message_as_much_is_shown_as_fits_around_its_passage(limit):
    count = counter()
    (entry,) = _entries([LONG])
    own = [ProjectEntry("c", replace(entry, tokens=count.text(LONG)))]
    start = LONG.index("the key of the boathouse")
    page = RecallPage(
        tool="t",
        entries=own,
        rest=lambda _: "",
        own="c",
        ranked=True,
        passages={0: (TextSpan(start, start + 60),)},
    )
    writer = RecallWriter(UTC, limit, count)
    text = writer.write(page)
    assert "the key of the boathouse hangs behind the clock. It has a red ribbon." in text
    assert text.count("more of message 0 is left out here") == 2
    assert limit // 2 < count.text(text) <= limit
    plain = writer.write(replace(page, passages={}))
    assert "boathouse" not in plain
    assert "the middle of message 0 is left out here" in plain


def test_of_several_long_messages_the_passages_are_shown():
    count = counter()
    entries = [replace(entry, tokens=count.text(LONG)) for entry in _entries([LONG] * 4)]
    start = LONG.index("the key of the boathouse")
    page = RecallPage(
        tool="t",
        entries=[ProjectEntry("c", entry) for entry in entries],
        rest=lambda _: "",
        own="c",
        ranked=True,
        passages=dict.fromkeys(range(4), (TextSpan(start, start + 70),)),
    )
    rows = json.loads(RecallWriter(UTC, 1_000, count).write(page))["messages"]
    assert len(rows) == 4
    assert {row["text"] for row in rows} == {f"[...] {LONG[start : start + 70]} [...]"}
    assert all(row["shortened"] for row in rows)


@pytest.mark.parametrize(
    ("numbers", "text"),
    [([], ""), ([3], "3"), ([4, 3, 5, 9, 1], "1, 3-5, 9"), (range(0, 20, 2), "0, 2, 4, ...")],
)
def test_numbers_are_written_as_runs(numbers, text):
    assert format_runs(numbers, 3) == text


def test_calls_in_other_shapes_are_readable():
    message = Message.from_openai(
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "wait"},
                {"type": "tool_use", "id": "1", "name": "find", "input": {"order": 7}},
                {"type": "input_audio", "input_audio": {}},
            ],
        }
    )
    assert readable_text(message) == 'wait\n[calls find {"order":7}]\n[audio]'


# -- stats ------------------------------------------------------------------------------------


class _Log:
    """A log that counts how often it is asked for a span of time."""

    def __init__(self, times):
        self.entries = _entries(["x"] * len(times), times)
        self.asked = 0
        self.head = Head("c", len(times) - 1, "", len(times), NOW, NOW)

    async def read(self, conversation, *, first_seq=0, last_seq=None, limit=None):
        return self.entries[first_seq : last_seq + 1]

    async def dated(self, conversation, since, until, *, limit=100):
        self.asked += 1
        times = ((entry.message.created_at, entry) for entry in self.entries)
        return [entry for at, entry in times if since <= at < until][:limit]


async def _span(times):
    log = _Log(times)
    result = await measured(log, log.head)
    return result.oldest, result.newest, log.asked


async def test_times_in_order_take_one_question_each():
    times = [NOW + timedelta(hours=hour) for hour in range(500)]
    assert await _span(times) == (times[0], times[-1], 2)


async def test_times_in_the_worst_order_take_few_more():
    times = [NOW - timedelta(hours=hour) for hour in range(500)]
    oldest, newest, asked = await _span(times)
    assert (oldest, newest) == (times[-1], times[0])
    zigzag = [NOW + timedelta(hours=hour * (-1) ** hour) for hour in range(500)]
    again = await _span(zigzag)
    assert again[:2] == (min(zigzag), max(zigzag))
    assert max(asked, again[2]) < 250


@settings(deadline=None)
@given(some.lists(some.datetimes(timezones=some.just(UTC)), min_size=1, max_size=20))
async def test_whatever_the_times_the_oldest_and_the_newest_are_found(times):
    assert (await _span(times))[:2] == (min(times), max(times))


async def test_a_time_right_in_the_middle_is_not_missed():
    near, last = NOW, datetime.max.replace(tzinfo=UTC)
    first = datetime.min.replace(tzinfo=UTC)
    late, early = near + (last - near) / 2, near + (first - near) / 2
    ends = [NOW - timedelta(1), NOW + timedelta(1)]
    for middle in (late, early):
        times = [ends[middle is early], near, middle, ends[middle is early]]
        assert (await _span(times))[:2] == (min(times), max(times))
