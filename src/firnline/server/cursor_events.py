"""The events of Cursor's hooks as messages. Pure.

Cursor keeps its chats on its own servers, so its events have the text itself: prompts, answers, and
each tool call with its result.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from firnline.log.message import Message, encode_json
from firnline.log.text import Json
from firnline.log.wire import load_openai

CURSOR: Final = "cursor"
EVENTS: Final = (
    "beforeSubmitPrompt",
    "postToolUse",
    "postToolUseFailure",
    "afterAgentResponse",
    "preCompact",
)
"""The events that are captured."""
_TOOLS: Final = frozenset({"postToolUse", "postToolUseFailure"})


def event_messages(event: Mapping[str, Any]) -> list[Message]:
    """What an event says, in the order in which it was said; most events say nothing."""
    name = event.get("hook_event_name")
    if name in _TOOLS:
        return load_openai(_call(event))
    role = {"beforeSubmitPrompt": "user", "afterAgentResponse": "assistant"}.get(str(name))
    text = event.get("prompt") if role == "user" else event.get("text")
    if role is None or not isinstance(text, str) or not text:
        return []
    return load_openai([{"role": role, "content": text}])


def _call(event: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A call and its result, which are never parted."""
    call = str(event.get("tool_use_id") or "call")
    name = str(event.get("tool_name") or "tool")
    result = next((event[key] for key in ("tool_output", "error_message") if key in event), "")
    function = {"name": name, "arguments": _text(event.get("tool_input") or {})}
    asked = {"id": call, "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [asked]},
        {"role": "tool", "tool_call_id": call, "content": _text(result)},
    ]


def _text(value: Json) -> str:
    return value if isinstance(value, str) else encode_json(value)


def event_key(event: Mapping[str, Any]) -> str | None:
    """The idempotency key of an event that has an id: hooks of a project and of a user repeat it.

    None for an answer: a model may say the same twice.
    """
    name = event.get("hook_event_name")
    mark = {"beforeSubmitPrompt": "generation_id"}.get(str(name), "tool_use_id")
    if not isinstance(event.get(mark), str):
        return None
    known: list[Json] = [event.get("conversation_id"), name, event[mark]]
    return f"cursor:{hashlib.blake2b(encode_json(known).encode(), digest_size=16).hexdigest()}"
