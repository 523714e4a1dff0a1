"""Compressed bytes: those of earlier versions are read, and anything but one frame is an error."""

import pytest

from firnline.log import zstd
from firnline.store import segments

TEXTS = "Order 1138 never arrived. Ärger!\0I will look into it.".encode()
# Written by another library, with the same settings.
EARLIER = (
    "00005d0100e04f726465722031313338206e6576642e20c3847267657221"
    "00496f6b03007915bae0708391e475b7d04a"
)


def test_segments_of_earlier_versions_are_read_and_written_alike():
    packed = bytes.fromhex(EARLIER)
    assert segments._decompress(packed, len(TEXTS)) == TEXTS
    assert segments._compress(TEXTS) == packed


@pytest.mark.parametrize("size", [0, 1, 100_000])
def test_what_was_compressed_comes_back(size):
    plain = bytes(n * n % 251 for n in range(size))
    assert zstd.decompress(zstd.compress(plain), size) == plain


@pytest.mark.parametrize(
    "damage",
    [lambda p: p[:-1], lambda p: p + b"x", lambda p: p + p, lambda p: b"", lambda p: b"no"],
)
def test_anything_but_one_whole_frame_is_an_error(damage):
    with pytest.raises(ValueError, match="zstd frame"):
        zstd.decompress(damage(zstd.compress(TEXTS)), 10_000)


def test_more_than_is_allowed_is_an_error():
    bomb = zstd.compress(bytes(50_000_000))
    assert len(bomb) < 10_000
    with pytest.raises(ValueError, match="too large"):
        zstd.decompress(bomb, 1_000)
