"""The size of an image in pixels, from its header. Pure; nothing is decoded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from firnline.log.attachment import EncodedBytes
from firnline.log.regex import regex

Size = tuple[int, int]

_SEGMENTS_MAX: Final = 500
"""Segments of a JPEG that are skipped to find its size: profiles and previews come before it."""
_BOXES_BYTES: Final = 65_536
"""The beginning of an AVIF or HEIC file that is searched for sizes."""
_FRAMES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_ALONE: Final = frozenset([0x01, *range(0xD0, 0xD9)])
_EXTENT: Final = regex(rb"ispe\0\0\0\0(.{8})", 16)  # 16: a dot is any byte
_BRANDS: Final = frozenset([b"avif", b"avis", b"heic", b"heix", b"hevc", b"heim", b"mif1", b"msf1"])


def image_size(data: EncodedBytes) -> Size | None:
    """Width and height; None if the header is of no known format, damaged, or says zero."""
    head = data.read(0, 64)
    for is_format, measure in _FORMATS:
        if is_format(head):
            size = measure(head, data)
            return size if size and min(size) > 0 else None
    return None


def _big(piece: bytes) -> int:
    return int.from_bytes(piece, "big")


def _little(piece: bytes) -> int:
    return int.from_bytes(piece, "little")


def _png(head: bytes, data: EncodedBytes) -> Size:
    return _big(head[16:20]), _big(head[20:24])


def _gif(head: bytes, data: EncodedBytes) -> Size:
    return _little(head[6:8]), _little(head[8:10])


def _bmp(head: bytes, data: EncodedBytes) -> Size:
    if _little(head[14:18]) == 12:
        return _little(head[18:20]), _little(head[20:22])
    width, height = (int.from_bytes(head[at : at + 4], "little", signed=True) for at in (18, 22))
    return width, abs(height)


def _webp(head: bytes, data: EncodedBytes) -> Size | None:
    kind = head[12:16]
    if kind == b"VP8X":
        return _little(head[24:27]) + 1, _little(head[27:30]) + 1
    if kind == b"VP8L":
        bits = _little(head[21:25])
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 ":
        return _little(head[26:28]) & 0x3FFF, _little(head[28:30]) & 0x3FFF
    return None


def _jpeg(head: bytes, data: EncodedBytes) -> Size | None:
    at = 2
    for _ in range(_SEGMENTS_MAX):
        segment = data.read(at, 9)
        if len(segment) < 4 or segment[0] != 0xFF:
            return None
        marker = segment[1]
        if marker == 0xFF:
            at += 1
        elif marker in _ALONE:
            at += 2
        elif marker in _FRAMES:
            return _big(segment[7:9]), _big(segment[5:7])
        else:
            at += 2 + max(_big(segment[2:4]), 2)
    return None


def _boxes(head: bytes, data: EncodedBytes) -> Size | None:
    """The largest extent: an image can consist of tiles and have a preview."""
    extents = _EXTENT.findall(data.read(0, _BOXES_BYTES))
    sizes = [(_big(each[:4]), _big(each[4:])) for each in extents]
    return max(sizes, key=lambda size: size[0] * size[1], default=None)


_FORMATS: Final[
    tuple[tuple[Callable[[bytes], bool], Callable[[bytes, EncodedBytes], Size | None]], ...]
] = (
    (lambda head: head.startswith(b"\x89PNG\r\n\x1a\n"), _png),
    (lambda head: head.startswith(b"\xff\xd8"), _jpeg),
    (lambda head: head.startswith((b"GIF87a", b"GIF89a")), _gif),
    (lambda head: head.startswith(b"RIFF") and head[8:12] == b"WEBP", _webp),
    (lambda head: head.startswith(b"BM"), _bmp),
    (lambda head: head[4:8] == b"ftyp" and head[8:12] in _BRANDS, _boxes),
)
