"""Entries as the REST API sends them, for the server and the client. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any, Final, NamedTuple

from firnline.log.entry import Entry
from firnline.log.message import Message, format_time, parse_time


class Doc(NamedTuple):
    """What the OpenAPI document says about a field."""

    text: str = ""
    example: Any = None


HASH: Final = Doc("", "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd1")


@dataclass(frozen=True, slots=True, kw_only=True)
class WireEntry:
    """A message at a sequence number."""

    seq: Annotated[int, Doc("", 0)]
    created_at: Annotated[datetime | None, Doc("When the message was sent.")]
    tokens: Annotated[int, Doc("", 14)]
    total: Annotated[int, Doc("Tokens of this message and all messages before it.", 14)]
    tokenizer: Annotated[str, Doc("A trailing `~` marks an estimate.", "o200k_base")]
    hash: Annotated[str, HASH._replace(text="Covers this message and all messages before it.")]
    archived: Annotated[bool, Doc("Whether it is stored in a compressed segment.")]
    erased_at: Annotated[
        datetime | None, Doc("When it was erased; then its message is empty and has no tokens.")
    ]
    normalised: Annotated[bool, Doc("Whether its text was changed so that it can be stored.")]
    metadata: dict[str, Any]
    message: dict[str, Any]


_ENTRY_FIELDS: Final = ("seq", "tokens", "total", "tokenizer", "hash", "archived")


def encode_entry(entry: Entry) -> dict[str, Any]:
    """The message as the JSON of a `WireEntry`."""
    message = entry.message
    return {
        **{name: getattr(entry, name) for name in _ENTRY_FIELDS},
        "created_at": format_time(message.created_at) if message.created_at else None,
        "erased_at": format_time(entry.erased_at) if entry.erased_at else None,
        "normalised": message.normalised,
        "metadata": message.metadata,
        "message": message.to_openai(),
    }


def decode_entry(value: Any) -> Entry:
    """The message that the JSON of a `WireEntry` stands for."""
    created_at = value["created_at"]
    message = Message.from_openai(
        value["message"],
        created_at=parse_time(created_at) if created_at else None,
        metadata=value["metadata"],
    )
    if value["normalised"]:
        message = replace(message, normalised=True)
    erased_at = value.get("erased_at")
    erased = parse_time(erased_at) if erased_at else None
    return Entry(message=message, erased_at=erased, **{name: value[name] for name in _ENTRY_FIELDS})
