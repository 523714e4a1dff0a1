"""ChatGPT's export: an array of conversations, each a tree of messages.

A call of a tool is a message to somebody else than "all"; what the tool returns is its child,
one on each branch, and may be empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from firnline.log.message import Part, ToolCall
from firnline.transfer.formats.cursor import records
from firnline.transfer.formats.records import (
    Found,
    Node,
    Notes,
    Said,
    Source,
    Tree,
    at_seconds,
    listed,
    made,
    mapping,
    marked,
    objects,
    texts,
    timed,
)

FORMAT: Final = "chatgpt"
_PLAIN: Final = ("code", "execution_output", "system_error", "computer_output", "sonic_webpage")


def read(source: Source, notes: Notes) -> Iterator[Found]:
    """The conversations, each with all its branches."""
    for where, value in records(source, notes):
        nodes = value.get("mapping") if isinstance(value, dict) else None
        name = texts(mapping(value).get("conversation_id") or mapping(value).get("id"))
        if not isinstance(nodes, dict) or not name:
            notes.wonder("a conversation without id or messages", where)
            continue
        nodes = {key: node for key, node in nodes.items() if isinstance(node, dict)}
        started = value.get("create_time")
        found = {
            key: Node(
                texts(node.get("parent")) or None,
                tuple(_said(key, nodes, started, f"{where}, {name}, {key}", notes)),
            )
            for key, node in nodes.items()
        }
        yield Tree(name, texts(value.get("title")), found, _current(value, nodes))


def _current(conversation: Mapping[str, Any], nodes: Mapping[str, Any]) -> str | None:
    """The node that the owner sees last; if it is not named, the newest."""
    named = texts(conversation.get("current_node"))
    if named in nodes:
        return named
    times = {
        key: at_seconds(mapping(node.get("message")).get("create_time"))
        for key, node in nodes.items()
    }
    known = {key: time for key, time in times.items() if time is not None}
    return max(known, key=lambda key: known[key]) if known else next(iter([*nodes][-1:]), None)


def _said(
    key: str, nodes: Mapping[str, Any], started: object, where: str, notes: Notes
) -> Iterator[Said]:
    message = nodes[key].get("message")
    if not isinstance(message, dict):
        return  # the root, and nodes that only join others
    if mapping(message.get("metadata")).get("is_visually_hidden_from_conversation"):
        notes.leave("a hidden message", where)
        return
    content = _content(mapping(message.get("content")), where, notes)
    if not content and not _is_call(key, nodes) and not _is_answer(key, nodes):
        notes.leave("an empty message", where)
        return
    fields = _message(key, nodes, message, content)
    if fields is None:
        notes.wonder(f"a message of {mapping(message.get('author')).get('role')!r:.40}", where)
        return
    facts = mapping(message.get("metadata"))
    files = [texts(file.get("name")) for file in objects(facts.get("attachments"))]
    about = marked(FORMAT, key, model=facts.get("model_slug"), attachments=files or None)
    time = timed(at_seconds(given := message.get("create_time")), given, where, notes)
    time = time or at_seconds(started)
    yield from made(where, notes, **fields, metadata=about, created_at=time)


def _message(
    key: str, nodes: Mapping[str, Any], message: Mapping[str, Any], content: str | tuple[Part, ...]
) -> dict[str, Any] | None:
    author = mapping(message.get("author"))
    role, name = author.get("role"), texts(author.get("name")) or None
    if role == "tool":
        if _is_answer(key, nodes):
            call = texts(nodes[key].get("parent"))
            return {"role": "tool", "content": content or "", "tool_call_id": call, "name": name}
        # What a tool says unasked, or besides: half a tool call would be shown to no model.
        return {"role": "assistant", "content": content, "name": name or "tool"}
    if role == "assistant" and _is_call(key, nodes):
        text = content if isinstance(content, str) else "\n".join(part.text for part in content)
        calls = (ToolCall.of(key, texts(message.get("recipient")), text),)
        return {"role": role, "tool_calls": calls}
    if role in ("user", "assistant", "system", "developer"):
        return {"role": role, "content": content, "name": name}
    return None


def _is_call(key: str, nodes: Mapping[str, Any]) -> bool:
    """Whether a node calls a tool that answers."""
    message = mapping(mapping(nodes.get(key)).get("message"))
    role = mapping(message.get("author")).get("role")
    to_all = message.get("recipient", "all") in ("all", None, "")
    return role == "assistant" and not to_all and bool(_answers(key, nodes))


def _is_answer(key: str, nodes: Mapping[str, Any]) -> bool:
    """Whether a node is what a tool returned for the call before it; siblings are regenerated."""
    call = texts(nodes[key].get("parent"))
    return _is_call(call, nodes) and key in _answers(call, nodes)


def _answers(key: str, nodes: Mapping[str, Any]) -> list[str]:
    """The children of a node that are of a tool, and are shown."""
    found = []
    for child in map(texts, listed(nodes[key].get("children"))):
        message = mapping(mapping(nodes.get(child)).get("message"))
        hidden = mapping(message.get("metadata")).get("is_visually_hidden_from_conversation")
        if mapping(message.get("author")).get("role") == "tool" and not hidden:
            found.append(child)
    return found


# -- contents ---------------------------------------------------------------------------------


def _content(content: Mapping[str, Any], where: str, notes: Notes) -> str | tuple[Part, ...]:
    kind = content.get("content_type")
    if kind == "text":
        return "\n".join(filter(None, map(texts, listed(content.get("parts")))))
    if kind == "multimodal_text":
        return _parts(content, where, notes)
    if kind in _PLAIN:
        return texts(content.get("text"))
    if kind == "tether_quote":
        return "\n".join(filter(None, (texts(content.get(k)) for k in ("title", "url", "text"))))
    if kind == "tether_browsing_display":
        return texts(content.get("result")) or texts(content.get("summary"))
    if kind == "thoughts":
        steps = objects(content.get("thoughts"))
        lines = (texts(step.get("content")) or texts(step.get("summary")) for step in steps)
        thought = "\n".join(filter(None, lines))
        return (Part.reasoning(thought),) if thought else ""
    return _rare(content, where, notes)


def _rare(content: Mapping[str, Any], where: str, notes: Notes) -> str | tuple[Part, ...]:
    kind = content.get("content_type")
    if kind == "reasoning_recap":
        notes.leave("how long the model thought", where)
        return ""
    if kind == "user_editable_context":
        names = ("user_profile", "user_instructions")
        return "\n".join(filter(None, (texts(content.get(name)) for name in names)))
    if kind == "model_editable_context":
        return texts(content.get("model_set_context"))
    if not content:
        return ""
    notes.wonder(f"content of type {kind!r:.60}, kept as it is", where)
    return (Part({**content, "type": f"{FORMAT}:{kind}"}),)


def _parts(content: Mapping[str, Any], where: str, notes: Notes) -> tuple[Part, ...]:
    found = []
    for part in listed(content.get("parts")):
        if isinstance(part, str):
            found += [Part.of_text(part)] if part else []
            continue
        fields = mapping(part)
        kind = texts(fields.get("content_type"))
        asset = fields.get("asset_pointer") or mapping(fields.get("audio_asset_pointer")).get(
            "asset_pointer"
        )
        if kind == "audio_transcription":
            found.append(Part.of_text(texts(fields.get("text"))))
        elif isinstance(asset, str):
            found.append(Part.file(asset))
        elif fields:
            notes.wonder(f"a part of type {kind!r:.60}, kept as it is", where)
            found.append(Part({**fields, "type": f"{FORMAT}:{kind}"}))
    return tuple(found)
