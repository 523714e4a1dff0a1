"""A Responses client with an endpoint that speaks chat completions or Anthropic's messages. Pure.

Requests are translated there, answers back into items. What an endpoint cannot do is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from firnline.context.tools import Tool
from firnline.errors import InputError
from firnline.log.json_text import parse_json
from firnline.log.message import encode_json
from firnline.log.openai_items import SEALED, flat_name
from firnline.server.proxy import limits
from firnline.server.proxy.response_events import (
    Item,
    message_item,
    new_id,
    reasoning_item,
    sealed,
    text_part,
)
from firnline.server.proxy.response_fields import FIELDS

_NEEDS: Final = (
    "this server's endpoint does not speak the Responses API; use one that does"
    " (FIRNLINE_UPSTREAM), or leave it out"
)
_SAME: Final = (
    "model",
    "stream",
    "temperature",
    "top_p",
    "parallel_tool_calls",
    "prompt_cache_key",
    "safety_identifier",
    "service_tier",
    "user",
    "top_logprobs",
)
"""Fields that chat completions have under the same name."""
_CALLED: Final = ("function", "custom")
"""The types of tools that the client runs."""
_LOGPROBS: Final = "message.output_text.logprobs"
_REASONS: Final = {
    "length": "max_output_tokens",
    "max_tokens": "max_output_tokens",
    "content_filter": "content_filter",
    "refusal": "content_filter",
}
"""Why an answer is incomplete."""


# -- the request ------------------------------------------------------------------------------


def check_translatable(body: Mapping[str, Any]) -> None:
    """Raise `InputError` for what only an endpoint of the Responses API can do."""
    for name, value in body.items():
        if name not in FIELDS:
            raise InputError(f"unknown parameter: {name}", param=name)
        if FIELDS[name].translated == "refused" and value is not None:
            raise InputError(f"{name}: {_NEEDS}", param=name)


def unused_fields(body: Mapping[str, Any], *, anthropic: bool) -> list[str]:
    """The fields of a request that have no effect at the endpoint."""
    unused = [name for name in body if FIELDS[name].translated == "no effect" and body[name]]
    unused += left_out_tools(body)
    reasoning = body.get("reasoning")
    if isinstance(reasoning, Mapping):
        known = () if anthropic else ("effort",)
        unused += [f"reasoning.{name}" for name in reasoning if name not in known]
    if anthropic:
        unused += [name for name in ("prompt_cache_key", "service_tier") if body.get(name)]
        text = body.get("text")
        verbosity = text.get("verbosity") if isinstance(text, Mapping) else None
        unused += ["text.verbosity"] if verbosity else []
    return unused


def chat_request(body: Mapping[str, Any], limit: str) -> Item:
    """A request for chat completions, without messages; `limit` is its name for the longest answer.

    `InputError` for what it cannot do.
    """
    check_translatable(body)
    tools, choice = _allowed_tools(body)
    request: Item = {name: body[name] for name in _SAME if body.get(name) is not None}
    if body.get("max_output_tokens"):
        request[limit] = body["max_output_tokens"]
    if tools:
        request["tools"] = [{"type": "function", "function": tool} for tool in tools]
        if isinstance(choice, Mapping):
            choice = {"type": "function", "function": {"name": _chosen_name(choice)}}
        request |= {"tool_choice": choice} if choice else {}
    else:
        request.pop("parallel_tool_calls", None)
    if _LOGPROBS in (body.get("include") or ()) or body.get("top_logprobs"):
        request["logprobs"] = True
    else:
        request.pop("top_logprobs", None)  # 0 is what clients send if they want none
    reasoning, text = _object(body, "reasoning"), _object(body, "text")
    if reasoning.get("effort"):
        request["reasoning_effort"] = reasoning["effort"]
    if text.get("verbosity"):
        request["verbosity"] = text["verbosity"]
    if form := _format(text):
        schema = {name: value for name, value in form.items() if name != "type"}
        named = {"json_schema": schema} if form["type"] == "json_schema" else {}
        request["response_format"] = {"type": form["type"], **named}
    return request


def anthropic_request(body: Mapping[str, Any]) -> Item:
    """A request for Anthropic's messages, without messages; `InputError` for what it cannot do."""
    check_translatable(body)
    if _LOGPROBS in (body.get("include") or ()) or body.get("top_logprobs"):
        raise InputError("top_logprobs: Anthropic's endpoint has no log probabilities")
    tools, choice = _allowed_tools(body)
    names = ("model", "stream", "temperature", "top_p")
    request: Item = {name: body[name] for name in names if body.get(name) is not None}
    request["max_tokens"] = body.get("max_output_tokens") or limits.RESERVE_TOKENS_MAX
    if tools:
        request["tools"] = [_anthropic_tool(tool) for tool in tools]
        single = body.get("parallel_tool_calls") is False
        request["tool_choice"] = _anthropic_choice(choice, single=single)
    if (user := body.get("safety_identifier") or body.get("user")) is not None:
        request["metadata"] = {"user_id": user}
    if form := _format(_object(body, "text")):
        if form["type"] != "json_schema":
            raise InputError("text.format: Anthropic's endpoint needs a json_schema")
        schema = {"type": "json_schema", "schema": form.get("schema")}
        request["output_config"] = {"format": schema}
    return request


def _object(body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = body.get(name) or {}
    if not isinstance(value, Mapping):
        raise InputError(f"{name}: expected an object", param=name)
    return value


def _format(text: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The form that an answer must have; None for text."""
    form = text.get("format")
    if form is None or (isinstance(form, Mapping) and form.get("type") == "text"):
        return None
    if not isinstance(form, Mapping) or form.get("type") not in ("json_schema", "json_object"):
        raise InputError("text.format: expected the type text, json_schema or json_object")
    return form


def _allowed_tools(body: Mapping[str, Any]) -> tuple[list[Item], Any]:
    """The tools that may be called, as functions, and the choice among them.

    Those of a namespace have it in their names. Tools that OpenAI's servers run are left out if
    there is another one; `InputError` if the request is about them.
    """
    tools, choice = _listed_tools(body), body.get("tool_choice")
    if isinstance(choice, Mapping) and choice.get("type") == "allowed_tools":
        allowed = [tool for tool in choice.get("tools") or () if isinstance(tool, Mapping)]
        names = {tool.get("name") for tool in allowed}
        tools = [tool for tool in tools if tool.get("name") in names]
        choice = choice.get("mode", "auto")
    found = [function for tool in tools for function in _functions(tool)]
    if tools and not found:
        raise InputError(f"tools: {str(tools[0].get('type'))[:80]}: {_NEEDS}", param="tools")
    return found, choice


def _listed_tools(body: Mapping[str, Any]) -> list[Any]:
    tools = body.get("tools") or []
    if not isinstance(tools, list) or not all(isinstance(tool, Mapping) for tool in tools):
        raise InputError("tools: expected a list of objects", param="tools")
    return tools


def _functions(tool: Mapping[str, Any], namespace: str = "") -> Iterator[Item]:
    """A tool as functions; none if only OpenAI's servers can run it."""
    if tool.get("type") == "namespace":
        for inner in tool.get("tools") or ():
            if isinstance(inner, Mapping):
                yield from _functions(inner, f"{tool.get('name')}")
    elif tool.get("type") in _CALLED:
        name = tool.get("name")
        if not isinstance(name, str) or not name:
            raise InputError("tools: a function needs a name", param="tools")
        yield _function({**tool, "name": flat_name(name, namespace)})


def left_out_tools(body: Mapping[str, Any]) -> list[str]:
    """The types of the tools that only OpenAI's servers can run."""
    kinds = [str(tool.get("type"))[: limits.TOOL_TYPE_CHARS_MAX] for tool in _listed_tools(body)]
    return [f"tools: {kind}" for kind in kinds if kind not in (*_CALLED, "namespace")]


def _chosen_name(choice: Mapping[str, Any]) -> str:
    if choice.get("type") not in ("function", "custom") or not isinstance(choice.get("name"), str):
        raise InputError(f"tool_choice: {str(choice.get('type'))[:80]}: {_NEEDS}")
    return str(choice["name"])


def _function(tool: Mapping[str, Any]) -> Item:
    """A function, or a custom tool as a function with the argument `input`."""
    if tool["type"] == "function":
        known = ("name", "description", "parameters", "strict")
        return {key: tool[key] for key in known if tool.get(key) is not None}
    text, form = str(tool.get("description") or ""), tool.get("format")
    if isinstance(form, Mapping) and form.get("definition"):
        text += f"\nThe input must follow this grammar:\n{form['definition']}"
    schema = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
    return {"name": tool["name"], "description": text, "parameters": schema}


def _anthropic_tool(function: Mapping[str, Any]) -> Item:
    about = {name: function[name] for name in ("name", "description") if name in function}
    return {**about, "input_schema": function.get("parameters") or {"type": "object"}}


def _anthropic_choice(choice: Any, *, single: bool) -> Item:
    kinds = {"none": "none", "required": "any"}
    if isinstance(choice, Mapping):
        found: Item = {"type": "tool", "name": _chosen_name(choice)}
    else:
        found = {"type": kinds.get(str(choice), "auto")}
    return {**found, "disable_parallel_tool_use": True} if single else found


class CallName(NamedTuple):
    """How a client calls a tool whose name an endpoint knows in another form."""

    name: str
    namespace: str = ""
    is_custom: bool = False


def call_names(tools: object, namespace: str = "") -> dict[str, CallName]:
    """The tools that endpoints know in another form, by the names that endpoints know."""
    found: dict[str, CallName] = {}
    listed = tools if isinstance(tools, list) else []
    for tool in listed:
        if not isinstance(tool, Mapping):
            continue
        name, custom = str(tool.get("name")), tool.get("type") == "custom"
        if tool.get("type") == "namespace":
            found |= call_names(tool.get("tools"), name)
        elif custom or namespace:
            found[flat_name(name, namespace)] = CallName(name, namespace, custom)
    return found


def response_tool(tool: Tool) -> Item:
    """A tool of ours as the Responses API offers it."""
    return {"type": "function", **tool.to_openai()["function"]}


# -- the answer -------------------------------------------------------------------------------


def incomplete_reason(finish_reason: str) -> str:
    """Why an answer is incomplete; empty if it is complete."""
    return _REASONS.get(finish_reason, "")


class AnswerItems:
    """The items of one answer: their ids are known before the answer is complete.

    `names` are the tools that the client calls in another form.
    """

    def __init__(self, names: Mapping[str, CallName]) -> None:
        self.message_id, self.thought_id = new_id("msg"), new_id("rs")
        self._names = names

    def of_chat(self, fields: Mapping[str, Any], logs: Sequence[Item], reason: str) -> list[Item]:
        """The items of a chat completion's message, and its log probabilities."""
        found: list[Item] = []
        thought = fields.get("reasoning_content") or fields.get("reasoning")
        if isinstance(thought, str) and thought:
            found.append(reasoning_item(self.thought_id, thought))
        content = fields.get("content")
        if isinstance(content, list):
            content = "\n".join(str(part.get("text") or "") for part in content)
        parts = []
        if content:
            notes = [_annotation(each) for each in fields.get("annotations") or ()]
            parts.append(text_part(content, annotations=notes, logprobs=list(logs)))
        if fields.get("refusal"):
            parts.append({"type": "refusal", "refusal": fields["refusal"]})
        calls = [self._chat_call(call) for call in fields.get("tool_calls") or ()]
        if parts or not calls:
            status = "incomplete" if reason else "completed"
            found.append(message_item(self.message_id, parts or [text_part("")], status))
        return [*found, *calls]

    def of_anthropic(self, blocks: Sequence[Mapping[str, Any]], reason: str) -> list[Item]:
        """The items of Anthropic's blocks: reasoning, the text, calls."""
        thoughts = [each for each in blocks if str(each.get("type")).endswith("thinking")]
        ids = [self.thought_id, *(new_id("rs") for _ in thoughts)]
        found = [
            reasoning_item(each, str(block.get("thinking") or ""), sealed(block, SEALED))
            for each, block in zip(ids, thoughts, strict=False)
        ]
        text = "\n".join(str(each.get("text") or "") for each in blocks if each["type"] == "text")
        uses = [each for each in blocks if each.get("type") == "tool_use"]
        if text or not uses:
            status = "incomplete" if reason else "completed"
            found.append(message_item(self.message_id, [text_part(text)], status))
        return [*found, *(self._use(each) for each in uses)]

    def _chat_call(self, call: Mapping[str, Any]) -> Item:
        function = call.get("function") or call.get("custom") or {}
        arguments = function.get("arguments")
        return self._call(call.get("id"), function.get("name"), str(arguments or "{}"))

    def _use(self, block: Mapping[str, Any]) -> Item:
        arguments = encode_json(block.get("input") or {})
        return self._call(block.get("id"), block.get("name"), arguments)

    def _call(self, call_id: object, name: object, arguments: str) -> Item:
        known = self._names.get(str(name), CallName(str(name)))
        about = {"call_id": str(call_id or new_id("call")), "name": known.name}
        if known.namespace:
            about["namespace"] = known.namespace
        if known.is_custom:
            item = {"id": new_id("ctc"), "type": "custom_tool_call", "status": "completed"}
            return {**item, **about, "input": _input(arguments)}
        item = {"id": new_id("fc"), "type": "function_call", "status": "completed"}
        return {**item, **about, "arguments": arguments}


def _annotation(note: Mapping[str, Any]) -> Item:
    """A citation of chat completions, whose fields are one level deeper."""
    inner = note.get(str(note.get("type")))
    return {"type": note.get("type"), **inner} if isinstance(inner, Mapping) else dict(note)


def _input(arguments: str) -> str:
    """The input of a custom tool in the arguments of a function; all of them if it is not there."""
    try:
        parsed = parse_json(arguments)
    except (ValueError, RecursionError):
        return arguments
    found = parsed.get("input") if isinstance(parsed, dict) else None
    return found if isinstance(found, str) else arguments


def chat_usage(usage: Mapping[str, Any]) -> Item:
    """What a chat completion cost, in the terms of the Responses API."""
    prompt, answer = _details(usage, "prompt"), _details(usage, "completion")
    read, written = usage.get("prompt_tokens") or 0, usage.get("completion_tokens") or 0
    return _usage(
        read,
        written,
        cached=prompt.get("cached_tokens") or 0,
        stored=prompt.get("cache_write_tokens") or 0,
        thought=answer.get("reasoning_tokens") or 0,
    )


def _details(usage: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = usage.get(f"{name}_tokens_details")
    return found if isinstance(found, Mapping) else {}


def anthropic_usage(usage: Mapping[str, Any]) -> Item:
    """What an answer of Anthropic's cost: there, cached tokens are counted separately."""
    cached = usage.get("cache_read_input_tokens") or 0
    stored = usage.get("cache_creation_input_tokens") or 0
    read = (usage.get("input_tokens") or 0) + cached + stored
    return _usage(read, usage.get("output_tokens") or 0, cached=cached, stored=stored)


def _usage(read: int, written: int, *, cached: int, stored: int, thought: int = 0) -> Item:
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": stored},
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": thought},
        "total_tokens": read + written,
    }
