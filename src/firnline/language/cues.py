"""Phrases with which people change the subject, or go back to one, at the start of a message."""

# ruff: noqa: RUF001 - letters of other alphabets look like Latin ones

from __future__ import annotations

from re import Pattern
from typing import Final

from firnline.log.regex import regex

_OPENING_CHARS: Final = 80
_BEFORE: Final = r"^\W*(?:(?:ok|okay|and|und|y|et|и|so|also|now|jetzt|ahora|oh|hey)\b\W*)?"


def opening(text: str) -> str:
    """The part of a message in which such a phrase counts."""
    return " ".join(text[: 2 * _OPENING_CHARS].casefold().split())[:_OPENING_CHARS]


def _phrases(spaced: str, unspaced: str) -> Pattern[str]:
    """Any of these phrases at the start, one in a line; `unspaced` may go on without a space."""
    lines = [line.strip().replace(" ", r"\s") for line in spaced.strip().splitlines()]
    return regex(f"{_BEFORE}(?:(?:{'|'.join(lines)})(?!\\w)|{'|'.join(unspaced.split())})")


SWITCHING: Final = _phrases(
    """
    by the way
    btw
    unrelated
    off[- ]topic
    on (?:another|a different) (?:note|topic|subject)
    (?:one |a |just a |totally )?(?:different|other|new|quick|random) (?:question|topic|subject|one)
    (?:one |a |just an? )?(?:other|another|unrelated) (?:question|topic|subject|thing)
    changing (?:the )?(?:topic|subject)
    (?:let's|let us|can we) (?:talk about|discuss|switch to|change)
    something (?:else|different)
    übrigens
    apropos
    nebenbei
    (?:eine |ganz |noch eine |mal eine )?andere (?:frage|sache)
    (?:ein )?(?:ganz )?anderes thema
    them(?:en|a)wechsel
    (?:mal )?(?:et)?was (?:ganz )?ander(?:e)?s
    por cierto
    otra (?:cosa|pregunta|duda|consulta)
    cambi(?:ando|o) de tema
    a propósito
    hablando de otra cosa
    au fait
    (?:une )?autre (?:question|chose|sujet)
    (?:pour )?chang(?:er|eons) de sujet
    rien à voir
    кстати
    (?:ещё|еще) (?:один )?вопрос
    друг(?:ой|ая) (?:вопрос|тема)
    на другую тему
    смен(?:им|а) тем[уы]
    a proposito
    un'altra (?:domanda|cosa)
    cambiando (?:argomento|discorso)
    outra (?:pergunta|coisa)
    mudando de assunto
    """,
    "对了 對了 另外 顺便 順便 换个话题 換個話題"
    " 换个问题 还有个问题 再问一个 话说 另一个问题 ところで",
)
"""To another subject."""

RETURNING: Final = _phrases(
    """
    (?:going |coming |getting )?back (?:to|on)
    return(?:ing)? to
    about (?:the|my|that|those) [^?!.,:]{2,40}(?:again|:)
    as (?:for|to) (?:the|my)
    regarding
    concerning
    (?:nochmal |noch einmal |wieder )?zurück (?:zu|zum|zur)
    noch ?(?:ein)?mal (?:zu|zum|zur)
    was (?:den|die|das) [^?!.]{2,40} (?:an)?betrifft
    bezüglich
    volv(?:iendo|amos) (?:a|al)
    de vuelta (?:a|al)
    retomando
    (?:en cuanto|respecto) (?:a|al)
    sobre lo de
    revenons (?:à|au|aux)
    pour (?:en )?revenir (?:à|au|aux)
    retour (?:à|au|aux)
    concernant
    (?:верн[её]мся|возвращаясь) (?:к|ко)
    насч[её]т
    что касается
    tornando (?:a|al|alla)
    voltando (?:a|ao|à)
    """,
    "回到 说回 說回 回过头 さっきの",
)
"""Back to a subject of before."""
