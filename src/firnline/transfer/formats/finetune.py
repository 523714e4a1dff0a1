"""OpenAI's JSON Lines for fine-tuning: a line is a conversation, its messages in the OpenAI shape.

Nothing in a line names it, so its content does: the same line again is the same conversation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from firnline.errors import InputError
from firnline.log.message import Message, encode_json
from firnline.transfer.formats.cursor import records
from firnline.transfer.formats.records import (
    Found,
    Line,
    Notes,
    Said,
    Source,
    brief,
    mapping,
    marked,
)

FORMAT: Final = "finetune"
_KNOWN: Final = frozenset(("messages", "tools", "parallel_tool_calls", "functions"))


def read(source: Source, notes: Notes) -> Iterator[Found]:
    """The conversations, one for each line."""
    for where, value in records(source, notes):
        messages = mapping(value).get("messages")
        if not isinstance(messages, list) or not messages:
            notes.wonder("a line without messages", where)
            continue
        for name in value:
            if name != "messages":
                note = notes.leave if name in _KNOWN else notes.wonder
                note(f"the field {name!r:.60} of a line", where)
        yield Line(brief(value), "", _said(messages, where, notes))


def _said(messages: list[Any], where: str, notes: Notes) -> Iterator[Said]:
    for number, fields in enumerate(messages):
        key = str(number)
        try:
            yield Said(key, Message.from_openai(fields, metadata=marked(FORMAT, key)))
        except InputError as error:
            notes.wonder("a message that cannot be stored", f"{where}, message {number}: {error}")


def message_line(message: Message) -> str:
    """A message in the OpenAI shape, as JSON."""
    return encode_json(message.to_openai())
