"""The output of commands: entries, heads, and results; text for people, JSON for programs."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from typing import Any, Final

from firnline.cli.terminal import cut, plain, progress_bar
from firnline.context.marks import INTERRUPTED
from firnline.log.attachment import Split, find_attachment
from firnline.log.entry import Entry, Head
from firnline.log.message import Message, format_time
from firnline.log.text import plural
from firnline.protocols import Progress

_NAME: Final = 60


def entry_json(entry: Entry) -> dict[str, Any]:
    """An entry as JSON."""
    message = entry.message
    return {
        "seq": entry.seq,
        "created_at": format_time(message.created_at) if message.created_at else None,
        "tokens": entry.tokens,
        "tokenizer": entry.tokenizer,
        "hash": entry.hash,
        "archived": entry.archived,
        "erased_at": format_time(entry.erased_at) if entry.erased_at else None,
        "metadata": message.metadata,
        "message": message.to_openai(),
    }


def head_json(head: Head) -> dict[str, Any]:
    """A conversation's head as JSON."""
    times = {name: format_time(getattr(head, name)) for name in ("created_at", "updated_at")}
    return {**asdict(head), "entries": head.entries, **times}


def entry_text(entry: Entry) -> str:
    """An entry as text: its number, time, speaker, and content."""
    if entry.erased_at is not None:
        return f"{entry.seq:>4} {'':16}  (erased {entry.erased_at:%Y-%m-%d %H:%M})"
    return message_text(entry.message, str(entry.seq))


def message_text(message: Message, number: str = "") -> str:
    """A message as text, with its number if it has one."""
    when = f"{message.created_at:%Y-%m-%d %H:%M}" if message.created_at else ""
    who = f"{message.role} ({message.name})" if message.name else message.role
    calls = [f"→ {call.name}({cut(call.arguments, 200)})" for call in message.tool_calls]
    marks = [*_attached(message), *_interrupted(message)]
    text = "\n".join(filter(None, (message.text, *calls, *marks)))
    indented = plain(text).replace("\n", "\n     ")
    return (
        f"{number:>4} {when}  {plain(who)}: {indented}"
        if number
        else f"     {plain(who)}: {indented}"
    )


def _attached(message: Message) -> Iterator[str]:
    """The images, recordings and files of a message, each in brackets."""
    parts = message.content if isinstance(message.content, tuple) else ()
    found = [attachment for part in parts if (attachment := find_attachment(part.fields))]
    results = [part.fields.get("content") for part in parts if part.kind == "tool_result"]
    for rest in (results, message.extra):
        found += Split.of_fields({"": rest} if isinstance(rest, list) else rest).attachments
    for one in found:
        size = plural(one.data.size, "byte") if one.data is not None else ""
        name = cut(one.texts[0], _NAME) if one.texts else ""
        yield f"[{', '.join(filter(None, (one.medium, name, one.media_type, size)))}]"


def _interrupted(message: Message) -> Iterator[str]:
    if why := message.metadata.get(INTERRUPTED):
        yield f"[interrupted: {cut(str(why), _NAME)}]"


def report(
    options: argparse.Namespace, what: str, fields: dict[str, Any], shown: Sequence[str]
) -> None:
    """Print a result: all fields as JSON, or the `shown` ones as text."""
    if options.json:
        print_json(fields)
    else:
        numbers = ", ".join(_count(name, fields[name]) for name in shown)
        print(plain(f"{what}{numbers}"))


_NOUNS: Final = {"entries": "messages"}
"""What people call what a field counts."""


def _count(field: str, count: int) -> str:
    several = _NOUNS.get(field, field.replace("_", " "))
    one = several.removesuffix("es" if several.endswith("ches") else "s")
    return plural(count, one, several)


def print_json(value: object) -> None:
    """Print one line of JSON."""
    print(json.dumps(value, ensure_ascii=False, default=_plain_time))


def _plain_time(value: object) -> str:
    if isinstance(value, datetime):
        return format_time(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


@contextmanager
def progress_on(what: str) -> Iterator[Progress]:
    """A progress bar on standard error."""
    with progress_bar(what, sys.stderr) as progress:
        yield progress
