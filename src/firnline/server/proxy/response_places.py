"""Where responses and their items are in the log: what the ids that clients send back lead to.

A card next to the log says which entries belong to a response, and repeats what the response says
of its request. The log decides: a response whose server was killed is found there, too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from firnline.context.marks import INTERRUPTED
from firnline.errors import InputError, NotFound, StoreCorrupt
from firnline.log import zstd
from firnline.log.entry import Card, Entry
from firnline.log.json_text import dump_json
from firnline.log.message import Message
from firnline.log.openai_items import items_of
from firnline.log.wire import parse_unique
from firnline.memory import Memory
from firnline.server.proxy import limits
from firnline.server.proxy.limits import SAME_ITEMS_MAX
from firnline.server.proxy.response_events import NO_USAGE, Item, finished
from firnline.server.streams import STOPPED

RESPONSE: Final = "response"
"""The kind of the cards of responses, and the metadata field of an answer with its response."""
ITEM: Final = "item"
COMPACTION: Final = "response.compaction"
"""The object whose place is that of a history, and which has no answer."""
_PREFIXES: Final = {"message": "msg", "function_call": "fc", "reasoning": "rs"}
_ID_DIGITS: Final = 12
_ID_CHARS_MIN: Final = 16
"""Shorter ids of an endpoint are not random, so they may mean several items."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponsePlace:
    """The entries of a response: its input begins at `first` and ends at `question`.

    `answer` is -1 until the answer is stored. `leading` are items of the application that are not
    in the log, but in every context that continues the response. `head` is the response without
    its output, `owner` the process that answers it.
    """

    conversation: str
    first: int
    question: int
    head: Mapping[str, Any]
    answer: int = -1
    leading: tuple[Item, ...] = ()
    owner: str = ""

    @property
    def id(self) -> str:
        """The response's id."""
        return str(self.head["id"])

    @property
    def end(self) -> int:
        """The last entry of it: a request that continues it does so behind that one."""
        return max(self.answer, self.question)

    @classmethod
    def of(cls, card: Card) -> ResponsePlace:
        """The place that a card keeps."""
        try:
            fields = parse_unique(zstd.decompress(card.body, limits.ANSWER_BYTES_MAX))
        except ValueError as error:
            raise StoreCorrupt("the place of a response cannot be read") from error
        return cls(**{**fields, "leading": tuple(fields["leading"])})

    def card(self, tenant: str) -> Card:
        """The card that keeps it."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        body = zstd.compress(dump_json(fields).encode())
        return Card(
            tenant=tenant,
            kind=RESPONSE,
            name=card_name(self.id),
            body=body,
            conversation=self.conversation,
        )


def item_cards(tenant: str, entry: Entry, conversation: str) -> Iterator[Card]:
    """Cards that lead from the items of an entry to it."""
    body = json.dumps([conversation, entry.seq]).encode()
    for item in items_of(entry.message):
        item_id = item.get("id")
        if isinstance(item_id, str) and len(item_id) >= _ID_CHARS_MIN:
            yield Card(
                tenant=tenant,
                kind=ITEM,
                name=f"{card_name(item_id)}/{card_name(conversation)}",
                body=body,
                conversation=conversation,
            )


def card_name(given: str) -> str:
    """A name for a card: ids of other providers can be longer than names are."""
    return hashlib.blake2b(given.encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()


# -- finding ----------------------------------------------------------------------------------


async def find_response(memory: Memory, response_id: str) -> ResponsePlace:
    """The place of a response; `NotFound` if there is none."""
    card = await memory.cards.get(RESPONSE, card_name(response_id))
    if card is None:
        raise NotFound(f"Response with id {response_id[:80]!r} not found.")
    place = ResponsePlace.of(card)
    if place.answer >= 0 or place.head["object"] == COMPACTION:
        return place
    log = await memory.read(
        place.conversation, first_seq=place.question + 1, limit=limits.ENTRIES_BEYOND
    )
    answer = next((entry for entry in log if _answers(entry.message, place.id)), None)
    return replace(place, answer=answer.seq) if answer else place


def _answers(message: Message, response_id: str) -> bool:
    """Whether a message is the answer, or what there was of it when the server was killed."""
    if message.role != "assistant":
        return False
    return message.metadata.get(RESPONSE) == response_id or INTERRUPTED in message.metadata


async def read_response(memory: Memory, place: ResponsePlace) -> Item:
    """The response with its output."""
    if place.answer < 0:
        return {**place.head, "output": []}
    (entry,) = await memory.read_at(place.conversation, [place.answer])
    if entry.erased_at is not None:
        raise NotFound(f"Response with id {place.id!r} was erased.")
    output = listed_items(entry)
    if place.head["status"] != "in_progress":
        return {**place.head, "output": output}
    why = entry.message.metadata.get(INTERRUPTED)
    if why is None:  # the server was killed when the answer was stored, and its card was not
        return finished(place.head, output, "", usage=NO_USAGE)
    response = {**place.head, "output": output}
    return {**response, "status": "cancelled"} if why == STOPPED else failed_response(response)


def failed_response(response: Mapping[str, Any]) -> Item:
    """The response if there will be no more of its answer."""
    message = "the answer was interrupted; what there was of it is in the output"
    return {**response, "status": "failed", "error": {"code": "server_error", "message": message}}


async def find_item(
    memory: Memory, item_id: str, conversation: str | None = None
) -> tuple[Entry, Item]:
    """The entry with an item, and the item; `NotFound` if there is none in this conversation."""
    for found, seq in await _places_of(memory, item_id, conversation):
        for entry in await memory.read(found, first_seq=seq, last_seq=seq):
            for item in listed_items(entry):
                if item["id"] == item_id:
                    return entry, item
    raise NotFound(f"Item with id {item_id[:80]!r} not found.")


async def _places_of(
    memory: Memory, item_id: str, conversation: str | None
) -> list[tuple[str, int]]:
    """Where an item may be; an endpoint that uses an id twice must not mix up conversations."""
    prefix = f"{card_name(item_id)}/"
    cards = await memory.cards.find(ITEM, prefix=prefix, limit=SAME_ITEMS_MAX)
    places: list[tuple[str, int]] = [tuple(parse_unique(card.body)) for card in cards]
    if conversation is None:
        if len(places) > 1:
            raise InputError(f"item {item_id[:80]!r} is in several conversations; send it whole")
        return places
    # A branch has copies of the items, at the same places.
    seqs = [seq for found, seq in places if found == conversation] or [seq for _, seq in places]
    made = _seq_in(item_id)
    return [(conversation, seq) for seq in (*seqs, *([] if made is None else [made]))]


# -- items as clients get them ----------------------------------------------------------------


def listed_items(entry: Entry) -> list[Item]:
    """The items of an entry as they came, with the fields that every item has when it is read."""
    if entry.erased_at is not None:
        return []
    cut = INTERRUPTED in entry.message.metadata
    items = items_of(entry.message)
    return [_listed(item, entry, at, cut=cut) for at, item in enumerate(items)]


def _listed(item: Item, entry: Entry, at: int, *, cut: bool) -> Item:
    kind = item.get("type") or "message"
    found = {**item, "type": kind}
    if not found.get("id"):
        prefix = _PREFIXES.get(kind, "item")
        found["id"] = f"{prefix}_{entry.hash[:32]}{entry.seq:010x}{at:02x}"
    if kind == "message":
        found.setdefault("status", "incomplete" if cut else "completed")
        if isinstance(found.get("content"), str):
            text = {"text": found["content"]}
            if found["role"] == "assistant":
                part: Item = {"type": "output_text", **text, "annotations": [], "logprobs": []}
            else:
                part = {"type": "input_text", **text}
            found["content"] = [part]
    elif kind.endswith(("_call", "_call_output")):
        found.setdefault("status", "completed")
    return found


def _seq_in(item_id: str) -> int | None:
    """The entry in an id that `listed_items` made."""
    digits = item_id[-_ID_DIGITS:-2]
    try:
        return int(digits, 16)
    except ValueError:
        return None


async def list_items(
    memory: Memory, conversation: str, seqs: tuple[int, int], query: ItemQuery
) -> Item:
    """A page of the items of these entries, in OpenAI's shape."""
    first, last = seqs
    backward, skipping = query.order == "desc", ""
    if query.after:
        entry, _ = await find_item(memory, query.after, conversation)
        skipping = query.after
        first, last = (first, min(last, entry.seq)) if backward else (max(first, entry.seq), last)
    found: list[Item] = []
    while first <= last and len(found) <= query.limit:
        size = query.limit + 1
        span = (max(last - size + 1, first), last) if backward else (first, first + size - 1)
        page = await memory.read(conversation, first_seq=span[0], last_seq=min(span[1], last))
        items = [item for entry in page for item in listed_items(entry)]
        for item in reversed(items) if backward else items:
            if skipping:
                skipping = "" if item["id"] == skipping else skipping
            else:
                found.append(item)
        first, last = (first, span[0] - 1) if backward else (span[1] + 1, last)
    return item_page(found[: query.limit], more=len(found) > query.limit)


def item_page(items: Sequence[Item], *, more: bool = False) -> Item:
    """A list of items in OpenAI's shape."""
    ends = {"first_id": items[0]["id"], "last_id": items[-1]["id"]} if items else {}
    empty = {"first_id": "", "last_id": ""}
    return {"object": "list", "data": list(items), "has_more": more, **empty, **ends}


@dataclass(frozen=True, slots=True)
class ItemQuery:
    """Which items of a list: at most `limit` behind the item `after`."""

    after: str = ""
    limit: int = 20
    order: str = "desc"
