"""Whether a sentence is its speaker's own statement, and the speaker's name.

A statement is the speaker's own unless something before it supposes, denies, reports or quotes it;
in doubt it is not.
"""

# ruff: noqa: RUF001, E501 - other scripts are meant, and patterns stay on one line

from __future__ import annotations

import re
from typing import Final

from firnline.language.lexicon import BEFORE_REQUESTS, COMMON, MONTHS, NOT_A_NAME, WEEKDAYS
from firnline.language.names import is_everyday_word
from firnline.language.prose import CJK
from firnline.log import limits
from firnline.log.regex import regex

# -- own statements ---------------------------------------------------------------------------

_SAYS: Final = (
    r"say|says|said|saying|tell|tells|told|telling|ask|asks|asked|claim|claims|claimed|think|thinks"
    r"|believe|believes|writes|wrote|reads|hears|heard|insists|insisted|joked|jokes"
    r"|shouts|shouted|called(?= (?:me|him|her|us|them|it))|translate|rewrite|proofread|repeat|sagt|sagte|meint|meinte"
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
    r"\W*(?:is|are|am(?= I\b)|was|were|do|does|did|what|who|whose|why|how|which|whether|wie|warum|wer|cómo"
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
_CONDITION: Final = regex(
    r"\W*(?:(?:and|but|so|und|aber|y|pero|et|mais|а|но|и)\s+)?(?:(?:if(?! you\b)|unless|in case|wenn|falls"
    r"|sofern|si(?!,)|s['’]ils?|если)\b|如果|假如|要是|假设|若)",
    re.IGNORECASE,
)
_HEDGED: Final = regex(
    r"\b(?:maybe|perhaps|probably|possibly|might|could(?!n['’]t| not)|would(?! (?:like|prefer|rather|love))"
    r"|(?-i:may) (?!be reached)[a-z]|I['’]m not sure|I (?:guess|think|believe)|ich (?:glaube|denke)|creo que|je (?:crois|pense) que|мне кажется|я думаю|was thinking|thinking (?:of|about)|considering|vielleicht|möglicherweise|wahrscheinlich|eventuell"
    r"|würden?|könnten?|wäre[nt]?|hätten?|quizás?|tal vez|a lo mejor|probablemente|podr[ií]a\w*|ser[ií]a"
    r"|peut-être|probablement|(?:pour|dev|se|au|voud|fe|faud|ajoute)rai[st]|может быть|возможно"
    r"|наверно\w*|вероятно|бы)\b|我觉得|我猜|也许|可能|或许|大概|说不定",
    re.IGNORECASE,
)
_SAID_BY_OTHERS: Final = regex(
    r"(?<!\bI )(?<!\bwe )(?<!\bich )(?<!\bje )\b(?:says?|said|saying|swears?|schwört|jura|thinks?|thought|believes?|claims?|claimed"
    r"|reckons?|insists?|(?:told|tells?) (?:me|us|her|him|them)(?! to\b)|wonders?|sagte?|meinte?|findet"
    r"|glaubt|behauptet|denkt|dice[ns]?|dijo|piensan?|cree[ns]?|opinan?|dit|disent|pense(?:nt)?"
    r"|croit|trouve que|affirme|говор[ия]т|сказала?|думает|считает|полагает)\b"
    r"|(?<![我们])(?:说(?!好|不定)|觉得|认为|以为)",
    re.IGNORECASE,
)
_PASTED: Final = regex(
    r":\s*\Z|\b(?:below|(?:the )?following|(?:this|the|an?) (?:e-?mail|text|message|letter|paragraph|article|review|sentence|note"
    r"|transcript|story|poem)|folgenden?|unten|siguientes?|suivante?s?|следующ\w+|ниже)\b|以下|下面",
    re.IGNORECASE,
)
_JOKES: Final = regex(
    r"\b(?:ha(?:ha)+|lol|lmao|rofl|just kidding|kidding|jk|yeah,? right|as if|oh (?:great|joy|wonderful|fantastic)"
    r"|I just love|sure, because|nicht ernst|war ein Scherz|es broma|je plaisante|шучу|шутка)\b|😂|🤣|开玩笑|哈哈",
    re.IGNORECASE,
)
_COMMENT: Final = regex(
    r"\W*(?:(?:wow|whoa|oh|yeah|aw+|ha|haha|ok|okay|so|and)\b\W*){0,2}(?:thanks|thank you|thx|glad|congrat\w*|sorry"
    r"|(?:great|nice|good|happy|lovely|cool) (?:to|for|job|work|idea|point|news|question)|love (?:that|the|your)"
    r"|so (?:happy|glad|proud|sweet)|(?:that|this|it)(?:['’]s| is| was| sounds?| looks?| must)(?: \w+){0,2} (?:great"
    r"|good|nice|sweet|awesome|amazing|lovely|wonderful|cool|fun|tough|hard|sad|funny|true|right|fine|beautiful"
    r"|gorgeous|interesting)|sounds\b|looks (?:like|great|good)|here(?:['’]s| is| are)\b|long time no|what an?\b|how \w+!"
    r"|I(?:['’]m| am) (?:so |really )?(?:glad|happy|proud|sorry|stoked|here) (?:for|to hear|that|you|to see|about)"
    r"|danke|vielen dank|schön|gracias|qué (?:bien|bueno)|merci|спасибо|здорово|谢谢|太好了|好的)",
    re.IGNORECASE,
)
_TO_YOU: Final = regex(r"\byou(?:['’](?:re|ve|ll|d)|r|rs)?\b", re.IGNORECASE)
_OF_ME: Final = regex(r"\b(?:I|we|me|us|my|our|mine|ours)\b")
_VOCATIVE_BEFORE: Final = regex(
    r"\A\W*(?:(?:hey|hi|hello|dear|wow|whoa|thanks|thank you|yeah|yes|no|ok|okay|oh|so|sorry|well|good morning|great"
    r"|sure|hallo|hola|salut|bonjour|привет)\b[ ,!.]*){0,3}\Z",
    re.IGNORECASE,
)
_APPOSITION: Final = regex(
    r"\b(?:my|our|his|her|their|the|an?)\s+(?:\w+\s+){0,2}\w+, \Z", re.IGNORECASE
)
_SCENE: Final = regex(
    r"\W*(?:suppose|imagine|pretend|let['’]s (?:say|assume|pretend|imagine)|assum(?:e|ing)|hypothetically|angenommen|nehmen wir an"
    r"|stell(?:en Sie sich| dir) vor|imagina|imaginemos|supon\w*|imagine[zr]?|imaginons|supposons|представь|допустим|предположим)\b"
    r"|假设|假如",
    re.IGNORECASE,
)
"""The start of a supposition that goes on after its sentence."""
_ANSWERS: Final = regex(
    r"\W*(?:yes|yeah|yep|no|nope|sure|ok|okay|exactly|right|correct|both|neither|only|about|around|maybe|ja|nein|genau|sí|claro|oui|non"
    r"|да|нет|конечно)\b|[是不好对没]",
    re.IGNORECASE,
)
_BACK: Final = regex(
    r"(?:but|anyway|actually|in reality|in fact|now|so|well|ok|aber|eigentlich|pero|en realidad|mais|en fait|но|на самом деле)\b"
    r"|但|其实",
    re.IGNORECASE,
)
"""Ends a supposition."""
_POINTS_BACK: Final = regex(
    r"(?:it|that|this|these|those|they|he|she|so|then|both|neither|das(?!\s(?-i:[A-ZÄÖÜ]))|dies|diese[rsmn]?|er|sie|es|eso|esto|él|ella|ça|cela"
    r"|elle|il|это|он|она|они)\b|[这那他她它]",
    re.IGNORECASE,
)
"""The start of a sentence that says little without the one before."""
_ORDER: Final = regex(
    r"\W*(?:(?:ok|okay|hi|hey|hello|please|kindly|now|then|also|and|so|great|thanks|thank you)\b\W*){0,3}"
    r"(?:(?:write|draft|translate|summari[sz]e|make|give|show|tell|explain|find|create|add|remove|change|check"
    r"|help|compare|send|fix|update|use|put|move|rewrite|look|search|convert|calculate|describe"
    r"|suggest|recommend|generate|edit|shorten|proofread|keep|let me|read|unblock|cancel"
    r"|(?:book|order|list|call|email|schedule|review|plan|turn|cut|set|run|try) (?:a|an|the|me|my|our|it|this"
    r"|that|these|them|all|up|down|off))\b(?!['’:])|schreibe?\b|erkläre?\b|zeig|mach\b|gib\b|erstelle?\b|nenne?\b"
    r"|escrib[ea]\b|explica|dame\b|hazme|traduce|resume\b|écri[sv]|expliqu|donne|fais\b|montre|traduis|résume"
    r"|напиши|объясни|покажи|сделай|дай\b|переведи|帮我|给我|请)|.*\b(?:bitte|por favor|s['’]il (?:te|vous) plaît"
    r"|пожалуйста)\b",
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


def is_order(sentence: str) -> bool:
    """Whether the sentence tells the reader to do something."""
    return bool(_ORDER.match(sentence))


def is_comment(sentence: str) -> bool:
    """Whether the sentence only reacts to the other speaker, or speaks of them."""
    if _COMMENT.match(sentence):
        return True
    return bool(_TO_YOU.search(sentence)) and not _OF_ME.search(sentence)


def is_vocative(sentence: str, start: int, end: int) -> bool:
    """Whether the name there addresses the other speaker: "Thanks, Ana"."""
    if sentence[end : end + 1] not in ("", ",", "!", ".", "?", ";"):
        return False
    before = sentence[:start]
    if _VOCATIVE_BEFORE.match(before):
        return True
    last = not sentence[end:].strip(" .!?,)")
    return last and before.endswith(", ") and not _APPOSITION.search(before)


def starts_scene(sentence: str) -> bool:
    """Whether the sentence starts a supposition that may go on after it."""
    return bool(_SCENE.match(sentence))


def ends_scene(sentence: str) -> bool:
    """Whether the sentence goes back from a supposition to what is."""
    return bool(_BACK.match(sentence))


def is_reply(sentence: str) -> bool:
    """Whether the sentence starts as an answer: "Yes, both"."""
    return bool(_ANSWERS.match(sentence))


def points_back(sentence: str) -> bool:
    """Whether the sentence starts with a word that refers to the one before."""
    return bool(_POINTS_BACK.match(sentence))


def introduces_text(sentence: str) -> bool:
    """Whether what follows the sentence is a text to work on, not the speaker's own words."""
    asked = is_order(sentence) or is_request(sentence) or sentence.rstrip().endswith(("?", "？"))
    return asked and bool(_PASTED.search(sentence))


def is_conditional(sentence: str) -> bool:
    """Whether the sentence starts with a condition."""
    return bool(_CONDITION.match(sentence))


def is_hedged(sentence: str) -> bool:
    """Whether the sentence says that something may or would be so."""
    return bool(_HEDGED.search(sentence))


def is_unreal(sentence: str) -> bool:
    """Whether what the sentence says is supposed, possible or a joke."""
    return is_conditional(sentence) or is_hedged(sentence) or is_joke(sentence)


def is_joke(sentence: str) -> bool:
    """Whether the sentence is marked as a joke, or as sarcasm."""
    return bool(_JOKES.search(sentence))


def is_said_by_others(sentence: str) -> bool:
    """Whether the sentence reports what another person says or thinks."""
    return bool(_SAID_BY_OTHERS.search(sentence))


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
_FULL_NAME: Final = r"(?-i:[A-ZÀ-ÞА-Я])[\w'’-]{1,20} (?-i:[A-ZÀ-ÞА-Я])[\w'’-]{1,20}(?: (?-i:[A-ZÀ-ÞА-Я])[\w'’-]{1,20})?"
SURNAMES: Final = (
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林罗郑梁谢宋唐许韩冯邓曹彭曾肖田董袁潘于蒋蔡余杜叶程苏魏吕丁任"
    "沈姚卢姜崔钟谭陆汪范金石廖贾夏韦方白邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严武戴莫孔向汤安"
)
_CALLED: Final = regex(
    rf"\b(?:my name(?:['’]s| is)|I['’]m called|I am called|I go by) (?P<name>{_NAME})"
    rf"|\b(?P<call>call me) (?P<name2>{_NAME})"
    r"|\b(?:ich heiße|mein Name ist|me llamo|mi nombre es|je m['’]appelle|mon nom est|меня зовут|моё имя)"
    rf" (?P<name3>{_NAME})"
    rf"|\b(?:I['’]m|I am|ich bin|yo soy|soy|je suis|я) (?P<name5>{_FULL_NAME})(?=[,.;!]|\s*\Z| (?:and|from|und|y|et|и)\b)"
    rf"|\A\W*(?:(?:hi|hello|hey|good (?:morning|evening|afternoon)|hallo|hola|buenas(?: tardes| noches)?|buenos días|bonjour|salut|bonsoir|guten (?:tag|abend|morgen)|moin|servus)\b[^.!?\n]{{0,10}}[,.!]?\s)(?:I['’]m|I am|this is|ich bin|soy|je suis) (?P<name6>(?-i:[A-ZÀ-ÞА-Я])[\w'’-]{{1,20}}(?: (?-i:[A-ZÀ-ÞА-Я])[\w'’-]{{1,20}})?)(?=[,.;!]|\s*\Z| (?:and|from|und|aus|y|de|et|here)\b)"
    rf"|\A\W*(?:(?:hi|hello|hey|quick intro|intro)\b[^.!?\n]{{0,12}}?[,.!:]?\s)?(?P<name7>(?-i:[A-ZÀ-Þ])[a-zà-þ]{{1,20}}) here(?=[,.;!]|\s*\Z| from\b)"
    rf"|我叫(?P<name4>[{SURNAMES}][{CJK}]{{1,2}}|[小阿][{CJK}]|[{CJK}]{{2,6}}·[{CJK}]{{2,8}})(?![\w·])",
    re.IGNORECASE,
)
_NAME_GROUPS: Final = ("name", "name2", "name3", "name4", "name5", "name6", "name7")
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
        name = next(name for name in match.group(*_NAME_GROUPS) if name)
        if _is_name(name, match) and whose(sentence, match.start()):
            return name.rstrip("'’-")
    return ""


def _is_name(name: str, match: re.Match[str]) -> bool:
    """Whether it is spelled like a name, and not like an adverb or an adjective."""
    if match["name4"]:
        return not _NO_NAMES_FAR.search(name)
    first = name.split(maxsplit=1)[0].casefold()
    dated = bool(match["call"]) and (first in WEEKDAYS or first in MONTHS)
    pieces = name.casefold().split()
    if match["name5"] and (
        any(piece in COMMON or piece in NOT_A_NAME for piece in pieces)
        or all(map(is_everyday_word, name.split()))
    ):
        return False  # "I'm Senior Engineer"
    # In text of capitals only, the spelling shows nothing.
    shouted = match[0].isupper()
    if dated or shouted or not name[0].isupper() or first in NOT_A_NAME:
        return False
    return not _NO_NAME_BEFORE.match(match.string, match.end())
