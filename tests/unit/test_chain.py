"""Verification: every difference from what was acknowledged is named with its place."""

from dataclasses import replace

import pytest

from firnline.errors import StoreCorrupt
from firnline.log.chain import Audit, LogProblem, checked_entries
from firnline.log.entry import Head, Key, next_hash
from firnline.log.message import encode
from firnline.store.ram import RamStore
from firnline.testing import draft, drafts
from firnline.testing.drafts import START

pytestmark = pytest.mark.promise("tamper-evident")

KEY = Key("t", "c")


@pytest.fixture
async def log():
    """Five records and their head."""
    store = RamStore(clock=lambda: START)
    await store.open()
    await store.append(KEY, drafts("abcde"))
    return await store.records(KEY, 0, 10), await store.head(KEY)


def _problems(records, head: Head, key: Key = KEY, anchor: str | None = None) -> list[str]:
    audit = Audit(key, anchor)
    audit.take(records)
    return [str(problem) for problem in audit.close(head).problems]


def test_a_full_log_has_no_problems(log):
    assert _problems(*log) == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            {"body": encode(draft("X").message)},
            "message 2: the stored message does not match its hash",
        ),
        ({"hash": "sha256:0"}, "message 2: the stored message does not match its hash"),
        ({"tokens": 1}, "message 2: the stored message does not match its hash"),
        ({"total": 1}, "message 2: the running token total is wrong"),
        ({"tokenizer": "cl100k_base"}, "message 2: the stored message does not match its hash"),
        ({"problem": "unreadable"}, "message 2: unreadable"),
    ],
)
def test_a_change_of_any_field_is_found(log, change, expected):
    records, head = log
    records = [replace(r, **change) if r.seq == 2 else r for r in records]
    assert expected in _problems(records, head)


def test_what_is_not_a_message_is_found_even_under_a_right_hash(log):
    records, head = log
    body = b'{"role":"nobody"}'
    last = replace(
        records[4],
        body=body,
        hash=next_hash(records[3].hash, body, records[4].tokens, "o200k_base"),
    )
    found = _problems([*records[:4], last], replace(head, hash=last.hash))
    assert found == ["message 4: the stored bytes are not a message"]


def test_missing_swapped_repeated_and_cut_off_entries_are_found(log):
    records, head = log
    a, b, c, d, e = records
    assert "messages 1 to 2 are missing" in _problems([a, d, e], head)
    assert "out of order" in _problems([a, b, b, c, d, e], head)
    assert _problems([a, replace(c, seq=1), replace(b, seq=2), d, e], head)
    assert _problems([a, b, c, d], head) == ["the log ends after 4 messages, 5 were acknowledged"]
    assert _problems([], head) == ["the log ends after 0 messages, 5 were acknowledged"]


def test_an_entry_replaced_together_with_its_hash_breaks_the_next_one(log):
    records, head = log
    body = encode(draft("X").message)
    forged = replace(
        records[1],
        body=body,
        hash=next_hash(records[0].hash, body, records[1].tokens, "o200k_base"),
    )
    assert "message 2: the stored message does not match its hash" in _problems(
        [records[0], forged, *records[2:]], head
    )


def test_the_recorded_head_is_compared(log):
    records, head = log
    assert _problems(records, replace(head, hash="x")) == [
        "the last hash does not match the recorded head"
    ]
    assert _problems(records, replace(head, tokens=7)) == [
        "the token total does not match the recorded one"
    ]


def test_a_log_under_another_name_is_not_the_same_log(log):
    assert "message 0: the stored message does not match its hash" in _problems(
        *log, key=Key("t", "d")
    )


def test_entries_behind_the_head_were_never_acknowledged(log):
    records, head = log
    audit = Audit(KEY)
    audit.take(records)
    audit.check_extra(replace(head, seq=9), head)  # appended since: fine
    assert audit.problems == []
    audit.check_extra(head, head)
    assert audit.problems == [LogProblem("there are messages after the recorded head")]


def test_an_anchor_must_be_met(log):
    records, head = log
    assert _problems(records, head, anchor=records[2].hash) == []
    assert "different log" in _problems(records, head, anchor="sha256:0")[0]


def test_reading_stops_at_the_first_flaw(log):
    records, _ = log
    damaged = [records[1], replace(records[2], body=b"{}"), records[3]]
    with pytest.raises(StoreCorrupt, match="message 2") as caught:
        checked_entries(damaged, records[0].hash)
    assert caught.value.context == {"seq": 2}
    assert [e.seq for e in checked_entries(records[3:], records[2].hash)] == [3, 4]
