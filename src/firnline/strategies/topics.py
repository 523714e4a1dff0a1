"""Topic memory: the active topic's summary and its newest messages; other topics rest."""

from __future__ import annotations

from firnline.budget import Budget
from firnline.errors import InputError
from firnline.plan import Fold, Plan, Strategy, View
from firnline.text import Json
from firnline.topics.folding import just_restored, to_fold
from firnline.topics.rules import check_folding


def topics(
    *, max_messages: int = 12, keep: int = 4, words: tuple[int, int] = (60, 250)
) -> Strategy:
    """Fold all but the `keep` newest messages of the active topic above `max_messages`.

    The summary has about `words`, from and to. The view holds the active entries of one topic; a
    view without a topic is taken as one.
    """
    check_folding(max_messages, keep)
    least, most = _range(words)

    def plan(view: View, _: Budget) -> Plan:
        shown = tuple(digest.version for digest in view.digests)
        heading = f"Topic summary: {view.topic.title}" if view.topic else ""
        recent_from, count = _recent(view)
        last = _fold_end(view, max_messages, keep)
        if last < view.first_open:
            return Plan(recent_from=recent_from, recent_count=count, digests=shown, heading=heading)
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
            reason=f"the topic has more than {max_messages} active messages",
        )

    parameters: dict[str, Json] = {
        "max_messages": max_messages,
        "keep": keep,
        "words": [least, most],
    }
    return Strategy("topics", plan, parameters, by_topic=True)


def _range(words: tuple[int, int]) -> tuple[int, int]:
    """Two counts of words; from a store they come as a list."""
    least, most = words
    if not 0 < least <= most:
        raise InputError("words: the first is at least 1, and at most the second")
    return least, most


def _recent(view: View) -> tuple[int, int | None]:
    """Where the messages begin that are shown word for word, and how many there are."""
    if view.topic is None:
        return view.first_open, None
    # What was brought back is shown although a digest covers it: that is what it came back for.
    first = view.entries[0].seq if view.entries else view.first_open
    return first, len(view.entries)


def _fold_end(view: View, max_messages: int, keep: int) -> int:
    """The last entry to be folded; -1 if there is none."""
    active = view.entries
    if view.topic is None:
        active = tuple(entry for entry in active if entry.seq >= view.first_open)
    elif just_restored(view.topic, view.entries):
        return -1
    seqs = to_fold(active, max_messages, keep)
    if not seqs:
        return -1
    if not view.backlog:
        return seqs[-1]
    ends = [unit.last_seq for unit in view.open_units() if unit.last_seq <= seqs[-1]]
    return max(ends, default=-1)
