"""Benchmark cases: a conversation, questions about it, and the turns with the evidence."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple

from firnline.language import prose
from firnline.language.stems import stem
from firnline.language.terms import index_terms
from firnline.log.hit import TextSpan
from firnline.log.message import Message
from firnline.recall.query import parse_question

ADVERSARIAL: Final = "adversarial: made to have no answer"
NO_EVIDENCE: Final = "no evidence ids"
UNKNOWN_EVIDENCE: Final = "no evidence id names one turn of the conversation"

_ASKED: Final = 0.25
"""The weight of a word of the question, compared with one of the answer."""


class GoldEvidence(NamedTuple):
    """A piece of evidence by its name in the file; found if any entry of `seqs` is found.

    It is one entry, or a session if the set names only the session.
    """

    name: str
    seqs: frozenset[int]


@dataclass(frozen=True, slots=True)
class BenchQuestion:
    """A question, its evidence, and what the set says of its answer, if it does.

    `by_session` if the evidence is sessions.
    """

    id: str
    text: str
    category: str
    evidence: tuple[GoldEvidence, ...]
    by_session: bool = False
    answer: str = ""


@dataclass(frozen=True, slots=True)
class BenchCase:
    """A conversation and the questions about it.

    An entry's sequence number is its message's place in `messages`. `left_out` counts questions
    by reason, `unknown` the evidence ids that name no turn.
    """

    conversation: str
    messages: tuple[Message, ...]
    questions: tuple[BenchQuestion, ...]
    left_out: Counter[str] = field(default_factory=Counter)
    unknown: int = 0


class CaseBuilder:
    """Collects a conversation's questions, and counts those that cannot be used."""

    def __init__(self, ids: Iterable[Hashable]) -> None:
        """`ids` are the file's ids of the turns, in order."""
        self.places: dict[Hashable, list[int]] = {}
        for seq, name in enumerate(ids):
            self.places.setdefault(name, []).append(seq)
        self.questions: list[BenchQuestion] = []
        self.left_out: Counter[str] = Counter()
        self.unknown = 0

    def ask(
        self, name: str, text: str, category: str, evidence: Sequence[Hashable], answer: str = ""
    ) -> None:
        """Add a question with evidence in turns, by the ids of the file.

        Ids that name no turn, or several, are skipped.
        """
        if not evidence:
            self.left_out[NO_EVIDENCE] += 1
            return
        wanted = dict.fromkeys(evidence)
        known = [i for i in wanted if len(self.places.get(i, ())) == 1]
        self.unknown += len(wanted) - len(known)
        if not known:
            self.left_out[UNKNOWN_EVIDENCE] += 1
            return
        found = (GoldEvidence(_name(i), frozenset(self.places[i])) for i in known)
        self.questions.append(BenchQuestion(name, text, category, tuple(found), answer=answer))

    def case(self, conversation: str, messages: Iterable[Message]) -> BenchCase:
        """The case with all questions."""
        return BenchCase(
            conversation, tuple(messages), tuple(self.questions), self.left_out, self.unknown
        )


def _name(evidence: Hashable) -> str:
    if isinstance(evidence, tuple):
        session, turn = evidence
        return f"D{session}:{turn}"
    return str(evidence)


@lru_cache(maxsize=4_096)
def own_sentence(text: str, question: str, answer: str) -> TextSpan | None:
    """Which sentence of a long message is the evidence: sets name messages only.

    It is the one with most of the answer's words, by weight, then of the question's. None if there
    is no such word: then only the whole text will do.
    """
    weights: dict[str, float] = {}
    for share, source in ((_ASKED, question), (1.0, answer)):
        for term in parse_question(source).terms:
            weights[term.stem] = max(weights.get(term.stem, 0.0), share * term.weight)
    best, found = 0.0, None
    for start, end in prose.spans(text):
        words = frozenset(map(stem, index_terms(text[start:end])))
        score = math.fsum(weights[word] for word in words if word in weights)
        if score > best:
            best, found = score, TextSpan(start, end)
    return found
