"""Prepares messages for an append: their time, canonical bytes and token counts. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from firnline.errors import InputError, MessageTooLarge
from firnline.log import limits
from firnline.log.entry import EntryDraft
from firnline.log.message import Message, check_pin, encode
from firnline.log.tokens import TokenCounter


def encode_messages(
    messages: Sequence[Message], now: datetime
) -> tuple[list[Message], list[bytes], int]:
    """The messages, each with a time; their canonical bytes; and the total size in bytes."""
    if not 1 <= len(messages) <= limits.BATCH_MESSAGES_MAX:
        raise InputError(
            f"{len(messages):,} messages in one append; the limit is 1 to "
            f"{limits.BATCH_MESSAGES_MAX:,}"
        )
    timed = [message if message.created_at else message.at(now) for message in messages]
    bodies = [encode(message) for message in timed]
    size = sum(map(len, bodies))
    if size > limits.BATCH_BYTES_MAX:
        raise MessageTooLarge(
            f"{size:,} bytes in one append; the limit is {limits.BATCH_BYTES_MAX:,}"
        )
    return timed, bodies, size


def count_drafts(
    count: TokenCounter, messages: Sequence[Message], bodies: Sequence[bytes]
) -> list[EntryDraft]:
    """Drafts with token counts. `InputError` if a message is marked as pinned but cannot be."""
    drafts = []
    for message, body in zip(messages, bodies, strict=True):
        tokens = count.message(message)
        pinned = message.metadata.get("pinned") is True
        if pinned:
            check_pin(message)
        drafts.append(EntryDraft(message, body, int(tokens), tokens.tokenizer, pinned))
    return drafts
