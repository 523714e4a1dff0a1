"""What a sentence decides, in its own words. Pure."""

# ruff: noqa: RUF001, E501 - other scripts are meant, and patterns stay on one line

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from firnline.language.statements import patterns as slots
from firnline.language.statements import speaker
from firnline.language.statements.decision_patterns import HINTS
from firnline.log.regex import regex

_VALUE: Final = r"(?P<value>[^.;!?\n—–。！？；]{2,90}?)"
_END: Final = (
    r"(?=[.;!?\n—–。！？；]|,? (?:but|because|since|so|aber|weil|pero|porque|mais|car|но|потому)\b"
    r"|, (?:she|he|it|they|we|I|and|which|ich|wir|er|sie|es|nous|je|on|я|мы|он|она|y yo|el|la)\b|，|\s*\Z)"
)
_REST: Final = _VALUE + _END
_BEGIN: Final = (
    r"\A\W*(?:(?:k|ok|okay|alright|fine|great|good|cool|yes|perfect|agreed|well|so)\W+)?"
)
_DECIDED: Final = tuple(
    regex(pattern, re.IGNORECASE)
    for pattern in (
        (
            r"\b(?:we|I)(?:['’]ve| have)?(?: all| both| finally| already| just| now)* (?:decided|agreed|opted|chosen|chose|settled|picked|voted)\b"
            rf"(?! (?:them|it|this|that|these|up|you|him|her)\b)(?: (?:on|for|upon|that we(?:['’]ll| will)?|that|to go with))? {_REST}"
        ),
        rf"(?:\b(?:we|I)(?:['’]re|['’]m| are| am) (?:now )?|{_BEGIN})going with {_REST}",
        rf"{_BEGIN}let(?:['’]s| us) go (?:with|for) {_REST}",
        rf"{_BEGIN}(?P<value>(?-i:[A-ZÀ-Þ])[\w'’-]{{2,20}}(?: [\w'’-]{{2,20}}){{0,2}}) (?:then|it is(?: then)?)\W*\Z",
        rf"\b(?:the |our |final )decision (?:is|was)(?: to)? (?!(?:still|not|yet|open|pending|up|yours|hard)\b){_REST}",
        r"\bwir haben (?:uns )?(?:\w{1,30} )?(?:für )?(?P<value>[^.;!?\n]{2,60}?) (?:entschieden|geeinigt|festgelegt)\b",
        rf"\b(?:wir haben|ich habe|haben wir|habe ich)(?: \w{{1,30}})? (?:beschlossen|entschieden),? {_REST}",
        rf"\b(?:wir nehmen|nehmen wir|wir bleiben bei|bleiben wir bei) {_REST}",
        rf"\b(?:hemos decidido|decidimos|he decidido|hemos acordado|acordamos|nos quedamos con|me quedo con|descartamos|apostamos por|optamos por|hemos elegido|elegimos) {_REST}",
        rf"\b(?:(?:nous avons|on a|j['’]ai) (?:finalement )?(?:décidé|choisi|opté)(?: pour| de| d['’])?|on garde|nous gardons|nous optons pour|on part sur) ?{_REST}",
        rf"\b(?:(?:мы|я) (?:\w{{1,30}} )?(?:решил[аи]?|выбрал[аи]?|договорились)|решено|(?:мы )?остановились на|берём|берем) {_REST}",
        rf"(?:我们?(?:最后|已经|还是)?(?:决定|选择|选定|选)了?|(?<!没)决定了?|那就用|就用|就选|就给|就买|就订|就这么定){_REST}",
    )
)
_VAGUE: Final = regex(
    r"\b(?:this|these|those|them|him|her|here|there|it)\b|"
    r"\A(?:it|this|that|them|these|those|one|both|the same|something|anything|you|your|das|es|eso|esto|ça|cela|это|то|this one|that one|the (?:first|second|third|last) one)\b\W*\Z"
    r"|\b(?:paragraph|sentence|section|chapter|intro(?:duction)?|draft|essay|headline|wording)\b",
    re.IGNORECASE,
)
_GREETS: Final = frozenset(
    (
        *("here", "there", "look", "how", "this", "that", "such", "nice", "good", "great", "it"),
        "well",
        "now",
        "back",
        "later",
        "since",
        "until",
        "and",
        "just",
        "what",
        "why",
        "so",
        "yes",
        "no",
        "see",
    )
)


def decided(sentence: str) -> Iterator[tuple[str, str, str]]:
    """Slot, value and nothing that ends, of a decision of the speaker's."""
    folded = sentence.casefold()
    if not any(hint in folded for hint in HINTS) and " then" not in folded:
        return
    for pattern in _DECIDED:
        for match in pattern.finditer(sentence):
            value = match["value"].strip(" \"'“”.,，")
            first = value.split(" ", 1)[0].casefold()
            plain = value and not _VAGUE.search(value) and first not in _GREETS
            if plain and speaker.is_own_statement(sentence, match.start()):
                yield slots.DECISION, value, ""
                return
