"""Agent window: all messages until the window is nearly full, then one short summary."""

from __future__ import annotations

from dataclasses import replace

from firnline.context.budget import Budget
from firnline.context.plan import Fold, Plan, Strategy, View, data_room, fold_end, keep_from
from firnline.errors import InputError


def window(
    *,
    trigger: float = 0.85,
    keep_last: int = 4,
    summary_tokens: int = 1_000,
    prompt: str = "",
    prefix: str = "",
) -> Strategy:
    """Digest all but the `keep_last` newest messages when `trigger` of the window is used.

    The summary has at most `summary_tokens`; `prompt` tells the model what matters, and `prefix` is
    the heading of the summary, in any language. The rest of the window is for the retriever.
    """
    if not 0 < trigger <= 1 or keep_last < 1 or summary_tokens < 1:
        raise InputError("trigger must be in (0, 1], keep_last and summary_tokens at least 1")
    if not isinstance(prompt, str) or not isinstance(prefix, str):
        raise InputError("prompt and prefix must be strings")

    def plan(view: View, budget: Budget) -> Plan:
        shown = tuple(digest.version for digest in view.digests)
        threshold = min(int(budget.window_tokens * trigger), budget.limit)
        calm = Plan(
            recent_from=view.first_open, digests=shown, heading=prefix, limit_tokens=threshold
        )
        total = view.total(data_room(budget))
        end = -1
        if total > threshold:
            end = fold_end(view, keep_from(view, 0, entries_min=keep_last))
        if end < 0:
            return calm
        cap = min(summary_tokens, max(threshold // 4, 1))
        fold = Fold(
            first_seq=0,
            last_seq=end,
            fresh_from=view.first_open,
            takes=shown,
            words=(min(100, cap // 2), max(cap * 2 // 3, 1)),
            tokens_max=cap,
            prompt=prompt,
        )
        reason = f"{total:,} tokens are more than {trigger:.0%} of the window"
        return replace(calm, folds=(fold,), reason=reason)

    return Strategy(
        "window",
        plan,
        {
            "trigger": trigger,
            "keep_last": keep_last,
            "summary_tokens": summary_tokens,
            "prompt": prompt,
            "prefix": prefix,
        },
    )
