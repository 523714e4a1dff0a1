"""Metrics of the endpoints behind the proxy: how many calls, how they end, how long they take."""

from __future__ import annotations

import time
from http import HTTPStatus
from typing import Final, Protocol

from prometheus_client import CollectorRegistry, Counter, Histogram

_BUCKETS: Final = (
    *(0.05, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.5, 5.0, 7.5),
    *(10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0),
)
_STATUSES: Final = frozenset(HTTPStatus)  # an endpoint can send any number
OK: Final = HTTPStatus.OK


class CallMeter(Protocol):
    """What is told of one call to an endpoint."""

    def note_answer(self, status: int) -> None:
        """The status and the headers have arrived."""
        ...

    def note_text(self) -> None:
        """A piece of the answer's text has arrived; only the first one counts."""
        ...

    def end(self, outcome: str = "") -> None:
        """The call has ended: how, unless its status says it; only the first time counts."""
        ...


class UnmeasuredCall:
    """A call that answers no client: a list of models, or a question of what there is."""

    def note_answer(self, status: int) -> None:
        """Not measured."""

    def note_text(self) -> None:
        """Not measured."""

    def end(self, outcome: str = "") -> None:
        """Not measured."""


class UpstreamMetrics:
    """The metrics of all endpoints, in the server's registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.calls = Counter(
            "firnline_upstream_requests",
            "Requests to the endpoints behind the proxy.",
            ["endpoint", "outcome"],
            registry=registry,
        )

        def histogram(name: str, text: str) -> Histogram:
            full = f"firnline_upstream_{name}_seconds"
            return Histogram(full, text, ["endpoint"], buckets=_BUCKETS, registry=registry)

        self.answer = histogram("first_byte", "Time until an endpoint begins its answer.")
        self.text = histogram("first_token", "Time until the first text of a streamed answer.")
        self.whole = histogram("duration", "Time until the end of an endpoint's answer.")

    def begin(self, endpoint: str) -> CallMeter:
        """A call to this endpoint begins now."""
        return _Call(self, endpoint)


class _Call:
    def __init__(self, metrics: UpstreamMetrics, endpoint: str) -> None:
        self._metrics, self._endpoint = metrics, endpoint
        self._began = time.monotonic()
        self._status, self._has_text, self._ended = 0, False, False

    def note_answer(self, status: int) -> None:
        self._status = status
        self._metrics.answer.labels(self._endpoint).observe(self._seconds())

    def note_text(self) -> None:
        if not self._has_text:
            self._has_text = True
            self._metrics.text.labels(self._endpoint).observe(self._seconds())

    def end(self, outcome: str = "") -> None:
        if self._ended:
            return
        self._ended = True
        status = str(self._status) if self._status in _STATUSES else "other"
        named = outcome or ("ok" if self._status == OK else status)
        self._metrics.calls.labels(self._endpoint, named).inc()
        self._metrics.whole.labels(self._endpoint).observe(self._seconds())

    def _seconds(self) -> float:
        return time.monotonic() - self._began
