"""Claude's export: an array of conversations; since 2026 each message names its parent.

A message holds calls of tools and their results side by side; here they become messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from firnline.log.message import Part
from firnline.transfer.formats.blocks import Writer
from firnline.transfer.formats.cursor import records
from firnline.transfer.formats.records import (
    Found,
    Node,
    Notes,
    Said,
    Source,
    Tree,
    at_text,
    made,
    mapping,
    marked,
    objects,
    texts,
    timed,
)

FORMAT: Final = "claude"
_ROLES: Final = {"human": "user", "user": "user", "assistant": "assistant"}


def read(source: Source, notes: Notes) -> Iterator[Found]:
    """The conversations, each with all its branches."""
    for where, value in records(source, notes):
        messages = mapping(value).get("chat_messages")
        name = texts(mapping(value).get("uuid"))
        if not isinstance(messages, list) or not name:
            notes.wonder("a conversation without uuid or chat_messages", where)
            continue
        nodes = _nodes(messages, f"{where}, {name}", notes)
        yield Tree(name, texts(value.get("name")), nodes, _current(messages, nodes))


def _nodes(messages: list[Any], where: str, notes: Notes) -> dict[str, Node]:
    nodes: dict[str, Node] = {}
    branching = any(texts(mapping(one).get("parent_message_uuid")) for one in messages)
    before: str | None = None
    for number, message in enumerate(messages):
        key = texts(mapping(message).get("uuid"))
        if not key or key in nodes:
            notes.wonder("a message without a uuid of its own", f"{where}, message {number}")
            continue
        parent = texts(message.get("parent_message_uuid")) if branching else before
        said = tuple(_said(message, f"{where}, {key}", notes))
        nodes[key] = Node(parent or None, said)
        before = key
    return nodes


def _current(messages: list[Any], nodes: Mapping[str, Node]) -> str | None:
    """The newest message that nothing follows; of equally old ones, the last."""
    parents = {node.parent for node in nodes.values()}
    leaves = [
        (texts(message.get("created_at")), number, key)
        for number, message in enumerate(map(mapping, messages))
        if (key := texts(message.get("uuid"))) in nodes and key not in parents
    ]
    return max(leaves)[2] if leaves else None


def _said(message: Mapping[str, Any], where: str, notes: Notes) -> Iterator[Said]:
    key, role = message["uuid"], _ROLES.get(texts(message.get("sender")))
    if role is None:
        notes.wonder(f"a message of {message.get('sender')!r:.40}", where)
        return
    blocks = objects(message.get("content")) or [
        {"type": "text", "text": texts(message.get("text"))}
    ]
    writer = Writer(key, where, notes)
    for block in blocks:
        writer.take(block)
    for part in _attached(message):
        writer.add(part)
    time = timed(at_text(given := message.get("created_at")), given, where, notes)
    messages = writer.messages(role)
    if not messages:
        notes.leave("an empty message", where)
    for number, fields in enumerate(messages):
        said_id = f"{key}#{number}" if number else key
        about = marked(FORMAT, said_id)
        yield from made(where, notes, **fields, metadata=about, created_at=time)


def _attached(message: Mapping[str, Any]) -> Iterator[Part]:
    """Attached files: those with text as text, of others the name."""
    for file in objects(message.get("attachments")):
        name, text = texts(file.get("file_name")), texts(file.get("extracted_content"))
        yield Part.of_text(f"{name}\n{text}") if text else Part.file(name, filename=name)
    for file in objects(message.get("files")):
        name = texts(file.get("file_name"))
        yield Part.file(texts(file.get("file_uuid")) or name, filename=name)
