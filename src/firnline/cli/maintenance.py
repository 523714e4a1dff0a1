"""The commands for files and upkeep: export, import, migrate, backup, archive, doctor."""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Final

from firnline.cli.arguments import Command, count
from firnline.cli.open import open_memory, with_memory
from firnline.cli.output import print_json, progress_on, report
from firnline.cli.terminal import cut, plain, table
from firnline.errors import InputError
from firnline.protocols import Finding, Progress
from firnline.store import missing_file, open_store, redact_url, restore_backup
from firnline.store.files import copy_pipe, copy_stream, local_path
from firnline.store.scratch import ScratchFolder
from firnline.sync import Memory
from firnline.transfer.exporter import FORMATS as EXPORT_FORMATS
from firnline.transfer.formats import OWN
from firnline.transfer.formats.records import NoteCount
from firnline.transfer.importer import FORMATS as IMPORT_FORMATS
from firnline.transfer.importer import format_of
from firnline.transfer.migrate import MigrationResult, move

_STDIO: Final = "-"
_EXAMPLES_SHOWN: Final = 2


def _export(options: argparse.Namespace) -> None:
    with (
        open_memory(options) as memory,
        _to_write(options.file) as path,
        progress_on("exporting") as progress,
    ):
        manifest = memory.export(
            path,
            conversations=options.conversations or None,
            as_format=options.format,
            progress=progress,
        )
    if options.file != _STDIO:
        shown = ("conversations", "entries", "tokens")
        report(options, f"{options.file}: ", asdict(manifest), shown)


def _import(options: argparse.Namespace) -> int:
    with _to_read(options.file) as path:
        return _import_from(path, options)


def _import_from(path: Path, options: argparse.Namespace) -> int:
    own = options.format == OWN or (options.format is None and format_of(path) == OWN)
    if own and options.person is None:
        with open_memory(options, create=True) as memory, progress_on("importing") as progress:
            manifest = memory.import_(path, progress=progress)
        shown = ("conversations", "entries", "added")
        report(options, f"{options.file}: ", asdict(manifest), shown)
        return 0
    with progress_on("importing") as progress:
        found = with_memory(
            options,
            lambda memory: memory.import_file(
                path,
                as_format=None if own else options.format,
                zone=options.zone,
                person=options.person,
                progress=progress,
            ),
            create=True,
        )
    what = f"{options.file} ({', '.join(found.formats)}): "
    report(options, what, asdict(found), ("conversations", "branches", "messages", "added"))
    if not options.json:
        _print_notes("left out:", found.left_out)
        _print_notes("not understood:", found.not_understood)
    return 0 if found else 1


def _print_notes(title: str, notes: Mapping[str, NoteCount]) -> None:
    if notes:
        print(title)
    for what, noted in notes.items():
        print(plain(f"  {noted.count:,} times {what}"))
        for example in noted.examples[:_EXAMPLES_SHOWN]:
            print(plain(f"      {cut(example, 160)}"))


def _backup(options: argparse.Namespace) -> None:
    with open_memory(options) as memory, progress_on("copying") as progress:
        memory.backup(options.file, progress=progress)
    report(options, f"the store was copied to {options.file}", {"file": options.file}, ())


def _restore_backup(options: argparse.Namespace) -> None:
    findings = asyncio.run(restore_backup(local_path(options.file), options.store))
    if options.json:
        print_json([finding._asdict() for finding in findings])
    else:
        print(plain(f"{options.file} was restored to {redact_url(options.store)}"))
        print(table(("check", "state", "detail"), findings))


def _archive(options: argparse.Namespace) -> None:
    with open_memory(options) as memory:
        done = memory.archive(options.conversation, keep=options.keep)
    names = ("entries", "segments", "plain_bytes", "stored_bytes")
    report(options, f"{options.conversation} archived: ", asdict(done), names)


def _restore(options: argparse.Namespace) -> None:
    with open_memory(options) as memory:
        restored = memory.restore(options.conversation)
    report(options, f"{options.conversation} restored: ", {"entries": restored}, ("entries",))


def _doctor(options: argparse.Namespace) -> int:
    with open_memory(options) as memory:
        if options.rebuild_index:
            _rebuild_index(memory)
        repaired = memory.repair() if options.repair else []
        findings = memory.check(thorough=not options.quick)
    findings += _check_settings(options)
    if options.json:
        print_json([finding._asdict() for finding in findings])
    else:
        for line in repaired:
            print(plain(line))
        print(table(("check", "state", "detail"), findings))
    return 1 if any(finding.state == "broken" for finding in findings) else 0


def _check_settings(options: argparse.Namespace) -> list[Finding]:
    """The server's settings and what they name, if the server is installed."""
    try:
        from firnline.server.checkup import check_settings  # noqa: PLC0415 - an optional extra
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("firnline"):
            raise
        return []
    return asyncio.run(check_settings(options.config, options.store))


def _rebuild_index(memory: Memory) -> None:
    with progress_on("indexing") as progress:
        memory.rebuild_index(progress=progress)


def add(command: Command) -> None:
    """Add these commands to the parser."""
    export = command("export", _export, "Export conversations to a file.", "conversations")
    export.add_argument(
        "file", help="- is standard output; a folder for several conversations as markdown or html"
    )
    export.add_argument(
        "--format",
        choices=EXPORT_FORMATS,
        default=EXPORT_FORMATS[0],
        help="only jsonl can be imported again without loss (default: %(default)s)",
    )
    export.add_argument("conversations", nargs="*", help="default: all")

    imports = command(
        "import", _import, "Import an export of Firnline or another program; adds only what is new."
    )
    imports.add_argument("file", help="a file, a zip archive, or a folder; - is standard input")
    imports.add_argument(
        "--format", choices=(OWN, *IMPORT_FORMATS), help="default: detected from the content"
    )
    imports.add_argument(
        "--zone", default="UTC", help="the time zone of times without one (default: %(default)s)"
    )
    imports.add_argument("--person", metavar="NAME", help="whom all the conversations are with")

    _add_copies(command)
    doctor = command(
        "doctor", _doctor, "Check the store, and a server's settings, model and upstream."
    )
    doctor.add_argument(
        "--config", metavar="FILE", help="the server's settings as TOML (default: firnline.toml)"
    )
    doctor.add_argument("--quick", action="store_true", help="skip reading every page")
    doctor.add_argument(
        "--rebuild-index", action="store_true", help="rebuild the search index first"
    )
    doctor.add_argument(
        "--repair", action="store_true", help="restore damaged rows from the journal first"
    )
    _add_migrate(command)


def _add_copies(command: Command) -> None:
    backup = command(
        "backup", _backup, "Copy the whole store to a new file; works while the store is in use."
    )
    backup.add_argument("file")

    back = command(
        "restore-backup",
        _restore_backup,
        "Restore a backup into the empty store at --store, and check it.",
    )
    back.add_argument("file", help="what `firnline backup` wrote from a store of the same kind")

    archive = command(
        "archive",
        _archive,
        "Compress old messages; they stay readable, searchable, and verifiable.",
    )
    archive.add_argument("conversation")
    archive.add_argument(
        "--keep",
        type=count,
        default=1_000,
        help="leave the newest messages as they are (default: %(default)s)",
    )

    restore = command(
        "restore", _restore, "Decompress archived messages; restore-backup reads a backup."
    )
    restore.add_argument("conversation")


@contextmanager
def _to_write(name: str) -> Iterator[Path]:
    """The path to write; for ``-``, the complete file is then copied to standard output."""
    if name != _STDIO:
        yield Path(name)
        return
    with ScratchFolder() as folder:
        file = folder / "export"
        yield file
        if file.is_dir():
            raise InputError("this format writes several files: name a folder, or one conversation")
        with file.open("rb") as source:
            shutil.copyfileobj(source, sys.stdout.buffer)


@contextmanager
def _to_read(name: str) -> Iterator[Path]:
    """The path to read; standard input and pipes are copied first, because files are read twice."""
    path = local_path(name)
    if name != _STDIO and (not path.exists() or path.is_file() or path.is_dir()):
        yield path
        return
    scratch = ScratchFolder()
    with scratch:
        file = scratch.file("input")
        if name == _STDIO:
            copy_stream(sys.stdin.buffer, file, "standard input")
        else:
            copy_pipe(path, file)
        yield file


def _migrate(options: argparse.Namespace) -> None:
    if missing := missing_file(options.source):
        raise InputError(f"there is no store at {missing}")
    if options.source == options.target:
        raise InputError("--from and --to name the same store")
    if options.target.startswith("memory:"):
        raise InputError("memory: is lost when the command ends; name a permanent store")
    with progress_on("copying") as progress:
        result = asyncio.run(_copy(options, progress))
    report(options, f"{redact_url(options.target)}: ", asdict(result), tuple(asdict(result)))


async def _copy(options: argparse.Namespace, progress: Progress) -> MigrationResult:
    source, target = open_store(options.source), open_store(options.target)
    await source.open()
    try:
        await target.open()
        try:
            return await move(source, target, tenants=options.only, progress=progress)
        finally:
            await target.close()
    finally:
        await source.close()


def _add_migrate(command: Command) -> None:
    text = "Copy a whole store to another database; run it again to copy what is new."
    migrate = command("migrate", _migrate, text, store=False)
    migrate.add_argument(
        "--from", dest="source", required=True, metavar="URL", help="the store to read"
    )
    migrate.add_argument(
        "--to", dest="target", required=True, metavar="URL", help="the store to write"
    )
    migrate.add_argument(
        "--only", action="append", metavar="TENANT", help="only this tenant; repeatable"
    )
    migrate.add_argument("--json", action="store_true", help="print JSON")
