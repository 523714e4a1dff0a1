"""How many pages a PDF has and how much text, without rendering it. Pure.

Only compressed text is unpacked, up to a limit, so neither a bomb nor a large file takes long.
What cannot be read (an encrypted file, an unusual filter) is None, and the caller estimates.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final, NamedTuple

from firnline.log import limits
from firnline.log.attachment import EncodedBytes
from firnline.log.regex import regex

_HEAD_BYTES: Final = 1_024
_PAGE: Final = regex(rb"/Type\s{0,8}/Page(?![A-Za-z])")
_COUNT: Final = regex(rb"/Count\s{1,8}(\d{1,9})")
_LINEAR: Final = regex(rb"/N\s{1,8}(\d{1,9})")
_FILTER: Final = regex(rb"/(?:LZW|ASCII85|ASCIIHex|RunLength)Decode|/Crypt")
_NOT_TEXT: Final = (b"/Image", b"/Length1", b"/FontFile", b"/ICCBased", b"/XRef", b"/XML")
_DICT_BYTES: Final = 512
_HEX: Final = b"0123456789abcdefABCDEF \r\n\t"


class Pdf(NamedTuple):
    """What is known of a PDF; None is unknown."""

    pages: int | None
    chars: int | None
    """Characters of text on all pages together."""


def is_pdf(data: EncodedBytes) -> bool:
    """Whether it starts like a PDF."""
    return b"%PDF-" in data.read(0, _HEAD_BYTES)


def read_pdf(data: EncodedBytes) -> Pdf:
    """The pages and the text of a PDF."""
    content = data.read(0, data.size)
    encrypted = b"/Encrypt" in content
    pages, counts, chars = len(_PAGE.findall(content)), _counts(content), 0
    known = not encrypted and _FILTER.search(content) is None
    left = limits.PDF_UNPACKED_BYTES_MAX
    for about, stream in _streams(content):
        if encrypted:
            break
        unpacked = stream
        if b"FlateDecode" in about:
            unpacked, complete = _unpack(stream, left)
            left -= len(unpacked)
            known &= complete
        if b"/ObjStm" in about:
            pages += len(_PAGE.findall(unpacked))
            counts += _counts(unpacked)
        elif b"BT" in unpacked and (b"Tj" in unpacked or b"TJ" in unpacked):
            chars += _count_chars(unpacked)
    return Pdf(_pages(pages, counts, content), chars if known else None)


def _pages(pages: int, counts: list[int], content: bytes) -> int | None:
    """Pages that an update replaced are still there: the tree's count is less then."""
    if pages:
        return min(pages, max(counts, default=pages), limits.PDF_PAGES_MAX)
    head = content[:_HEAD_BYTES]
    linear = _LINEAR.search(head) if b"/Linearized" in head else None
    count = int(linear[1]) if linear else max(counts, default=0)
    return min(count, limits.PDF_PAGES_MAX) or None


def _counts(content: bytes) -> list[int]:
    return [count for digits in _COUNT.findall(content) if (count := int(digits))]


def _streams(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Each stream that can have text, or pages in it, with the dictionary before it."""
    at = 0
    while (start := content.find(b"stream", at)) >= 0:
        end = content.find(b"endstream", start)
        if end < 0:
            return
        at = end + len(b"endstream")
        about = content[max(start - _DICT_BYTES, 0) : start]
        about = about[about.rfind(b"obj") + 1 :]
        if not any(mark in about for mark in _NOT_TEXT):
            yield about, content[start + len(b"stream") : end].lstrip(b"\r\n")


def _unpack(stream: bytes, most: int) -> tuple[bytes, bool]:
    """A stream's content, up to `most` bytes, and whether that is all of it."""
    if most <= 0:
        return b"", False
    unpacker = zlib.decompressobj()
    try:
        return unpacker.decompress(stream, most), not unpacker.unconsumed_tail
    except zlib.error:
        return b"", False


def _count_chars(content: bytes) -> int:
    """The characters in the strings of a page: in parentheses, or as hexadecimal digits."""
    plain = sum(_size(piece, b")") for piece in content.split(b"(")[1:])
    return plain + sum(_count_hex(piece) for piece in content.split(b"<")[1:])


def _size(piece: bytes, end: bytes) -> int:
    found = piece.find(end)
    return len(piece) if found < 0 else found


def _count_hex(piece: bytes) -> int:
    """Two digits are a character in one font, four in another: the middle is assumed."""
    digits = piece[: max(piece.find(b">"), 0)]
    return len(digits) // 3 if not digits.translate(None, _HEX) else 0
