"""Digests: their versions, what they cover, and how they are made, changed and taken back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Path, Query, Request, Response

from firnline.digest import items
from firnline.errors import NotFound
from firnline.log import limits
from firnline.log.entry import Digest
from firnline.memory import Memory
from firnline.server.auth import Reading, Writing
from firnline.server.bodies import head_of, position_of, sent, tagged
from firnline.server.rest import paging, requests, responses, schemas
from firnline.server.rest.openapi import FOUND, MISSING, problems, router
from firnline.server.rest.path_params import Conversation

routes = router("digests")

AtVersion = Annotated[requests.Version, Path(description="The digest's version.")]


@routes.get(
    "/conversations/{conversation}/digests",
    response_model=schemas.DigestPage,
    responses={**FOUND, **MISSING},
)
async def list_digests(
    request: Request,
    memory: Reading,
    conversation: Conversation,
    limit: requests.Limit = 100,
    cursor: requests.Cursor = None,
) -> Response:
    """The versions from the first on, failed and undone ones too."""
    await head_of(memory, conversation)
    first = min(max(position_of(cursor, int) or 1, 1), requests.SEQ_MAX)
    versions = list(range(first, first + limit + 1))  # they have no holes
    found = await memory.digests(conversation, versions=versions)
    following = first + limit if len(found) > limit else None
    return tagged(
        request, responses.page(await _shown(memory, conversation, found[:limit]), following)
    )


@routes.get(
    "/conversations/{conversation}/digests/in-force",
    response_model=schemas.Digests,
    responses={**FOUND, **MISSING},
)
async def list_digests_in_force(
    request: Request, memory: Reading, conversation: Conversation
) -> Response:
    """The digests that contexts are made of now, oldest span first."""
    await head_of(memory, conversation)
    found = await memory.in_force(conversation)
    force = [digest.version for digest in found]
    return tagged(request, {"data": [responses.digest(digest, force) for digest in found]})


@routes.get(
    "/conversations/{conversation}/digests/{version}",
    response_model=schemas.Digest,
    responses={**FOUND, **MISSING},
)
async def get_digest(
    request: Request, memory: Reading, conversation: Conversation, version: AtVersion
) -> Response:
    """One version with its important data, its evidence and its receipt."""
    found = await _digest(memory, conversation, version)
    return tagged(request, (await _shown(memory, conversation, [found]))[0])


@routes.get(
    "/conversations/{conversation}/digests/{version}/messages",
    response_model=schemas.EntryPage,
    responses={**FOUND, **MISSING},
)
async def expand_digest(
    request: Request,
    memory: Reading,
    conversation: Conversation,
    version: AtVersion,
    limit: requests.Limit = 100,
    cursor: requests.Cursor = None,
) -> Response:
    """The entries that a digest covers, word for word."""
    found = await _digest(memory, conversation, version)
    seqs: Sequence[int] = range(found.first_seq, found.last_seq + 1)
    if found.topic is not None:
        members = await memory.topic_seqs(conversation, found.topic, first_seq=found.first_seq)
        seqs = [seq for seq in members if seq <= found.last_seq]
    return tagged(request, await paging.entries(memory, conversation, seqs, cursor, limit))


@routes.get(
    "/conversations/{conversation}/digests/{version}/diff",
    response_model=schemas.DigestDifference,
    responses={**FOUND, **MISSING},
)
async def compare_digests(
    request: Request,
    memory: Reading,
    conversation: Conversation,
    version: AtVersion,
    before: Annotated[requests.Version, Query(description="The version to compare it with.")],
) -> Response:
    """What changed from the version `before` to this one: text line by line, data by item."""
    for one in (before, version):
        await _digest(memory, conversation, one)
    difference = await memory.diff(conversation, before, version)
    return tagged(request, responses.plain(difference))


@routes.get(
    "/conversations/{conversation}/state",
    response_model=schemas.MemoryState,
    responses={**FOUND, **MISSING},
)
async def get_state(request: Request, memory: Reading, conversation: Conversation) -> Response:
    """What the conversation's memory holds: important data, summary, how far it reaches."""
    await head_of(memory, conversation)
    return tagged(request, responses.plain(await memory.state(conversation)))


@routes.get(
    "/conversations/{conversation}/important",
    response_model=schemas.Important,
    responses={**FOUND, **MISSING},
)
async def get_important(request: Request, memory: Reading, conversation: Conversation) -> Response:
    """The important data item by item: evidence, what was replaced, what was set aside."""
    await head_of(memory, conversation)
    force = await memory.in_force(conversation)
    known: tuple[items.Item, ...] = ()
    held: dict[tuple[str, ...], int] = {}
    aside: list[dict[str, Any]] = []
    for digest in force:
        own = items.from_json(digest.data)
        known = items.merge(known, own)
        held |= {_identity(item): digest.version for item in own}
        aside += [{**row, "version": digest.version} for row in items.set_aside(digest.data)]
    versions = [held[_identity(item)] for item in known]
    listed = [
        {**_listed(item), "version": version}
        for item, version in zip(items.items_with_speakers(known), versions, strict=True)
    ]
    return tagged(request, {"data": listed, "set_aside": aside})


def _identity(item: items.Item) -> tuple[str, ...]:
    named = items.name_key(item.name), items.name_key(item.speaker)
    return item.field, *named, items.value_key(item.field, item.value)


def _listed(item: items.Item) -> dict[str, Any]:
    """An item that is shown, whose name says who speaks where that matters."""
    fields: dict[str, Any] = responses.plain(item)
    return {name: fields[name] for name in schemas.ImportantItem.model_fields if name in fields}


# -- making and changing them -----------------------------------------------------------------


@routes.post(
    "/conversations/{conversation}/digests",
    response_model=schemas.DigestCount,
    responses={**MISSING, **problems(409, 502, 504)},
)
async def digest_now(memory: Writing, conversation: Conversation) -> Response:
    """Make the digests that are owed; 409 if somebody else is at it."""
    await head_of(memory, conversation)
    made = 0
    for _ in range(limits.FOLD_ROUNDS_MAX):
        more = await memory.digest(conversation)
        made += more
        if not more:
            break
    return sent({"digests": made, "more": bool(more)})


@routes.post(
    "/conversations/{conversation}/digests/undo",
    response_model=schemas.Digest,
    responses={**MISSING, **problems(409, 415)},
)
async def undo_digest(
    memory: Writing, conversation: Conversation, body: requests.UndoRequest | None = None
) -> Response:
    """Take the newest digest out of force; it is kept, and those before it hold again."""
    await head_of(memory, conversation)
    undone = await memory.undo(conversation, topic=body.topic if body else None)
    return sent((await _shown(memory, conversation, [undone]))[0])


@routes.post(
    "/conversations/{conversation}/digests/clear",
    response_model=schemas.DigestCount,
    responses={**MISSING, **problems(409)},
)
async def clear_digests(memory: Writing, conversation: Conversation) -> Response:
    """Undo every digest; the messages stay, and new digests are made from them."""
    await head_of(memory, conversation)
    return sent({"digests": await memory.clear(conversation), "more": False})


@routes.post(
    "/conversations/{conversation}/digests/rebuild",
    response_model=schemas.Digests,
    responses={**MISSING, **problems(409, 415, 502, 504)},
)
async def rebuild_digests(
    memory: Writing, conversation: Conversation, body: requests.RebuildRequest | None = None
) -> Response:
    """Make the digests in force anew from the log, for example with a better model."""
    await head_of(memory, conversation)
    made = await memory.rebuild(conversation, only_offline=bool(body and body.only_offline))
    return sent({"data": await _shown(memory, conversation, made)})


@routes.post(
    "/conversations/{conversation}/important",
    response_model=schemas.Digest,
    responses={**MISSING, **problems(409, 415)},
)
async def remember(
    memory: Writing, conversation: Conversation, body: requests.RememberRequest
) -> Response:
    """Add what the application knows to the important data; a new version, so it can be undone."""
    await head_of(memory, conversation)
    made = await memory.remember(conversation, body.important_data, summary=body.summary)
    return sent((await _shown(memory, conversation, [made]))[0])


@routes.post(
    "/conversations/{conversation}/important/revert",
    response_model=schemas.Digest,
    responses={**MISSING, **problems(409, 415)},
)
async def revert(
    memory: Writing, conversation: Conversation, body: requests.RevertRequest
) -> Response:
    """Take back what an entry replaced in the important data: the old value holds again."""
    await head_of(memory, conversation)
    made = await memory.revert(conversation, body.seq)
    return sent((await _shown(memory, conversation, [made]))[0])


async def _digest(memory: Memory, conversation: str, version: int) -> Digest:
    await head_of(memory, conversation)
    found = await memory.digests(conversation, versions=[version])
    if not found:
        raise NotFound(f"there is no digest {version}")
    return found[0]


async def _shown(
    memory: Memory, conversation: str, found: Sequence[Digest]
) -> list[dict[str, Any]]:
    force = [digest.version for digest in await memory.in_force(conversation)]
    return [responses.digest(digest, force) for digest in found]
