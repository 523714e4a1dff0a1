"""Whether a sentence is its speaker's own statement, and the speaker's name.

A statement is the speaker's own unless something before it supposes, denies, reports or quotes it;
in doubt it is not.
"""

# ruff: noqa: RUF001 - other scripts and their marks are meant

from __future__ import annotations

import re
from typing import Final

from firnline.language.lexicon import BEFORE_REQUESTS, MONTHS, NOT_A_NAME, WEEKDAYS
from firnline.language.prose import CJK
from firnline.log import limits
from firnline.log.regex import regex

# -- own statements ---------------------------------------------------------------------------

_SAYS: Final = (
    r"say|says|said|saying|tell|tells|told|telling|ask|asks|asked|claim|claims|claimed|think|thinks"
    r"|believe|believes|writes|wrote|reads|hears|heard|insists|insisted|joked|jokes"
    r"|shouts|shouted|calls|called|translate|rewrite|proofread|repeat|sagt|sagte|meint|meinte"
    r"|behauptet|behauptete|dice|dijo|dit|disait|говорит|сказал|сказала|думает"
)
_REPORTED: Final = regex(
    r"(?<!\bI )(?<!\bI've )(?<!\bI just )(?<!\bI already )(?<!\bI must )(?<!\bwe )"
    rf"\b(?:{_SAYS})\b|\b(?:thought|believed)\b|说|以为",
    re.IGNORECASE,
)
_DRAFTED: Final = regex(r"\b(?:write|draft|compose|reply|answer)\b", re.IGNORECASE)
"""Reports what follows if a colon comes after it."""
_SAID_BY: Final = regex(
    r"[,\"”»]\s*(?:[\w ]{1,30} (?:says|said|wrote|claims)|(?:says|said|wrote) [\w ]{1,30})[.!]?$",
    re.IGNORECASE,
)
_SUPPOSED: Final = regex(
    r"\b(?:if|unless|whether|suppos\w+|imagin\w+|pretend\w*|assum\w+|in case|wish|maybe|perhaps"
    r"|doubt|wenn|falls|ob|angenommen|vielleicht|si|supongamos|imagina|imaginons|если|допустим"
    r"|представь)\b|如果|假如|要是|假设|也许",
    re.IGNORECASE,
)
_DENIED: Final = regex(
    r"\b(?:not|never|cannot|no longer|hardly|nor|neither|nobody|nichts?|nie|niemals|kein\w*|nunca"
    r"|jamais|не|никогда)\b|n['’]t\b|\bno\s*$|不是|从不|[没未]\Z|没有",
    re.IGNORECASE,
)
_CLAUSES: Final = regex(
    r"[,;:.!?()–—]|\s-\s|\b(?:and|but|although|though|und|aber|pero|mais|но)\b", re.IGNORECASE
)
_PAUSES: Final = regex(r"[,;:.!?()–—]|\s-\s|\bplease\b", re.IGNORECASE)
_ASKS: Final = regex(
    r"\W*(?:is|are|am|was|were|do|does|did|what|who|whose|why|how|which|whether|wie|warum|wer|cómo"
    r"|comment|как)\b",
    re.IGNORECASE,
)
_IMAGINED: Final = regex(
    r"\W*(?:what if|imagine|suppose|pretend|let['’]s (?:say|assume|pretend)|assum(?:e|ing)"
    r"|I dream(?:ed|t)|if (?:I|we|he|she|it|they) (?:had|were|could)"
    r"|stell dir vor|angenommen|imagina|imaginons)\b",
    re.IGNORECASE,
)
_REQUEST: Final = regex(
    r"\W*(?:(?:hi|hey|hello|ok|okay|so|and|please|also)\b\W*){0,3}(?:(?:can|could|would|will|should"
    r"|shall|may|is|are|was|were|does|did)\s+(?:I|you|we|he|she|it|they|there|the|this|that|my|your|our|his"
    r"|her|their|any\w*|some\w*)|(?:do|have)\s+(?:I|you|we|they))\b",
    re.IGNORECASE,
)
_MOST: Final = limits.SENTENCE_CHARS_MAX
_QUOTED: Final = regex(
    rf"\"[^\"\n]{{0,{_MOST}}}\"|[“„][^“”\n]{{0,{_MOST}}}[“”]|«[^»\n]{{0,{_MOST}}}»"
    rf"|「[^」\n]{{0,{_MOST}}}」|(?<!\w)['‘][^\n]{{1,{_MOST}}}?['’](?!\w)"
)
_BIDDING: Final = regex(
    r"\s*(?:be|keep|use|write|answer|reply|speak|make|give|show|stop)\b.*\b(?:and|but)\b",
    re.IGNORECASE,
)
_URGES: Final = frozenset({"should", "must"})
_CALLS: Final = frozenset({"free", "sure", "remember", "try"})
_OFFERS: Final = frozenset({"should", "must", "can", "could", "may", "to"})


def is_foreign(sentence: str) -> bool:
    """Whether the sentence states nothing itself: it asks, or quotes."""
    return sentence.startswith(">") or bool(_ASKS.match(sentence) or _SAID_BY.search(sentence))


def is_imagined(sentence: str) -> bool:
    """Whether the sentence starts as a supposition."""
    return bool(_IMAGINED.match(sentence))


def is_request(sentence: str) -> bool:
    """Whether the sentence asks, with or without a question mark, or quotes a line."""
    return sentence.startswith(">") or bool(_REQUEST.match(sentence))


def is_own_statement(sentence: str, start: int) -> bool:
    """Whether the words from `start` are a statement of the speaker."""
    before = sentence[:start]
    if _SUPPOSED.search(before) or _is_reported(before):
        return False
    if is_denied(_CLAUSES.split(before)[-1]):
        return False
    return not any(match.start() <= start < match.end() for match in _QUOTED.finditer(sentence))


def _is_reported(before: str) -> bool:
    """Whether the words introduce what another person says, or a text to write."""
    drafted = _DRAFTED.search(before)
    return bool(_REPORTED.search(before)) or (
        drafted is not None and ":" in before[drafted.end() :]
    )


def is_denied(words: str) -> bool:
    """Whether the words deny something."""
    return bool(_DENIED.search(words))


def is_request_to_reader(sentence: str, start: int) -> bool:
    """Whether the words from `start` are a request: "answer in French", not "they answer …"."""
    if not is_own_statement(sentence, start):
        return False
    clause = _PAUSES.split(sentence[:start])[-1]
    bidding = _BIDDING.match(clause)
    words = set(clause[bidding.end() if bidding else 0 :].casefold().split())
    if not words <= BEFORE_REQUESTS:
        return False
    if words & {"i", "i'd", "i’d"}:
        return {"you", "to"} <= words
    if "we" in words:
        return bool(words & _URGES)
    if "you" in words:
        return bool(words & _OFFERS)
    return "to" not in words or bool(words & _CALLS)


# -- names ------------------------------------------------------------------------------------

_NAME: Final = r"(?:(?:Dr|Mr|Mrs|Ms|Prof)\.? )?[^\W\d_][\w'’-]*(?: (?-i:[A-ZÀ-ÞА-Я])[\w'’-]*){0,2}"
_SURNAMES: Final = (
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林罗郑梁谢宋唐许韩冯邓曹彭曾肖田董袁潘于蒋蔡余杜叶程苏魏吕丁任"
    "沈姚卢姜崔钟谭陆汪范金石廖贾夏韦方白邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严武戴莫孔向汤安"
)
_CALLED: Final = regex(
    rf"\bmy name(?:['’]s| is) (?P<name>{_NAME})"
    rf"|\b(?P<call>call me) (?P<name2>{_NAME})"
    r"|\b(?:ich heiße|me llamo|je m['’]appelle|меня зовут) (?P<name3>[^\W\d_][\w-]*)"
    rf"|我叫(?P<name4>[{_SURNAMES}][{CJK}]{{1,2}}|[小阿][{CJK}]|[{CJK}]{{2,6}}·[{CJK}]{{2,8}})(?![\w·])",
    re.IGNORECASE,
)
_NO_NAMES_FAR: Final = regex(r"[了来去的过吗着]|(?:医生|老师|师傅|经理|先生|女士|外卖)$")
_NO_NAME_BEFORE: Final = regex(
    r"\s+(?:is|was|in (?:the|this|that|my|a)|on)\b|[^.,;!?\n]*\b(?:willkommen|gut|nicht)\b",
    re.IGNORECASE,
)
"""What follows a title, a role or a greeting, but not a name."""


def stated_name(sentence: str) -> str:
    """The name that the speaker states; empty if the sentence does not clearly state one."""
    for match in _CALLED.finditer(sentence):
        whose = is_request_to_reader if match["call"] else is_own_statement
        name = next(name for name in match.group("name", "name2", "name3", "name4") if name)
        if _is_name(name, match) and whose(sentence, match.start()):
            return name.rstrip("'’-")
    return ""


def _is_name(name: str, match: re.Match[str]) -> bool:
    """Whether it is spelled like a name, and not like an adverb or an adjective."""
    if match["name4"]:
        return not _NO_NAMES_FAR.search(name)
    first = name.split(maxsplit=1)[0].casefold()
    dated = bool(match["call"]) and (first in WEEKDAYS or first in MONTHS)
    # In text of capitals only, the spelling shows nothing.
    shouted = match[0].isupper()
    if dated or shouted or not name[0].isupper() or first in NOT_A_NAME:
        return False
    return not _NO_NAME_BEFORE.match(match.string, match.end())
