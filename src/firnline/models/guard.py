"""Limits the cost of a failing or looping model: backoff, circuit breaker, spend limits.

Pure: time and chance are passed as arguments, nothing here waits or calls, and memory is bounded.
"""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, TypeAlias

from firnline.log.entry import Key

Ticker: TypeAlias = Callable[[], float]
"""Seconds on a clock that never goes back."""
Chance: TypeAlias = Callable[[], float]
"""A number from 0 to 1, 1 excluded."""

KEYS_MAX: Final = 100_000
"""Conversations, tenants or endpoints that are tracked at once."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """The wait before a retry: full jitter, doubling from `first` to `most` seconds.

    The whole wait is random, so that callers that failed together do not retry together.
    """

    first: float = 2.0
    most: float = 900.0
    chance: Chance = random.random

    def delay(self, attempt: int) -> float:
        """Seconds to wait after failure number `attempt`, counted from 0."""
        doublings = min(max(attempt, 0), 64)  # 2.0 ** 64 times anything is above `most` already
        return self.chance() * min(self.most, self.first * 2.0**doublings)


# -- the breaker ------------------------------------------------------------------------------


@dataclass(slots=True)
class _Circuit:
    failures: int = 0
    opens_at: float = 0.0


class Breaker:
    """Stops calls that keep failing, with one circuit for each key, such as an endpoint.

    `failures` in a row open the circuit; after `pause` seconds, plus up to half as many at random,
    one caller may try (half open). Its success closes the circuit, its failure opens it for another
    pause; if it reports neither, another caller may try after the same time.
    """

    def __init__(
        self,
        *,
        failures: int = 5,
        pause: float = 30.0,
        clock: Ticker = time.monotonic,
        chance: Chance = random.random,
        keys_max: int = KEYS_MAX,
    ) -> None:
        self._failures = failures
        self._pause = pause
        self._clock = clock
        self._chance = chance
        self._keys_max = keys_max
        self._circuits: dict[Hashable, _Circuit] = {}

    def allow(self, key: Hashable = "") -> float:
        """Seconds to wait, 0 if the call may be made now.

        In the half-open state one caller gets 0, and must then report success or failure.
        """
        circuit = self._circuits.get(key)
        if circuit is None or circuit.failures < self._failures:
            return 0.0
        now = self._clock()
        if now < circuit.opens_at:
            return circuit.opens_at - now
        circuit.opens_at = now + self._length()
        return 0.0

    def succeeded(self, key: Hashable = "") -> None:
        """A call succeeded: the circuit closes."""
        self._circuits.pop(key, None)

    def failed(self, key: Hashable = "") -> None:
        """A call failed; too many in a row open the circuit."""
        circuit = self._circuits.pop(key, None) or _Circuit()
        if len(self._circuits) >= self._keys_max:
            # Dropping the oldest failure only means that it is tried again.
            del self._circuits[next(iter(self._circuits))]
        self._circuits[key] = circuit
        circuit.failures += 1
        if circuit.failures >= self._failures:
            circuit.opens_at = self._clock() + self._length()

    def state(self, key: Hashable = "") -> Literal["closed", "open", "half-open"]:
        """The state that `allow` acts on."""
        circuit = self._circuits.get(key)
        if circuit is None or circuit.failures < self._failures:
            return "closed"
        return "open" if self._clock() < circuit.opens_at else "half-open"

    def _length(self) -> float:
        return self._pause * (1.0 + self._chance() / 2.0)


# -- the spend guard --------------------------------------------------------------------------


class Allowance(NamedTuple):
    """The spend limits for one window of time."""

    calls: int
    tokens: int


CONVERSATION: Final = Allowance(calls=24, tokens=1_000_000)
TENANT: Final = Allowance(calls=600, tokens=10_000_000)
WINDOW_SECONDS: Final = 600.0


@dataclass(slots=True)
class _SpentInWindow:
    """What one key spent in the window, in at most as many rows as allowed calls."""

    rows: deque[tuple[float, int, int]] = field(default_factory=deque)  # when, calls, tokens
    calls: int = 0
    tokens: int = 0

    def forget(self, now: float, seconds: float) -> None:
        # The same arithmetic as for a wait, so that rounding cannot make them differ.
        while self.rows and self.rows[0][0] + seconds <= now:
            _, calls, tokens = self.rows.popleft()
            self.calls -= calls
            self.tokens -= tokens

    def add(self, now: float, calls: int, tokens: int, rows_max: int) -> None:
        if len(self.rows) >= rows_max:
            # Moving spend to a later time can only make the limit stricter.
            _, more_calls, more_tokens = self.rows.pop()
            self.rows.append((now, calls + more_calls, tokens + more_tokens))
        else:
            self.rows.append((now, calls, tokens))
        self.calls += calls
        self.tokens += tokens

    def blocker(self, allowance: Allowance, tokens: int) -> float | None:
        """The time of the row that must leave the window before one more call fits."""
        calls_left, tokens_left = self.calls, self.tokens
        leaves: float | None = None
        for when, row_calls, row_tokens in self.rows:
            # A call larger than the whole allowance would wait forever: it is allowed alone.
            if calls_left < allowance.calls and tokens_left + tokens <= allowance.tokens:
                break
            calls_left -= row_calls
            tokens_left -= row_tokens
            leaves = when
        return leaves


class Spend:
    """Limits calls and tokens for each conversation and each tenant, in a sliding window.

    There are never more calls than allowed in any `seconds`. A call that needs more tokens than the
    whole allowance is allowed if nothing else was spent in the window.
    """

    def __init__(
        self,
        *,
        conversation: Allowance = CONVERSATION,
        tenant: Allowance = TENANT,
        seconds: float = WINDOW_SECONDS,
        clock: Ticker = time.monotonic,
        keys_max: int = KEYS_MAX,
    ) -> None:
        self._conversation = conversation
        self._tenant = tenant
        self._seconds = seconds
        self._clock = clock
        self._keys_max = keys_max
        self._spent: dict[Key | str, _SpentInWindow] = {}  # the one used last is at the end

    def allow(self, key: Key, tokens: int) -> float:
        """Seconds to wait; 0 if a call of about `tokens` may be made, which then counts as made."""
        wait = self.wait(key, tokens)
        if wait == 0:
            now = self._clock()
            for name, allowance in self._wanted(key):
                self._add(name, now, 1, tokens, allowance.calls)
        return wait

    def wait(self, key: Key, tokens: int) -> float:
        """Seconds until a call of about `tokens` may be made; nothing is counted."""
        now = self._clock()
        wanted = self._wanted(key)
        if min(self._conversation.calls, self._tenant.calls) < 1:
            return self._seconds
        blockers = [self._blocker(name, allowance, tokens, now) for name, allowance in wanted]
        if blockers == [None, None]:
            blockers = [self._no_room(now, {name for name, _ in wanted})]
        written = [when for when in blockers if when is not None]
        return max(written) + self._seconds - now if written else 0.0

    def record(self, key: Key, tokens: int, calls: int = 0) -> None:
        """Count what an allowed call cost beyond the estimate passed to `allow`."""
        now = self._clock()
        for name, allowance in self._wanted(key):
            if name in self._spent or len(self._spent) < self._keys_max:
                self._add(name, now, calls, tokens, allowance.calls)

    def _wanted(self, key: Key) -> tuple[tuple[Key | str, Allowance], ...]:
        return (key, self._conversation), (key.tenant, self._tenant)

    def _add(self, name: Key | str, now: float, calls: int, tokens: int, rows_max: int) -> None:
        spent = self._spent.pop(name, None) or _SpentInWindow()
        self._spent[name] = spent
        spent.add(now, calls, tokens, max(rows_max, 1))

    def _blocker(
        self, name: Key | str, allowance: Allowance, tokens: int, now: float
    ) -> float | None:
        spent = self._spent.get(name)
        if spent is None:
            return None
        spent.forget(now, self._seconds)
        return spent.blocker(allowance, tokens)

    def _no_room(self, now: float, wanted: set[Key | str]) -> float | None:
        """Drop keys without recent spend. If there are none, the time of the oldest spend."""
        while self._spent and (
            len(self._spent) + sum(name not in self._spent for name in wanted) > self._keys_max
        ):
            oldest = next(iter(self._spent))
            spent = self._spent[oldest]
            spent.forget(now, self._seconds)
            if spent.rows:
                # Dropping spend would allow more than the limit.
                return spent.rows[-1][0]
            del self._spent[oldest]
        return None
