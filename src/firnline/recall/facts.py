"""Facts and recall: a fact that answers comes first, and what it outdates is marked. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final, TypeAlias

from firnline.digest.fact import Evidence, Fact
from firnline.digest.succession import agree
from firnline.digest.testimony import read_statements
from firnline.language.stems import stem
from firnline.language.terms import index_terms
from firnline.log.entry import Entry
from firnline.log.hit import Hit
from firnline.log.regex import regex
from firnline.recall.limits import FACT_ANSWERS_MAX, FACT_HITS_READ, QUESTION_CHARS_MAX
from firnline.recall.updates import asked_slots, asks_past, question_words, slot_vocabulary

Place: TypeAlias = tuple[str, int]


def answering_facts(question: str, facts: Iterable[Fact]) -> list[Fact]:
    """The facts that a question asks for; none if it asks for what held before."""
    question = question[:QUESTION_CHARS_MAX]
    words = question_words(question)
    if asks_past(question):
        return []
    slots = set(asked_slots(words))
    found = [fact for fact in facts if _is_asked(fact, words, slots)]
    return sorted(found, key=lambda fact: fact.recorded_at, reverse=True)[:FACT_ANSWERS_MAX]


def _is_asked(fact: Fact, words: set[str], slots: set[str]) -> bool:
    slot = fact.attribute.removeprefix(f"{fact.subject} · ")
    own = fact.subject == fact.person
    if own and slot in slots:
        return True
    named = slot if own else fact.subject
    if not words.issuperset(_DIGITS.findall(named.casefold())):
        return False  # another order: there may be many
    about = _terms(named)
    numbers = {word for word in about if any(map(str.isdigit, word))}
    if not numbers <= words or words.isdisjoint(about):
        return False
    return own or not words.isdisjoint(_terms(f"{slot} {slot_vocabulary(slot)}"))


_DIGITS: Final = regex(r"(?<!\S)\d+(?!\S)")
"""Numbers that are words: as they are in a question that asks for them."""


@lru_cache(maxsize=2_048)
def _terms(text: str) -> frozenset[str]:
    terms = index_terms(text)
    return frozenset({*terms, *map(stem, terms)})


def newest_evidence(fact: Fact) -> Evidence:
    """Where the fact was said last."""
    return max(fact.evidence, key=lambda one: one.said_at)


def put_facts_first(
    hits: Sequence[Hit], answers: Sequence[Fact], entries: Mapping[Place, Entry], person: str
) -> list[Hit]:
    """The hits, each answer first; those that say otherwise, earlier, are marked as outdated."""
    found = [
        _marked(hit, answers, person) if at < FACT_HITS_READ else hit for at, hit in enumerate(hits)
    ]
    best = max((hit.score for hit in found), default=0.0)
    for fact in reversed(answers):
        place = (newest_evidence(fact).conversation, newest_evidence(fact).seq)
        known = next((hit for hit in found if (hit.conversation, hit.seq) == place), None)
        if known is None and place in entries:
            known = Hit(place[0], entries[place], 0.0, chance=1.0)
        if known is not None:
            others = [hit for hit in found if hit is not known]
            parts = {**known.parts, "fact": best - known.score}
            found = [replace(known, score=best, parts=parts), *others]
    return found


def _marked(hit: Hit, answers: Sequence[Fact], person: str) -> Hit:
    """The hit, with the message that outdates what it states."""
    for said in read_statements(hit.conversation, person, [hit.entry]) if answers else ():
        one = said.statement
        for fact in answers:
            newest = newest_evidence(fact)
            same = (
                fact.attribute == f"{one.subject} · {one.slot}"
                if one.thing and one.subject
                else fact.attribute == one.slot and (one.subject or person) == fact.subject
            )
            earlier = said.evidence.said_at < fact.recorded_at
            if same and earlier and not agree(one.value, fact.value):
                elsewhere = None if newest.conversation == hit.conversation else newest.conversation
                return replace(hit, superseded_by=newest.seq, superseded_in=elsewhere)
    return hit
