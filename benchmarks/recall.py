"""What recall costs in a long conversation, compared with plain full-text search."""

from __future__ import annotations

import random
import time
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from itertools import cycle, islice

import apsw

from benchmarks.bench import LONG, Bench, opened, url
from benchmarks.measure import Side, costs, in_turns, milliseconds, timed
from benchmarks.table import Row, at_least, at_most, progress
from firnline import Memory, Message, strategies
from firnline.embedding import WordEmbedder
from firnline.embedding.quantize import pack
from firnline.language.terms import query_terms
from firnline.log.entry import Key
from firnline.protocols import Vector
from firnline.recall.vectors import NearestVectors
from firnline.topics import Rules, match_topics

LIMIT = 10
QUESTION_WORDS = 8
DIMENSION = 384
WORDS = 30
PLAIN = "SELECT rowid, rank FROM plain WHERE plain MATCH ? ORDER BY rank LIMIT ?"


def questions(bench: Bench) -> Iterator[str]:
    """Questions: words that occur together in the messages."""
    chosen = random.Random(1)
    texts = [m.text for m in bench.messages if len(m.text.split()) >= QUESTION_WORDS]
    while True:
        words = chosen.choice(texts).split()
        start = chosen.randrange(len(words) - QUESTION_WORDS + 1)
        yield f"What was said about {' '.join(words[start : start + QUESTION_WORDS])}?"


async def search(bench: Bench) -> AsyncIterator[Row]:
    """Recall by words among many entries, and FTS5 alone on the same texts, in turns."""
    entries = bench.searched_entries
    async with opened(url(await bench.searched())) as memory:
        progress(f"recall: indexing {entries:,} entries")
        await memory.recall(LONG, "anything")
        ours, other = _recall(bench, memory), await _plain(bench, memory, entries)
        pairs = await in_turns(ours, other, bench.size(100, 5), "recall")
    yield Row(
        f"recall: {LIMIT} of {entries:,} entries",
        milliseconds(pairs.ours),
        f"{milliseconds(pairs.other)} FTS5 alone",
        pairs.cost,
        at_most(3.0),
    )
    p50 = sorted(pairs.ours)[len(pairs.ours) // 2] * 1e3
    # On an idle machine of two cores; a busy one misses it.
    yield Row(f"recall: p50 of {entries:,}", f"{p50:.1f} ms", "", p50, at_most(20.0), " ms")


async def million(bench: Bench) -> AsyncIterator[Row]:
    """The same in a conversation of a million."""
    entries = bench.size(1_000_000, 20_000)
    async with opened(url(await bench.million())) as memory:
        progress(f"recall: indexing {entries:,} entries")
        started = time.perf_counter()
        await memory.recall(LONG, "anything")
        indexed = time.perf_counter() - started
        found = await costs(_recall(bench, memory), bench.size(60, 5), "recall")
    yield Row(f"recall: index {entries:,} entries", f"{entries / indexed:,.0f}/s")
    yield Row(f"recall: {LIMIT} of {entries:,} entries", milliseconds(found))


async def vectors(bench: Bench) -> AsyncIterator[Row]:
    """The nearest of many vectors; random ones, because real ones would take an hour."""
    entries = bench.size(100_000, 2_000)
    key, model = Key("default", LONG), "random"
    async with opened(url(await bench.searched())) as memory:
        await _put_vectors(memory, key, model, entries)
        nearest = NearestVectors(memory.store)
        asked = _vector(random.Random(2))
        started = time.perf_counter()
        await nearest.find(key, model, asked, LIMIT)
        loaded = time.perf_counter() - started
        found = await costs(
            timed(lambda: nearest.find(key, model, asked, LIMIT)), bench.size(60, 5), "vectors"
        )
    yield Row(
        f"vectors: {LIMIT} nearest of {entries:,}", milliseconds(found), f"{loaded:.2f} s first"
    )


async def embed(bench: Bench) -> AsyncIterator[Row]:
    """Messages embedded in the background, in seconds of all cores; 30 words each."""
    words = " ".join(message.text for message in bench.messages).split()
    texts = [" ".join(words[at : at + WORDS]) for at in range(0, len(words) - WORDS, WORDS)]
    texts = list(islice(cycle(texts), bench.size(2_000, 20)))
    async with Memory.open(url(bench.new_path("embed")), embedder="minilm", worker=False) as memory:
        await memory.recall(LONG, "anything")  # loads the model
        await memory.append(LONG, [Message.user(f"{n}: {text}") for n, text in enumerate(texts)])
        started = time.process_time()
        await memory.embed(LONG)
        speed = len(texts) / (time.process_time() - started)
    yield Row("embed: minilm, 30 words", f"{speed:,.0f}/s of CPU", "", speed, at_least(300), "/s")


async def topics(bench: Bench) -> AsyncIterator[Row]:
    """Seed C's figures: a message added without a digest, matched to a topic, a topic restored."""
    strategy = strategies.topics()
    async with opened(url(bench.new_path("topics")), strategy=strategy, worker=False) as memory:
        added = await costs(_add(bench, memory), bench.size(200, 5), "topics")
        yield _seed_row("topics: add a message", added, 1.0)
        await memory.topics(LONG)
        matched = await costs(await _match(bench, memory), bench.size(100, 5), "topics")
        yield _seed_row("topics: match a message (of 20 topics)", matched, 2.0)
        restored = await costs(_restore(bench, memory), bench.size(40, 3), "topics")
        yield _seed_row("topics: restore 12 messages", restored, 5.0)


def _seed_row(what: str, found: list[float], limit: float) -> Row:
    ms = sorted(found)[len(found) // 2] * 1e3
    return Row(what, milliseconds(found), f"the seed has {limit:g} ms", ms, at_most(limit), " ms")


def _recall(bench: Bench, memory: Memory) -> Side:
    asked = questions(bench)
    return timed(lambda: memory.recall(LONG, next(asked), limit=LIMIT))


async def _plain(bench: Bench, memory: Memory, entries: int) -> Side:
    """FTS5 on the same texts: all words of the question, ranked, nothing else."""
    connection = apsw.Connection(str(bench.new_path("plain")))
    connection.execute(
        "CREATE VIRTUAL TABLE IF NOT EXISTS plain"
        " USING fts5 (text, content = '', tokenize = 'porter')"
    )
    if not connection.execute("SELECT count(*) FROM plain").get:
        texts = bench.endless_messages()
        with connection:
            for number in range(entries):
                connection.execute(
                    "INSERT INTO plain (rowid, text) VALUES (?, ?)", (number, next(texts).text)
                )
    asked = questions(bench)

    async def work() -> None:
        words = " OR ".join(f'"{" ".join(term)}"' for term in query_terms(next(asked)))
        found = connection.execute(PLAIN, (words, LIMIT)).fetchall()
        await memory.store.at(Key("default", LONG), [number for number, _ in found])

    return timed(work)


def _vector(chosen: random.Random) -> list[float]:
    return [chosen.gauss(0, 1) for _ in range(DIMENSION)]


async def _put_vectors(memory: Memory, key: Key, model: str, entries: int) -> None:
    chosen = random.Random(1)
    page = 2_000
    for first in range(await memory.store.embedded(key, model), entries, page):
        progress(f"vectors: {first:,} of {entries:,} stored")
        end = min(first + page, entries)
        made = [Vector(seq, 0, pack(_vector(chosen))) for seq in range(first, end)]
        await memory.store.put_vectors(key, model, made, first_seq=first, next_seq=end)


def _add(bench: Bench, memory: Memory) -> Side:
    messages = bench.endless_messages()
    return timed(lambda: memory.append(LONG, next(messages)))


async def _match(bench: Bench, memory: Memory) -> Side:
    """One more message, assigned to one of twenty topics; its vector is made beforehand."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    texts = (message.text for message in bench.endless_messages())
    for number in range(20):
        text = f"subject{number} " * 3 + next(texts)
        await memory.append("matching", Message.user(text, created_at=at + timedelta(days=number)))
    await memory.topics("matching")
    known = (await memory.store.topics(Key("default", "matching"))).topics.values()
    embedder = WordEmbedder()
    vector = (await embedder.embed(["subject7 subject7 subject7 once more"]))[0]

    async def work() -> None:
        match_topics(vector, embedder.name, known, Rules())

    return timed(work)


def _restore(bench: Bench, memory: Memory) -> Side:
    """Twelve archived messages of one topic made live again."""
    key = Key("default", "restoring")
    messages = bench.endless_messages()

    async def side() -> float:
        appended = await memory.append("restoring", [next(messages) for _ in range(12)])
        span = appended[0].seq, appended[-1].seq
        await memory.store.archive(key, *span)
        started = time.perf_counter()
        await memory.store.restore(key, *span)
        return time.perf_counter() - started

    return side
