"""What a context is built for: its budget, its question, and what it shows besides the log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from firnline.context.budget import Budget, less
from firnline.context.context import Context
from firnline.context.person import PersonMaterial
from firnline.log.message import Message
from firnline.protocols import Retriever


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What a context shows of other conversations.

    It has so many `tokens`, and `merge` adds it to the context of the conversation itself, which
    quotes at most `recall_tokens` and has entries of up to `tail_tokens`.
    """

    tokens: int
    recall_tokens: int
    tail_tokens: int
    merge: Callable[[Context], Context]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRequest:
    """What a context is built for."""

    budget: Budget
    question: str | None = None
    system: tuple[Message, ...] = ()
    tools: tuple[Mapping[str, Any], ...] = ()
    task: str | None = None
    retriever: Retriever | None = None
    fold: bool = True
    past: bool = False
    person: PersonMaterial | None = None
    beside: Beside | None = None


def without_beside(request: BuildRequest) -> BuildRequest:
    """The request in the room that other conversations leave."""
    if (beside := request.beside) is None:
        return request
    budget = less(request.budget, beside.tokens)
    return replace(request, budget=replace(budget, recall_tokens=beside.recall_tokens))
