"""The routes of OpenAI's Conversations API: conversations of the log under the ids of OpenAI."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from firnline.errors import InputError, NotFound
from firnline.log.entry import Card, Entry, Head
from firnline.log.openai_items import messages_of
from firnline.log.threads import run_by_size
from firnline.memory import Memory
from firnline.server.auth import Administering, Reading, Writing
from firnline.server.bodies import json_response
from firnline.server.proxy.limits import (
    METADATA_KEY_CHARS_MAX,
    METADATA_PAIRS_MAX,
    METADATA_VALUE_CHARS_MAX,
)
from firnline.server.proxy.request import read_object
from firnline.server.proxy.response_erasure import erase_item
from firnline.server.proxy.response_events import Item, new_id
from firnline.server.proxy.response_places import (
    ItemQuery,
    find_item,
    item_cards,
    item_page,
    list_items,
    listed_items,
)
from firnline.server.proxy.response_request import check_items
from firnline.server.proxy.response_routes import Order, PageLimit

router = APIRouter(tags=["proxy"])

_ONE: Final = "/v1/conversations/{conversation_id}"
_ITEMS: Final = f"{_ONE}/items"
_CREATE: Final = frozenset({"items", "metadata"})


@router.post("/v1/conversations", summary="Create a conversation")
async def create_conversation(request: Request, memory: Writing) -> Response:
    """A conversation with items, if any are given."""
    body = await read_object(request) if await request.body() else {}
    _check_names(body, _CREATE)
    items, metadata = await _read_items(request, body), _metadata(body.get("metadata"))
    name = new_id("conv")
    head = await memory.describe(name, metadata=metadata)
    if items:
        await _append(request, memory, name, items)
    return json_response(_shown(head))


@router.get(_ONE, summary="A conversation")
async def retrieve_conversation(memory: Reading, conversation_id: str) -> Response:
    """A conversation: any of the log, by its name."""
    return json_response(_shown(await _require(memory, conversation_id)))


@router.post(_ONE, summary="Change a conversation's metadata")
async def update_conversation(request: Request, memory: Writing, conversation_id: str) -> Response:
    """Replace the metadata; what others keep there, such as its title, stays."""
    body = await read_object(request)
    _check_names(body, {"metadata"})
    metadata = _metadata(body.get("metadata"))
    head = await _require(memory, conversation_id)
    kept = {k: v for k, v in head.metadata.items() if not isinstance(v, str) or k == "title"}
    changed = await memory.describe(conversation_id, metadata={**kept, **metadata}, known=head)
    return json_response(_shown(changed))


@router.delete(_ONE, summary="Erase a conversation")
async def delete_conversation(memory: Administering, conversation_id: str) -> Response:
    """Erase the conversation and everything derived from it."""
    await _require(memory, conversation_id)
    await memory.erase(conversation_id)
    kind = "conversation.deleted"
    return json_response({"id": conversation_id, "object": kind, "deleted": True})


@router.post(_ITEMS, summary="Add items")
async def create_items(request: Request, memory: Writing, conversation_id: str) -> Response:
    """Add items at the end; returns them with their ids."""
    body = await read_object(request)
    _check_names(body, {"items"})
    await _require(memory, conversation_id)
    items = await _read_items(request, body)
    if not items or isinstance(body["items"], str):
        raise InputError("items: expected a list of items", param="items")
    stored = await _append(request, memory, conversation_id, items)

    def listed() -> Item:
        return item_page([item for entry in stored for item in listed_items(entry)])

    return json_response(await run_by_size(await _size(request), listed))


@router.get(_ITEMS, summary="The items of a conversation")
async def list_conversation_items(
    memory: Reading,
    conversation_id: str,
    after: str = "",
    limit: PageLimit = 20,
    order: Order = "desc",
) -> Response:
    """A page of items, the newest ones first unless asked otherwise."""
    head = await _require(memory, conversation_id)
    query = ItemQuery(after, limit, order)
    return json_response(await list_items(memory, conversation_id, (0, head.seq), query))


@router.get(f"{_ITEMS}/{{item_id}}", summary="An item")
async def retrieve_item(memory: Reading, conversation_id: str, item_id: str) -> Response:
    """One item."""
    await _require(memory, conversation_id)
    _, item = await find_item(memory, item_id, conversation_id)
    return json_response(item)


@router.delete(f"{_ITEMS}/{{item_id}}", summary="Erase an item")
async def delete_item(memory: Administering, conversation_id: str, item_id: str) -> Response:
    """Erase an item; 409 if others would have to go with it."""
    head = await _require(memory, conversation_id)
    await erase_item(memory, head, item_id)
    return json_response(_shown(head))


async def _size(request: Request) -> int:
    return len(await request.body())


async def _read_items(request: Request, body: Mapping[str, Any]) -> list[Item]:
    return await run_by_size(await _size(request), partial(check_items, body.get("items"), "items"))


async def _append(
    request: Request, memory: Memory, conversation: str, items: Sequence[Item]
) -> list[Entry]:
    size = await _size(request)
    stored = await memory.append(conversation, await run_by_size(size, partial(messages_of, items)))

    def named() -> list[Card]:
        return [card for each in stored for card in item_cards(memory.tenant, each, conversation)]

    if cards := await run_by_size(size, named):
        await memory.cards.put(*cards)
    return list(stored)


async def _require(memory: Memory, conversation: str) -> Head:
    head = await memory.head(conversation)
    if head is None:
        raise NotFound(f"Conversation with id {conversation[:80]!r} not found.")
    return head


def _shown(head: Head) -> Item:
    told = {key: value for key, value in head.metadata.items() if isinstance(value, str)}
    created = int(head.created_at.timestamp())
    about = {"id": head.conversation, "object": "conversation"}
    return {**about, "created_at": created, "metadata": told}


def _check_names(body: Mapping[str, Any], known: frozenset[str] | set[str]) -> None:
    for name in body:
        if name not in known:
            raise InputError(f"unknown parameter: {name}", param=name)


def _metadata(given: object) -> dict[str, Any]:
    """The metadata of a request, by OpenAI's rules."""
    if given is None:
        return {}
    rules = (
        f"metadata: expected at most {METADATA_PAIRS_MAX} texts of at most"
        f" {METADATA_VALUE_CHARS_MAX} characters, with keys of at most {METADATA_KEY_CHARS_MAX}"
    )
    if not isinstance(given, dict) or len(given) > METADATA_PAIRS_MAX:
        raise InputError(rules, param="metadata")
    for key, value in given.items():
        text = isinstance(value, str) and len(value) <= METADATA_VALUE_CHARS_MAX
        if not text or len(key) > METADATA_KEY_CHARS_MAX:
            raise InputError(rules, param="metadata")
    return given
