"""Preferences as statements: which slot an attitude is, and the words that are its value."""

# ruff: noqa: RUF001, E501 - other scripts are meant, and patterns stay on one line

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from firnline.language.statements import patterns as slots
from firnline.language.statements import speaker
from firnline.language.statements.preferences import (
    LANGUAGE,
    abroad,
    ended_preferences,
    preferred,
    wishes,
)
from firnline.log.regex import regex

_HATES: Final = regex(
    r"\b(?:hate|dislike|don['’]t|do not|can['’]t|cannot|hass\w*|verabscheue|mag(?: \w{1,30})* nicht|mag(?: \w{1,30})* kein\w*|mögen kein\w*|no (?:me|nos)|odi\w{1,30}|detest\w*|no soporto"
    r"|déteste\w*|n['’]aim\w{1,30} pas|ne supporte|hais|не люб\w{1,30}|не нрав\w{1,30}|ненавижу|не переношу|терпеть)\b|讨厌|不喜欢|不爱|受不了|不想要",
    re.IGNORECASE,
)
_CONSUMES_NOT: Final = regex(
    r"\b(?:(?:esse|trinke|rauche) (?:nie|niemals|kein\w*)|no (?:como|bebo|tomo|fumo)|ne (?:bois|mange|fume)|не (?:ем|пью|курю))\b|不(?:吃|喝|抽)",
    re.IGNORECASE,
)
_PREFERS_HOW: Final = regex(
    r"\b(?:prefer\w*|preference|bevorzug\w*|prefier\w*|preferimos|préfèr\w*|préférons|предпочита\w{1,30})\b|偏好|偏爱|更喜欢",
    re.IGNORECASE,
)
_LIKES_HOW: Final = regex(
    r"\b(?:mag|mögen|lieben?|genieße|me gustan?|me encantan?|nos gustan?|nos encantan?|adoro|adore|aime|aimons|adorons|люб\w{1,30}|обожаю|нрав\w{1,30})\b"
    r"|喜欢|热爱",
    re.IGNORECASE,
)
_ALLERGIC_HOW: Final = regex(r"allerg|alérg|alergia|аллерги|过敏", re.IGNORECASE)
_PREFER_WORD: Final = regex(
    r"\A(?:(?:really |much |also )?prefer(?: to| not to)?|preference is(?: for)?|is for|rather|bevorzugen?|prefiero|preferimos|préfère|préférons"
    r"|предпочита\w{1,30}|更?喜欢|偏好|偏爱)\s*",
    re.IGNORECASE,
)
_FOR_THIS: Final = regex(
    r"\b(?:this|that|these|those|above|below|here|instead|again|it|them|now|today|tomorrow|yet|diese[rsnm]?|das|hier|esto|esta|este|cela|ce|cette"
    r"|это|эт\w{1,30}|здесь)\b|这|那",
    re.IGNORECASE,
)
"""Words of a wish that is about the task at hand."""


def stated_preferences(sentence: str) -> Iterator[tuple[str, str, str]]:
    """Slot, value and what ends, of the preferences that `slots` has no rules for."""
    language = LANGUAGE.search(sentence)
    if language and speaker.is_request_to_reader(sentence, language.start()):
        yield slots.LANGUAGE, language["language"], ""
        return
    for name, _ in ended_preferences(sentence):
        if name != "diet":
            yield slots.ENDED, "", str(name)
    for name, how in {**dict(preferred(sentence)), **dict(wishes(sentence))}.items():
        yield from _as_statement(sentence, name, str(how))
    for name, how in abroad(sentence):
        yield from _as_statement(sentence, name, str(how))


def _as_statement(sentence: str, name: str, how: str) -> Iterator[tuple[str, str, str]]:
    """A preference of a thing as a slot and a value in the words of the sentence."""
    slot = _slot_of(how)
    if slot in (slots.ALLERGY, slots.AVOIDS):
        return  # `slots` has rules for them
    whole = _together(sentence, name, how)
    value = _PREFER_WORD.sub("", whole) if slot == slots.PREFERS else whole
    if slot in (slots.LIKES, slots.DISLIKES):
        value = name
    if slot == slots.PREFERS and not _PREFERS_HOW.search(how):
        value = whole  # "dark mode", of which the name is "mode"
    momentary = how.casefold().startswith(
        (
            "rather",
            "like",
            "want",
            "möchte",
            "will",
            "quiero",
            "quisiera",
            "veux",
            "voudrais",
            "хочу",
            "хотел",
            "想",
            "要",
            "希望",
        )
    )
    if value and not (slot == slots.WISHES and (momentary or _FOR_THIS.search(whole))):
        yield slot, value, ""


def _slot_of(how: str) -> str:
    """What an attitude is: a like, a wish, an allergy."""
    if _TOLD.match(how):
        return slots.WISHES
    kinds = (
        (_ALLERGIC_HOW, slots.ALLERGY),
        (_CONSUMES_NOT, slots.AVOIDS),
        (_HATES, slots.DISLIKES),
        (_PREFERS_HOW, slots.PREFERS),
        (_LIKES_HOW, slots.LIKES),
    )
    found = next((slot for pattern, slot in kinds if pattern.search(how)), "")
    return found or (slots.WISHES if _IS_WISH.match(how) else slots.PREFERS)


_TOLD: Final = regex(
    r"(?:don['’]t|do not) (?!(?:really |much )?(?:like|enjoy|love|eat|drink|want|prefer)\b)|no (?!(?:me|nos) (?:gust|encant)|soporto|como|bebo|tomo|fumo)"
    r"|n(?:e |['’])(?!aim|support|bois|mange|fume)",
    re.IGNORECASE,
)
"""What others are told not to do."""
_IS_WISH: Final = regex(
    r"(?:use|stick to|keep\b|write|answer|reply|respond|don['’]t|do not|never|always|rather|like|want|stop|nie|immer|nur|niemals|keinesfalls|ohne|möchte|will"
    r"|verwend|benutz|nutz|antwort|duz|siez|schreib|no |quiero|quisiera|escrib|usa|respond|trata|llama|pon|manda|envía|añade|nunca|siempre"
    r"|n(?:e |['’])|veux|voudrais|écri|utilis|répond|appel|met|envo|toujours|не |никогда|всегда|только|пиши|используй|отвечай|хо[чт]"
    r"|不要|别|始终|总是|永远|一直|只|一律|尽量|千万别|想|要|希望)",
    re.IGNORECASE,
)


def _together(sentence: str, name: str, how: str) -> str:
    """The words of the sentence from the first to the last of both."""
    folded = sentence.casefold()
    places = [
        (at, at + len(part))
        for part in (name.casefold(), how.casefold())
        if (at := folded.find(part)) >= 0
    ]
    if not places:
        return ""
    return sentence[min(start for start, _ in places) : max(end for _, end in places)].strip()
