"""From when and until when a statement holds, by the dates in its sentence. Pure."""

from __future__ import annotations

from datetime import datetime


def valid_times(sentence: str, slot: str, said_at: datetime) -> tuple[int | None, int | None]:
    """The times since and until which it holds, in microseconds; None if the sentence has none."""
    return None, None
