"""How many tokens a request may have, and what they are reserved for."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Self, TypeAlias

from firnline.errors import BudgetError, InputError
from firnline.log.tokens import REPLY_TOKENS, find_model, is_known_model

RECALL_TOKENS: Final = 2_000
"""Enough to answer nearly every question."""
_RESERVE_MAX: Final = 4_096
_RESERVE_SHARE: Final = 8  # an eighth of the window, where a model's name is all that is given


@dataclass(frozen=True, slots=True)
class Budget:
    """The window of a model, and how much of it is kept free for its answer.

    `recall_tokens` is kept for recalled entries once a question is asked and not all that was said
    fits; None lets Firnline choose (`recall_room`).
    `model` names whose tokenizer counts, the memory's own if it is None.
    """

    window_tokens: int
    reserve_tokens: int = 0
    recall_tokens: int | None = None
    model: str | None = None

    def __post_init__(self) -> None:
        whole = all(type(n) is int for n in (self.window_tokens, self.reserve_tokens))
        if not whole or not 0 <= self.reserve_tokens < self.window_tokens:
            raise InputError(
                f"a window of {self.window_tokens!r} tokens, {self.reserve_tokens!r} in reserve;"
                " both are whole numbers, the reserve at least 0 and smaller than the window"
            )
        if self.recall_tokens is not None and self.recall_tokens < 0:
            raise InputError(f"recall_tokens: {self.recall_tokens} is less than 0")

    @classmethod
    def of(cls, model: str, *, reserve_tokens: int | None = None) -> Self:
        """The window of the model called `model`, counted with its tokenizer."""
        window = find_model(model).window_tokens
        if reserve_tokens is None:
            reserve_tokens = min(_RESERVE_MAX, window // _RESERVE_SHARE)
        return cls(window, reserve_tokens, model=model)

    def to_json(self) -> dict[str, Any]:
        """The budget's fields, of which it can be made again."""
        return asdict(self)

    @property
    def limit(self) -> int:
        """What messages and tool schemas together may take."""
        return self.window_tokens - self.reserve_tokens

    @property
    def recall_room(self) -> int:
        """What is kept for recalled entries: of small budgets most, of large ones an eighth.

        2,000 tokens hold nearly all that a question needs; more than an eighth of a large window
        would only cost.
        """
        if self.recall_tokens is not None:
            return self.recall_tokens
        return min(self.limit * 3 // 5, max(RECALL_TOKENS, self.limit // 8))


BudgetLike: TypeAlias = "Budget | str | int"
"""A budget, the name of a model that is known, or just the tokens of the window."""


def as_budget(budget: BudgetLike) -> Budget:
    """The budget that is meant."""
    if isinstance(budget, Budget):
        return budget
    if not isinstance(budget, str):
        return Budget(budget)
    if budget.replace(",", "").replace("_", "").isdecimal():  # no model is called so
        raise InputError(f"budget: {budget!r} is a text: give the tokens as a number")
    if not is_known_model(budget):  # a misspelt name must not mean the small window of a stranger
        raise InputError(
            f"budget: {budget!r} is no model whose window is known here; give the tokens as a"
            f" number, or both: Budget(window_tokens=..., model={budget!r})"
        )
    return Budget.of(budget)


def less(budget: Budget, tokens: int) -> Budget:
    """The budget without tokens that something else takes; `BudgetError` if they are too many."""
    floor = tokens + REPLY_TOKENS
    if floor > budget.limit:
        raise BudgetError(
            f"at least {floor:,} tokens are needed, {budget.limit:,} are there: input {tokens:,}",
            floor=floor,
            available=budget.limit,
            blockers={"input": tokens, "framing": REPLY_TOKENS},
        )
    return replace(budget, reserve_tokens=budget.reserve_tokens + tokens)
