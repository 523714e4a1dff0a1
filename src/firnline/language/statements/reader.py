"""Reads what people state about themselves and things: "I moved to Lisbon" is a home city.

A statement has a subject, a slot and a value. Questions, suppositions, quotes and denials state
nothing, and what is said of another person is that person's. In doubt a sentence states nothing.
Pure; `patterns` has the slots, `english_people` and the like the rules, `voice` says whose words
a sentence is, and `values` what of them is meant.
"""

# ruff: noqa: RUF001, E501 - other scripts are meant, and patterns stay on one line

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

from firnline.language import prose
from firnline.language.lexicon import NOT_A_PLACE
from firnline.language.names import fold_name
from firnline.language.statements import patterns as slots
from firnline.language.statements import speaker, values, voice
from firnline.language.statements.attitudes import stated_preferences
from firnline.language.statements.chinese import CHINESE, WHOSE
from firnline.language.statements.decisions import decided
from firnline.language.statements.english import ANCESTRY, KIN
from firnline.language.statements.english_life import LIFE
from firnline.language.statements.english_people import PEOPLE
from firnline.language.statements.english_tastes import TASTES
from firnline.language.statements.english_things import THINGS
from firnline.language.statements.french import FRENCH
from firnline.language.statements.german import GERMAN
from firnline.language.statements.patterns import SlotRule, Statement
from firnline.language.statements.russian import NOMINATIVE, RUSSIAN
from firnline.language.statements.spanish import SPANISH
from firnline.language.statements.validity import ANY_DAY, is_over, valid_times
from firnline.log.regex import regex

RULES: Final = 4
"""The version of the rules: what was read by others is read again."""
CHARS_MAX: Final = 50_000
"""Characters of a message that are read."""
_CACHED_CHARS: Final = 4_000
_SENTENCE_MAX: Final = 400
_BEFORE: Final = 120

_RULES: Final = (*PEOPLE, *LIFE, *TASTES, *THINGS, *GERMAN, *SPANISH, *FRENCH, *RUSSIAN, *CHINESE)
_PLACES: Final[dict[str, list[int]]] = {}
"""The places of the rules with this cue."""
for _place, _rule in enumerate(_RULES):
    for _cue in _rule.cues:
        _PLACES.setdefault(_cue, []).append(_place)
_WORD: Final = regex(r"[^\W_]+(?:['’-][^\W_]+)*")
_GLUE: Final = regex("['’-]")
_FAR: Final = regex(f"[{prose.CJK}]")
_ADVERBS: Final = (
    r"(?P<between>(?:(?:now|currently|recently|just|actually|still|finally|also|already|really|have|has|had|is|am|are|was|were"
    r"|been|officially|all|both|permanently|happily|then|since|got|we['’]ve|will now|do|a|an|the|only|mostly|usually|always|never"
    r"|long|originally|kind of|sort of|basically|totally|very|so|quite|pretty|super|even|probably|absolutely|definitely|both|myself"
    r"|personally|being|fully|newly|proud|well|obviously|sadly|unfortunately|luckily|lately|nowadays|here|there|too|instead|soon|later|once"
    r"|get|gets|getting|go|goes|going|am also)\s+){0,5})"
)
_OWN: Final = r"(?P<own>I|we|us two)(?P<aux>['’]?(?:m|ve|re)|['’](?:d|ll))?"
_OTHERS: Final = r"(?P<other>s?he|they|you|it|who|that|this|there|everyone|everybody|people|some|most|one|which|what|here)(?:['’](?:s|re|ve|d|ll))?"
_SUBJECT: Final = regex(
    rf"(?:\A|[\s\"“(,;:—–-])(?:{_OWN}"
    rf"|(?:my|our)\s(?:{ANCESTRY}\s){{0,2}}(?P<kin>{KIN})(?:,?\s(?P<called>(?-i:[A-ZÀ-Þ])[\w'’-]{{1,20}}),?)?(?:['’]s)?"
    rf"|(?P<called2>(?-i:[A-ZÀ-Þ])[\w-]{{1,20}}),\s(?:my|our)\s(?:{ANCESTRY}\s){{0,2}}(?P<kin2>{KIN}),?"
    rf"|{_OTHERS}"
    r"|(?P<name>(?-i:[A-ZÀ-Þ])[^\W\d_]{1,20})(?:['’]s)?)"
    rf"\s+{_ADVERBS}\Z",
    re.IGNORECASE,
)
_FIRST: Final = regex(
    r"\W*(?:(?:hi|hey|hello|ok|okay|so|and|but|well|oh|btw|fyi|update|news|yes|no|actually|also|by the way|good (?:morning|evening|afternoon)|sorry|thanks)\b\W*){0,3}"
    r"(?:(?:last|this|next)?\s?(?:week|month|year|weekend|yesterday|today|recently|finally|currently|now|nowadays)\b\W*)?"
    rf"(?:(?P<own>I|we)(?:['’]?(?:m|ve|re)|['’](?:d|ll))?\b|my\s(?:{ANCESTRY}\s){{0,2}}(?P<kin>{KIN})\b|(?P<other>s?he|they|you|it|there|this|that)\b"
    r"|(?P<name>(?-i:[A-ZÀ-Þ])[^\W\d_]{1,20}))",
    re.IGNORECASE,
)
_JOINED: Final = regex(rf"(?:\b(?:and|then|but|so|or)|[,;–—])\s+{_ADVERBS}\Z", re.IGNORECASE)
_LAST_OWN: Final = regex(
    r"\b(?:(?P<own>I|we)(?:['’]?(?:m|ve|re))?|(?P<other>s?he|they|you|it|who))\b", re.IGNORECASE
)
_BARE: Final = regex(
    r"\W*(?:(?:hi|hey|hello|ok|okay|so|and|but|well|oh|btw|fyi|update|news|yes|no|correction|sorry|actually|finally"
    r"|just|now|recently|officially|already|also|anyway|by the way)\b\W*){0,4}\Z",
    re.IGNORECASE,
)
_NAMED_KIN: Final = regex(
    rf"\b(?:my|our)\s(?:{ANCESTRY}\s){{0,2}}(?P<kin>{KIN})\b(?:,?\s(?P<called>(?-i:[A-ZÀ-Þ])[\w-]{{1,20}}))?",
    re.IGNORECASE,
)
_STARTS: Final = regex(
    r"(?:\A|[^\w\s]|\b(?:and|but|so|because|cause|since|that|though|although|know|think|say|said|well|yeah|yes|no|oh|while|actually|usually"
    r"|honestly|personally|then|however|plus|besides|also|ok|okay|now|hi|hey|hello|day|time|home|work|general|too|much|lately|weekends?|years?|ago|haha|lol|btw))\s*\Z",
    re.IGNORECASE,
)
"""What a statement follows; after a noun, it only tells which: "the job I enjoy"."""
_AND: Final = regex(rf"\b(?:and|but)\s+{_ADVERBS}\Z", re.IGNORECASE)
_PAST: Final = regex(r"[^\W\d_]{2,}(?:ed|oke|uit|ot|eft|egan)\b", re.IGNORECASE)
_WAS: Final = regex(r"\b(?:was|were|had)\b", re.IGNORECASE)
_HAPPENED: Final = regex(
    r"(?:born|hired|fired|laid|let go|diagnosed|raised|brought|promoted|relocated|transferred)\b",
    re.IGNORECASE,
)
_TO_COME: Final = regex(r"(?:moving|relocating)\b", re.IGNORECASE)
_LIVED: Final = regex(r"(?:lived|worked|studied|played|drove|owned)\b", re.IGNORECASE)
_HAVE: Final = regex(
    r"(?:\b(?:have|has)|['’](?:ve|s))(?: (?:always|both|also|now|since|only|just|all))?\s\Z",
    re.IGNORECASE,
)
_HYPOTHETICAL: Final = regex(
    r"\b(?:might|may|could|would|should|want(?:s|ed)? to|plan(?:s|ning)? (?:to|on)|hop(?:e|ing) to|going to|thinking"
    r"|considering|dream|almost|nearly|never|used to|wish|will|not sure|rumou?r|as if|about to|if|unless|whether"
    r"|suggest|recommend|propose|example|e\.g\.|hypothetically|until|before|when|once|as soon as|while|after|like to|love to|supposed to|try(?:ing)? to"
    r"|every time|whenever|in case|pretend\w*|imagin\w*|suppose)\b|['’]d\b|['’]ll\b",
    re.IGNORECASE,
)
_CLAUSE_START: Final = regex(
    r"[,;:–—]\s|\s-\s|\b(?:because|since|as|so|and|but|though|und|aber|weil|y|pero|et|mais|и|но)\s",
    re.IGNORECASE,
)
_SPELLINGS: Final = (
    ("favourite", "favorite"),
    ("colour", "color"),
    ("flavour", "flavor"),
    ("programme", "program"),
)
_PREFACE: Final = regex(
    r"\b(?:I|we) (?:should|must|have to|need to|might|may|can|could|forgot to|want to|wanted to|would like to)(?: also| just)? (?:say|mention|add|admit|note|point out|tell you|confess|warn you|clarify)(?: that)?\b",
    re.IGNORECASE,
)
"""Words before a statement that do not make it a supposition."""
_MOVED: Final = regex(r"\b(?:moved|relocated)\b", re.IGNORECASE)
_COMMA: Final = regex(r"[,;:–—]")
_WIFE: Final = frozenset(
    (
        "friend",
        "colleague",
        "coworker",
        "neighbor",
        "neighbour",
        "classmate",
        "cousin",
        "teammate",
        "buddy",
        "mate",
    )
)
"""People of whom there are several: their name tells which."""


def statements(text: str) -> tuple[Statement, ...]:
    """What the text states, in order."""
    return _remembered(text) if len(text) <= _CACHED_CHARS else _statements(text[:CHARS_MAX])


def clear_cache() -> None:
    """Forget the texts that were read."""
    _remembered.cache_clear()


def _statements(text: str) -> tuple[Statement, ...]:
    found: dict[tuple[str, str, str, str], Statement] = {}
    names: dict[str, str] = {}
    for start, end in voice.own_spans(text):
        if end - start > _SENTENCE_MAX:
            continue
        for one in _in_sentence(text[start:end]):
            if one.slot == slots.NAME and one.subject and not one.thing:
                names[fold_name(one.value).split(" ")[0]] = one.subject
            subject = one.subject if one.thing else names.get(one.subject, one.subject)
            moved = one._replace(subject=subject, start=one.start + start, end=one.end + start)
            found.setdefault(moved[:4], moved)
    return tuple(sorted(found.values(), key=lambda one: one.start))


_remembered: Final = lru_cache(maxsize=4_096)(_statements)


def as_own(text: str) -> str:
    """An assistant's text with "you" as "I": what it repeats of the user's facts."""
    return _YOU.sub(lambda match: _OWN_FORMS[match[0].lower()], text)


_OWN_FORMS: Final = {
    "you are": "I am",
    "you're": "I'm",
    "you’re": "I'm",
    "you've": "I've",
    "you’ve": "I've",
    "you": "I",
    "your": "my",
}
_YOU: Final = regex(r"\b(?:you are|you['’](?:re|ve)|your?)\b", re.IGNORECASE)


def _in_sentence(sentence: str) -> Iterator[Statement]:
    """What a sentence of the speaker's own states; what one rule has read, no other reads."""
    words = _cue_words(sentence)
    taken: list[tuple[str, int, int]] = []
    for place in sorted({n for word in words for n in _PLACES.get(word, ())}):
        rule = _RULES[place]
        for match in rule.pattern.finditer(sentence):
            if any(
                rule.slot == slot and match.start() < end and start < match.end()
                for slot, start, end in taken
            ):
                continue
            found = list(_read(rule, match, sentence))
            yield from found
            if found:
                taken.append((rule.slot, match.start(), match.end()))
    named = speaker.stated_name(sentence)
    if named:
        yield Statement("", slots.NAME, named, "", 0, len(sentence))
    for slot, value, gone in (*stated_preferences(sentence), *decided(sentence)):
        if values.is_plausible(slot, value, sentence):
            yield Statement("", slot, value, gone, 0, len(sentence))


def _cue_words(sentence: str) -> set[str]:
    """The words that may be cues of a rule; of scripts without spaces, the characters."""
    words = set(_WORD.findall(sentence.casefold()))
    glued = [word for word in words if not word.isalnum()]
    words.update(piece for word in glued for piece in _GLUE.split(word))
    if not sentence.isascii():
        words.update(_FAR.findall(sentence))
    return words


def _read(rule: SlotRule, match: re.Match[str], sentence: str) -> Iterator[Statement]:
    """The statements of a match; none if the sentence does not clearly state them."""
    groups = match.groupdict()
    if not is_plain(sentence, match.start(), match.end(), rule.slot):
        return
    about = _about(rule, match, sentence)
    if about is None:
        return
    given = groups.get("value") or groups.get("value2") or ""
    slot, subject = _slot(rule, groups, about)
    kind = rule.kind if rule.slot == slots.HOME else "any"
    old = values.cut(
        rule._replace(kind=kind),
        groups.get("old") or groups.get("gone") or groups.get("gone2") or "",
        sentence,
    )
    found = values.cut(rule, given, sentence) if given else [rule.value]
    moved = _MOVED.search(match[0]) is not None
    for value in found:
        if value and not values.is_in(value, sentence):
            continue
        if value and not values.is_plausible(slot, value, sentence, moved=moved):
            continue
        if (
            not value
            and not old
            and (groups.get("gone") or groups.get("gone2") or "gone" not in groups)
        ):
            continue
        shown = f"not {value}" if groups.get("no") else value
        yield Statement(
            subject,
            slot,
            shown,
            old[0] if old else "",
            match.start(),
            match.end(),
            rule.about == "thing",
        )


def is_plain(sentence: str, start: int, end: int, slot: str) -> bool:
    """Whether these words are said as they are: not supposed, reported, denied, or an order."""
    before = sentence[max(0, start - _BEFORE) : start]
    plain = _PREFACE.sub(lambda found: "," * len(found[0]), sentence)
    if not speaker.is_own_statement(plain, start):
        return False
    if slot not in (slots.GOAL, slots.WISHES, slots.NAME) and _HYPOTHETICAL.search(_plain(before)):
        return False
    if voice.is_conditional(sentence[end:]):
        return False
    told = slot == slots.WISHES or voice.is_reminder(sentence)
    return told or not speaker.is_order(_around(sentence, start, end))


def _around(sentence: str, start: int, end: int) -> str:
    """The clause that these words are in, between commas and the like."""
    starts = [found.end() for found in _CLAUSE_START.finditer(sentence, 0, start)]
    comma = _COMMA.search(sentence, end)
    return sentence[starts[-1] if starts else 0 : comma.start() if comma else len(sentence)]


def _plain(before: str) -> str:
    """The clause that these words end with, without what only leads to it."""
    return _PREFACE.sub("", _clause(before))


def _clause(before: str) -> str:
    """The clause that these words end with."""
    cuts = [found.end() for found in _CUT.finditer(before)]
    return before[cuts[-1] :] if cuts else before


_CUT: Final = regex(
    r"[;:–—]\s|\s-\s|,?\s(?:but|so)\s|(?:,|,?\sand|\sund|\sy|\set|\sи)\s(?=(?:I|we|my|our|ich|wir|yo|je|j['’]|nous|я|мы|у меня)\b)",
    re.IGNORECASE,
)


def _about(rule: SlotRule, match: re.Match[str], sentence: str) -> str | None:
    """The person who is meant, empty for the speaker; None if that is not clear."""
    if rule.about == "before":
        return _subject_before(rule, sentence, match)
    groups = match.groupdict()
    whose = groups.get("whose") or groups.get("whose2")
    if (
        not whose
        and match[0].startswith("，")
        and (before := WHOSE.search(sentence[: match.start()]))
    ):
        whose = before["whose"]  # the clause goes on about a relative
    return _kin(whose, groups.get("called")) if whose else ""


def _subject_before(rule: SlotRule, sentence: str, match: re.Match[str]) -> str | None:
    """Whom the words before a verb name: "my older sister" is "sister"."""
    before, verb = sentence[: match.start()], match[0]
    if _BARE.match(before):
        return "" if _PAST.match(verb) and not _LIVED.match(verb) else None
    found, joined = _nearest_subject(before)
    if found is None:
        return None
    groups = found.groupdict()
    if (groups.get("other") or "").casefold() in _PRONOUNS:
        return _antecedent(before, groups["other"])
    if groups.get("other") or _is_past(rule, sentence, match, groups.get("between") or ""):
        return None
    if groups.get("own"):
        wish = (groups.get("aux") or "").casefold().strip("'’") in ("d", "ll")
        return None if wish or not _is_taste(rule, before, found, joined=joined) else ""
    kin = groups.get("kin") or groups.get("kin2")
    if kin:
        return _kin(kin, groups.get("called") or groups.get("called2"))
    return _named_subject(rule, groups.get("name") or "")


def _nearest_subject(before: str) -> tuple[re.Match[str] | None, bool]:
    """The subject of a verb, and whether a conjunction or a comma joins the verb to it."""
    found = _SUBJECT.search(before[-_BEFORE:])
    if found is not None or not _JOINED.search(before[-_BEFORE:]):
        return found, False
    first, last = _FIRST.match(before), list(_LAST_OWN.finditer(before))
    if first is not None and last and last[-1]["other"] and not first["kin"]:
        return None, True
    return first, True


def _is_past(rule: SlotRule, sentence: str, match: re.Match[str], between: str) -> bool:
    """Whether it held before, or will hold, and the sentence does not say until or from when."""
    if _TO_COME.match(match[0]):
        return valid_times(sentence, rule.slot, ANY_DAY)[0] is None
    was = _WAS.search(between) is not None and not _HAPPENED.match(match[0])
    lived = _LIVED.match(match[0]) is not None and not _HAVE.search(sentence[: match.start()])
    return (was or lived) and not is_over(sentence, rule.slot)


def _is_taste(rule: SlotRule, before: str, found: re.Match[str], *, joined: bool) -> bool:
    """Whether it is a taste: not "the job I enjoy", "what I like" and ", like my bowl"."""
    if rule.slot not in (slots.LIKES, slots.DISLIKES):
        return True
    if joined:
        return _AND.search(before) is not None
    return _STARTS.search(before[-_BEFORE:][: found.start("own")]) is not None


def _named_subject(rule: SlotRule, name: str) -> str | None:
    """The person of this name, of whom only a home and work are read."""
    known = rule.slot in (slots.HOME, slots.EMPLOYER, slots.JOB, slots.CHANGE)
    if not known or not name or name.casefold() in NOT_A_PLACE or _BARE.match(f"{name} "):
        return None
    return fold_name(name)


def _antecedent(before: str, pronoun: str) -> str | None:
    """The relative that "she" is, if the sentence has named only one."""
    named = {match["kin"].casefold(): match["called"] for match in _NAMED_KIN.finditer(before)}
    if len(named) != 1:
        return None
    kin, called = next(iter(named.items()))
    fits = _FEMALE if pronoun.casefold() == "she" else _MALE
    return (
        _kin(kin, called)
        if fits.search(kin) or not (_FEMALE.search(kin) or _MALE.search(kin))
        else None
    )


_PRONOUNS: Final = frozenset(("he", "she"))
_FEMALE: Final = regex(
    "mother|mom|mum|wife|girl|daughter|sister|aunt|niece|fiancée|nan|gran(?:ny|dma)|landlady"
)
_MALE: Final = regex("father|dad|husband|boy|son$|brother|uncle|nephew|fiancé$|grandpa|godson")


def _kin(words: str, called: str | None = None) -> str:
    """How a relative is called: "sister", or by name if there may be several: "friend tom"."""
    noun = " ".join(words.casefold().split())
    noun = NOMINATIVE.get(noun, noun)
    return f"{noun} {fold_name(called)}" if called and noun in _WIFE else noun


def _slot(rule: SlotRule, groups: Mapping[str, str | None], about: str) -> tuple[str, str]:
    """The slot and the subject of a match."""
    thing = " ".join(_WORD.findall((groups.get("thing") or "").casefold()))
    if rule.slot == slots.OWN:
        for british, american in _SPELLINGS:
            thing = thing.replace(british, american)
        return thing, about
    if rule.slot == slots.TOOL and thing:
        return f"{slots.TOOL} for {thing}", about
    if rule.about == "thing":
        return rule.slot, re.sub(
            r"\b(?:number|no|nr|id|new|current|next|upcoming)\b ?", "", thing
        ).strip()
    return rule.slot, about
