"""The command migrate: copies a whole store to another database."""

from __future__ import annotations

import argparse
import asyncio
from dataclasses import asdict

from firnline.cli.arguments import Command
from firnline.cli.output import progress_on, report
from firnline.errors import InputError
from firnline.protocols import Progress
from firnline.store import missing_file, open_store, redact_url
from firnline.transfer.migrate import MigrationResult, move


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


def add(command: Command) -> None:
    """Add this command to the parser."""
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
