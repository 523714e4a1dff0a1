"""SQLite's locks belong to the process: any other code that opens and closes the file drops them.

See https://sqlite.org/howtocorrupt.html, 2.2: POSIX locks go when the process closes any descriptor
of the file. So nothing of ours may open the live file but SQLite.
"""

import ast
import os
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
from torture_kit import memory_at, said, soon

import firnline.store.sqlite
from firnline.errors import FirnlineError

SOURCE = Path(firnline.store.sqlite.__file__).parent
LOCKS = Path("/proc/locks")

# Calls that open a file, wherever they are found on an object or in a module.
OPENING = {
    "open",
    "fdopen",
    "read_bytes",
    "read_text",
    "write_bytes",
    "write_text",
    "touch",
    "copy",
    "copy2",
    "copyfile",
    "copytree",
    "move",
    "file_digest",
    "chmod",
    "truncate",
}
# Files that are not the database: the package's own SQL, the kernel's table of mounts.
ALLOWED = {
    ("migrate.py", "load"),
    ("connection.py", "check_filesystem"),
    ("connection.py", "_watch_sql"),
    ("commit_record.py", "read_record"),  # a file of its own, which SQLite never locks
    ("commit_record.py", "_reopen"),
    ("log_tail.py", "has_lost_commits"),  # the write-ahead log, which SQLite never locks
}


@pytest.mark.promise("durable")
def test_the_sources_never_open_the_database():
    found = [
        f"{path.name}:{line} in {function}: {name}()"
        for path in SOURCE.rglob("*.py")
        for function, name, line in opening_calls(ast.parse(path.read_text()))
        if (path.name, function) not in ALLOWED
    ]
    assert not found, found


def opening_calls(tree, function=""):
    """(function, what is called, line) for each call by a name that may open a file."""
    for node in ast.iter_child_nodes(tree):
        inside = node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else function
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in OPENING and not _of_a_store(node.func):
                yield function, name, node.lineno
        yield from opening_calls(node, inside)


def _of_a_store(called):
    """``self._store.open()`` and the like are ours."""
    return isinstance(called, ast.Attribute) and ast.unparse(called.value).endswith("store")


@pytest.mark.promise("durable")
def test_the_lint_sees():
    code = (
        "def f(p):\n    open(p)\n    p.read_bytes()\n    shutil.copy(p, p)\n    self._store.open()"
    )
    assert [name for _, name, _ in opening_calls(ast.parse(code))] == ["open", "read_bytes", "copy"]


def locks(path):
    """The locks this process has on a database's files: {(file, kind, first byte)}."""
    numbers = {
        file.stat().st_ino: file.name
        for file in path.parent.iterdir()
        if file.name.startswith(path.name)
    }
    held = set()
    for line in LOCKS.read_text().splitlines():
        _, kind, _, mode, process, where, start, _ = line.replace("-> ", "").split()
        number = int(where.rsplit(":", 1)[1])
        if kind == "POSIX" and int(process) == os.getpid() and number in numbers:
            held.add((numbers[number], mode, int(start)))
    return held


@pytest.mark.promise("durable")
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc/locks")
async def test_no_command_drops_the_locks(database, tmp_path):
    async with memory_at(database) as memory:
        await memory.append("a", said(["one", "two", "three"]))
        await memory.append("b", said(["to be erased"]))
        await memory.read("a")
        before = locks(database)
        names = {name for name, *_ in before}
        assert names == {database.name, f"{database.name}-shm"}, before
        for name, command in commands(memory, database, tmp_path).items():
            with pytest.raises(FirnlineError) if name.startswith("wrong") else nullcontext():
                await soon(command)
            assert before <= locks(database), f"{name} dropped {before - locks(database)}"


def commands(memory, database, folder):
    """What maintains a store; the wrong ones are what a user may type by mistake."""
    return {
        "check": memory.check(),
        "thorough check": memory.check(thorough=True),
        "verify": memory.verify("a"),
        "recall": memory.recall(None, "one"),
        "archive": memory.archive("a", keep=1),
        "restore": memory.restore("a"),
        "rebuild index": memory.store.rebuild_index(),
        "backup": memory.backup(folder / "backup.db"),
        "export": memory.export(folder / "export.jsonl"),
        "import": memory.import_(folder / "export.jsonl"),
        "erase": memory.erase("b"),
        "wrong backup": memory.backup(database),
        "wrong import": memory.import_(database),
    }


@pytest.mark.promise("durable")
async def test_an_export_never_replaces_the_database(database):
    """The one mistake that would destroy everything: the store's own path as the export's."""
    async with memory_at(database) as memory:
        await memory.append("a", said(["one"]))
        with pytest.raises(FirnlineError):
            await memory.export(database)
        await memory.append("a", said(["two"]))
    async with memory_at(database) as memory:
        assert len(await memory.read("a")) == 2
