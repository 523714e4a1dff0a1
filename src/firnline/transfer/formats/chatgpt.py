"""ChatGPT's export: an array of conversations, each a tree of messages.

A tool call is a message to a recipient other than "all"; the tool's result is its child, one on
each branch, and may be empty. The custom instructions are hidden in every conversation; all their
versions become one conversation, as the user's own words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from firnline.digest.fact import INSTRUCTIONS, SOURCE_KEY
from firnline.log import limits
from firnline.log.message import EPOCH, Part, ToolCall
from firnline.log.regex import regex
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
    as_list,
    as_objects,
    as_text,
    brief,
    build_message,
    checked_time,
    source_metadata,
    time_from_seconds,
)

FORMAT: Final = "chatgpt"
_CONTEXT_FIELDS: Final = (
    ("about_user_message", "user_profile"),
    ("about_model_message", "user_instructions"),
)
_FRAMED: Final = regex(r"```\n?(?P<text>.*?)\n?```", re.DOTALL)
"""What the user wrote, within what ChatGPT tells its model of it."""
_PLAIN: Final = ("code", "execution_output", "system_error", "computer_output", "sonic_webpage")


def read(source: SourceFile, notes: Notes) -> Iterator[SourceConversation]:
    """The conversations, each with all branches, and the custom instructions."""
    instructions: dict[str, datetime | None] = {}
    for where, value in records(source, notes):
        nodes = value.get("mapping") if isinstance(value, dict) else None
        name = as_text(as_dict(value).get("conversation_id") or as_dict(value).get("id"))
        if not isinstance(nodes, dict) or not name:
            notes.reject("a conversation without id or messages", where)
            continue
        nodes = {key: node for key, node in nodes.items() if isinstance(node, dict)}
        started = value.get("create_time")
        for text in _custom_instructions(nodes):
            _note_version(instructions, text, time_from_seconds(started))
        found = {
            key: TreeNode(
                as_text(node.get("parent")) or None,
                tuple(_messages(key, nodes, started, f"{where}, {name}, {key}", notes)),
            )
            for key, node in nodes.items()
        }
        yield ConversationTree(name, as_text(value.get("title")), found, _current(value, nodes))
    if instructions:
        versions = _versions(instructions, source.name, notes)
        yield LinearConversation("custom-instructions", "custom instructions", versions)


# -- custom instructions ----------------------------------------------------------------------


def _custom_instructions(nodes: Mapping[str, Any]) -> Iterator[str]:
    """What the user wrote of themselves, and how answers should be, without the frame around it."""
    for node in nodes.values():
        message = as_dict(node.get("message"))
        content = as_dict(message.get("content"))
        if content.get("content_type") != "user_editable_context":
            continue
        given = as_dict(as_dict(message.get("metadata")).get("user_context_message_data"))
        for plain, framed in _CONTEXT_FIELDS:
            text = as_text(given.get(plain)) or as_text(content.get(framed))
            inner = _FRAMED.search(text)
            if text := (inner["text"] if inner else text).strip():
                yield text


def _note_version(found: dict[str, datetime | None], text: str, time: datetime | None) -> None:
    """Keep the first time of a text."""
    if text in found or len(found) < limits.IMPORT_HELD_MAX:
        known = found.get(text)
        found[text] = min(filter(None, (known, time)), default=None)


def _versions(
    found: Mapping[str, datetime | None], where: str, notes: Notes
) -> Iterator[SourceMessage]:
    """The texts, the oldest first; each keeps its id in a newer export."""
    for text, time in sorted(found.items(), key=lambda pair: pair[1] or EPOCH):
        about = source_metadata(FORMAT, f"instructions-{brief(text)}")
        about[SOURCE_KEY] = INSTRUCTIONS
        yield from build_message(
            where, notes, role="user", content=text, metadata=about, created_at=time
        )


# -- conversations ----------------------------------------------------------------------------


def _current(conversation: Mapping[str, Any], nodes: Mapping[str, Any]) -> str | None:
    """The current node, or the newest one if the file does not name it."""
    named = as_text(conversation.get("current_node"))
    if named in nodes:
        return named
    times = {
        key: time_from_seconds(as_dict(node.get("message")).get("create_time"))
        for key, node in nodes.items()
    }
    known = {key: time for key, time in times.items() if time is not None}
    return max(known, key=lambda key: known[key]) if known else next(iter([*nodes][-1:]), None)


def _messages(
    key: str, nodes: Mapping[str, Any], started: object, where: str, notes: Notes
) -> Iterator[SourceMessage]:
    message = nodes[key].get("message")
    if not isinstance(message, dict):
        return  # the root and empty nodes
    kind = as_dict(message.get("content")).get("content_type")
    hidden = as_dict(message.get("metadata")).get("is_visually_hidden_from_conversation")
    if hidden or kind == "user_editable_context":
        if kind != "user_editable_context":
            notes.skip("a hidden message", where)
        return
    content = _content(as_dict(message.get("content")), where, notes)
    if not content and not _is_call(key, nodes) and not _is_answer(key, nodes):
        notes.skip("an empty message", where)
        return
    fields = _message(key, nodes, message, content)
    if fields is None:
        notes.reject(
            f"a message with the role {as_dict(message.get('author')).get('role')!r:.40}", where
        )
        return
    facts = as_dict(message.get("metadata"))
    files = [as_text(file.get("name")) for file in as_objects(facts.get("attachments"))]
    about = source_metadata(FORMAT, key, model=facts.get("model_slug"), attachments=files or None)
    time = checked_time(time_from_seconds(given := message.get("create_time")), given, where, notes)
    time = time or time_from_seconds(started)
    yield from build_message(where, notes, **fields, metadata=about, created_at=time)


def _message(
    key: str, nodes: Mapping[str, Any], message: Mapping[str, Any], content: str | tuple[Part, ...]
) -> dict[str, Any] | None:
    author = as_dict(message.get("author"))
    role, name = author.get("role"), as_text(author.get("name")) or None
    if role == "tool":
        if _is_answer(key, nodes):
            call = as_text(nodes[key].get("parent"))
            return {"role": "tool", "content": content or "", "tool_call_id": call, "name": name}
        # A result without a call would not be sent to a model.
        return {"role": "assistant", "content": content, "name": name or "tool"}
    if role == "assistant" and _is_call(key, nodes):
        text = content if isinstance(content, str) else "\n".join(part.text for part in content)
        calls = (ToolCall.of(key, as_text(message.get("recipient")), text),)
        return {"role": role, "tool_calls": calls}
    if role in ("user", "assistant", "system", "developer"):
        return {"role": role, "content": content, "name": name}
    return None


def _is_call(key: str, nodes: Mapping[str, Any]) -> bool:
    """Whether a node calls a tool that has a result."""
    message = as_dict(as_dict(nodes.get(key)).get("message"))
    role = as_dict(message.get("author")).get("role")
    to_all = message.get("recipient", "all") in ("all", None, "")
    return role == "assistant" and not to_all and bool(_answers(key, nodes))


def _is_answer(key: str, nodes: Mapping[str, Any]) -> bool:
    """Whether a node is the tool's result for the call before it; siblings are regenerated."""
    call = as_text(nodes[key].get("parent"))
    return _is_call(call, nodes) and key in _answers(call, nodes)


def _answers(key: str, nodes: Mapping[str, Any]) -> list[str]:
    """The visible children of a node that are tool results."""
    found = []
    for child in map(as_text, as_list(nodes[key].get("children"))):
        message = as_dict(as_dict(nodes.get(child)).get("message"))
        hidden = as_dict(message.get("metadata")).get("is_visually_hidden_from_conversation")
        if as_dict(message.get("author")).get("role") == "tool" and not hidden:
            found.append(child)
    return found


# -- contents ---------------------------------------------------------------------------------


def _content(content: Mapping[str, Any], where: str, notes: Notes) -> str | tuple[Part, ...]:
    kind = content.get("content_type")
    if kind == "text":
        return "\n".join(filter(None, map(as_text, as_list(content.get("parts")))))
    if kind == "multimodal_text":
        return _parts(content, where, notes)
    if kind in _PLAIN:
        return as_text(content.get("text"))
    if kind == "tether_quote":
        return "\n".join(filter(None, (as_text(content.get(k)) for k in ("title", "url", "text"))))
    if kind == "tether_browsing_display":
        return as_text(content.get("result")) or as_text(content.get("summary"))
    if kind == "thoughts":
        steps = as_objects(content.get("thoughts"))
        lines = (as_text(step.get("content")) or as_text(step.get("summary")) for step in steps)
        thought = "\n".join(filter(None, lines))
        return (Part.reasoning(thought),) if thought else ""
    return _rare(content, where, notes)


def _rare(content: Mapping[str, Any], where: str, notes: Notes) -> str | tuple[Part, ...]:
    kind = content.get("content_type")
    if kind == "reasoning_recap":
        notes.skip("the model's thinking time", where)
        return ""
    if kind == "model_editable_context":
        return as_text(content.get("model_set_context"))
    if not content:
        return ""
    notes.reject(f"content of type {kind!r:.60}, kept unchanged", where)
    return (Part({**content, "type": f"{FORMAT}:{kind}"}),)


def _parts(content: Mapping[str, Any], where: str, notes: Notes) -> tuple[Part, ...]:
    found = []
    for part in as_list(content.get("parts")):
        if isinstance(part, str):
            found += [Part.of_text(part)] if part else []
            continue
        fields = as_dict(part)
        kind = as_text(fields.get("content_type"))
        asset = fields.get("asset_pointer") or as_dict(fields.get("audio_asset_pointer")).get(
            "asset_pointer"
        )
        if kind == "audio_transcription":
            found.append(Part.of_text(as_text(fields.get("text"))))
        elif isinstance(asset, str):
            found.append(Part.file(asset))
        elif fields:
            notes.reject(f"a part of type {kind!r:.60}, kept unchanged", where)
            found.append(Part({**fields, "type": f"{FORMAT}:{kind}"}))
    return tuple(found)
