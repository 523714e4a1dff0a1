"""The chats to learn from: their vectors, and mixes of their topics."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from firnline.topics import Rules, is_followup
from firnline.topics.rounds import answered_text, answers
from support.topic_scores import GoldChat

Vector = np.ndarray[Any, np.dtype[np.float64]]
Vectors = Mapping[str, Vector]
RULES = Rules()


class Mix(NamedTuple):
    """How topics of several chats are mixed: how many, and how many rounds at a time."""

    chats: int
    topics: tuple[int, int]
    first: tuple[int, ...]
    later: tuple[int, ...]


MIXES = (
    Mix(90, (4, 5), (1, 1, 2, 2, 3), (1, 1, 2)),
    Mix(18, (5, 6), (1,), (1,)),
    Mix(18, (12, 18), (1, 2, 2, 3), (1, 1, 2)),
)
"""Chats in the files have few topics of a few rounds; others have many, or single questions."""
OPENED = 0.55
"""How often a new topic follows, rather than an earlier one."""
RETURNED = 0.15
"""How often a follow-up comes only after another topic: "and how long?", back to the one before."""
COUNTS = 12
"""How often each real chat counts."""


def embed_all(embedder: Any, chats: Sequence[GoldChat]) -> Vectors:
    """The vector of each message, and of each answered question as one text."""
    texts = {entry.message.text for chat in chats for entry in chat.entries}
    for chat in chats:
        there = {entry.seq: entry.message.text for entry in chat.entries}
        texts |= {answered_text(there[q], a.message.text) for q, a in answers(chat.entries).items()}
    ordered = sorted(texts)
    found = asyncio.run(_embed(embedder, ordered))
    return {text: unit(np.array(vector)) for text, vector in zip(ordered, found, strict=True)}


async def _embed(embedder: Any, texts: Sequence[str]) -> Any:
    found = await embedder.embed(texts)
    await embedder.close()
    return found


def unit(vector: Vector) -> Vector:
    """The vector scaled to length 1."""
    length = float(np.linalg.norm(vector))
    return vector / length if length else vector


def mixes(chats: Sequence[GoldChat], seed: int = 1) -> Iterator[GoldChat]:
    """Chats of topics of several chats in the same language, in a random order."""
    by_language: dict[str, list[GoldChat]] = {}
    for chat in chats:
        by_language.setdefault(chat.language, []).append(chat)
    for number, mix in enumerate(MIXES):
        draw = random.Random(seed + number)  # noqa: S311 - a sample, repeated exactly
        for some in by_language.values():
            for _ in range(max(1, round(mix.chats * len(some) / len(chats)))):
                yield _mixed(some, mix, draw)


def _mixed(chats: Sequence[GoldChat], mix: Mix, draw: random.Random) -> GoldChat:
    waiting = _threads(chats, draw.choice(mix.topics), draw)
    done = [0] * len(waiting)
    entries: list[Any] = []
    labels: dict[int, int] = {}
    last = -1
    while True:
        left = [n for n, rounds in enumerate(waiting) if done[n] < len(rounds) and n != last]
        begun = [n for n in left if done[n]]
        new = [n for n in left if not done[n]]
        if not left:
            return GoldChat(chats[0].language, "mix", entries, labels, [])
        last = new[0] if new and (not begun or draw.random() < OPENED) else draw.choice(begun)
        count = draw.choice(mix.later if done[last] else mix.first)
        while done[last] < len(waiting[last]):
            rounds = waiting[last][done[last]]
            goes_on = is_followup(rounds[0].message.text) and draw.random() >= RETURNED
            if count <= 0 and not goes_on:
                break
            for entry in rounds:
                if entry.message.role == "user":
                    labels[len(entries)] = last
                entries.append(_moved(entry, len(entries)))
            done[last], count = done[last] + 1, count - 1


def _threads(chats: Sequence[GoldChat], count: int, draw: random.Random) -> list[list[list[Any]]]:
    """Topics, each of its rounds; from different chats, if there are enough."""
    threads = [(chat.name, thread) for chat in chats for thread in _topics(chat)]
    draw.shuffle(threads)
    most = -(-count // len(chats))
    taken: dict[str, int] = {}
    found = []
    for name, thread in threads:
        if taken.get(name, 0) < max(most, 1) and len(found) < count:
            taken[name] = taken.get(name, 0) + 1
            found.append(thread)
    return found


def _topics(chat: GoldChat) -> list[list[list[Any]]]:
    found: dict[int, list[list[Any]]] = {}
    rounds: list[list[Any]] = []
    for entry in chat.entries:
        if entry.message.role == "user":
            rounds = found.setdefault(chat.labels[entry.seq], [])
            rounds.append([entry])
        else:
            rounds[-1].append(entry)
    return list(found.values())


def _moved(entry: Any, seq: int) -> Any:
    return entry.__class__(seq, entry.message, 10, 10 * seq + 10, "", "o200k_base")
