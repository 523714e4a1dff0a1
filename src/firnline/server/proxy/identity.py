"""Which conversation a request belongs to: by name, or by what it repeats. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from firnline.client.paths import unescaped
from firnline.errors import InputError
from firnline.log.message import Message, encode_json
from firnline.log.regex import regex
from firnline.log.text import Json, clean_name
from firnline.log.wire import tool_input

HEADER: Final = "x-firnline-conversation"
_HEADERS: Final = (
    HEADER,
    "x-conversation-id",
    "x-openwebui-chat-id",
    "x-session-id",
    "x-claude-code-session-id",
    "x-litellm-session-id",
    "helicone-session-id",
    "session-id",
    "session_id",
    "thread-id",
    "conversation_id",
)
_VENDOR: Final = regex(r"x-.+-(session|conversation|chat|thread)-id")
_METADATA: Final = ("conversation_id", "session_id", "thread_id", "chat_id")
_ANTHROPIC_USER: Final = regex(r".*_session_([A-Za-z0-9_-]{8,})")
_UNSPOKEN: Final = frozenset({"system", "developer"})
_THOUGHTS: Final = frozenset({"reasoning"})
_MARK: Final = "cache_control"


class Named(NamedTuple):
    """The conversation that a request names, and where it does so."""

    conversation: str
    source: str


def named(path: str | None, headers: Mapping[str, str], body: Mapping[str, Any]) -> Named | None:
    """The name in the path, in a header that is commonly used for it, or in the metadata."""
    if path is not None:
        return Named(clean_name(unescaped(path), "conversation"), "path")
    for name in (*_HEADERS, *(name for name in headers if _VENDOR.fullmatch(name))):
        given = headers.get(name)
        # Our own header is read as it is written in answers.
        if found := _usable(unquote(given) if given and name == HEADER else given):
            return Named(found, f"header {name}")
    metadata = body.get("metadata")
    if isinstance(metadata, Mapping):
        for name in _METADATA:
            if found := _usable(metadata.get(name)):
                return Named(found, f"metadata {name}")
        match = _ANTHROPIC_USER.fullmatch(str(metadata.get("user_id") or ""))
        if match:
            return Named(match[1], "metadata user_id")
    return None


def _usable(name: object) -> str | None:
    try:
        return clean_name(name, "conversation") if isinstance(name, str) and name else None
    except InputError:
        return None  # a header of somebody else's that only looks like a name


def is_spoken(message: Message) -> bool:
    """Whether a message is of the conversation; what the application says changes all the time."""
    return message.role not in _UNSPOKEN


def fingerprint(message: Message) -> str:
    """What stays the same of a message when a client sends it again.

    Its words, calls, pictures and files; not the empty fields that a client's library adds, nor
    blanks at the ends, nor how a call's JSON is written, nor thoughts, which many clients drop, nor
    marks for a cache, which they move.
    """
    others: list[Json] = [
        {key: value for key, value in part.fields.items() if value is not None and key != _MARK}
        for part in (message.content if isinstance(message.content, tuple) else ())
        if part.kind not in ("text", *_THOUGHTS)
    ]
    calls: list[Json] = [[call.id, call.name, tool_input(call)] for call in message.tool_calls]
    text, answers = message.text.strip(), message.tool_call_id or ""
    said: list[Json] = [message.role, text, calls, answers, others]
    return hashlib.blake2b(encode_json(said).encode(), digest_size=16).hexdigest()


def chained(prints: Sequence[str], seed: str) -> list[str]:
    """A hash for each beginning of a history: of the first message, of the first two, and so on.

    `seed` is the conversation's name if it has one: equal texts under two names are two histories.
    """
    hashes, last = [], f"firnline prefix 1 {seed}"
    for each in prints:
        last = longer(last, each)
        hashes.append(last)
    return hashes


def longer(known: str, more: str) -> str:
    """The hash of a beginning that is one message longer."""
    return hashlib.blake2b(f"{known}\n{more}".encode(), digest_size=16).hexdigest()
