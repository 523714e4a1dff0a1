"""Important data found by rules, without a model: preferences, decisions, facts, URLs, entities.

The rules read sentence by sentence and quote what they find. They miss something rather than
invent it. What they return is checked against the log, like the answers of a model.
"""

# ruff: noqa: RUF001, E501 - other scripts are meant, and patterns stay on one line

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from firnline.context import marks
from firnline.digest.claims import TextClaim, claims
from firnline.language import prose
from firnline.language.lexicon import MONTHS, NO_ENTITIES
from firnline.language.names import far_names, fold_name, is_everyday_word, is_german
from firnline.language.prose import fold_text
from firnline.language.statements import speaker
from firnline.language.statements.decision_patterns import (
    BARE,
    DECISION,
    FINAL_VERB,
    HINTS,
    SETTLED,
    STRUCTURE,
)
from firnline.language.statements.patterns import DIET, NAME, STATUS, kind_of
from firnline.language.statements.preferences import LIST_SPLIT, any_of, group_text, preferences
from firnline.language.statements.reader import statements
from firnline.language.statements.voice import own_spans
from firnline.language.stop_words import is_english
from firnline.log import limits
from firnline.log.entry import Entry
from firnline.log.regex import regex
from firnline.log.text import Json

_WORDS_MAX: Final = 60
_FACT_WORDS_MIN: Final = 3
_CODE_NAME: Final = regex(r"[A-Z]{2,5}-\d{3,}[A-Z]?")
"""The number of a contract or a booking: no name, but a fact."""
CODE: Final = regex(r"```.*?(?:```|\Z)", re.DOTALL)
"""Fenced code; it is not a statement."""


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
    r"habite|know|knows|am|I'm|we're|he's|she's|it's|there's|[a-z]{3,}ed|can|must|weigh|ran|went|came|sang|drew"
    r"|haben|habe|hatte|bin|sind|war|tengo|tenemos|somos|estamos|son|hay|avons|sont|ai|у меня|у нас"
    r"|wrote|got|gave|made|took|left|read|kept|held|hurt|lost|found|won|put|sent)\b|[是有在]",
    re.IGNORECASE,
)
_CORRECTS: Final = any_of(
    r"^\W*(?:(?:actually|wait|sorry|oh|hm+)\b\W*)?(?:no|nope|correction|scratch that"
    r"|I changed my mind|on second thought|I meant?)\b",
    r"^\W*actually\b.*\b(?:now|instead|after all|these days)\b",
)
_ALSO: Final = any_of(r"\b(?:also|too|as well|both)\b")
_PREFERS: Final = any_of(r"prefer\b|prefier|préfère|bevorzug|предпочит|喜欢|偏好")
_PARTS: Final = regex(r",\s|[;，；]|\s(?:and|but|und|aber|y|pero|et|mais|и|но|а)\s", re.IGNORECASE)
_DONE: Final = any_of(
    r"\b(?:was|were|has been|have been|is now|are now)(?: \w+)? (?:shipped|sent|dispatched|delivered|refunded"
    r"|booked|cancell?ed|closed|confirmed|blocked|reserved|paid|renewed|approved|issued)\b"
)
_AT: Final = regex(
    r"\b(?:at|with|from|via|for|by|in|near|named|called|bei|von|aus|nach|en|de|à|chez|в|из)\s\Z",
    re.IGNORECASE,
)
_IN_TIME: Final = regex(
    r"\b(?:in|before|after|by|until|till|since|of|from|during|early|mid|late|last|next|this|every|end)[ -]\Z",
    re.IGNORECASE,
)
"""Before a month, which may be a person's name, too."""
_GERMAN_NOUN: Final = regex(r"\w{2,}(?:[dfghklnrtz]ung|heit|keit|schaft)")
_ACRONYM_MAX: Final = 5
_NO_NAME: Final = regex(
    r"[IVXLC]+\.?|[A-Z]\.?|[QH][1-4]|[A-Z0-9]+(?:_[A-Z0-9]+)+|[A-Z]{2,5}-\d{3,}[A-Z]?|[A-Z]-[a-z]+"
    r"|(?:[kMGT]W|[kMG]V|W)h?p?|[kMGT]i?[Bb](?:its?)?|[kMG]Hz|mAh?|dB|pH"
)
_CORRECTION_REACH: Final = 8  # entries; older statements are probably about something else
_SECTION_WORDS_MAX: Final = 6
_SECTIONS_MAX: Final = 30
_QUESTION_ENDS: Final = ("?", "？", "؟")


class Cues(NamedTuple):
    """The kinds of a sentence, by its wording; `settled` is a decision that is not one person's."""

    decision: bool
    settled: bool
    preference: bool
    question: bool
    marked: bool


@lru_cache(maxsize=4_096)  # extractor, summarizer and receipt all read the same sentences
def cues(sentence: str) -> Cues:
    """Whether a sentence is a decision, a preference, a question, or marked as important."""
    question = sentence.rstrip("\"'”’)* ").endswith(_QUESTION_ENDS)
    decision = not question and _decides(sentence, DECISION)
    return Cues(
        decision=decision,
        settled=decision and _decides(sentence, SETTLED),
        preference=not question and next(preferences(sentence), None) is not None,
        question=question,
        marked=not question and bool(_CUED.search(sentence)),
    )


def _decides(sentence: str, pattern: re.Pattern[str]) -> bool:
    """Whether the speaker states a decision: not that it is open, or might be made.

    What others want may come before it as the reason: "Bob asked for it, so let's use it".
    """
    folded = sentence.casefold()
    if not any(hint in folded for hint in HINTS):
        return False
    if speaker.is_foreign(sentence) or speaker.is_joke(sentence) or BARE.match(sentence):
        return False
    reasons = [0, *(reason.end() for reason in _CONCLUDES.finditer(sentence))]
    for match in pattern.finditer(sentence):
        start = reasons[bisect(reasons, match.start()) - 1]
        if speaker.is_own_statement(sentence[start:], match.start() - start):
            return True
    return False


def extract(entries: Iterable[Entry]) -> list[dict[str, Any]]:
    """Raw items in the order of their entries: field, name, value, seqs and quote.

    Every value is made of words of its quote, and the quote of words of its entry. Users' messages
    are searched for everything; the assistant's for what was decided together, what it reports as
    done, URLs and entities; tool results for URLs and entities only. Recalled and injected text is
    skipped.
    """
    found: list[dict[str, Any]] = []
    speakers: dict[int, str] = {}
    said = [(entry, CODE.sub("\n", marks.said(entry.message))) for entry in entries]
    german = _is_german_chat([text for _, text in said])
    for entry, text in said:
        speakers[entry.seq] = entry.message.name or ""
        role = entry.message.role
        if not text.strip() or role in ("system", "developer"):
            continue
        listed = ""
        for sentence in _sentences(text, role):
            stated = list(_statements(sentence, entry.seq, by_user=role == "user"))
            found += stated
            if any(raw["field"] == "document_structure" for raw in stated):
                listed += sentence
        so = german and is_english(text[: limits.SENTENCE_CHARS_MAX]) is not True
        found += _mentions(text, entry.seq, listed, by_user=role == "user", german=so)
    return list(_with_corrections(_whole_names(found), speakers))


def _is_german_chat(texts: Sequence[str]) -> bool:
    """Whether a third of the messages are German, and fewer English.

    "95 Quadratmeter." alone shows neither; a Spanish message seldom looks German.
    """
    look = [text[: limits.SENTENCE_CHARS_MAX] for text in texts if text.strip()]
    german = sum(map(is_german, look))
    return 3 * german >= len(look) and german > sum(is_english(text) is True for text in look)


def _sentences(text: str, role: str) -> list[str]:
    """The sentences that are searched for statements: of a user, their own."""
    if role == "user":
        return [text[start:end] for start, end in own_spans(text)]
    return [] if role == "tool" else prose.sentences(text)


def _whole_names(found: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The items without entities that are a part of a longer name: "Clara" of "Clara Whitfield"."""
    parts: set[str] = set()
    for raw in found:
        words = fold_name(raw["value"]).split() if raw["field"] == "entities" else ()
        if len(words) > 1 and "@" not in raw["value"]:
            parts.update(words)
    for raw in found:
        if raw["field"] != "entities" or fold_name(raw["value"]) not in parts:
            yield raw


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
        if raw["field"] != "user_preferences" or not _PREFERS.match(str(raw["value"])):
            continue
        seq, name, quote = raw["seqs"][0], raw["name"], raw["quote"]
        old_seq, old = before.get(speakers[seq], (seq, name))
        near = old != name and seq - old_seq <= _CORRECTION_REACH
        if near and _CORRECTS.search(quote) and not _ALSO.search(quote):
            yield _raw("user_preferences", old, quote, seq, quote)
        before[speakers[seq]] = (seq, name)


def _statements(sentence: str, seq: int, *, by_user: bool) -> Iterator[dict[str, Any]]:
    """The preferences, structure, decisions or facts of a sentence."""
    cue = cues(sentence)
    if prose.count_words(sentence) > _WORDS_MAX:
        return
    quote = prose.beginning(sentence, limits.ITEM_CHARS_MAX).strip()
    if cue.question:
        return
    stated = list(_stated_preferences(sentence)) if by_user else []
    for name, value in stated:
        yield _raw("user_preferences", name, value, seq, quote)
    sections = _sections(sentence)
    if sections:
        yield _raw("document_structure", "sections", list(sections), seq, quote)
    if cue.decision if by_user else cue.settled:
        yield _raw("key_decisions", "", quote, seq, quote)
    elif not sections and (
        _is_fact(sentence, by_user=by_user, stated=bool(stated))
        or (by_user and _states_fact(sentence))
    ):
        yield _raw("important_facts", "", quote, seq, quote)


def _states_fact(sentence: str) -> bool:
    """Whether it states a fact of a slot, other than what the speaker is called."""
    return not speaker.is_said_by_others(sentence) and any(
        kind_of(one.slot) == "fact" and (one.slot != NAME or one.subject)
        for one in statements(sentence)
    )


def _stated_preferences(sentence: str) -> Iterator[tuple[str, Json]]:
    """The preferences of a sentence, and those that only `slots` can read."""
    found = list(preferences(sentence)) if cues(sentence).preference else []
    yield from found
    known = fold_text(" ".join(f"{name} {value}" for name, value in found))
    for one in statements(sentence):
        said, words = sentence[one.start : one.end], one.value or one.old
        whole = (one.start, one.end) == (0, len(sentence))  # it is one of those above
        same = any(word in known for word in fold_text(words).split())
        if one.subject or kind_of(one.slot) != "preference" or whole or same:
            continue
        how, there, _ = said.partition(words)
        if one.slot == DIET and not any(name == DIET for name, _ in found):
            yield DIET, words if there else said.strip(" ,.")
        elif one.slot != DIET and there and how.strip(" ,.:"):
            yield words, how.strip(" ,.:")


def _raw(field: str, name: str, value: Json, seq: int, quote: str) -> dict[str, Any]:
    return {"field": field, "name": name, "value": value, "seqs": [seq], "quote": quote}


def _mentions(
    text: str, seq: int, listed: str, *, by_user: bool, german: bool
) -> Iterator[dict[str, Any]]:
    """The URLs and entities of a text, each once; `listed` has the names of sections."""
    seen: set[tuple[str, str]] = set()
    # The claims of sentences are needed anyway; a German one is often too short to tell its language.
    whole = german or is_german(text) or len(text) > limits.SENTENCE_CHARS_MAX
    found = [
        (_field(claim, part, by_user=by_user), claim.value, claim.key)
        for part in ([text] if whole else prose.sentences(text))
        for claim in claims(part, german=german)
    ]
    found += [("entities", name, name) for name in far_names(text)]
    for field, value, key in found:
        if field and (field, key) not in seen and (field != "entities" or value not in listed):
            seen.add((field, key))
            yield _raw(field, "", value, seq, value)


def _field(claim: TextClaim, text: str, *, by_user: bool = True) -> str:
    if claim.kind == "url":
        return "source_urls"
    if claim.kind != "name" or not claim.sure or len(claim.value) < 2:  # noqa: PLR2004
        return ""
    value = claim.value
    if (
        value.casefold() in NO_ENTITIES
        or value.endswith(("ese", "ish"))
        or _NO_NAME.fullmatch(value)
        or _GERMAN_NOUN.fullmatch(value)
    ):
        return ""
    before = text[max(0, claim.start - 12) : claim.start]
    if value.casefold() in MONTHS and _IN_TIME.search(before):
        return ""
    acronym = value.isupper() and value.isalpha() and len(value) <= _ACRONYM_MAX
    if acronym or (not by_user and value[1:].islower() and is_everyday_word(value)):
        # "IBM" is a name, "VAT" is not: only one that people work at or buy from is certain.
        return "entities" if _AT.search(before) else ""
    return "entities"


def _is_fact(sentence: str, *, by_user: bool, stated: bool) -> bool:
    """Whether a user states it and it has a name, number or date, or is marked as important.

    With a preference (`stated`), a part of the sentence must state something else. Of the
    assistant's sentences only reports of what is done count.
    """
    if prose.count_words(sentence) < _FACT_WORDS_MIN or prose.is_code(sentence):
        return False
    if speaker.is_imagined(sentence):
        return False
    if not by_user:
        return _is_report(sentence)
    if cues(sentence).marked and not stated:
        return True
    parts = _PARTS.split(sentence) if stated else [sentence]
    others = [
        part for part in parts if not stated or (len(parts) > 1 and not any(preferences(part)))
    ]
    if not any(bool(statements(part)) or _is_checkable(part, sentence) for part in others):
        return False
    if speaker.is_request(sentence) or speaker.is_order(sentence) or speaker.is_unreal(sentence):
        return False
    return not speaker.is_said_by_others(sentence)


def _is_checkable(part: str, sentence: str) -> bool:
    """Whether a part of a sentence states something with a name, a number or a date."""
    words = prose.count_words(part)
    if words < _FACT_WORDS_MIN:
        return False
    there = [claim for claim in claims(sentence) if claim.value in part]
    checkable = [claim for claim in there if _is_certain(claim, sentence)]
    if speaker.is_comment(sentence) and all(claim.kind != "date" for claim in checkable):
        return False
    if any("@" in claim.value for claim in checkable):
        return True
    if any(name in part for name in far_names(sentence)):
        return True
    # The verbs of other languages are not listed.
    enough = _FACT_WORDS_MIN + part.isascii()
    return bool(checkable) and bool(_STATES.search(part) or words > enough)


def _is_certain(claim: TextClaim, sentence: str) -> bool:
    """Whether a claim says something of its own: a number or a date, or of whom or what it is."""
    if claim.kind in ("number", "date"):
        return claim.sure
    if _CODE_NAME.fullmatch(claim.value):
        return True
    if claim.kind == "url" or (claim.sure and not _field(claim, sentence)):
        return False
    named = claim.sure or not is_everyday_word(claim.value)
    end = claim.start + len(claim.value)
    return named and not speaker.is_vocative(sentence, claim.start, end)


def _is_report(sentence: str) -> bool:
    """Whether it reports what happened to something with a number, or what was done for the user."""
    if speaker.is_request(sentence) or speaker.is_unreal(sentence):
        return False
    if any(one.thing and one.slot == STATUS for one in statements(sentence)):
        return True
    return bool(_DONE.search(sentence)) and any(
        (claim.sure and claim.kind in ("number", "date")) or any(map(str.isdigit, claim.value))
        for claim in claims(sentence)
    )


# -- document structure -----------------------------------------------------------------------


def _sections(sentence: str) -> tuple[str, ...]:
    """The sections that the sentence lists; none if fewer than two."""
    listed = group_text(STRUCTURE.search(sentence), "list")
    plain = FINAL_VERB.sub("", listed.rstrip(".!。 "))
    parts = [part.strip(" .:\"'“”*`") for part in LIST_SPLIT.split(plain)]
    named = [part for part in parts if part and prose.count_words(part) <= _SECTION_WORDS_MAX]
    capitals = sum(part[0].isupper() or prose.is_unspaced(part[0]) for part in named)
    if len(named) < 2 or capitals < len(named) / 2:  # noqa: PLR2004
        return ()
    return tuple(named[:_SECTIONS_MAX])
