"""Restore a backup, and check what was restored."""

from __future__ import annotations

import asyncio
from pathlib import Path

from firnline.errors import InputError, StoreCorrupt
from firnline.protocols import Finding, Restorable
from firnline.store import open_store, redact_url


async def restore_backup(path: Path, url: str) -> list[Finding]:
    """Read a backup into the empty store at `url`, and check every page and row of it.

    `StoreCorrupt` if something of it is damaged: it is there, but it should not be used.
    """
    if not await asyncio.to_thread(path.is_file):
        raise InputError(f"there is no backup at {path}")
    store = open_store(url)
    if not isinstance(store, Restorable):
        raise InputError(f"{redact_url(url)} is lost when the command ends; name a permanent store")
    await store.restore_backup(path)
    await store.open()
    try:
        findings = await store.check(thorough=True)
    finally:
        await store.close()
    if broken := [finding for finding in findings if finding.state == "broken"]:
        what = "; ".join(f"{finding.what}: {finding.detail}" for finding in broken)
        raise StoreCorrupt(f"{path} was restored, but it is damaged: {what}")
    return findings
