"""How long to wait for a model, and for how long to pause if it asks for it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Final, NamedTuple

RETRY_AFTER_MAX: Final = 3_600.0
"""The longest wait that an endpoint may request, in seconds."""


class Timeouts(NamedTuple):
    """Seconds to wait: for a connection, the first byte, between two pieces, and in total.

    `total` covers one call with all its retries and the waits between them.
    """

    connect: float = 5.0
    first_byte: float = 120.0
    between: float = 60.0
    total: float = 600.0


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """The seconds to wait by an answer's headers (lower-case names); None if it has none.

    Reads ``retry-after-ms``, and ``retry-after`` in seconds or as a date; never negative, and never
    more than `RETRY_AFTER_MAX`.
    """
    seconds = _number(headers.get("retry-after-ms"), 0.001)
    if seconds is None:
        seconds = _number(headers.get("retry-after"), 1.0)
    if seconds is None:
        seconds = _until(headers.get("retry-after"), now)
    return None if seconds is None else min(max(seconds, 0.0), RETRY_AFTER_MAX)


def _number(text: str | None, unit: float) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value * unit if isfinite(value) else None


def _until(text: str | None, now: datetime) -> float | None:
    try:
        date = parsedate_to_datetime(text or "")
    except ValueError:
        return None
    # A date with the zone "-0000" has no tzinfo; HTTP uses only GMT.
    aware = date if date.tzinfo else date.replace(tzinfo=now.tzinfo)
    return (aware - now).total_seconds()
