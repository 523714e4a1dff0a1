"""Scores important data against conversations whose items are labelled by hand. Pure.

A label is a field and texts whose words must all occur in an item's name and value, ignoring case.
An item counts for the labels of its own field only. `gold` labels must be found; `fine` ones may
be. An item that matches no label is junk.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from firnline.cli.bench import person_facts
from firnline.cli.bench.person_facts import PersonChat
from firnline.digest.evidence import check_items
from firnline.digest.items import FIELDS, Item, merge
from firnline.digest.rules import extract
from firnline.errors import InputError
from firnline.log.entry import Entry
from firnline.log.message import Message, encode_json
from firnline.store.files import source_path

_SHAPE: Final = (
    "expected a list of objects with name, language, part, messages (role and content),"
    f" gold and fine (each a field and texts), or {person_facts.SHAPE}"
)


class FactLabel(NamedTuple):
    """A field, and texts of which an item has all."""

    field: str
    texts: tuple[str, ...]

    def matches(self, item: Item) -> bool:
        """Whether the item has this field and all the texts."""
        written = item.value if isinstance(item.value, str) else encode_json(item.value)
        words = f"{item.name} {written}".casefold()
        return item.field == self.field and all(
            word in words for text in self.texts for word in text.split()
        )


class FactChat(NamedTuple):
    """A conversation and its labels."""

    name: str
    language: str
    part: str
    entries: tuple[Entry, ...]
    gold: tuple[FactLabel, ...]
    fine: tuple[FactLabel, ...]


class FactScore(NamedTuple):
    """What an extraction found of one conversation."""

    chat: FactChat
    items: tuple[Item, ...]
    missed: tuple[FactLabel, ...]
    junk: tuple[Item, ...]


def report(path: Path) -> str:
    """The table and what was missed, of the labelled conversations of a JSON file.

    Those with the field `facts` have the facts of a person, the others important data.
    """
    found = load(path)
    people = [person_facts.score(one) for one in found if isinstance(one, PersonChat)]
    scores = [score(one) for one in found if isinstance(one, FactChat)]
    texts = [table(scores), details(scores)] if scores else []
    if people:
        texts += [person_facts.table(people), person_facts.details(people)]
    return "\n\n".join(filter(None, texts))


def load(path: Path) -> list[FactChat | PersonChat]:
    """The labelled conversations of a JSON file."""
    try:
        rows = json.loads(source_path(path).read_text(encoding="utf-8"))
        return [person_facts.chat_of(row) if "facts" in row else _chat(row) for row in rows]
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(f"{path.name}: {_SHAPE}; got {error!r}") from error


def _chat(row: dict[str, object]) -> FactChat:
    messages = row["messages"]
    if not isinstance(messages, list):
        raise TypeError("messages")
    entries = tuple(
        Entry(seq, Message(one["role"], one["content"]), 0, 0, "", "")
        for seq, one in enumerate(messages)
    )
    return FactChat(
        str(row["name"]),
        str(row["language"]),
        str(row["part"]),
        entries,
        tuple(_labels(row["gold"])),
        tuple(_labels(row.get("fine", []))),
    )


def _labels(rows: object) -> Iterable[FactLabel]:
    for field, *texts in rows if isinstance(rows, list) else ():
        if field not in FIELDS or not texts:
            raise ValueError(f"{field}: a label is one of {', '.join(FIELDS)}, and texts")
        yield FactLabel(field, tuple(text.casefold() for text in texts))


def score(chat: FactChat) -> FactScore:
    """Extract the conversation's important data by the rules, and compare it with its labels."""
    proved, _ = check_items(extract(chat.entries), chat.entries)
    items = tuple(item for item in merge((), proved) if item.superseded_by is None)
    missed = tuple(label for label in chat.gold if not any(map(label.matches, items)))
    labels = (*chat.gold, *chat.fine)
    junk = tuple(item for item in items if not any(label.matches(item) for label in labels))
    return FactScore(chat, items, missed, junk)


def table(scores: Sequence[FactScore]) -> str:
    """Recall and junk by language and part, as a Markdown table."""
    lines = [
        "| language | part | chats | labels | recall | items | junk |",
        "|---|---|---|---|---|---|---|",
    ]
    groups = dict.fromkeys((one.chat.language, one.chat.part) for one in scores)
    for language, part in groups:
        these = [one for one in scores if (one.chat.language, one.chat.part) == (language, part)]
        gold, missed, items, junk = totals(these)
        recall, share = _percent(gold - missed, gold), _percent(junk, items)
        lines.append(
            f"| {language} | {part} | {len(these)} | {gold} | {recall} | {items} | {share} |"
        )
    return "\n".join(lines)


def totals(scores: Iterable[FactScore]) -> tuple[int, int, int, int]:
    """The numbers of gold labels, of missed ones, of items, and of junk."""
    rows = [(len(s.chat.gold), len(s.missed), len(s.items), len(s.junk)) for s in scores]
    gold, missed, items, junk = (sum(row[i] for row in rows) for i in range(4))
    return gold, missed, items, junk


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def details(scores: Iterable[FactScore]) -> str:
    """What was missed and what is junk, by conversation; empty if nothing."""
    lines = []
    for one in scores:
        if one.missed or one.junk:
            lines.append(one.chat.name)
        lines += [f"  missed: {label.field}: {' & '.join(label.texts)}" for label in one.missed]
        lines += [f"  junk:   {item.field}: {_text(item)}" for item in one.junk]
    return "\n".join(lines)


def _text(item: Item) -> str:
    written = item.value if isinstance(item.value, str) else encode_json(item.value)
    return f"{item.name}: {written}" if item.name else written
