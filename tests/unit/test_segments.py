"""Archived segments: decoding returns what was encoded, or an error."""

import runpy
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firnline import Message
from firnline.errors import StoreCorrupt
from firnline.log.entry import Key, Record, genesis, next_hash
from firnline.log.message import encode, from_microseconds
from firnline.store import segments
from support.message_strategies import clean, messages, times

pytestmark = [pytest.mark.promise("archive-transparent"), pytest.mark.promise("tamper-evident")]

KEY = Key("t", "c")
ROOT = Path(__file__).parents[2]


def records_of(items, first_seq=0, total=0):
    """Records as a store would have them."""
    hash_, records = genesis(KEY), []
    for i, message in enumerate(items):
        body, tokens = encode(message), i * 3
        tokenizer = "o200k_base~" if i % 5 else "cl100k_base"
        hash_, total = next_hash(hash_, body, tokens, tokenizer), total + tokens
        records.append(Record(first_seq + i, body, tokens, total, hash_, tokenizer, archived=True))
    return records


said = st.builds(lambda message, time: message.at(time), messages, times)
plain = st.builds(
    lambda role, text, name, time: Message(role, text, name, created_at=time),
    st.sampled_from(["user", "assistant", "system", "tool", "developer"]),
    clean,
    st.none() | clean,
    times,
)


@settings(deadline=None)
@given(
    st.lists(said | plain, min_size=1, max_size=12), st.integers(0, 10**6), st.integers(0, 10**9)
)
def test_a_round_trip_is_the_identity(items, first_seq, total):
    records = records_of(items, first_seq, total)
    packed, checksum = segments.pack(records)
    back = segments.unpack(
        packed, checksum, first_seq=first_seq, hash_before=genesis(KEY), total_before=total
    )
    assert back == records


def test_any_flipped_byte_is_noticed():
    items = [Message.user(f"message {i} about ropes", created_at=_time(i)) for i in range(20)]
    records = records_of(items)
    packed, checksum = segments.pack(records)
    for i in range(len(packed)):
        for bit in (1, 0x10, 0x80):
            damaged = bytearray(packed)
            damaged[i] ^= bit
            try:
                back = segments.unpack(
                    bytes(damaged), checksum, first_seq=0, hash_before=genesis(KEY), total_before=0
                )
            except StoreCorrupt:
                continue
            assert back == records  # a bit that means nothing


def test_a_segment_of_another_format_is_rejected():
    packed, checksum = segments.pack(records_of([Message.user("x", created_at=_time(0))]))
    with pytest.raises(StoreCorrupt, match="format"):
        segments.unpack(b"\x09" + packed[1:], checksum, first_seq=0, hash_before="", total_before=0)


def test_spans_are_bounded():
    small = records_of([Message.user("x", created_at=_time(i)) for i in range(600)])
    assert [len(run) for run in segments.spans(small)] == [256, 256, 88]
    large = records_of([Message.user("x" * 400_000, created_at=_time(i)) for i in range(5)])
    assert [len(run) for run in segments.spans(large)] == [2, 2, 1]
    assert list(segments.spans([])) == []


def _time(i):
    return from_microseconds(1_700_000_000_000_000 + i * 61_234_567)


def test_the_dictionary_is_made_of_our_own_words_only():
    """It can be built again from what is in the repository, byte for byte."""
    build = runpy.run_path(str(ROOT / "tools" / "dictionary" / "build.py"))["build"]
    shipped = ROOT / "src" / "firnline" / "store" / "chat.zdict"
    assert shipped.read_bytes() == build()


def test_threads_pack_at_once_and_alike():
    messages = [Message.user(f"Order {n} is late.").at(from_microseconds(n)) for n in range(40)]
    records = records_of(messages)
    segments._dictionary.cache_clear()
    with ThreadPoolExecutor(8) as pool:
        packed = set(pool.map(lambda _: segments.pack(records), range(64)))
    assert packed == {segments.pack(records)}
