"""Learn the chance that a found message is evidence, for `firnline.recall.chance`.

A speaker called ``user`` or ``assistant`` is a role. A question of category 5 without evidence has
no answer there. From each chat several logs are made, so that the chance holds for all of them:

whole      the chat
windows    pieces of 20 to 60 messages, for short logs
merged     eight messages joined into one, for long messages
foreign    questions of other chats, with the names of this one's speakers: nothing is evidence

The table printed is of chats that were held out, in three parts; weights are learned on all of
them.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle, pairwise
from typing import Any, Final

import numpy as np
from train import ADVERSARIAL, Matrix, Vectors, features_of, index_of
from train import entries_of as named_entries

from firnline.embedding import MiniLM
from firnline.log.entry import Entry
from firnline.log.message import Message
from firnline.log.tokens import counter
from firnline.recall import weights
from firnline.recall.chance import (
    EARNED_CHANCE,
    chances,
    count_earned,
    log_shares,
    question_features,
)
from firnline.recall.passages import passages
from firnline.recall.rank import RankedEntry, order

PARTS: Final = 3
SHORT_CHAT: Final = 100
WINDOWS: Final = (20, 40, 30, 60)
MERGED: Final = 8
FOREIGN_WHOLE: Final = 40
FOREIGN_SHORT: Final = 5
LEARNED_MAX: Final = 60
"""The best so many messages of a question are learned from; the others are hardly ever evidence."""
PENALTY: Final = 1.0
WEIGHTS: Final[Mapping[str, float]] = {"foreign": 0.5, "merged": 0.5, "short": 4.0}
"""How much a question of a kind of log counts: few chats are short as they are."""
MODES: Final[Mapping[str, frozenset[str]]] = {
    "CHANCE_LEXICAL": frozenset(("meaning", "meaning_near", "tokens")),
    "CHANCE_MEANING": frozenset(("tokens",)),
    "CHANCE_TOKENS": frozenset(),
}
"""The tables, and the features that are left out for them."""
BINS: Final = (0.0, 0.01, 0.03, 0.06, 0.1, 0.2, 0.4, 0.6, 0.8, 1.01)


@dataclass(frozen=True)
class Log:
    """A conversation in which questions are asked."""

    kind: str
    part: int
    entries: Sequence[Entry]
    asked: Sequence[tuple[str, frozenset[int]]]


@dataclass(frozen=True)
class Case:
    """A question: what it found, best first, which of it is evidence, and how much there is."""

    kind: str
    part: int
    evidence: int
    scored: Sequence[RankedEntry]
    hit: Sequence[bool]


# -- logs ---------------------------------------------------------------------------------------


def logs_of(chats: Sequence[Mapping[str, Any]]) -> Iterator[Log]:
    """All logs that are made from the chats."""
    chosen = random.Random(5)  # noqa: S311 - the same questions in every run
    read = [(entries_of(chat), speakers_of(chat)) for chat in chats]
    asked = [
        list(questions_of(chat, places)) for chat, ((_, places), _) in zip(chats, read, strict=True)
    ]
    for number, ((entries, _), names) in enumerate(read):
        part, short = number % PARTS, len(entries) < SHORT_CHAT
        kind = "short" if short else "whole"
        yield Log(kind, part, entries, asked[number])
        # Questions about weeks of chat are no questions of a short one.
        alike = [(len(other[0][0]) < SHORT_CHAT) == short for other in read]
        others = [n for n in range(len(read)) if n != number and alike[n]]
        foreign = []
        for other in others:
            some = [question for question, evidence in asked[other] if evidence]
            some = chosen.sample(some, min(FOREIGN_WHOLE, len(some)))
            foreign += [(renamed(q, read[other][1], names), frozenset[int]()) for q in some]
        if short:
            yield Log("foreign", part, entries, chosen.sample(foreign, FOREIGN_SHORT))
            continue
        yield Log("foreign", part, entries, foreign)
        yield merged(part, entries, asked[number])
        for start, size in zip(range(0, len(entries) - WINDOWS[0], 40), cycle(WINDOWS)):
            piece = entries[start : start + size]
            there = {entry.seq for entry in piece}
            inside = [(q, evidence) for q, evidence in asked[number] if evidence <= there]
            yield Log("window", part, piece, [a for a in inside if a[1]])
            yield Log("foreign", part, piece, chosen.sample(foreign, 4))


def entries_of(chat: Mapping[str, Any]) -> tuple[list[Entry], dict[str, int]]:
    """A conversation's turns as entries; ``user`` and ``assistant`` are roles."""
    entries, places = named_entries(chat)
    return [replace(entry, message=_in_role(entry.message)) for entry in entries], places


def _in_role(message: Message) -> Message:
    if message.name in ("user", "assistant"):
        return replace(message, role=message.name, name=None)
    return message


def speakers_of(chat: Mapping[str, Any]) -> list[str]:
    """The speakers by name, in the order in which they first speak."""
    turns = (
        turn for key, value in chat["conversation"].items() if is_session(key) for turn in value
    )
    return list(dict.fromkeys(turn["speaker"] for turn in turns))


def is_session(key: str) -> bool:
    """Whether this key of a conversation holds turns."""
    return re.fullmatch(r"session_\d+", key) is not None


def questions_of(
    chat: Mapping[str, Any], places: Mapping[str, int]
) -> Iterator[tuple[str, frozenset[int]]]:
    """The questions with their evidence; LoCoMo's adversarial ones are left out."""
    for asked in chat["qa"]:
        ids = re.findall(r"D\d+:\d+", " ".join(asked["evidence"]))
        evidence = frozenset(places[name] for name in ids if name in places)
        unanswered = asked["category"] == ADVERSARIAL and not asked["evidence"]
        if unanswered or (evidence and asked["category"] != ADVERSARIAL):
            yield asked["question"], evidence


def renamed(question: str, names: Sequence[str], others: Sequence[str]) -> str:
    """The question with the names of other speakers."""
    for name, other in zip(names, others, strict=False):
        question = re.sub(rf"\b{re.escape(name)}\b", other, question)
    return question


def merged(part: int, entries: Sequence[Entry], asked: Sequence[tuple[str, frozenset[int]]]) -> Log:
    """The log with long messages."""
    count, found = counter(), []
    for seq, first in enumerate(range(0, len(entries), MERGED)):
        group = entries[first : first + MERGED]
        text = "\n".join(f"{entry.message.name}: {entry.message.text}" for entry in group)
        message = Message.user(text, created_at=group[0].message.created_at)
        found.append(Entry(seq, message, count.text(text), 0, "", "o200k_base"))
    moved = [(q, frozenset(seq // MERGED for seq in evidence)) for q, evidence in asked]
    return Log("merged", part, found, moved)


# -- cases --------------------------------------------------------------------------------------


def cases_of(
    logs: Sequence[Log], vectors: Vectors | None, without: frozenset[str]
) -> Iterator[Case]:
    """Every question of every log, without some of the features."""
    for log in logs:
        at = {entry.seq: place for place, entry in enumerate(log.entries)}
        local = [replace(entry, seq=place) for place, entry in enumerate(log.entries)]
        index = index_of(local)
        for question, evidence in log.asked:
            found, pool = features_of(
                question, local, index, vectors if "meaning" not in without else None
            )
            kept = {name: values for name, values in found.items() if name not in without}
            scored = order(kept, pool, {})
            there = {at[seq] for seq in evidence}
            hit = [item.seq in there for item in scored]
            yield Case(log.kind, log.part, len(there), scored, hit)


# -- learning -----------------------------------------------------------------------------------


def inputs(case: Case) -> Matrix:
    """The features of the best messages of a case, as `chances` uses them."""
    common = list(question_features(case.scored).values())
    shares = log_shares(case.scored)[:LEARNED_MAX]
    return np.array([[1.0, share, math.exp(share), *common] for share in shares])


def learn(cases: Sequence[Case], names: Sequence[str]) -> dict[str, float]:
    """Logistic regression, by Newton's method."""
    used = [case for case in cases if case.scored]
    rows = np.concatenate([inputs(case) for case in used])
    hit = np.concatenate([np.array(case.hit[:LEARNED_MAX], float) for case in used])
    counts = [min(len(case.hit), LEARNED_MAX) for case in used]
    weight = np.repeat([WEIGHTS.get(case.kind, 1.0) for case in used], counts)
    table = np.zeros(rows.shape[1])
    penalty = PENALTY * np.diag([0.0] + [1.0] * (len(table) - 1))
    for _ in range(50):
        chance = 1 / (1 + np.exp(-rows @ table))
        slope = rows.T @ (weight * (chance - hit)) + penalty @ table
        curve = (rows * (weight * chance * (1 - chance))[:, None]).T @ rows + penalty
        step = np.linalg.solve(curve, slope)
        table -= step
        if np.abs(step).max() < 1e-8:  # noqa: PLR2004
            break
    return dict(zip(names, map(float, table), strict=True))


# -- trying -------------------------------------------------------------------------------------


def held_out(cases: Sequence[Case], mode: str) -> list[tuple[Case, list[float]]]:
    """The chances of each part with weights learned on the others."""
    tried, shipped = [], getattr(weights, mode)
    for part in range(PARTS):
        table = learn([case for case in cases if case.part != part], list(shipped))
        setattr(weights, mode, table)
        tried += [(case, chances(case.scored)) for case in cases if case.part == part]
    setattr(weights, mode, shipped)
    return tried


def calibration(tried: Sequence[tuple[Case, list[float]]]) -> str:
    """How often a message is evidence, by its chance."""
    flat = [pair for case, row in tried for pair in zip(row, case.hit, strict=True)]
    lines, error = ["chance      messages  mean  evidence"], 0.0
    for low, high in pairwise(BINS):
        inside = [pair for pair in flat if low <= pair[0] < high]
        if inside:
            mean, rate = np.mean(inside, axis=0)
            error += abs(mean - rate) * len(inside) / len(flat)
            lines.append(f"{low:.2f}-{min(high, 1):.2f} {len(inside):11,} {mean:5.3f} {rate:9.3f}")
    return "\n".join([*lines, f"expected calibration error {error:.4f}"])


def sizes(tried: Sequence[tuple[Case, list[float]]]) -> Iterator[str]:
    """What earns its place, by kind of log and by how many messages the evidence is."""
    groups: dict[str, list[tuple[float, int]]] = {}
    for case, row in tried:
        earned = count_earned(row)
        found = sum(case.hit[:earned])
        kind = f"{case.kind}, {'several' if case.evidence > 1 else case.evidence}"
        share = found / case.evidence if case.evidence else 0.0
        groups.setdefault(kind, []).append((share, earned - found))
    yield "kind, evidence           found   others       n"
    for kind, rows in sorted(groups.items()):
        share, others = np.mean(rows, axis=0)
        yield f"{kind:20} {100 * share:8.1f} % {others:8.2f} {len(rows):7}"


def calibrate(
    chats: Sequence[Mapping[str, Any]], embedder: MiniLM | None, say: Callable[[str], object]
) -> dict[str, dict[str, float]]:
    """The tables of the chance, learned on all chats; prints how well it went."""
    logs = list(logs_of(chats))
    texts = (text for log in logs for entry in log.entries for text in passages(entry.message))
    asked = (question for log in logs for question, _ in log.asked)
    vectors = Vectors(embedder, texts, asked) if embedder else None
    tables = {}
    for mode, without in MODES.items():
        if vectors is None and "meaning" not in without:
            continue
        cases = list(cases_of(logs, vectors, without))
        tried = held_out(cases, mode)
        tables[mode] = learn(cases, list(getattr(weights, mode)))
        for text in (f"{mode}, earned from {EARNED_CHANCE:.2f}", calibration(tried), *sizes(tried)):
            say(text)
        say(f"{tables[mode]}\n")
    return tables
