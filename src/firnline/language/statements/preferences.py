"""What users say about themselves, by rules: name, language, diet, allergies, likes and wishes.

Only plain statements about the speaker count. Anything that is, or might be, denied, supposed,
asked, quoted or about another person is skipped: a missed fact does less harm than an invented
one, which would replace the true one.
"""

# ruff: noqa: RUF001, E501 - other scripts are meant, and patterns stay on one line

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from firnline.language import prose
from firnline.language.lexicon import BINDING_WORDS, NOT_A_THING, POINTING_AWAY, TIME_AND_DEGREE
from firnline.language.statements import speaker
from firnline.language.statements.preferences_abroad import CUES, PATTERNS
from firnline.log.regex import regex
from firnline.log.text import Json

_PHRASE_WORDS_MAX: Final = 8
_SPLIT_WORDS_MAX: Final = 4
_NOUN_PAIR: Final = 3
"""Words of "short commit messages", of which the last two belong together."""


def any_of(*patterns: str) -> re.Pattern[str]:
    """One pattern that matches any of these, ignoring case."""
    return regex("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


LIST_SPLIT: Final = regex(
    # Spaces from the first of a run only, or each of them would search the rest of the run.
    r"(?:(?<!\s)\s+)?(?:,\s*(?:and|und|y|et|и)\s+|[,;→>|、]|\s(?:and|und|y|et|и)\s)\s*"
)
"""The separators of a list."""

_END: Final = (
    r"(?=[.,](?!\d)|[;!?)]|\s(?:and|but|because|since|so|when|while|whenever|over|than|instead|rather|to|please"
    r"|from now|as)\b|$)"
)

_THING: Final = rf"(?P<thing>(?:[^.,;!?\n]|[.,](?=\d)){{1,80}}?){_END}"
_DONE: Final = r"[^.,;!?\n]{0,80}?(?=[.,;!?)]|\s(?:and|but|because|since|so|please|instead)\b|$)"
"""The rest of an action, with its objects."""
_OVER: Final = r"(?:\s+(?:over|to|rather than|instead of|than)\s+(?P<over>[^.,;!?\n]{1,60}))?"

_WOULD: Final = (
    r"\b(?:I|we)(?:['’]d| would)?"
    r"(?: really| strongly| generally| usually| always| much| both| all)*"
)
_PREFERS_DOING: Final = any_of(
    rf"{_WOULD} (?P<how>prefer (?P<toward>to|not to)) (?P<doing>[^.,;!?\n]{{1,80}})"
)
_PREFERS: Final = any_of(
    rf"{_WOULD} (?P<how>prefer) {_THING}{_OVER}",
    rf"\bmy (?:strong )?(?P<how2>preference) is (?:for )?{_THING.replace('thing', 'thing2')}",
    # "Please use the new address" is about a single case.
    r"\bplease (?P<how3>use|stick to|keep to) (?!(?:the|this|these|those|my|our)\b)"
    + _THING.replace("thing", "thing3"),
    rf"\b(?:please )?always (?P<how4>use|stick to|keep to) {_THING.replace('thing', 'thing4')}",
)
_KEEPS: Final = any_of(
    r"\b(?P<how>keep) (?P<thing>(?:it(?! up\b| going| coming)|things(?! up\b)|(?:the|your|all|every)(?: [^\W\d_]{2,20}){1,2}|answers?|replies"
    r"|responses?|messages?|sentences) [^.,;!?\n]{3,40})",
    r"\b(?P<how2>write|answer|reply|respond) (?P<thing2>(?:in (?:the |an? )?(?=[^.,;!?\n]{0,20}(?:person|tone|style"
    r"|voice|tense|case|words|bullets|points|sentences))|(?:brief|short|inform|form|conci|casual)\w*)[^.,;!?\n]{0,40})",
    r"\bplease (?P<how4>(?:always )?(?:give|send|show) me) (?P<thing4>(?:(?:all|the|your) )?[a-z]+s (?:including|excluding|in|with|without) [^.,;!?\n]{2,30})",
    r"\b(?P<how5>(?:send|text|e-?mail|contact|reach|call|message|remind|notify|answer|reply|respond|write)(?: (?:me|us|to me))?) "
    r"(?P<thing5>(?!(?:it|this|that|these|them|the|your|my|an?)\b)(?:[^.,;!?\n]{1,30} )?(?:by|via|through|over|on) "
    r"(?:text(?: message)?s?|e-?mail|(?:the )?phone|SMS|WhatsApp|Signal|Telegram|Slack|Teams|post|letter|mail|chat|voice message)\b)",
    r"\b(?P<how6>(?:answer|reply|respond|write|explain|measure|count|calculate)(?: (?:me|to me|things|everything|it all))?) (?P<thing6>in (?!(?:the|an?|my|your|case|detail|advance|full|time|person|turn|general|return|addition)\b)(?-i:[a-z]{3,20}(?: [a-z]{3,20})?))(?=[.,;!]|\s*\Z|\s(?:please|and|but|because)\b)",
    r"\A\W*(?P<how7>no(?: more)?) (?P<thing7>[a-z][a-z -]{2,40}?),? please\b",
    r"\b(?P<how8>don['’]t (?:give|share|show|publish|post|forward|store|save|sell|touch|change|delete|remove|rewrite|shorten|translate|rename|edit|modify)) (?P<thing8>(?:my|our|the(?! subject\b)) [^.,;!?\n]{2,40})",
    r"\b(?P<how3>don['’]t (?:use|write|call(?! me (?-i:[A-Z]))|send|add|include|contact|quote|cite|mention|email|text)) "
    rf"(?P<thing3>(?!(?:it|this|that|them|anything|yet)\b){_DONE})",
)
_RATHER: Final = any_of(
    rf"\bI(?:['’]d| would) (?P<how>rather(?: not)?) (?P<thing>(?!(?:be|not|you|know|ask|see|die)\b){_DONE})",
    rf"\A\W*no,?(?: thanks?(?: you)?,?)? I(?:['’]d| would)? (?P<how2>like|want) (?P<thing2>{_DONE})",
    r"\bI(?:['’]d| would)? (?P<how3>like|want) (?P<thing3>(?!(?:to|you|it|this|that)\b)[^.,;!?\n]{2,40}), not\b",
)
_FAR_ARTICLE: Final = regex(
    r"\A(?:(?:der|die|das|den|ein|eine|einen|el|la|los|las|un|una|le|les|une|du|des)\s+|l['’])",
    re.IGNORECASE,
)
_FAR_DENIED: Final = regex(r"\A(?:(?:nicht|no|ne|pas|не|que)\b|n['’]|不)", re.IGNORECASE)
_FAR_NO: Final = regex(r"\A(?:keine?[nmrs]?) ", re.IGNORECASE)
_FAR_NOT: Final = regex(r" (?:gar |überhaupt )?nicht\Z", re.IGNORECASE)
_FAR_PAIR: Final = regex(
    r"(?!(?:per|ohne|mit|auf|als|über|via|nur|bei|von|für|aus) )[a-zäöüß]{3,20} [A-ZÄÖÜ][\w-]{2,30}"
)
_DIETS: Final = (
    r"(?P<diet>vegetarian|vegan|pescatarian|lactose intolerant|gluten[- ]free|celiac|halal|kosher)"
)
_STOPPED: Final = any_of(
    rf"\bI(?:['’]m| am) (?P<how>no longer (?:a |an )?{_DIETS})\b",
    rf"\bI(?:['’]m| am) (?P<how2>not (?:a |an )?{_DIETS.replace('diet', 'diet2')} any ?more)\b",
    r"\bI(?:['’]m| am) (?P<how3>no longer allergic) to (?P<free>[^.,;!?\n]{1,60})",
    r"\bI(?:['’]m| am) (?P<how4>not allergic) to (?P<free2>[^.,;!?\n]{1,60}?) any ?more\b",
    rf"\bI (?P<how5>no longer prefer {_THING})",
    rf"\bI (?P<how6>(?:don['’]t|do not) prefer {_THING.replace('thing', 'thing2')} any ?more)\b",
)
"""What no longer holds for the speaker; it replaces the earlier statement."""
_FEELS: Final = r"\bI (?:really |absolutely |also |usually |always )*"
_ATTITUDE: Final = (
    any_of(rf"{_FEELS}(?P<how>like|love|enjoy|adore) {_THING}"),
    any_of(
        rf"{_FEELS}(?P<how>(?:really |much )?(?:don['’]t (?:really )?(?:like|enjoy)|do not like|dislike|hate(?! to\b)"
        rf"|can['’]t stand|cannot stand|(?:can['’]t|cannot|don['’]t|do not) (?:eat|drink))) {_THING}"
    ),
)
_FAVORITE: Final = any_of(
    r"\bmy (?P<name>favou?rite (?:[^\W\d_]{2,20} ){1,2}?)(?:is|are|has always been) (?P<value>[^.,;!?\n]{1,50}?)"
    r"(?=[.,;!?]|\s(?:and|but|because|since)\b|\Z)",
    r"\bmeine? (?P<name2>Lieblings\w{2,20}) (?:ist|sind) (?P<value2>[^.,;!?\n]{1,50}?)(?=[.,;!?]| und | aber |\Z)",
    r"\bmi (?P<name3>\w{2,20} favorit[oa]) es (?P<value3>[^.,;!?\n]{1,50}?)(?=[.,;!?]| y | pero |\Z)",
    r"\bm(?:on|a) (?P<name4>\w{2,20} préférée?) est (?P<value4>[^.,;!?\n]{1,50}?)(?=[.,;!?]| et | mais |\Z)",
    r"\bмо(?:й|я|ё|е) (?P<name5>любим\w{2,3} \w{2,20}) ?[—–-] ?(?P<value5>[^.,;!?\n]{1,50})",
    r"我最喜欢的(?P<name6>[^，。是\n]{1,8})是(?P<value6>[^，。！\n]{1,20})",
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
    any_of(
        rf"\b(?P<how>never(?: ever)?|don['’]t ever|do not ever) (?P<thing>(?:{_TO_DO})\b{_DONE})"
    ),
    any_of(rf"\b(?P<how>always) (?P<thing>(?:{_TO_DO})\b{_DONE})"),
)
_HABITS: Final = any_of(
    rf"\bI (?P<how>never|always) (?P<thing>(?:{_HABIT})\b{_DONE})",
    rf"\bI (?P<how2>usually|normally|mostly|typically) (?P<thing2>(?:eat|drink|order|wear|cook|smoke)\b{_DONE})",
)
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
    r"sadly|unfortunately|luckily|though|however|too|by the way|"
    r"anything|none|then|vegan|vegetarian|pescatarian|lactose intolerant|asthmatic|diabetic)\b"
)
"""Words that end a list."""
LANGUAGE: Final = regex(
    r"\b(?:[Aa]nswer|[Rr]eply|[Rr]espond|[Ww]rite|[Ss]peak)(?: to)?(?: me)? in"
    r" (?P<language>[A-Z][a-z]+(?: [A-Z][a-z]+)?)\b"
)
_DIET: Final = any_of(
    rf"\bI(?:['’]m| am) (?:a |an )?{_DIETS}"
    r"(?=[.,;!?)]|\s*$|\s(?:and|but|so|because|since|now|too|for|who|by|these|this|as)\b)"
)
_AT_HAND: Final = regex(
    r"\A(?:your|how|that|having some|of|(?-i:the [a-z]))|\b(?:them|him|her|it|these|those|this)\b",
    re.IGNORECASE,
)
"""What is liked just now: the other speaker's words, or a thing that was shown."""
_WORDS: Final = regex(r"[a-z]+")
_CUES: Final = CUES | frozenset(
    [
        "i",
        "im",
        "we",
        "my",
        "please",
        "always",
        "never",
        "ever",
        "keep",
        "write",
        "answer",
        "reply",
        "respond",
        "speak",
        "don",
        "call",
        "name",
        "mi",
        "me",
        "allergic",
    ]
)
_BEFORE: Final = regex(
    r"(?:\A|[^\w\s]|\b(?:and|but|so|because|cause|since|that|though|although|know|think|say|said|well|yeah|yes|no|oh|while"
    r"|actually|usually|honestly|personally|then|however|plus|besides|also|ok|okay|now|hi|hey|hello))\s*\Z",
    re.IGNORECASE,
)
"""What a statement follows; after a noun, it only tells which: "the job I enjoy"."""
_FOR_NOW: Final = regex(r"\s(?:for|with|in|on) (?:this|that|it|me|you|now)\Z", re.IGNORECASE)
_THOSE: Final = regex(r"\A(?:those|these) (?=[a-z]+ [a-z]+s\Z)")
"""Before a kind of things: "those spray collars"."""
_FILLER: Final = regex(r"^(?:a |an |the |my |some |any |your |using |having |to )+", re.IGNORECASE)
_NO_THING_FAR: Final = regex(r"[的你您他她它这那什谁吗上]")


def group_text(match: re.Match[str] | None, name: str) -> str:
    """The text of the first matching group whose name starts with `name`."""
    if match is None:
        return ""
    found = (value for key, value in match.groupdict().items() if key.startswith(name) and value)
    return next(found, "").strip()


def preferences(sentence: str) -> Iterator[tuple[str, Json]]:
    """Attribute and value of everything that the speaker says about themselves.

    A value is always made of words of the sentence, in their order.
    """
    words = _WORDS.findall(sentence.casefold())
    if sentence.isascii() and _CUES.isdisjoint(words):
        return
    if speaker.is_foreign(sentence) or speaker.is_joke(sentence):
        return
    named = speaker.stated_name(sentence)
    if named:
        yield "name", named
    language = LANGUAGE.search(sentence)
    spoken = language and speaker.is_request_to_reader(sentence, language.start())
    if language and spoken:
        yield "language", language["language"]
    diet = _DIET.search(sentence)
    if diet and speaker.is_own_statement(sentence, diet.start()):
        yield "diet", diet["diet"]
    yield from ended_preferences(sentence)
    yield from _allergies(sentence)
    yield from _likes(sentence, spoken=bool(spoken)).items()


def _likes(sentence: str, *, spoken: bool) -> dict[str, Json]:
    """What the speaker prefers, likes and wishes, by its name; the plainest wording of each."""
    found = {**dict(_favorites(sentence)), **dict(preferred(sentence))}
    for name, value in () if spoken else (*_attitudes(sentence), *wishes(sentence)):
        if not any(name in other or other in f"{value} {name}" for other in found):
            found[name] = value
    for name, value in abroad(sentence):
        words = set(name.split())
        if not any(words >= set(other.split()) for other in found):
            found[name] = value
    return found


def _favorites(sentence: str) -> Iterator[tuple[str, Json]]:
    for match in _FAVORITE.finditer(sentence):
        value = _clean_thing(group_text(match, "value"))
        if value and speaker.is_own_statement(sentence, match.start()):
            yield group_text(match, "name"), value


def ended_preferences(sentence: str) -> Iterator[tuple[str, Json]]:
    """The preferences that no longer hold."""
    for match in _STOPPED.finditer(sentence):
        if not speaker.is_own_statement(sentence, match.start()):
            continue
        how, free = group_text(match, "how"), group_text(match, "free")
        thing = _clean_thing(group_text(match, "thing"))
        if group_text(match, "diet"):
            yield "diet", how
        for part in LIST_SPLIT.split(free.replace(" or ", " and ")) if free else ():
            yield _phrase(_clean_thing(part)), how
        if thing:
            yield _attribute(thing, how)[0], how


def _allergies(sentence: str) -> Iterator[tuple[str, Json]]:
    for match in _ALLERGIC.finditer(sentence):
        between = match["between"] or ""
        if not speaker.is_own_statement(sentence, match.start()) or speaker.is_denied(between):
            continue
        listed = _THINGS_END.split(match["things"], maxsplit=1)[0]
        for thing in LIST_SPLIT.split(listed.replace(" or ", " and ")):
            name = _clean_thing(thing)
            if not name or _OTHERWISE.search(thing):
                break
            if 0 < prose.count_words(name) <= _SPLIT_WORDS_MAX:
                yield _phrase(name), "allergic"


def preferred(sentence: str) -> Iterator[tuple[str, Json]]:
    """What the speaker prefers, and how they say it."""
    doing = _PREFERS_DOING.search(sentence)
    if doing:
        thing = _clean_thing(doing["doing"])
        if thing and speaker.is_own_statement(sentence, doing.start()):
            yield _phrase(thing), doing["how"]
        return
    for match in _PREFERS.finditer(sentence):
        thing, how = _clean_thing(group_text(match, "thing")), group_text(match, "how")
        if not thing or not speaker.is_own_statement(sentence, match.start()):
            continue
        if match["over"]:
            yield _phrase(thing), sentence[match.start("how") : match.end("over")].strip()
        else:
            yield _attribute(thing, how)
    yield from _asked(sentence)


def _asked(sentence: str) -> Iterator[tuple[str, Json]]:
    """What the speaker asks for in general: "keep it short", "I'd rather be called"."""
    for pattern in (_KEEPS, _RATHER):
        for match in pattern.finditer(sentence):
            asked = pattern is _RATHER or speaker.is_request_to_reader(sentence, match.start())
            if asked and speaker.is_own_statement(sentence, match.start()):
                yield _phrase(group_text(match, "thing")), group_text(match, "how")


def _attitudes(sentence: str) -> Iterator[tuple[str, Json]]:
    for pattern in _ATTITUDE:
        for match in pattern.finditer(sentence):
            thing = _clean_thing(_THOSE.sub("", match["thing"]))
            plain = thing and not _AT_HAND.search(thing) and _FILLER.sub("", f"{thing} ").strip()
            if (
                plain
                and _BEFORE.search(sentence[: match.start()])
                and speaker.is_own_statement(sentence, match.start())
            ):
                yield _phrase(thing), match["how"]


def wishes(sentence: str) -> Iterator[tuple[str, Json]]:
    """What must always or never be done, or what the speaker always or never does.

    "I never received it" is neither: it is an event.
    """
    for pattern in _WISHES:
        match = pattern.search(sentence)
        proverb = match and match["thing"].casefold().startswith("say never")
        if match and not proverb and speaker.is_request_to_reader(sentence, match.start()):
            yield _phrase(match["thing"]), match["how"]
    habit = _HABITS.search(sentence)
    if (
        habit
        and not _AT_HAND.search(group_text(habit, "thing"))
        and speaker.is_own_statement(sentence, habit.start())
    ):
        yield _phrase(group_text(habit, "thing")), group_text(habit, "how")


def abroad(sentence: str) -> Iterator[tuple[str, Json]]:
    """The same in other languages."""
    if sentence.isascii() and CUES.isdisjoint(_WORDS.findall(sentence.casefold())):
        return
    if speaker.is_unreal(sentence):
        return
    for pattern in PATTERNS:
        for match in pattern.finditer(sentence):
            if speaker.is_own_statement(sentence, match.start("how")):
                yield from _far_preference(sentence, match)


def _far_preference(sentence: str, match: re.Match[str]) -> Iterator[tuple[str, Json]]:
    groups = match.groupdict()
    how, thing = match["how"], match["thing"].strip(" \"'“”")
    if more := groups.get("more"):
        yield _phrase(f"{thing} {more}"), how
        return
    if _FAR_DENIED.match(thing) or _NO_THING_FAR.match(thing):
        return
    if groups.get("no"):
        yield _phrase(thing), sentence[match.start("how") : match.end("no")]
        return
    if _FAR_NOT.search(thing):
        denied = sentence[match.start("how") : match.start("thing") + len(match["thing"])]
        yield _phrase(_FAR_ARTICLE.sub("", _FAR_NOT.sub("", thing))), denied.strip()
    else:
        yield from _far_things(how, thing)


def _far_things(how: str, thing: str) -> Iterator[tuple[str, Json]]:
    """The things of a list, each with what is said of it."""
    parts = LIST_SPLIT.split(thing)
    if any(prose.count_words(part) > _PHRASE_WORDS_MAX or not part for part in parts):
        parts = [thing]
    for part in parts:
        denial = _FAR_NO.match(part)
        bare = _FAR_ARTICLE.sub("", _FAR_NO.sub("", part))
        if denial:
            no = denial[0].strip()
            yield _phrase(bare), f"{how} {no}" if part is parts[0] else no
        elif _FAR_PAIR.fullmatch(bare):
            value, name = bare.split()
            yield name.casefold(), value
        elif bare:
            yield _phrase(bare), how


def _clean_thing(words: str) -> str:
    """The thing without words of time and degree; empty if it refers to something unknown."""
    kept = words.strip(" \"'“”").split()
    while kept and kept[-1].casefold() in TIME_AND_DEGREE:
        kept.pop()
    while kept and kept[0].casefold() in TIME_AND_DEGREE:
        kept.pop(0)
    if not kept or kept[0].casefold() in NOT_A_THING or kept[-1].casefold() in POINTING_AWAY:
        return ""
    return "" if _NO_THING_FAR.match(kept[0]) else _FOR_NOW.sub("", " ".join(kept))


def _attribute(thing: str, how: str) -> tuple[str, Json]:
    """A preferred thing as attribute and value: "dark mode" is the mode "dark"."""
    words = _FILLER.sub("", thing).split()
    # In "a window seat on trains" the last word is not what is preferred.
    if BINDING_WORDS.intersection(words):
        return _phrase(thing), how
    # "Python 3.11" is one thing.
    whole = words[:1] and (words[0].endswith("ing") or any(map(str.isdigit, words[-1])))
    if len(words) == _NOUN_PAIR and words[0].islower() and all(map(str.isalpha, words)):
        return " ".join(words[1:]).lower(), words[0]
    if 1 < len(words) <= _SPLIT_WORDS_MAX and words[0].isascii() and not whole:
        return words[-1].lower(), " ".join(words[:-1])
    return _phrase(thing), how


def _phrase(thing: str) -> str:
    """A thing as the name of an attribute: a few words without articles."""
    words = _FILLER.sub("", thing.strip(" \"'“”")).split()[:_PHRASE_WORDS_MAX]
    return " ".join(words) or thing.strip()
