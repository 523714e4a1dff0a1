"""Progressive compression: one summary that grows with each cycle, and the newest messages."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from firnline.context.budget import Budget
from firnline.context.plan import RESIDUE_TOKENS, Fold, Plan, Strategy, View, fold_end, keep_from
from firnline.errors import InputError

WORDS: Final = ((100, 150), (200, 250), (300, 350), (400, 450), (500, 750))
"""Words of the summary by version; the last pair is for all later versions."""

_TOKENS_PER_WORD: Final = 1.4  # of English summaries, rounded up
_HEADING_TOKENS: Final = 40
_SLACK: Final = 20  # a twentieth stays free, so that the next message does not cause another fold


def progressive(
    *, threshold_tokens: int = 3_000, keep_tokens: int | None = None, data_tokens: int = 400
) -> Strategy:
    """Digest when the whole prompt passes `threshold_tokens`; keep the newest `keep_tokens`.

    `keep_tokens` is five sixths of the threshold unless you say otherwise: 2,500 of 3,000.
    After a digest the prompt is below the threshold, so fewer messages are kept if the summary and
    the important data (at most `data_tokens`) need the room.
    """
    if threshold_tokens < 1:
        raise InputError(f"threshold_tokens: {threshold_tokens}; must be at least 1")
    keep = max(threshold_tokens * 5 // 6, 1) if keep_tokens is None else keep_tokens
    if not 0 < keep <= threshold_tokens:
        raise InputError(f"keep_tokens: {keep}; must be between 1 and {threshold_tokens}")

    def plan(view: View, budget: Budget) -> Plan:
        threshold = min(threshold_tokens, budget.limit)
        shown = tuple(digest.version for digest in view.digests)
        calm = Plan(
            recent_from=view.first_open,
            digests=shown,
            data_tokens=data_tokens,
            limit_tokens=threshold,
        )
        total = view.total(data_tokens)
        if total <= threshold:
            return calm
        version = view.digests[-1].layer + 2 if view.digests else 1
        words = WORDS[min(version, len(WORDS)) - 1]
        summary = min(int(words[1] * _TOKENS_PER_WORD), threshold // 3)
        others = data_tokens + summary + RESIDUE_TOKENS + _HEADING_TOKENS
        room = threshold - threshold // _SLACK - view.fixed_tokens - others
        end = fold_end(view, keep_from(view, min(keep, room)))
        if end < 0:
            return calm
        fold = Fold(
            first_seq=0,
            last_seq=end,
            fresh_from=view.first_open,
            takes=shown,
            words=words,
            tokens_max=summary,
        )
        reason = f"{total:,} tokens are more than {threshold:,}"
        return replace(calm, folds=(fold,), reason=reason)

    return Strategy(
        "progressive",
        plan,
        {"threshold_tokens": threshold_tokens, "keep_tokens": keep, "data_tokens": data_tokens},
    )
