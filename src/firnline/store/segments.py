"""Archived entries: columns with the metadata of a run of entries, and their compressed texts.

A plain text message costs its compressed text and a few bytes for its role, time and tokens; any
other message is stored as its canonical bytes. Unpacking verifies a checksum and recomputes the
hashes, so a damaged segment raises an error and never returns wrong text.

The compression dictionary is part of the package. It is not trained on the user's messages, because
fragments of them would remain in it after `erase`.

Layout: format, size of columns, size of texts, columns, texts (one zstd frame, NUL between texts,
which no stored text contains). Columns: kinds, names, tokenizers, times, tokens.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from importlib import resources
from itertools import pairwise
from typing import Final

from firnline.errors import InputError, StoreCorrupt
from firnline.log import limits, zstd
from firnline.log.entry import TOKENIZERS, Record, next_hash
from firnline.log.message import (
    ROLES,
    Message,
    Role,
    decode,
    encode,
    from_microseconds,
    microseconds,
)

LEVEL: Final = 19
_MAGIC: Final = b"\x28\xb5\x2f\xfd"  # begins every frame, so it is not stored
_OPTIONS: Final[zstd.Options] = {
    zstd.Parameter.compression_level: LEVEL,
    zstd.Parameter.checksum_flag: 0,
    zstd.Parameter.content_size_flag: 0,
    zstd.Parameter.dict_id_flag: 0,
}
_FORMAT: Final = 1
_RAW: Final = 0  # a message with more fields than the columns hold
_NAMED: Final = 8  # added to the kind of a message that has a name
_MIXED: Final = 0xFF  # a segment's tokens were counted by several tokenizers
_MORE: Final = 0x80
_TEXT_BYTES_MAX: Final = limits.SEGMENT_BYTES_MAX + 2 * limits.MESSAGE_BYTES_MAX
_CHECKSUM_BYTES: Final = 16


def spans(records: Iterable[Record]) -> Iterator[list[Record]]:
    """Split consecutive records into runs of the size of a segment."""
    run: list[Record] = []
    size = 0
    for record in records:
        full = len(run) >= limits.SEGMENT_ENTRIES_MAX
        if run and (full or size + len(record.body) > limits.SEGMENT_BYTES_MAX):
            yield run
            run, size = [], 0
        run.append(record)
        size += len(record.body)
    if run:
        yield run


def pack(records: Sequence[Record]) -> tuple[bytes, bytes]:
    """Compress records; returns the segment's bytes and their checksum."""
    columns, texts = _columns(records)
    header = bytearray([_FORMAT])
    _put(header, len(columns))
    _put(header, len(texts))
    packed = bytes(header + columns) + _compress(texts)
    return packed, _checksum(packed, texts)


def unpack(
    packed: bytes, checksum: bytes, *, first_seq: int, hash_before: str, total_before: int
) -> list[Record]:
    """The records of a segment; damage raises `StoreCorrupt`."""
    if packed[:1] != bytes([_FORMAT]):
        raise StoreCorrupt("an archived segment has an unknown format")
    try:
        data = _ColumnReader(packed[1:])
        columns_size, texts_size = data.number(), data.number()
        columns = data.take(columns_size)
        texts = _decompress(data.rest(), texts_size)
    except (ValueError, IndexError) as error:
        raise StoreCorrupt("an archived segment cannot be decompressed") from error
    if _checksum(packed, texts) != checksum:
        raise StoreCorrupt("an archived segment does not match its checksum")
    try:
        return _records(columns, texts, first_seq, hash_before, total_before)
    except (ValueError, LookupError, OverflowError, StopIteration, InputError) as error:
        raise StoreCorrupt("an archived segment has invalid contents") from error


def _checksum(packed: bytes, texts: bytes) -> bytes:
    """Covers the stored bytes and the texts: neither the disk nor the codec is trusted."""
    size = len(packed).to_bytes(8, "big")
    return hashlib.sha256(size + packed + texts).digest()[:_CHECKSUM_BYTES]


# -- columns ----------------------------------------------------------------------------------


def _columns(records: Sequence[Record]) -> tuple[bytes, bytes]:
    """The columns of a run of records, and its texts: first the names, then the messages."""
    kinds: list[int] = []
    texts: list[bytes] = []
    times: list[int] = []
    names: dict[str, int] = {}
    columns, name_of = bytearray(), bytearray()
    for record in records:
        plain = _plain_message(record.body)
        if plain is None:
            kinds.append(_RAW)
            texts.append(record.body)
            continue
        role, text, name, at = plain
        kinds.append(1 + ROLES.index(role) + (_NAMED if name is not None else 0))
        texts.append(text)
        times.append(at)
        if name is not None:
            _put(name_of, names.setdefault(name, len(names)))
    _put(columns, len(records))
    _put(columns, len(names))
    columns += _nibbles(kinds) + name_of + _tokenizers(records)
    _put_times(columns, times)
    for record in records:
        _put(columns, record.tokens)
    return bytes(columns), b"\0".join([*(name.encode() for name in names), *texts])


def _plain_message(body: bytes) -> tuple[Role, bytes, str | None, int] | None:
    """Role, text, name and time, or None if the message has other fields."""
    message = decode(body)
    text, time = message.content, message.created_at
    if not isinstance(text, str) or time is None:
        return None
    if encode(Message(message.role, text, message.name, created_at=time)) != body:
        return None
    return message.role, text.encode(), message.name, microseconds(time)


def _nibbles(kinds: Sequence[int]) -> bytes:
    padded = [*kinds, 0]
    return bytes(padded[i] << 4 | padded[i + 1] for i in range(0, len(kinds), 2))


def _tokenizers(records: Sequence[Record]) -> bytes:
    used = [TOKENIZERS.index(record.tokenizer) for record in records]
    return bytes(used[:1]) if len(set(used)) == 1 else bytes([_MIXED, *used])


def _put_times(column: bytearray, times: Sequence[int]) -> None:
    """Append the first time, then the steps, in the coarsest lossless unit."""
    steps = [b - a for a, b in pairwise(times)]
    unit = math.gcd(*steps) or 1
    _put(column, unit)
    if times:
        _put(column, _zigzag(times[0]))
    for step in steps:
        _put(column, _zigzag(step // unit))


def _records(
    columns: bytes, texts: bytes, first_seq: int, previous: str, total: int
) -> list[Record]:
    """The inverse of `_columns`."""
    data = _ColumnReader(columns)
    count, name_count = data.number(), data.number()
    parts = texts.split(b"\0")
    names, bodies = parts[:name_count], parts[name_count:]
    kinds = data.nibbles(count)
    name_of = [names[data.number()].decode() if kind > _NAMED else None for kind in kinds]
    tokenizers = data.tokenizers(count)
    times = iter(data.times(sum(kind != _RAW for kind in kinds)))
    records: list[Record] = []
    for i, kind in enumerate(kinds):
        body = bodies[i]
        if kind != _RAW:
            role = ROLES[kind % _NAMED - 1]
            time = from_microseconds(next(times))
            body = encode(Message(role, body.decode(), name_of[i], created_at=time))
        tokens = data.number()
        previous = next_hash(previous, body, tokens, tokenizers[i])
        total += tokens
        records.append(
            Record(first_seq + i, body, tokens, total, previous, tokenizers[i], archived=True)
        )
    return records


def _put(column: bytearray, number: int) -> None:
    """Append a number, seven bits per byte."""
    while number >= _MORE:
        column.append(number & 0x7F | _MORE)
        number >>= 7
    column.append(number)


def _zigzag(number: int) -> int:
    """Encode a signed number as unsigned; small numbers stay small."""
    return number * 2 if number >= 0 else -number * 2 - 1


class _ColumnReader:
    """Reads the columns in order."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        start = self._at
        self._at += size
        return self._data[start : self._at]

    def rest(self) -> bytes:
        return self._data[self._at :]

    def number(self) -> int:
        value, shift = 0, 0
        while True:
            byte = self._data[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            if byte < _MORE:
                return value
            shift += 7

    def signed(self) -> int:
        number = self.number()
        return -(number + 1) // 2 if number & 1 else number // 2

    def nibbles(self, count: int) -> list[int]:
        packed = self.take((count + 1) // 2)
        return [half for byte in packed for half in (byte >> 4, byte & 0xF)][:count]

    def tokenizers(self, count: int) -> list[str]:
        first = self.take(1)[0]
        used = self.take(count) if first == _MIXED else bytes([first]) * count
        return [TOKENIZERS[index] for index in used]

    def times(self, count: int) -> list[int]:
        unit, times = self.number(), [self.signed()] if count else []
        for _ in range(count - 1):
            times.append(times[-1] + self.signed() * unit)
        return times


# -- the codec --------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _dictionary() -> zstd.Dictionary:
    data = resources.files("firnline").joinpath("store/chat.zdict").read_bytes()
    return zstd.Dictionary(data, is_raw=True)


def _compress(texts: bytes) -> bytes:
    frame = zstd.compress(texts, _OPTIONS, _dictionary())
    return frame.removeprefix(_MAGIC)


def _decompress(packed: bytes, size: int) -> bytes:
    if size > _TEXT_BYTES_MAX:
        raise StoreCorrupt("an archived segment claims more than the maximum size")
    return zstd.decompress(_MAGIC + packed, size, _dictionary())
