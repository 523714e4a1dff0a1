"""The tokens of a request, and what they are reserved for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any, Final, Self, TypeAlias

from firnline.errors import BudgetError, InputError
from firnline.log.limits import BATCH_BYTES_MAX
from firnline.log.model_table import find_model
from firnline.log.tokens import REPLY_TOKENS

RECALL_TOKENS: Final = 2_000
"""Enough to answer nearly every question."""
_RESERVE_MAX: Final = 4_096
_RESERVE_SHARE: Final = 8  # of the window, if only a model is named
_WHOLE_TOKENS: Final = BATCH_BYTES_MAX
"""More than any request has: the budget if the window is unknown, so that nothing is cut."""

Windows: TypeAlias = Mapping[str, int]
"""The windows of models by name, for names that do not tell: deployments, aliases, new models."""
NO_WINDOWS: Final[Windows] = MappingProxyType({})


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
    def of(
        cls, model: str, *, reserve_tokens: int | None = None, windows: Windows = NO_WINDOWS
    ) -> Self:
        """The window of a model, counted with its tokenizer; `windows` come before known ones.

        `InputError` if the window is unknown: a guess would cut the conversation.
        """
        window = window_of(model, windows)
        if window is None:
            raise InputError(
                f"unknown model {model!r}: its window must be given; pass"
                f" Budget(window_tokens=..., model={model!r}), or"
                f" Memory.open(..., windows={{{model!r}: ...}})"
            )
        if reserve_tokens is None:
            reserve_tokens = min(_RESERVE_MAX, window // _RESERVE_SHARE)
        return cls(window, reserve_tokens, model=model)

    @classmethod
    def whole(cls, model: str | None) -> Self:
        """A budget for the whole conversation, for a model whose window is unknown."""
        return cls(_WHOLE_TOKENS, model=model)

    @property
    def is_whole(self) -> bool:
        """Whether the window is unknown, so that nothing is cut."""
        return self.window_tokens == _WHOLE_TOKENS

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


def window_of(model: str, windows: Windows = NO_WINDOWS) -> int | None:
    """The model's window, from `windows` or by its name; None if it is unknown."""
    return windows.get(model) or find_model(model).window_tokens


def budget_of_model(model: str, windows: Windows = NO_WINDOWS) -> Budget:
    """The model's window; if it is unknown, a budget for the whole conversation."""
    if window_of(model, windows) is None:
        return Budget.whole(model)
    return Budget.of(model, windows=windows)


def check_windows(windows: Windows) -> Windows:
    """The windows, or `InputError` if they are not numbers of tokens by name."""
    for name, tokens in windows.items():
        if not isinstance(name, str) or type(tokens) is not int or tokens < 1:
            raise InputError(
                f"windows: {name!r}: {tokens!r}; expected tokens by a model's name, such as"
                ' {"my-deployment": 128_000}'
            )
    return MappingProxyType(dict(windows))


def as_budget(budget: BudgetLike, windows: Windows = NO_WINDOWS) -> Budget:
    """The value as a `Budget`; `windows` are those of own model names."""
    if isinstance(budget, Budget):
        return budget
    if not isinstance(budget, str):
        return Budget(budget)
    if budget.replace(",", "").replace("_", "").isdecimal():  # no model has such a name
        raise InputError(f"budget: {budget!r} is a string; pass the tokens as a number")
    return Budget.of(budget, windows=windows)


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
