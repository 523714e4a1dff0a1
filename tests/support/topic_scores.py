"""Conversations with a gold labelling of their topics, and how well topics agree with it."""

from __future__ import annotations

import math
import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from firnline import Entry, Memory, Message, strategies

FOLDER = Path(__file__).parent / "gold_topics"
START = datetime(2026, 3, 4, 12, tzinfo=UTC)
_USER = re.compile(r"(\d+)(\*?) (.+)")


class GoldChat(NamedTuple):
    """A conversation; `labels` are the topics of the user's messages, by number."""

    language: str
    name: str
    entries: list[Entry]
    labels: dict[int, int]
    followups: list[int]


class Scores(NamedTuple):
    """Agreement with the gold labelling."""

    ari: float
    v: float
    kept: int
    followups: int
    topics: int
    gold: int


def gold_chats(part, *languages):
    """The conversations of a part (``tune`` or ``test``), of these languages or of all."""
    found = []
    for path in sorted(FOLDER.glob(f"*.{part}.txt")):
        language = path.name.partition(".")[0]
        if not languages or language in languages:
            chats = path.read_text(encoding="utf-8").split("# ")[1:]
            found += [_chat(language, text) for text in chats]
    return found


def _chat(language, text):
    name, *lines = text.strip().splitlines()
    entries, labels, followups = [], {}, []
    at = START
    for line in lines:
        seq, at = len(entries), at + timedelta(seconds=40)
        if line.startswith("- "):
            message = Message.assistant(line[2:], created_at=at)
        else:
            topic, star, said = _USER.fullmatch(line).groups()
            message = Message.user(said, created_at=at)
            labels[seq] = int(topic)
            followups += [seq] if star else []
        entries.append(Entry(seq, message, 10, 10 * seq + 10, "", "o200k_base"))
    return GoldChat(language, name, entries, labels, followups)


async def live_topics(chat, opening=(), url="memory:"):
    """The topics of the user's messages after a chat whose contexts were built in every turn."""
    async with Memory.open(url, strategy=strategies.topics(), worker=False) as memory:
        for message in opening:
            await memory.append("c", [message])
            await memory.context("c", 6_000)
        for entry in chat.entries:
            await memory.append("c", [entry.message])
            if entry.message.role == "user":
                await memory.context("c", 6_000, question=entry.message.text)
        found = {}
        for topic in await memory.topics("c"):
            seqs = await memory.topic_seqs("c", topic.topic_id)
            found |= {seq - len(opening): topic.topic_id for seq in seqs}
        return {seq: found[seq] for seq in chat.labels}


def score(chat, topics):
    """The scores of an assignment: a topic for each of the user's messages."""
    seqs = sorted(chat.labels)
    gold, found = [chat.labels[seq] for seq in seqs], [topics[seq] for seq in seqs]
    before = dict(zip(seqs[1:], seqs, strict=False))
    kept = sum(topics[seq] == topics[before[seq]] for seq in chat.followups)
    numbers = len(set(found)), len(set(gold))
    return Scores(
        adjusted_rand(gold, found), v_measure(gold, found), kept, len(chat.followups), *numbers
    )


def together(scores):
    """The mean of ARI and V over conversations; the sums of the rest."""
    count = len(scores)
    sums = [sum(column) for column in zip(*scores, strict=True)]
    return Scores(sums[0] / count, sums[1] / count, *sums[2:])


def adjusted_rand(gold, found):
    """The adjusted Rand index: 1 for equal groupings, 0 for chance."""
    pairs = [math.comb(n, 2) for n in Counter(zip(gold, found, strict=True)).values()]
    of_gold = sum(math.comb(n, 2) for n in Counter(gold).values())
    of_found = sum(math.comb(n, 2) for n in Counter(found).values())
    expected = of_gold * of_found / (math.comb(len(gold), 2) or 1)
    most = (of_gold + of_found) / 2
    return 1.0 if most == expected else (sum(pairs) - expected) / (most - expected)


def v_measure(gold, found):
    """The harmonic mean of homogeneity and completeness."""
    both = list(zip(gold, found, strict=True))
    of_gold, of_found = _entropy(gold), _entropy(found)
    mutual = of_gold + of_found - _entropy(both)
    if not of_gold + of_found:
        return 1.0
    return 2 * mutual / (of_gold + of_found)


def _entropy(labels):
    return -sum(n / len(labels) * math.log(n / len(labels)) for n in Counter(labels).values())
