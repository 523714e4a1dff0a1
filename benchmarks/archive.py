"""How small archived entries are, against the usual base64(gzip(JSON)) of the same messages."""

from __future__ import annotations

import base64
import gzip
import json
import random
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta

from benchmarks.bench import Bench
from benchmarks.measure import in_turns, megabytes, timed_call
from benchmarks.table import Row, at_least
from firnline import Message
from firnline.log.entry import Key, Record, genesis, next_hash
from firnline.log.message import decode, encode, format_time
from firnline.log.tokens import counter
from firnline.store import segments

LENGTHS = (10, 20, 50)
_GENESIS = genesis(Key("default", "sample"))


async def sizes(bench: Bench) -> AsyncIterator[Row]:
    """Bytes for runs of messages of each length, then the speed."""
    records = _records(bench.messages)
    for length in LENGTHS:
        runs = _runs(records, length)
        plain = [_plain_json(run) for run in runs]
        theirs = sum(len(_gzipped(text)) for text in plain)
        # The checksum is not in the bytes of the segment, but it is stored with them.
        ours = sum(len(body) + len(checksum) for body, checksum in map(segments.pack, runs))
        less = 1 - ours / sum(map(len, plain))
        yield Row(
            f"archive: {length} messages, {less:.1%} less than JSON",
            f"{ours / len(runs):,.0f} bytes",
            f"{theirs / len(runs):,.0f} bytes base64(gzip(JSON))",
            theirs / ours,
            at_least(2),
        )
    for row in await _speeds(bench, _runs(records, LENGTHS[-1])):
        yield row


async def _speeds(bench: Bench, runs: Sequence[Sequence[Record]]) -> list[Row]:
    size = sum(len(item.body) for run in runs for item in run)
    packed = [segments.pack(run) for run in runs]
    zipped = [_gzipped(_plain_json(run)) for run in runs]
    times = bench.size(5, 1)
    pack = await in_turns(
        timed_call(lambda: [segments.pack(run) for run in runs]),
        timed_call(lambda: [_gzipped(_plain_json(run)) for run in runs]),
        times,
        "archive",
    )
    unpack = await in_turns(
        timed_call(
            lambda: [_unpack(run[0], *pair) for run, pair in zip(runs, packed, strict=True)]
        ),
        timed_call(lambda: [json.loads(gzip.decompress(base64.b64decode(z))) for z in zipped]),
        times,
        "archive",
    )
    return [
        Row(
            f"archive: {what}",
            megabytes(size, pairs.ours),
            megabytes(size, pairs.other),
            pairs.speed,
        )
        for what, pairs in (("pack", pack), ("unpack, every hash derived", unpack))
    ]


def _unpack(first: Record, packed: bytes, checksum: bytes) -> list[Record]:
    # What comes before only has to be the same every time.
    return segments.unpack(
        packed, checksum, first_seq=first.seq, hash_before=_GENESIS, total_before=0
    )


def _records(messages: Sequence[Message]) -> list[Record]:
    """The messages as a store would hold them, said at times as uneven as real ones."""
    uneven = random.Random(1)
    count = counter()
    now = datetime(2026, 1, 5, 9, tzinfo=UTC)
    records: list[Record] = []
    previous, total = _GENESIS, 0
    for seq, message in enumerate(messages):
        now += timedelta(seconds=uneven.uniform(2, 120))
        body = encode(message.at(now))
        tokens = count.message(message)
        previous, total = next_hash(previous, body, int(tokens), tokens.tokenizer), total + tokens
        records.append(Record(seq, body, int(tokens), total, previous, tokens.tokenizer))
    return records


def _runs(records: Sequence[Record], length: int) -> list[Sequence[Record]]:
    """All complete runs of `length` neighbors."""
    starts = range(0, len(records) - length + 1, length)
    return [records[start : start + length] for start in starts]


def _plain_json(run: Sequence[Record]) -> bytes:
    rows = []
    for record in run:
        message = decode(record.body)
        at = "" if message.created_at is None else format_time(message.created_at)
        row = {"role": message.role, "content": message.text}
        rows.append({**row, "created_at": at, "tokens": record.tokens})
    return json.dumps(rows).encode()


def _gzipped(plain: bytes) -> bytes:
    return base64.b64encode(gzip.compress(plain))
