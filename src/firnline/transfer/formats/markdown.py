"""A conversation as Markdown. Messages are quoted, so they cannot pass for our headings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from firnline.log.entry import Digest, Entry, Head
from firnline.log.message import Message, Part, format_time
from firnline.log.regex import regex
from firnline.log.text import plural

_TICKS: Final = regex("`+")
_SPECIAL: Final = regex(r"([\\`*_\[\]<>#|])")


def opening(head: Head, digests: Sequence[Digest]) -> str:
    """The title, the facts, and the text of the digests in force."""
    title = head.metadata.get("title")
    size = f"{plural(head.entries, 'message')}, {plural(head.tokens, 'token')}"
    lines = [
        f"# {_escape(title if isinstance(title, str) and title.strip() else head.conversation)}",
        "",
        f"{size}; the last hash is `{head.hash}`.",
        "",
    ]
    for digest in digests:
        span = f"messages {digest.first_seq} to {digest.last_seq}"
        lines += [f"## Digest {digest.version}, {span}", "", _quote(digest.text), ""]
    return "\n".join(lines) + "\n"


def render_message(entry: Entry) -> str:
    """One message: its number, role, name, and time, then its content."""
    message = entry.message
    when = (
        f", {format_time(message.created_at)[:16].replace('T', ' ')}" if message.created_at else ""
    )
    who = f"{message.role} ({_escape(message.name)})" if message.name else message.role
    body = "\n\n".join(filter(None, _pieces(message))) or "*(nothing)*"
    return f"## {entry.seq}: {who}{when}\n\n{_quote(body)}\n\n"


def _pieces(message: Message) -> Iterator[str]:
    if isinstance(message.content, str):
        yield message.content
    for part in message.content or () if not isinstance(message.content, str) else ():
        yield _part(part)
    for call in message.tool_calls:
        yield f"→ `{' '.join(call.name.replace('`', '').split())}`\n\n{_fence(call.arguments)}"


def _part(part: Part) -> str:
    return part.text or f"*({_escape(part_label(part))})*"


def part_label(part: Part) -> str:
    """The type of a part without text, with its name if it has one."""
    inner = part.fields.get(part.type)
    fields = inner if isinstance(inner, dict) else part.fields
    name = fields.get("filename") or fields.get("file_id") or fields.get("name") or ""
    thought = part.fields.get("thinking")
    if isinstance(thought, str):
        return f"thought: {thought}"
    return f"{part.type or 'a part'}: {name}" if isinstance(name, str) and name else part.type


def _escape(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _quote(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines())


def _fence(text: str) -> str:
    fence = "`" * max(3, 1 + max((len(run) for run in _TICKS.findall(text)), default=0))
    return f"{fence}\n{text}\n{fence}"
