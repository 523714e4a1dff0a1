"""The providers' rules for the order of messages, as code. Each function lists what breaks them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def openai_problems(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Every tool call is answered at once and completely; no result comes without its call."""
    problems: list[str] = []
    waiting: set[str] = set()
    for at, message in enumerate(messages):
        answers = message.get("tool_call_id") if message["role"] == "tool" else None
        if answers is not None:
            if answers not in waiting:
                problems.append(f"{at}: a result for {answers!r}, which was not called")
            waiting.discard(answers)
            continue
        if waiting:
            problems.append(f"{at}: {sorted(waiting)} are not answered")
        waiting = {call["id"] for call in message.get("tool_calls") or ()}
    if waiting:
        problems.append(f"the end: {sorted(waiting)} are not answered")
    return problems


def anthropic_problems(request: Mapping[str, Any]) -> list[str]:
    """User and assistant take turns, the user first; results come first and answer the calls."""
    problems: list[str] = []
    turns = request["messages"]
    for at, turn in enumerate(turns):
        if turn["role"] != ("user", "assistant")[at % 2]:
            problems.append(f"{at}: {turn['role']} is not in turn")
        if not turn["content"]:
            problems.append(f"{at}: it is empty")
        called = _ids(turns[at - 1], "tool_use", "id") if at else set()
        results = _ids(turn, "tool_result", "tool_use_id")
        if turn["role"] == "user" and called != results:
            problems.append(f"{at}: called {sorted(called)}, answered {sorted(results)}")
        kinds = [block["type"] == "tool_result" for block in turn["content"]]
        if kinds != sorted(kinds, reverse=True):
            problems.append(f"{at}: a result behind something else")
        if any(block["type"] == "text" and not block["text"].strip() for block in turn["content"]):
            problems.append(f"{at}: an empty text")
    if turns and _ids(turns[-1], "tool_use", "id"):
        problems.append("the end: a call without its results")
    return problems


def _ids(turn: Mapping[str, Any], kind: str, name: str) -> set[str]:
    return {block[name] for block in turn["content"] if block["type"] == kind}
