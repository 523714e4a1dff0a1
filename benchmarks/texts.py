"""The texts of the messages: real chats from a package, or the user's own from a file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from firnline import Message

_ROLES = ("user", "assistant")


def packaged() -> list[Message]:
    """The English conversations of chatterbot-corpus, which people wrote (BSD license)."""
    folder = resources.files("chatterbot_corpus").joinpath("data/english")
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    return [
        Message(_ROLES[i % 2], str(line))
        for file in files
        if file.name.endswith(".yml")
        for talk in yaml.safe_load(file.read_text(encoding="utf-8"))["conversations"]
        for i, line in enumerate(talk)
    ]


def from_file(sample: Path) -> list[Message]:
    """The messages of any JSON or JSON Lines file: whatever in it has a role or speaker and a text.

    An export of Firnline's, lists of OpenAI messages and the LoCoMo data set are such files.
    """
    text = sample.read_text(encoding="utf-8")
    try:
        documents = [json.loads(text)]
    except json.JSONDecodeError:
        documents = [json.loads(line) for line in text.splitlines()]
    messages = [message for document in documents for message in _said(document)]
    if not messages:
        raise SystemExit(f"{sample}: no messages found in it")
    return messages


def _said(value: Any) -> Iterator[Message]:
    if isinstance(value, dict):
        text = value.get("content", value.get("text"))
        who = value.get("role", value.get("speaker"))
        if isinstance(text, str) and isinstance(who, str):
            yield Message("assistant" if who == "assistant" else "user", text)
            return
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _said(item)
