"""What is outdated among the found entries: "I live in Berlin" after "I moved to Lisbon".

The best hits are read for statements (`firnline.language.statements.reader`). If one states something that can
change, or the question asks for such a thing ("What is my diet?"), one more search looks for newer
statements of it. An outdated hit is marked, and if the question asks for what holds now, the
current statement comes before it.
"""

# ruff: noqa: RUF001, E501 - other scripts are meant, and patterns stay on one line

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from firnline.context import marks
from firnline.digest import succession
from firnline.digest.rules import CODE
from firnline.digest.succession import SpokenStatement
from firnline.language.names import fold_name
from firnline.language.statements import reader
from firnline.language.statements.patterns import MANY, STATUS
from firnline.language.statements.reader import statements
from firnline.language.statements.words import ASKED, OWN_WORDS, VOCABULARY
from firnline.language.stems import stem
from firnline.language.terms import index_terms
from firnline.log.entry import Entry, Key, Scope, live
from firnline.log.hit import Hit
from firnline.log.regex import regex
from firnline.protocols import Store
from firnline.recall.limits import (
    QUESTION_CHARS_MAX,
    STATEMENTS_MAX,
    UPDATE_CHARS_READ,
    UPDATE_CONVERSATIONS_MAX,
    UPDATE_HITS_READ,
    UPDATE_SLOTS_MAX,
    UPDATES_FOUND_MAX,
)
from firnline.recall.query import RecallQuery

_TOP: Final = 12
"""The best hits that are read first: if they state nothing, nothing is outdated."""
_FIRST: Final = 3
"""The best hits, of which one answers, or the answer is put in second place."""
_CODE_SHARE: Final = 4
"""How much longer a text with its code may be."""
_PAST: Final = regex(
    r"\b(?:before|previous(?:ly)?|former(?:ly)?|(?<!how )old|used to|originally|initially|earlier|back then"
    r"|at first|in the past|history|ago|was i(?! born)|were we|did (?:i|we) (?:live|work|eat|use|have)"
    r"|früher|vorher|ehemalig\w*|zuvor|damals|alte[nrms]?|antes|anterior|viej[oa]|antigu[oa]"
    r"|avant|ancien(?:ne)?|précédente?|раньше|прежн\w*|стар(?:ый|ая|ое|ом|ой)|до этого)\b"
    r"|以前|之前|原来|过去|曾经",
    re.IGNORECASE,
)


class Outdated(NamedTuple):
    """An outdated entry, the current one, and whether the question asks for what changed."""

    seq: int
    current: int
    asked: bool


async def put_current_first(
    store: Store, tenant: str, question: str, parsed: RecallQuery, hits: Sequence[Hit], scope: Scope
) -> list[Hit]:
    """The hits, outdated ones marked, and each after its current statement if that is asked for."""
    found, question = list(hits), question[:QUESTION_CHARS_MAX]
    words = question_words(question)
    asked = asked_slots(words)
    names = dict.fromkeys(hit.conversation for hit in found[:_TOP])
    if scope.conversation is not None:
        names[scope.conversation] = None
    for name in list(names)[:UPDATE_CONVERSATIONS_MAX]:
        best = [hit.entry for hit in found[:_TOP] if hit.conversation == name]
        wanted = {
            **{("", slot): "" for slot in asked},
            **await asyncio.to_thread(_stated_slots, best),
        }
        if not wanted:
            continue
        newer = await _newer_entries(store, Key(tenant, name), wanted, scope)
        pool = {hit.seq: hit.entry for hit in found[:UPDATE_HITS_READ] if hit.conversation == name}
        pool |= {entry.seq: entry for entry in newer}
        stated, by = await asyncio.to_thread(_judge, list(pool.values()))
        past = asks_past(question)
        for slot in asked:
            answers = [one for one in stated if (one in by) == past and _answers(one, slot)]
            if answers:
                seq = max(one.seq for one in answers)
                found = _with_answer(found, Hit(name, pool[seq], 0.0), {a.seq for a in answers})
        outdated = await asyncio.to_thread(_outdated_entries, question, parsed, pool, by)
        found = order_hits(found, name, pool, outdated)
    return found


def _answers(one: SpokenStatement, slot: str) -> bool:
    """Whether the user states a value of the slot."""
    return one.statement.slot == slot and bool(one.statement.value) and not one.statement.subject


def _with_answer(hits: list[Hit], answer: Hit, answers: Collection[int]) -> list[Hit]:
    """The hits with the newest answer in second place, if the best hits have none."""
    mine = [hit for hit in hits if hit.conversation == answer.conversation]
    if any(hit.seq in answers for hit in hits[:_FIRST] if hit in mine):
        return hits
    known = next((hit for hit in mine if hit.seq == answer.seq), answer)
    others = [hit for hit in hits if hit is not known]
    return [*others[:1], _lifted(known, others[0]) if others else known, *others[1:]]


def _lifted(hit: Hit, to: Hit) -> Hit:
    """A hit with the score and the chance of another one, next to which it is put."""
    parts = {**hit.parts, "current": to.score - hit.score}
    return replace(hit, score=to.score, chance=max(hit.chance, to.chance), parts=parts)


def order_hits(
    hits: Sequence[Hit], name: str, pool: Mapping[int, Entry], outdated: Sequence[Outdated]
) -> list[Hit]:
    """The hits with marks; the order changes only where a current statement is asked for."""
    found = list(hits)
    for one in outdated:
        places = {hit.seq: at for at, hit in enumerate(found) if hit.conversation == name}
        if one.seq not in places:
            continue
        at = places[one.seq]
        old = found[at] = replace(found[at], superseded_by=one.current)
        if not one.asked or places.get(one.current, len(found)) < at:
            continue
        there = places.get(one.current)
        new = Hit(name, pool[one.current], 0.0) if there is None else found.pop(there)
        found.insert(at, _lifted(new, old))
    return found


# -- statements of entries --------------------------------------------------------------------


def _read(entries: Iterable[Entry]) -> Iterator[SpokenStatement]:
    """What users state in entries, and what the assistant repeats of it."""
    every = list(entries)
    users = {entry.message.name for entry in every if entry.message.role == "user"}
    alone = fold_name(users.pop() or "") if len(users) == 1 else ""
    room = UPDATE_CHARS_READ
    for entry in every:
        message = entry.message
        if message.role not in ("user", "assistant"):
            continue
        said = marks.said(message)[: _CODE_SHARE * reader.CHARS_MAX]
        text = CODE.sub("\n", said)[: min(room, reader.CHARS_MAX)]
        room -= len(text)
        if message.role == "user":
            for one in statements(text):
                yield SpokenStatement(entry.seq, fold_name(message.name or ""), one)
        else:
            for one in statements(reader.as_own(text)):
                yield SpokenStatement(entry.seq, alone, one, echo=one.slot != STATUS)


def _judge(
    entries: Sequence[Entry],
) -> tuple[list[SpokenStatement], dict[SpokenStatement, SpokenStatement]]:
    """What entries state, and what newer statements outdate."""
    stated = sorted(_read(entries), key=lambda one: one.seq)[-STATEMENTS_MAX:]
    return stated, succession.outdated(stated)


def asks_past(question: str) -> bool:
    """Whether a question asks for what held before."""
    return _PAST.search(question) is not None


def question_words(text: str) -> set[str]:
    """The words of a text and their stems."""
    words = index_terms(text)
    return {*words, *map(stem, words)}


def asked_slots(words: set[str]) -> list[str]:
    """The slots that a question in the first person asks for."""
    if words.isdisjoint(OWN_WORDS):
        return []
    return [slot for slot, names in ASKED.items() if not words.isdisjoint(index_terms(names))]


def _stated_slots(entries: Iterable[Entry]) -> dict[tuple[str, str], str]:
    """The subjects and slots that entries state, with their values."""
    found: dict[tuple[str, str], str] = {}
    for one in _read(entries):
        statement = one.statement
        if statement.slot not in MANY or statement.value:
            found.setdefault((statement.subject, statement.slot), statement.value)
    return dict(list(found.items())[:UPDATE_SLOTS_MAX])


async def _newer_entries(
    store: Store, key: Key, wanted: Mapping[tuple[str, str], str], scope: Scope
) -> list[Entry]:
    """Entries in the words with which the slots are stated."""
    values = [f"{subject} {value}" for (subject, _), value in wanted.items()]
    words = [*values, *(slot_vocabulary(slot) for _, slot in wanted)]
    query = " ".join(dict.fromkeys(" ".join(words).split()))
    here = Scope(conversation=key.conversation)
    matches = await store.search(key.tenant, query, scope=here, limit=UPDATES_FOUND_MAX)
    entries = live(await store.at(key, sorted(match.seq for match in matches)))
    return [entry for entry in entries if scope.has(entry.message)]


def _outdated_entries(
    question: str,
    parsed: RecallQuery,
    pool: Mapping[int, Entry],
    by: Mapping[SpokenStatement, SpokenStatement],
) -> list[Outdated]:
    """The outdated entries of a pool, newest first."""
    past, words = asks_past(question), question_words(question)
    outdated: dict[int, Outdated] = {}
    for old in by:
        new = succession.current(by, old)
        if new.seq == old.seq or (
            new.statement.value and succession.agree(old.statement.value, new.statement.value)
        ):
            continue
        is_asked_for = not past and not _asks_before(parsed, pool[new.seq])
        is_asked_for = is_asked_for and _asks_for(words, old, new)
        noted = outdated.get(old.seq)
        if noted is None or (is_asked_for and not noted.asked):
            outdated[old.seq] = Outdated(old.seq, new.seq, is_asked_for)
    return sorted(outdated.values(), reverse=True)


def slot_vocabulary(slot: str) -> str:
    """The words of a slot; "tool for the backend" is a tool."""
    return VOCABULARY.get(slot) or VOCABULARY.get(slot.split(maxsplit=1)[0], slot)


def _asks_for(words: set[str], old: SpokenStatement, new: SpokenStatement) -> bool:
    """Whether a question is about the slot of a statement, by its words or its value."""
    one = old.statement
    numbers = {word for word in words if any(map(str.isdigit, word))}
    subject = set(index_terms(one.subject))
    if numbers and any(map(str.isdigit, one.subject)) and not numbers & subject:
        return False
    terms = index_terms(f"{one.subject} {one.value} {new.statement.value} {one.slot}")
    terms += index_terms(slot_vocabulary(one.slot))
    return not words.isdisjoint(terms) or not words.isdisjoint(map(stem, terms))


def _asks_before(parsed: RecallQuery, entry: Entry) -> bool:
    """Whether the question is about days before the entry."""
    at = entry.message.created_at
    return at is not None and any(days.last < at.date() for days in parsed.dates if not days.yearly)
