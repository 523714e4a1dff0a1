"""Learn the codebook of token vectors, for `firnline.embedding.codebook`.

    python tools/codebook/build.py

It is learned from chats written for the tests and from phrases written for the purpose
(``tools/dictionary``, CC0), a few together as a message. What the vectors that MiniLM gives to
their tokens do not share with the text's is put into 256 groups, and what is left of it into 256
others. Then put the SHA-256 that is printed into ``codebook.py``. Needs ``firnline[recall]``.
"""

import hashlib
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from firnline.embedding.codebook import CENTERS, STAGES, residuals
from firnline.embedding.minilm import batches, cut
from firnline.embedding.onnx import Session

ROOT = Path(__file__).parents[2]
TARGET = ROOT / "src" / "firnline" / "embedding" / "codebook.bin"
PHRASES = ("support", "assistant", "conversations", "plans", "feelings", "everyday")
SPEAKERS = ("Ann", "Maria", "Tom", "James", "user", "assistant", "Ben", "Julia")
ROUNDS = 10


def messages() -> Iterator[str]:
    """The texts that it is learned from, as they are embedded."""
    drawn = random.Random(1)  # noqa: S311 - the same in every run
    for name in PHRASES:
        text = (ROOT / "tools" / "dictionary" / f"{name}.txt").read_text("utf-8")
        lines = [line.strip() for line in text.split("\n") if line.strip()]
        drawn.shuffle(lines)
        while lines:
            some = [lines.pop() for _ in range(min(drawn.randint(2, 5), len(lines)))]
            yield f"{drawn.choice(SPEAKERS)}: {' '.join(some)}"
    chats = json.loads((ROOT / "tests" / "support" / "evidence_chats.json").read_text("utf-8"))
    for chat in chats:
        for turns in chat["conversation"].values():
            if isinstance(turns, list):
                yield from (f"{turn['speaker']}: {turn['text']}" for turn in turns)


def token_residuals() -> np.ndarray:
    """What the tokens of the messages do not share with the vectors of these."""
    session, found = Session.load(), []
    pieces = cut(session, list(messages()))
    for places in batches([len(ids) for ids in pieces]):
        batch = [pieces[place] for place in places]
        for vector, rows in zip(session.texts(batch), session.rows(batch), strict=True):
            found.append(residuals(np.array(vector, np.float32), rows)[1])
    return np.concatenate(found)


def groups(rows: np.ndarray, seed: int) -> np.ndarray:
    """The centers of groups of near vectors (k-means)."""
    drawn = np.random.default_rng(seed)
    centers = rows[drawn.choice(len(rows), CENTERS, replace=False)]
    for _ in range(ROUNDS):
        of = nearest(rows, centers)
        for number in range(CENTERS):
            mine = rows[of == number]
            centers[number] = mine.mean(axis=0) if len(mine) else drawn.choice(rows)
    return centers


def nearest(rows: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """The number of each row's nearest center."""
    return (rows @ centers.T - (centers**2).sum(axis=1) / 2).argmax(axis=1)


def build() -> bytes:
    """The codebook's bytes."""
    left, scales, steps = token_residuals(), [], []
    for stage in range(STAGES):
        centers = groups(left, stage)
        scale = np.float32(np.abs(centers).max() / 127)
        rounded = np.round(centers / scale).astype(np.int8)
        left = left - (rounded * scale)[nearest(left, rounded * scale)]
        scales.append(scale)
        steps.append(rounded.tobytes())
    return np.array(scales, "<f4").tobytes() + b"".join(steps)


if __name__ == "__main__":
    packed = build()
    TARGET.write_bytes(packed)
    sys.stdout.write(f"{hashlib.sha256(packed).hexdigest()}\n")
