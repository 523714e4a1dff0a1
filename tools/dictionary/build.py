"""Build the dictionary that archived segments are compressed with.

    python tools/dictionary/build.py

It contains no user's messages: phrases and words written for the purpose (the texts here, CC0), and
the most frequent tokens of the o200k_base vocabulary. What is most likely to be needed comes last,
where zstd reaches it with the fewest bits. The result depends on nothing but these files.
"""

import base64
import gzip
from pathlib import Path

HERE = Path(__file__).parent
PACKAGE = HERE.parents[1] / "src" / "firnline"
TOKEN_BYTES = 30_000
TOKEN_LENGTH_MIN = 5
LINES = ("languages", "code")  # line breaks and indentation matter in these
PHRASES = ("support", "assistant", "conversations", "plans", "feelings", "everyday")


def build() -> bytes:
    """The dictionary's bytes."""
    words = (HERE / "words.txt").read_bytes()
    lines = b"".join((HERE / f"{name}.txt").read_bytes() for name in LINES)
    phrases = b" ".join(
        (HERE / f"{name}.txt").read_bytes().replace(b"\n", b" ") for name in PHRASES
    )
    return frequent_tokens(words + lines + phrases) + words + lines + phrases


def frequent_tokens(known: bytes) -> bytes:
    """Frequent tokens that are not in `known`, the most frequent last."""
    packed = (PACKAGE / "log" / "vocabulary" / "o200k_base.tiktoken.gz").read_bytes()
    chosen: list[bytes] = []
    size = 0
    for line in gzip.decompress(packed).splitlines():
        token = base64.b64decode(line.split()[0])
        wordy = token.isascii() and any(chr(byte).isalpha() for byte in token)
        if len(token) < TOKEN_LENGTH_MIN or not wordy or token in known:
            continue
        size += len(token)
        if size > TOKEN_BYTES:
            break
        chosen.append(token)
    return b"".join(reversed(chosen))


if __name__ == "__main__":
    (PACKAGE / "store" / "chat.zdict").write_bytes(build())
