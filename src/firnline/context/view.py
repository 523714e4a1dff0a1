"""Reads the view of a conversation for a strategy; the cost depends on the window."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from typing import Any, Final, NamedTuple

from firnline.context import marks
from firnline.context.plan import Strategy, View, covering, is_question
from firnline.context.render import GAP_NOTE, NOTES, Sizes, render_recalled, render_task
from firnline.errors import StoreCorrupt
from firnline.log import limits
from firnline.log.draft import messages_size
from firnline.log.entry import Digest, Entry, Head, Key, Topic, live
from firnline.log.message import Message, result_ids
from firnline.log.text import Json
from firnline.log.threads import run_by_size, text_size
from firnline.log.tokens import REPLY_TOKENS
from firnline.protocols import Store

_LOOKS_MAX: Final = 3
_MORE_TOKENS: Final = 500
_SYSTEM_PAGE: Final = 2  # most logs begin with at most one
_SYSTEM_ENTRIES_MAX: Final = 200
INJECTED: Final = "its metadata says that the application injected it"


async def in_force(store: Store, key: Key, topic: int | None = None) -> tuple[Digest, ...]:
    """The digests in force, oldest span first: the newest completed one and those it lists."""
    newest = await store.newest_digest(key, topic)
    if newest is None:
        return ()
    beside = await store.digests(key, newest.beside) if newest.beside else []
    if len(beside) != len(newest.beside):
        raise StoreCorrupt(f"{key.conversation}: some of the digests {newest.beside} are missing")
    beside = [digest for digest in beside if digest.status == "completed"]
    return tuple(sorted((*beside, newest), key=lambda digest: (digest.first_seq, digest.last_seq)))


async def is_still(store: Store, key: Key, entry: Entry) -> bool:
    """Whether an entry is as it was read: it was not erased meanwhile, nor its conversation."""
    same = entry.hash, entry.erased_at
    return [(now.hash, now.erased_at) for now in await store.at(key, [entry.seq])] == [same]


async def look(
    store: Store, key: Key, strategy: Strategy, *, tail_tokens: int, fold_tokens: int
) -> View:
    """The view for `strategy`, with about `tail_tokens` of entries at most."""
    tokens = {"tail_tokens": tail_tokens, "fold_tokens": fold_tokens}
    for _ in range(_LOOKS_MAX):
        view = await _looked(store, key, strategy, **tokens)
        if view is not None:
            return view
    return View(next_seq=0, fold_tokens=fold_tokens)


async def _looked(
    store: Store, key: Key, strategy: Strategy, *, tail_tokens: int, fold_tokens: int
) -> View | None:
    """The view, or None if the conversation was erased between two reads."""
    head, digests = await asyncio.gather(store.head(key), in_force(store, key))
    if head is None or head.seq < 0:
        return View(next_seq=0, fold_tokens=fold_tokens)
    used = digests if strategy.slides else covering(digests)
    first_open = used[-1].last_seq + 1 if used else 0
    before = await store.tokens_between(key, 0, first_open - 1) if first_open else 0
    open_then = head.tokens - before
    # Where digests are opened, a little more than fits: the last room may be for a short message.
    more = max(tail_tokens // 4, _MORE_TOKENS) if strategy.opens else 0
    least = min(max(open_then, strategy.keeps), tail_tokens)
    wanted = tail_tokens + more if strategy.opens else least
    entries = await _tail(store, key, wanted, head.seq)
    if not _reach(entries, head):
        return None
    if entries[0].seq > first_open and open_then < tail_tokens:
        # Messages appended since the head was read took the place of the oldest.
        newest = await store.newest(key, tail_tokens)
        entries = [entry for entry in newest if entry.seq >= first_open] or entries
    last = entries[-1]
    return View(
        next_seq=last.seq + 1,
        entries=without_torn_start(entries, first_open),
        digests=used,
        first_open=first_open,
        open_tokens=last.total - before - _erased_tokens(entries, first_open),
        covered_tokens=before,
        fold_tokens=fold_tokens,
        version=max((digest.version for digest in digests), default=None),
        backlog=await _backlog(store, key, entries[0].seq, first_open, fold_tokens),
    )


async def look_at_topic(
    store: Store, key: Key, topic: Topic, *, tail_tokens: int, fold_tokens: int
) -> View:
    """The view of one topic: its newest active entries and its digest."""
    head, newest = await asyncio.gather(store.head(key), store.newest_digest(key, topic.id))
    if head is None:
        return View(next_seq=0, fold_tokens=fold_tokens)
    # Digests from before a merge lack the merged entries.
    digest = newest if newest and newest.version > topic.outdated else None
    first_open = digest.last_seq + 1 if digest else 0
    # Entries that only an undone digest covered are active, even if the topic is not updated.
    active = await store.members(key, topic.id, min(topic.active_from, first_open))
    entries = await _newest_of(store, key, active, tail_tokens)
    unseen = [seq for seq in active if first_open <= seq < (entries[0].seq if entries else 0)]
    backlog = await _first_of(store, key, unseen, fold_tokens)
    return View(
        next_seq=head.entries,
        entries=entries,
        digests=(digest,) if digest else (),
        first_open=first_open,
        open_tokens=sum(e.tokens for e in (*backlog, *entries) if e.seq >= first_open),
        backlog=backlog,
        fold_tokens=fold_tokens,
        version=newest.version if newest else None,
        topic=topic,
    )


async def _newest_of(
    store: Store, key: Key, seqs: Sequence[int], tokens_max: int
) -> tuple[Entry, ...]:
    """The newest of these entries that fit, but at least a few."""
    found: list[Entry] = []
    room = tokens_max
    for end in range(len(seqs), 0, -limits.BACKLOG_PAGE):
        page = await store.at(key, seqs[max(end - limits.BACKLOG_PAGE, 0) : end])
        for entry in reversed(page):
            room -= entry.tokens
            if room < 0 and len(found) >= limits.TAIL_ENTRIES_MIN:
                return without_torn_start(found[::-1], 0)
            found.append(entry)
    return tuple(found[::-1])


async def _first_of(
    store: Store, key: Key, seqs: Sequence[int], tokens_max: int
) -> tuple[Entry, ...]:
    """The first of these entries, about as many as one fold accepts."""
    found: list[Entry] = []
    for start in range(0, len(seqs), limits.BACKLOG_PAGE):
        found += await store.at(key, seqs[start : start + limits.BACKLOG_PAGE])
        if sum(entry.tokens for entry in found) > tokens_max:
            break
    return tuple(found)


async def span_of(
    store: Store, key: Key, first: int, last: int, *, topic: int | None, limit: int | None = None
) -> list[Entry]:
    """The entries `first` to `last`, those of one topic or all of them, at most `limit`."""
    if topic is None:
        return await store.read(key, first, last, limit)
    seqs = [seq for seq in await store.members(key, topic, first) if seq <= last]
    return await store.at(key, seqs if limit is None else seqs[:limit])


async def _tail(store: Store, key: Key, tokens: int, last_seq: int) -> Sequence[Entry]:
    """The newest entries of up to `tokens`, but at least a few."""
    entries = await store.newest(key, tokens)
    if entries and (erased := _erased_tokens(entries)):  # they take room only in the totals
        entries = await store.newest(key, tokens + erased)
    if len(entries) >= min(limits.TAIL_ENTRIES_MIN, last_seq + 1):
        return entries
    return await store.read(key, max(0, last_seq + 1 - limits.TAIL_ENTRIES_MIN))


def _erased_tokens(entries: Sequence[Entry], first_seq: int = 0) -> int:
    """The tokens that erased entries from `first_seq` on had, as far as the totals show them."""
    entries = [entry for entry in entries if entry.seq >= first_seq] or entries[-1:]
    between = entries[-1].total - entries[0].total
    return between - sum(entry.tokens for entry in entries[1:])


def _reach(entries: Sequence[Entry], head: Head) -> bool:
    """Whether these newest entries belong to `head`, not to a conversation created later."""
    if not entries or entries[-1].seq < head.seq:
        return False
    return all(entry.hash == head.hash for entry in entries if entry.seq == head.seq)


def without_torn_start(entries: Sequence[Entry], first_open: int) -> tuple[Entry, ...]:
    """The entries without leading tool results whose call is not among them."""
    start = 0
    if entries[0].seq > first_open:
        while start < len(entries) - 1 and result_ids(entries[start].message):
            start += 1
    return tuple(entries[start:])


async def _backlog(
    store: Store, key: Key, tail_from: int, first_open: int, fold_tokens: int
) -> tuple[Entry, ...]:
    """The first open entries, about as many as one fold accepts, if the tail lacks them."""
    found: list[Entry] = []
    tokens = 0
    while tail_from > first_open and tokens <= fold_tokens:
        start = found[-1].seq + 1 if found else first_open
        page = await store.read(key, start, limit=limits.BACKLOG_PAGE)
        if not page:
            break
        found += page
        tokens += sum(entry.tokens for entry in page)
    return tuple(found)


async def newest_question(store: Store, key: Key, view: View) -> Entry | None:
    """The newest message of the user, within a limited distance."""
    for entry in reversed(view.entries):
        if is_question(entry.message):
            return entry
    first = view.entries[0].seq if view.entries else view.next_seq
    older = await store.read(key, max(0, first - limits.QUESTION_LOOK_BACK), first - 1)
    return next((e for e in reversed(older) if is_question(e.message)), None) if first else None


# -- what every context has ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextFrame:
    """What every context of a conversation has besides its log, and the tokens of that.

    `given_tokens` are those of what is not in the log. `fixed_tokens` are those of a context that
    does not show the whole log: with the entries among the parts, and with notes on gaps.
    """

    system: tuple[Message | Entry, ...]
    pinned: tuple[Entry, ...]
    pins: frozenset[int]
    task: str
    tools_tokens: int
    given_tokens: int
    fixed_tokens: int


async def read_frame(
    store: Store,
    key: Key,
    sizes: Sizes,
    *,
    system: Sequence[Message],
    tools: Sequence[Mapping[str, Any]],
    task: str,
    next_seq: int,
) -> ContextFrame:
    """The frame of a conversation whose next entry is `next_seq`."""
    pinned, start = await asyncio.gather(store.pinned(key), _leading_system(store, key))
    chars = messages_size(system) + text_size([tools, task])
    return await run_by_size(
        chars, partial(_frame, sizes, (*system, *start), pinned, tools, task, next_seq)
    )


def _frame(
    sizes: Sizes,
    system: tuple[Message | Entry, ...],
    pinned: Sequence[Entry],
    tools: Sequence[Mapping[str, Any]],
    task: str,
    next_seq: int,
) -> ContextFrame:
    tools_tokens = int(sizes.count.tools(tools)) if tools else 0
    given = tools_tokens + REPLY_TOKENS + (sizes.of(render_task(task)) if task else 0)
    given += sum(sizes.of(part) for part in system if isinstance(part, Message))
    own = tuple(entry for entry in live(pinned) if entry not in system)
    stored = sum(sizes.entry(part) for part in (*system, *own) if isinstance(part, Entry))
    notes = sizes.of(Message.user(GAP_NOTE.format(next_seq, next_seq))) * NOTES
    return ContextFrame(
        system=system,
        pinned=own,
        pins=frozenset(entry.seq for entry in pinned),
        task=task,
        tools_tokens=tools_tokens,
        given_tokens=given,
        fixed_tokens=given + stored + notes,
    )


async def _leading_system(store: Store, key: Key) -> tuple[Entry, ...]:
    """The system messages at the start of the log."""
    found: list[Entry] = []
    while len(found) < _SYSTEM_ENTRIES_MAX:
        page = await store.read(key, len(found), limit=_SYSTEM_PAGE)
        leading = list(takewhile(is_system, page))
        found += leading
        if len(leading) < _SYSTEM_PAGE:
            break
    return tuple(live(found))


def is_system(entry: Entry) -> bool:
    """Whether an entry is a system message, whatever its provider calls the role."""
    return entry.message.role in ("system", "developer")


# -- recalled text that came back -------------------------------------------------------------


class Skipped(NamedTuple):
    """What of an entry is not digested, and why."""

    seq: int
    why: str

    def row(self) -> dict[str, Json]:
        """As a receipt lists it."""
        return {"seq": self.seq, "why": self.why}


async def drop_echo(store: Store, key: Key, entry: Entry) -> tuple[Entry, list[Skipped]]:
    """The entry without our own recalled sections, and which sections these were.

    A section counts as ours only if the log makes exactly the same of the entries that it names:
    so nothing is lost by leaving it out, and no text can hide what its sender wrote.
    """
    echoes: set[str] = set()
    skipped: list[Skipped] = []
    for text, seqs, outdated in marks.quoted_sections(entry):
        quoted = await store.at(key, seqs)
        if len(quoted) == len(seqs) and render_recalled(quoted, outdated).text == text:
            echoes.add(text)
            numbers = ", ".join(map(str, seqs[: limits.LOST_MAX]))
            skipped.append(Skipped(entry.seq, f"its recalled section only quotes {numbers}"))
    if not echoes:
        return entry, []
    return replace(entry, message=marks.without(entry.message, frozenset(echoes))), skipped
