"""The records of readers: conversations as lists or trees, and notes about the rest."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from firnline.errors import InputError
from firnline.log import limits
from firnline.log.message import Message

FORMAT: Final = "source"
ID: Final = "source_id"
"""The metadata fields of an imported message: its format, and its id in the file."""


class SourceMessage(NamedTuple):
    """A message with its id in the file, which is the same in every file it occurs in."""

    id: str
    message: Message


class TreeNode(NamedTuple):
    """A node of a conversation tree, with any number of messages.

    At the start, the parent is None or a node that does not exist.
    """

    parent: str | None
    messages: tuple[SourceMessage, ...]


@dataclass(frozen=True, slots=True)
class LinearConversation:
    """A conversation without branches. `messages` may be read from the file on the path.

    `person` is whom it is with, if the file says so.
    """

    id: str
    title: str
    messages: Iterable[SourceMessage]
    person: str | None = None


@dataclass(frozen=True, slots=True)
class ConversationTree:
    """A conversation with branches; the path to `current` is the visible one."""

    id: str
    title: str
    nodes: Mapping[str, TreeNode]
    current: str | None


SourceConversation: TypeAlias = "LinearConversation | ConversationTree"


class Stream(Protocol):
    """A file that is open for reading."""

    def read(self, size: int = -1, /) -> bytes:
        """The next bytes, at most `size`; none at the end."""
        ...

    def readline(self, size: int = -1, /) -> bytes:
        """The next line, at most `size` bytes of it."""
        ...

    def seek(self, offset: int, /) -> int:
        """Go to a position; only the start is used."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file, or a member of an archive, at its start.

    `zone` is for times without a time zone; `owner` names the chat if the file does not.
    """

    name: str
    stream: Stream
    zone: tzinfo = UTC
    owner: str = ""


Reader: TypeAlias = "Callable[[SourceFile, Notes], Iterator[SourceConversation]]"


@dataclass(slots=True)
class NoteCount:
    """How often something was noted, and its first locations."""

    count: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, where: str) -> None:
        """Count one more."""
        self.count += 1
        if len(self.examples) < limits.NOTE_EXAMPLES_MAX:
            self.examples.append(where[: limits.NOTE_CHARS_MAX])


@dataclass(slots=True)
class Notes:
    """What was not imported: on purpose (`left_out`), or because it was not understood."""

    left_out: dict[str, NoteCount] = field(default_factory=dict)
    not_understood: dict[str, NoteCount] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def skip(self, what: str, where: str) -> None:
        """Note something known that does not belong in the log."""
        with self._lock:
            _note(self.left_out, what, where)

    def reject(self, what: str, where: str) -> None:
        """Note something that a reader does not understand."""
        with self._lock:
            _note(self.not_understood, what, where)


def _note(notes: dict[str, NoteCount], what: str, where: str) -> None:
    what = what[: limits.NOTE_CHARS_MAX]
    if what not in notes and len(notes) >= limits.NOTE_KINDS_MAX:
        what = "other things"
    notes.setdefault(what, NoteCount()).add(where)


# -- what readers share -----------------------------------------------------------------------


def source_metadata(format_name: str, message_id: str, **more: Any) -> dict[str, Any]:
    """The metadata of a message: its source, and further fields that are not None."""
    return {FORMAT: format_name, ID: message_id, **{k: v for k, v in more.items() if v is not None}}


def build_message(where: str, notes: Notes, **fields: Any) -> Iterator[SourceMessage]:
    """The message with these fields, or a note that says why it cannot be stored."""
    try:
        message = Message(**fields)
    except InputError as error:
        notes.reject("a message that cannot be stored", f"{where}: {error}")
    else:
        yield SourceMessage(str(message.metadata[ID]), message)  # cleaned with the message


def to_json(value: object) -> str:
    """A value as JSON text, unless it is nested too deeply."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "(nested too deeply)"


def brief(*values: object) -> str:
    """A short hash of JSON values."""
    return hashlib.sha256(to_json(values).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def as_text(value: object) -> str:
    """`value` if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def as_objects(value: object) -> list[dict[str, Any]]:
    """The objects in `value`, if it is a list."""
    return [item for item in as_list(value) if isinstance(item, dict)]


def as_list(value: object) -> list[Any]:
    """`value` if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def as_dict(value: object) -> dict[str, Any]:
    """`value` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def time_from_seconds(value: object) -> datetime | None:
    """A time in seconds since 1970, as a number or a string; None if it is invalid."""
    if not isinstance(value, int | float | str) or isinstance(value, bool):
        return None
    try:
        return datetime.fromtimestamp(float(value), UTC)
    except (ValueError, OverflowError, OSError):
        return None


def time_from_iso(value: object, zone: tzinfo = UTC) -> datetime | None:
    """An ISO 8601 time, in `zone` if it has none; None if it is invalid."""
    if not isinstance(value, str):
        return None
    try:
        time = datetime.fromisoformat(value)
        return (time if time.utcoffset() is not None else time.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def checked_time(time: datetime | None, given: object, where: str, notes: Notes) -> datetime | None:
    """`time`, the parsed `given`; a note if there is a value that is no time."""
    if time is None and given not in (None, ""):
        notes.reject("a time that does not exist", f"{where}: {given!r:.60}")
    return time


# -- paths through a tree --------------------------------------------------------------------


class TreePath(NamedTuple):
    """One path through a tree, without the part it shares.

    `first` is its first node, None for the main path; `parent` the node before it, None at the
    root; `nodes` are its own nodes.
    """

    first: str | None
    parent: str | None
    nodes: tuple[str, ...]


def tree_paths(tree: ConversationTree, kept: Sequence[str] = ()) -> list[TreePath]:
    """The tree as paths, each after the one it leaves; every node is in one of them.

    The main path leads to the current node. If another main path was `kept` by an earlier import,
    it stays the main one, because stored messages do not change. Other paths follow the oldest
    child, so they are the same in a newer file, or longer.
    """
    children: dict[str | None, list[str]] = {}
    for name, node in tree.nodes.items():
        parent = node.parent if node.parent in tree.nodes else None
        children.setdefault(parent, []).append(name)
    main = _main(tree, kept)
    paths = [TreePath(None, None, tuple(main))]
    placed, waiting = set(main), deque([None, *main])
    while waiting:
        parent = waiting.popleft()
        for child in children.get(parent, ()):
            if child in placed:
                continue
            path, at = [], child
            while at not in placed:
                placed.add(at)
                path.append(at)
                at = next(iter(children.get(at, ())), at)
            paths.append(TreePath(child, parent, tuple(path)))
            waiting.extend(path)
    return paths


def _main(tree: ConversationTree, kept: Sequence[str]) -> list[str]:
    to_current = _path_to(tree, tree.current)
    stored = [name for name in kept if name in tree.nodes]
    if not stored:
        return to_current
    old = _path_to(tree, stored[-1])
    return to_current if to_current[: len(old)] == old else old


def _path_to(tree: ConversationTree, name: str | None) -> list[str]:
    """The path from the root to the node; a cycle, which only damage can cause, ends it."""
    path: dict[str, None] = {}
    while name is not None and name in tree.nodes and name not in path:
        path[name] = None
        name = tree.nodes[name].parent
    return list(path)[::-1]
