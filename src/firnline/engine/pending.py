"""Pending digests: which strategy plans a conversation, and what a worker has to do for it."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from firnline.context.budget import Budget
from firnline.context.plan import Strategy, ends_round
from firnline.errors import ConflictError, InputError
from firnline.log import limits
from firnline.log.entry import Head, Key
from firnline.log.message import Message
from firnline.protocols import Clock, Store
from firnline.strategies import STRATEGIES
from firnline.strategies import strategy as strategy_named

logger: Final = logging.getLogger("firnline.context")


class StrategyRegistry:
    """The strategies that a memory knows: the built-in ones, the caller's, and the default."""

    def __init__(self, default: Strategy, custom: Sequence[Strategy] = ()) -> None:
        self._default = default
        self._custom = {strategy.name: strategy for strategy in custom}
        if default.name not in STRATEGIES:
            self._custom.setdefault(default.name, default)

    def strategy_of(self, head: Head | None, *, planned: bool = False) -> Strategy:
        """The strategy of the conversation, or the default.

        `planned`: if the conversation has no strategy, prefer the one it was last planned with.
        """
        stored = (head.strategy if head else None) or {}
        chosen = stored if "name" in stored else stored.get("planned") if planned else None
        if not isinstance(chosen, dict):
            return self._default
        name, parameters = str(chosen.get("name")), chosen.get("parameters")
        if name in self._custom:
            return self._custom[name]
        try:
            return strategy_named(name, parameters if isinstance(parameters, dict) else None)
        except InputError as error:
            # Possibly a custom strategy of another process; not a reason to fail an append.
            logger.warning("%s; the default strategy is used", error)
            return self._default

    def check(self, strategy: Strategy) -> None:
        """Raise `InputError` if the strategy could not be found by its name later."""
        custom = self._custom.get(strategy.name)
        if custom is None:
            strategy_named(strategy.name, strategy.parameters)
        elif dict(custom.parameters) != dict(strategy.parameters):
            raise InputError(
                f"strategy {strategy.name}: this memory has it with different parameters; give "
                "each variant its own name and open the memory with all of them"
            )


class PendingDigests:
    """Records in the store which conversations have to be digested, and calls the listeners."""

    def __init__(
        self,
        store: Store,
        strategies: StrategyRegistry,
        *,
        budget: Budget,
        background: bool | None,
        clock: Clock,
    ) -> None:
        self._store, self._clock = store, clock
        self.strategies, self._budget, self._background = strategies, budget, background
        self.listeners: list[Callable[[], None]] = []
        self._in_background: OrderedDict[Key, bool] = OrderedDict()

    def is_background(self, strategy: Strategy) -> bool:
        """Whether digests of this strategy are created by a worker."""
        default = not strategy.waits if self._background is None else self._background
        return strategy.background or default

    def budget_of(self, head: Head) -> Budget:
        """The budget for which the conversation was last planned, or the default."""
        stored = (head.strategy or {}).get("budget")
        return Budget(**stored) if isinstance(stored, dict) else self._budget  # type: ignore[arg-type]

    def set_strategy(self, key: Key, strategy: Strategy) -> bool:
        """Remember whether the conversation is digested in the background after each round."""
        background = self._in_background[key] = strategy.background or self._background is True
        if len(self._in_background) > limits.STRATEGIES_REMEMBERED:
            self._in_background.popitem(last=False)
        return background

    def forget(self, key: Key) -> None:
        """Drop what is cached for a conversation."""
        self._in_background.pop(key, None)

    async def on_append(self, key: Key, messages: Sequence[Message]) -> None:
        """After an append: the end of a round may have to be digested in the background."""
        if ends_round(messages[-1]):
            await self.on_round(key)

    async def on_round(self, key: Key) -> None:
        """Record that the conversation has something to digest, if a worker digests it."""
        background, recording = self._in_background.get(key), []
        if background is None:
            head = await self._store.head(key)
            strategy = self.strategies.strategy_of(head)
            background = self._in_background.get(key)  # set_strategy may have run meanwhile
            background = self.set_strategy(key, strategy) if background is None else background
            recording = [self._record_plan(key, head, strategy)] if background else []
        if background:
            # Together, so that they share a commit.
            await asyncio.gather(*recording, self._store.mark_pending(key, self._clock()))
            self._notify()

    async def add(self, key: Key, strategy: Strategy, budget: Budget) -> None:
        """Record durably that the conversation has to be digested, how, and for which budget."""
        await self._record_plan(key, await self._store.head(key), strategy, budget)
        await self._store.mark_pending(key, self._clock())
        self._notify()

    async def settle(self, key: Key, last_seq: int, planned: Head) -> None:
        """Nothing is pending up to `last_seq`, unless the strategy has changed since `planned`."""
        if await self._store.clear_pending(key, last_seq):
            head = await self._store.head(key)
            if head is not None and head.strategy != planned.strategy:
                await self._store.mark_pending(key, self._clock())

    async def _record_plan(
        self, key: Key, head: Head | None, strategy: Strategy, budget: Budget | None = None
    ) -> None:
        """Store strategy and budget with the conversation, for a worker in another process."""
        stored = dict((head.strategy if head else None) or {})
        plan = {**stored, "planned": strategy.to_json()}
        if budget is not None:
            plan["budget"] = budget.to_json()
        if head is not None and plan != stored:
            # An erased conversation is not created again, and a newer choice is not overwritten.
            with suppress(ConflictError):
                await self._store.describe(key, strategy=plan, known=head)

    def _notify(self) -> None:
        for listener in self.listeners:
            listener()
