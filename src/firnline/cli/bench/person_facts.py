"""Scores the facts of people against conversations whose facts are labelled by hand. Pure.

A label is a subject (empty for the person), an attribute and a value: parts of a fact's, ignoring
case. `facts` must be found; `fine` ones may be. A fact that no label matches is junk.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from firnline.digest.fact import Fact
from firnline.digest.facts import all_facts
from firnline.digest.testimony import read_statements
from firnline.log.entry import Entry
from firnline.log.message import Message

_PERSON: Final = "person"
SHAPE: Final = "facts and fine (each a subject, an attribute and a value)"


class PersonLabel(NamedTuple):
    """A fact that is stated: its subject, and parts of its attribute and value."""

    subject: str
    attribute: str
    value: str

    def matches(self, fact: Fact) -> bool:
        """Whether this is the fact."""
        subject = "" if fact.subject == _PERSON else fact.subject
        return (
            subject == self.subject.casefold()
            and self.attribute.casefold() in fact.attribute.casefold()
            and self.value.casefold() in fact.value.casefold()
        )


class PersonChat(NamedTuple):
    """A conversation with a person, and its labels."""

    name: str
    language: str
    part: str
    entries: tuple[Entry, ...]
    gold: tuple[PersonLabel, ...]
    fine: tuple[PersonLabel, ...]


class PersonScore(NamedTuple):
    """What was found of one conversation."""

    chat: PersonChat
    facts: tuple[Fact, ...]
    missed: tuple[PersonLabel, ...]
    junk: tuple[Fact, ...]


def chat_of(row: Mapping[str, Any]) -> PersonChat:
    """The conversation of a row."""
    said = (Message(one["role"], one["content"]) for one in row["messages"])
    entries = tuple(Entry(seq, message, 0, 0, "", "") for seq, message in enumerate(said))
    gold, fine = (
        tuple(PersonLabel(*map(str, label)) for label in row.get(name, ()))
        for name in ("facts", "fine")
    )
    return PersonChat(str(row["name"]), str(row["language"]), str(row["part"]), entries, gold, fine)


def score(chat: PersonChat) -> PersonScore:
    """Read the conversation by the rules, and compare the facts with its labels."""
    said = read_statements(chat.name, _PERSON, chat.entries)
    facts = tuple(all_facts(_PERSON, said, ()))
    labels = (*chat.gold, *chat.fine)
    return PersonScore(
        chat,
        facts,
        tuple(label for label in chat.gold if not any(map(label.matches, facts))),
        tuple(fact for fact in facts if not any(label.matches(fact) for label in labels)),
    )


def table(scores: Sequence[PersonScore]) -> str:
    """Recall, precision and junk by language and part, and of each part, as a Markdown table."""
    lines = [
        "| language | part | messages | labels | recall | facts | precision | junk |",
        "|---|---|---|---|---|---|---|---|",
    ]
    parts = dict.fromkeys(one.chat.part for one in scores)
    groups = dict.fromkeys((one.chat.language, one.chat.part) for one in scores)
    for language, part in (*groups, *(("all", part) for part in parts)):
        these = [
            one
            for one in scores
            if one.chat.part == part and language in (one.chat.language, "all")
        ]
        lines.append(f"| {language} | {part} | {_figures(these)} |")
    return "\n".join(lines)


def _figures(scores: Iterable[PersonScore]) -> str:
    rows = [
        (len(s.chat.entries), len(s.chat.gold), len(s.missed), len(s.facts), len(s.junk))
        for s in scores
    ]
    messages, gold, missed, facts, junk = map(sum, zip(*rows, strict=True))
    recall, precision = _percent(gold - missed, gold), _percent(facts - junk, facts)
    return f"{messages} | {gold} | {recall} | {facts} | {precision} | {junk}"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def details(scores: Iterable[PersonScore]) -> str:
    """What was missed and what is junk, by conversation; empty if nothing."""
    lines = []
    for one in scores:
        if one.missed or one.junk:
            lines.append(one.chat.name)
        lines += [f"  missed: {' · '.join(filter(None, label))}" for label in one.missed]
        lines += [
            f"  junk:   {fact.subject} · {fact.attribute} · {fact.value}" for fact in one.junk
        ]
    return "\n".join(lines)
