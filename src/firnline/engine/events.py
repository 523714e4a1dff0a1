"""Events for metrics and observers: counted, logged at DEBUG, and passed to the observer.

An event has names and numbers, and never message text; metrics, spans and logs are derived from it.
Each verb sends one when it ends, with its milliseconds, or ``…_failed`` with the error.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Final, Self, TypeAlias, TypeVar

from firnline.context.context import Context, kind_of
from firnline.log.entry import Appended, Digest, Erased
from firnline.log.hit import Hits
from firnline.protocols import Event, Observer

logger: Final = logging.getLogger("firnline.events")

Values: TypeAlias = Mapping[str, float | str]
T = TypeVar("T")


class Events:
    """Sends the events of a tenant's conversations."""

    def __init__(self, tenant: str, observer: Observer | None) -> None:
        self._tenant, self._observer = tenant, observer
        self.counts: Counter[str] = Counter()

    @property
    def heard(self) -> bool:
        """Whether anything listens besides the counters."""
        return self._observer is not None or logger.isEnabledFor(logging.DEBUG)

    def __call__(self, event: Event) -> None:
        """Count the event, log it and pass it to the observer; never fails."""
        self.counts[event.name] += 1
        # The operation has succeeded; an observer or a log handler that fails must not change that.
        try:
            logger.debug("%s %s: %s", event.name, event.conversation, event.values)
            if self._observer is not None:
                self._observer(event)
        except Exception:
            with suppress(Exception):  # what fails may be the log
                logger.exception("the observer failed at %s", event.name)

    def timed(self, name: str, conversation: str | None) -> Timed:
        """A timer for an operation that begins now."""
        return Timed(self, name, self._tenant, conversation or "")


class Timed:
    """A running operation: call `done` inside ``with``, or it is reported as failed."""

    __slots__ = ("_conversation", "_events", "_name", "_sent", "_started", "_tenant")

    def __init__(self, events: Events, name: str, tenant: str, conversation: str) -> None:
        self._events, self._name = events, name
        self._tenant, self._conversation = tenant, conversation
        self._sent = False
        self._started = time.perf_counter()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None and not self._sent:
            self._send(f"{self._name}_failed", {"error": kind.__name__})

    def done(self, describe: Callable[[T], Values], result: T) -> T:
        """Report success and return the result; it is described only if an observer listens."""
        self._sent = True
        if self._events.heard:
            self._send(self._name, describe(result))
        else:
            self._events.counts[self._name] += 1
        return result

    def _send(self, name: str, values: Values) -> None:
        took = {"milliseconds": milliseconds_since(self._started)}
        self._events(Event(name, self._tenant, self._conversation, {**took, **values}))


def milliseconds_since(started: float) -> float:
    """Milliseconds since `started`, by `time.perf_counter`."""
    return round((time.perf_counter() - started) * 1e3, 3)


# -- the values of events ---------------------------------------------------------------------


def of_recall(hits: Hits) -> Values:
    """How many entries were found, and whether the search was limited."""
    return {"hits": len(hits), "degraded": len(hits.degraded)}


def of_append(appended: Appended) -> Values:
    """What was stored."""
    first, last = appended[0], appended[-1]
    return {
        "entries": len(appended),
        "tokens": last.total - first.total + first.tokens,
        "replayed": int(appended.replayed),
    }


def of_context(context: Context) -> Values:
    """How the tokens are used, and how many the full history would have."""
    accounting = context.accounting
    numbers = {name: getattr(accounting, name) for name in accounting.__slots__}
    kinds = Counter(map(kind_of, context.degraded))
    return {
        **numbers,
        "tokens": context.tokens,
        "whole": context.whole_tokens,
        "hits": len(context.hits),
        "degraded": len(context.degraded),
        **{f"degraded_{kind}": count for kind, count in kinds.items()},
        "strategy": context.strategy,
    }


def of_fold(digest: Digest) -> Values:
    """What a digest covers, what created it, and its cost."""
    return {
        "milliseconds": digest.milliseconds,
        "version": digest.version,
        "layer": digest.layer,
        "entries": digest.last_seq - digest.first_seq + 1,
        "tokens": digest.tokens,
        "calls": digest.calls,
        "spent_tokens": digest.spent_tokens,
        "strategy": digest.strategy,
        "made_by": digest.made_by,
    }


def of_erase(erased: Erased) -> Values:
    """How much was erased."""
    return {"entries": erased.entries, "digests": erased.digests, "tokens": erased.tokens}
