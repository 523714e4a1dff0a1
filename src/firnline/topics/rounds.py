"""Rounds: a question and its answer, which often shows what the question is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from firnline.context.plan import is_question
from firnline.log import limits
from firnline.log.entry import Entry, Topic
from firnline.topics.followup import says_something
from firnline.topics.vectors import Floats, mean, unit

_QUESTION_SHARE: Final = 0.5  # of the text that is embedded, at most


def answers(entries: Sequence[Entry]) -> dict[int, Entry]:
    """The answer to each question that has one, by the question's number.

    It is the first text after it that says something, without tool calls.
    """
    found: dict[int, Entry] = {}
    asked: Entry | None = None
    for entry in entries:
        if is_question(entry.message):
            asked = entry
        elif asked is not None and _answers(entry):
            found[asked.seq] = entry
            asked = None
    return found


def _answers(entry: Entry) -> bool:
    message = entry.message
    return message.role == "assistant" and not message.tool_calls and says_something(message.text)


def answered_text(question: str, answer: str) -> str:
    """Both as one text, to be embedded; a long question leaves room for the answer."""
    asked = question[: int(limits.PASSAGE_CHARS * _QUESTION_SHARE)]
    return f"{asked}\n{answer}"


def open_question(entries: Sequence[Entry]) -> Sequence[Entry]:
    """The newest question and what follows it, if it has no answer yet; otherwise nothing."""
    for at in range(len(entries) - 1, -1, -1):
        if _answers(entries[at]):
            return ()
        if is_question(entries[at].message):
            return entries[at:]
    return ()


def without_newest(
    topic: Topic, entries: Sequence[Entry], vectors: Mapping[int, Floats], last: Entry
) -> Topic | None:
    """The topic as it was before these, its newest entries, of which `last` is the one before.

    None if that is not known any more.
    """
    added = [one for entry in entries if (one := unit(vectors.get(entry.seq))) is not None]
    left = topic.vectors - len(added)
    time = last.message.created_at
    if left < 0 or time is None or any(4 * len(one) != len(topic.vector) for one in added):
        return None
    before = replace(
        topic,
        entries=topic.entries - len(entries),
        last_seq=last.seq,
        last_active_at=time,
        access_count=max(topic.access_count - 1, 0),
    )
    if not left:
        return replace(before, model="", vectors=0, vector=b"")
    if not added:
        return before
    average = [sum(numbers) / len(added) for numbers in zip(*added, strict=True)]
    return replace(
        before, vectors=left, vector=mean(topic.vector, topic.vectors, average, -len(added))
    )
