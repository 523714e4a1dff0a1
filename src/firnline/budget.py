"""How many tokens a request may take, and what they are kept for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self, TypeAlias

from firnline.errors import InputError
from firnline.tokens import model_named

_RESERVE_MAX: Final = 4_096
_RESERVE_SHARE: Final = 8  # an eighth of the window, where a model's name is all that is given


@dataclass(frozen=True, slots=True)
class Budget:
    """The window of a model, and how much of it is kept free for its answer.

    `recall_tokens` is the most that recalled entries may take, an eighth of the rest if it is None.
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
                " the reserve is at least 0 and smaller than the window"
            )
        if self.recall_tokens is not None and self.recall_tokens < 0:
            raise InputError(f"recall_tokens: {self.recall_tokens} is less than 0")

    @classmethod
    def of(cls, model: str, *, reserve_tokens: int | None = None) -> Self:
        """The window of the model called `model`, counted with its tokenizer."""
        window = model_named(model).window_tokens
        if reserve_tokens is None:
            reserve_tokens = min(_RESERVE_MAX, window // _RESERVE_SHARE)
        return cls(window, reserve_tokens, model=model)

    @property
    def limit(self) -> int:
        """What messages and tool schemas together may take."""
        return self.window_tokens - self.reserve_tokens


BudgetLike: TypeAlias = "Budget | str | int"
"""A budget, a model's name, or just the tokens of the window."""


def as_budget(budget: BudgetLike) -> Budget:
    """The budget that is meant."""
    if isinstance(budget, Budget):
        return budget
    if isinstance(budget, str):
        return Budget.of(budget)
    return Budget(budget)
