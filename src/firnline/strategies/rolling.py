"""Rolling memory: after each round, a summary of the newest messages without the older ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from firnline.context.budget import Budget
from firnline.context.plan import Fold, Plan, Strategy, View, ends_round, units
from firnline.errors import InputError

_ROUND: Final = 4
"""Messages of a round with a tool call: question, call, result, answer."""


def rolling(*, window: int = 14, after_seq: int = 5, words: int = 250) -> Strategy:
    """Digest the newest `window` messages after every round, once `after_seq` is reached.

    The context is the newest digest and the messages after it, or all messages until there is a
    digest. Digests are created in the background; no call waits for them.
    """
    if window < 2 or after_seq < 1 or words < 1:  # noqa: PLR2004 - a round has two messages
        raise InputError("window must be at least 2, after_seq and words at least 1")

    def plan(view: View, budget: Budget) -> Plan:
        newest = view.digests[-1:]
        shown = tuple(digest.version for digest in newest)
        limit = None if newest else budget.limit
        calm = Plan(recent_from=view.first_open, digests=shown, limit_tokens=limit)
        end = _round_end(view)
        # The newest messages stay word for word until their round is complete.
        if end < after_seq or (newest and end <= newest[0].last_seq):
            return calm
        first = _first(view, end, window)
        fold = Fold(
            first_seq=first,
            last_seq=end,
            fresh_from=max(view.first_open, first),
            takes=shown,
            words=(min(60, words * 3 // 4), words),
            slides=True,
        )
        reason = f"the round that ended with {end} is not in a digest yet"
        return replace(calm, folds=(fold,), reason=reason)

    parameters = {"window": window, "after_seq": after_seq, "words": words}
    return Strategy("rolling", plan, parameters, background=True, slides=True)


def span(last_seq: int, window: int = 14) -> tuple[int, int]:
    """The window that ends with `last_seq`; it starts at an even number, where a round starts."""
    first = max(0, last_seq - window + 1)
    return first + first % 2, last_seq


def _round_end(view: View) -> int:
    """The last entry of the last complete round; -1 if there is none."""
    for unit in reversed(units(view.entries)):
        if ends_round(unit.entries[-1].message):
            return unit.last_seq
    return -1


def _first(view: View, end: int, window: int) -> int:
    """Where the window starts: with a question, if one is near, so that no answer stands alone.

    Never inside a tool call's unit, but after it.
    """
    first, _ = span(end, window)
    for unit in units(view.entries):
        if unit.first_seq < first <= unit.last_seq:
            first = min(unit.last_seq + 1, end)
    near = [entry for entry in view.entries if first <= entry.seq < min(first + _ROUND, end)]
    asked = (entry.seq for entry in near if entry.message.role not in ("assistant", "tool"))
    return next(asked, first)
