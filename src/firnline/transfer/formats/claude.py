"""Claude's export: an array of conversations; since 2026 each message names its parent.

A message has tool calls and their results; here they become separate messages. What Claude noted
of the user (`memories.json`) is a conversation of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from firnline.digest.fact import MEMORY, SOURCE_KEY
from firnline.log.message import Part
from firnline.transfer.formats.blocks import BlockConverter
from firnline.transfer.formats.cursor import records
from firnline.transfer.formats.records import (
    ConversationTree,
    LinearConversation,
    Notes,
    SourceConversation,
    SourceFile,
    SourceMessage,
    TreeNode,
    as_dict,
    as_objects,
    as_text,
    brief,
    build_message,
    checked_time,
    source_metadata,
    time_from_iso,
)

FORMAT: Final = "claude"
_ROLES: Final = {"human": "user", "user": "user", "assistant": "assistant"}


def read(source: SourceFile, notes: Notes) -> Iterator[SourceConversation]:
    """The conversations, each with all branches, and the notes of the user."""
    for where, value in records(source, notes):
        if is_memory(as_dict(value)):
            yield LinearConversation("memories", "Claude's memory", _memories(value, where, notes))
            continue
        messages = as_dict(value).get("chat_messages")
        name = as_text(as_dict(value).get("uuid"))
        if not isinstance(messages, list) or not name:
            notes.reject("a conversation without uuid or chat_messages", where)
            continue
        nodes = _nodes(messages, f"{where}, {name}", notes)
        yield ConversationTree(name, as_text(value.get("name")), nodes, _current(messages, nodes))


def is_memory(value: Mapping[str, Any]) -> bool:
    """Whether a record has what Claude noted of the user."""
    return isinstance(value.get("conversations_memory"), str) or isinstance(
        value.get("project_memories"), dict
    )


def _memories(value: Mapping[str, Any], where: str, notes: Notes) -> Iterator[SourceMessage]:
    """The notes, and those of each project; a changed note is another message."""
    projects = as_dict(value.get("project_memories"))
    texts = {"": value.get("conversations_memory"), **projects}
    for project, text in texts.items():
        if not as_text(text).strip():
            continue
        about = source_metadata(FORMAT, f"memory-{brief(project, text)}", project=project or None)
        about[SOURCE_KEY] = MEMORY
        yield from build_message(where, notes, role="assistant", content=text, metadata=about)


def _nodes(messages: list[Any], where: str, notes: Notes) -> dict[str, TreeNode]:
    nodes: dict[str, TreeNode] = {}
    branching = any(as_text(as_dict(one).get("parent_message_uuid")) for one in messages)
    before: str | None = None
    for number, message in enumerate(messages):
        key = as_text(as_dict(message).get("uuid"))
        if not key or key in nodes:
            notes.reject("a message without a unique uuid", f"{where}, message {number}")
            continue
        parent = as_text(message.get("parent_message_uuid")) if branching else before
        said = tuple(_messages(message, f"{where}, {key}", notes))
        nodes[key] = TreeNode(parent or None, said)
        before = key
    return nodes


def _current(messages: list[Any], nodes: Mapping[str, TreeNode]) -> str | None:
    """The newest message without a reply; of equal ones, the last."""
    parents = {node.parent for node in nodes.values()}
    leaves = [
        (as_text(message.get("created_at")), number, key)
        for number, message in enumerate(map(as_dict, messages))
        if (key := as_text(message.get("uuid"))) in nodes and key not in parents
    ]
    return max(leaves)[2] if leaves else None


def _messages(message: Mapping[str, Any], where: str, notes: Notes) -> Iterator[SourceMessage]:
    key, role = message["uuid"], _ROLES.get(as_text(message.get("sender")))
    if role is None:
        notes.reject(f"a message with the sender {message.get('sender')!r:.40}", where)
        return
    blocks = as_objects(message.get("content")) or [
        {"type": "text", "text": as_text(message.get("text"))}
    ]
    converter = BlockConverter(key, where, notes)
    for block in blocks:
        converter.add_block(block)
    for part in _attachments(message):
        converter.add(part)
    time = checked_time(time_from_iso(given := message.get("created_at")), given, where, notes)
    messages = converter.messages(role)
    if not messages:
        notes.skip("an empty message", where)
    for number, fields in enumerate(messages):
        message_id = f"{key}#{number}" if number else key
        about = source_metadata(FORMAT, message_id)
        yield from build_message(where, notes, **fields, metadata=about, created_at=time)


def _attachments(message: Mapping[str, Any]) -> Iterator[Part]:
    """Attached files: their text, or else their name."""
    for file in as_objects(message.get("attachments")):
        name, text = as_text(file.get("file_name")), as_text(file.get("extracted_content"))
        yield Part.of_text(f"{name}\n{text}") if text else Part.file(name, filename=name)
    for file in as_objects(message.get("files")):
        name = as_text(file.get("file_name"))
        yield Part.file(as_text(file.get("file_uuid")) or name, filename=name)
