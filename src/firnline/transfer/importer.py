"""Imports from other programs: files are read piece by piece, and what is new is appended.

Every message carries its id from the file. What the conversation here has already is known by it,
so importing again, after a crash or from a newer file, adds what is missing and nothing else.
Branches become conversations that begin as theirs does.
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
from typing import Any, Final, Protocol
from zoneinfo import ZoneInfo

from firnline.errors import ConflictError, InputError, MessageTooLarge
from firnline.log import limits
from firnline.log.entry import Appended, Entry, Head
from firnline.log.message import Message, encode, encode_json
from firnline.log.text import Json
from firnline.log.wire import MessageLike
from firnline.protocols import Progress
from firnline.transfer.branch import MARK
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
from firnline.transfer.formats.sources import File, ReadProgress, Unreadable, files, owner_of
from firnline.transfer.jsonl import Manifest

FORMATS: Final = tuple(READERS)
__all__ = ["FORMATS", "Report", "format_of", "import_file", "name_of"]


@dataclass(frozen=True, slots=True)
class Report:
    """What an import found. `known` messages were here before; `added` ones are new.

    `left_out` and `not_understood` say of each thing that was not taken how often it was there, and
    where the first times.
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


class ImportTarget(Protocol):
    """What an import needs of a memory."""

    async def append(
        self,
        conversation: str,
        messages: MessageLike | Iterable[MessageLike],
        *,
        expected_seq: int | None = None,
        idempotency_key: str | None = None,
    ) -> Appended:
        """See `firnline.Memory`."""
        ...

    async def branch(self, conversation: str, seq: int, name: str) -> Head:
        """See `firnline.Memory`."""
        ...

    async def describe(
        self,
        conversation: str,
        *,
        project: str | None = None,
        metadata: Mapping[str, Json] | None = None,
    ) -> Head:
        """See `firnline.Memory`."""
        ...

    async def head(self, conversation: str) -> Head | None:
        """See `firnline.Memory`."""
        ...

    async def read(
        self,
        conversation: str,
        *,
        first_seq: int = 0,
        last_seq: int | None = None,
        limit: int | None = None,
    ) -> list[Entry]:
        """See `firnline.Memory`."""
        ...

    async def import_(self, path: Path, *, progress: Progress | None = None) -> Manifest:
        """See `firnline.Memory`."""
        ...


async def import_file(
    memory: ImportTarget, path: Path, *, as_format: str | None, zone: str, progress: Progress | None
) -> Report:
    """Import a file, a zip or a folder; see `Memory.import_file`."""
    if as_format is not None and as_format not in READERS:
        raise InputError(f"{as_format!r} is an unknown format; choose one of {', '.join(FORMATS)}")
    times, notes = zone_of(zone), Notes()
    with files(path, notes) as found:
        named = await asyncio.to_thread(select_files, found, as_format, notes)
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
    file: File,
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
                while (item := await asyncio.to_thread(_next, found)) is not None:
                    await tasks.begin(
                        importer.import_conversation(name, item), alone=_is_long(item)
                    )
        finally:
            stream.close()
    except Unreadable as error:
        importer.notes.reject("the rest of a file that cannot be read", f"{file.name}: {error}")


def _next(found: Iterator[SourceConversation]) -> SourceConversation | None:
    return next(found, None)


def _is_long(found: SourceConversation) -> bool:
    """Whether a conversation is taken alone: it is read on the way, or takes much memory."""
    return isinstance(found, LinearConversation) or len(found.nodes) > limits.IMPORT_BATCH_MESSAGES


class _TaskGroup:
    """A few conversations at once, so that they share commits."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    async def begin(self, work: Coroutine[Any, Any, None], *, alone: bool) -> None:
        """Do this when there is room; what went wrong before is raised here."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        while len(self._tasks) >= (1 if alone else limits.IMPORT_AT_ONCE):
            await self._some(asyncio.FIRST_COMPLETED)

    async def finish(self) -> None:
        """Wait for all."""
        if self._tasks:
            await self._some(asyncio.ALL_COMPLETED)

    async def stop(self) -> None:
        """Let the others go when one has failed."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _some(self, when: str) -> None:
        done, self._tasks = await asyncio.wait(self._tasks, return_when=when)
        for task in done:
            task.result()


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
    """Takes conversations into a memory, and counts."""

    def __init__(self, memory: ImportTarget, notes: Notes, show: Callable[[], None]) -> None:
        self.notes = notes
        self._memory, self._show = memory, show
        self._counts = dict.fromkeys(("conversations", "branches", "messages", "added", "known"), 0)

    def report(self, formats: Iterable[str]) -> Report:
        """What was done."""
        return Report(
            tuple(formats),
            **self._counts,
            left_out=dict(self.notes.left_out),
            not_understood=dict(self.notes.not_understood),
        )

    async def import_conversation(self, source: str, found: SourceConversation) -> None:
        """Take one conversation, with its branches."""
        name = name_of(source, found.id)
        here = await _TargetLog.of(self._memory, name)
        about = {"title": found.title, SOURCE: source, ID: found.id}
        if isinstance(found, LinearConversation):
            taken = await self._append(here, iter(found.messages), about)
        else:
            taken = await self._tree(found, here, about)
        if taken:
            self._counts["conversations"] += 1
        else:
            self.notes.skip("a conversation without messages", name)

    async def _append(
        self, here: _TargetLog, message: Iterator[SourceMessage], about: Mapping[str, Json] | None
    ) -> int:
        """Append what is new; say what the conversation is as soon as there is one."""
        taken = 0
        while batch := await asyncio.to_thread(_batch, message, here.name, self.notes):
            new = await here.append(batch, self.notes)
            self._counts["messages"] += len(batch)
            self._counts["added"] += new
            self._counts["known"] += len(batch) - new
            if about is not None:
                await here.describe(about)
                about = None
            taken += len(batch)
            self._show()
        return taken

    async def _tree(
        self, tree: ConversationTree, main: _TargetLog, about: Mapping[str, Json]
    ) -> int:
        """Take the ways through a tree, the main one first."""
        node_of = {
            message.id: name for name, node in tree.nodes.items() for message in node.messages
        }
        kept = [node_of[key] for key in main.seqs if key in node_of]
        logs: dict[str, _TargetLog] = {}
        room, taken = limits.IMPORT_COPIED_MAX, 0
        for way in tree_paths(tree, kept):
            own = [message for name in way.nodes for message in tree.nodes[name].messages]
            source = logs.get(way.parent or "", main)
            here = main if way.first is None else source
            if way.first is not None and own:
                mark = brief(main.name, way.first)[:8]
                name = f"{main.name[: limits.NAME_CHARS_MAX - 10]}--{mark}"
                fork = _Fork(source, _last_seq(tree, way, source), name, about)
                here, copied = await self._fork(fork, own, room)
                room -= copied
            taken += await self._append(here, iter(own), about if here is main else None)
            logs |= dict.fromkeys(way.nodes, here)
        return taken

    async def _fork(
        self, fork: _Fork, own: Sequence[SourceMessage], room: int
    ) -> tuple[_TargetLog, int]:
        """The log of a branch with its beginning, and how many messages were copied for that."""
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
        whence: Json = {"of": fork.source.name, "at": fork.at}
        await here.describe({**fork.about, MARK: whence})
        return here, 0


@dataclass(frozen=True, slots=True)
class _Fork:
    """Where a branch leaves which log, its name, and what is known of it."""

    source: _TargetLog
    at: int
    name: str
    about: Mapping[str, Json]


def _last_seq(tree: ConversationTree, way: TreePath, source: _TargetLog) -> int:
    """The last entry that a branch shares with the log it leaves; -1 if there is none."""
    name = way.parent
    while name is not None and name in tree.nodes:
        node = tree.nodes[name]
        if shared := [
            source.seqs[message.id] for message in node.messages if message.id in source.seqs
        ]:
            return max(shared)
        name = node.parent
    return -1


def _batch(message: Iterator[SourceMessage], name: str, notes: Notes) -> list[SourceMessage]:
    """The next messages to be stored together."""
    batch: list[SourceMessage] = []
    size = 0
    for one in message:
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
    """A conversation here: where it stands, and where in it the messages of the file are."""

    memory: ImportTarget
    name: str
    next_seq: int = 0
    seqs: dict[str, int] = field(default_factory=dict)
    hashes: dict[str, str] = field(default_factory=dict)
    described: bool = False

    @classmethod
    async def of(cls, memory: ImportTarget, name: str) -> _TargetLog:
        """The conversation as it is now."""
        log = cls(memory, name)
        await log.refresh()
        return log

    async def refresh(self) -> None:
        """Look at what is new."""
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
        """Say what the conversation is, unless something is message of it already."""
        if not self.described:
            await self.memory.describe(self.name, metadata=about)
            self.described = True

    def _compare(self, batch: Sequence[SourceMessage], notes: Notes) -> None:
        """Note what a newer file says differently."""
        for message in batch:
            if message.id in self.hashes and self.hashes[message.id] != _content_hash(
                message.message
            ):
                what = "a message that changed since the last import; the first version is kept"
                notes.skip(what, f"{self.name}, {message.id}")

    async def append(self, batch: Sequence[SourceMessage], notes: Notes) -> int:
        """Append those that are not here; returns how many. Others may append meanwhile."""
        self._compare(batch, notes)
        for _ in range(limits.IMPORT_TRIES_MAX):
            new: dict[str, SourceMessage] = {}
            for message in batch:
                if message.id in new:
                    notes.skip("a message that is there twice", f"{self.name}, {message.id}")
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
                )
            except ConflictError:
                await self.refresh()
                continue
            self.seqs |= dict(zip(new, (entry.seq for entry in stored), strict=True))
            self.next_seq = max(self.next_seq, stored.seq + 1)
            return 0 if stored.replayed else len(new)
        raise ConflictError(f"{self.name}: others append faster than it can be imported")


def _content_hash(message: Message) -> str:
    """A short name for what a message says; who is called how may change without it."""
    fields = message.to_openai()
    return brief(fields.get("content"), fields.get("tool_calls"))


def _key(name: str, ids: Sequence[str]) -> str:
    """The idempotency key of a batch: the same messages have the same one."""
    return f"import {hashlib.sha256(encode_json([name, *ids]).encode()).hexdigest()}"
