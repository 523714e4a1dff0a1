"""How long a recording is, from its headers. Pure; nothing is decoded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from firnline.log.attachment import EncodedBytes

_TAIL_BYTES: Final = 65_536
"""The end of an Ogg file that is searched for its last page."""
_BOXES_MAX: Final = 200
"""Boxes of an MP4 file, or chunks of a WAV file, that are skipped."""
_OPUS_RATE: Final = 48_000
_MP3_RATES: Final = (
    (11_025, 12_000, 8_000),
    (),
    (22_050, 24_000, 16_000),
    (44_100, 48_000, 32_000),
)
_MP3_KBITS: Final = (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)
_MP3_KBITS_LOW: Final = (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)
_HOUR_BYTES: Final = 3_600 * 750
"""An hour at 6 kbit/s, less than any recording of speech has."""


def audio_seconds(data: EncodedBytes) -> float | None:
    """Seconds; None if the header is of no known format or damaged.

    A header cannot claim more than the bytes could hold.
    """
    head = data.read(0, 64)
    for is_format, measure in _FORMATS:
        if is_format(head):
            seconds = measure(head, data)
            if seconds is None or seconds < 0:
                return None
            return min(seconds, 3_600 * data.size / _HOUR_BYTES)
    return None


def _big(piece: bytes) -> int:
    return int.from_bytes(piece, "big")


def _little(piece: bytes) -> int:
    return int.from_bytes(piece, "little")


def _ratio(count: int, rate: int) -> float | None:
    return count / rate if rate else None


def _wav(head: bytes, data: EncodedBytes) -> float | None:
    at, rate = 12, 0
    for _ in range(_BOXES_MAX):
        chunk = data.read(at, 24)
        if len(chunk) < 8:
            return None
        size = _little(chunk[4:8])
        if chunk[:4] == b"fmt ":
            rate = _little(chunk[16:20])
        elif chunk[:4] == b"data":
            return _ratio(min(size, data.size - at - 8), rate)  # a stream's size is not known
        at += 8 + size + size % 2
    return None


def _flac(head: bytes, data: EncodedBytes) -> float | None:
    rate, samples = _big(head[18:21]) >> 4, _big(head[21:26]) & 0xFFFFFFFFF
    return _ratio(samples, rate) if samples else None


def _ogg(head: bytes, data: EncodedBytes) -> float | None:
    first = head[28:]
    if first.startswith(b"OpusHead"):
        rate, skipped = _OPUS_RATE, _little(first[10:12])
    elif first.startswith(b"\x01vorbis"):
        rate, skipped = _little(first[12:16]), 0
    else:
        return None
    tail = data.read(max(data.size - _TAIL_BYTES, 0), _TAIL_BYTES)
    last = tail.rfind(b"OggS")
    position = _little(tail[last + 6 : last + 14]) if last >= 0 else 0
    return _ratio(max(position - skipped, 0), rate) if position < 1 << 62 else None


def _mp4(head: bytes, data: EncodedBytes) -> float | None:
    at = 0
    for _ in range(_BOXES_MAX):
        box = data.read(at, 16)
        if len(box) < 8:
            return None
        size, kind, header = _big(box[:4]), box[4:8], 8
        if size == 1:
            size, header = _big(box[8:16]), 16
        if kind == b"moov":
            at += header  # its boxes follow
        elif kind == b"mvhd":
            return _movie_seconds(data.read(at + header, 32))
        elif size < header:
            return None
        else:
            at += size
    return None


def _movie_seconds(fields: bytes) -> float | None:
    if fields[:1] == b"\x01":
        return _ratio(_big(fields[24:32]), _big(fields[20:24]))
    return _ratio(_big(fields[16:20]), _big(fields[12:16]))


def _mp3(head: bytes, data: EncodedBytes) -> float | None:
    at = 0
    if head.startswith(b"ID3"):
        high, middle, low, lowest = (byte & 0x7F for byte in head[6:10])
        at = 10 + (high << 21 | middle << 14 | low << 7 | lowest)
    frame = data.read(at, 64)
    if len(frame) < 48 or not _is_frame(frame):
        return None
    version, mono = frame[1] >> 3 & 3, frame[3] >> 6 == 3
    newest = version == 3
    rate = _MP3_RATES[version][frame[2] >> 2 & 3]
    side = 4 + ((17 if mono else 32) if newest else (9 if mono else 17))
    if frame[side : side + 4] in (b"Xing", b"Info") and frame[side + 7] & 1:
        return _big(frame[side + 8 : side + 12]) * (1_152 if newest else 576) / rate
    kbits = (_MP3_KBITS if newest else _MP3_KBITS_LOW)[(frame[2] >> 4) - 1]
    return (data.size - at) / (kbits * 125)


def _is_frame(frame: bytes) -> bool:
    """Whether these bytes start a frame of MPEG layer III with a known rate."""
    sync = frame[0] == 0xFF and frame[1] & 0xE6 == 0xE2
    return sync and frame[1] >> 3 & 3 != 1 and frame[2] >> 2 & 3 != 3 and 0 < frame[2] >> 4 < 15


_FORMATS: Final[
    tuple[tuple[Callable[[bytes], bool], Callable[[bytes, EncodedBytes], float | None]], ...]
] = (
    (lambda head: head.startswith(b"RIFF") and head[8:12] == b"WAVE", _wav),
    (lambda head: head.startswith(b"fLaC"), _flac),
    (lambda head: head.startswith(b"OggS"), _ogg),
    (lambda head: head[4:8] == b"ftyp", _mp4),
    (lambda head: head.startswith(b"ID3") or (head[:1] == b"\xff" and len(head) > 2), _mp3),
)
