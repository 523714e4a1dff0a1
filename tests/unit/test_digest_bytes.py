"""Digests as bytes: every field is restored, older versions are read, damage is an error."""

import json
from datetime import UTC, datetime

import pytest

from firnline.errors import ConflictError, StoreCorrupt
from firnline.log.entry import Digest
from firnline.store.digests import checksum_of, decode_digest, encode_digest, mark_undone

FULL = Digest(
    version=7,
    first_seq=2,
    last_seq=9,
    base=6,
    layer=1,
    beside=(2, 4),
    parts=(5, 6),
    status="undone",
    text="東京",
    data={"x": [1]},
    receipt={"y": None},
    strategy="slide",
    made_by="m",
    tokens=3,
    calls=2,
    spent_tokens=900,
    milliseconds=12,
    error="e",
    created_at=datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
)


def test_every_field_comes_back():
    body = encode_digest(FULL)
    assert decode_digest(body, checksum_of(body)) == FULL
    assert encode_digest(decode_digest(body)) == body


def test_a_digest_stored_without_the_newer_fields_is_read():
    fields = json.loads(encode_digest(FULL))
    for name in ("layer", "beside", "parts", "strategy", "calls", "spent_tokens"):
        del fields[name]
    older = decode_digest(json.dumps(fields).encode())
    assert (older.layer, older.beside, older.parts, older.strategy) == (0, (), (), "")
    assert (older.calls, older.spent_tokens, older.text) == (0, 0, "東京")


@pytest.mark.promise("typed-failure")
@pytest.mark.parametrize("listed", [None, 3, "12", {"1": 2}, ["1"], [True], [1.0], [[1]]])
def test_versions_that_are_not_versions_are_damage(listed):
    for name in ("beside", "parts"):
        fields = {**json.loads(encode_digest(FULL)), name: listed}
        with pytest.raises(StoreCorrupt):
            decode_digest(json.dumps(fields).encode())


@pytest.mark.promise("typed-failure")
def test_other_bytes_than_the_checksum_says_are_damage():
    body = encode_digest(FULL)
    with pytest.raises(StoreCorrupt):
        decode_digest(body.replace(b"slide", b"slidf"), checksum_of(body))


def test_a_refusal_to_undo_says_what_could_be_undone():
    for newest, actual in ((None, None), (FULL, 7)):
        with pytest.raises(ConflictError) as caught:
            mark_undone(newest, 5)
        assert caught.value.context == {"expected_version": 5, "actual_version": actual}
