"""Digests: their contents, and how they are created, changed and undone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Path, Query, Request, Response

from firnline.digest import items
from firnline.errors import NotFound
from firnline.log import limits
from firnline.log.entry import Digest
from firnline.memory import Memory
from firnline.server.auth import Reading, Writing
from firnline.server.bodies import etag_response, json_response, read_cursor, require_head
from firnline.server.rest import paging, requests, responses, schemas
from firnline.server.rest.openapi import CONVERSATION, FOUND_OR_MISSING, problems, router
from firnline.server.rest.path_params import Conversation
from firnline.store.rows import SEQ_MAX

routes = router("digests", CONVERSATION)

AtVersion = Annotated[requests.Version, Path(description="The digest's number.")]


@routes.get("/digests", response_model=schemas.DigestPage, responses=FOUND_OR_MISSING)
async def list_digests(
    request: Request,
    memory: Reading,
    conversation: Conversation,
    limit: requests.Limit = 100,
    cursor: requests.Cursor = None,
) -> Response:
    """All digests in order, including failed and undone ones."""
    await require_head(memory, conversation)
    first = min(max(read_cursor(cursor, int) or 1, 1), SEQ_MAX)
    versions = list(range(first, first + limit + 1))  # versions have no gaps
    found = await memory.digests(conversation, versions=versions)
    following = first + limit if len(found) > limit else None
    return etag_response(
        request, responses.page(await _to_json(memory, conversation, found[:limit]), following)
    )


@routes.get("/digests/in-force", response_model=schemas.Digests, responses=FOUND_OR_MISSING)
async def list_digests_in_force(
    request: Request, memory: Reading, conversation: Conversation
) -> Response:
    """The digests that contexts are built from now, oldest span first."""
    await require_head(memory, conversation)
    found = await memory.in_force(conversation)
    force = [digest.version for digest in found]
    return etag_response(request, {"data": [responses.digest(digest, force) for digest in found]})


@routes.get("/digests/{version}", response_model=schemas.Digest, responses=FOUND_OR_MISSING)
async def get_digest(
    request: Request, memory: Reading, conversation: Conversation, version: AtVersion
) -> Response:
    """One digest with its important data, evidence and receipt."""
    found = await _require_digest(memory, conversation, version)
    return etag_response(request, (await _to_json(memory, conversation, [found]))[0])


@routes.get(
    "/digests/{version}/messages", response_model=schemas.EntryPage, responses=FOUND_OR_MISSING
)
async def expand_digest(
    request: Request,
    memory: Reading,
    conversation: Conversation,
    version: AtVersion,
    limit: requests.Limit = 100,
    cursor: requests.Cursor = None,
) -> Response:
    """The messages that a digest covers, word for word."""
    found = await _require_digest(memory, conversation, version)
    seqs: Sequence[int] = range(found.first_seq, found.last_seq + 1)
    if found.topic is not None:
        members = await memory.topic_seqs(conversation, found.topic, first_seq=found.first_seq)
        seqs = [seq for seq in members if seq <= found.last_seq]
    return etag_response(request, await paging.entries(memory, conversation, seqs, cursor, limit))


@routes.get(
    "/digests/{version}/diff", response_model=schemas.DigestDifference, responses=FOUND_OR_MISSING
)
async def compare_digests(
    request: Request,
    memory: Reading,
    conversation: Conversation,
    version: AtVersion,
    before: Annotated[requests.Version, Query(description="The digest to compare it with.")],
) -> Response:
    """Compare this digest with the digest `before`: text by line, data by item."""
    for one in (before, version):
        await _require_digest(memory, conversation, one)
    difference = await memory.diff(conversation, before, version)
    return etag_response(request, responses.plain(difference))


@routes.get("/state", response_model=schemas.MemoryState, responses=FOUND_OR_MISSING)
async def get_state(request: Request, memory: Reading, conversation: Conversation) -> Response:
    """The state of the conversation's memory: important data, summary and coverage."""
    await require_head(memory, conversation)
    return etag_response(request, responses.plain(await memory.state(conversation)))


@routes.get("/important", response_model=schemas.Important, responses=FOUND_OR_MISSING)
async def get_important(request: Request, memory: Reading, conversation: Conversation) -> Response:
    """The important data by item: evidence, replaced and rejected items."""
    await require_head(memory, conversation)
    force = await memory.in_force(conversation)
    return etag_response(request, await asyncio.to_thread(_important, force))


def _important(force: Sequence[Digest]) -> dict[str, Any]:
    merged: tuple[items.Item, ...] = ()
    version_of: dict[tuple[str, ...], int] = {}
    rejected: list[dict[str, Any]] = []
    for digest in force:
        own = items.from_json(digest.data)
        merged = items.merge(merged, own)
        version_of |= {_identity(item): digest.version for item in own}
        rejected += [{**row, "version": digest.version} for row in items.set_aside(digest.data)]
    versions = [version_of[_identity(item)] for item in merged]
    listed = [
        {**_item_json(item), "version": version}
        for item, version in zip(items.items_with_speakers(merged), versions, strict=True)
    ]
    return {"data": listed, "set_aside": rejected}


def _identity(item: items.Item) -> tuple[str, ...]:
    named = items.name_key(item.name), items.name_key(item.speaker)
    return item.field, *named, items.value_key(item.field, item.value)


def _item_json(item: items.Item) -> dict[str, Any]:
    fields: dict[str, Any] = responses.plain(item)
    return {name: fields[name] for name in schemas.ImportantItem.model_fields if name in fields}


# -- changes ----------------------------------------------------------------------------------


@routes.post("/digests", response_model=schemas.DigestCount, responses=problems(404, 409, 502, 504))
async def digest_now(memory: Writing, conversation: Conversation) -> Response:
    """Create pending digests now; 409 if another process is creating them."""
    await require_head(memory, conversation)
    made = 0
    for _ in range(limits.FOLD_ROUNDS_MAX):
        more = await memory.digest(conversation)
        made += more
        if not more:
            break
    return json_response({"digests": made, "more": bool(more)})


@routes.post("/digests/undo", response_model=schemas.Digest, responses=problems(404, 409, 415))
async def undo_digest(
    memory: Writing, conversation: Conversation, body: requests.UndoRequest | None = None
) -> Response:
    """Undo the newest digest; it is kept, and the previous ones are in force again."""
    await require_head(memory, conversation)
    undone = await memory.undo(conversation, topic=body.topic if body else None)
    return json_response((await _to_json(memory, conversation, [undone]))[0])


@routes.post("/digests/clear", response_model=schemas.DigestCount, responses=problems(404, 409))
async def clear_digests(memory: Writing, conversation: Conversation) -> Response:
    """Undo every digest; messages are kept, and new digests are created from them."""
    await require_head(memory, conversation)
    return json_response({"digests": await memory.clear(conversation), "more": False})


@routes.post(
    "/digests/rebuild", response_model=schemas.Digests, responses=problems(404, 409, 415, 502, 504)
)
async def rebuild_digests(
    memory: Writing, conversation: Conversation, body: requests.RebuildRequest | None = None
) -> Response:
    """Rebuild the digests in force from the log, for example with a better model."""
    await require_head(memory, conversation)
    made = await memory.rebuild(conversation, only_offline=bool(body and body.only_offline))
    return json_response({"data": await _to_json(memory, conversation, made)})


@routes.post("/important", response_model=schemas.Digest, responses=problems(404, 409, 415))
async def remember(
    memory: Writing, conversation: Conversation, body: requests.RememberRequest
) -> Response:
    """Add important data from the application; creates a new digest that can be undone."""
    await require_head(memory, conversation)
    made = await memory.remember(conversation, body.important_data, summary=body.summary)
    return json_response((await _to_json(memory, conversation, [made]))[0])


@routes.post("/important/revert", response_model=schemas.Digest, responses=problems(404, 409, 415))
async def revert(
    memory: Writing, conversation: Conversation, body: requests.RevertRequest
) -> Response:
    """Revert what a message replaced in the important data: the old value is valid again."""
    await require_head(memory, conversation)
    made = await memory.revert(conversation, body.seq)
    return json_response((await _to_json(memory, conversation, [made]))[0])


async def _require_digest(memory: Memory, conversation: str, version: int) -> Digest:
    await require_head(memory, conversation)
    found = await memory.digests(conversation, versions=[version])
    if not found:
        raise NotFound(f"there is no digest {version}")
    return found[0]


async def _to_json(
    memory: Memory, conversation: str, found: Sequence[Digest]
) -> list[dict[str, Any]]:
    force = [digest.version for digest in await memory.in_force(conversation)]
    return [responses.digest(digest, force) for digest in found]
