"""Learn what the features of `firnline.recall.rank` weigh, from questions with known evidence.

Weights are learned on all conversations but one and tried on that one, in turn; that is the table
printed. Those written to ``weights.py`` are learned on all of them. The loss is the listwise one:
the logarithm of the share that the softmax of the scores gives to the evidence. It is convex, so
the same files give the same weights. Besides the conversations as they are, copies with long
messages (turns joined at random) are learned from; they count less, and are reported separately.
"""

from __future__ import annotations

import asyncio
import math
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import numpy as np

from firnline.embedding import MiniLM
from firnline.embedding.quantize import pack as pack_vector
from firnline.embedding.token_embedder import QuestionTokens
from firnline.log import limits
from firnline.log.entry import Entry, Key
from firnline.log.message import Message
from firnline.log.tokens import counter
from firnline.recall import weights
from firnline.recall.pack import pack
from firnline.recall.passages import passages
from firnline.recall.query import RecallQuery, parse_question, token_weights
from firnline.recall.rank import features, order, token_feature
from firnline.recall.vectors import token_scores
from firnline.store import RamStore
from firnline.testing.drafts import draft

FOUND_MAX: Final = 250
_KEY: Final = Key("ranker", "chat")
NEAR_MAX: Final = 125
REACH: Final = 2
BUDGETS: Final = (500, 1_000, 2_000, 4_000)
ADVERSARIAL: Final = 5
PENALTY: Final = 3.0
JOINED: Final = (1, 1, 1, 2, 3, 6, 10, 16)
"""How many turns are joined into a long message."""
LONG_COUNTS: Final = 0.25
"""How much a question of a log with long messages counts."""
NEGATIVE: Final = frozenset({"asks"})
"""Features that speak against an entry; all others may only speak for it."""
FEATURES: Final = tuple(weights.LEXICAL)
LEAST: Final[Mapping[str, Mapping[str, float]]] = {"TOKENS": {"words": 0.3, "meaning": 1.0}}
"""What some weigh at least: tokens say the same, but a score should tell how it was found."""
MODES: Final[Mapping[str, tuple[str, ...]]] = {
    "LEXICAL": FEATURES,
    "MEANING": (*FEATURES, "meaning", "meaning_near"),
    "TOKENS": (*FEATURES, "meaning", "meaning_near", "tokens"),
}

Matrix = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Case:
    """A question: the features of its pool, which of it is evidence, and how much there is."""

    conversation: int
    category: int
    seqs: tuple[int, ...]
    sizes: tuple[int, ...]
    columns: Mapping[str, Matrix]
    evidence: frozenset[int]
    long: bool = False
    """Its messages are joined turns."""


# -- chats --------------------------------------------------------------------------------------


def entries_of(chat: Mapping[str, Any]) -> tuple[list[Entry], dict[str, int]]:
    """A conversation's turns as entries, and where each id is."""
    count, entries, places = counter(), [], {}
    said, number = chat["conversation"], 0
    while (number := number + 1) and f"session_{number}_date_time" in said:
        stamp = f"{said[f'session_{number}_date_time']} +0000"
        time = datetime.strptime(stamp, "%I:%M %p on %d %B, %Y %z")
        for turn in said.get(f"session_{number}") or ():
            caption = turn.get("blip_caption")
            text = turn["text"] + (f" [image: {caption}]" if caption else "")
            places[turn["dia_id"]] = len(entries)
            tokens = count.text(f"{turn['speaker']}: {text}")
            message = Message.user(text, name=turn["speaker"], created_at=time)
            entries.append(Entry(len(entries), message, tokens, 0, "", "o200k_base"))
    return entries, places


def questions_of(
    chat: Mapping[str, Any], places: Mapping[str, int]
) -> Iterator[tuple[str, int, frozenset[int]]]:
    """The questions that can be answered, with their category and evidence."""
    for asked in chat["qa"]:
        ids = re.findall(r"D\d+:\d+", " ".join(asked["evidence"]))
        evidence = frozenset(places[name] for name in ids if name in places)
        if evidence and asked["category"] != ADVERSARIAL:
            yield asked["question"], asked["category"], evidence


def index_of(entries: Sequence[Entry]) -> RamStore:
    """A store with the entries, which finds by words what every store does."""

    async def fill() -> RamStore:
        store = RamStore()
        await store.open()
        await store.append(_KEY, [draft(entry.message) for entry in entries])
        return store

    return asyncio.run(fill())


def matches_of(index: RamStore, query: str) -> dict[int, float]:
    """What the index finds for a query."""
    found = asyncio.run(index.search(_KEY.tenant, query, limit=FOUND_MAX))
    return {match.seq: match.score for match in found}


# -- vectors ------------------------------------------------------------------------------------


class Vectors:
    """Vectors of questions and of the passages of messages, and what recall does with them."""

    def __init__(self, embedder: MiniLM, texts: Iterable[str], questions: Iterable[str]) -> None:
        ordered = sorted(set(texts))
        encoded = asyncio.run(embedder.encode(ordered))
        self.codes = {
            t: (pack_vector(one.vector), one.codes) for t, one in zip(ordered, encoded, strict=True)
        }
        self.rows = {
            t: np.array(one.vector, np.float32) for t, one in zip(ordered, encoded, strict=True)
        }
        self.questions = asyncio.run(read_all(embedder, set(questions)))

    def near(self, question: str, entries: Sequence[Entry]) -> dict[int, float]:
        """The nearest entries with their cosines: of a long message, that of its best passage."""
        asked = np.array(self.questions[question].vector, np.float32)
        cosines = {}
        for entry in entries:
            if texts := passages(entry.message):
                cosines[entry.seq] = max(float(self.rows[text] @ asked) for text in texts)
        return dict(sorted(cosines.items(), key=lambda item: -item[1])[:NEAR_MAX])

    def tokens(
        self, question: str, asked: RecallQuery, pool: Mapping[int, Entry], best: Sequence[int]
    ) -> dict[int, float]:
        """How near the question's tokens are, as recall compares them."""
        tokens = self.questions[question]
        names = {entry.message.name or "" for entry in pool.values()}
        parts = [(seq, *self.codes[text]) for seq in best for text in passages(pool[seq].message)]
        scores = token_scores(tokens, token_weights(question, tokens.spans, asked, names), parts)
        return token_feature(scores, best, pool) if scores else {}


async def read_all(embedder: MiniLM, questions: Iterable[str]) -> dict[str, QuestionTokens]:
    """All questions with their tokens."""
    return {question: await embedder.read_question(question) for question in questions}


# -- cases --------------------------------------------------------------------------------------


def cases_of(chats: Sequence[Mapping[str, Any]], embedder: MiniLM | None) -> Iterator[Case]:
    """Every question of every conversation, as it is and with long messages."""
    for number, chat in enumerate(chats):
        entries, places = entries_of(chat)
        asked = list(questions_of(chat, places))
        for log, moved in ((entries, None), with_long_messages(entries)):
            texts = (text for entry in log for text in passages(entry.message))
            vectors = Vectors(embedder, texts, (one[0] for one in asked)) if embedder else None
            index = index_of(log)
            for question, category, evidence in asked:
                found, pool = features_of(question, log, index, vectors)
                seqs = tuple(sorted(pool))
                columns = {
                    name: np.array([values.get(seq, 0.0) for seq in seqs])
                    for name, values in found.items()
                }
                sizes = tuple(int(log[seq].tokens) for seq in seqs)
                there = evidence if moved is None else frozenset(moved[seq] for seq in evidence)
                yield Case(number, category, seqs, sizes, columns, there, moved is not None)


def with_long_messages(entries: Sequence[Entry]) -> tuple[list[Entry], dict[int, int]]:
    """The same with turns of a session joined at random, and where each turn is then."""
    count, drawn = counter(), random.Random(3)  # noqa: S311 - the same in every run
    made, moved, at = list[Entry](), dict[int, int](), 0
    while at < len(entries):
        first = entries[at].message.created_at
        group = entries[at : at + drawn.choice(JOINED)]
        group = [entry for entry in group if entry.message.created_at == first]
        text = "\n".join(f"{entry.message.name}: {entry.message.text}" for entry in group)
        moved |= {entry.seq: len(made) for entry in group}
        message = Message.user(text, created_at=first)
        made.append(Entry(len(made), message, count.text(text), 0, "", "o200k_base"))
        at += len(group)
    return made, moved


def features_of(
    question: str, entries: Sequence[Entry], index: RamStore, vectors: Vectors | None
) -> tuple[Mapping[str, Mapping[int, float]], Mapping[int, Entry]]:
    """The pool of a question as recall would make it, and its features."""
    asked = parse_question(question, entries[-1].message.created_at)
    matches = matches_of(index, asked.query)
    near = vectors.near(question, entries) if vectors else {}
    dated = [
        entry.seq
        for entry in entries
        if asked.days and asked.days[0] <= entry.message.created_at < asked.days[1]
    ][:FOUND_MAX]
    steps = range(-REACH, REACH + 1)
    wanted = {seq + step for seq in (*matches, *near, *dated) for step in steps}
    pool = {entry.seq: entry for entry in entries if entry.seq in wanted}
    found = features(asked, pool, near)
    if vectors:
        best = [item.seq for item in order(found, pool, matches)[: limits.RECALL_COMPARED]]
        found["tokens"] = vectors.tokens(question, asked, pool, best)
    return found, pool


# -- learning -----------------------------------------------------------------------------------


def matrix(case: Case, names: Sequence[str]) -> Matrix:
    """The features of a case, one row for each entry."""
    nothing = np.zeros(len(case.seqs))
    return np.stack([case.columns.get(name, nothing) for name in names], axis=1)


def learn(cases: Sequence[Case], mode: str) -> dict[str, float]:
    """The weights of the features; one that would have the wrong sign weighs nothing."""
    names, least = MODES[mode], LEAST.get(mode, {})
    kept = list(names)
    while True:
        found = dict(zip(kept, _newton(cases, kept), strict=True))
        wrong = [n for n, weight in found.items() if (weight > 0) == (n in NEGATIVE)]
        if not wrong:
            weigh = {name: float(found.get(name, 0.0)) for name in names}
            return {name: max(weight, least.get(name, weight)) for name, weight in weigh.items()}
        worst = max(wrong, key=lambda name: abs(found[name]))
        kept.remove(worst)


def _newton(cases: Sequence[Case], names: Sequence[str]) -> Matrix:
    """The minimum of the loss, by Newton's method: it is convex and there are few weights."""
    usable = [case for case in cases if case.evidence & set(case.seqs)]
    rows = [matrix(case, names) for case in usable]
    scale = np.concatenate(rows).std(axis=0) + 1e-9
    pairs = []
    for case, row in zip(usable, rows, strict=True):
        hit = np.array([seq in case.evidence for seq in case.seqs], float)
        pairs.append((row / scale, hit / hit.sum(), LONG_COUNTS if case.long else 1.0))
    weight = np.zeros(len(names))
    value, slope, curve = _loss(pairs, weight)
    for _ in range(50):
        step = np.linalg.solve(curve, slope)
        size = 1.0
        while _loss(pairs, weight - size * step)[0] > value and size > 1e-6:  # noqa: PLR2004
            size /= 2
        weight = weight - size * step
        value, slope, curve = _loss(pairs, weight)
        if np.abs(step).max() < 1e-6:  # noqa: PLR2004
            break
    return weight / scale


def _loss(
    pairs: Sequence[tuple[Matrix, Matrix, float]], weight: Matrix
) -> tuple[float, Matrix, Matrix]:
    """The loss at these weights, its slope and its curvature."""
    value, slope = PENALTY * float(weight @ weight), 2 * PENALTY * weight
    curve = 2 * PENALTY * np.eye(len(weight))
    for row, target, counts in pairs:
        score = row @ weight
        share = np.exp(score - score.max())
        whole = share.sum()
        share /= whole
        mean = row.T @ share
        value += counts * float(np.log(whole) + score.max() - target @ score)
        slope = slope + counts * (mean - row.T @ target)
        curve = curve + counts * ((row * share[:, None]).T @ row - np.outer(mean, mean))
    return value, slope, curve


# -- trying -------------------------------------------------------------------------------------


def recalls(case: Case, table: Mapping[str, float]) -> list[float]:
    """The share of the evidence within each budget."""
    names = list(table)
    scores = matrix(case, names) @ np.array([table[name] for name in names])
    order = sorted(range(len(case.seqs)), key=lambda n: (-scores[n], -case.seqs[n]))
    shares = []
    for budget in BUDGETS:
        packed = pack(order, lambda place: case.sizes[place], budget)
        got = {case.seqs[place] for place in packed}
        shares.append(100 * len(got & case.evidence) / len(case.evidence))
    return shares


def cross_validated(cases: Sequence[Case], mode: str) -> list[tuple[Case, list[float]]]:
    """The recalls of each conversation with weights learned on the others."""
    tried = []
    for held in sorted({case.conversation for case in cases}):
        table = learn([case for case in cases if case.conversation != held], mode)
        tried += [(case, recalls(case, table)) for case in cases if case.conversation == held]
    return tried


def line(label: str, tried: Sequence[tuple[Case, list[float]]]) -> str:
    """A row of the table."""
    columns = [math.fsum(shares[n] for _, shares in tried) / len(tried) for n in range(4)]
    whole = 100 * sum(shares[2] == 100 for _, shares in tried) / len(tried)  # noqa: PLR2004
    numbers = " ".join(f"{column:6.1f}" for column in columns)
    return f"{label:24} {numbers} {whole:8.1f} {len(tried):6}"


def report(cases: Sequence[Case], mode: str, say: Callable[[str], object]) -> None:
    """Print the table of a mode."""
    tried = cross_validated(cases, mode)
    plain = [one for one in tried if not one[0].long]
    say(line(mode, plain))
    for held in sorted({case.conversation for case in cases}):
        say(line(f"  conversation {held}", [t for t in plain if t[0].conversation == held]))
    for category in sorted({case.category for case in cases}):
        say(line(f"  category {category}", [t for t in plain if t[0].category == category]))
    say(line("  long messages", [one for one in tried if one[0].long]))


def write(tables: Mapping[str, Mapping[str, float]]) -> None:
    """Put the weights into ``weights.py``; tables that were not learned stay."""
    path = Path(weights.__file__)
    source = path.read_text(encoding="utf-8")
    for mode, table in tables.items():
        body = "".join(f'    "{name}": {weight:.2f},\n' for name, weight in table.items())
        pattern = rf"(?m)^{mode}: Final\[Mapping\[str, float\]\] = \{{.*?\}}$"
        made = f"{mode}: Final[Mapping[str, float]] = {{\n{body}}}"
        source = re.sub(pattern, made, source, flags=re.DOTALL | re.MULTILINE)
    path.write_text(source, encoding="utf-8")


def learn_all(
    chats: Sequence[Mapping[str, Any]], embedder: MiniLM | None, say: Callable[[str], object]
) -> dict[str, dict[str, float]]:
    """The weights of every mode, learned on all conversations; prints how well it went."""
    cases = list(cases_of(chats, embedder))
    modes = [m for m in MODES if any(set(MODES[m]) <= set(case.columns) for case in cases)]
    pooled = sum(len(case.evidence & set(case.seqs)) / len(case.evidence) for case in cases)
    say(f"evidence in the pool: {100 * pooled / len(cases):.1f}%")
    say(f"{'':24} {'500':>6} {'1000':>6} {'2000':>6} {'4000':>6} {'all@2000':>8} {'n':>6}")
    tables = {}
    for mode in modes:
        report(cases, mode, say)
        tables[mode] = learn(cases, mode)
        say("  " + "  ".join(f"{n} {w:.2f}" for n, w in tables[mode].items()))
    return tables
