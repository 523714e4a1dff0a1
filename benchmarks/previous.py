"""The strategy `layered` as it was before contexts opened digests, frozen for comparison.

What a digest covered was gone from every later context, and the newest messages had 60% of a budget
at most. Nothing here follows changes of the package.
"""

from __future__ import annotations

from itertools import pairwise

from firnline.context.budget import Budget
from firnline.context.plan import Fold, Plan, Strategy, View, fold_end, keep_from
from firnline.log.entry import Digest

_TAIL, _KEEP, _DIGESTS, _FAN = 0.6, 0.33, 0.25, 4
_DIGEST_TOKENS, _TOKENS_MIN = 320, 96


def previous_layered() -> Strategy:
    """Show 60% of the budget word for word; when that is full, digest down to a third of it."""
    return Strategy("previous", _plan, {})


def _plan(view: View, budget: Budget) -> Plan:
    free = max(budget.limit - view.fixed_tokens, 1)
    share = int(free * _DIGESTS)
    cap = min(_DIGEST_TOKENS, max(share // (_FAN + 2), min(_TOKENS_MIN, share // 2), 1))
    fold = None
    if view.open_tokens > free * _TAIL:
        fold = _leaf(view, int(free * _TAIL * _KEEP), cap)
    if fold is None and (parts := _full(view.digests, share)):
        fold = _merged(parts, cap)
    shown = tuple(digest.version for digest in view.digests)
    return Plan(recent_from=view.first_open, digests=shown, folds=(fold,) if fold else ())


def _leaf(view: View, keep_tokens: int, cap: int) -> Fold | None:
    end = fold_end(view, keep_from(view, keep_tokens), view.fold_tokens)
    if end < 0:
        return None
    covered = sum(unit.tokens for unit in view.open_units() if unit.last_seq <= end)
    return Fold(
        first_seq=view.first_open,
        last_seq=end,
        fresh_from=view.first_open,
        words=_words(min(cap, covered // 4)),
        tokens_max=cap,
        residue_tokens=max(cap // 4, _TOKENS_MIN // 2),
    )


def _full(in_force: tuple[Digest, ...], tokens_max: int) -> tuple[Digest, ...]:
    for start in range(len(in_force) - _FAN + 1):
        group = in_force[start : start + _FAN]
        if len({digest.layer for digest in group}) == 1:
            return group
    if len(in_force) > 1 and sum(digest.tokens for digest in in_force) > tokens_max:
        return min(pairwise(in_force), key=lambda pair: max(digest.layer for digest in pair))
    return ()


def _merged(parts: tuple[Digest, ...], cap: int) -> Fold:
    size = min(cap, sum(digest.tokens for digest in parts) * 2 // 3)
    return Fold(
        first_seq=parts[0].first_seq,
        last_seq=parts[-1].last_seq,
        fresh_from=parts[-1].last_seq + 1,
        takes=tuple(digest.version for digest in parts),
        words=_words(size),
        tokens_max=size,
        residue_tokens=max(cap // 4, _TOKENS_MIN // 2),
    )


def _words(tokens: int) -> tuple[int, int]:
    most = max(int(tokens * 0.7), 1)
    return most // 2, most
