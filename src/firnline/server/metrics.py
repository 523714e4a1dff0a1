"""Metrics for Prometheus: from the events of `Memory` and the server's requests.

No label contains a tenant or a conversation; labels that clients can influence are limited to
`LABELS_MAX` values. Values that only the store knows are read when metrics are requested.
"""

from __future__ import annotations

import asyncio
import logging
import platform
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final, Protocol

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    ProcessCollector,
    generate_latest,
)

from firnline import __version__
from firnline.errors import StoreError, outline
from firnline.log.message import utc_now
from firnline.memory import Memory
from firnline.protocols import Clock, Event, Pending
from firnline.server.limits import GAUGES_FRESH_SECONDS, LABELS_MAX, PROBE_SECONDS

logger: Final = logging.getLogger("firnline.server")

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
OTHER: Final = "other"

_MILLI: Final = 1e-3
_BUCKETS: Final = (
    *(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0),
)
_UPSTREAM_BUCKETS: Final = (
    *(0.05, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.5, 5.0, 7.5),
    *(10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0),
)
_STATUSES: Final = frozenset(HTTPStatus)  # an endpoint can send any number
OK: Final = HTTPStatus.OK
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_SECTIONS: Final = (
    *("reserve", "tools", "system", "pinned", "task", "profile", "important", "digests"),
    *("history", "recalled", "elsewhere", "retrieved", "framing", "free"),
)
_KINDS: Final = ("digests", "entries", "backlog", "vectors", "model")
_GONE: Final = frozenset({"CancelledError", "GeneratorExit"})
_OPERATIONS: Final = frozenset({"append", "recall", "context", "fold", "turn", "chat", "erase"})


class LabelValues:
    """The values of a label, up to a maximum."""

    def __init__(self, most: int = LABELS_MAX) -> None:
        self._most = most
        self._known: set[str] = set()

    def __call__(self, value: object) -> str:
        """The value itself, or ``other``."""
        text = str(value) or "none"
        if text not in self._known and len(self._known) >= self._most:
            return OTHER
        self._known.add(text)
        return text


class Metrics:
    """The server's metrics, in their own registry."""

    def __init__(self, *, clock: Clock = utc_now) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        Info("firnline_build", "Version of the server.", registry=self.registry).info(
            {"version": __version__, "python": platform.python_version()}
        )
        self._clock = clock
        self._routes, self._strategies, self._makers = LabelValues(), LabelValues(), LabelValues()
        self._requests = _Requests(self.registry)
        self._events = _Events(self.registry)
        self._gauges = _Gauges(self.registry)
        self.upstream = UpstreamMetrics(self.registry)
        self._refresh_lock = asyncio.Lock()
        self._refreshed = float("-inf")

    # -- requests -----------------------------------------------------------------------------

    def start_request(self) -> None:
        """Count a request that has arrived."""
        self._requests.open.inc()

    def end_request(
        self, route: str, method: str, status: int, seconds: float, *, cut: bool
    ) -> None:
        """Count a response; `cut` if it was not completed."""
        self._requests.open.dec()
        named = self._routes(route), method if method in _METHODS else OTHER
        self._requests.total.labels(*named, str(status)).inc()
        self._requests.seconds.labels(*named).observe(seconds)
        if cut:
            self._requests.cut.labels(named[0]).inc()

    # -- events -------------------------------------------------------------------------------

    def observe(self, event: Event) -> None:
        """Count an event of a memory: an `Observer`."""
        values = event.values
        if (chats := self._events.chats.get(event.name)) is not None:
            chats.labels(str(values["outcome"])).inc()
            return
        name, _, failed = event.name.partition("_")
        if name in _OPERATIONS and "milliseconds" in values:
            outcome = _outcome(failed, values)
            took = _number(values, "milliseconds") * _MILLI
            self._events.seconds.labels(name, outcome).observe(took)
        if name == "fold":
            self._fold(failed, values)
        elif not failed and values.get("replayed"):
            self._events.replays.labels(name).inc()
        elif not failed:
            self._count(name, values)

    def _count(self, name: str, values: Mapping[str, float | str]) -> None:
        if name == "context":
            self._context(values)
        elif name == "fallback":
            self._events.fallbacks.inc()
        for counter, value in self._events.sums.get(name, ()):
            counter.inc(_number(values, value))

    def _context(self, values: Mapping[str, float | str]) -> None:
        for section in _SECTIONS:
            self._events.sections.labels(section).inc(_number(values, section))
        self._events.prompts.labels("sent").inc(_number(values, "tokens"))
        self._events.prompts.labels("whole").inc(_number(values, "whole"))
        self._events.degraded_any.inc(bool(values.get("degraded")))
        for kind in _KINDS:
            self._events.degraded.labels(kind).inc(bool(values.get(f"degraded_{kind}")))

    def _fold(self, failed: str, values: Mapping[str, float | str]) -> None:
        events = self._events
        strategy = self._strategies(values.get("strategy", ""))
        maker = self._makers(values.get("made_by", "")) if not failed else "none"
        events.folds.labels(strategy, failed or "completed", maker).inc()
        if failed:
            return
        events.folded.inc(_number(values, "entries"))
        events.calls.inc(_number(values, "calls"))
        events.spent.inc(_number(values, "spent_tokens"))
        took = _number(values, "milliseconds") * _MILLI
        if took > events.longest_seconds:
            events.longest_seconds = took
            events.longest.set(took)

    # -- values from the store ----------------------------------------------------------------

    def watch(self, *, streams: Callable[[], float], drafts: Callable[[], float]) -> None:
        """Call these for the values of this process whenever metrics are requested."""
        self._gauges.streams.set_function(streams)
        self._gauges.drafts.set_function(drafts)

    async def refresh(self, memory: Memory) -> None:
        """Read values from the store, of all tenants, unless that was done a moment ago.

        If the store does not respond, the values stay as they are and ``firnline_store_up`` is 0.
        """
        async with self._refresh_lock:
            if time.monotonic() - self._refreshed < GAUGES_FRESH_SECONDS:
                return
            now = self._clock()
            try:
                async with asyncio.timeout(PROBE_SECONDS):
                    found = await memory.pending(all_tenants=True)
            except (StoreError, TimeoutError) as error:
                logger.warning("store: cannot read what is pending: %s", outline(error))
                self._gauges.up.set(0)
            else:
                late = 0.0 if found.oldest is None else (now - found.oldest).total_seconds()
                self._gauges.update(found, max(late, 0.0))
            self._refreshed = time.monotonic()

    def render(self) -> bytes:
        """All metrics in Prometheus' text format; see `CONTENT_TYPE`."""
        return generate_latest(self.registry)


def _outcome(failed: str, values: Mapping[str, float | str]) -> str:
    if not failed:
        return "ok"
    return "cancelled" if values.get("error") in _GONE else failed


def _number(values: Mapping[str, float | str], name: str) -> float:
    value = values.get(name, 0)
    return value if isinstance(value, int | float) and value >= 0 else 0.0


# -- the metrics ------------------------------------------------------------------------------


class _Requests:
    """Metrics of HTTP requests."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.total = Counter(
            "firnline_http_requests",
            "Requests, by route, method and status.",
            ["route", "method", "status"],
            registry=registry,
        )
        self.seconds = Histogram(
            "firnline_http_request_duration_seconds",
            "Time from the arrival of a request to the last byte of its response.",
            ["route", "method"],
            buckets=_BUCKETS,
            registry=registry,
        )
        self.open = Gauge(
            "firnline_http_requests_in_progress", "Requests in progress.", registry=registry
        )
        self.cut = Counter(
            "firnline_http_responses_cut",
            "Responses that were not completed.",
            ["route"],
            registry=registry,
        )


class _Events:
    """Metrics of memory operations."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"firnline_{name}", text, labels, registry=registry)

        self.seconds = Histogram(
            "firnline_operation_duration_seconds",
            "Duration of memory operations, by outcome.",
            ["operation", "outcome"],
            buckets=_BUCKETS,
            registry=registry,
        )
        self.entries = counter("appended_entries", "Messages stored.")
        self.tokens = counter("appended_tokens", "Tokens stored.")
        self.replays = counter("replays", "Retries answered from the log.", "operation")
        self.hits = counter("recalled_entries", "Messages found by recall.")
        self.sections = counter(
            "context_tokens", "Tokens of context windows by section.", "section"
        )
        self.prompts = counter(
            "prompt_tokens", "Tokens of contexts, and of the full histories they replace.", "kind"
        )
        self.degraded_any = counter("contexts_degraded", "Contexts with less than requested.")
        self.degraded = counter("contexts_degraded_by_kind", "Degraded contexts by reason.", "kind")
        self.folds = counter("folds", "Digests created.", "strategy", "outcome", "made_by")
        self.folded = counter("folded_entries", "Messages covered by new digests.")
        self.calls = counter("fold_model_calls", "Model calls for digests.")
        self.spent = counter("fold_model_tokens", "Tokens spent on digests.")
        self.longest = Gauge(
            "firnline_fold_duration_max_seconds",
            "Longest duration of a digest since the start.",
            registry=registry,
        )
        self.longest_seconds = 0.0
        self.fallbacks = counter("fallbacks", "Turns that used the fallback model.")
        self.apologies = counter("turns_degraded", "Turns answered without the model.")
        self.model_tokens = counter("model_tokens", "Tokens of turns.", "kind")
        self.erased = counter("erased_entries", "Messages erased.")
        updates = counter("telegram_updates", "Updates from Telegram.", "outcome")
        answers = counter("telegram_answers", "Answers to Telegram messages.", "outcome")
        self.chats = {"telegram_update": updates, "telegram_answer": answers}
        for metric, known in (
            (self.sections, _SECTIONS),
            (self.prompts, ("sent", "whole")),
            (self.degraded, _KINDS),
            (self.replays, ("append", "turn")),
        ):
            for label in known:
                metric.labels(label)  # present from the start, at 0
        prompt, answer = map(self.model_tokens.labels, ("prompt", "completion"))
        self.sums: dict[str, list[tuple[Counter, str]]] = {
            "append": [(self.entries, "entries"), (self.tokens, "tokens")],
            "recall": [(self.hits, "hits")],
            "turn": [(self.apologies, "degraded")],
            "chat": [(prompt, "prompt_tokens"), (answer, "completion_tokens")],
            "erase": [(self.erased, "entries")],
        }


class _Gauges:
    """Values that are read when metrics are requested."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def gauge(name: str, text: str) -> Gauge:
            return Gauge(f"firnline_{name}", text, registry=registry)

        self.up = gauge("store_up", "Whether the store responded to the last query.")
        self.owed = gauge("debt_conversations", "Conversations with pending digests.")
        self.late = gauge("debt_oldest_age_seconds", "Age of the oldest pending digest.")
        self.making = gauge("digests_in_progress", "Digests in progress.")
        self.leased = gauge("leases_held", "Digests in progress with a valid lease.")
        self.stuck = gauge("digests_stuck", "Digests in progress for more than 5 minutes.")
        self.cards = gauge("draft_cards", "Parts of drafts in the store.")
        self.streams = gauge("streams_in_progress", "Answers streamed by this process.")
        self.drafts = gauge("drafts_in_progress", "Open drafts of this process.")

    def update(self, found: Pending, late: float) -> None:
        self.up.set(1)
        self.owed.set(found.conversations)
        self.late.set(late)
        self.making.set(found.processing)
        self.leased.set(found.leased)
        self.stuck.set(found.stuck)
        self.cards.set(found.cards)


# -- endpoints behind the proxy ---------------------------------------------------------------


class CallMeter(Protocol):
    """The record of one call to an endpoint."""

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
            return Histogram(full, text, ["endpoint"], buckets=_UPSTREAM_BUCKETS, registry=registry)

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
