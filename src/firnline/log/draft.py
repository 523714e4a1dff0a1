"""Messages on their way into the log, with their time, their bytes and their tokens. Pure."""

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
    """The messages, each with its time, their canonical bytes, and how many those are."""
    if not 1 <= len(messages) <= limits.BATCH_MESSAGES_MAX:
        raise InputError(
            f"{len(messages):,} messages at once; 1 to {limits.BATCH_MESSAGES_MAX:,} are taken"
        )
    timed = [message if message.created_at else message.at(now) for message in messages]
    bodies = [encode(message) for message in timed]
    size = sum(map(len, bodies))
    if size > limits.BATCH_BYTES_MAX:
        raise MessageTooLarge(f"{size:,} bytes at once; {limits.BATCH_BYTES_MAX:,} are taken")
    return timed, bodies, size


def count_drafts(
    count: TokenCounter, messages: Sequence[Message], bodies: Sequence[bytes]
) -> list[EntryDraft]:
    """The same with their tokens. What cannot be pinned and is to be raises `InputError`."""
    drafts = []
    for message, body in zip(messages, bodies, strict=True):
        tokens = count.message(message)
        pinned = message.metadata.get("pinned") is True
        if pinned:
            check_pin(message)
        drafts.append(EntryDraft(message, body, int(tokens), tokens.tokenizer, pinned))
    return drafts
