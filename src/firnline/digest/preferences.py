"""What users say about themselves, by rules: name, language, diet, allergies, likes and wishes.

Only plain statements about the speaker count. Anything that is, or might be, denied, supposed,
asked, quoted or about another person is skipped: a missed fact does less harm than an invented
one, which would replace the true one.
"""

# ruff: noqa: RUF001 - other scripts and their marks are meant

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from firnline.digest import speaker
from firnline.language import prose
from firnline.language.lexicon import BINDING_WORDS, NOT_A_THING, POINTING_AWAY, TIME_AND_DEGREE
from firnline.log.regex import regex
from firnline.log.text import Json

_PHRASE_WORDS_MAX: Final = 8
_SPLIT_WORDS_MAX: Final = 4


def any_of(*patterns: str) -> re.Pattern[str]:
    """One pattern that matches any of these, ignoring case."""
    return regex("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


LIST_SPLIT: Final = regex(
    # Spaces from the first of a run only, or each of them would search the rest of the run.
    r"(?:(?<!\s)\s+)?(?:,\s*(?:and|und|y|et|и)\s+|[,;→>|、]|\s(?:and|und|y|et|и)\s)\s*"
)
"""The separators of a list."""

_END: Final = (
    r"(?=[.,](?!\d)|[;!?)]|\s(?:and|but|because|since|so|when|for|in|with|over|than|instead|rather|to|please"
    r"|from now|as)\b|$)"
)
_THING: Final = rf"(?P<thing>(?:[^.,;!?\n]|[.,](?=\d)){{1,80}}?){_END}"
_DONE: Final = r"[^.,;!?\n]{0,80}?(?=[.,;!?)]|\s(?:and|but|because|since|so|please|instead)\b|$)"
"""The rest of an action, with its objects."""
_OVER: Final = r"(?:\s+(?:over|to|rather than|instead of|than)\s+(?P<over>[^.,;!?\n]{1,60}))?"

_WOULD: Final = r"\bI(?:['’]d| would)?(?: really| strongly| generally| usually| always| much)*"
_PREFERS_DOING: Final = any_of(
    rf"{_WOULD} prefer (?P<toward>to|not to) (?P<doing>[^.,;!?\n]{{1,80}})"
)
_PREFERS: Final = any_of(
    rf"{_WOULD} prefer {_THING}{_OVER}",
    rf"\bmy (?:strong )?preference is (?:for )?{_THING.replace('thing', 'thing2')}",
    # "Please use the new address" is about a single case.
    r"\bplease (?:use|stick to|keep to) (?!(?:the|this|these|those|my|our)\b)"
    + _THING.replace("thing", "thing3"),
    rf"\bplease always (?:use|stick to|keep to) {_THING.replace('thing', 'thing4')}",
    r"\bich bevorzuge (?P<far5>[^.,;!?\n]{1,80})",
    r"\bprefiero (?P<far6>[^.,;!?\n]{1,80})",
    r"\bje préfère (?P<far7>[^.,;!?\n]{1,80})",
    r"\bя предпочитаю (?P<far8>[^.,;!?\n]{1,80})",
    r"我(?:更)?(?:喜欢|偏好)(?P<far9>[^。，！？\n]{1,40}?)(?=而不是|[。，！？\n]|$)",
)
_FAR_ARTICLE: Final = regex(
    r"(?:der|die|das|den|ein|eine|einen|el|la|los|las|un|una|le|les|une|du)\s+|l['’]", re.IGNORECASE
)
_FAR_DENIED: Final = regex(r"(?:kein\w*|nicht|no|ne|pas|не)\b|n['’]|不", re.IGNORECASE)
_DIETS: Final = (
    r"(?P<diet>vegetarian|vegan|pescatarian|lactose intolerant|gluten[- ]free|celiac|halal|kosher)"
)
_STOPPED: Final = any_of(
    rf"\bI(?:['’]m| am) no longer (?:a |an )?{_DIETS}\b",
    rf"\bI(?:['’]m| am) not (?:a |an )?{_DIETS.replace('diet', 'diet2')} any ?more\b",
    r"\bI(?:['’]m| am) no longer allergic to (?P<free>[^.,;!?\n]{1,60})",
    r"\bI(?:['’]m| am) not allergic to (?P<free2>[^.,;!?\n]{1,60}?) any ?more\b",
    rf"\bI no longer prefer {_THING}",
    rf"\bI (?:don['’]t|do not) prefer {_THING.replace('thing', 'thing2')} any ?more\b",
)
"""What no longer holds for the speaker; it replaces the earlier statement."""
_FEELS: Final = r"\bI (?:really |absolutely |also )*"
_ATTITUDE: Final = (
    (any_of(rf"{_FEELS}(?:like|love|enjoy|adore) {_THING}"), "likes"),
    (
        any_of(
            rf"{_FEELS}(?:don['’]t like|do not like|dislike|hate(?! to\b)|can['’]t stand"
            rf"|cannot stand|don['’]t enjoy) {_THING}"
        ),
        "dislikes",
    ),
)
_HABIT: Final = (
    r"eat|drink|use|want|need|wear|take|buy|order|book|fly|drive|travel|work|watch|cook|smoke|pay|"
    r"sit|sleep|study|shop"
)
_TO_DO: Final = (
    rf"{_HABIT}|add|address|answer|apologi[sz]e|ask|assume|call|change|check|cite|comment|commit|"
    r"confirm|contact|copy|delete|deploy|do|email|end|explain|fill|format|give|go|guess|highlight|"
    r"include|install|invite|keep|leave|link|list|log|mail|make|mention|merge|message|name|offer|"
    r"phone|propose|provide|push|quote|recommend|remind|remove|repeat|reply|respond|restart|"
    r"reveal|round|run|save|say|schedule|send|serve|share|show|sign|skip|speak|spend|start|stop|"
    r"store|suggest|summari[sz]e|talk|tell|test|text|touch|translate|trust|try|write"
)
_WISHES: Final = (
    (
        any_of(
            rf"\b(?:never(?: ever)?|don['’]t ever|do not ever) (?P<thing>(?:{_TO_DO})\b{_DONE})"
        ),
        "never",
    ),
    (any_of(rf"\balways (?P<thing>(?:{_TO_DO})\b{_DONE})"), "always"),
)
_HABITS: Final = any_of(rf"\bI (?P<how>never|always) (?P<thing>(?:{_HABIT})\b{_DONE})")
_HOW_MUCH: Final = (
    r"also|actually|very|really|quite|a bit|a little|mildly|slightly|highly|strongly|severely|"
    r"seriously|terribly|badly|extremely|deathly|deadly|both|still"
)
_ALLERGIC: Final = any_of(
    rf"\bI(?:['’]m| am|['’]ve (?:always )?been| have (?:always )?been)(?: (?:{_HOW_MUCH}))*"
    r"(?P<between> [^.,;!?\n]{1,40}? and)? allergic to (?P<things>[^.;!?\n]{1,80})"
)
_THINGS_END: Final = any_of(
    r"[(:–—]|\s(?:but|so|because|since|which|who|that|though|although|except|unless|if|when|while|as"
    r"|please|not|no longer|only|just|with|from|in|at|these|now)\b"
)
_OTHERWISE: Final = any_of(
    r"\b(?:I|I'm|I've|my|we|our|you|your|he|she|it|they|his|her|their|is|are|was|were|am|have|has|"
    r"had|do|does|don't|can|can't|will|would|like|love|hate|prefer|need|want|live|work|nothing|"
    r"anything|none|then|vegan|vegetarian|pescatarian|lactose intolerant|asthmatic|diabetic)\b"
)
"""Words that end a list."""
_LANGUAGE: Final = regex(
    r"\b(?:[Aa]nswer|[Rr]eply|[Rr]espond|[Ww]rite|[Ss]peak)(?: to)?(?: me)? in"
    r" (?P<language>[A-Z][a-z]+(?: [A-Z][a-z]+)?)\b"
)
_DIET: Final = any_of(
    rf"\bI(?:['’]m| am) (?:a |an )?{_DIETS}"
    r"(?=[.,;!?)]|\s*$|\s(?:and|but|so|because|since|now|too|for|who|by|these|this|as)\b)"
)
_FILLER: Final = regex(r"^(?:a |an |the |my |some |any |your |using |having |to )+", re.IGNORECASE)
_NO_THING_FAR: Final = regex(r"[的你您他她它这那什谁吗上]")


def group_text(match: re.Match[str] | None, name: str) -> str:
    """The text of the first matching group whose name starts with `name`."""
    if match is None:
        return ""
    found = (value for key, value in match.groupdict().items() if key.startswith(name) and value)
    return next(found, "").strip()


def preferences(sentence: str) -> Iterator[tuple[str, Json]]:
    """Attribute and value of everything that the speaker says about themselves."""
    if speaker.is_foreign(sentence):
        return
    named = speaker.stated_name(sentence)
    if named:
        yield "name", named
    language = _LANGUAGE.search(sentence)
    spoken = language and speaker.is_request_to_reader(sentence, language.start())
    if language and spoken:
        yield "language", language["language"]
    diet = _DIET.search(sentence)
    if diet and speaker.is_own_statement(sentence, diet.start()):
        yield "diet", diet["diet"].lower()
    yield from _ended_preferences(sentence)
    yield from _allergies(sentence)
    preferred = _preference(sentence)
    if preferred:
        yield preferred
    elif not spoken:
        yield from _attitudes(sentence)
        yield from _wishes(sentence)


def _ended_preferences(sentence: str) -> Iterator[tuple[str, Json]]:
    """What no longer holds."""
    for match in _STOPPED.finditer(sentence):
        if not speaker.is_own_statement(sentence, match.start()):
            continue
        diet, free = group_text(match, "diet"), group_text(match, "free")
        thing = _clean_thing(group_text(match, "thing"))
        if diet:
            yield "diet", f"no longer {diet.lower()}"
        for part in LIST_SPLIT.split(free.replace(" or ", " and ")) if free else ():
            yield _phrase(_clean_thing(part)), "no longer allergic"
        if thing:
            name, value = _attribute(thing, None)
            yield name, f"no longer {value}"


def _allergies(sentence: str) -> Iterator[tuple[str, Json]]:
    for match in _ALLERGIC.finditer(sentence):
        between = match["between"] or ""
        if not speaker.is_own_statement(sentence, match.start()) or speaker.is_denied(between):
            continue
        listed = _THINGS_END.split(match["things"], maxsplit=1)[0]
        for thing in LIST_SPLIT.split(listed.replace(" or ", " and ")):
            if _OTHERWISE.search(thing):
                break
            if 0 < prose.count_words(thing) <= _SPLIT_WORDS_MAX:
                yield _phrase(thing), "allergic"


def _preference(sentence: str) -> tuple[str, Json] | None:
    doing = _PREFERS_DOING.search(sentence)
    if doing:
        thing = _clean_thing(doing["doing"])
        toward = "preferred" if doing["toward"].lower() == "to" else "not preferred"
        fine = thing and speaker.is_own_statement(sentence, doing.start())
        return (_phrase(thing), toward) if fine else None
    for match in _PREFERS.finditer(sentence):
        thing, far = (
            _clean_thing(group_text(match, "thing")),
            _clean_thing(group_text(match, "far")),
        )
        if not (thing or far) or not speaker.is_own_statement(sentence, match.start()):
            continue
        if thing:
            return _attribute(thing, match["over"])
        if not _FAR_DENIED.match(far):
            # In German, as in English, the last word is the noun.
            bare = _FAR_ARTICLE.sub("", far, count=1)
            return _attribute(bare, None) if match["far5"] else (_phrase(bare), "preferred")
    return None


def _attitudes(sentence: str) -> Iterator[tuple[str, Json]]:
    for pattern, attitude in _ATTITUDE:
        match = pattern.search(sentence)
        thing = _clean_thing(match["thing"]) if match else ""
        if match and thing and speaker.is_own_statement(sentence, match.start()):
            yield _phrase(thing), attitude


def _wishes(sentence: str) -> Iterator[tuple[str, Json]]:
    """What must always or never be done, or what the speaker always or never does.

    "I never received it" is neither: it is an event.
    """
    for pattern, how in _WISHES:
        match = pattern.search(sentence)
        if match and speaker.is_request_to_reader(sentence, match.start()):
            yield _phrase(match["thing"]), how
    habit = _HABITS.search(sentence)
    if habit and speaker.is_own_statement(sentence, habit.start()):
        yield _phrase(habit["thing"]), habit["how"].lower()


def _clean_thing(words: str) -> str:
    """The thing without words of time and degree; empty if it refers to something unknown."""
    kept = words.strip(" \"'“”").split()
    while kept and kept[-1].casefold() in TIME_AND_DEGREE:
        kept.pop()
    while kept and kept[0].casefold() in TIME_AND_DEGREE:
        kept.pop(0)
    if not kept or kept[0].casefold() in NOT_A_THING or kept[-1].casefold() in POINTING_AWAY:
        return ""
    return "" if _NO_THING_FAR.match(kept[0]) else " ".join(kept)


def _attribute(thing: str, over: str | None) -> tuple[str, Json]:
    """A preferred thing as attribute and value: "dark mode" is the mode "dark"."""
    words = _FILLER.sub("", thing).split()
    if over:
        return _phrase(thing), f"preferred over {_phrase(over)}"
    # In "a window seat on trains" the last word is not what is preferred.
    if BINDING_WORDS.intersection(words):
        return _phrase(thing), "preferred"
    # "Python 3.11" is one thing.
    whole = words[:1] and (words[0].endswith("ing") or any(map(str.isdigit, words[-1])))
    if 1 < len(words) <= _SPLIT_WORDS_MAX and words[0].isascii() and not whole:
        return words[-1].lower(), " ".join(words[:-1])
    return _phrase(thing), "preferred"


def _phrase(thing: str) -> str:
    """A thing as the name of an attribute: a few words without articles."""
    words = _FILLER.sub("", thing.strip(" \"'“”")).split()[:_PHRASE_WORDS_MAX]
    return " ".join(words) or thing.strip()
