"""The baselines: the searches that one would write first, on plain SQLite.

They are kept fair: each sees speaker and text of every turn, each gets every question, each ranks
all turns, and what it ranks is packed by the same rule as what the memory returns.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from math import sqrt
from operator import mul
from typing import Final, NamedTuple

import apsw

from firnline.log.message import Message
from firnline.log.regex import regex
from firnline.log.tokens import counter
from firnline.protocols import Embedder

LIKE_WHOLE: Final = "SQL LIKE, whole question"
LIKE_WORDS: Final = "SQL LIKE, per keyword"
LAST: Final = "last messages only"
BM25: Final = "FTS5 bm25, porter"
VECTORS: Final = "vectors"
FUSED: Final = "bm25 + vectors (RRF)"

_RRF: Final = 60  # the constant of the paper that reciprocal-rank fusion comes from
_EMBED_PAGE: Final = 64
_WORD: Final = regex(r"\w+")
_FUNCTION_WORDS: Final = """
a about an and any are as at be been by can could did do does during for from had has have he her
his how i in is it its kind many me much my of on or s she should so some that the their them they
this to type was we were what when where which who whose why will with would you your
"""
"""Of the baseline: it must not change with the lists of what it is compared with."""

_SCHEMA: Final = """
CREATE TABLE turn (seq INTEGER PRIMARY KEY, speaker TEXT NOT NULL, text TEXT NOT NULL);
CREATE VIRTUAL TABLE word USING fts5 (
    speaker, text, content='turn', content_rowid='seq', tokenize='porter unicode61'
);
"""


# -- packing: one rule for all ----------------------------------------------------------------


class PackedTurn(NamedTuple):
    """A turn as it is packed: speaker, text, and the exact number of tokens."""

    speaker: str
    text: str
    tokens: int


def turn_of(message: Message) -> PackedTurn:
    """A message as a turn; without a name, the speaker is the role."""
    speaker = message.name or message.role
    return PackedTurn(speaker, message.text, turn_tokens(speaker, message.text))


def turn_tokens(speaker: str, text: str) -> int:
    """What a turn, or a part of it, takes."""
    return counter(encoding="o200k_base").text(f"{speaker}: {text}")


def pack(ranked: Iterable[int], turns: Sequence[PackedTurn], tokens: int) -> list[int]:
    """Complete turns, best first; a turn that does not fit is skipped."""
    taken: list[int] = []
    for seq in ranked:
        if turns[seq].tokens <= tokens:
            taken.append(seq)
            tokens -= turns[seq].tokens
    return taken


# -- ranking ----------------------------------------------------------------------------------


def names(embedder: Embedder | None) -> tuple[str, ...]:
    """The names of the baselines; those with vectors need an embedder."""
    plain = (LIKE_WHOLE, LIKE_WORDS, LAST, BM25)
    return (*plain, VECTORS, FUSED) if embedder else plain


class Baselines:
    """One conversation in a table in memory, and the rankings of its turns for a question."""

    def __init__(self, turns: Sequence[PackedTurn], embedder: Embedder | None = None) -> None:
        """Without an `embedder`, there are no vectors and no fusion."""
        self._count = len(turns)
        self._texts = [f"{turn.speaker}: {turn.text}" for turn in turns]
        self._embedder = embedder
        self._vectors: list[Sequence[float]] = []
        self._db = apsw.Connection(":memory:")
        self._db.execute(_SCHEMA)
        rows = [(seq, turn.speaker, turn.text) for seq, turn in enumerate(turns)]
        self._db.executemany("INSERT INTO turn VALUES (?, ?, ?)", rows)
        self._db.execute("INSERT INTO word (word) VALUES ('rebuild')")

    async def prepare(self) -> None:
        """Create the vectors of all turns."""
        if self._embedder is not None:
            for at in range(0, self._count, _EMBED_PAGE):
                page = self._texts[at : at + _EMBED_PAGE]
                self._vectors += map(_unit, await self._embedder.embed(page))

    async def rank(self, name: str, question: str) -> list[int]:
        """The turns that match, best first."""
        if name == LIKE_WHOLE:
            return self._like([question])
        if name == LIKE_WORDS:
            return self._like(keywords(question))
        if name == LAST:
            return list(range(self._count - 1, -1, -1))
        if name == BM25:
            return self._bm25(question)
        nearest = await self._nearest(question)
        return nearest if name == VECTORS else fuse(self._bm25(question), nearest)

    def _like(self, patterns: Sequence[str]) -> list[int]:
        """By the number of patterns in the turn, then by age, oldest first."""
        found: Counter[int] = Counter()
        for pattern in patterns:
            escaped = re.sub(r"([%_\\])", r"\\\1", pattern)
            rows = self._db.execute(
                r"SELECT seq FROM turn WHERE speaker || ': ' || text LIKE ? ESCAPE '\'",
                (f"%{escaped}%",),
            )
            found.update(seq for (seq,) in rows)
        return sorted(found, key=lambda seq: (-found[seq], seq))

    def _bm25(self, question: str) -> list[int]:
        """FTS5's ranking of any of the keywords; with all words it is worse."""
        words = " OR ".join(f'"{word}"' for word in keywords(question))
        if not words:
            return []
        sql = "SELECT rowid FROM word WHERE word MATCH ? ORDER BY rank, rowid"
        return [seq for (seq,) in self._db.execute(sql, (words,))]

    async def _nearest(self, question: str) -> list[int]:
        """By the cosine of the question's vector and the turn's."""
        if self._embedder is None:
            return []
        (asked,) = await self._embedder.embed([question])
        near = [_dot(asked, vector) for vector in self._vectors]
        return sorted(range(self._count), key=lambda seq: -near[seq])


def keywords(question: str) -> list[str]:
    """The question's words without stop words, if any are left."""
    words = list(dict.fromkeys(_WORD.findall(question.lower())))
    empty = _FUNCTION_WORDS.split()
    return [word for word in words if word not in empty] or words


def fuse(*rankings: Sequence[int]) -> list[int]:
    """Reciprocal-rank fusion of rankings."""
    score: dict[int, float] = {}
    for ranking in rankings:
        for rank, seq in enumerate(ranking, 1):
            score[seq] = score.get(seq, 0.0) + 1 / (_RRF + rank)
    return sorted(score, key=lambda seq: (-score[seq], seq))


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    total: float = sum(map(mul, one, other))
    return total


def _unit(vector: Sequence[float]) -> Sequence[float]:
    length = sqrt(_dot(vector, vector)) or 1.0
    return [number / length for number in vector]
