"""Reads and writes messages in the shapes of OpenAI and Anthropic, without loss. Pure.

Firnline's own message has the OpenAI chat shape, so that is the short way; `load_json` is for JSON
from outside.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, NoReturn, Protocol, TypeAlias

from firnline.errors import InputError
from firnline.log import fence, limits
from firnline.log.json_text import parse_json
from firnline.log.media_wire import anthropic_medium, openai_parts, placeholder_text
from firnline.log.message import Message, Part, ToolCall
from firnline.log.text import Json, mark_altered, provider_name, provider_tool_name


class SdkObject(Protocol):
    """An object of the OpenAI SDK, which can be turned into a dict."""

    def model_dump(self, *, mode: str, exclude_unset: bool) -> dict[str, Any]:
        """Its fields."""
        ...


MessageLike: TypeAlias = "Message | Mapping[str, Any] | SdkObject"
"""A message: ours, or in the OpenAI chat shape, as a dict or as the SDK's object."""


def load_openai(messages: object) -> list[Message]:
    """Messages from a list of the OpenAI chat shape, or from one such message, or a mixture.

    Accepts dicts, the SDK's objects and `Message` values; anything else raises `InputError`.
    """
    if isinstance(messages, Message):
        return [messages]
    if isinstance(messages, list):  # the other checks are slower
        items: Iterable[Any] = messages
    elif isinstance(messages, Mapping) or hasattr(messages, "model_dump"):
        items = [messages]
    elif isinstance(messages, Iterable) and not isinstance(messages, str | bytes):
        items = messages
    else:
        kind = type(messages).__name__
        raise InputError(f"expected messages, got {kind}; try Message.user(text)")
    return [item if isinstance(item, Message) else Message.from_openai(item) for item in items]


def dump_openai(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """The messages in the OpenAI chat shape."""
    return [message.to_openai() for message in messages]


def dump_openai_request(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """The same in the form that OpenAI's endpoints accept.

    Names have no spaces, and parts that only another program knows, such as an image of an imported
    chat, are replaced by text. Anthropic's images and documents become OpenAI's. Each message has a
    content, if only an empty one. `place_tool_media` is for images in a tool's result.
    """
    return [_request_message(message.to_openai()) for message in messages]


def _request_message(message: dict[str, Any]) -> dict[str, Any]:
    sent = dict(message)
    if message.get("name"):
        sent["name"] = provider_name(message["name"])
    if isinstance(message.get("content"), list):
        parts = (openai_parts(part) for part in message["content"])
        sent["content"] = [_request_part(part) for each in parts for part in each]
    if message.get("tool_calls"):
        sent["tool_calls"] = [_request_call(call) for call in message["tool_calls"]]
    elif not message.get("content"):
        sent["content"] = ""
    return sent


def _request_part(part: dict[str, Any]) -> dict[str, Any]:
    note = placeholder_text(part)
    return {"type": "text", "text": note} if note else part


def _request_call(call: dict[str, Any]) -> dict[str, Any]:
    function = call.get("function")
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        return call
    return {**call, "function": {**function, "name": provider_tool_name(function["name"])}}


# -- Anthropic --------------------------------------------------------------------------------

OPENING: Final = "(The conversation continues here; earlier messages are not shown.)"
NOTE: Final = "anthropic"
"""The metadata key for what Anthropic's shape has and the OpenAI shape lacks."""
_ROLES: Final = ("user", "assistant", "system")
_PLAIN: Final = ("type", "text")
_TEXT_FIELDS: Final = ("cache_control", "citations")
_FOREIGN: Final = frozenset(["function_call", "function_call_output"])
"""OpenAI's parts that have no counterpart at Anthropic; all other parts are Anthropic's own."""


def load_anthropic(body: Mapping[str, Any]) -> list[Message]:
    """The messages of a request in Anthropic's shape, its ``system`` first.

    A ``tool_use`` block becomes a tool call, each ``tool_result`` a separate tool message; all
    other blocks are kept as they are. `dump_anthropic` returns the same request, except that
    neighbors of one role are joined, text is in blocks and empty text is removed.
    """
    system, turns = body.get("system"), body.get("messages")
    if not isinstance(turns, list):
        raise InputError("messages: expected a list")
    found = [] if system in (None, "", []) else [_message("system", system, "system")]
    for at, turn in enumerate(turns):
        found += _load_turn(turn, f"messages[{at}]")
    return found


def _load_turn(turn: object, where: str) -> list[Message]:
    if not isinstance(turn, Mapping) or turn.get("role") not in _ROLES:
        raise InputError(f"{where}.role: expected one of {', '.join(_ROLES)}")
    role, content = turn["role"], turn.get("content")
    rest = {key: value for key, value in turn.items() if key not in ("role", "content")}
    if role == "assistant" and isinstance(content, list):
        found = [_load_answer(content, where)]
    elif role == "user" and isinstance(content, list):
        found = _load_question(content, where)
    else:
        found = [_message(role, content, where)]
    if rest or role == "system":
        found[0] = _with_notes(found[0], turn=rest)  # a system turn among others stays one
    return found


def _load_question(content: list[Any], where: str) -> list[Message]:
    """The user's messages and tool results, in their order."""
    found: list[Message] = []
    blocks: list[Any] = []
    for block in content:
        if isinstance(block, Mapping) and block.get("type") == "tool_result":
            found += [_message("user", blocks, where)] if blocks else []
            blocks = []
            found.append(_load_result(block, where))
        else:
            blocks.append(block)
    return [*found, _message("user", blocks, where)] if blocks or not found else found


def _load_result(block: Mapping[str, Any], where: str) -> Message:
    call_id = block.get("tool_use_id")
    if not isinstance(call_id, str):
        raise InputError(f"{where}: a tool_result without a tool_use_id")
    handled = ("type", "tool_use_id", "content")
    rest = {key: value for key, value in block.items() if key not in handled}
    message = _message("tool", block.get("content"), where, tool_call_id=call_id)
    return _with_notes(message, result=rest) if rest else message


def _load_answer(content: list[Any], where: str) -> Message:
    """The model's text and calls; if calls are not last, their positions are noted."""
    calls = [block for block in content if _is_call(block)]
    if not calls:
        return _message("assistant", content, where)
    others = [block for block in content if not _is_call(block)]
    loaded = tuple(_load_call(block, where) for block in calls)
    message = _message("assistant", others, where, tool_calls=loaded)
    shown = [block for block in content if _is_call(block) or _block(Part(block))]
    places = [at for at, block in enumerate(shown) if _is_call(block)]
    handled = ("type", "id", "name", "input")
    more = [{k: v for k, v in block.items() if k not in handled} for block in calls]
    if any(more) or places != list(range(len(shown) - len(calls), len(shown))):
        notes: list[Json] = [
            {"at": at, "more": rest} for at, rest in zip(places, more, strict=True)
        ]
        return _with_notes(message, calls=notes)
    return message


def _is_call(block: object) -> bool:
    return isinstance(block, Mapping) and block.get("type") == "tool_use"


def _load_call(block: Mapping[str, Any], where: str) -> ToolCall:
    call_id, name, arguments = block.get("id"), block.get("name"), block.get("input")
    if not isinstance(call_id, str) or not isinstance(name, str) or not isinstance(arguments, dict):
        raise InputError(f"{where}: a tool_use needs an id, a name and an input")
    return ToolCall.of(call_id, name, arguments)


def _message(role: Any, content: object, where: str, **more: Any) -> Message:
    if isinstance(content, list) and (plain := _single_text(content)) is not None:
        content = plain
    if isinstance(content, list):
        if not all(isinstance(block, Mapping) for block in content):
            raise InputError(f"{where}: expected blocks of content")
        content = tuple(Part(dict(block)) for block in content)
    if content is not None and not isinstance(content, str | tuple):
        raise InputError(f"{where}: expected text or blocks, got {type(content).__name__}")
    return Message(role, content, **more)


def _single_text(content: list[Any]) -> str | None:
    """The text of a single plain text block, which is equivalent to a string."""
    block = content[0] if len(content) == 1 else None
    if not isinstance(block, dict) or block.get("type") != "text" or len(block) != len(_PLAIN):
        return None
    text = block.get("text")
    return text if isinstance(text, str) else None


def _with_notes(message: Message, **notes: Json) -> Message:
    note = {**_notes(message), **notes}
    return replace(message, metadata={**message.metadata, NOTE: note})


def _notes(message: Message) -> dict[str, Any]:
    note = message.metadata.get(NOTE)
    return note if isinstance(note, dict) else {}


def dump_anthropic(messages: Iterable[Message]) -> dict[str, Any]:
    """``system`` and ``messages`` in Anthropic's shape, by its rules for their order.

    Leading system messages become ``system``: a string, or blocks if they have more than text.
    Later system messages become marked text of the user, unless they came in Anthropic's shape.
    Neighbors of one role are joined, tool results come first in a turn that answers a call, and the
    first message is the user's. If users have several names, a block with the name precedes each
    message.
    """
    named = _name_speakers(list(messages))
    leading = next((at for at, message in enumerate(named) if _is_turn(message)), len(named))
    turns = anthropic_turns(named[leading:])
    if turns and turns[0]["role"] != "user":
        turns.insert(0, {"role": "user", "content": [_text_block(OPENING)]})
    return {"system": _system(named[:leading]), "messages": turns}


def _name_speakers(messages: list[Message]) -> list[Message]:
    """The messages with the users' names in their text, if there is more than one name.

    Anthropic has no field for a name, and consecutive messages of users are joined.
    """
    names = {message.name for message in messages if message.role == "user" and message.name}
    if len(names) <= 1:
        return messages
    return [_name_speaker(message) if message.role == "user" else message for message in messages]


def _name_speaker(message: Message) -> Message:
    """The message with its speaker's name and a colon as a block before its own.

    The name is spelled as for other endpoints and the text is unchanged, so the token count of a
    context stays right: it includes one token for framing a name, which is the colon's. Joined with
    the name, the first word might take one more token, and so might a colon after punctuation.
    """
    name = provider_name(message.name or "")
    parts = _content_parts(message)
    if not name.strip("_") or not any(map(_block, parts)):
        return message
    label = f"{name}:" if name[-1].isalnum() else name
    return replace(message, content=(Part.of_text(label), *parts))


def anthropic_turns(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """The messages as Anthropic's turns, neighbors of one role joined, results first."""
    turns: list[dict[str, Any]] = []
    for message in messages:
        native = message.role == "system" and "turn" in _notes(message)
        role = "system" if native else "assistant" if message.role == "assistant" else "user"
        blocks, rest = anthropic_blocks(message), _notes(message).get("turn") or {}
        if not blocks and not rest:
            continue
        if turns and turns[-1]["role"] == role != "system":
            turns[-1]["content"] += blocks
            turns[-1] |= rest
        else:
            turns.append({"role": role, "content": blocks, **rest})
    for turn in turns:
        # A stable sort: tool results first, everything else in its order.
        turn["content"].sort(key=lambda block: block.get("type") != "tool_result")
    return turns


def anthropic_blocks(message: Message) -> list[dict[str, Any]]:
    """The message's content as Anthropic's blocks."""
    if message.role == "tool":
        content = [_block(part) for part in _content_parts(message)]
        result = {"type": "tool_result", "tool_use_id": message.tool_call_id or ""}
        more = _notes(message).get("result") or {}
        return [{**result, "content": [block for block in content if block], **more}]
    if message.role in ("system", "developer") and "turn" not in _notes(message):
        return [_text_block(f"[{message.role}] {message.text}")] if message.text.strip() else []
    blocks = [block for part in _content_parts(message) if (block := _block(part))]
    if message.role == "user":
        blocks = [_user_block(block) for block in blocks]
    calls = [_call_block(call) for call in message.tool_calls]
    notes = _notes(message).get("calls") or []
    if len(notes) != len(calls):
        return [*blocks, *calls]
    for call, note in zip(calls, notes, strict=True):
        blocks.insert(note["at"], {**call, **note["more"]})
    return blocks


def tool_input(call: ToolCall) -> dict[str, Any]:
    """A call's arguments as the object that Anthropic requires, whatever the model wrote."""
    try:
        arguments = parse_json(call.arguments or "{}")
    except (ValueError, RecursionError):
        arguments = None
    return arguments if isinstance(arguments, dict) else {"arguments": call.arguments}


def _is_turn(message: Message) -> bool:
    return message.role not in ("system", "developer") or "turn" in _notes(message)


def _system(messages: Iterable[Message]) -> str | list[dict[str, Any]]:
    """The leading system messages: a string, or blocks if they have more than text."""
    parts = [part for message in messages for part in _content_parts(message)]
    blocks = [block for part in parts if (block := _block(part))]
    if any(set(block) != set(_PLAIN) for block in blocks):
        return blocks
    return "\n\n".join(block["text"] for block in blocks)


def _user_block(block: dict[str, Any]) -> dict[str, Any]:
    """The block in which a user's text does not start like a later system message."""
    if block.get("type") != "text":
        return block
    return {**block, "text": fence.escape_role(block["text"])}


def _text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _content_parts(message: Message) -> tuple[Part, ...]:
    if isinstance(message.content, str):
        return (Part.of_text(message.content),) if message.content.strip() else ()
    return message.content or ()


def _block(part: Part) -> dict[str, Any] | None:
    """A part as a block; Anthropic's own blocks unchanged, None if it has no counterpart."""
    if part.kind == "text":
        more = {name: value for name, value in part.fields.items() if name in _TEXT_FIELDS}
        return {**_text_block(part.text), **more} if part.text.strip() else None
    if note := placeholder_text(part.fields):
        return _text_block(note)
    if (medium := anthropic_medium(part.fields)) is not None:
        return medium
    return None if part.type in _FOREIGN else dict(part.fields)


def _call_block(call: ToolCall) -> dict[str, Any]:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": tool_input(call)}


# -- JSON -------------------------------------------------------------------------------------


def load_json(text: str | bytes) -> Json:
    """Strict JSON from outside: no NaN or Infinity, no key twice, limited numbers and nesting.

    Text that had to be altered to be storable is marked, and so is a message made of it.
    """
    try:
        return mark_altered(parse_unique(text, parse_constant=_reject_constant))
    except RecursionError as error:
        raise InputError(f"JSON nested deeper than {limits.JSON_DEPTH_MAX} levels") from error
    except ValueError as error:
        raise InputError(f"invalid JSON: {error}") from error


def parse_unique(text: str | bytes, **options: Any) -> Any:
    """JSON in which no object has a key twice; `ValueError` otherwise.

    Parsers disagree on which of the two counts, so what is checked might not be what is used.
    """
    return parse_json(text, object_pairs_hook=_unique, **options)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise ValueError(f"the key {twice!r:.80} occurs twice in an object; send it once")
    return found


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
