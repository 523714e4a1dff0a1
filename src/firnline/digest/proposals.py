"""Facts that a model proposes: code decides which of them people have stated. Pure.

A proposal counts if its quote is in a message of the person, in a sentence that is the person's own
statement and is said plainly, and the words of its value are in the quote. What the rules have read
in the same message, they have read.
"""

# ruff: noqa: RUF001, E501 - typographic apostrophes are meant, and patterns stay on one line

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from firnline.context import marks
from firnline.digest.fact import MODEL, DatedStatement
from firnline.digest.rules import CODE
from firnline.language.names import fold_name
from firnline.language.statements import patterns as slots
from firnline.language.statements import values, voice
from firnline.language.statements.english import KIN
from firnline.language.statements.patterns import Statement
from firnline.language.statements.reader import is_plain, statements
from firnline.language.statements.validity import valid_times
from firnline.log import limits
from firnline.log.entry import Entry
from firnline.log.message import EPOCH, Message, microseconds
from firnline.log.regex import regex

Proposal = Mapping[str, Any]

_FIELDS: Final = ("seq", "subject", "attribute", "value", "quote")
_SYNONYMS: Final = {
    slots.HOME: "city, residence, lives in, location, place of residence, home, hometown",
    slots.EMPLOYER: "company, works at, works for, workplace, current employer",
    slots.JOB: "occupation, profession, role, job title, position, works as, career",
    slots.FROM: "origin, nationality, place of origin",
    slots.RELATIONSHIP: "marital status, relationship status, married",
    slots.CHILDREN: "kids, number of children",
    slots.PET: "pets, has pet, animal, dog, cat",
    slots.ALLERGY: "allergies, allergic to, food allergy",
    slots.HEALTH: "health condition, condition, medical condition, illness, disease",
    slots.MEDICATION: "medicine, medications, takes",
    slots.SPEAKS: "languages, language, spoken language, languages spoken",
    slots.LEARNS: "learns, studying language",
    slots.LIKES: "like, loves, enjoys, interest, interests, favorite activity",
    slots.DISLIKES: "dislike, hates",
    slots.PREFERS: "preference, preferences",
    slots.HOBBY: "hobbies, pastime",
    slots.STUDIES: "study, major, field of study, degree",
    slots.DRIVES: "car, vehicle",
    slots.OWNS: "possession, possessions, has",
    slots.GOAL: "goals, aim",
    slots.PLAN: "plans, upcoming plan, trip",
    slots.TOOL: "tools, technology, uses, software",
    slots.DIET: "dietary preference, eating habits",
    slots.BIRTHDAY: "birth date, date of birth",
}
_SLOTS: Final = {
    name.strip(): slot
    for slot, names in _SYNONYMS.items()
    for name in f"{slot}, {names}".split(",")
}
_OF_THINGS: Final = (slots.TITLE, slots.STATUS, slots.DATE, slots.AMOUNT, slots.CHANGE, slots.ENDED)
_ATTRIBUTE: Final = regex(r"[^\W\d_]{2,20}(?: [^\W\d_]{2,20}){0,2}")
_FRAME: Final = regex(r"(?:the |my |his |her |their )?(?:user|person)(?:['’]s)? |(?:my|the) ")
_SECRET: Final = regex(
    r"pass(?:word|code|phrase|wort)|\bpin\b|\bcvv\b|\bssn\b|secret|token|api key|contraseña|mot de passe"
    r"|парол|密码|social security|credit card|card number|iban",
    re.IGNORECASE,
)
_KIN: Final = regex(rf"{KIN}", re.IGNORECASE)
_DENIED: Final = regex(
    r"n['’]t\b|\b(?:not|no longer|never|without|nor|neither|nobody|nothing|nicht|kein\w{0,2}|nie|niemals|ohne"
    r"|no|nunca|jamás|tampoco|sin|ne|pas|jamais|plus|sans|не|нет|никогда|без)\b|\bn['’]|[不没未别]",
    re.IGNORECASE,
)
_DENYING: Final = (slots.AVOIDS, slots.DISLIKES, slots.ALLERGY, slots.WISHES, slots.DIET)


def accepted(
    conversation: str,
    person: str,
    called: str,
    entries: Sequence[Entry],
    proposals: Iterable[Proposal],
) -> list[DatedStatement]:
    """The statements among the proposals for these entries, each once."""
    at = {entry.seq: entry for entry in entries}
    own = {"", fold_name(person), fold_name(called)}
    found: dict[str, DatedStatement] = {}
    for proposal in quoted(entries, proposals):
        entry = at.get(proposal["seq"])
        if entry is not None and _is_of_person(entry, own):
            for one in _checked(conversation, entry, own, proposal):
                found.setdefault(one.id, one)
    return list(found.values())


def quoted(entries: Iterable[Entry], proposals: Iterable[Proposal]) -> tuple[Proposal, ...]:
    """The proposals that quote these entries: the others are not kept."""
    texts = {entry.seq: marks.said(entry.message) for entry in entries}
    found = []
    for proposal in list(proposals)[: limits.FACTS_PROPOSED_MAX]:
        fields = {name: proposal.get(name) for name in _FIELDS}
        seq, quote = proposal.get("seq"), proposal.get("quote")
        text = texts.get(seq, "") if type(seq) is int else ""
        is_text = all(isinstance(fields[name], str) for name in _FIELDS[1:])
        if is_text and quote and str(quote).strip() in text:
            found.append(fields)
    return tuple(found)


def _is_of_person(entry: Entry, own: set[str]) -> bool:
    message = entry.message
    if entry.erased_at is not None or message.role != "user" or marks.is_put_in(message):
        return False
    return fold_name(message.name or "") in own


def _checked(
    conversation: str, entry: Entry, own: set[str], proposal: Proposal
) -> Iterator[DatedStatement]:
    """The statement that a proposal is, if the message says it."""
    subject, attribute, value, quote = (str(proposal[name]).strip() for name in _FIELDS[1:])
    text = CODE.sub(lambda code: "\n" * len(code[0]), marks.said(entry.message))
    slot = _slot(attribute, value)
    whose = _subject(subject, quote, own)
    place = _place(text, quote, value)
    if slot is None or whose is None or place is None:
        return
    sentence, start, end = place
    said = text[sentence.start : sentence.stop]
    inside = start - sentence.start, end - sentence.start
    if not (values.is_in(value, quote) and is_plain(said, *inside, slot)):
        return
    if not values.is_plausible(slot, value, said) or (
        _DENIED.search(said) and slot not in _DENYING
    ):
        return
    if _is_read(text, whose, slot, value):
        return
    at = entry.message.created_at or EPOCH
    quoted = said.strip()
    since, until = valid_times(quoted, slot, at)
    one = Statement(whose, slot, value, "", start, end)
    where = microseconds(at), conversation, entry.seq, "", quoted
    yield DatedStatement(*where, one, since, until, MODEL)


def _slot(attribute: str, value: str) -> str | None:
    """The slot that is meant; None if it is none, or must not be known."""
    words = " ".join(attribute.casefold().replace("_", " ").replace("-", " ").split())
    words = _FRAME.sub("", words, count=1)
    slot = _SLOTS.get(words, words)
    if not value or len(value) > limits.FACT_VALUE_CHARS_MAX or not _ATTRIBUTE.fullmatch(slot):
        return None
    return None if slot in _OF_THINGS or _SECRET.search(f"{slot} {value}") else slot


def _subject(subject: str, quote: str, own: set[str]) -> str | None:
    """Whom it is of: empty for the person; None if the quote does not name them."""
    words = _FRAME.sub("", f"{fold_name(subject)} ", count=1).strip()
    if words in {*own, "user", "the user", "i", "me", "self", "person", "speaker"}:
        return "" if not _others(quote) else None
    return words if _KIN.fullmatch(words) and words in fold_name(quote).split() else None


def _others(quote: str) -> bool:
    """Whether a quote begins with a relative, of whom it then speaks."""
    return regex(rf"\W*(?:my|our) (?:\w{{1,20}} )?{KIN}\b", re.IGNORECASE).match(quote) is not None


def _place(text: str, quote: str, value: str) -> tuple[slice, int, int] | None:
    """The sentence of the speaker's own that has the quote, and where the value is in the text."""
    at = text.find(quote) if quote else -1
    if at < 0:
        return None
    inside = text.casefold().find(value.casefold(), at, at + len(quote))
    if inside < 0 or len(text.casefold()) != len(text):
        inside = at
    for start, end in voice.own_spans(text):
        if start <= inside < end and at < end and start <= at + len(quote):
            return slice(start, end), inside, inside + len(value)
    return None


def _is_read(text: str, subject: str, slot: str, value: str) -> bool:
    """Whether the rules have read this slot, or this value, in the same message."""
    folded = fold_name(value)
    return any(
        one.subject == subject and (one.slot == slot or fold_name(one.value) == folded)
        for one in statements(text)
    )


def unread(entries: Iterable[Entry], person: str, called: str) -> list[Entry]:
    """The entries that a model is asked about: what the person has said."""
    own = {"", fold_name(person), fold_name(called)}
    return [entry for entry in entries if _is_of_person(entry, own) and _text(entry.message)]


def _text(message: Message) -> str:
    return marks.said(message).strip()
