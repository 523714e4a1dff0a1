"""Project recall: a project's full history while it fits, or the newest messages and tools."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from firnline.context.budget import Budget
from firnline.context.plan import (
    GROWTH_SHARE,
    Fold,
    Plan,
    Strategy,
    View,
    check_keep,
    data_room,
    fold_end,
    keep_from,
    units,
)
from firnline.errors import InputError

_DATA_SHARE: Final = 8


def project(
    *,
    threshold_tokens: int = 55_000,
    keep_tokens: int | None = None,
    lean: bool = False,
    last: int = 12,
    last_tokens: int = 20_000,
    summary_tokens: int = 1_500,
) -> Strategy:
    """Show every message up to `threshold_tokens`; above, digest the oldest down to `keep_tokens`.

    `keep_tokens` is four fifths of the threshold unless you say otherwise: 44,000 of 55,000.
    `lean` shows only the `last` messages within `last_tokens`; the model gets the rest with the
    recall tools. The current task is always shown.
    """
    kept = max(threshold_tokens * 4 // 5, 1) if keep_tokens is None else keep_tokens
    check_keep(threshold_tokens, kept)
    if last < 1 or last_tokens < 1:
        raise InputError(f"last: {last}, last_tokens: {last_tokens}; both must be at least 1")

    def plan(view: View, budget: Budget) -> Plan:
        if lean:
            return Plan(
                recent_from=_newest_from(view, last, last_tokens),
                digests=tuple(digest.version for digest in view.digests),
                recent_count=last,
                recent_tokens=last_tokens,
                reason="lean: the rest is for the recall tools",
            )
        threshold = min(threshold_tokens, budget.limit)
        keep = threshold * kept // threshold_tokens
        return _full(view, budget, threshold, keep, min(summary_tokens, threshold // 4))

    parameters = {
        "threshold_tokens": threshold_tokens,
        "keep_tokens": kept,
        "lean": lean,
        "last": last,
        "last_tokens": last_tokens,
        "summary_tokens": summary_tokens,
    }
    return Strategy("project", plan, parameters, opens=True)


def _full(view: View, budget: Budget, threshold: int, keep: int, summary: int) -> Plan:
    """Everything up to the threshold; above, a digest of all but the newest."""
    shown = tuple(digest.version for digest in view.digests)
    data = min(data_room(budget), threshold // _DATA_SHARE)
    total = view.total(data)
    spent = total - view.open_tokens - view.digest_tokens + summary
    step = threshold // GROWTH_SHARE
    newest = keep_from(view, min(keep - min(spent, keep // 2), threshold - spent - step))
    end = fold_end(view, newest) if total > threshold else -1
    room = max(threshold - spent, 0)
    if view.open_tokens < keep // 2:
        # A smaller budget has digested the rest: it is shown but for the next messages' room.
        room = min(room, view.open_tokens // step * step + step)
    calm = Plan(
        recent_from=view.first_open,
        digests=shown,
        data_tokens=data,
        limit_tokens=threshold,
        open_max=room,
    )
    if end < 0:
        return calm
    fold = Fold(
        first_seq=0,
        last_seq=end,
        fresh_from=view.first_open,
        takes=shown,
        words=(200, 1_000),
        tokens_max=summary,
    )
    return replace(calm, folds=(fold,), reason=f"{total:,} tokens are more than {threshold:,}")


def _newest_from(view: View, count: int, tokens: int) -> int:
    """The first of the newest entries, at most so many; digested ones are shown, too."""
    first = view.next_seq
    for unit in reversed(units(view.entries)):
        count, tokens = count - len(unit.entries), tokens - unit.tokens
        if (count < 0 or tokens < 0) and first < view.next_seq:
            break
        first = min(first, unit.first_seq)
    return first
