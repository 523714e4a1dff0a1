"""Erasing an item or a response: what was not asked for stays.

A call of a tool and its results are one unit in the log, and the items of one answer are one entry.
So the rest of them is stored again behind the log, before the original is erased; in the middle of
a conversation, it is a conflict.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import chain

from firnline.context.plan import with_pairs
from firnline.errors import ConflictError, NotFound
from firnline.log.entry import Card, Entry, Head, live, runs
from firnline.log.limits import TOOL_CALL_REACH
from firnline.log.message import Message
from firnline.log.openai_items import items_of, messages_of, output_message
from firnline.memory import Memory
from firnline.server.proxy.response_events import Item
from firnline.server.proxy.response_places import (
    RESPONSE,
    ResponsePlace,
    card_name,
    find_item,
    find_response,
    item_cards,
    listed_items,
)


async def erase_item(memory: Memory, head: Head, item_id: str) -> None:
    """Erase an item of a conversation; `ConflictError` if others would have to go with it."""
    conversation = head.conversation
    entry, _ = await find_item(memory, item_id, conversation)
    log = live(await _read_around(memory, conversation, entry.seq, entry.seq))
    seqs = with_pairs(log, {entry.seq})
    erased = [each for each in log if each.seq in seqs]
    rest = [(each, _items_without(each, item_id)) for each in erased]
    left = [(each, items) for each, items in rest if items]
    behind = [each for each in log if each.seq > min(seqs) and each.seq not in seqs]
    if left and (behind or log[-1].seq < head.seq):
        ids = ", ".join(str(item["id"]) for _, items in left for item in items)
        raise ConflictError(
            f"{item_id} cannot be erased alone: {ids} would go with it, because a call and its"
            " results are erased together, and so are the items of one answer. Delete the newer"
            " items first, or erase all of these: DELETE /api/v1/conversations/NAME/messages/"
            f"{entry.seq}"
        )
    if left:
        await _store_again(memory, head, left)
    await _erase(memory, conversation, seqs)


async def erase_response(memory: Memory, place: ResponsePlace) -> None:
    """Erase the entries of a response, except what belongs to another one, too."""
    first = place.first if place.first >= 0 else place.question
    log = live(await _read_around(memory, place.conversation, max(first, 0), place.end))
    seqs = with_pairs(log, _entries_of(place, log))
    ids = {entry.message.metadata.get(RESPONSE) for entry in log} - {None, place.id}
    others = await memory.cards.find(RESPONSE, names=[card_name(str(each)) for each in ids])
    of_others = (_entries_of(ResponsePlace.of(card), log) for card in others)
    shared = seqs.intersection(chain.from_iterable(of_others))
    await _erase(memory, place.conversation, seqs - with_pairs(log, shared))


def _entries_of(place: ResponsePlace, log: Sequence[Entry]) -> set[int]:
    """The entries of a response that are in the log: its input and its answer.

    A request that was sent again added no input: it is that of the first time.
    """
    first = place.first if place.first >= 0 else place.question
    inputs = {
        entry.seq
        for entry in log
        if first <= entry.seq <= place.question
        and (place.first >= 0 or entry.message.role != "assistant")
    }
    return inputs | {entry.seq for entry in log if entry.seq == place.answer}


async def _read_around(memory: Memory, conversation: str, first: int, last: int) -> list[Entry]:
    """The entries, and those near them that may be calls or results of theirs."""
    span = max(first - TOOL_CALL_REACH, 0), last + TOOL_CALL_REACH
    return list(await memory.read(conversation, first_seq=span[0], last_seq=span[1]))


async def _erase(memory: Memory, conversation: str, seqs: Collection[int]) -> None:
    for first, last in runs(sorted(seqs)):
        await memory.erase_messages(conversation, first, last)


# -- what stays -------------------------------------------------------------------------------


def _items_without(entry: Entry, item_id: str) -> list[Item]:
    """The other items of an entry, under the ids that clients know."""
    pairs = zip(items_of(entry.message), listed_items(entry), strict=True)
    return [{**item, "id": listed["id"]} for item, listed in pairs if listed["id"] != item_id]


async def _store_again(
    memory: Memory, head: Head, left: Sequence[tuple[Entry, list[Item]]]
) -> None:
    """Store items behind the log, with what is known of them; their ids lead there from now on."""
    messages = [_rebuild(entry.message, items) for entry, items in left]
    stored = await memory.append(head.conversation, messages, expected_seq=head.seq + 1)
    cards: list[Card] = []
    for (_, _), entry in zip(left, stored, strict=True):
        cards += item_cards(memory.tenant, entry, head.conversation)
        if response_id := entry.message.metadata.get(RESPONSE):
            cards += await _moved(memory, str(response_id), entry.seq)
    await memory.cards.put(*cards)


def _rebuild(message: Message, items: Sequence[Item]) -> Message:
    rebuilt = output_message(items) if message.role == "assistant" else messages_of(items)[0]
    return replace(rebuilt, metadata={**message.metadata, **rebuilt.metadata})


async def _moved(memory: Memory, response_id: str, answer: int) -> list[Card]:
    """The card of a response whose answer is another entry now, if the response is still there."""
    try:
        place = await find_response(memory, response_id)
    except NotFound:
        return []
    return [replace(place, answer=answer).card(memory.tenant)]
