"""A request for a response as the proxy reads it: what its ids refer to, and where it goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from fastapi import Request

from firnline.errors import InputError, NotFound
from firnline.log.message import Message
from firnline.log.openai_items import messages_of
from firnline.log.threads import run_by_size
from firnline.memory import Memory
from firnline.models.http import limit_name
from firnline.server.auth import caller_of, parts_of
from firnline.server.proxy.anthropic import ANTHROPIC_PREFIX, anthropic_model
from firnline.server.proxy.request import ProxyRequest, Thread, make_request, read_object
from firnline.server.proxy.response_answers import AnthropicResponses, ChatResponses
from firnline.server.proxy.response_client import ResponseClient, ResponseTask
from firnline.server.proxy.response_events import EventWriter, Item, response_head
from firnline.server.proxy.response_places import (
    COMPACTION,
    ResponsePlace,
    find_item,
    find_response,
)
from firnline.server.proxy.response_translate import (
    AnswerItems,
    anthropic_request,
    call_names,
    chat_request,
    unused_fields,
)
from firnline.server.proxy.responses import ResponsesDialect
from firnline.server.proxy.upstream import ANTHROPIC_VERSION, Upstream
from firnline.server.state import Parts

COMPACTED: Final = "firnline:"
"""How the `encrypted_content` of a compaction of ours begins; the rest is its response's id."""
_STATE_FIELDS: Final = frozenset({"input", "previous_response_id", "conversation", "background"})
_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "function_call": ("call_id", "name", "arguments"),
    "custom_tool_call": ("call_id", "name", "input"),
    "item_reference": ("id",),
    "compaction": ("encrypted_content",),
}
"""Fields without which an input item is none, by its type; a result needs its `call_id`."""
_NO_CALL_ID: Final = frozenset({"local_shell_call_output", "mcp_call_output"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseInput:
    """The new items of a request, what they continue, and what is said for it only."""

    items: Sequence[Item]
    thread: Thread | None
    leading: tuple[Item, ...] = ()


async def parse_response_request(
    http_request: Request, memory: Memory, conversation: str | None
) -> tuple[ProxyRequest, ResponseTask]:
    """What the client sent; `conversation` is the name in the path. `InputError` if it is wrong."""
    sent = await read_object(http_request)
    messages, thread, task = await _read_task(http_request, memory, sent)
    dialect, upstream, body = await _choose_endpoint(http_request, task, sent)
    body["messages"] = messages
    if task.head["background"]:
        body["stream"] = True
    request = await make_request(http_request, memory, conversation, dialect, upstream, sent, body)
    if isinstance(dialect, AnthropicResponses):
        request = replace(request, headers=_anthropic_headers(request.headers))
    return replace(request, thread=thread), dialect.task


async def parse_state_request(
    http_request: Request, memory: Memory
) -> tuple[ProxyRequest, ResponseTask]:
    """A request about what a model would get, which is answered without a model."""
    sent = await read_object(http_request)
    messages, thread, task = await _read_task(http_request, memory, sent)
    body = {"model": sent.get("model"), "tools": sent.get("tools") or [], "messages": messages}
    task = replace(task, head={**task.head, "object": COMPACTION, "status": "completed"})
    dialect = ChatResponses(task)
    request = await make_request(http_request, memory, None, dialect, None, sent, body)
    return replace(request, thread=thread), task


async def _read_task(
    http_request: Request, memory: Memory, sent: Mapping[str, Any]
) -> tuple[list[Message], Thread | None, ResponseTask]:
    """The messages of a request, what they continue, and the response that it asks for."""
    size = len(await http_request.body())
    found = await read_input(memory, sent, size)
    headers = dict(http_request.headers)
    if found.thread is not None and headers.get("x-firnline-memory", "").lower() == "off":
        raise InputError(
            "X-Firnline-Memory: off cannot be used with previous_response_id, conversation or"
            " compaction: memory has what they refer to"
        )
    if not found.items and found.thread is None and not sent.get("prompt"):
        raise InputError("input: must not be empty", param="input")
    instructions = _instructions(sent)
    given = [*instructions, *messages_of(found.leading)]
    messages = [*given, *await run_by_size(size, partial(messages_of, found.items))]
    thread = found.thread._replace(given=len(given)) if found.thread else None
    head = response_head(sent, thread.conversation if sent.get("conversation") and thread else None)
    unspoken = list(found.leading)
    if thread is None:
        unspoken += _leading_items(found.items)
    task = ResponseTask(
        head=head,
        items=AnswerItems(call_names(sent.get("tools"))),
        writer=EventWriter(head),
        leading=tuple(unspoken),
        owner=parts_of(http_request).drafts.owner,
        polls=bool(head["background"] and not sent.get("stream")),
    )
    return messages, thread, task


def _anthropic_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers for Anthropic's endpoint, which takes keys by another name."""
    kept = {name: value for name, value in headers.items() if name != "authorization"}
    return {"anthropic-version": ANTHROPIC_VERSION, **kept}


def _instructions(sent: Mapping[str, Any]) -> list[Message]:
    text = sent.get("instructions")
    if text is not None and not isinstance(text, str):
        raise InputError("instructions: expected a string", param="instructions")
    return [Message.system(text)] if text else []


def _leading_items(items: Sequence[Item]) -> list[Item]:
    """The items of the application before the first other one: they are not in the log."""
    found: list[Item] = []
    for item in items:
        if item.get("role") not in ("system", "developer"):
            break
        found.append(item)
    return found


# -- the endpoint -----------------------------------------------------------------------------


async def _choose_endpoint(
    http_request: Request, task: ResponseTask, sent: Mapping[str, Any]
) -> tuple[ResponseClient, Upstream | None, Item]:
    """The dialect of the endpoint, the endpoint, and the request in its shape, without messages."""
    parts = parts_of(http_request)
    upstream = choose_upstream(parts, str(sent.get("model") or ""))
    if upstream is not None and upstream is parts.anthropic:
        body = anthropic_request(sent)
        if "model" in body:
            body["model"] = anthropic_model(body)
        task = replace(task, unused=tuple(unused_fields(sent, anthropic=True)))
        return AnthropicResponses(task), upstream, body
    if upstream is not None:
        token = caller_of(http_request).token
        if await upstream.speaks_responses(http_request.headers, token):
            body = {name: value for name, value in sent.items() if name not in _STATE_FIELDS}
            return ResponsesDialect(task), upstream, body
    body = chat_request(sent, limit_name(parts.settings.upstream or ""))
    task = replace(task, unused=tuple(unused_fields(sent, anthropic=False)))
    return ChatResponses(task), upstream, body


def choose_upstream(parts: Parts, model: str) -> Upstream | None:
    """The endpoint for a model: Anthropic's for Claude, if there is one."""
    claude = model.startswith(("claude", ANTHROPIC_PREFIX))
    if parts.anthropic is not None and (parts.upstream is None or claude):
        return parts.anthropic
    return parts.upstream


# -- what the ids refer to --------------------------------------------------------------------


async def read_input(memory: Memory, sent: Mapping[str, Any], size: int) -> ResponseInput:
    """The items of a request of so many bytes, with references replaced.

    `InputError` if something is wrong.
    """
    previous, conversation = sent.get("previous_response_id"), conversation_id(sent)
    if previous is not None and conversation is not None:
        raise InputError(
            "previous_response_id: cannot be used together with conversation",
            param="previous_response_id",
        )
    items = await run_by_size(size, partial(check_items, sent.get("input"), "input"))
    if conversation is not None:
        await _check_conversation(memory, conversation, items)
        resolved = await _resolve(memory, items, conversation)
        return ResponseInput(items=resolved, thread=Thread(conversation, None, 0))
    place: ResponsePlace | None = None
    if previous is not None:
        place = await _find_previous(memory, previous)
    for at, item in reversed(list(enumerate(items))):
        if (compacted := _compacted_id(item)) is not None:
            place, items = await _find_previous(memory, compacted), items[at + 1 :]
            break
    resolved = await _resolve(memory, items, place.conversation if place else None)
    if place is None:
        return ResponseInput(items=resolved, thread=None)
    thread = Thread(place.conversation, place.end, 0)
    return ResponseInput(items=resolved, thread=thread, leading=place.leading)


async def _check_conversation(memory: Memory, conversation: str, items: Sequence[Item]) -> None:
    head = await memory.head(conversation)
    if head is None:
        raise NotFound(f"Conversation with id {conversation[:80]!r} not found.")
    if head.seq < 0 and not items:
        raise InputError("input: must not be empty: the conversation is empty", param="input")


def conversation_id(sent: Mapping[str, Any]) -> str | None:
    """The conversation that a request names."""
    value = sent.get("conversation")
    if isinstance(value, Mapping):
        value = value.get("id")
    if value is not None and not isinstance(value, str):
        text = "conversation: expected an id, or an object with one"
        raise InputError(text, param="conversation")
    return value


async def _find_previous(memory: Memory, previous: object) -> ResponsePlace:
    if not isinstance(previous, str):
        raise InputError("previous_response_id: expected a string", param="previous_response_id")
    try:
        return await find_response(memory, previous)
    except NotFound:
        raise InputError(
            f"Previous response with id {previous[:80]!r} not found.",
            code="previous_response_not_found",
            param="previous_response_id",
        ) from None


def _compacted_id(item: Mapping[str, Any]) -> str | None:
    """The response that a compaction of ours stands for; None for other items."""
    content = item.get("encrypted_content")
    if item.get("type") != "compaction" or not str(content).startswith(COMPACTED):
        return None
    return str(content).removeprefix(COMPACTED)


async def _resolve(memory: Memory, items: Sequence[Item], conversation: str | None) -> list[Item]:
    """The items with those that references name."""
    found: list[Item] = []
    for item in items:
        if item.get("type") == "item_reference":
            _, referred = await _find_referred(memory, item["id"], conversation)
            found.append(referred)
        else:
            found.append(item)
    return found


async def _find_referred(memory: Memory, item_id: str, conversation: str | None) -> Any:
    try:
        return await find_item(memory, item_id, conversation)
    except NotFound:
        if conversation is None:
            raise
        return await find_item(memory, item_id)


def check_items(given: object, where: str) -> list[Item]:
    """The input as items; `InputError` if it is neither text nor a list of items."""
    if given is None:
        return []
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    if not isinstance(given, list):
        raise InputError(f"{where}: expected a string or a list of items", param=where)
    for at, item in enumerate(given):
        _check_item(item, f"{where}[{at}]")
    return given


def _check_item(item: object, where: str) -> None:
    if not isinstance(item, dict):
        raise InputError(f"{where}: expected an object", param=where)
    kind = item.get("type") or ("message" if "role" in item else None)
    if not isinstance(kind, str):
        raise InputError(f"{where}: an item needs a type or a role", param=where)
    if kind == "message":
        _check_message(item, where)
    needed = _NEEDED.get(kind, ())
    if kind.endswith("_output") and kind not in _NO_CALL_ID:
        needed = ("call_id",)
    for name in needed:
        if not isinstance(item.get(name), str):
            raise InputError(f"{where}.{name}: expected a string", param=f"{where}.{name}")


def _check_message(item: Mapping[str, Any], where: str) -> None:
    roles = ("user", "assistant", "system", "developer")
    if item.get("role") not in roles:
        raise InputError(f"{where}.role: expected one of {', '.join(roles)}", param=f"{where}.role")
    content = item.get("content")
    if not isinstance(content, str | list):
        raise InputError(f"{where}.content: expected a string or a list", param=where)
    for part in content if isinstance(content, list) else ():
        if not isinstance(part, dict) or not isinstance(part.get("type"), str):
            raise InputError(f"{where}.content: expected parts with a type", param=where)
