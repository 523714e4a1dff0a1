"""The in-memory store: the reference implementation that every other store is compared with.

It is written for readability, and keeps its data only while the process runs. Its methods never
wait, so each is one step that cannot be interleaved with others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Final

from firnline.errors import ConflictError, InputError, StoreNotOpen, UnknownConversation
from firnline.language.terms import AnalyzedMessages, wanted_words
from firnline.log import chain, limits
from firnline.log.entry import (
    Appended,
    Archived,
    Card,
    Digest,
    Entry,
    EntryDraft,
    Erased,
    Erasure,
    Head,
    Idempotency,
    IndexMatch,
    Key,
    Lease,
    Project,
    Record,
    Scope,
    Topic,
    UsedKey,
    genesis,
    tombstone,
)
from firnline.log.message import microseconds, utc_now
from firnline.log.text import Json, plural
from firnline.protocols import (
    EVERYTHING,
    Clock,
    Damage,
    EmbeddedTo,
    Finding,
    Known,
    Pending,
    Progress,
    TopicAssignments,
    Vector,
)
from firnline.store import ram_search
from firnline.store.cards import CardQuery, card_query, check_card, drop_query
from firnline.store.digests import (
    check_finish,
    check_lease_seconds,
    fail_abandoned,
    lease_lost,
    mark_undone,
    next_version,
)
from firnline.store.erasure import certificate, check_erasure
from firnline.store.ram_search import RamEntry
from firnline.store.rows import check_person, check_repeat, check_used_keys
from firnline.store.topics import check_assignment

_NOTHING: Final[AbstractSet[str]] = frozenset()


@dataclass(slots=True)
class _RamConversation:
    created_at: datetime
    updated_at: datetime
    project: str | None = None
    person: str | None = None
    unread: bool = False
    metadata: dict[str, Json] = field(default_factory=dict)
    records: list[Record] = field(default_factory=list)
    strategy: dict[str, Json] | None = None
    pins: set[int] = field(default_factory=set)
    digests: dict[int, tuple[Digest, int]] = field(default_factory=dict)  # with their fences
    keys: dict[str, tuple[str, int, int]] = field(default_factory=dict)
    fence: int = 0
    owner: str | None = None
    lease_until: datetime | None = None
    pending_since: datetime | None = None
    vectors: dict[str, dict[tuple[int, int], bytes]] = field(default_factory=dict)
    embedded: dict[str, int] = field(default_factory=dict)
    topics: dict[int, Topic] = field(default_factory=dict)
    members: dict[int, int] = field(default_factory=dict)  # entry to topic
    assigned: int = 0
    revision: int = 0
    understood: AnalyzedMessages = field(default_factory=AnalyzedMessages)
    life: int = field(default_factory=count().__next__)


class RamStore:
    """Keeps conversations in memory, for tests and experiments."""

    def __init__(self, *, clock: Clock = utc_now) -> None:
        self._clock = clock
        self._conversations: dict[Key, _RamConversation] = {}
        self._projects: dict[str, dict[str, Project]] = {}
        self._cards: dict[tuple[str, str, str], Card] = {}  # by kind, tenant and name
        self._fence = 0
        self._open = False

    async def open(self) -> None:
        """Open the store."""
        self._open = True

    async def close(self) -> None:
        """Close the store; its data is kept as long as the object exists."""
        self._open = False

    def _find(self, key: Key) -> _RamConversation | None:
        if not self._open:
            raise StoreNotOpen
        return self._conversations.get(key)

    def _must_find(self, key: Key) -> _RamConversation:
        found = self._find(key)
        if found is None:
            raise UnknownConversation(f"there is no conversation {key.conversation!r}")
        return found

    def _find_or_create(self, key: Key, now: datetime) -> _RamConversation:
        found = self._find(key)
        if found is None:
            found = self._conversations[key] = _RamConversation(now, now)
        return found

    # -- the log ------------------------------------------------------------------------------

    async def append(
        self,
        key: Key,
        drafts: Sequence[EntryDraft],
        *,
        expected_seq: int | None = None,
        idempotency: Idempotency | None = None,
        person: str | None = None,
    ) -> Appended:
        """See `Store.append`."""
        if not drafts:
            raise InputError("nothing to append")
        found = self._find(key)
        check_person(key, found.person if found else None, person)
        if found and idempotency and idempotency.key in found.keys:
            return self._replay(key, found, idempotency)
        for draft in drafts:
            draft.check()
        next_seq = len(found.records) if found else 0
        if expected_seq is not None and expected_seq != next_seq:
            raise ConflictError(
                f"{key.conversation}: the next sequence number is {next_seq}, not {expected_seq}",
                expected_seq=expected_seq,
                actual_seq=next_seq,
            )
        found = self._find_or_create(key, drafts[0].time)
        found.person = found.person or person
        found.unread = found.person is not None
        for draft in drafts:
            found.records.append(_record(key, found.records, draft))
        found.pins.update(next_seq + i for i, draft in enumerate(drafts) if draft.pinned)
        found.updated_at = drafts[-1].time
        if idempotency:
            end = len(found.records) - 1
            found.keys[idempotency.key] = (idempotency.fingerprint, next_seq, end)
        return Appended(tuple(self._span(key, found, next_seq, len(found.records) - 1)))

    def _replay(self, key: Key, found: _RamConversation, idempotency: Idempotency) -> Appended:
        fingerprint, first, last = found.keys[idempotency.key]
        check_repeat(idempotency, fingerprint)
        return Appended(tuple(self._span(key, found, first, last)), replayed=True)

    def _span(self, key: Key, found: _RamConversation, first: int, last: int) -> list[Entry]:
        before = found.records[first - 1].hash if first > 0 else genesis(key)
        return chain.checked_entries(found.records[first : last + 1], before)

    async def used_keys(self, key: Key, *, after: str = "", limit: int = 100) -> list[UsedKey]:
        """See `Store.used_keys`."""
        found = self._find(key)
        known = found.keys if found else {}
        names = sorted((name for name in known if name.encode() > after.encode()), key=str.encode)
        return [
            UsedKey(Idempotency(name, known[name][0]), *known[name][1:])
            for name in names[: max(limit, 0)]
        ]

    async def put_used_keys(self, key: Key, used: Sequence[UsedKey]) -> None:
        """See `Store.put_used_keys`."""
        found = self._must_find(key)
        check_used_keys(key, used, len(found.records))
        given = {item.idempotency.key: (item.idempotency.fingerprint, *item[1:]) for item in used}
        found.keys = {**given, **found.keys}

    async def read(
        self, key: Key, first_seq: int = 0, last_seq: int | None = None, limit: int | None = None
    ) -> list[Entry]:
        """See `Store.read`."""
        found = self._find(key)
        first = max(first_seq, 0)
        if found is None or first >= len(found.records):
            return []
        last = len(found.records) - 1 if last_seq is None else last_seq
        if limit is not None:
            last = min(last, first + limit - 1)
        return self._span(key, found, first, last) if last >= first else []

    async def newest(self, key: Key, tokens_max: int) -> list[Entry]:
        """See `Store.newest`."""
        found = self._find(key)
        if found is None:
            return []
        first = len(found.records)
        while first and tokens_max >= found.records[first - 1].tokens:
            first -= 1
            tokens_max -= found.records[first].tokens
        return self._span(key, found, first, len(found.records) - 1)

    async def at(self, key: Key, seqs: Sequence[int]) -> list[Entry]:
        """See `Store.at`."""
        found = self._find(key)
        there = sorted({seq for seq in seqs if found and 0 <= seq < len(found.records)})
        return [self._span(key, found, seq, seq)[0] for seq in there] if found else []

    async def dated(
        self, key: Key, since: datetime, until: datetime, limit: int, first_seq: int = 0
    ) -> list[Entry]:
        """See `Store.dated`."""
        entries = await self.read(key, max(first_seq, 0))
        within = [
            entry
            for entry in entries
            if entry.message.created_at and since <= entry.message.created_at < until
        ]
        return within[:limit]

    async def tokens_between(self, key: Key, first_seq: int, last_seq: int) -> int:
        """See `Store.tokens_between`."""
        found = self._find(key)
        records = found.records if found else []
        return sum(record.tokens for record in records[max(first_seq, 0) : last_seq + 1])

    async def records(self, key: Key, first_seq: int, limit: int) -> list[Record]:
        """See `Store.records`."""
        found = self._find(key)
        return found.records[first_seq : first_seq + limit] if found else []

    async def head(self, key: Key) -> Head | None:
        """See `Store.head`."""
        found = self._find(key)
        return _head(key, found) if found else None

    # -- conversations and projects -----------------------------------------------------------

    async def conversations(
        self,
        tenant: str,
        *,
        project: str | None = None,
        person: str | None = None,
        after: str = "",
        limit: int = 100,
    ) -> list[Head]:
        """See `Store.conversations`."""
        heads = [
            _head(key, found)
            for key, found in sorted(self._conversations.items(), key=lambda item: _order(item[0]))
            if key.tenant == tenant and key.conversation.encode() > after.encode()
        ]
        wanted = [head for head in heads if project in (None, head.project)]
        return [head for head in wanted if person in (None, head.person)][:limit]

    async def recent(
        self, tenant: str, project: str | None, *, after: Head | None = None, limit: int = 100
    ) -> list[Head]:
        """See `Store.recent`."""
        heads = await self.conversations(tenant, project=project, limit=len(self._conversations))
        heads.sort(key=_recency)
        following = [h for h in heads if after is None or _recency(h) > _recency(after)]
        return following[: max(limit, 0)]

    async def describe(
        self,
        key: Key,
        *,
        project: str | None = None,
        person: str | None = None,
        metadata: dict[str, Json] | None = None,
        strategy: dict[str, Json] | None = None,
        created_at: datetime | None = None,
        known: Head | None = None,
    ) -> Head:
        """See `Store.describe`."""
        if known is not None:
            known.check_described(await self.head(key))
        found = self._find_or_create(key, self._clock())
        found.project = found.project if project is None else project
        if person is not None:
            found.person = person or None
            found.unread = bool(person) and bool(found.records)
        found.metadata = found.metadata if metadata is None else metadata
        found.strategy = found.strategy if strategy is None else strategy
        found.created_at = created_at or found.created_at
        if not found.records:
            found.updated_at = created_at or found.updated_at
        return _head(key, found)

    async def pin(self, key: Key, seq: int, *, pinned: bool = True) -> None:
        """See `Store.pin`."""
        found = self._must_find(key)
        if not 0 <= seq < len(found.records):
            raise InputError(f"{key.conversation} has no message {seq}")
        (found.pins.add if pinned else found.pins.discard)(seq)

    async def pinned(self, key: Key) -> list[Entry]:
        """See `Store.pinned`."""
        found = self._find(key)
        return [self._span(key, found, seq, seq)[0] for seq in sorted(found.pins)] if found else []

    async def projects(self, tenant: str) -> list[Project]:
        """See `Store.projects`."""
        known = self._projects.get(tenant, {})
        return [known[name] for name in sorted(known, key=str.encode)]

    async def save_project(self, tenant: str, project: Project) -> None:
        """See `Store.save_project`."""
        self._projects.setdefault(tenant, {})[project.name] = project

    async def tenants(self) -> list[str]:
        """See `Store.tenants`."""
        of_cards = {tenant for _, tenant, _ in self._cards}
        of_conversations = {key.tenant for key in self._conversations}
        return sorted({*of_conversations, *self._projects, *of_cards}, key=str.encode)

    # -- search -------------------------------------------------------------------------------

    async def search(
        self, tenant: str, query: str, *, scope: Scope = EVERYTHING, limit: int = 20
    ) -> list[IndexMatch]:
        """See `Store.search`; reads the whole log."""
        wanted = wanted_words(query)
        if not wanted or limit <= 0 or scope.topics == ():
            return []
        entries = [item for key in self._conversations for item in self._terms(key, tenant)]
        alone = self._conversations.get(Key(tenant, scope.conversation or ""))
        short = alone is not None and len(alone.records) <= limits.SEARCH_WEIGHED_MAX
        total = sum(
            len(f.records) for key, f in self._conversations.items() if key.tenant == tenant
        )
        inside = [item for item in entries if self._in_scope(item, scope)]
        return ram_search.rank(wanted, entries, inside, total=total, short=short)[:limit]

    def _terms(self, key: Key, tenant: str) -> Iterator[RamEntry]:
        """The entries of a conversation of the tenant, with their terms and those before them."""
        if key.tenant != tenant:
            return
        found, before = self._conversations[key], _NOTHING
        for seq, record in enumerate(found.records):
            if record.erased:
                before = _NOTHING
                continue
            message, there = found.understood[record.body]
            yield RamEntry(key, seq, message, there, before)
            before = there.own

    def _in_scope(self, entry: RamEntry, scope: Scope) -> bool:
        name, found = entry.key.conversation, self._conversations[entry.key]
        topic = name, found.members.get(entry.seq, -1)
        return (
            scope.conversation in (None, name)
            and scope.describes(_head(entry.key, found))
            and scope.has(entry.message)
            and topic in (scope.topics or [topic])
        )

    async def rebuild_index(self, progress: Progress | None = None) -> None:
        """See `Store.rebuild_index`; there is no index: search reads the log."""
        del progress

    # -- vectors and topics -------------------------------------------------------------------

    async def embedded(self, key: Key, model: str) -> int:
        """See `Store.embedded`."""
        found = self._find(key)
        return found.embedded.get(model, 0) if found else 0

    async def embedders(self, key: Key) -> dict[str, int]:
        """See `Store.embedders`."""
        found = self._find(key)
        return dict(found.embedded) if found else {}

    async def embedded_in(self, tenant: str, model: str, scope: Scope) -> dict[str, EmbeddedTo]:
        """See `Store.embedded_in`."""
        return {
            key.conversation: EmbeddedTo(found.embedded[model], found.life)
            for key, found in self._conversations.items()
            if key.tenant == tenant
            and model in found.embedded
            and scope.conversation in (None, key.conversation)
            and scope.project in (None, found.project)
            and scope.person in (None, found.person)
        }

    async def put_vectors(
        self, key: Key, model: str, vectors: Sequence[Vector], *, first_seq: int, next_seq: int
    ) -> bool:
        """See `Store.put_vectors`."""
        found = self._find(key)
        if found is None or found.embedded.get(model, 0) != first_seq:
            return False
        if next_seq > len(found.records):
            return False
        known = found.vectors.setdefault(model, {})
        known |= {(seq, part): body for seq, part, body in vectors if not found.records[seq].erased}
        found.embedded[model] = next_seq
        if next_seq == len(found.records):
            found.vectors, found.embedded = {model: known}, {model: next_seq}
        return True

    async def vectors(self, key: Key, model: str, first_seq: int, limit: int) -> list[Vector]:
        """See `Store.vectors`."""
        found = self._find(key)
        known = found.vectors.get(model, {}) if found else {}
        rows = [Vector(*at, known[at]) for at in sorted(known) if at[0] >= first_seq]
        while 0 < limit < len(rows) and rows[limit].part:
            limit += 1
        return rows[: max(limit, 0)]

    async def vectors_at(self, key: Key, model: str, seqs: Sequence[int]) -> list[Vector]:
        """See `Store.vectors_at`."""
        found = self._find(key)
        known = found.vectors.get(model, {}) if found else {}
        return [Vector(*at, known[at]) for at in sorted(known) if at[0] in set(seqs)]

    async def unembedded(self, tenant: str, model: str, limit: int = 100) -> list[Key]:
        """See `Store.unembedded`."""
        behind = [
            (found.updated_at, key)
            for key, found in self._conversations.items()
            if key.tenant == tenant and found.embedded.get(model, 0) < len(found.records)
        ]
        newest_first = sorted(behind, key=lambda item: item[0], reverse=True)
        return [key for _, key in newest_first][: max(limit, 0)]

    async def topics(self, key: Key) -> TopicAssignments:
        """See `Store.topics`."""
        found = self._find(key)
        if found is None:
            return TopicAssignments({}, 0, 0)
        return TopicAssignments(dict(sorted(found.topics.items())), found.assigned, found.revision)

    async def assign(
        self,
        key: Key,
        topics: Sequence[Topic],
        members: Mapping[int, int | None],
        *,
        revision: int,
        next_seq: int | None = None,
    ) -> int:
        """See `Store.assign`."""
        found = self._must_find(key)
        reach = found.assigned if next_seq is None else next_seq
        check_assignment(
            key,
            topics,
            members,
            revision=(revision, found.revision),
            next_seq=(reach, len(found.records)),
        )
        found.topics |= {topic.id: topic for topic in topics}
        merged = {**found.members, **members}
        found.members = {seq: topic for seq, topic in merged.items() if topic is not None}
        found.assigned, found.revision = max(found.assigned, reach), found.revision + 1
        return found.revision

    async def members(self, key: Key, topic: int, first_seq: int = 0) -> list[int]:
        """See `Store.members`."""
        found = self._find(key)
        known = found.members if found else {}
        return sorted(seq for seq, of in known.items() if of == topic and seq >= first_seq)

    async def topics_of(self, key: Key, seqs: Sequence[int]) -> dict[int, int]:
        """See `Store.topics_of`."""
        found = self._find(key)
        known = found.members if found else {}
        return {seq: known[seq] for seq in seqs if seq in known}

    # -- digests and leases -------------------------------------------------------------------

    async def lease(self, key: Key, owner: str, seconds: float) -> Lease | None:
        """See `Store.lease`."""
        check_lease_seconds(seconds)
        found, now = self._must_find(key), self._clock()
        if _is_ahead(found.lease_until, now, limits.LEASE_SECONDS_MAX):
            return None
        self._fence += 1
        found.fence = self._fence
        found.owner, found.lease_until = owner, now + timedelta(seconds=seconds)
        return Lease(key, owner, found.fence, found.lease_until)

    async def renew(self, lease: Lease, seconds: float) -> Lease:
        """See `Store.renew`."""
        check_lease_seconds(seconds)
        found = self._held(lease)
        found.lease_until = self._clock() + timedelta(seconds=seconds)
        return replace(lease, expires_at=found.lease_until)

    async def release(self, lease: Lease) -> None:
        """See `Store.release`."""
        found = self._find(lease.key)
        if found and (found.fence, found.owner) == (lease.fence, lease.owner):
            found.owner = found.lease_until = None

    def _held(self, lease: Lease) -> _RamConversation:
        found = self._find(lease.key)
        if found is None or (found.fence, found.owner) != (lease.fence, lease.owner):
            raise lease_lost(lease)
        return found

    async def begin_digest(self, lease: Lease, digest: Digest) -> Digest:
        """See `Store.begin_digest`."""
        found = self._held(lease)
        last = max(found.digests, default=0)
        begun = next_version(_newest(found, digest.topic), last, digest, self._clock())
        for version, (item, fence) in found.digests.items():
            found.digests[version] = fail_abandoned(item), fence
        found.digests[begun.version] = begun, lease.fence
        return begun

    async def finish_digest(self, lease: Lease, digest: Digest) -> Digest:
        """See `Store.finish_digest`."""
        found = self._held(lease)
        stored, fence = found.digests.get(digest.version, (None, 0))
        newest = _newest(found, digest.topic)
        check_finish(stored if fence == lease.fence else None, digest, newest)
        found.digests[digest.version] = digest, lease.fence
        return digest

    async def undo_digest(self, lease: Lease, version: int) -> Digest:
        """See `Store.undo_digest`."""
        found = self._held(lease)
        asked, _ = found.digests.get(version, (None, 0))
        digest = mark_undone(_newest(found, asked.topic if asked else None), version)
        found.digests[version] = digest, lease.fence
        return digest

    async def fail_damaged(self, lease: Lease) -> int:
        """See `Store.fail_damaged`; objects in memory are never damaged."""
        self._held(lease)
        return 0

    async def digests(self, key: Key, versions: Sequence[int] | None = None) -> list[Digest]:
        """See `Store.digests`."""
        found = self._find(key)
        known = found.digests if found else {}
        return [known[item][0] for item in sorted(known) if versions is None or item in versions]

    async def newest_digest(self, key: Key, topic: int | None = None) -> Digest | None:
        """See `Store.newest_digest`."""
        found = self._find(key)
        return _newest(found, topic) if found else None

    async def put_digests(self, key: Key, digests: Sequence[Digest]) -> None:
        """See `Store.put_digests`."""
        found = self._must_find(key)
        if found.digests:
            raise ConflictError(f"{key.conversation} has digests already")
        found.digests = {item.version: (item, 0) for item in digests}

    async def mark_pending(self, key: Key, due: datetime, *, postpone: bool = False) -> None:
        """See `Store.mark_pending`."""
        found = self._find(key)
        if found and (found.pending_since is None or postpone):
            found.pending_since = due

    async def due(
        self, now: datetime, limit: int = 100, tenants: Collection[str] | None = None
    ) -> list[Key]:
        """See `Store.due`."""
        marked = [
            (found.pending_since, key)
            for key, found in self._conversations.items()
            if found.pending_since and (tenants is None or key.tenant in tenants)
        ]
        longest_first = sorted(marked, key=lambda item: item[0])
        most = limits.POSTPONE_SECONDS_MAX
        due = [key for at, key in longest_first if not _is_ahead(at, now, most)]
        return due[: max(limit, 0)]

    async def pending(
        self, now: datetime, *, stuck_before: datetime, cards: str, tenant: str | None = None
    ) -> Pending:
        """See `Store.pending`."""
        known = [
            found for key, found in self._conversations.items() if tenant in (None, key.tenant)
        ]
        due = [found.pending_since for found in known if found.pending_since is not None]
        processing = [
            (item.created_at, _is_ahead(found.lease_until, now, limits.LEASE_SECONDS_MAX))
            for found in known
            for item, _ in found.digests.values()
            if item.status == "processing"
        ]
        return Pending(
            conversations=len(due),
            oldest=min(due, default=None),
            processing=len(processing),
            leased=sum(held for _, held in processing),
            stuck=sum(begun is not None and begun < stuck_before for begun, _ in processing),
            cards=sum(kind == cards and tenant in (None, of) for kind, of, _ in self._cards),
        )

    async def clear_pending(self, key: Key, last_seq: int) -> bool:
        """See `Store.clear_pending`."""
        found = self._find(key)
        if found and len(found.records) > last_seq + 1:
            return False
        if found:
            found.pending_since = None
        return True

    async def unread(self, tenant: str, person: str | None = None, limit: int = 100) -> list[Head]:
        """See `Store.unread`."""
        heads = await self.conversations(tenant, person=person, limit=len(self._conversations))
        keys = [Key(tenant, head.conversation) for head in heads]
        waiting = [
            head for key, head in zip(keys, heads, strict=True) if self._conversations[key].unread
        ]
        return waiting[: max(limit, 0)]

    async def mark_read(self, tenant: str, read: Mapping[str, int]) -> None:
        """See `Store.mark_read`."""
        for name, entries in read.items():
            found = self._find(Key(tenant, name))
            if found and len(found.records) <= entries:
                found.unread = False

    # -- cards --------------------------------------------------------------------------------

    async def put_cards(
        self, cards: Sequence[Card], *, absent: bool = False, keep_times: bool = False
    ) -> int:
        """See `Store.put_cards`."""
        for card in cards:
            check_card(card)
        written, now = 0, self._clock()
        for card in cards:
            key, at = Key(card.tenant, card.conversation or ""), (card.kind, card.tenant, card.name)
            there = self._find(key) is not None or card.conversation is None
            if there and not (absent and at in self._cards):
                kept = card.updated_at if keep_times else None
                self._cards[at] = replace(card, updated_at=kept or now)
                written += 1
        return written

    async def cards(
        self,
        kind: str,
        *,
        tenant: str | None = None,
        names: Sequence[str] | None = None,
        prefix: str = "",
        after: str = "",
        limit: int = 100,
    ) -> list[Card]:
        """See `Store.cards`."""
        wanted = card_query(kind, tenant, names, prefix, after)
        return [self._cards[at] for at in self._asked(wanted)[: max(limit, 0)]]

    def _asked(self, wanted: CardQuery) -> list[tuple[str, str, str]]:
        """The keys of the matching cards, in order."""
        if not self._open:
            raise StoreNotOpen
        found = [at for at, card in self._cards.items() if wanted.has(card)]
        return sorted(found, key=lambda at: (at[1].encode(), at[2].encode()))

    async def kinds(self) -> list[str]:
        """See `Store.kinds`."""
        return sorted({kind for kind, _, _ in self._cards}, key=str.encode)

    async def drop_cards(
        self,
        kind: str,
        tenant: str,
        *,
        names: Sequence[str] | None = None,
        prefix: str | None = None,
    ) -> int:
        """See `Store.drop_cards`."""
        unwanted = drop_query(kind, tenant, names, prefix)
        gone = self._asked(unwanted)
        for at in gone:
            del self._cards[at]
        return len(gone)

    # -- maintenance --------------------------------------------------------------------------

    async def archive(self, key: Key, first_seq: int, last_seq: int) -> Archived:
        """See `Store.archive`; entries are only marked, not compressed."""
        found = self._find(key)
        moved = self._mark(found, first_seq, last_seq, archived=True) if found else []
        size = sum(len(record.body) for record in moved)
        return Archived(len(moved), 1 if moved else 0, size, size)

    async def restore(self, key: Key, first_seq: int, last_seq: int) -> int:
        """See `Store.restore`."""
        found = self._find(key)
        return len(self._mark(found, first_seq, last_seq, archived=False)) if found else 0

    def _mark(
        self, found: _RamConversation, first: int, last: int, *, archived: bool
    ) -> list[Record]:
        moved = []
        for seq in range(max(first, 0), min(last + 1, len(found.records))):
            if found.records[seq].archived != archived and not found.records[seq].erased:
                found.records[seq] = replace(found.records[seq], archived=archived)
                moved.append(found.records[seq])
        return moved

    async def erase(self, key: Key) -> Erased:
        """See `Store.erase`."""
        found = self._must_find(key)
        head = _head(key, found)
        del self._conversations[key]
        gone = [at for at, card in self._cards.items() if (card.tenant, card.conversation) == key]
        for at in gone:
            del self._cards[at]
        return Erased(
            key.conversation,
            head.entries,
            len(found.digests),
            0,
            head.tokens,
            head.hash,
            self._clock(),
            vectors=sum(map(len, found.vectors.values())),
            topics=len(found.topics),
            cards=Counter(kind for kind, _, _ in gone),
        )

    async def erase_entries(self, key: Key, erasure: Erasure) -> Erased:
        """See `Store.erase_entries`."""
        found, now = self._must_find(key), self._clock()
        version, revision = max(found.digests, default=0), found.revision
        check_erasure(key, erasure, len(found.records), version, revision)
        gone = {seq: r for seq in erasure.seqs if not (r := found.records[seq]).erased}
        touched = sum(record.archived for record in gone.values())
        for seq, record in gone.items():
            found.records[seq] = replace(record, body=tombstone(now), archived=False)
        vectors = [at for known in found.vectors.values() for at in known if at[0] in gone]
        for known in found.vectors.values():
            for at in vectors:
                known.pop(at, None)
        found.pins -= gone.keys()
        for name, (_, first, last) in found.keys.items():
            if any(first <= seq <= last for seq in gone):
                found.keys[name] = "", first, last
        found.digests |= {item.version: (item, 0) for item in erasure.digests}
        found.topics |= {topic.id: topic for topic in erasure.topics}
        found.members = {seq: of for seq, of in found.members.items() if seq not in gone}
        found.revision += 1
        cards = [
            at
            for at, card in self._cards.items()
            if (card.tenant, card.conversation) == key
            and any(at[0] == kind and a <= at[2] <= b for kind, a, b in erasure.cards)
        ]
        for place in cards:
            del self._cards[place]
        found.understood = AnalyzedMessages()
        return certificate(
            _head(key, found),
            gone.values(),
            erasure,
            now,
            segments=touched,
            vectors=len(vectors),
            cards=Counter(kind for kind, _, _ in cards),
        )

    async def scrub(self) -> None:
        """See `Store.scrub`; nothing is left in memory."""

    async def backup(self, path: Path, progress: Progress | None = None) -> None:
        """See `Store.backup`; memory has no file to copy."""
        del progress
        raise InputError(f"an in-memory store cannot be backed up to {path}; export it instead")

    def owns(self, path: Path) -> bool:
        """See `Store.owns`; there are no files."""
        del path
        return False

    async def damage(self, key: Key) -> list[Damage]:
        """See `Store.damage`; memory is not damaged."""
        del key
        return []

    async def names(self, tenant: str) -> list[str]:
        """See `Store.names`."""
        return [head.conversation for head in await self.conversations(tenant, limit=1 << 40)]

    async def mend(self, key: Key, parts: Collection[str], known: Known) -> None:
        """See `Store.mend`; there is nothing to mend."""
        del key, parts, known

    async def check(self, *, thorough: bool = False) -> list[Finding]:
        """See `Store.check`."""
        del thorough
        count = len(self._conversations)
        return [Finding("memory", "warning", f"{plural(count, 'conversation')}, lost on exit")]


def _order(key: Key) -> tuple[bytes, bytes]:
    return key.tenant.encode(), key.conversation.encode()


def _recency(head: Head) -> tuple[int, bytes]:
    """The order of the most recently updated conversations first."""
    return -microseconds(head.updated_at), head.conversation.encode()


def _is_ahead(at: datetime | None, now: datetime, most: float) -> bool:
    """Whether a time is still to come, in `most` seconds; a later one is from a wrong clock."""
    return at is not None and timedelta() < at - now <= timedelta(seconds=most)


def _record(key: Key, before: Sequence[Record], draft: EntryDraft) -> Record:
    previous, total = (before[-1].hash, before[-1].total) if before else (genesis(key), 0)
    return Record(
        len(before),
        draft.body,
        draft.tokens,
        total + draft.tokens,
        draft.hash_after(previous),
        draft.tokenizer,
    )


def _head(key: Key, found: _RamConversation) -> Head:
    last = found.records[-1] if found.records else None
    return Head(
        key.conversation,
        len(found.records) - 1,
        last.hash if last else genesis(key),
        last.total if last else 0,
        found.created_at,
        found.updated_at,
        found.project,
        found.metadata,
        sum(record.archived for record in found.records),
        found.strategy,
        found.person,
    )


def _newest(found: _RamConversation, topic: int | None) -> Digest | None:
    same = [item for item, _ in found.digests.values() if item.topic == topic]
    completed = [item for item in same if item.status == "completed"]
    return max(completed, key=lambda item: item.version, default=None)
