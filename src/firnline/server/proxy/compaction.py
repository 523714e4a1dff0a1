"""Histories of which a client has replaced a part by a summary of its own. Pure.

Coding agents do so when their history nears the window: they send a few of the old messages, the
summary, and what is new. The log still has everything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from firnline.context.marks import MARK_KEY
from firnline.log.entry import Entry
from firnline.log.message import Message
from firnline.log.regex import regex
from firnline.server.proxy import limits
from firnline.server.proxy.request import fingerprint, is_spoken

_OPENING: Final = regex(
    r"\s{0,9}(This session is being continued|Another language model .{0,80}produced a summary)"
)
"""How the summaries of Claude Code and Codex begin."""
_TAG: Final = "summary>"
_CHARS_MIN: Final = 16
"""A text that is repeated by chance is shorter."""


def has_summary(messages: Sequence[Message], tail: Sequence[Entry]) -> bool:
    """Whether one of the messages is a summary, perhaps one that the log's tail has as answer."""
    return bool(_summaries(messages, tail))


def _summaries(messages: Sequence[Message], log: Sequence[Entry]) -> set[int]:
    """The places of the summaries."""
    answers = [_summary_in(entry.message) for entry in log[-limits.SUMMARY_ENTRIES :]]
    return {at for at, each in enumerate(messages) if _is_summary(each, answers)}


def new_messages(messages: Sequence[Message], log: Sequence[Entry]) -> list[Message] | None:
    """What a history with a summary adds to the log; None if it has none.

    The summary is marked as no message of the conversation.
    """
    summaries = _summaries(messages, log)
    known = _known(messages, log)
    sure = any(_begins_as_summary(messages[at]) for at in summaries)
    if not summaries or not (sure or known - summaries):
        return None  # an answer is quoted
    return [
        _marked(message) if at in summaries else message
        for at, message in enumerate(messages)
        if at not in known
    ]


def _known(messages: Sequence[Message], log: Sequence[Entry]) -> set[int]:
    """The places of the messages that the log has, in whatever order they are sent.

    The last one is new, unless the log ends with it: the same may be said again.
    """
    spoken = [fingerprint(entry.message) for entry in log if is_spoken(entry.message)]
    left = Counter(fingerprint(entry.message) for entry in log)
    known: set[int] = set()
    for at, message in enumerate(messages):
        mark = fingerprint(message)
        if left[mark] and (at + 1 < len(messages) or mark in spoken[-1:]):
            left[mark] -= 1
            known.add(at)
    return known


def _summary_in(message: Message) -> str:
    """The summary in an answer: what is in the tag, or all of it."""
    if message.role != "assistant":
        return ""
    _, begun, rest = message.text.partition(f"<{_TAG}")
    text = rest.partition(f"</{_TAG}")[0] if begun else message.text
    return " ".join(text.split())


def _is_summary(message: Message, answers: Sequence[str]) -> bool:
    if message.role != "user":
        return False
    text = " ".join(message.text.split())
    told = any(len(answer) >= _CHARS_MIN and answer in text for answer in answers)
    return told or _begins_as_summary(message)


def _begins_as_summary(message: Message) -> bool:
    return _OPENING.match(message.text) is not None


def _marked(message: Message) -> Message:
    return replace(message, metadata={**message.metadata, MARK_KEY: "injected"})
