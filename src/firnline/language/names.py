"""Finds names in text by their spelling and the words around them."""

# ruff: noqa: RUF001, E501 - other scripts are meant, and patterns stay on one line

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, Literal

from firnline.language import prose
from firnline.language.lexicon import (
    AFTER_NAMES,
    COMMON,
    COMMON_ENDINGS,
    GERMAN_ENDINGS,
    GERMAN_NOUNS,
    GIVEN_NAMES,
    GREETINGS,
    INSTITUTIONS,
    MORE_SURNAMES,
    PARTICLES,
    PLACE_NAMES,
    PLACES_FAR,
    SURNAMES,
    TITLES,
)
from firnline.language.numbers import Mention
from firnline.language.stop_words import GERMAN, fold
from firnline.log import tokens
from firnline.log.regex import regex
from firnline.log.text import normalize

PIECE: Final = regex(r"[^\W_]+")
"""A run of letters and digits."""
_TOKEN: Final = regex(r"(?<![\w])[^\W\d_](?:\w|['’&-](?=\w)|\.(?=[a-z]))*")
_ELIDED: Final = regex(r"(?<![\w])[dl]['’](?=[A-ZÀ-Þ])", re.IGNORECASE)
_ELISIONS: Final = ("l'", "l’", "d'", "d’", "L'", "L’", "D'", "D’")
_GLUE: Final = regex(
    r" | & |(?<=\bSt)\. | (?:of(?: the)?|d(?:e|el|i|u|es|a|o|os|as)|de (?:la|las|los)|van(?: de[rn]?)?|von(?: der)?) "
)
_FAR_NAMED: Final = regex(
    r"《(?P<work>[^》\n]{1,20})》|(?:叫做?|名为|称为|名字是)[“\"「『](?P<called>[^”\"」』\n]{1,12})[”\"」』]"
    rf"|(?:我叫|名叫|叫|我是)(?P<own>[{SURNAMES}][{prose.CJK}]{{1,2}})(?=[，。、！,.!\s]|\Z)"
    rf"|(?:我叫|名叫)(?P<own2>[{MORE_SURNAMES}][{prose.CJK}]{{1,2}})(?=[，。、！,.!\s]|\Z)"
    rf"|我是(?P<own3>苏(?![州联格])[{prose.CJK}]{{1,2}})(?=[，。、！,.!\s]|\Z)"
    rf"|(?:(?<=[在给到去为是于和与，。、])|\A)(?P<place>(?![在给到去为是于和与我你他她])(?:(?![的一])[{prose.CJK}]){{2,7}}?(?:大学|学院|公司|集团|医院|银行|研究所|研究院|工作室|中学|出版社|协会|基金会))"
    rf"|(?:(?<=[是由和与跟找给夫妻公婆友事练师哥姐弟妹妈爸子女，。、])|\A)(?P<person>(?!谢谢)[{SURNAMES}][{prose.CJK}]{{1,2}}?)"
    r"(?=教授|医生|老师|先生|女士|经理|负责|拍摄|[对说写做画管来去在和与的，。、,.!\s0-9A-Za-z]|\Z)"
    rf"|(?:[女儿妹姐弟哥妈爸](?P<child>小[{prose.CJK}])(?![{prose.CJK}]*[店吃孩]))"
    rf"|(?:叫做?|名叫)(?P<called2>(?![了他她它我你车外做])[{prose.CJK}]{{2,4}}?)(?=的[猫狗鸟兔人]|[，。！]|\Z)"
    rf"|(?P<known>{'|'.join(sorted(PLACES_FAR, key=len, reverse=True))})(?![石菜语人])"
)
_QUOTE_MARK: Final = regex('["“„«‚‘]')
_TITLE: Final = regex(r"[\"“„«‘](?P<title>[^\"“”„«»‘’\n]{3,60})[\"”“»’]")
_TITLE_WORDS_MAX: Final = 5
_GERMAN_NAMED: Final = regex(
    r"\b(?:[Hh]eißt|[Hh]eiße|namens|genannt|[Nn]ennt sich)(?: jetzt| nun)? [„»\"“]?(?P<called>[A-ZÄÖÜ][\wäöüß]+)\b(?! [A-ZÄÖÜ])"
    r"|\b(?:Mann|Frau|Schwester|Bruder|Freund(?:in)?|Kolleg(?:e|in|en)|Sohn|Tochter|Mutter|Vater|Chef(?:in)?|Hund"
    r"|Katze|Kater|Partner(?:in)?|Vermieter(?:in)?|Nachbar(?:in)?|Trainer(?:in)?|Oma|Opa|Tante|Onkel|Cousine?"
    r"|Neffe|Nichte|Herrn?|Hallo|Liebe[rs]?) (?P<kin>(?!Dr\b|Prof\b)[A-ZÄÖÜ][a-zäöüß]+)\b(?! [A-ZÄÖÜ])"
    r"|\b(?:in|nach|aus|ab|bei|von) (?P<place>[A-ZÄÖÜ][a-zäöüß]{2,20})(?![\w-]| [A-ZÄÖÜ])"
)
_BEFORE_CHARS: Final = 12
_INITIAL_BEFORE: Final = regex(r"(?:^|[:;“”\"'(\[{•*>#|/=]|\s[-–—])\s{0,12}[\"'“‘(\[*_]{0,12}\Z")
_LABELLED: Final = regex(r"\w: \Z")
_ALONE: Final = ("", ".", ",", ";", "\n", ")")
_CAPITAL: Final = regex("[A-Z]")
_GREEK: Final = "\u0370"
"""Where the Latin letters end."""
_SHOUT: Final = 0.6
_POLITE: Final = frozenset(("sie", "ihr", "ihre", "ihrem", "ihren", "ihrer", "ihnen"))
_GERMAN_SHARE: Final = 0.17
_NOT_GERMAN_ALONE: Final = frozenset(
    ("also", "am", "an", "bin", "die", "fast", "hat", "in", "man", "so", "war", "was", "will")
)


def names(text: str, *, german: bool = False) -> Iterator[Mention]:
    """The names of a text, in order; a name that is only a sentence's first word is not sure.

    `german`: it is German, though a few words do not show it.
    """
    german = german or is_german(text)
    if any(mark in text for mark in _ELISIONS):
        text = _ELIDED.sub("  ", text)  # the "l'" of "l'Université"
    titles = list(_titles(text))
    found = [*titles, *(_german_names(text) if german else ())]
    taken = [(name.start, name.end) for name in found]
    for start, end in prose.spans(text):
        found += (
            name
            for name in _sentence_names(text, start, end, german=german)
            if not any(first < name.end and name.start < last for first, last in taken)
        )
    yield from sorted(found, key=lambda name: name.start)


def _sentence_names(text: str, start: int, end: int, *, german: bool) -> Iterator[Mention]:
    words = list(_TOKEN.finditer(text, start, end))
    shouting = len(words) > 2 and _is_shouted(text[start:end])  # noqa: PLR2004
    run: list[re.Match[str]] = []
    for place, token in enumerate(words):
        if token[0].isalpha() and token[0].islower():
            if run and (german or token[0] not in PARTICLES):  # they may join two parts of a name
                yield from _run_name(text, run, german=german)
                run = []
            continue
        inside = token.start() > start + 1 and text[token.start() - 1] == "("
        initial = not inside and _is_initial(text, start, token.start())
        kind = None if shouting else _token_kind(text, token, initial=initial, german=german)
        leads = kind != "title" and _may_lead(token[0], initial=initial or shouting)
        if leads and run and _goes_on(text, token, words[place + 1 : place + 2]):
            kind = "sure"  # the "Next" of "Steam Next Fest"
        if run and not _continues(text, run, token, kind, leads=leads):
            yield from _run_name(text, run, german=german)
            run = []
        if kind == "sure" or leads:
            run.append(token)
        elif kind == "maybe" and not german and _is_followed_like_name(text, token):
            yield _mention(token.start(), _without_possessive(token[0]), sure=False)
    yield from _run_name(text, run, german=german)


def _token_kind(text: str, token: re.Match[str], *, initial: bool, german: bool) -> str | None:
    if token[0].casefold() in TITLES and token[0][0].isupper():
        return "title"
    if token[0].casefold() in GREETINGS:
        return None
    kind = _kind(_without_possessive(token[0]), initial=initial)
    first = kind != "sure" and initial and not german
    return "sure" if first and _starts_full_name(text, token, kind) else kind


def _continues(
    text: str, run: list[re.Match[str]], token: re.Match[str], kind: str | None, *, leads: bool
) -> bool:
    """Whether the word goes on with the name of the run."""
    if _GLUE.fullmatch(text, run[-1].end(), token.start()) is None:
        return False
    if _is_possessive(run[-1][0]) and run[0][0] != "St":
        return token[0].casefold() in INSTITUTIONS
    return kind == "sure" or (
        leads and (len(run) > 1 or all(_may_only_lead(word[0]) for word in run))
    )


def _goes_on(text: str, token: re.Match[str], following: Sequence[re.Match[str]]) -> bool:
    """Whether a name follows an everyday word without a break."""
    return any(
        text[token.end() : after.start()] == " "
        and _kind(_without_possessive(after[0]), initial=False) == "sure"
        for after in following
    )


def _titles(text: str) -> Iterator[Mention]:
    """What is quoted and written like a title: "Long Farewells"."""
    if not _QUOTE_MARK.search(text):
        return
    for match in _TITLE.finditer(text):
        words = match["title"].split()
        capitals = sum(word[0].isupper() for word in words)
        if (
            1 < len(words) <= _TITLE_WORDS_MAX
            and words[0][0].isupper()
            and 2 * capitals > len(words)
        ):
            yield _mention(match.start("title"), match["title"].rstrip(".,!"))


def _german_names(text: str) -> Iterator[Mention]:
    """Names of one word in German, where capitals show nothing but the words before them do."""
    for match in _GERMAN_NAMED.finditer(text):
        group = match.lastgroup or ""
        word = match[group]
        plain = word.casefold()
        placed = group == "place" and (plain in GERMAN_NOUNS or plain.endswith(GERMAN_ENDINGS))
        if not placed and plain not in COMMON and plain not in GERMAN_NOUNS:
            yield _mention(match.start(group), word)


def far_names(text: str) -> tuple[str, ...]:
    """The names of a Chinese text: people, organizations and places, each once."""
    if text.isascii() or not _FAR_NAMED.search(text):
        return ()
    found: dict[str, None] = {}
    end = 0
    for match in _FAR_NAMED.finditer(text):
        if match.start() >= end:
            end = match.end()
            found[match[match.lastgroup or 0]] = None
    return tuple(found)


def _is_shouted(text: str) -> bool:
    """Whether most of its letters are capitals."""
    if text.isascii() and 3 * len(_CAPITAL.findall(text)) < len(text):
        return False  # with the spaces, far fewer than needed
    letters = list(filter(str.isalpha, text))
    return sum(map(str.isupper, letters)) > _SHOUT * len(letters)


def _starts_full_name(text: str, token: re.Match[str], kind: str | None) -> bool:
    """Whether a sentence's first word starts a full name: the "Maria" of "Maria Lopez"."""
    after = _TOKEN.match(text, token.end() + 1)
    if after is None or text[token.end()] != " ":
        return False
    first, second = token[0], _without_possessive(after[0])
    if not (first.istitle() and second.istitle()):
        return False
    if (first[0] < _GREEK) != (second[0] < _GREEK):
        return False  # of different scripts
    if first.casefold() in GIVEN_NAMES:
        return _kind(second, initial=False) is not None
    known = f"{first} {second}".casefold() in PLACE_NAMES
    return known or (kind == "maybe" and not is_everyday_word(first))


def _may_only_lead(word: str) -> bool:
    return _kind(_without_possessive(word), initial=False) is None


def _may_lead(word: str, *, initial: bool) -> bool:
    """Whether an everyday word may start a name: the "New" of "New York"."""
    plain = not initial and len(word) > 1 and word[0].isupper() and word[1:].islower()
    return plain and word.casefold() not in GREETINGS


def _is_followed_like_name(text: str, token: re.Match[str]) -> bool:
    """Whether the words after a sentence's first word show that it is a person's name."""
    if _is_possessive(token[0]):
        return True
    after = _TOKEN.search(text, token.end(), token.end() + 30)
    alone = text[token.end() : token.end() + 1] in _ALONE and not token[0].endswith("ed")
    if alone and _LABELLED.search(text[max(0, token.start() - 3) : token.start()]):
        return True  # "Owner: Ana." A single word after a label is usually a name.
    gap = text[token.end() : after.start()] if after else ""
    if after is None or gap not in {" ", ", "}:
        return False
    word = after[0]
    if word in {"and", "or", "und", "y", "et"} or gap == ", ":
        other = _TOKEN.search(text, after.end(), after.end() + 30) if gap == " " else after
        return other is not None and _kind(_without_possessive(other[0]), initial=False) is not None
    acting = word in AFTER_NAMES or (word.islower() and word.endswith("ed"))
    verb = acting and text[after.end() : after.end() + 1] != ":"
    return verb or _kind(_without_possessive(word), initial=False) is not None


def _run_name(text: str, run: list[re.Match[str]], *, german: bool) -> Iterator[Mention]:
    """The name that these words make; in German, without a noun that says what it names."""
    strong = False
    while german and len(run) > 1 and run[0][0].casefold() in GERMAN_NOUNS:
        strong = run[0][0].casefold() not in _POLITE
        run = run[1:]
    while run and run[-1][0].casefold() in COMMON and _may_only_lead(run[-1][0]):
        if len(run) > 1 and _is_possessive(run[-2][0]):
            break  # "King's College"
        run = run[:-1]
    if not run:
        return
    value = _without_possessive(text[run[0].start() : run[-1].end()])
    if all(_kind(_without_possessive(token[0]), initial=False) is None for token in run):
        return
    # In German, a hyphen joins any two nouns.
    hyphened = "-" in value and not any(map(str.isdigit, value))
    strong = strong or len(run) > 1 or not (value[1:].islower() or hyphened)
    if strong or not german:
        yield _mention(run[0].start(), value)


def _mention(start: int, value: str, *, sure: bool = True) -> Mention:
    return Mention(start, start + len(value), (fold_name(value),), sure)


def is_german(text: str) -> bool:
    """Whether the text is German, where every noun has a capital."""
    words = frozenset(map(fold, text.split()))
    found = words & GERMAN
    return len(found) >= _GERMAN_SHARE * len(words) and not found <= _NOT_GERMAN_ALONE


def _is_initial(text: str, start: int, at: int) -> bool:
    if at >= start + 2 and text[at - 1] == " " and text[at - 2].isalnum():
        return False  # as are most words
    before = text[start:at]
    return not PIECE.search(before) or bool(_INITIAL_BEFORE.search(before[-_BEFORE_CHARS:]))


def _is_possessive(word: str) -> bool:
    return word.endswith(("'s", "’s"))


def _without_possessive(word: str) -> str:
    return word[:-2] if _is_possessive(word) else word


@lru_cache(4_096)
def _kind(word: str, *, initial: bool) -> Literal["sure", "maybe"] | None:
    """Whether the word is a name where it stands."""
    head = re.split(r"['’-]", word, maxsplit=1)[0].casefold()
    if word.casefold() in COMMON or (head in COMMON and not any(map(str.isdigit, word))):
        return None
    if any(map(str.isdigit, word)):
        return "sure"
    first, rest = word[0], word[1:]
    if any(map(str.isupper, rest)) and not rest.casefold().endswith("'t"):
        return "sure"
    if not first.isupper() or len(word) == 1:
        return None
    if not initial:
        return "sure"
    return None if word.endswith(COMMON_ENDINGS) else "maybe"


def fold_name(text: str) -> str:
    """A name for comparison: no accents, no case, pieces separated by one space."""
    if not text.isascii():
        marked = normalize("NFKD", text)
        text = "".join(char for char in marked if not unicodedata.combining(char))
    return " ".join(PIECE.findall(text.casefold()))


@lru_cache(4_096)
def is_everyday_word(word: str) -> bool:
    """Whether a word is more often written in lower case than capitalized.

    The tokenizer's vocabulary is sorted by frequency: a smaller number means a more frequent word.
    """
    encode = tokens.reference_encoder().encode_ordinary
    small, great = encode(f" {word.lower()}"), encode(f" {word}")
    return len(small) == 1 and (len(great) > 1 or small < great)
