"""`FirnlineStore`: LangGraph's long-term store in a memory.

An item's value is a card, and its searchable text is an entry: a namespace is a conversation. So
items are found like any message, and every version of an item stays in the log.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Sequence
from itertools import chain
from typing import Final
from urllib.parse import quote

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

from firnline.adapters.bridge import MemoryBridge, MemoryLike
from firnline.adapters.langchain.items import (
    fields_of,
    folder_of,
    holds,
    item_of,
    matches,
    name_of,
    texts_of,
)
from firnline.digest.fact import MEMORY, SOURCE_KEY
from firnline.log import limits
from firnline.log.entry import Card
from firnline.log.hit import Hit
from firnline.log.message import Message, format_time, utc_now
from firnline.log.text import clean_json, person_name
from firnline.log.wire import parse_unique
from firnline.memory import Memory

PROJECT: Final = "langgraph store"
_KIND: Final = "langgraph"
_NAMESPACES_MAX: Final = 16


class FirnlineStore(BaseStore):
    """Items by namespace and key, searched by meaning and words. Items do not expire.

    Without an event loop (``store.put``, ``agent.invoke``) it needs a `firnline.sync.Memory`.
    `person` is the position at which a namespace names a person: 1 for ``("memories", "ana")``.
    What its items say of the person is known in all of their conversations.
    """

    supports_ttl = False

    def __init__(self, memory: MemoryLike, *, person: int | None = None) -> None:
        self._bridge, self._person = MemoryBridge(memory), person

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations in order."""
        return self._bridge.run(_run_all(self._bridge.memory, list(ops), self._person))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations in order."""
        work = _run_all(self._bridge.memory, list(ops), self._person)
        return await self._bridge.run_async(work)


async def _run_all(memory: Memory, ops: list[Op], person: int | None) -> list[Result]:
    results: list[Result] = []
    for op in ops:
        match op:
            case GetOp():
                results.append(await _get(memory, op))
            case PutOp():
                await _put(memory, op, _person_of(op, person))
                results.append(None)
            case SearchOp():
                results.append(await _search(memory, op))
            case ListNamespacesOp():
                results.append(await _namespaces(memory, op))
    return results


async def _get(memory: Memory, op: GetOp) -> Item | None:
    name = name_of(op.namespace, op.key)
    card = await memory.cards.get(_KIND, name)
    return item_of(card) if card else None


def _person_of(op: PutOp, position: int | None) -> str | None:
    """The person that a namespace names; None if it is too short, or that is no name."""
    named = position is not None and -len(op.namespace) <= position < len(op.namespace)
    return person_name(op.namespace[position]) if named and position is not None else None


async def _put(memory: Memory, op: PutOp, person: str | None) -> None:
    name, conversation = name_of(op.namespace, op.key), folder_of(op.namespace)
    if op.value is None:
        await memory.cards.drop(_KIND, names=[name])
        return
    before = await memory.cards.get(_KIND, name)
    value = clean_json(op.value, "value")
    texts = texts_of(value, op.index)
    seq = -1
    if texts:
        about = {"key": op.key} if person is None else {"key": op.key, SOURCE_KEY: MEMORY}
        entry = Message.user("\n".join(texts), metadata=about)
        seq = (await memory.append(conversation, entry, person=person)).seq
    head = await memory.head(conversation)
    if head is None or head.project != PROJECT:
        await memory.describe(conversation, project=PROJECT)
    now = format_time(utc_now())
    created = parse_unique(before.body)["created_at"] if before else now
    body = {"value": value, "seq": seq, "created_at": created, "updated_at": now}
    card = Card(
        tenant=memory.tenant,
        kind=_KIND,
        name=name,
        body=json.dumps(body).encode(),
        conversation=conversation,
    )
    await memory.cards.put(card)


async def _search(memory: Memory, op: SearchOp) -> list[SearchItem]:
    wanted = op.offset + op.limit
    found: list[SearchItem] = []
    cards = _matching_cards(memory, op) if op.query else _all_cards(memory, op.namespace_prefix)
    async for card, score in cards:
        item = item_of(card)
        if holds(item.value, op.filter or {}):
            found.append(SearchItem(**fields_of(item), score=score))
        if len(found) >= wanted:
            break
    return found[op.offset : wanted]


async def _matching_cards(memory: Memory, op: SearchOp) -> AsyncIterator[tuple[Card, float | None]]:
    """The cards of items whose newest version matches the query, best first."""
    for hit in await _hits(memory, op.query or "", folder_of(op.namespace_prefix)):
        name = f"{hit.conversation}={quote(str(hit.entry.message.metadata.get('key')), safe='')}"
        card = await memory.cards.get(_KIND, name)
        if card and parse_unique(card.body)["seq"] == hit.seq:
            yield card, hit.score


async def _hits(memory: Memory, query: str, folder: str) -> list[Hit]:
    """Entries below a namespace that match the query, best first.

    A few namespaces are searched one by one, so that items of others cannot displace theirs.
    """
    behind = await memory.conversations(after=folder, limit=_NAMESPACES_MAX)
    names = [head.conversation for head in behind if head.conversation.startswith(folder)]
    if len(names) == _NAMESPACES_MAX or not folder:
        found = await memory.recall(None, query, limit=limits.PAGE_MAX, project=PROJECT)
        return [hit for hit in found if hit.conversation.startswith(folder)]
    if await memory.head(folder) is not None:
        names.append(folder)
    each = [await memory.recall(name, query, limit=limits.PAGE_MAX) for name in names]
    return sorted(chain(*each), key=lambda hit: -hit.score)


async def _all_cards(
    memory: Memory, prefix: tuple[str, ...]
) -> AsyncIterator[tuple[Card, float | None]]:
    """The cards of all items below a namespace, by name."""
    page: Sequence[Card] = ()
    while True:
        page = await memory.cards.find(
            _KIND,
            prefix=folder_of(prefix),
            after=page[-1].name if page else "",
            limit=limits.PAGE_MAX,
        )
        for card in page:
            yield card, None
        if len(page) < limits.PAGE_MAX:
            return


async def _namespaces(memory: Memory, op: ListNamespacesOp) -> list[tuple[str, ...]]:
    found = {item_of(card).namespace async for card, _ in _all_cards(memory, ())}
    conditions = op.match_conditions or ()
    fitting = {space for space in found if all(matches(space, c) for c in conditions)}
    shortened = sorted({space[: op.max_depth] for space in fitting})
    return shortened[op.offset : op.offset + op.limit]
