"""Hypothesis strategies for random conversations with difficult cases."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Final

from hypothesis import strategies as st

from firnline.log.message import Message, ToolCall

_WORDS: Final = (
    "order",
    "invoice",
    "Ana",
    "Hamburg",
    "1138",
    "ship",
    "deadline",
    "prefer",
    "never",
    "please",
    "March",
    "49.90",
    "euros",
    "https://example.com/a",
    "the",
    "a",
    "of",
    "to",
    "and",
    "is",
    "it",
    "we",
    "you",
    "decided",
    "with",
    "for",
    "not",
    "latency",
    "🙂",
    "déjà",
    "東京",
    "привет",
)
_SIZES: Final = (0, 1, 3, 12, 40, 120)
_LONG: Final = (150, 300, 900)


def conversations(*, steps_max: int = 30) -> st.SearchStrategy[list[Message]]:
    """Random conversations with difficult cases.

    They have tool calls (also parallel, unanswered and orphaned), pins, system notes, and empty and
    very long messages, in any order.
    """
    steps = st.lists(st.sampled_from(tuple(_STEPS)), min_size=1, max_size=steps_max)
    return st.builds(_conversation, steps, st.integers(0, 2**32 - 1))


def _conversation(steps: list[str], seed: int) -> list[Message]:
    rng = random.Random(seed)
    messages: list[Message] = []
    for number, step in enumerate(steps):
        messages += _STEPS[step](rng, number)
    return messages


def _text(rng: random.Random, size: int | None = None) -> str:
    return " ".join(rng.choices(_WORDS, k=rng.choice(_SIZES) if size is None else size))


def _user(rng: random.Random, _: int) -> Iterator[Message]:
    yield Message.user(_text(rng))


def _round(rng: random.Random, _: int) -> Iterator[Message]:
    yield Message.user(_text(rng))
    yield Message.assistant(_text(rng))


def _pinned(rng: random.Random, number: int) -> Iterator[Message]:
    yield Message.user(f"Rule {number}: {_text(rng, 3)}", metadata={"pinned": True})


def _system(rng: random.Random, _: int) -> Iterator[Message]:
    yield Message.system(_text(rng, 3))


def _long(rng: random.Random, _: int) -> Iterator[Message]:
    yield Message.assistant(_text(rng, rng.choice(_LONG)))


def _tools(rng: random.Random, number: int) -> Iterator[Message]:
    """A round with some calls; `number` makes their ids unique."""
    ids = [f"call-{number}-{i}" for i in range(rng.randint(1, 3))]
    yield Message.user(_text(rng))
    yield Message.assistant(_text(rng, 3), tool_calls=[_call(rng, id_) for id_ in ids])
    rng.shuffle(ids)
    for id_ in ids:
        yield Message.tool(_text(rng), tool_call_id=id_)
    yield Message.assistant(_text(rng))


def _long_result(rng: random.Random, number: int) -> Iterator[Message]:
    yield Message.assistant(tool_calls=[_call(rng, f"long-{number}")])
    yield Message.tool(_text(rng, rng.choice(_LONG)), tool_call_id=f"long-{number}")


def _unanswered(rng: random.Random, number: int) -> Iterator[Message]:
    calls = [_call(rng, f"open-{number}-{i}") for i in range(2)]
    yield Message.assistant(tool_calls=calls)
    if rng.random() < 0.5:
        yield Message.tool(_text(rng, 3), tool_call_id=f"open-{number}-1")


def _orphan(rng: random.Random, number: int) -> Iterator[Message]:
    yield Message.tool(_text(rng, 3), tool_call_id=f"gone-{number}")


def _call(rng: random.Random, id_: str) -> ToolCall:
    return ToolCall.of(id_, "look_up", {"what": _text(rng, 2)})


_STEPS: Final[dict[str, Callable[[random.Random, int], Iterator[Message]]]] = {
    "round": _round,
    "user": _user,
    "tools": _tools,
    "pinned": _pinned,
    "system": _system,
    "long": _long,
    "long result": _long_result,
    "unanswered": _unanswered,
    "orphan": _orphan,
}
