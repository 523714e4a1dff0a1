"""Prepares messages for an append: their time, canonical bytes and token counts. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from firnline.errors import InputError, MessageTooLarge
from firnline.log import limits
from firnline.log.entry import EntryDraft, fingerprint
from firnline.log.message import Message, check_pin, encode
from firnline.log.threads import text_size
from firnline.log.tokens import TokenCounter


def messages_size(messages: object) -> int:
    """About how many characters an append has, as far as it can be seen without reading it."""
    if isinstance(messages, Message):
        messages = [messages]
    if not isinstance(messages, list | tuple):
        return text_size(messages)
    if len(messages) > limits.LOOP_CHARS_MAX // 8:
        return limits.LOOP_CHARS_MAX + 1  # whatever they say
    return text_size([_fields(each) if isinstance(each, Message) else each for each in messages])


def _fields(message: Message) -> tuple[object, ...]:
    content, calls = message.content, [call.fields for call in message.tool_calls]
    parts = [part.fields for part in content] if isinstance(content, tuple) else content
    return parts, calls, message.metadata, message.extra


def hash_messages(messages: Iterable[Message]) -> str:
    """A hash of an append's messages."""
    return fingerprint([encode(message) for message in messages])


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
