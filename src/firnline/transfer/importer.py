"""Imports from other programs: files are read piece by piece, and new messages are appended.

Every message carries its id from the file. Messages that are here already are found by that id, so
importing again, after a crash or from a newer file, adds only what is missing. Each branch becomes
a conversation that starts with the same messages.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import (
    AsyncIterator,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import tzinfo
from pathlib import Path
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

from firnline.errors import ConflictError, InputError, MessageTooLarge
from firnline.log import limits
from firnline.log.entry import BRANCH
from firnline.log.message import Message, encode, encode_json
from firnline.log.text import Json
from firnline.protocols import Progress
from firnline.transfer.formats import OWN, READERS
from firnline.transfer.formats.detect import format_of, no_format_error, select_files
from firnline.transfer.formats.records import FORMAT as SOURCE
from firnline.transfer.formats.records import (
    ID,
    ConversationTree,
    LinearConversation,
    NoteCount,
    Notes,
    SourceConversation,
    SourceFile,
    SourceMessage,
    TreePath,
    brief,
    tree_paths,
)
from firnline.transfer.formats.sources import ImportFile, ReadProgress, Unreadable, files, owner_of
from firnline.transfer.import_target import ImportTarget, PersonTarget
from firnline.transfer.jsonl import Manifest

FORMATS: Final = tuple(READERS)
__all__ = ["FORMATS", "Report", "format_of", "import_file", "name_of"]


@dataclass(frozen=True, slots=True)
class Report:
    """The result of an import. `known` messages were here before; `added` ones are new.

    `left_out` and `not_understood` count what was not imported, and say where it occurred first.
    """

    formats: tuple[str, ...] = ()
    conversations: int = 0
    branches: int = 0
    messages: int = 0
    added: int = 0
    known: int = 0
    left_out: Mapping[str, NoteCount] = field(default_factory=dict)
    not_understood: Mapping[str, NoteCount] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether everything was understood."""
        return not self.not_understood


class ImportOptions(NamedTuple):
    """How to import: the format, the zone of times without one, and whom it is with."""

    as_format: str | None = None
    zone: str = "UTC"
    person: str | None = None


async def import_file(
    memory: ImportTarget, path: Path, how: ImportOptions, *, progress: Progress | None
) -> Report:
    """Import a file, a zip or a folder; see `Memory.import_file`."""
    if how.as_format not in (None, *READERS):
        raise InputError(
            f"{how.as_format!r} is an unknown format; choose one of {', '.join(FORMATS)}"
        )
    times, notes = zone_of(how.zone), Notes()
    if how.person is not None:
        memory = PersonTarget(memory, how.person)
    with files(path, notes) as found:
        named = await asyncio.to_thread(select_files, found, how.as_format, notes)
        if [name for _, name in named] == [OWN] and found[0].name == path.name:
            return _report_of(await memory.import_(path, progress=progress))
        readable = [(file, name) for file, name in named if name in READERS]
        if not readable:
            raise InputError(no_format_error(path, [name for _, name in named]))
        read_progress = ReadProgress(progress, sum(file.size for file, _ in readable))
        importer = _Importer(memory, notes, read_progress.show)
        owner = owner_of(path)
        for file, name in readable:
            await _import_one(importer, file, name, times, read_progress, owner)
        read_progress.finish()
    return importer.report(dict.fromkeys(name for _, name in readable))


def zone_of(name: str) -> tzinfo:
    """The time zone of that name."""
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, LookupError) as error:
        raise InputError(f"zone: {name!r:.60} is not the name of a time zone") from error


def _report_of(manifest: Manifest) -> Report:
    return Report(
        formats=(OWN,),
        conversations=manifest.conversations,
        messages=manifest.entries,
        added=manifest.added,
        known=manifest.entries - manifest.added,
    )


async def _import_one(
    importer: _Importer,
    file: ImportFile,
    name: str,
    zone: tzinfo,
    read_progress: ReadProgress,
    owner: str,
) -> None:
    try:
        stream = read_progress.of(await asyncio.to_thread(file.open))
        try:
            found = READERS[name](SourceFile(file.name, stream, zone, owner), importer.notes)
            async with _task_group() as tasks:
                while (item := await asyncio.to_thread(next, found, None)) is not None:
                    work = importer.import_conversation(name, item)
                    await tasks.start(work, alone=_is_long(item))
        finally:
            stream.close()
    except Unreadable as error:
        importer.notes.reject("the rest of a file that cannot be read", f"{file.name}: {error}")


def _is_long(found: SourceConversation) -> bool:
    """Whether a conversation is imported alone: it is read as a stream, or needs much memory."""
    return isinstance(found, LinearConversation) or len(found.nodes) > limits.IMPORT_BATCH_MESSAGES


class _TaskGroup:
    """Imports a few conversations at a time, so that they share commits."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, work: Coroutine[Any, Any, None], *, alone: bool) -> None:
        """Start this as soon as there is room; errors of earlier work are raised here."""
        self._tasks.add(asyncio.create_task(work))
        while len(self._tasks) >= (1 if alone else limits.IMPORT_AT_ONCE):
            await self._wait(asyncio.FIRST_COMPLETED)

    async def finish(self) -> None:
        """Wait for all."""
        if self._tasks:
            await self._wait(asyncio.ALL_COMPLETED)

    async def stop(self) -> None:
        """Cancel the others when one has failed."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _wait(self, when: str) -> None:
        done, self._tasks = await asyncio.wait(self._tasks, return_when=when)
        # Several may fail at once: an error that is not looked at would be logged.
        if errors := [error for task in done if (error := task.exception())]:
            raise errors[0]


@asynccontextmanager
async def _task_group() -> AsyncIterator[_TaskGroup]:
    tasks = _TaskGroup()
    try:
        yield tasks
        await tasks.finish()
    finally:
        await tasks.stop()


# -- into the memory --------------------------------------------------------------------------


def name_of(*parts: str) -> str:
    """The name of an imported conversation: readable, storable, and different for different ids."""
    name = "/".join(parts)
    shown = "".join(c if c.isprintable() else "_" for c in name).strip()
    if shown == name and len(name) <= limits.NAME_CHARS_MAX:
        return name
    return f"{shown[: limits.NAME_CHARS_MAX - 17].strip()}-{brief(name)}"


class _Importer:
    """Appends conversations to a memory, and counts them."""

    def __init__(self, memory: ImportTarget, notes: Notes, show: Callable[[], None]) -> None:
        self.notes = notes
        self._memory, self._show = memory, show
        self._for_one = isinstance(memory, PersonTarget)  # then files do not say whom they are of
        self._counts = dict.fromkeys(("conversations", "branches", "messages", "added", "known"), 0)

    def report(self, formats: Iterable[str]) -> Report:
        """The counts and notes so far."""
        return Report(
            tuple(formats),
            **self._counts,
            left_out=dict(self.notes.left_out),
            not_understood=dict(self.notes.not_understood),
        )

    async def import_conversation(self, source: str, found: SourceConversation) -> None:
        """Import one conversation, with its branches."""
        name = name_of(source, found.id)
        person = found.person if isinstance(found, LinearConversation) else None
        here = await _TargetLog.of(self._memory, name, None if self._for_one else person)
        about = {"title": found.title, SOURCE: source, ID: found.id}
        if isinstance(found, LinearConversation):
            imported = await self._append(here, iter(found.messages), about)
        else:
            imported = await self._append_tree(found, here, about)
        if imported:
            self._counts["conversations"] += 1
        else:
            self.notes.skip("a conversation without messages", name)

    async def _append(
        self, here: _TargetLog, messages: Iterator[SourceMessage], about: Mapping[str, Json] | None
    ) -> int:
        """Append what is new; the conversation is described as soon as it exists."""
        imported = 0
        while batch := await asyncio.to_thread(_next_batch, messages, here.name, self.notes):
            new = await here.append(batch, self.notes)
            self._counts["messages"] += len(batch)
            self._counts["added"] += new
            self._counts["known"] += len(batch) - new
            if about is not None:
                await here.describe(about)
                about = None
            imported += len(batch)
            self._show()
        return imported

    async def _append_tree(
        self, tree: ConversationTree, main: _TargetLog, about: Mapping[str, Json]
    ) -> int:
        """Import the paths through a tree, the main one first."""
        node_of = {one.id: name for name, node in tree.nodes.items() for one in node.messages}
        imported_nodes = [node_of[key] for key in main.seqs if key in node_of]
        logs: dict[str, _TargetLog] = {}
        room, imported = limits.IMPORT_COPIED_MAX, 0
        for path in tree_paths(tree, imported_nodes):
            messages = [message for name in path.nodes for message in tree.nodes[name].messages]
            source = logs.get(path.parent or "", main)
            target = main if path.first is None else source
            if path.first is not None and messages:
                mark = brief(main.name, path.first)[:8]
                name = f"{main.name[: limits.NAME_CHARS_MAX - 10]}--{mark}"
                fork = _Fork(source, _last_shared_seq(tree, path, source), name, about)
                target, copied = await self._fork(fork, messages, room)
                room -= copied
            imported += await self._append(
                target, iter(messages), about if target is main else None
            )
            logs |= dict.fromkeys(path.nodes, target)
        return imported

    async def _fork(
        self, fork: _Fork, own: Sequence[SourceMessage], room: int
    ) -> tuple[_TargetLog, int]:
        """The log of a branch with its beginning, and the number of messages copied."""
        here = await _TargetLog.of(self._memory, fork.name)
        self._counts["branches"] += 1
        if any(message.id in here.seqs for message in own):
            return here, 0
        if 0 <= fork.at < room:
            await self._memory.branch(fork.source.name, fork.at, fork.name)
            return await _TargetLog.of(self._memory, fork.name), fork.at + 1
        if fork.at >= 0:
            what = f"the beginning of a branch, which is in {fork.source.name}"
            self.notes.skip(what, fork.name)
        origin: Json = {"of": fork.source.name, "at": fork.at}
        await here.describe({**fork.about, BRANCH: origin})
        return here, 0


@dataclass(frozen=True, slots=True)
class _Fork:
    """A branch: the log it leaves, the last shared entry, its name and metadata."""

    source: _TargetLog
    at: int
    name: str
    about: Mapping[str, Json]


def _last_shared_seq(tree: ConversationTree, path: TreePath, source: _TargetLog) -> int:
    """The last entry that a branch shares with the log it leaves; -1 if there is none."""
    name = path.parent
    while name is not None and name in tree.nodes:
        node = tree.nodes[name]
        if shared := [source.seqs[m.id] for m in node.messages if m.id in source.seqs]:
            return max(shared)
        name = node.parent
    return -1


def _next_batch(messages: Iterator[SourceMessage], name: str, notes: Notes) -> list[SourceMessage]:
    """The next messages to store together."""
    batch: list[SourceMessage] = []
    size = 0
    for one in messages:
        try:
            size += len(encode(one.message))
        except MessageTooLarge as error:
            notes.reject("a message that is too large", f"{name}, {one.id}: {error}")
            continue
        batch.append(one)
        if len(batch) >= limits.IMPORT_BATCH_MESSAGES or size >= limits.IMPORT_BATCH_CHARS:
            break
    return batch


@dataclass(slots=True)
class _TargetLog:
    """A conversation in the memory, with the sequence numbers of the file's messages."""

    memory: ImportTarget
    name: str
    person: str | None = None
    next_seq: int = 0
    seqs: dict[str, int] = field(default_factory=dict)
    hashes: dict[str, str] = field(default_factory=dict)
    described: bool = False

    @classmethod
    async def of(cls, memory: ImportTarget, name: str, person: str | None = None) -> _TargetLog:
        """The conversation as it is now; new messages are with the person."""
        log = cls(memory, name, person)
        await log.refresh()
        return log

    async def refresh(self) -> None:
        """Read the entries added since the last call."""
        head = await self.memory.head(self.name)
        self.described = head is not None and bool(head.project or head.metadata)
        while head is not None and self.next_seq < head.entries:
            page = await self.memory.read(
                self.name, first_seq=self.next_seq, limit=limits.READ_PAGE
            )
            for entry in page:
                key = entry.message.metadata.get(ID)
                if isinstance(key, str):
                    self.seqs[key] = entry.seq
                    self.hashes[key] = _content_hash(entry.message)
            if not page:
                return
            self.next_seq = page[-1].seq + 1

    async def describe(self, about: Mapping[str, Json]) -> None:
        """Set the metadata, unless the conversation has a project or metadata."""
        if not self.described:
            await self.memory.describe(self.name, metadata=about)
            self.described = True

    def _compare(self, batch: Sequence[SourceMessage], notes: Notes) -> None:
        """Note the messages that are different in this file."""
        for message in batch:
            if self.hashes.get(message.id) not in (None, _content_hash(message.message)):
                what = "a message that changed since the last import; the first version is kept"
                notes.skip(what, f"{self.name}, {message.id}")

    async def append(self, batch: Sequence[SourceMessage], notes: Notes) -> int:
        """Append those that are not here; returns how many. Other writers may append meanwhile."""
        self._compare(batch, notes)
        for _ in range(limits.IMPORT_TRIES_MAX):
            new: dict[str, SourceMessage] = {}
            for message in batch:
                if message.id in new:
                    notes.skip("a duplicate message", f"{self.name}, {message.id}")
                elif message.id not in self.seqs:
                    new[message.id] = message
            if not new:
                return 0
            try:
                stored = await self.memory.append(
                    self.name,
                    [message.message for message in new.values()],
                    expected_seq=self.next_seq,
                    idempotency_key=_key(self.name, list(new)),
                    person=self.person,
                )
            except ConflictError:
                await self.refresh()
                continue
            self.seqs |= dict(zip(new, (entry.seq for entry in stored), strict=True))
            self.next_seq = max(self.next_seq, stored.seq + 1)
            return 0 if stored.replayed else len(new)
        raise ConflictError(f"{self.name}: other writers append to it; try again later")


def _content_hash(message: Message) -> str:
    """A short hash of what a message says; names of speakers do not change it."""
    fields = message.to_openai()
    return brief(fields.get("content"), fields.get("tool_calls"))


def _key(name: str, ids: Sequence[str]) -> str:
    """The idempotency key of a batch: the same for the same messages."""
    return f"import {hashlib.sha256(encode_json([name, *ids]).encode()).hexdigest()}"
