"""Files that a model keeps for itself: Anthropic's memory tool, in the log.

Each edit is an entry, so it is a version that can be undone, and nothing is ever overwritten. The
results are those of Anthropic's own implementation, which models know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from firnline.errors import ConflictError, InputError
from firnline.log import limits
from firnline.log.entry import Entry
from firnline.log.message import Message
from firnline.memory import Memory

ROOT: Final = "/memories"
_CHANGES: Final = "memory_files"
"""The metadata field with the new text of each file that an edit changed; None if it is deleted."""
_UNDOES: Final = "undoes"
_PAGE: Final = 1_000
_DEPTH: Final = 2
_NUMBER_WIDTH: Final = 6
_AROUND: Final = 2
_KIB: Final = 1_024

Files: TypeAlias = dict[str, str]
Changes: TypeAlias = dict[str, str | None]


class Edit(NamedTuple):
    """What a command answers, and what it changes; `InputError` is for the model to read."""

    result: str
    changes: Changes


class MemoryFiles:
    """The files in the conversation `name` of a memory."""

    def __init__(self, memory: Memory, name: str) -> None:
        self._memory, self._name = memory, name

    async def run(self, command: Mapping[str, Any]) -> str:
        """Run one of the six commands; durable when this returns. `InputError` if it is wrong."""
        run = _COMMANDS.get(str(command.get("command")))
        if run is None:
            raise InputError(f"Unknown command: {command.get('command')}")
        for _ in range(limits.ANSWER_TRIES):
            history = await self._read()
            edit = run(_fold(history), command)
            if not edit.changes:
                return edit.result
            try:
                await self._store(history, edit.changes, f"{command['command']}", {})
            except ConflictError:
                continue  # another edit came first: look again
            return edit.result
        raise ConflictError("too many concurrent edits; retry")

    async def undo(self) -> str:
        """Undo the newest edit that is not undone; `InputError` if there is none."""
        history = await self._read()
        undone = {entry.message.metadata.get(_UNDOES) for entry in history}
        for at in range(len(history) - 1, -1, -1):
            entry = history[at]
            if entry.seq in undone or _UNDOES in entry.message.metadata:
                continue
            before = _fold(history[:at])
            changes: Changes = {path: before.get(path) for path in _changes(entry)}
            await self._store(history, changes, "undo", {_UNDOES: entry.seq})
            return f"Undone: {entry.message.text.partition(chr(10))[0]}"
        raise InputError("there is nothing to undo")

    async def versions(self, path: str) -> list[Entry]:
        """The edits of a file, oldest first."""
        return [entry for entry in await self._read() if path in _changes(entry)]

    async def _read(self) -> list[Entry]:
        found: list[Entry] = []
        if await self._memory.head(self._name) is None:
            return found
        while page := await self._memory.read(self._name, first_seq=len(found), limit=_PAGE):
            found += page
        return found

    async def _store(
        self, history: list[Entry], changes: Changes, what: str, about: dict[str, Any]
    ) -> None:
        texts = [f"{what} {path}\n{text or ''}".rstrip() for path, text in changes.items()]
        metadata = {_CHANGES: dict(changes), **about}
        message = Message.assistant("\n\n".join(texts), metadata=metadata)
        await self._memory.append(self._name, message, expected_seq=len(history))


def _changes(entry: Entry) -> Mapping[str, Any]:
    found = entry.message.metadata.get(_CHANGES)
    return found if isinstance(found, dict) else {}


def _fold(history: list[Entry]) -> Files:
    files: Files = {}
    for entry in history:
        for path, text in _changes(entry).items():
            files.pop(path, None)
            if text is not None:
                files[path] = text
    return files


# -- commands, on the files as they are --------------------------------------------------------


def _path(command: Mapping[str, Any], name: str = "path") -> str:
    given = command.get(name)
    if not isinstance(given, str) or not f"{given}/".startswith(f"{ROOT}/"):
        raise InputError(f"Path must start with {ROOT}, got: {given}")
    steps = [step for step in given.split("/") if step]
    if any(step in (".", "..") for step in steps) or not given.isprintable():
        raise InputError(f"Path {given} would escape {ROOT} directory")
    return "/" + "/".join(steps)


def _text(command: Mapping[str, Any], name: str) -> str:
    value = command.get(name)
    if not isinstance(value, str):
        raise InputError(f"`{name}` must be a string")
    return value


def _within(files: Files, path: str) -> Files:
    return {each: text for each, text in files.items() if each.startswith(f"{path}/")}


def _file(files: Files, path: str) -> str:
    if path in files:
        return files[path]
    if path == ROOT or _within(files, path):
        raise InputError(f"The path {path} is not a file.")
    raise InputError(f"The path {path} does not exist. Please provide a valid path.")


def _view(files: Files, command: Mapping[str, Any]) -> Edit:
    path = _path(command)
    inside = _within(files, path)
    if path not in files and (inside or path == ROOT):
        return Edit(_listing(inside, path), {})
    lines, first = _file(files, path).split("\n"), 1
    span = command.get("view_range")
    if isinstance(span, list) and len(span) == 2:  # noqa: PLR2004 - from, to
        first = max(1, int(span[0]))
        lines = lines[first - 1 : len(lines) if span[1] == -1 else int(span[1])]
    head = f"Here's the content of {path} with line numbers:\n"
    return Edit(head + _numbered(lines, first), {})


def _numbered(lines: list[str], first: int) -> str:
    numbers = (str(number).rjust(_NUMBER_WIDTH) for number in range(first, first + len(lines)))
    return "\n".join(f"{number}\t{line}" for number, line in zip(numbers, lines, strict=True))


def _listing(inside: Files, path: str) -> str:
    sizes: dict[str, int] = {}
    for each, text in inside.items():
        steps = each.removeprefix(f"{path}/").split("/")
        for depth in range(1, min(len(steps), _DEPTH) + 1):
            folder = "/" if depth < len(steps) else ""
            name = "/".join(steps[:depth]) + folder
            if not any(step.startswith(".") for step in steps[:depth]):
                sizes[name] = sizes.get(name, 0) + len(text.encode())
    total = sum(len(text.encode()) for text in inside.values())
    head = (
        f"Here're the files and directories up to {_DEPTH} levels deep in {path}, excluding hidden"
        " items:"
    )
    rows = [f"{_size(sizes[name])}\t{path}/{name}" for name in sorted(sizes)]
    return "\n".join([head, f"{_size(total)}\t{path}", *rows])


def _size(count: int) -> str:
    if count < _KIB:
        return f"{count}B"
    step = min((count.bit_length() - 1) // 10, 3)
    size = count / _KIB**step
    return f"{int(size) if size == int(size) else round(size, 1)}{'BKMG'[step]}"


def _create(files: Files, command: Mapping[str, Any]) -> Edit:
    path, text = _path(command), _text(command, "file_text")
    parents = [path[:at] for at, char in enumerate(path) if char == "/"]
    if path in files or path == ROOT or _within(files, path):
        raise InputError(f"File {path} already exists")
    if any(parent in files for parent in parents):
        raise InputError(f"A part of {path} is a file")
    return Edit(f"File created successfully at: {path}", {path: text})


def _replace(files: Files, command: Mapping[str, Any]) -> Edit:
    path = _path(command)
    text, old, new = _file(files, path), _text(command, "old_str"), _text(command, "new_str")
    places = _places(text, old)
    if not places:
        raise InputError(
            f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}."
        )
    if len(places) > 1:
        lines = ", ".join(str(text.count("\n", 0, at) + 1) for at in places)
        raise InputError(
            f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines:"
            f" {lines}. Please ensure it is unique"
        )
    changed = text[: places[0]] + new + text[places[0] + len(old) :]
    at, lines_now = text.count("\n", 0, places[0]), changed.split("\n")
    first = max(0, at - _AROUND)
    snippet = _numbered(lines_now[first : at + _AROUND + 1], first + 1)
    head = "The memory file has been edited. Here is the snippet showing the change"
    return Edit(f"{head} (with line numbers):\n{snippet}", {path: changed})


def _places(text: str, old: str) -> list[int]:
    found, at = list[int](), text.find(old) if old else -1
    while at >= 0:
        found.append(at)
        at = text.find(old, at + 1)
    return found


def _insert(files: Files, command: Mapping[str, Any]) -> Edit:
    path, at = _path(command), command.get("insert_line")
    lines = _file(files, path).split("\n")
    if lines[-1] == "":
        lines.pop()
    if type(at) is not int or not 0 <= at <= len(lines):
        raise InputError(
            f"Invalid `insert_line` parameter: {at}. It should be within the range"
            f" [0, {len(lines)}]."
        )
    lines.insert(at, _text(command, "insert_text").rstrip("\n"))
    text = "\n".join(lines)
    changed = text if text.endswith("\n") else f"{text}\n"
    return Edit(f"The file {path} has been edited.", {path: changed})


def _delete(files: Files, command: Mapping[str, Any]) -> Edit:
    path = _path(command)
    if path == ROOT:
        raise InputError(f"Cannot delete the {ROOT} directory itself")
    gone = [each for each in files if each == path or each.startswith(f"{path}/")]
    if not gone:
        raise InputError(f"The path {path} does not exist")
    return Edit(f"Successfully deleted {path}", dict.fromkeys(gone))


def _rename(files: Files, command: Mapping[str, Any]) -> Edit:
    old, new = _path(command, "old_path"), _path(command, "new_path")
    if old == ROOT:
        raise InputError(f"Cannot rename the {ROOT} directory itself")
    if new in files or new == ROOT or _within(files, new):
        raise InputError(f"The destination {new} already exists")
    moved = [each for each in files if each == old or each.startswith(f"{old}/")]
    if not moved or f"{new}/".startswith(f"{old}/"):
        raise InputError(f"The path {old} does not exist" if not moved else f"{new} is in {old}")
    changes: Changes = dict.fromkeys(moved)
    changes |= {f"{new}{each.removeprefix(old)}": files[each] for each in moved}
    return Edit(f"Successfully renamed {old} to {new}", changes)


_COMMANDS: Final[Mapping[str, Callable[[Files, Mapping[str, Any]], Edit]]] = {
    "view": _view,
    "create": _create,
    "str_replace": _replace,
    "insert": _insert,
    "delete": _delete,
    "rename": _rename,
}
