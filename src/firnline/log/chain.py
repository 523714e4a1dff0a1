"""Checks that a log is complete and unchanged: pure functions over its records.

Reading and verifying share them. Reading raises at the first damaged record, so damaged text is
never served; verifying continues and lists every problem.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from firnline.errors import StoreCorrupt
from firnline.log.entry import ERASED, Entry, Head, Key, Record, erased_at, genesis, next_hash
from firnline.log.merkle import Frontier
from firnline.log.message import decode
from firnline.log.proof_check import Checkpoint, leaf_hash
from firnline.log.text import plural


@dataclass(frozen=True, slots=True)
class LogProblem:
    """One difference from what was acknowledged. `seq` is None if it does not concern an entry."""

    what: str
    seq: int | None = None

    def __str__(self) -> str:
        return self.what if self.seq is None else f"message {self.seq}: {self.what}"


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of recomputing every hash of a conversation. True if there are no problems.

    `erased` entries have no bytes left to hash; the chain continues with their stored hashes.
    """

    conversation: str
    entries: int
    tokens: int
    head: str
    problems: tuple[LogProblem, ...] = ()
    erased: int = 0

    @property
    def ok(self) -> bool:
        """Whether the log is exactly what was acknowledged."""
        return not self.problems

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        if self.ok:
            erased = f" ({self.erased:,} of them erased)" if self.erased else ""
            return (
                f"{self.conversation}: intact: {plural(self.entries, 'message')}{erased}, "
                f"{plural(self.tokens, 'token')}, "
                f"every hash recomputed, head {self.head[:19]}…"
            )
        listed = "".join(f"\n  - {problem}" for problem in self.problems)
        return f"{self.conversation}: DAMAGED: {plural(len(self.problems), 'problem')}{listed}"


def flaw(record: Record, previous_hash: str) -> str:
    """The problem of a record that follows `previous_hash`; empty if there is none."""
    if record.problem or record.erased:
        return record.problem
    if next_hash(previous_hash, record.body, record.tokens, record.tokenizer) != record.hash:
        return "the stored message does not match its hash"
    return ""


def checked_entries(records: Sequence[Record], previous_hash: str) -> list[Entry]:
    """The entries of consecutive records, checked; the first flaw raises `StoreCorrupt`."""
    checked = []
    for record in records:
        if problem := flaw(record, previous_hash):
            raise StoreCorrupt(f"message {record.seq}: {problem}", seq=record.seq)
        erased = erased_at(record.body)
        checked.append(
            Entry(
                record.seq,
                decode(record.body) if erased is None else ERASED,
                record.tokens if erased is None else 0,
                record.total,
                record.hash,
                record.tokenizer,
                record.archived,
                erased,
            )
        )
        previous_hash = record.hash
    return checked


@dataclass(slots=True)
class Audit:
    """Checks a conversation's records in order and collects their problems.

    `checkpoint` is one that was made of the log, which the log must continue.
    """

    key: Key
    anchor: str | None = None
    checkpoint: Checkpoint | None = None
    problems: list[LogProblem] = field(default_factory=list)
    seq: int = 0
    total: int = 0
    hash: str = ""
    erased: int = 0
    tree: Frontier = field(default_factory=Frontier)

    def __post_init__(self) -> None:
        self.hash = genesis(self.key)

    def take(self, records: Iterable[Record]) -> None:
        """Check the next records."""
        for record in records:
            self._check(record)
            self.seq = record.seq + 1
            self.total = record.total
            self.hash = record.hash
            self.erased += record.erased
            if self.hash == self.anchor:
                self.anchor = None
            if self.checkpoint is not None and self.tree.size < self.checkpoint.size:
                self.tree.add(leaf_hash(record.hash))

    def _check(self, record: Record) -> None:
        if record.seq != self.seq:
            missing = f"messages {self.seq} to {record.seq - 1} are missing"
            self.problems.append(LogProblem(missing if record.seq > self.seq else "out of order"))
        elif problem := flaw(record, self.hash) or _decode_problem(record):
            self.problems.append(LogProblem(problem, record.seq))
        if not record.problem and record.total != self.total + record.tokens:
            self.problems.append(LogProblem("the running token total is wrong", record.seq))

    def _continues(self, checkpoint: Checkpoint) -> bool:
        return (self.tree.size, self.tree.root()) == (checkpoint.size, checkpoint.root)

    def check_extra(self, now: Head | None, head: Head) -> None:
        """Check entries found after the head: appended since, or never acknowledged."""
        if now is None or now.entries == head.entries:
            self.problems.append(LogProblem("there are messages after the recorded head"))

    def close(self, head: Head) -> Verification:
        """Compare the end of the log with the conversation's recorded head."""
        if self.seq != head.entries:
            there = plural(self.seq, "message")
            self.problems.append(
                LogProblem(f"the log ends after {there}, {head.entries} were acknowledged")
            )
        elif self.hash != head.hash:
            self.problems.append(LogProblem("the last hash does not match the recorded head"))
        elif self.total != head.tokens:
            self.problems.append(LogProblem("the token total does not match the recorded one"))
        if self.checkpoint is not None and not self._continues(self.checkpoint):
            size = self.checkpoint.size
            self.problems.append(
                LogProblem(
                    f"the log was rewritten: its checkpoint of {size} messages does not match"
                )
            )
        if self.anchor is not None:
            self.problems.append(
                LogProblem(f"{self.anchor} is not in the chain: this is a different log")
            )
        problems = tuple(self.problems)
        return Verification(
            self.key.conversation, self.seq, self.total, self.hash, problems, self.erased
        )


def _decode_problem(record: Record) -> str:
    try:
        if erased_at(record.body) is None:
            decode(record.body)
    except StoreCorrupt as error:
        return str(error)
    return ""
