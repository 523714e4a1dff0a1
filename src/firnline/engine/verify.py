"""Verifying a conversation: every hash is recomputed, while writes may continue."""

from __future__ import annotations

import asyncio
from typing import Final

from firnline.engine.log_tree import newest_state
from firnline.errors import InputError, StoreCorrupt, UnknownConversation
from firnline.log import limits
from firnline.log.chain import Audit, LogProblem, Verification
from firnline.log.entry import Head, Key
from firnline.log.regex import regex
from firnline.protocols import Progress, Store
from firnline.store import journal

_HASH: Final = regex(r"sha256:[0-9a-f]{64}")


async def verify_conversation(
    store: Store, key: Key, anchor: str | None, progress: Progress | None
) -> Verification:
    """Check the conversation as it was when its head was read; see `Memory.verify`."""
    if anchor is not None and not _HASH.fullmatch(anchor):
        # Otherwise it would be reported as missing, as if the log had been rewritten.
        raise InputError("anchor: not a hash; expected sha256: and 64 hexadecimal digits")
    try:
        head = await store.head(key)
    except StoreCorrupt as error:
        wrong = dict.fromkeys([str(error), *map(str, await store.damage(key))])
        return Verification(key.conversation, 0, 0, "", tuple(map(LogProblem, wrong)))
    if head is None:
        raise UnknownConversation(f"there is no conversation {key.conversation!r}")
    audit = Audit(key, anchor)
    try:
        head, audit.checkpoint = await newest_state(store, key, head)
    except StoreCorrupt as error:
        audit.problems.append(LogProblem(str(error)))
    try:
        await _walk(store, audit, head, progress)
    except UnknownConversation as error:
        raise UnknownConversation(
            f"{key.conversation!r} was erased while it was verified"
        ) from error
    except StoreCorrupt as error:
        audit.problems.append(LogProblem(str(error)))
    found = audit.close(head)
    if not found and await _is_gone(store, key, head):
        raise UnknownConversation(f"{key.conversation!r} was erased while it was verified")
    return found


async def _walk(store: Store, audit: Audit, head: Head, progress: Progress | None) -> None:
    """Audit every record up to the head, and check for records after it."""
    while audit.seq < head.entries:
        page = min(limits.READ_PAGE, head.entries - audit.seq)
        records = await store.records(audit.key, audit.seq, page)
        if not records:
            break
        await asyncio.to_thread(audit.take, records)
        if progress is not None:
            progress(min(audit.seq, head.entries), head.entries)
    audit.problems += [LogProblem(str(one)) for one in await store.damage(audit.key)]
    await journal.read(store, audit.key)
    if await store.records(audit.key, head.entries, 1):
        audit.check_extra(await store.head(audit.key), head)


async def _is_gone(store: Store, key: Key, head: Head) -> bool:
    """Whether the conversation of this head was erased, even if its name is in use again."""
    try:
        now = await store.head(key)
    except StoreCorrupt:
        return False
    return now is None or now.created_at != head.created_at or now.entries < head.entries
