"""The exact prompt of every turn that the server took part in, kept so that it can be looked at.

What a prompt shows of the log word for word is kept as sequence numbers alone: the log does not
change. The rest, digests' texts and the like, is kept as it was. A hash over the whole proves that
what is shown later is what the model was given.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

import zstandard

from firnline.context.context import Context
from firnline.engine.turn import Turn
from firnline.errors import StoreCorrupt
from firnline.log import limits
from firnline.log.entry import Card
from firnline.log.message import Message, encode_json, format_time
from firnline.memory import Memory

logger: Final = logging.getLogger("firnline.server")

KIND: Final = "prompt"
_LAST: Final = (1 << limits.SEQ_BITS) - 1
_VERSION: Final = 1
_LEVEL: Final = 3
_BYTES_MAX: Final = 64 * 1024 * 1024


def name_of(conversation: str, seq: int | None = None) -> str:
    """The name of the card for the answer `seq`; without it, how all names of it begin.

    Names of newer answers sort before those of older ones, as they are looked at.
    """
    about = hashlib.blake2b(conversation.encode(), digest_size=12).hexdigest()
    return f"{about}/" if seq is None else f"{about}/{_LAST - seq:010d}"


async def record(memory: Memory, context: Context, seq: int, **facts: Any) -> None:
    """Keep the prompt that the answer `seq` came from, and what else is known of the turn."""
    card = Card(
        tenant=memory.tenant,
        kind=KIND,
        name=name_of(context.conversation, seq),
        body=packed(context, {"answer": seq, **facts}),
        conversation=context.conversation,
    )
    await memory.cards.put(card)


async def keep(memory: Memory, context: Context, seq: int, **facts: Any) -> None:
    """The same; but the answer is there already, so trouble is logged and not raised."""
    try:
        await record(memory, context, seq, **facts)
    except Exception:
        logger.exception("the prompt of a turn cannot be kept")


async def keep_turn(memory: Memory, turn: Turn, model: str, via: str) -> None:
    """The same for a turn that `model` answered; an earlier try has kept what it answered."""
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
    await keep(memory, turn.context, turn.answer.seq, **facts)


async def recorded(memory: Memory, conversation: str, seq: int) -> dict[str, Any] | None:
    """The prompt of the answer `seq` with all its messages, or None if there is no record."""
    name = name_of(conversation, seq)
    card = await memory.cards.get(KIND, name)
    if card is None:
        return None
    kept = _read(card)
    seqs = sorted({piece["seq"] for piece in kept["pieces"] if piece["seq"] is not None})
    entries = await memory.read_at(conversation, seqs)
    return filled(kept, {entry.seq: entry.message for entry in entries})


async def turns(
    memory: Memory, conversation: str, *, before: int | None = None, limit: int = 100
) -> list[dict[str, Any]]:
    """What is recorded of the answers before `before`, newest first, without their messages."""
    found = await memory.cards.find(
        KIND,
        prefix=name_of(conversation),
        after="" if before is None else name_of(conversation, before),
        limit=limit,
    )
    return [_read(card) for card in found]


def _read(card: Card) -> dict[str, Any]:
    time = format_time(card.updated_at) if card.updated_at else None
    return {**unpacked(card.body), "recorded_at": time}


def packed(context: Context, facts: Mapping[str, Any]) -> bytes:
    """A context as it is kept."""
    where = {id(piece): section.name for section in context.sections for piece in section.pieces}
    pieces = [
        {
            "section": where[id(piece)],
            "tokens": piece.tokens,
            "seq": piece.entry.seq if piece.entry and piece.whole else None,
            "message": None if piece.entry and piece.whole else piece.message.to_openai(),
            "of": piece.entry.seq if piece.entry else None,
        }
        for piece in context.pieces
    ]
    kept = {
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
        "sha256": _digest([message.to_openai() for message in context.messages]),
        "pieces": pieces,
    }
    return zstandard.ZstdCompressor(level=_LEVEL).compress(json.dumps(kept).encode())


def unpacked(body: bytes) -> dict[str, Any]:
    """What was packed; `StoreCorrupt` if it is something else."""
    try:
        plain = zstandard.ZstdDecompressor().decompress(body, max_output_size=_BYTES_MAX)
        kept: dict[str, Any] = json.loads(plain)
    except (zstandard.ZstdError, ValueError) as error:
        raise StoreCorrupt("a recorded prompt cannot be read") from error
    return kept


def filled(kept: dict[str, Any], said: Mapping[int, Message]) -> dict[str, Any]:
    """The record with every message in it; `StoreCorrupt` if it is not what the model was given."""
    pieces = [
        piece if piece["seq"] is None else {**piece, "message": _shape(said, piece["seq"])}
        for piece in kept["pieces"]
    ]
    if _digest([piece["message"] for piece in pieces]) != kept["sha256"]:
        raise StoreCorrupt("a recorded prompt is not the one that was sent")
    return {**kept, "pieces": pieces}


def _shape(said: Mapping[int, Message], seq: int) -> dict[str, Any] | None:
    return said[seq].to_openai() if seq in said else None


def _digest(messages: Sequence[Any]) -> str:
    return hashlib.sha256(encode_json(list(messages)).encode()).hexdigest()
