"""Records of the exact prompt of every turn that the server handled.

Messages that are in the log word for word are recorded as sequence numbers, because the log does
not change; the rest, such as texts of digests, is recorded in full. What is from another
conversation of the project is recorded by its place alone, so that erasing that conversation erases
it. A hash over all recorded messages proves that a record is what was sent to the model.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, Final

from firnline.context.context import Context, Piece
from firnline.engine.turn import Turn
from firnline.errors import StoreCorrupt
from firnline.log import zstd
from firnline.log.draft import messages_size
from firnline.log.entry import Card
from firnline.log.json_text import dump_json
from firnline.log.message import Message, encode_json, format_time
from firnline.log.threads import run_by_size
from firnline.log.wire import parse_unique
from firnline.memory import Memory
from firnline.server.limits import PROMPT_BYTES_MAX
from firnline.store.cards import PROMPT, prompt_name

logger: Final = logging.getLogger("firnline.server")

KIND: Final = PROMPT
_VERSION: Final = 1


async def record(memory: Memory, context: Context, seq: int, **facts: Any) -> None:
    """Record the prompt behind the answer `seq`, with more facts about the turn."""
    packing = partial(pack, context, {"answer": seq, **facts})
    size = messages_size([piece.message for piece in context.pieces])
    card = Card(
        tenant=memory.tenant,
        kind=KIND,
        name=prompt_name(context.conversation, seq),
        body=await run_by_size(size, packing),
        conversation=context.conversation,
    )
    await memory.cards.put(card)


async def try_record(memory: Memory, context: Context, seq: int, **facts: Any) -> None:
    """Record a prompt; an error is logged, not raised, because the answer is already stored."""
    try:
        await record(memory, context, seq, **facts)
    except Exception:
        logger.exception("prompt: cannot record it")


async def record_turn(memory: Memory, turn: Turn, model: str, via: str) -> None:
    """Record the prompt of a turn, unless an earlier request has answered it."""
    if not turn.calls:
        return
    facts = {
        "question": turn.question.seq,
        "model": model,
        "via": via,
        "calls": turn.calls,
        "prompt_tokens": turn.prompt_tokens,
        "completion_tokens": turn.completion_tokens,
    }
    await try_record(memory, turn.context, turn.answer.seq, **facts)


async def read(memory: Memory, conversation: str, seq: int) -> dict[str, Any] | None:
    """The record of the answer `seq` with all messages, or None."""
    name = prompt_name(conversation, seq)
    card = await memory.cards.get(PROMPT, name)
    if card is None:
        return None
    record = _from_card(card)
    seqs = sorted({piece["seq"] for piece in record["pieces"] if piece["seq"] is not None})
    entries = await memory.read_at(conversation, seqs)
    return fill(record, {entry.seq: entry.message for entry in entries})


async def list_records(
    memory: Memory, conversation: str, *, before: int | None = None, limit: int = 100
) -> list[dict[str, Any]]:
    """The records of the answers before `before`, newest first, without their messages."""
    found = await memory.cards.find(
        KIND,
        prefix=prompt_name(conversation),
        after="" if before is None else prompt_name(conversation, before),
        limit=limit,
    )
    return [_from_card(card) for card in found]


def _from_card(card: Card) -> dict[str, Any]:
    time = format_time(card.updated_at) if card.updated_at else None
    return {**unpack(card.body), "recorded_at": time}


def pack(context: Context, facts: Mapping[str, Any]) -> bytes:
    """A record as bytes."""
    where = {id(piece): section.name for section in context.sections for piece in section.pieces}
    pieces = [
        {
            "section": where[id(piece)],
            "tokens": piece.tokens,
            "seq": piece.entry.seq if piece.entry and piece.whole else None,
            "message": None if piece.entry and piece.whole else _recorded(piece),
            "of": piece.entry.seq if piece.entry else None,
        }
        for piece in context.pieces
    ]
    record = {
        "version": _VERSION,
        **facts,
        "strategy": context.strategy,
        "reason": context.reason,
        "budget": asdict(context.budget),
        "tokens": context.tokens,
        "whole_tokens": context.whole_tokens,
        "accounting": asdict(context.accounting),
        "sections": [
            {"name": section.name, "tokens": section.tokens, "why": section.why}
            for section in context.sections
        ],
        "left_out": [{"what": what, "why": why} for what, why in context.left_out],
        "degraded": list(context.degraded),
        "stability": context.stability,
        "hits": [
            {
                "conversation": hit.conversation,
                "seq": hit.seq,
                "score": hit.score,
                "parts": dict(hit.parts),
            }
            for hit in context.hits
        ],
        "sha256": _digest([_recorded(piece) for piece in context.pieces]),
        "pieces": pieces,
    }
    return zstd.compress(dump_json(record).encode())


def _recorded(piece: Piece) -> dict[str, Any]:
    """The message of a piece; of one from another conversation, its role and its place."""
    if not piece.origin:
        return piece.message.to_openai()
    return {"role": piece.message.role, "content": f"({piece.origin}, of the same project)"}


def unpack(body: bytes) -> dict[str, Any]:
    """The record in these bytes; `StoreCorrupt` if they are none."""
    try:
        plain = zstd.decompress(body, PROMPT_BYTES_MAX)
        record: dict[str, Any] = parse_unique(plain)
    except ValueError as error:
        raise StoreCorrupt("a recorded prompt cannot be read") from error
    return record


def fill(record: dict[str, Any], messages: Mapping[int, Message]) -> dict[str, Any]:
    """The record with all messages; `StoreCorrupt` if they do not match its hash."""
    pieces = [
        piece if piece["seq"] is None else {**piece, "message": _message(messages, piece["seq"])}
        for piece in record["pieces"]
    ]
    if _digest([piece["message"] for piece in pieces]) != record["sha256"]:
        raise StoreCorrupt("a recorded prompt does not match its hash")
    return {**record, "pieces": pieces}


def _message(messages: Mapping[int, Message], seq: int) -> dict[str, Any] | None:
    return messages[seq].to_openai() if seq in messages else None


def _digest(messages: Sequence[Any]) -> str:
    return hashlib.sha256(encode_json(list(messages)).encode()).hexdigest()
