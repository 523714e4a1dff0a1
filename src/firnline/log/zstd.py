"""Zstandard: of Python 3.14's own library, or of its backport. What is unpacked is bounded."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Final

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Dictionary = zstd.ZstdDict
Parameter = zstd.CompressionParameter
Options = Mapping[int, int]

_LEVEL: Final = 3


def compress(
    plain: bytes, options: Options | None = None, dictionary: Dictionary | None = None
) -> bytes:
    """One frame. A dictionary is prepared once for each level, and may be shared by threads."""
    chosen: Options = options or {Parameter.compression_level: _LEVEL}
    prepared = dictionary.as_digested_dict if dictionary else None
    compressor = zstd.ZstdCompressor(options=chosen, zstd_dict=prepared)
    return compressor.compress(plain, mode=compressor.FLUSH_FRAME)


def decompress(packed: bytes, bytes_max: int, dictionary: Dictionary | None = None) -> bytes:
    """The bytes of exactly one frame; `ValueError` if it is damaged, cut or too large."""
    decompressor = zstd.ZstdDecompressor(zstd_dict=dictionary)
    try:
        plain = decompressor.decompress(packed, max_length=max(bytes_max, 1))
    except zstd.ZstdError as error:
        raise ValueError(f"not a zstd frame: {error}") from error
    if not decompressor.eof or decompressor.unused_data:
        raise ValueError("a zstd frame is cut, too large, or followed by other bytes")
    return plain
