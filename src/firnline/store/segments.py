"""Archived entries: columns of what a run of entries has in common, compressed together.

A plain text message costs its text, one byte for its role and a few for its time and its tokens;
any other message is kept as its canonical bytes. What is decoded is compared with a checksum of the
plain bytes, and its hashes are derived again, so a damaged segment is an error and never a text.

The dictionary is part of the package. It is not trained on the user's own messages: fragments of
them would live on in it after `erase`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from importlib import resources
from typing import Final

import zstandard

from firnline import limits
from firnline.errors import StoreCorrupt
from firnline.log import Record, chain
from firnline.message import ROLES, Message, encode, from_microseconds, microseconds, parse_time

LEVEL: Final = 19
_FORMAT: Final = 1
_RAW: Final = 0
_NAMED: Final = 16
_MORE: Final = 0x80
_CHECKSUM_BYTES: Final = 16


def spans(records: Iterable[Record]) -> Iterator[list[Record]]:
    """Cut consecutive records into runs that make good segments."""
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
    """Compress records; returns the segment's bytes and the checksum of its plain bytes."""
    plain = _columns(records)
    return bytes([_FORMAT]) + _compressor().compress(plain), _checksum(plain)


def unpack(
    packed: bytes, checksum: bytes, *, first_seq: int, hash_before: str, total_before: int
) -> list[Record]:
    """The records of a segment; anything but what was packed raises `StoreCorrupt`."""
    if packed[:1] != bytes([_FORMAT]):
        raise StoreCorrupt("an archived segment has a format this Firnline does not know")
    try:
        plain = _decompressor().decompress(packed[1:], max_output_size=1 << 30)
    except zstandard.ZstdError as error:
        raise StoreCorrupt("an archived segment cannot be decompressed") from error
    if _checksum(plain) != checksum:
        raise StoreCorrupt("an archived segment does not match its checksum")
    return _records(plain, first_seq, hash_before, total_before)


def _checksum(plain: bytes) -> bytes:
    return hashlib.sha256(plain).digest()[:_CHECKSUM_BYTES]


# -- columns ----------------------------------------------------------------------------------


def _columns(records: Sequence[Record]) -> bytes:
    """kinds, names, lengths, times, tokens, tokenizers, then all texts."""
    texts: list[bytes] = []
    kinds, lengths, times, tokens = bytearray(), bytearray(), bytearray(), bytearray()
    names: dict[str, int] = {}
    name_of = bytearray()
    tokenizers: dict[str, int] = {}
    tokenizer_of = bytearray()
    now = 0
    for record in records:
        plain = _plain_message(record.body)
        if plain is None:
            kinds.append(_RAW)
            text = record.body
            at = record.created_at
        else:
            role, text, name, at = plain
            kinds.append(1 + ROLES.index(role) + (_NAMED if name is not None else 0))
            if name is not None:
                _put(name_of, names.setdefault(name, len(names)))
        _put(times, _zigzag(at - now))
        now = at
        _put(lengths, len(text))
        texts.append(text)
        _put(tokens, record.tokens)
        _put(tokenizer_of, tokenizers.setdefault(record.tokenizer, len(tokenizers)))
    if len(tokenizers) == 1:
        tokenizer_of.clear()  # one for all of them
    table = json.dumps([list(tokenizers), list(names)], separators=(",", ":")).encode()
    header = bytearray()
    _put(header, len(records))
    _put(header, len(table))
    return b"".join((header, table, kinds, name_of, lengths, times, tokens, tokenizer_of, *texts))


def _plain_message(body: bytes) -> tuple[str, bytes, str | None, int] | None:
    """Role, text, name and time, if they are all there is to the message; else None."""
    fields = json.loads(body)
    text, name, at = fields.get("content"), fields.get("name"), fields.get("created_at")
    if not isinstance(text, str) or at is None:
        return None
    time = parse_time(at)
    if encode(Message(fields["role"], text, name, created_at=time)) != body:
        return None
    return fields["role"], text.encode(), name, microseconds(time)


def _records(plain: bytes, first_seq: int, previous: str, total: int) -> list[Record]:
    data = _Reader(plain)
    count = data.number()
    tokenizers, names = json.loads(data.take(data.number()))
    kinds = data.take(count)
    name_of = [names[data.number()] if kind > _NAMED else None for kind in kinds]
    lengths = [data.number() for _ in kinds]
    times = [_unzigzag(data.number()) for _ in kinds]
    tokens = [data.number() for _ in kinds]
    tokenizer_of = [data.number() if len(tokenizers) > 1 else 0 for _ in kinds]
    records: list[Record] = []
    now = 0
    for i, kind in enumerate(kinds):
        text = data.take(lengths[i])
        now += times[i]
        if kind == _RAW:
            body = text
        else:
            role = ROLES[(kind & (_NAMED - 1)) - 1]
            time = from_microseconds(now)
            body = encode(Message(role, text.decode(), name_of[i], created_at=time))
        previous = chain(previous, body)
        total += tokens[i]
        tokenizer = tokenizers[tokenizer_of[i]]
        records.append(
            Record(first_seq + i, body, now, tokens[i], total, previous, tokenizer, archived=True)
        )
    return records


def _put(column: bytearray, number: int) -> None:
    """Append a number, seven bits a byte."""
    while number >= _MORE:
        column.append(number & 0x7F | _MORE)
        number >>= 7
    column.append(number)


def _zigzag(number: int) -> int:
    return number * 2 if number >= 0 else -number * 2 - 1


def _unzigzag(number: int) -> int:
    return -(number + 1) // 2 if number & 1 else number // 2


class _Reader:
    """Walks over bytes that `_put` and friends wrote."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        start = self._at
        self._at += size
        return self._data[start : self._at]

    def number(self) -> int:
        value, shift = 0, 0
        while True:
            byte = self._data[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            if byte < _MORE:
                return value
            shift += 7


# -- the codec --------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _dictionary() -> zstandard.ZstdCompressionDict:
    data = resources.files("firnline").joinpath("store/chat.zdict").read_bytes()
    dictionary = zstandard.ZstdCompressionDict(data)
    dictionary.precompute_compress(level=LEVEL)
    return dictionary


def _compressor() -> zstandard.ZstdCompressor:
    return zstandard.ZstdCompressor(
        level=LEVEL, dict_data=_dictionary(), write_checksum=False, write_dict_id=False
    )


def _decompressor() -> zstandard.ZstdDecompressor:
    return zstandard.ZstdDecompressor(dict_data=_dictionary())
