"""Topic memory: the active topic's summary and its newest messages; no other topics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from firnline.context.budget import Budget
from firnline.context.plan import UNANSWERED, Fold, Plan, Strategy, View, units
from firnline.errors import InputError
from firnline.log.entry import Entry
from firnline.log.text import Json
from firnline.topics.fold import entries_to_fold, is_just_restored
from firnline.topics.rules import check_folding

_MANY: Final = "the topic has more than {} active messages"
_CROWDED: Final = "the topic's active messages take more than half of the budget"


def topics(
    *, max_messages: int = 12, keep: int = 4, words: tuple[int, int] = (60, 250)
) -> Strategy:
    """Digest all but the `keep` newest messages of the active topic above `max_messages`.

    It digests earlier if they take more than half of the budget. The summary has between the two
    numbers of `words`. The view has the active entries of one topic; a view without a topic is
    treated as one topic.
    """
    check_folding(max_messages, keep)
    least, most = _range(words)

    def plan(view: View, budget: Budget) -> Plan:
        shown = tuple(digest.version for digest in view.digests)
        heading = f"Topic summary: {view.topic.title}" if view.topic else ""
        recent_from, count = _recent(view)
        crowded = _open_tokens(view) > max(budget.limit - view.fixed_tokens, 0) // 2
        last = _fold_end(view, keep if crowded else max_messages, keep)
        if last < view.first_open:
            alone = not shown and len(view.entries) == view.next_seq  # no other topic, no digest
            return Plan(
                recent_from=recent_from,
                recent_count=count,
                digests=shown,
                heading=heading,
                limit_tokens=budget.limit if alone else None,
            )
        fresh = (view.backlog or view.entries)[0].seq
        fold = Fold(
            first_seq=view.digests[0].first_seq if view.digests else fresh,
            last_seq=last,
            fresh_from=max(view.first_open, fresh),
            takes=shown,
            words=(least, most),
            topic=view.topic.id if view.topic else None,
        )
        return Plan(
            recent_from=recent_from,
            recent_count=count,
            digests=shown,
            folds=(fold,),
            heading=heading,
            reason=_CROWDED if crowded else _MANY.format(max_messages),
        )

    parameters: dict[str, Json] = {
        "max_messages": max_messages,
        "keep": keep,
        "words": [least, most],
    }
    return Strategy("topics", plan, parameters, by_topic=True)


def summary_as_system(strategy: Strategy) -> Strategy:
    """The same strategy with summaries as system messages, for applications that need that.

    Not the default: text of users should not have the authority of the system.
    """

    def plan(view: View, budget: Budget) -> Plan:
        return replace(strategy.plan(view, budget), digest_role="system")

    return replace(strategy, plan=plan)


def _range(words: tuple[int, int]) -> tuple[int, int]:
    """The two numbers of words; a store returns them as a list."""
    least, most = words
    if not 0 < least <= most:
        raise InputError("words: the first must be at least 1 and at most the second")
    return least, most


def _recent(view: View) -> tuple[int, int | None]:
    """The first message to show word for word, and how many there are."""
    if view.topic is None:
        return view.first_open, None
    # Restored messages are shown even if a digest covers them.
    first = view.entries[0].seq if view.entries else view.first_open
    return first, len(view.entries)


def _fold_end(view: View, max_messages: int, keep: int) -> int:
    """The last entry to digest; -1 if there is none."""
    if view.topic is not None and is_just_restored(view.topic, view.entries):
        return -1
    seqs = entries_to_fold(_active(view), max_messages, keep)
    return max((end for end in _ends(view) if seqs and end <= seqs[-1]), default=-1)


def _open_tokens(view: View) -> int:
    """The tokens of active entries that no digest covers."""
    return sum(entry.tokens for entry in _active(view) if entry.seq >= view.first_open)


def _active(view: View) -> tuple[Entry, ...]:
    """The active entries of the topic; entries without a topic yet are only shown."""
    if view.topic is None:
        return tuple(entry for entry in view.entries if entry.seq >= view.first_open)
    return tuple(entry for entry in view.entries if entry.seq <= view.topic.last_seq)


def _ends(view: View) -> Iterator[int]:
    """The entries at which a unit ends."""
    found = units(view.backlog or view.entries)
    reach = -1
    for unit in found:
        # An unanswered call can be inside another unit.
        reach = max(reach, unit.last_seq)
        if unit.problem != UNANSWERED or unit is not found[-1]:
            yield reach
