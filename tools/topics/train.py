"""Log-odds of staying in a topic, going back to one and opening one, by multinomial regression.

The topics before each message are those of the gold labels. The loss is convex, so the same chats
give the same weights.
"""

from __future__ import annotations

import base64
import random
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from chats import COUNTS, RULES, Vector, Vectors, mixes, unit

from firnline.topics import is_followup, needs_vector, replay
from firnline.topics.flow import (
    FlowSigns,
    return_offset,
    return_terms,
    signs_of,
    stay_offset,
    stay_terms,
)
from firnline.topics.followup import says_something
from firnline.topics.rounds import answered_text, answers
from firnline.topics.weights import FLOWS, FlowWeights, ModelFlow
from support.topic_scores import GoldChat, Scores, score, together

FOLDS = 7
STEPS = 400
PENALTY = 0.0005
"""Of the squares of weights: there are few chats."""
NEW_MAX = 0.5, 1.0
"""What counts at most that a topic has just begun, without an answer and with one.

These chats ask twice about most subjects; many users do not.
"""
FILE = Path(__file__).parents[2] / "src/firnline/topics/weights.py"


class Kind(Enum):
    """What is judged: a question, one with its answer, or an answered follow-up."""

    ASKED = 1
    ANSWERED = 2
    FOLLOWED = 3


class Choice(NamedTuple):
    """A message: for each topic what is weighed, and which is right; the last is a new topic."""

    terms: list[tuple[bool, tuple[float, ...], float]]
    right: int
    may_open: bool


class Flow(NamedTuple):
    """What was learned for a model."""

    asked: FlowWeights
    answered: FlowWeights
    followed: FlowWeights
    center: Vector | None

    def scores(self, chat: GoldChat, vectors: Vectors) -> Scores:
        """How well a chat is grouped, with all answers there."""
        name = "tried"
        FLOWS[name] = ModelFlow(
            self.asked,
            self.answered,
            self.followed,
            tuple(self.center) if self.center is not None else (),
        )
        there = {entry.seq: entry.message.text for entry in chat.entries}
        of = {
            e.seq: list(vectors[e.message.text])
            for e in chat.entries
            if needs_vector(e.message, name, RULES)
        }
        both = {
            q: (
                list(vectors[a.message.text]),
                list(vectors[answered_text(there[q], a.message.text)]),
            )
            for q, a in answers(chat.entries).items()
        }
        steps = replay(chat.entries, of, both, model=name, rules=RULES)
        found = {e.seq: step.topic for e, step in zip(chat.entries, steps, strict=True)}
        return score(chat, found)


def center_of(chats: Sequence[GoldChat], vectors: Vectors) -> Vector:
    """The mean of all messages: what they have in common says nothing about a subject.

    Each language counts the same.
    """
    by_language: dict[str, list[Vector]] = {}
    for chat in chats:
        own = by_language.setdefault(chat.language, [])
        own += [vectors[entry.message.text] for entry in chat.entries]
    return np.mean([np.mean(own, axis=0) for own in by_language.values()], axis=0)


def learn(chats: Sequence[GoldChat], vectors: Vectors, center: Vector | None) -> Flow:
    """The weights for these chats."""
    many = [*list(chats) * COUNTS, *mixes(chats)]
    asked, done, followed = (
        [c for chat in many for c in _choices(chat, vectors, center, kind)] for kind in Kind
    )
    return Flow(_fit(asked, NEW_MAX[0]), _fit(done, NEW_MAX[1]), _fit(followed, NEW_MAX[1]), center)


def left_out(
    chats: Sequence[GoldChat], vectors: Vectors, center: Vector | None
) -> list[tuple[GoldChat, Scores]]:
    """The scores of each chat by weights that were learned without it."""
    order = list(chats)
    random.Random(0).shuffle(order)  # noqa: S311 - repeated exactly
    found = []
    for fold in range(FOLDS):
        rest = [chat for at, chat in enumerate(order) if at % FOLDS != fold]
        flow = learn(rest, vectors, center)
        found += [(chat, flow.scores(chat, vectors)) for chat in order[fold::FOLDS]]
    return found


def report(title: str, scores: Iterable[tuple[GoldChat, Scores]]) -> None:
    """Print the scores by language."""
    by_language: dict[str, list[Scores]] = {}
    for chat, found in scores:
        by_language.setdefault(chat.language, []).append(found)
    for language, some in by_language.items():
        s = together(some)
        print(  # noqa: T201 - what it is for
            f"{title}: {language}, {len(some)} chats: ARI {s.ari:.2f}, V {s.v:.2f},"
            f" kept {s.kept} of {s.followups}, {s.topics} topics for {s.gold}"
        )


# -- the choices in a chat ----------------------------------------------------------------------


class _Topic(NamedTuple):
    sum: Vector
    users: int


def _choices(chat: GoldChat, vectors: Vectors, center: Vector | None, kind: Kind) -> list[Choice]:
    topics: dict[int, _Topic] = {}
    active, found = -1, []
    replies = answers(chat.entries)
    for entry in chat.entries:
        text, zero = entry.message.text, np.zeros(len(next(iter(vectors.values()))))
        if entry.message.role == "user":
            label, reply = chat.labels[entry.seq], replies.get(entry.seq)
            both = (
                ()
                if reply is None
                else (reply.message.text, answered_text(text, reply.message.text))
            )
            there = {id_: topic for id_, topic in topics.items() if topic.sum.any()}
            judged = is_followup(text) is (kind is Kind.FOLLOWED) and (both or kind is Kind.ASKED)
            if judged and active in there and (kind is not Kind.FOLLOWED or label in there):
                said = {Kind.ASKED: (text,), Kind.ANSWERED: (text, *both), Kind.FOLLOWED: both}[
                    kind
                ]
                likeness = _likeness([vectors[one] for one in said], there, center)
                is_new = topics[active].users <= 1
                found.append(
                    _choice(signs_of(text, 0.0), likeness, active, label, is_new=is_new)._replace(
                        may_open=kind is not Kind.FOLLOWED
                    )
                )
            active, before = label, topics.get(label, _Topic(zero, 0))
            added = zero if is_followup(text) else vectors[text]
            topics[label] = _Topic(before.sum + added, before.users + 1)
        elif says_something(text) and active in topics and topics[active].sum.any():
            topics[active] = topics[active]._replace(sum=topics[active].sum + vectors[text])
    return found


def _likeness(
    said: Sequence[Vector], topics: Mapping[int, _Topic], center: Vector | None
) -> dict[int, tuple[float, ...]]:
    middle = 0.0 if center is None else center
    means = {id_: unit(unit(topic.sum) - middle) for id_, topic in topics.items()}
    return {
        id_: tuple(float(unit(one - middle) @ mean) for one in said) for id_, mean in means.items()
    }


def _choice(
    signs: FlowSigns,
    likeness: Mapping[int, tuple[float, ...]],
    active: int,
    label: int,
    *,
    is_new: bool,
) -> Choice:
    terms = []
    for id_, like in likeness.items():
        if id_ == active:
            terms.append((True, stay_terms(signs, like, is_new=is_new), stay_offset(signs)))
        else:
            terms.append((False, return_terms(signs, like, len(likeness)), return_offset(signs)))
    order = list(likeness)
    return Choice(terms, order.index(label) if label in order else len(order), may_open=True)


# -- the regression -----------------------------------------------------------------------------


def _fit(choices: Sequence[Choice], new_max: float) -> FlowWeights:
    stays = next(len(t) for c in choices for here, t, _ in c.terms if here)
    goes = next(len(t) for c in choices for here, t, _ in c.terms if not here)
    most = max(len(c.terms) for c in choices) + 1
    x = np.zeros((len(choices), most, stays + goes))
    offset = np.full((len(choices), most), -1e9)
    right = np.zeros(len(choices), int)
    for row, choice in enumerate(choices):
        for at, (here, terms, fixed) in enumerate(choice.terms):
            start = 0 if here else stays
            x[row, at, start : start + len(terms)] = terms
            offset[row, at] = fixed
        offset[row, len(choice.terms)] = 0.0 if choice.may_open else -1e9  # a new topic
        right[row] = choice.right
    w = _descend(x, offset, right)
    w[stays - 2] = min(w[stays - 2], new_max)
    return FlowWeights(tuple(map(float, w[:stays])), tuple(map(float, w[stays:])))


def _descend(x: Any, offset: Any, right: Any) -> Vector:
    """Adam on the mean loss."""
    w = np.zeros(x.shape[2])
    first, second = np.zeros_like(w), np.zeros_like(w)
    rows = np.arange(len(right))
    for step in range(1, STEPS + 1):
        odds = x @ w + offset
        odds -= odds.max(axis=1, keepdims=True)
        chance = np.exp(odds)
        chance /= chance.sum(axis=1, keepdims=True)
        chance[rows, right] -= 1
        slope = np.einsum("bk,bkd->d", chance, x) / len(rows) + PENALTY * w
        first = 0.9 * first + 0.1 * slope
        second = 0.99 * second + 0.01 * slope**2
        rate = 0.2 if step < 0.6 * STEPS else 0.04 if step < 0.85 * STEPS else 0.01
        scaled = np.sqrt(second / (1 - 0.99**step)) + 1e-8
        w -= rate * (first / (1 - 0.9**step)) / scaled
    return w


# -- the file -----------------------------------------------------------------------------------


def _pack(center: Vector | None) -> tuple[float, bytes]:
    """The scale and the bytes of a center, one byte a number."""
    if center is None:
        return 0.0, b""
    scale = float(np.abs(center).max() / 127)
    return scale, np.round(center / scale).astype(np.int8).tobytes()


def write(learned: Mapping[str, Flow]) -> None:
    """Write the module with the weights."""
    head = FILE.read_text(encoding="utf-8").partition("FLOWS: ")[0]
    lines = ["FLOWS: Final[dict[str, ModelFlow]] = {", '    "words-1": WORDS,']
    for name, flow in learned.items():
        step, packed = _pack(flow.center)
        center = base64.b85encode(packed).decode()
        lines += [f'    "{name}": ModelFlow(']
        for part in (flow.asked, flow.answered, flow.followed):
            lines += ["        FlowWeights("]
            for weights in part:
                numbers = ", ".join(f"{weight:.2f}" for weight in weights)
                lines += [f"            ({numbers}),"]
            lines += ["        ),"]
        if center:
            lines += ["        _center(", f"            {step:.7f},"]
            lines += [f'            "{center[at : at + 80]}"' for at in range(0, len(center), 80)]
            lines += ["        ),"]
        lines += ["    ),"]
    FILE.write_text("\n".join([head + lines[0], *lines[1:], "}", ""]), encoding="utf-8")
