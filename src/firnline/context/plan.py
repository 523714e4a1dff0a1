"""What a strategy gets and returns: a `View` and a `Plan`. Pure.

A unit is never separated: a tool call with all of its results, or a single message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, NamedTuple

from firnline.context.budget import Budget
from firnline.errors import InputError
from firnline.log import limits
from firnline.log.entry import Digest, Entry, Topic
from firnline.log.message import Message, call_ids, result_ids
from firnline.log.text import Json

# -- units ------------------------------------------------------------------------------------


class Unit(NamedTuple):
    """Entries that stay together. `problem` is the reason if no provider would accept them.

    They are in the order that providers require: each call, its results, then the messages that
    arrived while the tool was running.
    """

    entries: tuple[Entry, ...]
    problem: str = ""

    @property
    def first_seq(self) -> int:
        """The lowest of its sequence numbers."""
        return min(entry.seq for entry in self.entries)

    @property
    def last_seq(self) -> int:
        """The highest of its sequence numbers."""
        return max(entry.seq for entry in self.entries)

    @property
    def tokens(self) -> int:
        """Its tokens as counted when it was stored."""
        return sum(entry.tokens for entry in self.entries)


ORPHAN = "a tool's result without its call"
UNANSWERED = "a tool call without all of its results"


def units(entries: Iterable[Entry]) -> list[Unit]:
    """The entries as units, in the order in which they begin."""
    log = list(entries)
    answers = _answers(log)
    answered_by = {at: call for call, found in answers.items() for at in found}
    units_: list[Unit] = []
    at = 0
    while at < len(log):
        if at in answers:
            end = _reach(answers, at)
            inside = range(at, end + 1)
            half = [i for i in inside if i not in answers and i not in answered_by]
            half = [i for i in half if _problem(log[i].message)]
            units_.append(Unit(_in_order(log, answers, inside, {*answered_by, *half})))
            units_ += [Unit((log[i],), _problem(log[i].message)) for i in half]
            at = end + 1
        else:
            units_.append(Unit((log[at],), _problem(log[at].message)))
            at += 1
    return _with_half_answers(units_)


def with_pairs(entries: Iterable[Entry], seqs: Collection[int]) -> set[int]:
    """The sequence numbers, and those of the calls and results that belong to their entries."""
    found = set(seqs)
    for unit in units(entries):
        of_tools = {entry.seq for entry in unit.entries if is_of_tool(entry.message)}
        found |= of_tools if not of_tools.isdisjoint(seqs) else set()
    return found


def is_of_tool(message: Message) -> bool:
    """Whether the message is a call of a tool, or has the result of one."""
    return bool(call_ids(message) or result_ids(message))


def _answers(log: Sequence[Entry]) -> dict[int, list[int]]:
    """For each position with calls that are all answered, the positions of their results."""
    waiting: list[tuple[int, Counter[str], list[int]]] = []
    complete: dict[int, list[int]] = {}
    for at, entry in enumerate(log):
        if results := Counter(result_ids(entry.message)):
            for call in reversed(waiting):
                place, open_ids, found = call
                if results <= open_ids:
                    open_ids -= results
                    found.append(at)
                    if not +open_ids:
                        complete[place] = found
                        waiting.remove(call)
                    break
        elif ids := call_ids(entry.message):
            waiting = [call for call in waiting if at - call[0] < limits.TOOL_CALL_REACH]
            waiting.append((at, Counter(ids), []))
    return complete


def _reach(answers: Mapping[int, Sequence[int]], start: int) -> int:
    """The last position of the unit that starts at `start`, with the results of calls inside it."""
    end, at = max(answers[start]), start
    while at <= end:
        end = max(end, *answers.get(at, [end]))
        at += 1
    return end


def _in_order(
    log: Sequence[Entry], answers: Mapping[int, Sequence[int]], inside: range, others: set[int]
) -> tuple[Entry, ...]:
    """Calls with their results first, then the messages in between."""
    paired = [place for at in inside if at in answers for place in (at, *answers[at])]
    between = [at for at in inside if at not in answers and at not in others]
    return tuple(log[at] for at in (*paired, *between))


def _problem(message: Message) -> str:
    """The problem of a message that is not part of a complete tool call."""
    if result_ids(message):
        return ORPHAN
    return UNANSWERED if call_ids(message) else ""


def _with_half_answers(found: Sequence[Unit]) -> list[Unit]:
    """Join an incompletely answered call with the results that directly follow it."""
    joined: list[Unit] = []
    for unit in found:
        before = joined[-1] if joined else None
        ours = set(result_ids(unit.entries[0].message)) if unit.problem == ORPHAN else set()
        if before and before.problem == UNANSWERED and ours <= set(_called(before)) and ours:
            joined[-1] = Unit((*before.entries, *unit.entries), UNANSWERED)
        else:
            joined.append(unit)
    return joined


def _called(unit: Unit) -> list[str]:
    return [id_ for entry in unit.entries for id_ in call_ids(entry.message)]


def is_question(message: Message) -> bool:
    """Whether this is a message of the user, not a tool's result in the role `user`."""
    return message.role == "user" and not result_ids(message)


def ends_round(message: Message) -> bool:
    """Whether this is an answer, not a tool call before it."""
    return message.role == "assistant" and not call_ids(message)


# -- what a strategy gets ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A conversation for a strategy; its size does not depend on the length of the log.

    `entries` are the newest ones, without gaps, up to the end. `digests` are those in force, oldest
    span first. No digest covers the entries from `first_open` on; they have `open_tokens` together.
    `covered_tokens` are those of the entries before. If `entries` does not hold all open ones,
    `backlog` holds the first of them. `version` is the newest
    completed digest's, even if the strategy does not use it. `fixed_tokens` are in every context of
    the conversation: system, pins, task, tools, framing. `data_tokens` are those of the important
    data. A summarizer accepts `fold_tokens` at once; the engine splits a longer fold.
    With a `topic`, `entries` are that topic's active ones, in order and with gaps, and there is at
    most one digest: the topic's newest.
    """

    next_seq: int
    entries: tuple[Entry, ...] = ()
    digests: tuple[Digest, ...] = ()
    first_open: int = 0
    open_tokens: int = 0
    covered_tokens: int = 0
    backlog: tuple[Entry, ...] = ()
    version: int | None = None
    pinned: frozenset[int] = frozenset()
    fixed_tokens: int = 0
    data_tokens: int = 0
    fold_tokens: int = 24_000
    topic: Topic | None = None

    @property
    def digest_tokens(self) -> int:
        """The tokens of the digests in force."""
        return sum(digest.tokens for digest in self.digests)

    def total(self, data_max: int) -> int:
        """The tokens of a context with the digests and every entry after them.

        Important data counts with at most `data_max`.
        """
        data = min(self.data_tokens, data_max)
        return self.fixed_tokens + data + self.digest_tokens + self.open_tokens

    def open_units(self) -> list[Unit]:
        """The units from `first_open` on, which no digest covers."""
        if self.backlog:
            return units(self.backlog)
        return units(entry for entry in self.entries if entry.seq >= self.first_open)


# -- what it returns --------------------------------------------------------------------------


FOLD_TOKENS_MIN: Final = 100
"""Fewer tokens are not worth a digest."""
_NEWEST_STEPS: Final = 8
DATA_TOKENS: Final = 400
"""The limit for important data, unless the budget is large."""
GROWTH_SHARE: Final = 8
"""An eighth of a threshold may be added before the next digest."""
RESIDUE_TOKENS: Final = 150
"""The default limit for facts quoted with a summary because it leaves them out."""


def data_room(budget: Budget) -> int:
    """The limit for important data in a budget."""
    return max(DATA_TOKENS, budget.limit // 16)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """A span of entries to digest.

    The digest is written from the entries from `fresh_from` on and the digests it `takes` in. It
    has about `words` and at most `tokens_max` tokens, plus `residue_tokens` for quoted facts. A
    fold that `slides` omits what was said before `first_seq`. With a `topic`, only entries of that
    topic are digested.
    """

    first_seq: int
    last_seq: int
    fresh_from: int
    takes: tuple[int, ...] = ()
    words: tuple[int, int] = (100, 150)
    tokens_max: int | None = None
    residue_tokens: int = RESIDUE_TOKENS
    slides: bool = False
    prompt: str = ""
    topic: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the context should show, and what should be digested.

    `digests` are the versions to show. `recent_from` is the first entry to show word for word, with
    at most `recent_count` entries and `recent_tokens`; a unit of more than `long_tokens` is
    shortened to half of that. `heading` is written above each digest;
    digests have the role `digest_role`.

    `limit_tokens` is the strategy's own limit of a context. A log that fits it is shown whole and
    nothing else; None shows a whole log only if everything else would be larger. Important data and
    digests have at most `memory_tokens` together, of which `data_tokens` are for the former.

    With `open_max`, digests are opened: the entries before `recent_from` are shown word for word
    instead of their digests as far as there is room, newest first. `open_max` is the size that open
    entries may reach before the next digest. That much is kept free for them, so what is shown
    changes only at its end until there is another digest.
    """

    recent_from: int
    digests: tuple[int, ...] = ()
    folds: tuple[Fold, ...] = ()
    recent_count: int | None = None
    recent_tokens: int | None = None
    long_tokens: int | None = None
    data_tokens: int | None = None
    memory_tokens: int | None = None
    limit_tokens: int | None = None
    open_max: int | None = None
    important: bool = True
    heading: str = ""
    digest_role: Literal["user", "system"] = "user"
    reason: str = ""


def scaled(plan: Plan, factor: float) -> Plan:
    """The plan with its sizes in the tokens of another model."""

    def size(tokens: int | None) -> int | None:
        return None if tokens is None else int(tokens * factor)

    return replace(
        plan,
        recent_tokens=size(plan.recent_tokens),
        long_tokens=size(plan.long_tokens),
        data_tokens=size(plan.data_tokens),
        memory_tokens=size(plan.memory_tokens),
        limit_tokens=size(plan.limit_tokens),
        open_max=size(plan.open_max),
    )


@dataclass(frozen=True, slots=True)
class Strategy:
    """A function that plans contexts, with the name and the parameters stored for it.

    `background`: it folds after each round, and no call waits for that. `waits`: a context waits
    for its digests, unless the memory creates them in the background. `slides`: its digests cover
    only a window; those of other strategies cover the log from its first entry on. `by_topic`: its
    view has only the active topic. `opens`: its plans let digests be opened, so its view has all
    entries that could be shown. `keeps`: its view has the newest entries of so many tokens, even if
    digests cover them.
    """

    name: str
    plan: Callable[[View, Budget], Plan]
    parameters: Mapping[str, Json] = field(default_factory=dict)
    background: bool = False
    waits: bool = True
    slides: bool = False
    by_topic: bool = False
    opens: bool = False
    keeps: int = 0

    def __call__(self, view: View, budget: Budget) -> Plan:
        """Call `plan`."""
        return self.plan(view, budget)

    def to_json(self) -> dict[str, Json]:
        """Its name and parameters."""
        return {"name": self.name, "parameters": dict(self.parameters)}


# -- the rules for every plan ----------------------------------------------------------------


def check(view: View, plan: Plan) -> None:
    """Raise `InputError` if the engine cannot carry out the plan."""
    known = {digest.version: digest for digest in view.digests}
    if unknown := set(plan.digests) - set(known):
        raise InputError(f"the plan shows digests that are not in force: {sorted(unknown)}")
    if not 0 <= plan.recent_from <= view.next_seq:
        raise InputError(f"recent messages from {plan.recent_from}, but {view.next_seq} are stored")
    last = -1
    for fold in plan.folds:
        if not last < fold.first_seq <= fold.last_seq < view.next_seq:
            raise InputError(f"the spans to digest are not in order, or not in the log: {fold}")
        if set(fold.takes) - set(known):
            raise InputError(f"the plan merges digests that are not in force: {fold.takes}")
        if fold.fresh_from > fold.last_seq and len(fold.takes) < 2:  # noqa: PLR2004
            raise InputError(f"the plan has a digest without new messages: {fold}")
        _check_edge(view, fold)
        last = fold.last_seq


def _check_edge(view: View, fold: Fold) -> None:
    """Raise `InputError` if a fold ends inside a unit."""
    for unit in units(view.backlog or view.entries):
        if unit.first_seq <= fold.last_seq < unit.last_seq:
            end = fold.last_seq
            raise InputError(f"a digest cannot end at {end}, between a tool call and its results")


def check_keep(threshold_tokens: int, keep_tokens: int) -> None:
    """Raise `InputError` unless a threshold and what is kept below it go together."""
    if threshold_tokens < 1:
        raise InputError(f"threshold_tokens: {threshold_tokens}; must be at least 1")
    if not 0 < keep_tokens <= threshold_tokens:
        raise InputError(f"keep_tokens: {keep_tokens}; must be between 1 and {threshold_tokens}")


def fold_end(
    view: View, keep_from: int, tokens_max: int | None = None, *, fewest: int = FOLD_TOKENS_MIN
) -> int:
    """The last entry of the longest fold of open entries before `keep_from`; -1 if there is none.

    It ends between units and has at most `tokens_max` tokens, unless its first unit is larger. A
    call without all results is not folded, nor are too few tokens to gain anything: the `fewest`.
    """
    found = view.open_units()
    end, taken = -1, 0
    for unit in found:
        waits = unit.problem == UNANSWERED and unit is found[-1]
        over = tokens_max is not None and taken + unit.tokens > tokens_max
        if unit.last_seq >= keep_from or waits or (over and end >= 0):
            break
        end, taken = max(end, unit.last_seq), taken + unit.tokens
    return end if taken >= fewest else -1


def keep_from(view: View, tokens_max: int, entries_min: int = 1) -> int:
    """The first of the newest open entries that fit into `tokens_max`, at the start of a unit.

    At least `entries_min` entries are kept, whatever their size.
    """
    start, used = view.next_seq, 0
    found = units(entry for entry in view.entries if entry.seq >= view.first_open)
    for unit in reversed(found):
        used += unit.tokens
        if used > tokens_max and view.next_seq - start >= entries_min:
            break
        start = min(start, unit.first_seq)
    # An unanswered call can be inside another unit, which must not be cut.
    return min([start, *(unit.first_seq for unit in found if unit.last_seq >= start)])


def newest_from(view: View, tokens_max: int) -> int:
    """The first open entry, or the first of the newest ones that fit even if digests cover them.

    In steps of a part of `tokens_max`, so that the start of a prompt does not change every time.
    """
    step = max(tokens_max // _NEWEST_STEPS, 1)
    start, used = view.first_open, 0
    found = units(view.entries)
    for unit, before in zip(found[:0:-1], found[-2::-1], strict=True):
        used += unit.tokens
        if used > tokens_max:
            break
        totals = (min(e.total - e.tokens for e in one.entries) // step for one in (unit, before))
        if len(set(totals)) > 1:
            start = min(start, unit.first_seq)
    return start


def covering(digests: Sequence[Digest]) -> tuple[Digest, ...]:
    """The digests, ordered by span, that cover the log without a gap from entry 0 on."""
    found: list[Digest] = []
    for digest in digests:
        if digest.first_seq != (found[-1].last_seq + 1 if found else 0):
            break
        found.append(digest)
    return tuple(found)
