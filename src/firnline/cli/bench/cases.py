"""What a benchmark asks: a conversation, questions on it, and which turns hold the evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from firnline.log.message import Message

ADVERSARIAL: Final = "adversarial: made to have no answer"
NO_EVIDENCE: Final = "no evidence ids"
UNKNOWN_EVIDENCE: Final = "no evidence id names one turn of the conversation"


class Evidence(NamedTuple):
    """A piece of evidence by its name in the file; found if any entry of `seqs` is.

    It is one entry, or all of a session where the set says no more than the session.
    """

    name: str
    seqs: frozenset[int]


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and what must be found; `by_session` if the evidence is whole sessions."""

    id: str
    text: str
    category: str
    evidence: tuple[Evidence, ...]
    by_session: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """A conversation and the questions on it.

    An entry's sequence number is its message's place in `messages`. `left_out` counts questions
    by the reason why they are not asked, `unknown` the evidence ids that name no turn.
    """

    conversation: str
    messages: tuple[Message, ...]
    questions: tuple[Question, ...]
    left_out: Counter[str] = field(default_factory=Counter)
    unknown: int = 0


class Asking:
    """Takes a conversation's questions one by one and sorts out those that cannot be counted."""

    def __init__(self, ids: Iterable[Hashable]) -> None:
        """`ids` are what the file calls its turns, in their order."""
        self.places: dict[Hashable, list[int]] = {}
        for seq, name in enumerate(ids):
            self.places.setdefault(name, []).append(seq)
        self.questions: list[Question] = []
        self.left_out: Counter[str] = Counter()
        self.unknown = 0

    def ask(self, name: str, text: str, category: str, evidence: Sequence[Hashable]) -> None:
        """A question with evidence in turns, by the ids that the file gives them.

        An id that names no turn, or several, is put aside; what is left is the evidence.
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
        found = (Evidence(_name(i), frozenset(self.places[i])) for i in known)
        self.questions.append(Question(name, text, category, tuple(found)))

    def case(self, conversation: str, messages: Iterable[Message]) -> Case:
        """All of it."""
        return Case(
            conversation, tuple(messages), tuple(self.questions), self.left_out, self.unknown
        )


def _name(evidence: Hashable) -> str:
    if isinstance(evidence, tuple):
        session, turn = evidence
        return f"D{session}:{turn}"
    return str(evidence)
