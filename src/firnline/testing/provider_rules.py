"""The providers' rules for the order of messages. Each function lists the violations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def openai_problems(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Results follow their tool calls directly and completely; none comes without its call."""
    problems: list[str] = []
    waiting: set[str] = set()
    for at, message in enumerate(messages):
        answers = message.get("tool_call_id") if message["role"] == "tool" else None
        if answers is not None:
            if answers not in waiting:
                problems.append(f"{at}: a result for {answers!r} without its call")
            waiting.discard(answers)
            continue
        if waiting:
            problems.append(f"{at}: calls without results: {sorted(waiting)}")
        waiting = {call["id"] for call in message.get("tool_calls") or ()}
    if waiting:
        problems.append(f"end: calls without results: {sorted(waiting)}")
    return problems


def anthropic_problems(request: Mapping[str, Any]) -> list[str]:
    """User and assistant alternate, the user first; results come first and match the calls."""
    problems: list[str] = []
    turns = request["messages"]
    for at, turn in enumerate(turns):
        if turn["role"] != ("user", "assistant")[at % 2]:
            problems.append(f"{at}: unexpected role {turn['role']}")
        if not turn["content"]:
            problems.append(f"{at}: empty content")
        called = _ids(turns[at - 1], "tool_use", "id") if at else set()
        results = _ids(turn, "tool_result", "tool_use_id")
        if turn["role"] == "user" and called != results:
            problems.append(f"{at}: calls {sorted(called)}, results {sorted(results)}")
        kinds = [block["type"] == "tool_result" for block in turn["content"]]
        if kinds != sorted(kinds, reverse=True):
            problems.append(f"{at}: a result after other content")
        if any(block["type"] == "text" and not block["text"].strip() for block in turn["content"]):
            problems.append(f"{at}: empty text")
    if turns and _ids(turns[-1], "tool_use", "id"):
        problems.append("end: a call without its results")
    return problems


def _ids(turn: Mapping[str, Any], kind: str, name: str) -> set[str]:
    return {block[name] for block in turn["content"] if block["type"] == kind}
