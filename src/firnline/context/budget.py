"""The tokens of a request, and what they are reserved for."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Self, TypeAlias

from firnline.errors import BudgetError, InputError
from firnline.log.tokens import REPLY_TOKENS, find_model, is_known_model

RECALL_TOKENS: Final = 2_000
"""Enough to answer nearly every question."""
_RESERVE_MAX: Final = 4_096
_RESERVE_SHARE: Final = 8  # of the window, if only a model is named


@dataclass(frozen=True, slots=True)
class Budget:
    """A model's window, and how many of its tokens are reserved for the answer.

    `recall_tokens` are for recalled entries, if there is a question and not all messages fit; None
    lets Firnline choose (`recall_room`). `model` selects the tokenizer; None is the memory's own.
    """

    window_tokens: int
    reserve_tokens: int = 0
    recall_tokens: int | None = None
    model: str | None = None

    def __post_init__(self) -> None:
        whole = all(type(n) is int for n in (self.window_tokens, self.reserve_tokens))
        if not whole or not 0 <= self.reserve_tokens < self.window_tokens:
            raise InputError(
                f"window_tokens {self.window_tokens!r}, reserve_tokens {self.reserve_tokens!r}:"
                " both must be whole numbers, the reserve at least 0 and smaller than the window"
            )
        if self.recall_tokens is not None and self.recall_tokens < 0:
            raise InputError(f"recall_tokens: {self.recall_tokens}; must be at least 0")

    @classmethod
    def of(cls, model: str, *, reserve_tokens: int | None = None) -> Self:
        """The window of a model, counted with its tokenizer."""
        window = find_model(model).window_tokens
        if reserve_tokens is None:
            reserve_tokens = min(_RESERVE_MAX, window // _RESERVE_SHARE)
        return cls(window, reserve_tokens, model=model)

    def to_json(self) -> dict[str, Any]:
        """The fields, from which the budget can be created again."""
        return asdict(self)

    @property
    def limit(self) -> int:
        """The tokens that messages and tool schemas may take together."""
        return self.window_tokens - self.reserve_tokens

    @property
    def recall_room(self) -> int:
        """The tokens for recalled entries: most of a small budget, an eighth of a large one.

        2,000 tokens answer nearly every question; more than an eighth of a large window would only
        cost money.
        """
        if self.recall_tokens is not None:
            return self.recall_tokens
        return min(self.limit * 3 // 5, max(RECALL_TOKENS, self.limit // 8))


BudgetLike: TypeAlias = "Budget | str | int"
"""A budget, the name of a known model, or the tokens of the window."""


def as_budget(budget: BudgetLike) -> Budget:
    """The value as a `Budget`."""
    if isinstance(budget, Budget):
        return budget
    if not isinstance(budget, str):
        return Budget(budget)
    if budget.replace(",", "").replace("_", "").isdecimal():  # no model has such a name
        raise InputError(f"budget: {budget!r} is a string; pass the tokens as a number")
    if not is_known_model(budget):  # a misspelled name must not select a guessed window
        raise InputError(
            f"budget: unknown model {budget!r}; pass the tokens as a number, or both:"
            f" Budget(window_tokens=..., model={budget!r})"
        )
    return Budget.of(budget)


def less(budget: Budget, tokens: int) -> Budget:
    """The budget reduced by `tokens`; `BudgetError` if too little is left."""
    floor = tokens + REPLY_TOKENS
    if floor > budget.limit:
        raise BudgetError(
            f"at least {floor:,} tokens needed, {budget.limit:,} available: input {tokens:,}",
            floor=floor,
            available=budget.limit,
            blockers={"input": tokens, "framing": REPLY_TOKENS},
        )
    return replace(budget, reserve_tokens=budget.reserve_tokens + tokens)
