"""OpenAI's Responses API for `ModelServer`: its rules, answers and events. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from firnline.log.tokens import count_tokens
from firnline.testing.replies import Request, pieces_of

PATH: Final = "/v1/responses"
_STATE: Final = ("previous_response_id", "conversation")
_INPUT_PARTS: Final = frozenset({"input_text", "input_image", "input_file", "input_audio"})
_OUTPUT_PARTS: Final = frozenset({"output_text", "refusal"})
_REASONS: Final = {"length": "max_output_tokens", "content_filter": "content_filter"}

BODIES: Final[Mapping[str, bytes]] = {
    "invalid_body": b'{"object": "response", "outp',
    "error_body": b'{"error": {"message": "the upstream failed", "code": "upstream"}}',
    "no_choices": b'{"object": "response", "output": "none"}',
}
"""Bodies that are sent with status 200 by faults that replace the answer."""


# -- the provider's rules ---------------------------------------------------------------------


def complaint(request: Request, window_tokens: int | None = None) -> str | None:
    """The reason why OpenAI would reject the request, or None."""
    if (problem := _problem(request)) is not None:
        return problem
    tokens = prompt_tokens(request)
    if window_tokens is not None and tokens > window_tokens:
        return f"maximum context length is {window_tokens} tokens, not {tokens}"
    return None


def _problem(request: Request) -> str | None:
    if not isinstance(request.get("model"), str):
        return "Missing required parameter: 'model'."
    for name in _STATE:
        if request.get(name) is not None:
            return f"{name} {request[name]!r} not found"
    items = _items(request)
    if not items:
        return "One of 'input' or 'previous_response_id' must be provided."
    problems = (_item_problem(item) for item in items)
    return next(filter(None, problems), None) or _pair_problem(items)


def _items(request: Request) -> list[dict[str, Any]]:
    given = request.get("input")
    return [{"role": "user", "content": given}] if isinstance(given, str) else given or []


def _item_problem(item: Mapping[str, Any]) -> str | None:
    kind = item.get("type", "message")
    if kind == "reasoning" and not isinstance(item.get("summary"), list):
        return "reasoning needs a summary"
    if kind != "message":
        return None
    role, content = item.get("role"), item.get("content")
    if role not in ("user", "assistant", "system", "developer"):
        return f"invalid role {role!r}"
    allowed = _OUTPUT_PARTS if role == "assistant" else _INPUT_PARTS
    wrong = (
        [part["type"] for part in content if part["type"] not in allowed]
        if isinstance(content, list)
        else []
    )
    return f"invalid content {wrong[0]!r} of {role}" if wrong else None


def _pair_problem(items: Sequence[Mapping[str, Any]]) -> str | None:
    waiting: list[str] = []
    for item in items:
        kind, call = str(item.get("type")), item.get("call_id")
        if kind.endswith("_call_output"):
            if call not in waiting:
                return f"No tool call found for function call output with call_id {call}"
            waiting.remove(str(call))
        elif kind.endswith("_call") and call:
            if call in waiting:
                return f"the call {call} occurs twice"
            waiting.append(call)
    return f"No tool output found for function call {waiting[0]}." if waiting else None


# -- requests in the chat format --------------------------------------------------------------


def as_chat(request: Request) -> Request:
    """The request in the chat format: texts, calls and results; images are ignored."""
    messages: list[dict[str, Any]] = []
    if request.get("instructions"):
        messages.append({"role": "system", "content": request["instructions"]})
    for item in _items(request):
        messages += _chat(item)
    tools = [
        {"type": "function", "function": {"name": tool["name"], **_schema(tool)}}
        for tool in request.get("tools") or ()
        if tool.get("type") in ("function", "custom")
    ]
    choice = request.get("tool_choice", "auto")
    if isinstance(choice, dict):
        choice = {"type": "function", "function": {"name": choice.get("name")}}
    return {"messages": messages, "tools": tools, "tool_choice": choice, **_form(request)}


def _schema(tool: Mapping[str, Any]) -> dict[str, Any]:
    return {"parameters": tool.get("parameters") or {}}


def _form(request: Request) -> dict[str, Any]:
    form = (request.get("text") or {}).get("format") or {"type": "text"}
    if form["type"] != "json_schema":
        return {"response_format": form}
    inner = {key: value for key, value in form.items() if key != "type"}
    return {"response_format": {"type": "json_schema", "json_schema": inner}}


def _chat(item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    kind = item.get("type", "message")
    if kind == "message":
        yield {"role": item["role"], "content": text_of(item.get("content"))}
    elif kind in ("function_call", "custom_tool_call"):
        arguments = item.get("arguments") or item.get("input") or ""
        function = {"name": item["name"], "arguments": arguments}
        call = {"id": item["call_id"], "type": "function", "function": function}
        yield {"role": "assistant", "content": None, "tool_calls": [call]}
    elif kind.endswith("_output"):
        text = text_of(item.get("output"))
        yield {"role": "tool", "tool_call_id": item["call_id"], "content": text}


def text_of(content: object) -> str:
    """The text of a message's content or of a tool's output."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part.get("text") or part.get("refusal") or "") for part in parts)


def prompt_tokens(request: Request) -> int:
    """The tokens of a request: all of its text."""
    chat = as_chat(request)
    return int(count_tokens(chat["messages"], tools=chat["tools"]))


# -- an answer --------------------------------------------------------------------------------


def answer_of(
    request: Request, message: Mapping[str, Any], reason: str, number: int
) -> dict[str, Any]:
    """The whole answer; if a scripted message's content is items, they are sent unchanged."""
    content, output = message.get("content"), list[dict[str, Any]]()
    custom = {tool["name"] for tool in request.get("tools") or () if tool["type"] == "custom"}
    if isinstance(content, list):
        output = content
    elif content or message.get("refusal") or not message.get("tool_calls"):
        part: dict[str, Any] = {
            "type": "output_text",
            "text": content or "",
            "annotations": [],
            "logprobs": [],
        }
        if message.get("refusal"):
            part = {"type": "refusal", "refusal": message["refusal"]}
        about = {"id": f"msg_up{number:020}", "type": "message", "status": "completed"}
        output = [{**about, "role": "assistant", "content": [part]}]
    for at, call in enumerate(message.get("tool_calls") or ()):
        function = call["function"]
        item = {"call_id": call["id"], "name": function["name"], "status": "completed"}
        if function["name"] in custom:
            about = {"id": f"ctc_up{number:020}_{at}", "type": "custom_tool_call"}
            output.append({**about, **item, "input": function["arguments"]})
        else:
            about = {"id": f"fc_up{number:020}_{at}", "type": "function_call"}
            output.append({**about, **item, "arguments": function["arguments"]})
    why = _REASONS.get(reason)
    read, written = prompt_tokens(request), int(count_tokens(json.dumps(output)))
    told = ("instructions", "metadata", "tools", "temperature", "top_p", "tool_choice", "text")
    return {
        "tools": [],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        **{name: request[name] for name in told if request.get(name) is not None},
        "id": f"resp_up{number}",
        "object": "response",
        "created_at": number,
        "status": "incomplete" if why else "completed",
        "error": None,
        "incomplete_details": {"reason": why} if why else None,
        "model": str(request.get("model")),
        "output": output,
        "previous_response_id": None,
        "store": request.get("store", True),
        "usage": {
            "input_tokens": read,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": written,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": read + written,
        },
    }


def events_of(answer: Mapping[str, Any]) -> Iterator[bytes]:
    """The answer as events: text word by word, arguments in two halves."""
    begun = {**answer, "status": "in_progress", "output": [], "usage": None}
    events = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
    ]
    for place, item in enumerate(answer["output"]):
        events += _item_events(place, item)
    events.append({"type": f"response.{answer['status']}", "response": answer})
    for number, event in enumerate(events):
        numbered = {**event, "sequence_number": number}
        yield f"event: {event['type']}\ndata: {json.dumps(numbered)}\n\n".encode()


def _item_events(place: int, item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    empty = {**item, "content": []} if item["type"] == "message" else dict(item)
    yield {"type": "response.output_item.added", "output_index": place, "item": empty}
    about = {"output_index": place, "item_id": item.get("id")}
    if item["type"] == "message":
        yield from _message_events(item, about)
    elif item["type"] == "reasoning":
        yield from _reasoning_events(item, about)
    elif item["type"] in ("function_call", "custom_tool_call"):
        name = "arguments" if "arguments" in item else "input"
        kind, half = f"response.{item['type']}_{name}", len(item[name]) // 2
        for piece in (item[name][:half], item[name][half:]):
            yield {"type": f"{kind}.delta", **about, "delta": piece}
        yield {"type": f"{kind}.done", **about, "name": item["name"], name: item[name]}
    yield {"type": "response.output_item.done", "output_index": place, "item": item}


def _message_events(item: Mapping[str, Any], about: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for index, part in enumerate(item["content"]):
        at, name = {**about, "content_index": index}, "text" if "text" in part else "refusal"
        kind = f"response.{'output_text' if name == 'text' else 'refusal'}"
        yield {"type": "response.content_part.added", **at, "part": {**part, name: ""}}
        for piece in pieces_of(part[name]):
            yield {"type": f"{kind}.delta", **at, "delta": piece, "logprobs": []}
        yield {"type": f"{kind}.done", **at, name: part[name], "logprobs": []}
        yield {"type": "response.content_part.done", **at, "part": part}


def _reasoning_events(item: Mapping[str, Any], about: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for index, part in enumerate(item["summary"]):
        at, kind = {**about, "summary_index": index}, "response.reasoning_summary"
        yield {"type": f"{kind}_part.added", **at, "part": {**part, "text": ""}}
        for piece in pieces_of(part["text"]):
            yield {"type": f"{kind}_text.delta", **at, "delta": piece}
        yield {"type": f"{kind}_text.done", **at, "text": part["text"]}
        yield {"type": f"{kind}_part.done", **at, "part": part}
