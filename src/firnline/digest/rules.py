"""Important data found by rules, without a model: preferences, decisions, facts, URLs, entities.

The rules read sentence by sentence and quote what they find. They miss something rather than
invent it. What they return is checked against the log, like the answers of a model.
"""

# ruff: noqa: RUF001 - other scripts and their marks are meant

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from firnline.context import marks
from firnline.digest import speaker
from firnline.digest.claims import TextClaim, claims
from firnline.digest.preferences import LIST_SPLIT, any_of, group_text, preferences
from firnline.digest.slot_patterns import DIET
from firnline.digest.slots import statements
from firnline.language import prose
from firnline.log import limits
from firnline.log.entry import Entry
from firnline.log.regex import regex
from firnline.log.text import Json

_WORDS_MAX: Final = 60
_FACT_WORDS_MIN: Final = 3
CODE: Final = regex(r"```.*?(?:```|\Z)", re.DOTALL)
"""Fenced code; it is not a statement."""


_NOT_YET: Final = (
    r"(?! (?:still |not |yet |to be )*(?:open|pending|none|postponed|delayed|made|up to|yours|hard"
    r"|difficult)\b)"
)
_DECISION: Final = any_of(
    r"\blet(?:'s|’s| us) (?:go with|use|do|stick with|pick|choose|settle on"
    r"|switch to|move|keep|plan on|schedule|book|make it)\b(?! (?:it|this|that|on|going)\b[.!]?$)",
    r"\b(?:we|I)(?:'ve| have)?(?: all| both| finally| already)* (?:decided|agreed"
    r"|settled on|chose|opted|concluded|picked)\b",
    r"\b(?:we|I)(?:'ll| will| are going to|'re going to) (?:use|go with|switch to|adopt"
    r"|stick with|move to|drop|keep)\b(?! (?:you|by|in mind|an eye|(?:it|this|that) (?:in mind"
    r"|up))\b)",
    rf"\b(?:the |our |final )decision (?:is|was)\b{_NOT_YET}|\bdecision:{_NOT_YET}",
    r"\b(?:it's|it is) (?:decided|settled|agreed)\b|^agreed\b[:,. -]",
    r"(?:^|\b(?:we|I)(?:['’]re|['’]m| are| am) )going with\b(?! (?:me|you|him|her|them|us)\b)",
    r"\bwir (?:haben (?:uns )?(?:entschieden|beschlossen)|nehmen|verwenden)\b",
    r"\b(?:entschieden|beschlossen)\b",
    r"\b(?:hemos decidido|decidimos|acordamos|vamos a usar)\b",
    r"\b(?:nous avons décidé|on a décidé|nous allons utiliser|c'est décidé)\b",
    r"\b(?:мы решили|решено|договорились|будем использовать)\b",
    r"(?:我们决定|决定(?:了|使用|采用)|就用|达成一致)",
)
_CONCLUDES: Final = regex(r",?\s(?:so|then|therefore)\s|[;:]|\s[-–—]\s", re.IGNORECASE)
_CUED: Final = any_of(
    r"\bimportant(?:ly)?\s*(?::|is that|to (?:note|remember|know))",
    r"\b(?:key|main|central) (?:finding|result|insight|point|takeaway)s?\b",
    r"\b(?:remember|note|keep in mind|bear in mind|don't forget|be aware|fyi)\b(?: that\b|\s*:|,)",
    r"\bdeadline\b|\b(?:is|are) due\b|\bdue (?:by|on|date)\b|\bexpires?\b",
    r"\b(?:wichtig|importante|important|важно)\s*:|(?:重要|注意)[:：]",
)
_STATES: Final = regex(
    r"\b(?:is|are|was|were|has|have|had|costs?|lives?|works?|owns?|runs?|starts?|ends?|leaves?|"
    r"arrives?|moved|joined|weighs?|takes?|needs?|uses?|contains?|earns?|pays?|paid|bought|sold|"
    r"born|equals?|measures?|called|named|ist|hat|kostet|wohne|es|tiene|cuesta|vivo|est|coûte|"
    r"habite|am|I'm|we're|he's|she's|it's|there's)\b|[是有在]",
    re.IGNORECASE,
)
_CORRECTS: Final = any_of(
    r"^\W*(?:(?:actually|wait|sorry|oh|hm+)\b\W*)?(?:no|nope|correction|scratch that"
    r"|I changed my mind|on second thought|I meant?)\b",
    r"^\W*actually\b.*\b(?:now|instead|after all|these days)\b",
)
_ALSO: Final = any_of(r"\b(?:also|too|as well|both)\b")
_CORRECTION_REACH: Final = 8  # entries; older statements are probably about something else
_STRUCTURE: Final = any_of(
    r"\b(?:document structure|structure|outline|table of contents|toc)\s*+"
    r"(?:is|will be|should be)?\s*+:\s*(?P<list>[^\n]{3,300})",
    r"\b(?:sections?|chapters?|parts)\s*+(?:for|on|about|called|named|titled|:|are|will be|should"
    r" be|like|such as)\s*(?P<list2>[^\n]{3,300})",
    r"\b(?:Abschnitte|Kapitel|secciones|sections|разделы)(?:\s*+:\s++|\s++)"
    r"(?:(?:für|para|pour|:)\s*+)?(?P<list3>[A-ZÀ-ÞА-Я][^\n]{3,300})",
)
_SECTION_WORDS_MAX: Final = 6
_SECTIONS_MAX: Final = 30
_QUESTION_ENDS: Final = ("?", "？", "؟")


class Cues(NamedTuple):
    """The kinds of a sentence, by its wording."""

    decision: bool
    preference: bool
    question: bool
    marked: bool


@lru_cache(maxsize=4_096)  # extractor, summarizer and receipt all read the same sentences
def cues(sentence: str) -> Cues:
    """Whether a sentence is a decision, a preference, a question, or marked as important."""
    question = sentence.rstrip("\"'”’)* ").endswith(_QUESTION_ENDS)
    return Cues(
        decision=not question and _decides(sentence),
        preference=not question and next(preferences(sentence), None) is not None,
        question=question,
        marked=not question and bool(_CUED.search(sentence)),
    )


def _decides(sentence: str) -> bool:
    """Whether the speaker states a decision: not that it is open, or might be made.

    What others want may come before it as the reason: "Bob asked for it, so let's use it".
    """
    if speaker.is_foreign(sentence):
        return False
    reasons = [0, *(reason.end() for reason in _CONCLUDES.finditer(sentence))]
    for match in _DECISION.finditer(sentence):
        start = reasons[bisect(reasons, match.start()) - 1]
        if speaker.is_own_statement(sentence[start:], match.start() - start):
            return True
    return False


def extract(entries: Iterable[Entry]) -> list[dict[str, Any]]:
    """Raw items in the order of their entries: field, name, value, seqs and quote.

    Users' messages are searched for everything; the assistant's for decisions, marked facts, URLs
    and entities; tool results for URLs and entities only. Recalled and injected text is skipped.
    """
    found: list[dict[str, Any]] = []
    speakers: dict[int, str] = {}
    for entry in entries:
        speakers[entry.seq] = entry.message.name or ""
        role = entry.message.role
        text = CODE.sub("\n", marks.said(entry.message))
        if not text.strip() or role in ("system", "developer"):
            continue
        if role != "tool":
            for sentence in prose.sentences(text):
                found += _statements(sentence, entry.seq, by_user=role == "user")
        found += _mentions(text, entry.seq)
    return list(_with_corrections(found, speakers))


def _with_corrections(
    found: Iterable[dict[str, Any]], speakers: Mapping[int, str]
) -> Iterator[dict[str, Any]]:
    """The items, and for each correction of a recent preference an item that ends it.

    Only the wording of the correction shows that both are about the same thing, so it must be close
    and plain.
    """
    before: dict[str, tuple[int, str]] = {}
    for raw in found:
        yield raw
        if raw["field"] != "user_preferences" or raw["value"] != "preferred":
            continue
        seq, name, quote = raw["seqs"][0], raw["name"], raw["quote"]
        old_seq, old = before.get(speakers[seq], (seq, name))
        near = old != name and seq - old_seq <= _CORRECTION_REACH
        if near and _CORRECTS.search(quote) and not _ALSO.search(quote):
            yield _raw("user_preferences", old, "no longer preferred", seq, quote)
        before[speakers[seq]] = (seq, name)


def _statements(sentence: str, seq: int, *, by_user: bool) -> Iterator[dict[str, Any]]:
    """The preferences, structure, decisions or facts of a sentence."""
    cue = cues(sentence)
    if prose.count_words(sentence) > _WORDS_MAX or cue.question:
        return
    quote = prose.beginning(sentence, limits.ITEM_CHARS_MAX).strip()
    found = False
    for name, value in _stated_preferences(sentence) if by_user else ():
        found = True
        yield _raw("user_preferences", name, value, seq, quote)
    sections = _sections(sentence)
    if sections:
        found = True
        yield _raw("document_structure", "sections", list(sections), seq, quote)
    if cue.decision:
        yield _raw("key_decisions", "", quote, seq, quote)
    elif not found and _is_fact(sentence, by_user=by_user):
        yield _raw("important_facts", "", quote, seq, quote)


def _stated_preferences(sentence: str) -> Iterator[tuple[str, Json]]:
    """The preferences of a sentence, and a diet that only `slots` can read."""
    found = list(preferences(sentence)) if cues(sentence).preference else []
    yield from found
    if not any(name == DIET for name, _ in found):
        for one in statements(sentence):
            if one.slot == DIET and not one.subject and (one.value or one.old):
                yield DIET, one.value or f"no longer {one.old}"


def _raw(field: str, name: str, value: Json, seq: int, quote: str) -> dict[str, Any]:
    return {"field": field, "name": name, "value": value, "seqs": [seq], "quote": quote}


def _mentions(text: str, seq: int) -> Iterator[dict[str, Any]]:
    """The URLs and entities of a text, each once."""
    seen: set[tuple[str, str]] = set()
    for claim in claims(text):
        field = _field(claim)
        if field and (field, claim.key) not in seen:
            seen.add((field, claim.key))
            yield _raw(field, "", claim.value, seq, claim.value)


def _field(claim: TextClaim) -> str:
    if claim.kind == "url":
        return "source_urls"
    return "entities" if claim.kind == "name" and claim.sure and len(claim.value) > 1 else ""


def _is_fact(sentence: str, *, by_user: bool) -> bool:
    """Whether it is marked as important, or a user's statement with a name, number or date."""
    if prose.count_words(sentence) < _FACT_WORDS_MIN or prose.is_code(sentence):
        return False
    if speaker.is_imagined(sentence):
        return False
    if cues(sentence).marked:
        return True
    if not by_user or speaker.is_request(sentence):
        return False
    if statements(sentence):
        return True
    checkable = [claim for claim in claims(sentence) if claim.sure and claim.kind != "url"]
    dated = any(claim.kind == "date" for claim in checkable)
    return dated or bool(checkable and _STATES.search(sentence))


# -- document structure -----------------------------------------------------------------------


def _sections(sentence: str) -> tuple[str, ...]:
    """The sections that the sentence lists; none if fewer than two."""
    listed = group_text(_STRUCTURE.search(sentence), "list")
    parts = [part.strip(" .:\"'“”*`") for part in LIST_SPLIT.split(listed.rstrip(".!"))]
    named = [part for part in parts if part and prose.count_words(part) <= _SECTION_WORDS_MAX]
    capitals = sum(part[0].isupper() or not part[0].isascii() for part in named)
    if len(named) < 2 or capitals < len(named) / 2:  # noqa: PLR2004
        return ()
    return tuple(named[:_SECTIONS_MAX])
