"""Whether a message asks for something, or only states something. Pure.

In case of doubt it asks: in another language, as keywords, or if it only hints at a question.
"""

# ruff: noqa: RUF001, E501 - other scripts are meant, and patterns stay on one line

from __future__ import annotations

import re
from typing import Final

from firnline.language.prose import sentences
from firnline.language.stop_words import (
    ENGLISH_CORE,
    FILLERS,
    FRENCH,
    GERMAN,
    RUSSIAN,
    SPANISH,
    fold,
    split_words,
)
from firnline.log.regex import regex

_CHARS_MAX: Final = 4_000
"""A longer message is a text to work on: whether it asks is decided by its beginning and end."""
_MARKS: Final = ("?", "？", "؟", "¿")
_OPENING: Final = r"\W*(?:(?:hi|hey|hello|ok|okay|so|and|but|please|also|well|now|then|thanks|und|aber|bitte|y|pero|et|mais|а|и|но)\b\W*){0,3}"
_ASKS: Final = regex(
    _OPENING
    + r"(?:(?:what|where|when|which|who|whom|whose|why|how|is|are|am|was|were|do|does|did|has|have|had"
    r"|can|could|would|will|should|shall|may|isn|aren|wasn|weren|don|doesn|didn|any|tell|show|find|list|give|name|remind|explain|describe|summari[sz]e"
    r"|compare|write|draft|translate|create|make|help|search|look|check|calculate|suggest|recommend|read|plan|let me know|continue|go on"
    r"|was|wo|wohin|woher|wann|welche\w*|wer|wem|wen|wessen|warum|wieso|wie|ist|sind|hat|haben|habe|kann|kannst|könn\w+|soll\w*|gib\w*|zeig\w*|nenn\w*|sag\w*|erkläre?|schreibe?|such\w*|mach\w*"
    r"|qué|que|quién\w*|quien\w*|dónde|donde|cuándo|cuando|cuál\w*|cuanto\w*|cuánt\w+|cómo|como|por qué|dime|dame|muestra\w*|explica\w*|escrib\w+|busca\w*|puede\w*"
    r"|qui|quand|où|quel\w*|combien|comment|pourquoi|est-ce|dis|montre\w*|donne\w*|expliqu\w*|écri\w*|cherche\w*|peux|pouvez"
    r"|что|кто|где|куда|когда|какой|какая|какие|какое|сколько|как|почему|зачем|чей|скажи\w*|покажи\w*|найди\w*|напомни\w*|объясни\w*|напиши\w*|можешь|можно)\b|qu['’])",
    re.IGNORECASE,
)
_HINTS: Final = regex(
    r"\b(?:remember|recall|remind|forgot|forget|wonder\w*|curious|not sure|no idea|(?:want|like|need|love) to know"
    r"|(?:know|tell me|ask|say|said|mentioned|told you) (?:what|where|when|which|who|why|how|if|whether|about)|i need|i want|looking for|look up"
    r"|vergessen|erinner\w*|weißt|wüsste|wissen|brauche|olvid\w+|recuerd\w+|acuerd\w+|saber|necesito|quiero|rappel\w+|souvien\w+|oubli\w+|savoir|besoin"
    r"|помн\w+|забыл\w*|напомн\w+|знать|знаешь|нужн\w+)\b",
    re.IGNORECASE,
)
_STATES: Final = regex(
    r"\b(?:i|we|i['’]\w+|we['’]\w+|it['’]s|that['’]s|thanks|thank you|ich|wir|je|j['’]\w+|nous|yo|nosotros|я|мы)\b",
    re.IGNORECASE,
)
_KNOWN: Final = ENGLISH_CORE | GERMAN | FRENCH | SPANISH | RUSSIAN | FILLERS


def states_only(text: str) -> bool:
    """Whether a message certainly asks for nothing."""
    if len(text) > _CHARS_MAX:
        text = f"{text[: _CHARS_MAX // 2]}\n{text[-_CHARS_MAX // 2 :]}"
    if any(mark in text for mark in _MARKS) or _HINTS.search(text):
        return False
    found = sentences(text)
    if any(_ASKS.match(sentence) for sentence in found):
        return False
    if not any(fold(word) in _KNOWN for word in split_words(text)):
        return False
    ends = any(sentence.rstrip().endswith((".", "!", "…")) for sentence in found)
    return ends or _STATES.search(text) is not None
