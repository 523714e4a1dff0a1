"""Erasing conversations, messages, and the copies that branches hold of them.

What depends on a message is decided here and written by the store in one step with its tombstone.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from firnline import topics
from firnline.context import marks
from firnline.context.plan import is_of_tool, is_question, with_pairs
from firnline.context.render import render_digest
from firnline.digest.withdraw import withdraw
from firnline.engine.limits import ERASURE_TRIES
from firnline.engine.people import People
from firnline.engine.recall import check_time
from firnline.engine.topic_assigner import TopicAssigner
from firnline.errors import ConflictError, InputError, UnknownConversation
from firnline.log import limits
from firnline.log.entry import Digest, Entry, Erased, Erasure, Head, Key, Topic, live, runs
from firnline.log.message import ROLES, Message, Role
from firnline.log.tokens import TokenCounter
from firnline.protocols import Clock, Store, TopicAssignments
from firnline.store.cards import quoting_cards
from firnline.transfer.branch import Relatives, branches_of, copies_in, traces_of
from firnline.transfer.scan import heads

_ROUNDS: Final = 10  # of branches that were created while the others were erased
_EVER: Final = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)


# -- conversations ----------------------------------------------------------------------------


async def erase_conversation(
    store: Store, people: People, key: Key, *, branches: bool
) -> list[Erased]:
    """Erase a conversation, and with `branches` those that hold copies of its messages.

    The conversation comes last, so that a repeated call finds the rest after a crash; its
    certificate comes first, and names the branches.
    """
    traces = await traces_of(store, key)
    done: list[Erased] = []
    if branches:
        done += await _erase_all(store, people, key, await branches_of(store, traces))
    await people.withdraw(key)
    certificate = await store.erase(key)
    left = await branches_of(store, traces)
    for _ in range(_ROUNDS if branches and left else 0):
        done += await _erase_all(store, people, key, left)
        left = await branches_of(store, traces)
        if not left:
            break
    return [_with_branches(certificate, done, left), *done]


async def _erase_all(store: Store, people: People, key: Key, names: Sequence[str]) -> list[Erased]:
    done: list[Erased] = []
    for name in names:
        with suppress(UnknownConversation):  # another process erased it
            await people.withdraw(Key(key.tenant, name))
            done.append(await store.erase(Key(key.tenant, name)))
    return done


# -- people -----------------------------------------------------------------------------------


async def erase_conversations_of(
    store: Store, people: People, eraser: MessageEraser, tenant: str, person: str
) -> tuple[list[Erased], list[str]]:
    """Erase a person's conversations, and the copies of their messages in branches of these.

    A branch goes whole, unless it is with another person: it loses the copies only. What a
    conversation has from the one that it is a branch of is no message of the person: neither that
    one nor its other branches are touched. Also returns the conversations that hold copies still.
    """
    done: list[Erased] = []
    left: set[str] = set()
    while page := await store.conversations(tenant, person=person, limit=limits.PAGE_MAX):
        known = {head.conversation: head async for head in heads(store, tenant)}
        relatives = await Relatives.read(store, tenant)
        for head in page:
            for branch in _descendants(head.conversation, relatives, known):
                done += await _erase_branch(store, people, eraser, tenant, (head, branch))
            key = Key(tenant, head.conversation)
            traces = await traces_of(store, key)
            with suppress(UnknownConversation):  # another process erased it
                erased = await store.erase(key)
                copies = await branches_of(store, traces, relatives)
                done.append(replace(erased, survives=tuple(copies)))
                left.update(copies)
    there = {name for name in left if await store.head(Key(tenant, name)) is not None}
    found = [replace(one, survives=tuple(n for n in one.survives if n in there)) for one in done]
    return found, sorted(there, key=str.encode)


def _descendants(name: str, relatives: Relatives, known: Mapping[str, Head]) -> list[Head]:
    """The branches of a conversation, and the branches of these, the latest first."""
    found: dict[str, Head] = {}
    waiting = [name]
    while waiting:
        of = waiting.pop()
        for near in relatives.linked.get(of, ()):
            head = known.get(near)
            branched = head is not None and head.branch_of and head.branch_of[0] == of
            if head is not None and branched and near != name and near not in found:
                found[near] = head
                waiting.append(near)
    return list(found.values())[::-1]


async def _erase_branch(
    store: Store, people: People, eraser: MessageEraser, tenant: str, pair: tuple[Head, Head]
) -> list[Erased]:
    """Erase a branch that holds messages of a person's conversation, or these messages of it."""
    own, branch = pair
    first = own.branch_of[1] + 1 if own.branch_of else 0
    key, copy = Key(tenant, own.conversation), Key(tenant, branch.conversation)
    copies = await copies_in(store, branch.conversation, key, range(first, own.entries))
    if not copies:
        return []
    with suppress(UnknownConversation):  # another process erased it
        if branch.person in (None, own.person):
            return await erase_conversation(store, people, copy, branches=False)
        return [await eraser.erase_at(copy, copies)]
    return []


def _with_branches(certificate: Erased, done: Iterable[Erased], left: Sequence[str]) -> Erased:
    erased = sorted({one.conversation for one in done}, key=str.encode)
    return replace(certificate, branches=tuple(erased), survives=tuple(left))


# -- messages ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureRule:
    """Which messages are erased: those of a span, of a role, dated in [since, until)."""

    first_seq: int = 0
    last_seq: int | None = None
    role: Role | None = None
    since: datetime | None = None
    until: datetime | None = None


class MessageEraser:
    """Erases messages with everything derived from them."""

    def __init__(
        self,
        store: Store,
        assigner: TopicAssigner,
        people: People,
        *,
        count: TokenCounter,
        clock: Clock,
    ) -> None:
        self._store, self._topics, self._count, self._clock = store, assigner, count, clock
        self._people = people

    async def erase(self, key: Key, rule: ErasureRule, *, branches: bool) -> list[Erased]:
        """Erase the messages of a rule; with `branches`, also their copies, which come first.

        A call of a tool and its results are erased together. The first certificate sums up the
        conversation's own; it is empty if the rule matches nothing.
        """
        head = await self._store.head(key)
        if head is None:
            raise UnknownConversation(f"there is no conversation {key.conversation!r}")
        total = Erased(key.conversation, 0, 0, 0, 0, head.hash, self._clock())
        done: dict[str, Erased] = {}
        left: set[str] = set()
        async for seqs in self._chosen(key, rule):
            traces = await traces_of(self._store, key, seqs)
            for name in await branches_of(self._store, traces) if branches else ():
                copies = await copies_in(self._store, name, key, seqs)
                erased = await self._erase(Key(key.tenant, name), copies)
                done[name] = _sum(done.get(name), erased)
            total = _sum(total, await self._erase(key, seqs))
            left |= set(await branches_of(self._store, traces))
        names = sorted(left, key=str.encode)
        return [_with_branches(total, done.values(), names), *done.values()]

    async def erase_at(self, key: Key, seqs: Sequence[int]) -> Erased:
        """Erase the messages with these numbers, and calls and results that belong to them."""
        entries = await self._store.at(key, seqs)
        return await self._erase(key, await self._with_units(key, entries))

    async def matching(
        self, tenant: str, rule: ErasureRule, project: str | None
    ) -> AsyncIterator[Key]:
        """The conversations in which the rule matches a message."""
        async for head in heads(self._store, tenant, project=project):
            key = Key(tenant, head.conversation)
            async for _ in self._chosen(key, rule):
                yield key
                break

    async def _chosen(self, key: Key, rule: ErasureRule) -> AsyncIterator[list[int]]:
        """The sequence numbers of live messages that a rule matches, with whole tool calls."""
        first, last = rule.first_seq, rule.last_seq
        since, until = rule.since or _EVER[0], rule.until or _EVER[1]
        dated = rule.since is not None or rule.until is not None
        while last is None or first <= last:
            if dated:
                page = await self._store.dated(key, since, until, limits.READ_PAGE, first)
            else:
                page = await self._store.read(key, first, last, limits.READ_PAGE)
            if not page:
                return
            first = page[-1].seq + 1
            chosen = [entry for entry in page if _matches(entry, rule)]
            if chosen:
                yield await self._with_units(key, chosen)

    async def _with_units(self, key: Key, chosen: Sequence[Entry]) -> list[int]:
        """Their sequence numbers, and those of the calls and results that belong to them."""
        seqs = {entry.seq for entry in chosen}
        of_tools = [entry.seq for entry in chosen if is_of_tool(entry.message)]
        reach = limits.TOOL_CALL_REACH
        near = {seq + step for seq in of_tools for step in range(-reach, reach + 1)}
        for first, last in runs(sorted(near)):
            seqs |= with_pairs(await self._store.read(key, max(first, 0), last), of_tools)
        return sorted(seqs)

    async def _erase(self, key: Key, seqs: Sequence[int]) -> Erased:
        if seqs:
            await self._people.withdraw(key, seqs[0])
        for _ in range(ERASURE_TRIES):
            erasure = await self._decide(key, seqs)
            with suppress(ConflictError):  # digests or topics have changed: decide again
                return await self._store.erase_entries(key, erasure)
        return await self._store.erase_entries(key, await self._decide(key, seqs))

    async def _decide(self, key: Key, seqs: Sequence[int]) -> Erasure:
        known = await self._store.topics(key)
        digests = await self._store.digests(key)
        changed = withdraw(digests, seqs, self._clock()) if seqs else []
        left = await self._without(key, known, await self._store.at(key, seqs))
        return Erasure(
            seqs=tuple(seqs),
            digests=tuple(map(self._counted, changed)),
            version=max((digest.version for digest in digests), default=0),
            topics=tuple(left),
            revision=known.revision,
            cards=quoting_cards(key.conversation, seqs[0]) if seqs else (),
        )

    async def _without(
        self, key: Key, known: TopicAssignments, entries: Sequence[Entry]
    ) -> list[Topic]:
        """The topics without these entries; they get the title of the first message left."""
        erased = live(entries)
        if not erased or not known.topics:
            return []
        members = await self._store.topics_of(key, [entry.seq for entry in erased])
        changed = topics.without_entries(known.topics, members, erased)
        gone = {entry.seq for entry in erased}
        return [
            topic if topic.title else replace(topic, title=await self._title(key, topic, gone))
            for topic in changed
        ]

    async def _title(self, key: Key, topic: Topic, gone: Collection[int]) -> str:
        """The title from the first of a topic's messages that are left."""
        members = [seq for seq in await self._store.members(key, topic.id) if seq not in gone]
        left = await self._store.at(key, members[: limits.BACKLOG_PAGE])
        asked = [entry for entry in left if is_question(entry.message)]
        titles = (topics.title_of(marks.said(entry.message)) for entry in asked)
        return next(filter(None, titles), "")

    def _counted(self, digest: Digest) -> Digest:
        if not digest.text:
            return digest
        tokens = self._count.message(Message.user(render_digest(digest)))
        return replace(digest, tokens=int(tokens))


def _matches(entry: Entry, rule: ErasureRule) -> bool:
    if entry.erased_at is not None or (rule.last_seq is not None and entry.seq > rule.last_seq):
        return False
    return rule.role in (None, entry.message.role)


def _sum(before: Erased | None, erased: Erased) -> Erased:
    if before is None:
        return erased
    counted = ("entries", "digests", "segments", "tokens", "vectors")
    sums = {name: getattr(before, name) + getattr(erased, name) for name in counted}
    kinds = sorted({*before.cards, *erased.cards})
    cards = {kind: before.cards.get(kind, 0) + erased.cards.get(kind, 0) for kind in kinds}
    seqs = sorted(seq for one in (before, erased) for a, b in one.spans for seq in range(a, b + 1))
    return replace(
        erased,
        **sums,
        topics=max(before.topics, erased.topics),
        cards=cards,
        spans=tuple(runs(seqs)),
    )


def checked_rule(
    first_seq: int | None,
    last_seq: int | None,
    role: Role | None,
    since: datetime | None,
    until: datetime | None,
) -> ErasureRule:
    """The rule; `InputError` if it is invalid, or names nothing."""
    if (first_seq, last_seq, role, since, until) == (None,) * 5:
        raise InputError("name messages by number, role or date; `erase` erases all of them")
    if first_seq is not None:
        limits.check_number("first_seq", first_seq)
        last_seq = first_seq if last_seq is None else last_seq
    if last_seq is not None:
        limits.check_number("last_seq", last_seq, first_seq or 0)
    if role is not None and role not in ROLES:
        raise InputError(f"role: unknown role {role!r}; use {', '.join(ROLES)}")
    for name, at in (("since", since), ("until", until)):
        if at is not None:
            check_time(name, at)
    return ErasureRule(
        first_seq=first_seq or 0, last_seq=last_seq, role=role, since=since, until=until
    )
