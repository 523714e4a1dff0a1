"""Project recall: a project's full history while it fits, or the newest messages and tools."""

from __future__ import annotations

from dataclasses import replace

from firnline.context.budget import Budget
from firnline.context.plan import Fold, Plan, Strategy, View, data_room, fold_end, keep_from
from firnline.errors import InputError


def project(
    *,
    threshold_tokens: int = 55_000,
    keep_tokens: int = 44_000,
    lean: bool = False,
    last: int = 12,
    last_tokens: int = 20_000,
    summary_tokens: int = 1_500,
) -> Strategy:
    """Show every message up to `threshold_tokens`; above, digest the oldest down to `keep_tokens`.

    `lean` shows only the `last` messages within `last_tokens`; the model gets the rest with the
    recall tools. The current task is always shown.
    """
    if not 0 < keep_tokens <= threshold_tokens or last < 1 or last_tokens < 1:
        raise InputError("keep_tokens: at most threshold_tokens; last, last_tokens: at least 1")

    def plan(view: View, budget: Budget) -> Plan:
        shown = tuple(digest.version for digest in view.digests)
        if lean:
            return Plan(
                recent_from=view.first_open,
                digests=shown,
                recent_count=last,
                recent_tokens=last_tokens,
                reason="lean: the rest is for the recall tools",
            )
        threshold = min(threshold_tokens, budget.limit)
        keep = min(keep_tokens, threshold * keep_tokens // threshold_tokens)
        total = view.total(data_room(budget))
        spent = total - view.open_tokens - view.digest_tokens + summary_tokens
        newest = keep_from(view, keep - min(spent, keep // 2))
        end = fold_end(view, newest) if total > threshold else -1
        calm = Plan(recent_from=view.first_open, digests=shown, limit_tokens=threshold)
        calm = replace(calm, open_max=max(threshold - spent, 0))
        if end < 0:
            return calm
        fold = Fold(
            first_seq=0,
            last_seq=end,
            fresh_from=view.first_open,
            takes=shown,
            words=(200, 1_000),
            tokens_max=min(summary_tokens, threshold // 4),
        )
        return replace(calm, folds=(fold,), reason=f"{total:,} tokens are more than {threshold:,}")

    parameters = {
        "threshold_tokens": threshold_tokens,
        "keep_tokens": keep_tokens,
        "lean": lean,
        "last": last,
        "last_tokens": last_tokens,
        "summary_tokens": summary_tokens,
    }
    return Strategy("project", plan, parameters, opens=not lean)
