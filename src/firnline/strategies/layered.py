"""Layered memory, the default: as much as fits word for word, digests of digests for the rest.

Nothing is digested while the log fits easily. After that, the messages that are in no digest grow
to a small part of the budget; then the older ones of them become a digest, which is never
rewritten. When a layer has enough digests, they become one digest of the next layer, so the number
of digests in force grows with the logarithm of the log.

What is digested and what is shown are apart: digests are opened, newest first, as far as there is
room. The prompt changes only at its end, except after a digest.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from firnline.context.budget import Budget
from firnline.context.plan import Fold, Plan, Strategy, View, fold_end, keep_from
from firnline.errors import InputError
from firnline.log.entry import Digest

_WORDS_PER_TOKEN: Final = 0.7
_TOKENS_MIN: Final = 96  # a shorter digest is useless
_RATIO: Final = 4  # a digest is at most this fraction of what it covers
_START: Final = 0.8
"""The share of the budget that a log takes before it is digested: digests are ready when it no
longer fits, and a log that never gets there costs none."""
_TAIL_MIN: Final = 400
_TAIL_SHARE: Final = 0.4
_BACKLOG: Final = 2  # full tails
_PART: Final = 0.5  # of the budget
_SLACK: Final = 0.005  # for the messages that arrive before the next digest


def layered(
    *,
    tail: float = 0.15,
    keep: float = 0.4,
    digests: float = 0.15,
    fan: int = 4,
    digest_tokens: int = 320,
) -> Strategy:
    """Digest when what is in no digest is more than `tail` of the budget, down to `keep` of that.

    `fan` digests of one layer become one of the next layer, or fewer if digests would take more
    than `digests` of the budget. A digest has at most `digest_tokens`, plus a quarter of that for
    quoted facts.
    """
    if not (0 < tail <= 1 and 0 < keep < 1 and 0 < digests < 1 and fan > 1 and digest_tokens > 0):
        raise InputError("tail, keep and digests must be between 0 and 1, fan at least 2")

    def plan(view: View, budget: Budget) -> Plan:
        shown = tuple(digest.version for digest in view.digests)
        free = max(budget.limit - view.fixed_tokens, 1)
        share = int(free * digests)
        # Small enough for a full layer to fit, unless the digests would become useless.
        cap = min(digest_tokens, max(share // (fan + 2), min(_TOKENS_MIN, share // 2), 1))
        fold, reason = None, ""
        # Less than that is not worth a digest.
        most = max(int(free * tail), min(_TAIL_MIN, int(free * _TAIL_SHARE)))
        crowded = view.covered_tokens + view.open_tokens > free * _START
        if crowded and view.open_tokens > most:
            fold = _leaf(view, free, most, keep, cap)
            reason = f"{view.open_tokens:,} tokens in no digest are more than {most:,}"
        if fold is None and (parts := _full(view.digests, share, fan)):
            fold = _merged(parts, cap)
            reason = f"{len(parts)} digests are ready to become one"
        return Plan(
            recent_from=view.first_open,
            digests=shown,
            folds=(fold,) if fold else (),
            limit_tokens=budget.limit,
            open_max=most + int(free * _SLACK),
            reason=reason,
        )

    parameters = {
        "tail": tail,
        "keep": keep,
        "digests": digests,
        "fan": fan,
        "digest_tokens": digest_tokens,
    }
    return Strategy("layered", plan, parameters, waits=False, opens=True)


def _leaf(view: View, free: int, tail: int, keep: float, cap: int) -> Fold | None:
    """Digest the older part of the tail.

    Usually it has the same size, whether it is created now or some messages later. A long backlog
    takes fewer digests; what could be shown word for word is digested in parts, so that a part of
    it can be shown.
    """
    size = int(tail * (1 - keep))
    if view.open_tokens > tail * _BACKLOG:
        size = max(size, view.open_tokens - free, int(free * _PART))
    newest = keep_from(view, int(tail * keep))
    end = fold_end(view, newest, min(size, view.fold_tokens))
    if end < 0:
        return None
    covered = sum(unit.tokens for unit in view.open_units() if unit.last_seq <= end)
    return Fold(
        first_seq=view.first_open,
        last_seq=end,
        fresh_from=view.first_open,
        words=_words(min(cap, covered // _RATIO)),
        tokens_max=cap,
        residue_tokens=max(cap // 4, _TOKENS_MIN // 2),
    )


def _full(in_force: tuple[Digest, ...], tokens_max: int, fan: int) -> tuple[Digest, ...]:
    """The oldest neighbors to merge: `fan` of one layer, or two if they take too much room."""
    for start in range(len(in_force) - fan + 1):
        group = in_force[start : start + fan]
        if len({digest.layer for digest in group}) == 1:
            return group
    if len(in_force) > 1 and sum(digest.tokens for digest in in_force) > tokens_max:
        # The least compressed pair; otherwise the oldest digest would be rewritten every time.
        pairs = list(pairwise(in_force))
        return min(pairs, key=lambda pair: max(digest.layer for digest in pair))
    return ()


def _merged(parts: tuple[Digest, ...], cap: int) -> Fold:
    last_seq = parts[-1].last_seq
    size = min(cap, sum(digest.tokens for digest in parts) * 2 // 3)
    return Fold(
        first_seq=parts[0].first_seq,
        last_seq=last_seq,
        fresh_from=last_seq + 1,
        takes=tuple(digest.version for digest in parts),
        words=_words(size),
        tokens_max=size,
        residue_tokens=max(cap // 4, _TOKENS_MIN // 2),
    )


def _words(tokens: int) -> tuple[int, int]:
    most = max(int(tokens * _WORDS_PER_TOKEN), 1)
    return most // 2, most
