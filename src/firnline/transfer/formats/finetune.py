"""OpenAI's JSON Lines for fine-tuning: each line is a conversation of OpenAI messages.

A line has no id, so its content is its id: the same line again is the same conversation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from firnline.errors import InputError
from firnline.log.message import Message, encode_json
from firnline.transfer.formats.cursor import records
from firnline.transfer.formats.records import (
    LinearConversation,
    Notes,
    SourceConversation,
    SourceFile,
    SourceMessage,
    as_dict,
    brief,
    source_metadata,
)

FORMAT: Final = "finetune"
_KNOWN: Final = frozenset(("messages", "tools", "parallel_tool_calls", "functions"))


def read(source: SourceFile, notes: Notes) -> Iterator[SourceConversation]:
    """The conversations, one for each line."""
    for where, value in records(source, notes):
        messages = as_dict(value).get("messages")
        if not isinstance(messages, list) or not messages:
            notes.reject("a line without messages", where)
            continue
        for name in value:
            if name != "messages":
                note = notes.skip if name in _KNOWN else notes.reject
                note(f"the field {name!r:.60} of a line", where)
        yield LinearConversation(brief(value), "", _messages(messages, where, notes))


def _messages(messages: list[Any], where: str, notes: Notes) -> Iterator[SourceMessage]:
    for number, fields in enumerate(messages):
        key = str(number)
        try:
            yield SourceMessage(
                key, Message.from_openai(fields, metadata=source_metadata(FORMAT, key))
            )
        except InputError as error:
            notes.reject("a message that cannot be stored", f"{where}, message {number}: {error}")


def message_line(message: Message) -> str:
    """An OpenAI message as JSON."""
    return encode_json(message.to_openai())
