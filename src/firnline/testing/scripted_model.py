"""The answers of `ModelServer` by rule, similar to those of a real model. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from firnline.log.message import encode_json
from firnline.log.regex import regex
from firnline.models.repair import json_values

_SUMMARY: Final = regex(r"summar|digest|zusammenfass|resum|résum|резюм|摘要|总结", re.IGNORECASE)
_JSON: Final = regex(r"json schema", re.IGNORECASE)
_RANGE: Final = regex(
    r"(\d{1,9})\s{0,9}(?:-|\u2013|to|and|bis|до)\s{0,9}(\d{1,9})\s{0,9}(?:words?|Wörter|слов)"
)
_WORDS: Final = regex(r"(\d{1,9})\s{0,9}(?:words?|Wörter|слов)")
_TOKENS: Final = regex(r"(\d{1,9}) tokens")
_TURN: Final = regex(
    r"^[^\S\n]*(?:[#\[(]*\d++[\])]*[:.]?[^\S\n]*)?(?:\*\*)?(?:user|assistant|tool|human|ai)(?:\*\*)?\s*:\s*(.+)$",
    re.IGNORECASE | re.MULTILINE,
)
_SENTENCE: Final = regex(r"[^.!?\u3002\uff01\uff1f\n]+[.!?\u3002\uff01\uff1f]*")
_FACTS: Final = regex(r"\d|https?:|(?<=\s)[A-Z]\w+")

WORDS_DEFAULT: Final = 80
ITEMS_MAX: Final = 5
ECHO_WORDS: Final = 20


def think(request: Mapping[str, Any]) -> dict[str, Any]:
    """The assistant's message for a chat completions request."""
    asked = _last_user(request)
    if (called := _forced_tool(request)) is not None:
        return call_tool(*called)
    if (schema := _schema(request, asked)) is not None:
        return {"role": "assistant", "content": encode_json(_filled(schema, asked))}
    if _SUMMARY.search(asked) or _SUMMARY.search(_instructions(request)) or _rows(asked):
        return {"role": "assistant", "content": summarize(request, asked)}
    words = asked.split()
    return {"role": "assistant", "content": " ".join(["You said:", *words[:ECHO_WORDS]])}


def call_tool(name: str, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """An assistant's message that calls one tool."""
    text = encode_json(dict(arguments or {}))
    call = {"id": f"call_{name}", "type": "function", "function": {"name": name, "arguments": text}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def sample(schema: Mapping[str, Any]) -> Any:
    """The simplest value that satisfies a schema: lists are empty, optional fields are left out."""
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type", "object")
    if kind == "object":
        properties = schema.get("properties", {})
        return {name: sample(properties.get(name, {})) for name in schema.get("required", ())}
    simple = {"array": [], "string": "none", "boolean": False, "null": None}
    return simple.get(kind if isinstance(kind, str) else kind[0], 0)


# -- summaries --------------------------------------------------------------------------------


def summarize(request: Mapping[str, Any], asked: str) -> str:
    """Sentences of the messages within the requested words; names and numbers come first."""
    low, high = _target(f"{_instructions(request)}\n{asked}")
    said = [text for text, _ in _rows(asked, summaries=True)] or [
        turn[1] for turn in _TURN.finditer(asked)
    ]
    if not said:
        earlier = [text_of(message) for message in request.get("messages", ())][:-1]
        said = [text for text in earlier if not _SUMMARY.search(text)] or [asked]
    sentences = [match.group().strip() for text in said for match in _SENTENCE.finditer(text)]
    kept = _choose([one for one in sentences if one], low, high)
    return " ".join(kept) or "Nothing was said."


def _target(text: str) -> tuple[int, int]:
    low, high = 0, WORDS_DEFAULT
    if found := _RANGE.search(text):
        low, high = int(found[1]), int(found[2])
    elif found := _WORDS.search(text):
        high = int(found[1])
    if found := _TOKENS.search(text):
        high = min(high, int(found[1]) * 3 // 5)  # assume 5/3 tokens per word, to be safe
    return low, high


def _choose(sentences: Sequence[str], low: int, high: int) -> list[str]:
    """The most informative sentences, in order: `low` to `high` words, if there are as many."""
    room = max(high, 1)
    chosen: dict[int, str] = {}
    ranked = sorted(range(len(sentences)), key=lambda i: (-_worth(sentences[i]), i))
    for index in ranked:
        words = len(sentences[index].split())
        if words <= room:
            chosen[index] = sentences[index]
            room -= words
    left = [index for index in ranked if index not in chosen]
    if left and (not chosen or high - room < low):
        chosen[left[0]] = " ".join(sentences[left[0]].split()[:room])
    return [chosen[index] for index in sorted(chosen)]


def _worth(sentence: str) -> float:
    return len(_FACTS.findall(sentence)) / (len(sentence.split()) + 3)


# -- reading the request ----------------------------------------------------------------------


def text_of(message: Mapping[str, Any]) -> str:
    """The text of a message in the OpenAI format."""
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content or "")


def _last_user(request: Mapping[str, Any]) -> str:
    for message in reversed(request.get("messages", ())):
        if message.get("role") in ("user", "tool"):
            return text_of(message)
    return ""


def _instructions(request: Mapping[str, Any]) -> str:
    roles = ("system", "developer")
    messages = request.get("messages", ())
    return "\n".join(text_of(message) for message in messages if message.get("role") in roles)


def _forced_tool(request: Mapping[str, Any]) -> tuple[str, Any] | None:
    choice = request.get("tool_choice")
    tools = [tool.get("function", {}) for tool in request.get("tools") or ()]
    wanted = choice.get("function", {}).get("name") if isinstance(choice, dict) else None
    for tool in tools:
        if choice == "required" or tool.get("name") == wanted:
            return str(tool["name"]), sample(tool.get("parameters", {}))
    return None


def _schema(request: Mapping[str, Any], asked: str) -> Mapping[str, Any] | None:
    wanted = request.get("response_format") or {}
    if wanted.get("type") == "json_schema":
        schema = wanted.get("json_schema", {}).get("schema", {})
        return schema if isinstance(schema, Mapping) else {}
    if wanted.get("type") == "json_object" or _JSON.search(asked):
        return next(_schemas_in(asked), {"type": "object"})
    return None


def _schemas_in(text: str) -> Iterator[Mapping[str, Any]]:
    for value in json_values(text, "{"):
        if isinstance(value, dict) and value.get("type") in ("object", "array"):
            yield value


def _rows(asked: str, *, summaries: bool = False) -> list[tuple[str, int]]:
    """The messages, if given as JSON with text and seq; without any, earlier `summaries`."""
    found: list[tuple[str, int]] = []
    for value in json_values(asked, "["):
        for row in value if isinstance(value, list) else ():
            if isinstance(row, dict) and isinstance(row.get("text"), str):
                found.append((row["text"], int(row.get("seq", 0))))
            elif isinstance(row, str):
                found.append((row, -1))
        if any(seq >= 0 for _, seq in found):
            return found
    return found if summaries else []


def _filled(schema: Mapping[str, Any], asked: str) -> Any:
    """A value for the schema; a list of items with evidence gets some from the messages."""
    value = sample(schema)
    item = schema.get("properties", {}).get("items", {}).get("items", {})
    if {"seqs", "quote", "value"} <= set(item.get("properties", ())):
        said = [
            (sentence.group().strip(), seq)
            for text, seq in _rows(asked)
            for sentence in _SENTENCE.finditer(text)
            if seq >= 0 and _FACTS.search(sentence.group())
        ]
        best = sorted(said, key=lambda one: -_worth(one[0]))[:ITEMS_MAX]
        value["items"] = [
            {**sample(item), **_fact(item), "value": text, "quote": text, "seqs": [seq]}
            for text, seq in best
        ]
    return value


def _fact(item: Mapping[str, Any]) -> dict[str, str]:
    fields = item["properties"].get("field", {}).get("enum", ())
    return {"field": "important_facts"} if "important_facts" in fields else {}


# -- the provider's rules ---------------------------------------------------------------------


def complaint(request: Mapping[str, Any]) -> str | None:
    """Why a provider would reject the request, or None: format, roles, calls and results."""
    messages = request.get("messages")
    if not isinstance(messages, list) or not messages:
        return "messages: expected at least one message"
    open_calls: set[str] = set()
    for number, message in enumerate(messages):
        role = message.get("role") if isinstance(message, dict) else None
        if role not in ("system", "developer", "user", "assistant", "tool"):
            return f"messages[{number}].role: unknown role {role!r}"
        if role == "tool":
            if message.get("tool_call_id") not in open_calls:
                return f"messages[{number}]: a tool result without a preceding call"
            open_calls.discard(str(message["tool_call_id"]))
        elif open_calls:
            return f"messages[{number}]: expected the results of {', '.join(sorted(open_calls))}"
        else:
            open_calls = {str(call.get("id")) for call in message.get("tool_calls") or ()}
    return f"no result for {', '.join(sorted(open_calls))}" if open_calls else None
