"""Progressive compression: one summary that grows with each cycle, and the newest messages."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from firnline.context.budget import Budget
from firnline.context.plan import (
    DATA_TOKENS,
    FOLD_TOKENS_MIN,
    GROWTH_SHARE,
    RESIDUE_TOKENS,
    Fold,
    Plan,
    Strategy,
    View,
    check_keep,
    fold_end,
    keep_from,
    newest_from,
)

WORDS: Final = ((100, 150), (200, 250), (300, 350), (400, 450), (500, 750))
"""Words of the summary by version; the last pair is for all later versions."""

_TOKENS_PER_WORD: Final = 1.4  # of English summaries, rounded up
_HEADING_TOKENS: Final = 40
_DATA_SHARE: Final = 7
_RESIDUE_SHARE: Final = 20
_RESIDUE_MIN: Final = 40  # fewer tokens have no room for a quote
_SMALL_GROWTH: Final = (5, 200)
"""A prompt grows by an eighth of the threshold before it is digested again; by a fifth, or 200
tokens, where that is more: a round has as many tokens, however small the threshold is."""


def progressive(
    *, threshold_tokens: int = 3_000, keep_tokens: int | None = None, data_tokens: int | None = None
) -> Strategy:
    """Digest when the whole prompt passes `threshold_tokens`; keep the newest `keep_tokens`.

    `keep_tokens` is five sixths of the threshold unless you say otherwise: 2,500 of 3,000.
    Important data has `data_tokens` at most: a seventh of the threshold, but not more than 400.
    After a digest the prompt is below the threshold by about an eighth of it, so fewer messages are
    kept if the summary and the important data need the room.
    """
    keep = max(threshold_tokens * 5 // 6, 1) if keep_tokens is None else keep_tokens
    check_keep(threshold_tokens, keep)
    data = min(threshold_tokens // _DATA_SHARE, DATA_TOKENS) if data_tokens is None else data_tokens

    def plan(view: View, budget: Budget) -> Plan:
        threshold = min(threshold_tokens, budget.limit)
        shown = tuple(digest.version for digest in view.digests)
        version = view.digests[-1].layer + 2 if view.digests else 1
        words = WORDS[min(version, len(WORDS)) - 1]
        summary = min(int(words[1] * _TOKENS_PER_WORD), _summary_max(threshold))
        residue = min(threshold // _RESIDUE_SHARE, RESIDUE_TOKENS)
        residue = residue if residue >= _RESIDUE_MIN else 0
        room = threshold - view.fixed_tokens - _HEADING_TOKENS - summary
        # What is usual grows by a share of the threshold, and what is possible is below it.
        usual = room - min(max(view.data_tokens, data // 2), data) - residue // 2
        newest = min(keep, usual - _growth(threshold), room - data - residue)
        calm = Plan(
            recent_from=newest_from(view, newest),
            digests=shown,
            data_tokens=data,
            limit_tokens=threshold,
        )
        total = view.total(data)
        if total <= threshold:
            return calm
        fewest = min(FOLD_TOKENS_MIN, threshold // GROWTH_SHARE)
        end = fold_end(view, keep_from(view, newest), fewest=fewest)
        if end < 0:
            return calm
        fold = Fold(
            first_seq=0,
            last_seq=end,
            fresh_from=view.first_open,
            takes=shown,
            words=words,
            tokens_max=summary,
            residue_tokens=residue,
        )
        reason = f"{total:,} tokens are more than {threshold:,}"
        return replace(calm, folds=(fold,), reason=reason)

    return Strategy(
        "progressive",
        plan,
        {"threshold_tokens": threshold_tokens, "keep_tokens": keep, "data_tokens": data},
        keeps=keep,
    )


def _summary_max(threshold: int) -> int:
    """A third of 3,000 tokens, which is what the longest summary has; a quarter of 1,000."""
    return max(threshold // 4, threshold * 3 // 8 - 125)


def _growth(threshold: int) -> int:
    share, most = _SMALL_GROWTH
    return max(threshold // GROWTH_SHARE, min(threshold // share, most))
