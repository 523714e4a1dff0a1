"""Important data found by rules, with no model: preferences, decisions, facts, URLs, entities.

The rules read sentence by sentence and quote what they find. They would rather miss something than
make it up: what they return is checked against the log like anything a model returns.
"""

# ruff: noqa: RUF001 - other scripts and their marks are meant

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple

from firnline import limits
from firnline.digest import marks, prose
from firnline.digest.claims import Claim, claims
from firnline.log import Entry
from firnline.text import Json

_WORDS_MAX: Final = 60
_FACT_WORDS_MIN: Final = 3
_PHRASE_WORDS_MAX: Final = 8
_SPLIT_WORDS_MAX: Final = 4
_CODE: Final = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


_END: Final = r"(?=[.,;!?)]|\s(?:and|but|because|since|so|when|for|in|with|over|than|instead|rather|to|please|from now|as)\b|$)"  # noqa: E501
_TOLD: Final = r"(?:^|[.!?;:,]\s+|\b(?:please|I|we|should|must|to|and|but)\s+)"
"""What stands before "never" or "always" if it is a wish, and not something that happened."""
_THING: Final = rf"(?P<thing>[^.,;!?\n]{{1,80}}?){_END}"
_OVER: Final = r"(?:\s+(?:over|to|rather than|instead of|than)\s+(?P<over>[^.,;!?\n]{1,60}))?"

_WOULD: Final = r"\bI(?:'d| would)?(?: really| strongly| generally| usually| always| much)*"
_PREFERS_DOING: Final = re.compile(
    rf"{_WOULD} prefer (?P<toward>to|not to) (?P<doing>[^.,;!?\n]{{1,80}})",
    re.IGNORECASE,
)
_PREFERS: Final = _any(
    rf"{_WOULD} prefer {_THING}{_OVER}",
    rf"\bmy (?:strong )?preference is (?:for )?{_THING.replace('thing', 'thing2')}",
    rf"\bplease (?:always )?(?:use|stick to|keep to) {_THING.replace('thing', 'thing3')}",
    r"\bich bevorzuge (?P<thing4>[^.,;!?\n]{1,80})",
    r"\bprefiero (?P<thing5>[^.,;!?\n]{1,80})",
    r"\bje préfère (?P<thing6>[^.,;!?\n]{1,80})",
    r"\bя предпочитаю (?P<thing7>[^.,;!?\n]{1,80})",
    r"我(?:更)?(?:喜欢|偏好)(?P<thing8>[^。，！？\n]{1,40})",
)
_ATTITUDE: Final = (
    (
        re.compile(
            rf"\bI (?:really |absolutely |also )*(?:like|love|enjoy|adore) {_THING}", re.IGNORECASE
        ),
        "likes",
    ),
    (
        re.compile(
            rf"\bI (?:really |absolutely |also )*(?:don't like|do not like|dislike|hate|can't stand"
            rf"|cannot stand|don't enjoy) {_THING}",
            re.IGNORECASE,
        ),
        "dislikes",
    ),
    (
        re.compile(
            rf"{_TOLD}(?:never|don't ever) (?!mind\b|been\b|had\b|saw\b|seen\b){_THING}",
            re.IGNORECASE,
        ),
        "never",
    ),
    (re.compile(rf"{_TOLD}always (?!been\b|had\b){_THING}", re.IGNORECASE), "always"),
)
_ALLERGIC: Final = re.compile(r"\ballergic to (?P<things>[^.;!?\n]{1,80})", re.IGNORECASE)
_CALLED: Final = _any(
    r"\bmy name(?:'s| is) (?P<name>[^\W\d_][\w'’-]*(?: (?-i:[A-ZÀ-Þ])[\w'’-]*){0,2})",
    r"\b(?:please )?call me (?P<name2>[^\W\d_][\w'’-]*(?: (?-i:[A-ZÀ-Þ])[\w'’-]*){0,2})",
    r"\b(?:ich heiße|me llamo|je m'appelle|меня зовут) (?P<name3>[^\W\d_][\w-]*)",
    r"我叫(?P<name4>[\w·]{1,12})",
)
_LANGUAGE: Final = re.compile(
    r"\b(?:answer|reply|respond|write|speak)(?: to)?(?: me)? in"
    r" (?P<language>[A-Z][a-z]+(?: [A-Z][a-z]+)?)\b"
)
_DIET: Final = re.compile(
    r"\bI(?:'m| am) (?:a |an )?(?P<diet>vegetarian|vegan|pescatarian|lactose intolerant"
    r"|gluten[- ]free|celiac|halal|kosher)\b",
    re.IGNORECASE,
)
_DECISION: Final = _any(
    r"\blet(?:'s|’s| us) (?:go with|use|do|stick with|pick|choose|settle on"
    r"|switch to|move|keep|plan on|schedule|book|make it)\b",
    r"\b(?:we|I)(?:'ve| have)?(?: all| both| finally| already)* (?:decided|agreed"
    r"|settled on|chose|opted|concluded|picked)\b",
    r"\b(?:we|I)(?:'ll| will| are going to|'re going to) (?:use|go with|switch to|adopt"
    r"|stick with|move to|drop|keep)\b",
    r"\b(?:the |our |final )decision (?:is|was)\b|\bdecision:",
    r"\b(?:it's|it is) (?:decided|settled|agreed)\b|^agreed\b[:,. -]",
    r"\bgoing with\b",
    r"\bwir (?:haben (?:uns )?(?:entschieden|beschlossen)|nehmen|verwenden)\b",
    r"\b(?:entschieden|beschlossen)\b",
    r"\b(?:hemos decidido|decidimos|acordamos|vamos a usar)\b",
    r"\b(?:nous avons décidé|on a décidé|nous allons utiliser|c'est décidé)\b",
    r"\b(?:мы решили|решено|договорились|будем использовать)\b",
    r"(?:我们决定|决定(?:了|使用|采用)|就用|达成一致)",
)
_CUED: Final = _any(
    r"\bimportant(?:ly)?\s*(?::|is that|to (?:note|remember|know))",
    r"\b(?:key|main|central) (?:finding|result|insight|point|takeaway)s?\b",
    r"\b(?:remember|note|keep in mind|bear in mind|don't forget|be aware|fyi)\b(?: that\b|\s*:|,)",
    r"\bdeadline\b|\b(?:is|are) due\b|\bdue (?:by|on|date)\b|\bexpires?\b",
    r"\b(?:wichtig|importante|important|важно)\s*:|(?:重要|注意)[:：]",
)
_STATES: Final = re.compile(
    r"\b(?:is|are|was|were|has|have|had|costs?|lives?|works?|owns?|runs?|starts?|ends?|leaves?|"
    r"arrives?|moved|joined|weighs?|takes?|needs?|uses?|contains?|earns?|pays?|paid|bought|sold|"
    r"born|equals?|measures?|called|named|ist|hat|kostet|wohne|es|tiene|cuesta|vivo|est|coûte|"
    r"habite|am|I'm|we're|he's|she's|it's|there's)\b|[是有在]",
    re.IGNORECASE,
)
_STRUCTURE: Final = _any(
    r"\b(?:document structure|structure|outline|table of contents|toc)\s*"
    r"(?:is|will be|should be)?\s*:\s*(?P<list>[^\n]{3,300})",
    r"\b(?:sections?|chapters?|parts)\s*(?:for|on|about|called|named|titled|:|are|will be|should be"
    r"|like|such as)\s*(?P<list2>[^\n]{3,300})",
    r"\b(?:Abschnitte|Kapitel|secciones|sections|разделы)\s*:?\s+(?:für|para|pour|:)?\s*(?P<list3>[A-ZÀ-ÞА-Я][^\n]{3,300})",
)
_LIST_SPLIT: Final = re.compile(
    r"\s*(?:,\s*(?:and|und|y|et|и)\s+|[,;→>|、]|\s(?:and|und|y|et|и)\s)\s*"
)
_SECTION_WORDS_MAX: Final = 6
_SECTIONS_MAX: Final = 30
_FILLER: Final = re.compile(
    r"^(?:a |an |the |my |some |any |your |using |having |to )+|\s+$", re.IGNORECASE
)
_QUESTION_ENDS: Final = ("?", "？", "؟")


class Cues(NamedTuple):
    """What a sentence is, by its wording."""

    decision: bool
    preference: bool
    question: bool
    marked: bool


@lru_cache(maxsize=4_096)  # extractor, summariser and receipt all read the same sentences
def cues(sentence: str) -> Cues:
    """Whether a sentence decides, prefers, asks, or is marked as important."""
    question = sentence.rstrip("\"'”’)* ").endswith(_QUESTION_ENDS)
    return Cues(
        decision=not question and bool(_DECISION.search(sentence)),
        preference=not question and next(_preferences(sentence), None) is not None,
        question=question,
        marked=not question and bool(_CUED.search(sentence)),
    )


def extract(entries: Iterable[Entry]) -> list[dict[str, Any]]:
    """Raw items in the order they were said: field, name, value, seqs and quote.

    Users' messages are read for everything, the assistant's for decisions, what is marked as
    important, URLs and entities, tool results for URLs and entities only. Recalled and injected
    text is not read at all.
    """
    found: list[dict[str, Any]] = []
    for entry in entries:
        role = entry.message.role
        text = _CODE.sub("\n", marks.said(entry.message))
        if not text.strip() or role in ("system", "developer"):
            continue
        if role != "tool":
            for sentence in prose.sentences(text):
                found += _stated(sentence, entry.seq, by_user=role == "user")
        found += _mentioned(text, entry.seq)
    return found


def _stated(sentence: str, seq: int, *, by_user: bool) -> Iterator[dict[str, Any]]:
    """What a sentence says about preferences, structure, decisions or facts."""
    if prose.count_words(sentence) > _WORDS_MAX or cues(sentence).question:
        return
    quote = sentence[: limits.ITEM_CHARS_MAX]
    told = False
    if by_user:
        for name, value in _preferences(sentence):
            told = True
            yield _raw("user_preferences", name, value, seq, quote)
    sections = _sections(sentence)
    if sections:
        told = True
        yield _raw("document_structure", "sections", list(sections), seq, quote)
    if _DECISION.search(sentence):
        yield _raw("key_decisions", "", quote, seq, quote)
    elif not told and _is_fact(sentence, by_user=by_user):
        yield _raw("important_facts", "", quote, seq, quote)


def _raw(field: str, name: str, value: Json, seq: int, quote: str) -> dict[str, Any]:
    return {"field": field, "name": name, "value": value, "seqs": [seq], "quote": quote}


def _mentioned(text: str, seq: int) -> Iterator[dict[str, Any]]:
    """The URLs and entities of a text, each once."""
    seen: set[tuple[str, str]] = set()
    for claim in claims(text):
        field = _field(claim)
        if field and (field, claim.key) not in seen:
            seen.add((field, claim.key))
            yield _raw(field, "", claim.value, seq, claim.value)


def _field(claim: Claim) -> str:
    if claim.kind == "url":
        return "source_urls"
    return "entities" if claim.kind == "name" and claim.sure and len(claim.value) > 1 else ""


def _is_fact(sentence: str, *, by_user: bool) -> bool:
    """Marked as important; or a user's statement that has a name, a number or a date in it."""
    if prose.count_words(sentence) < _FACT_WORDS_MIN:
        return False
    if _CUED.search(sentence):
        return True
    if not by_user:
        return False
    checkable = [claim for claim in claims(sentence) if claim.sure and claim.kind != "url"]
    dated = any(claim.kind == "date" for claim in checkable)
    return dated or bool(checkable and _STATES.search(sentence))


# -- preferences ------------------------------------------------------------------------------


def _preferences(sentence: str) -> Iterator[tuple[str, Json]]:
    """Attribute and value of every preference in the sentence."""
    named = _group(_CALLED.search(sentence), "name")
    if named:
        yield "name", named.rstrip("'’-")
    language = _LANGUAGE.search(sentence)
    if language:
        yield "language", language["language"]
    diet = _DIET.search(sentence)
    if diet:
        yield "diet", diet["diet"].lower()
    yield from _avoided(sentence)
    preferred = _preferred(sentence)
    if preferred:
        yield preferred
    elif not language:
        yield from _attitudes(sentence)


def _avoided(sentence: str) -> Iterator[tuple[str, Json]]:
    for match in _ALLERGIC.finditer(sentence):
        for thing in _LIST_SPLIT.split(match["things"]):
            if 0 < prose.count_words(thing) <= _SPLIT_WORDS_MAX:
                yield _phrase(thing), "allergic"


def _preferred(sentence: str) -> tuple[str, Json] | None:
    doing = _PREFERS_DOING.search(sentence)
    if doing:
        toward = "preferred" if doing["toward"].lower() == "to" else "not preferred"
        return _phrase(doing["doing"]), toward
    match = _PREFERS.search(sentence)
    return _attribute(_group(match, "thing"), match["over"]) if match else None


def _attitudes(sentence: str) -> Iterator[tuple[str, Json]]:
    for pattern, attitude in _ATTITUDE:
        match = pattern.search(sentence)
        if match:
            yield _phrase(match["thing"]), attitude


def _group(match: re.Match[str] | None, name: str) -> str:
    """The text of the group that matched, of all those whose name starts alike."""
    if match is None:
        return ""
    found = (value for key, value in match.groupdict().items() if key.startswith(name) and value)
    return next(found, "").strip()


def _attribute(thing: str, over: str | None) -> tuple[str, Json]:
    """A preferred thing as attribute and value: "dark mode" is the mode "dark"."""
    words = _FILLER.sub("", thing).split()
    if over:
        return _phrase(thing), f"preferred over {_phrase(over)}"
    if 1 < len(words) <= _SPLIT_WORDS_MAX and words[0].isascii() and not words[0].endswith("ing"):
        return words[-1].lower(), " ".join(words[:-1])
    return _phrase(thing), "preferred"


def _phrase(thing: str) -> str:
    """A thing as the name of an attribute: a few words, in lower case unless they are names."""
    words = _FILLER.sub("", thing.strip(" \"'“”")).split()[:_PHRASE_WORDS_MAX]
    return " ".join(words) or thing.strip()


# -- document structure -----------------------------------------------------------------------


def _sections(sentence: str) -> tuple[str, ...]:
    """The sections that the sentence lists, at least two; else none."""
    listed = _group(_STRUCTURE.search(sentence), "list")
    parts = [part.strip(" .:\"'“”*`") for part in _LIST_SPLIT.split(listed.rstrip(".!"))]
    named = [part for part in parts if part and prose.count_words(part) <= _SECTION_WORDS_MAX]
    capitals = sum(part[0].isupper() or not part[0].isascii() for part in named)
    if len(named) < 2 or capitals < len(named) / 2:  # noqa: PLR2004
        return ()
    return tuple(named[:_SECTIONS_MAX])
