"""Export and import: conversations as JSON Lines with a manifest; a round trip is the identity.

A file has one JSON object per line: a header, projects, each conversation followed by its entries,
digests, and topics, and last the manifest with the counts and the SHA-256 of all lines before it.
Nothing depends on when it was written: the same conversations give the same bytes.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, TypeAlias, get_args

from firnline.errors import ConflictError, InputError, StoreCorrupt
from firnline.log import limits
from firnline.log.entry import (
    ERASED,
    Digest,
    DigestStatus,
    EntryDraft,
    Head,
    Key,
    Project,
    Record,
    Topic,
    clean_project,
    erased_at,
    genesis,
    tombstone,
)
from firnline.log.message import decode, encode, encode_json, format_time, parse_time
from firnline.log.regex import regex
from firnline.log.text import clean_fields, clean_name
from firnline.log.wire import parse_unique
from firnline.protocols import Progress, Store
from firnline.store import journal
from firnline.store.digests import decode_digest, encode_digest
from firnline.store.files import atomic_write
from firnline.store.topics import decode_topic, encode_topic
from firnline.transfer.scan import checked_pages, digests_up_to, heads, topics_up_to

FORMAT: Final = 1
_STATUSES: Final = get_args(DigestStatus)
_HASH: Final = regex(r"sha256:[0-9a-f]{64}")
_LINE_BYTES_MAX: Final = 2 * limits.MESSAGE_BYTES_MAX


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an export holds; `added` is the number of entries that were new in an import."""

    conversations: int = 0
    entries: int = 0
    tokens: int = 0
    sha256: str = ""
    added: int = 0


# -- export -----------------------------------------------------------------------------------


async def export(
    store: Store, tenant: str, path: Path, keys: Sequence[Key] | None, progress: Progress | None
) -> Manifest:
    """Write the tenant's conversations to `path`, which appears only when it is complete."""
    _check_not_store(store, path)
    counts = Manifest()
    with atomic_write(path) as partial, partial.open("wb") as file:
        async for lines, counts in pieces(store, tenant, keys):
            await asyncio.to_thread(file.write, lines)
            _report(progress, counts.entries, 0)
    return counts


async def pieces(
    store: Store, tenant: str, keys: Sequence[Key] | None
) -> AsyncIterator[tuple[bytes, Manifest]]:
    """An export in pieces, each with the counts so far; the last one is the manifest."""
    counts, digest = Manifest(), hashlib.sha256()
    async for lines, more in _lines(store, tenant, keys):
        await asyncio.to_thread(digest.update, lines)
        counts = _sum(counts, more)
        yield lines, counts
    manifest = replace(counts, sha256=digest.hexdigest())
    yield _line({"manifest": _manifest_fields(manifest)}), manifest


def _check_not_store(store: Store, path: Path) -> None:
    if store.owns(path):
        raise InputError(f"{path} is the store itself; choose another file")


async def _lines(
    store: Store, tenant: str, keys: Sequence[Key] | None
) -> AsyncIterator[tuple[bytes, Manifest]]:
    yield _line({"firnline": FORMAT, "tenant": tenant}), Manifest()
    for project in await store.projects(tenant):
        yield _line({"project": asdict(project)}), Manifest()
    async for head in heads(store, tenant, keys):
        key = Key(tenant, head.conversation)
        fields = {"conversation": head.conversation, "entries": head.entries, "head": head.hash}
        about = {"project": head.project, "metadata": head.metadata, "strategy": head.strategy}
        if head.person is not None:
            about["person"] = head.person
        created = {"created_at": format_time(head.created_at)}
        # Entries and pins added after the head was read are not exported. All this is read before
        # the entries; the last entry's hash proves that it was the same conversation.
        pinned = [entry.seq for entry in await store.pinned(key) if entry.seq < head.entries]
        digests = await digests_up_to(store, key, head)
        known, members = await topics_up_to(store, key, head)
        yield _line({**fields, **created, **about, "pinned": pinned}), Manifest(conversations=1)
        async for page in checked_pages(store, key, head, (0, genesis(key))):
            yield _entry_lines(page)
        for digest in digests:
            yield b'{"digest":' + encode_digest(digest) + b"}\n", Manifest()
        for topic in known.topics.values():
            yield _topic_line(topic, members, known.next_seq), Manifest()


def _topic_line(topic: Topic, members: Mapping[int, int], assigned: int) -> bytes:
    own = [seq for seq, of in members.items() if of == topic.id]
    about = _line({"members": own, "assigned": assigned})
    return b'{"topic":' + encode_topic(topic) + b"," + about[1:]


def _entry_lines(page: Sequence[Record]) -> tuple[bytes, Manifest]:
    lines = b"".join(
        b'{"seq":%d,"tokens":%d,"tokenizer":%b,"hash":"%b",%b}\n'
        % (
            record.seq,
            record.tokens,
            encode_json(record.tokenizer).encode(),
            record.hash.encode(),
            _said(record),
        )
        for record in page
    )
    return lines, Manifest(entries=len(page), tokens=sum(record.tokens for record in page))


def _said(record: Record) -> bytes:
    """The field with the message, or with the time when it was erased."""
    at = erased_at(record.body)
    if at is None:
        return b'"message":' + record.body
    return b'"erased_at":"%b"' % format_time(at).encode()


def _line(fields: dict[str, Any]) -> bytes:
    return encode_json(clean_fields(fields, "line")).encode() + b"\n"


def _manifest_fields(manifest: Manifest) -> dict[str, Any]:
    fields = asdict(manifest)
    del fields["added"]
    return fields


def _sum(a: Manifest, b: Manifest) -> Manifest:
    return Manifest(
        a.conversations + b.conversations,
        a.entries + b.entries,
        a.tokens + b.tokens,
        added=a.added + b.added,
    )


# -- import -----------------------------------------------------------------------------------


class _About(NamedTuple):
    """The line of a conversation."""

    name: str
    entries: int
    head: str
    project: str | None
    metadata: dict[str, Any]
    strategy: dict[str, Any] | None
    pinned: frozenset[int]
    created_at: datetime | None
    person: str | None = None


class _EntryPage(NamedTuple):
    """Some of a conversation's entries, chained for the file's tenant and for ours."""

    about: _About
    first_seq: int
    drafts: list[EntryDraft]
    hashes: list[str]
    read_bytes: int


class _Digests(NamedTuple):
    about: _About
    digests: list[Digest]


class _Topics(NamedTuple):
    about: _About
    topics: list[Topic]
    members: dict[int, int | None]
    assigned: int


_Item: TypeAlias = "_About | _EntryPage | _Digests | _Topics | Project | Manifest"


async def import_(store: Store, tenant: str, path: Path, progress: Progress | None) -> Manifest:
    """Check the whole file against itself and against the store, then import what is new."""
    _check_not_store(store, path)
    size = await asyncio.to_thread(_size, path)
    checked = Manifest()
    async for item in _walk(path, tenant):
        if isinstance(item, Manifest):
            checked = item
        elif isinstance(item, _EntryPage):
            await _count_existing(store, tenant, item, "nothing")
            _report(progress, item.read_bytes // 2, size)
    added = 0
    names: list[str] = []
    async for item in _walk(path, tenant):
        added += await _store_item(store, tenant, item)
        names += [item.name] if isinstance(item, _About) else []
        if isinstance(item, _EntryPage):
            _report(progress, size // 2 + item.read_bytes // 2, size)
    await journal.adopt_new(store, *(Key(tenant, name) for name in ("", *names)))
    _report(progress, size, size)
    return replace(checked, added=added)


async def _walk(path: Path, tenant: str) -> AsyncIterator[_Item]:
    items = _ExportReader(path, tenant).items()
    while (item := await asyncio.to_thread(next, items, None)) is not None:
        yield item


def _report(progress: Progress | None, done: int, size: int) -> None:
    if progress is not None:
        progress(done, size)


def _size(path: Path) -> int:
    try:
        with path.open("rb"):
            return path.stat().st_size
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error


async def _count_existing(store: Store, tenant: str, page: _EntryPage, imported: str) -> int:
    """The number of these entries that the store already has; they must be the same."""
    key = Key(tenant, page.about.name)
    there = await store.records(key, page.first_seq, len(page.drafts))
    for record, expected in zip(there, page.hashes, strict=False):
        if record.hash != expected:
            raise ConflictError(
                f"{key.conversation}: message {record.seq} differs between the store and the file; "
                f"{imported} was imported",
                seq=record.seq,
            )
    return len(there)


async def _store_item(store: Store, tenant: str, item: _Item) -> int:
    if isinstance(item, Project):
        if item.name not in {project.name for project in await store.projects(tenant)}:
            await store.save_project(tenant, item)
    elif isinstance(item, _About):
        await _describe_new(store, Key(tenant, item.name), item)
    elif isinstance(item, _Digests):
        key = Key(tenant, item.about.name)
        if not await store.digests(key):
            await store.put_digests(key, item.digests)
    elif isinstance(item, _Topics):
        await _assign_new(store, Key(tenant, item.about.name), item)
    elif isinstance(item, _EntryPage):
        return await _append_new(store, tenant, item)
    return 0


async def _assign_new(store: Store, key: Key, item: _Topics) -> None:
    known = await store.topics(key)
    if not known.topics:
        await store.assign(
            key, item.topics, item.members, revision=known.revision, next_seq=item.assigned
        )


async def _describe_new(store: Store, key: Key, about: _About) -> None:
    """Describe the conversation, unless it is described: what the store has is newer."""
    head = await store.head(key)
    if head is None and about.entries:
        raise ConflictError(f"{key.conversation} was erased while it was being imported")
    new = head is None or await _is_created_by_append(store, key, head)
    created_at = about.created_at if new else None
    described = head is not None and bool(head.project or head.metadata or head.person)
    if head is None or ((about.project or about.metadata or about.person) and not described):
        head = await store.describe(
            key,
            project=about.project,
            person=about.person,
            metadata=about.metadata,
            created_at=created_at,
            known=head,
        )
    if created_at not in (None, head.created_at):
        head = await store.describe(key, created_at=created_at, known=head)
    if about.strategy is not None and head.strategy is None:
        await store.describe(key, strategy=about.strategy, known=head)


async def _is_created_by_append(store: Store, key: Key, head: Head) -> bool:
    """Whether the conversation has the time of its first entry, as after an import."""
    return [head.created_at] == [entry.message.created_at for entry in await store.at(key, [0])]


async def _append_new(store: Store, tenant: str, page: _EntryPage) -> int:
    """Append what is new; fails if another process has appended since the file was checked."""
    existing = await _count_existing(store, tenant, page, "everything before it")
    new = page.drafts[existing:]
    if new:
        key = Key(tenant, page.about.name)
        await store.append(key, new, expected_seq=page.first_seq + existing)
    return len(new)


def _checked_digest(fields: object) -> Digest:
    digest = decode_digest(encode_json(clean_fields(fields, "digest")).encode())
    if not 0 < digest.version < 1 << limits.SEQ_BITS or digest.status not in _STATUSES:
        raise InputError(f"invalid digest: version {digest.version!r}, status {digest.status!r}")
    return digest


class _InvalidLine(InputError):
    """Something in the file is invalid; the message names the line."""

    @property
    def code(self) -> str:
        return "InputError"


class _ExportReader:
    """Reads and checks a file line by line; memory holds one page."""

    def __init__(self, path: Path, tenant: str) -> None:
        self._path = path
        self._tenant = tenant
        self._number = 0
        self._read_bytes = 0
        self._sha256 = hashlib.sha256()
        self._counts = Manifest()
        self._from_tenant = ""
        self._about: _About | None = None
        self._seq = 0
        self._hash = self._our_hash = ""
        self._page: list[tuple[EntryDraft, str]] = []
        self._page_bytes = 0
        self._digests: list[Digest] = []
        self._topics: list[Topic] = []
        self._members: dict[int, int | None] = {}
        self._assigned = 0

    def items(self) -> Iterator[_Item]:
        """Everything in the file, in order; an error raises `InputError` with the line."""
        with self._path.open("rb") as file:
            header = self._parse(file)
            if header.get("firnline") != FORMAT:
                raise self._error(f"not a Firnline export (format {FORMAT})")
            self._from_tenant = clean_name(header.get("tenant", ""), "tenant")
            while True:
                before = self._sha256.copy()
                fields = self._parse(file)
                if "manifest" in fields:
                    yield from self._finish()
                    self._check_manifest(fields["manifest"], before.hexdigest())
                    if file.read(1):
                        raise self._error("unexpected data after the manifest")
                    yield Manifest(**fields["manifest"])
                    return
                yield from self._line(fields)

    def _parse(self, file: BinaryIO) -> dict[str, Any]:
        line = file.readline(_LINE_BYTES_MAX)
        self._number += 1
        self._read_bytes += len(line)
        self._sha256.update(line)
        if not line.endswith(b"\n"):
            cut_off = len(line) < _LINE_BYTES_MAX
            raise self._error(
                "the file ends without a manifest" if cut_off else "the line is too long"
            )
        try:
            fields = parse_unique(line)
        except (ValueError, RecursionError) as error:
            raise self._error(f"not JSON: {error}") from error
        if not isinstance(fields, dict):
            raise self._error("not an object")
        return fields

    def _line(self, fields: dict[str, Any]) -> Iterator[_Item]:
        try:
            yield from self._items(fields)
        except _InvalidLine:
            raise
        except InputError as error:
            raise self._error(str(error)) from error
        except (KeyError, TypeError, ValueError, AttributeError, StoreCorrupt) as error:
            raise self._error(f"invalid line: {error}") from error

    def _items(self, fields: dict[str, Any]) -> Iterator[_Item]:
        if "project" in fields and "conversation" not in fields:
            yield clean_project(Project(**fields["project"]))
        elif "conversation" in fields:
            yield from self._finish()
            self._begin(fields)
        elif "digest" in fields:
            yield from self._flush()
            self._digests.append(_checked_digest(fields["digest"]))
        elif "topic" in fields:
            yield from self._flush()
            self._topic(fields)
        else:
            self._entry(fields)
            if self._page_bytes > limits.PAGE_BYTES_MAX or len(self._page) >= limits.READ_PAGE:
                yield from self._flush()

    def _begin(self, fields: dict[str, Any]) -> None:
        name = clean_name(fields["conversation"], "conversation")
        project, metadata = fields["project"], clean_fields(fields["metadata"], "metadata")
        if project is not None:
            clean_name(project, "project")
        if (person := fields.get("person")) is not None:
            clean_name(person, "person")
        strategy, pinned = fields.get("strategy"), fields.get("pinned", [])
        if strategy is not None:
            strategy = clean_fields(strategy, "strategy")
        if any(type(seq) is not int or not 0 <= seq < fields["entries"] for seq in pinned):
            raise self._error(f"pinned messages {pinned!r:.60} are not all in the file")
        created_at = parse_time(fields["created_at"]) if "created_at" in fields else None
        about = project, metadata, strategy, frozenset(pinned), created_at, person
        self._about = _About(name, fields["entries"], fields["head"], *about)
        self._seq = 0
        self._hash = genesis(Key(self._from_tenant, name))
        self._our_hash = genesis(Key(self._tenant, name))
        self._counts = _sum(self._counts, Manifest(conversations=1))

    def _entry(self, fields: dict[str, Any]) -> None:
        draft = self._erased(fields) if "erased_at" in fields else self._draft(fields)
        before, self._hash = self._hash, draft.hash_after(self._hash)
        if self._our_hash != before:  # another chain: of another tenant
            draft = draft._replace(hash="")
        self._our_hash = draft.hash_after(self._our_hash)
        if fields["seq"] != self._seq:
            raise self._error(f"expected message {self._seq}, got {fields['seq']}")
        if fields["hash"] != self._hash:
            raise self._error(f"message {self._seq} does not match its hash")
        draft.check()
        self._page.append((draft, self._our_hash))
        self._page_bytes += len(draft.body)
        self._seq += 1
        self._counts = _sum(self._counts, Manifest(entries=1, tokens=draft.tokens))

    def _draft(self, fields: dict[str, Any]) -> EntryDraft:
        body = encode_json(fields["message"]).encode()
        pinned = self._about is not None and self._seq in self._about.pinned
        draft = EntryDraft(decode(body), body, fields["tokens"], fields["tokenizer"], pinned)
        if encode(draft.message) != body:
            raise self._error(f"message {self._seq} is not in canonical form")
        return draft

    def _erased(self, fields: dict[str, Any]) -> EntryDraft:
        if not _HASH.fullmatch(fields["hash"]):
            raise self._error(f"message {self._seq} has no valid hash")
        body = tombstone(parse_time(fields["erased_at"]))
        about = fields["tokens"], fields["tokenizer"]
        return EntryDraft(ERASED, body, *about, hash=fields["hash"])

    def _topic(self, fields: dict[str, Any]) -> None:
        topic = decode_topic(encode_json(clean_fields(fields["topic"], "topic")).encode())
        self._assigned = fields["assigned"]
        seqs = [topic.id, *fields["members"], self._assigned - 1]
        if any(type(seq) is not int or not 0 <= seq < self._seq for seq in seqs):
            raise self._error(f"topic {topic.id!r} has messages that are not in the file")
        self._topics.append(topic)
        self._members |= dict.fromkeys(fields["members"], topic.id)

    def _flush(self) -> Iterator[_EntryPage]:
        if self._page and self._about:
            drafts, hashes = zip(*self._page, strict=True)
            first = self._seq - len(self._page)
            self._page, self._page_bytes = [], 0
            yield _EntryPage(self._about, first, list(drafts), list(hashes), self._read_bytes)

    def _finish(self) -> Iterator[_Item]:
        if self._about is None:
            return
        yield from self._flush()
        if (self._seq, self._hash) != (self._about.entries, self._about.head):
            raise self._error(f"{self._about.name} does not end where its head says")
        yield self._about
        if self._digests:
            yield _Digests(self._about, self._digests)
            self._digests = []
        if self._topics:
            yield _Topics(self._about, self._topics, self._members, self._assigned)
            self._topics, self._members = [], {}
        self._about = None

    def _check_manifest(self, fields: dict[str, Any], sha256: str) -> None:
        if fields != _manifest_fields(replace(self._counts, sha256=sha256)):
            raise self._error("the manifest does not match the file")

    def _error(self, what: str) -> _InvalidLine:
        return _InvalidLine(f"{self._path}, line {self._number}: {what}; nothing was imported")
