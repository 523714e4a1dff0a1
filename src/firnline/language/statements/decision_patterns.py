"""How people state decisions and outlines, by language: the data of `digest.rules`."""

# ruff: noqa: RUF001, E501, ISC004 - other scripts are meant, and patterns stay on one line

from __future__ import annotations

import re
from typing import Final

from firnline.log.regex import regex

_NOT_YET: Final = (
    r"(?! (?:still |not |yet |to be )*(?:open|pending|none|postponed|delayed|made|up to|yours|hard"
    r"|difficult)\b)"
)
_PLANNED: Final = (
    r"use|go with|go for(?! an?\b)|go back to|roll back|revert|switch|adopt|stick with|move to|drop|keep|skip|add|remove|work with|publish|hire|buy|cancel"
    r"|postpone|start with|build|migrate|replace|rename|book|take|leave out|split|merge|ship|deploy|invite|exclude"
    r"|include|stay|rent|choose|pick|launch|release|renew|sell"
)
_SETTLED: Final = (
    r"\bwe(?:['’]ve| have)?(?: all| both| finally| already)* (?:decided|agreed|settled on|chose|chosen|opted"
    r"|concluded|picked)\b(?! (?:them|it|this|that|these|up|you|him|her)\b)",
    rf"\b(?:the |our |final )decision (?:is|was)\b{_NOT_YET}|\bdecision:{_NOT_YET}",
    r"\b(?:it['’]s|it is) (?:decided|settled|agreed)\b|^agreed\b ?[:-](?=\W*(?:\S+ ){2})",
    r"\b(?:entschieden|beschlossen)\b|\bwir haben uns\b[^!?\n]{1,80}\b(?:geeinigt|festgelegt)\b",
    r"\b(?:hemos (?:decidido|acordado|quedado en)|decidimos|acordamos|quedamos en|optamos por|se decidió)\b",
    r"\b(?:nous avons|on a) (?:décidé|choisi|convenu)\b|c['’]est décidé|\bnous sommes convenus\b",
    r"\A\W*(?:[а-яё]{2,20}[ую] )?(?:решили|договорились)\b(?! ли\b| (?:все|они)\b)|\b(?:мы (?:\w{1,30} )?(?:решили|выбрали|остановились на)|решено|договорились|остановились на)\b",
    r"\b(?:on est|nous sommes) d['’]accord (?:: ?|pour |sur |que )|\b(?:estamos|quedamos) de acuerdo en\b|\bwir sind uns (?:jetzt )?einig\b|\bмы согласились\b",
    r"\A(?:(?:ok|okay|good|great|fine|agreed|yes|alright|deal|perfect)\b\W*)?(?!(?:look|see|yes|no|yeah|so|as|here|there|this|that|what|how|where)\b)[^,.!?\n]{2,40} it is(?:,? then)?[.!]?\Z",
    r"(?:我们决定|决定(?:了|使用|采用)|说好了?|商定|达成一致|选定)",
)
_OWN: Final = (
    r"\blet(?:['’]s| us) not (?:use|go|do|add|make|call|put|include|change|buy|book|take|start|open|move|keep|write|send|deploy|ship|hire|invite)\b",
    r"\A\W*(?:(?:ok|okay|fair|fine|right|alright|so|then|good|yes|no)\b\W*){0,2}(?:the|our) [^.,;!?\n]{2,40} (?:is|are) (?:out|off the table|in|off)[.!]?\Z",
    r"\A\W*(?:(?:ok|okay|fair|fine|right|alright|so)\b\W*)?(?!(?:well|now|back|since|until|see|why|what|how|and|just|so|here|there|bye|thanks)\b)(?-i:[A-ZÀ-Þ])[\w'’-]{2,20}(?: [\w'’-]{2,20}){0,2} then[.!]?\Z",
    r"\bwir lassen [^.,;!?\n]{2,40} (?:da|hier|stehen|zurück)\b|\b(?:wir|und ich) (?:fahren|reisen|fliegen) (?:mit|ohne)\b",
    r"\b[а-яё]+ть(?:ся)? не будем\b",
    rf"\blet(?:['’]s| us) (?:just |then |also |rather |still )?(?:{_PLANNED}|call|name|leave|put|set|order|meet"
    r"|give|assign|split|combine|reuse|print|serve|raise|lower|reduce|focus on|aim for|schedule|plan on|settle on|limit|cap|target|write|store|run|test|host|move(?! on\b)|begin|start(?!ed)|open|close|end|do (?:the|a|an|both|two|three)"
    r"|make it (?:an?|the|\d|on|at|[A-Z]))(?<!keep) (?!(?:something|anything|together|going|in mind|up)\b)(?:[^\s.!?]+ ?){1,}"
    r"|\blet(?:['’]s| us) (?:keep|stick) (?:the|to|with|it|our|this) \w+",
    r"\A\W*(?:agreed|deal|perfect|sounds good|(?:good|great|nice) (?:idea|point|plan)|yes|ok|okay|right|alright)\b\W+(?:then |so )?(?:we|I)['’]ll (?:just |then |all )?"
    r"(?:have|do|make|put|get|order|serve|cook|bake|paint|print|write|send|run|test|host|set|give|split|fly|drive|meet|pay|ask for|wait until|start|keep)\b(?! (?:to|a look|a think|it a go|my best|what)\b)",
    r"\bI(?:['’]ve| have)?(?: finally| already| just)* (?:decided|agreed|settled on|chose|chosen|opted|concluded|picked)\b(?! (?:them|it|this|that|these|up|you|him|her)\b)",
    rf"\b(?:we|I)(?:['’]ll| will| are going to|['’]re going to) (?:{_PLANNED})\b(?! [a-z]+ing\b)"
    r"(?! (?:you|ya|by|up|going|in mind|an eye|my fingers|(?:it|this|that|the [a-z]+|that [a-z]+) (?:in mind|up))\b)",
    rf"\bwe (?:won['’]t|will not|are not going to|['’]re not going to) (?:{_PLANNED})\b",
    r"(?:^|\b(?:we|I)(?:['’]re|['’]m| are| am) )going with\b(?! (?:me|you|him|her|them|us)\b)",
    r"\bwir (?:nehmen|verwenden|bleiben bei|verzichten auf|lassen [^.,;!?\n]{1,40} weg)\b|\blass(?:t|en Sie)? uns\b [^.,;!?\n]{1,60} (?:nehmen|machen|verwenden|nutzen|buchen|streichen)",
    r"\bhe decidido\b|\b(?:vamos|voy) a (?:usar|utilizar|quitar|dejar|añadir|adoptar|contratar|empezar con|quedarnos)\b|\bnos quedamos con\b",
    r"\bj['’]ai (?:décidé|choisi)\b|\b(?:nous allons|on va|je vais) (?:utiliser|garder|prendre|retirer|ajouter|adopter|commencer par)\b|\b(?:nous gardons|on garde|nous optons pour)\b",
    r"\bя (?:\w{1,30} )?(?:решила?|выбрала?)\b|\bбудем (?:использовать|делать|брать)\b|\bдавай(?:те)? (?:возьмём|сделаем|использовать|оставим|уберём)",
    r"(?:我决定|我们?就用|就用|我们选择)",
)
BARE: Final = regex(
    r"\A(?:\W*(?:no|nein|non|нет|不|yes|ja|sí|oui|да|so|ok|okay|well|then)\b)?\W*(?:it['’]s (?:already )?(?:decided|settled|agreed)"
    r"|agreed|(?:das |es )?ist (?:schon |bereits )?(?:entschieden|beschlossen)|(?:ya )?está decidido|c['’]est (?:déjà )?décidé"
    r"|(?:уже )?решено|договорились|不?，?已经决定了?)\W*\Z",
    re.IGNORECASE,
)
"""Says that something is decided, but not what."""
HINTS: Final = (
    " then", " is out", " is in", " is off", "are out", "are off", " are in", "lassen", "fahren", "не будем",
    "d'accord", "d’accord", "acuerdo", "einig", "соглас", "decid", "decis", "agreed", "settled", "chose", "chosen", "opted", "concluded", "picked", "let's", "let’s", "let us", "'ll ", "’ll ",
    "will ", "going ", "won't", "won’t", " it is", "entschieden", "beschlossen", "geeinigt", "festgelegt", "wir ", "lass", "acord",
    "qued", "optamos", "vamos a", "voy a", "décid", "choisi", "conven", "allons", "on va", "je vais", "gard", "optons", "реш",
    "выбра", "остановились", "договорились", "будем", "давай", "决定", "说好", "商定", "达成一致", "选定", "就用", "选择", "选了", "就选", "就给", "就买", "就订", "就这么", "descart", "apostamos", "nehmen", "nehme", "bleiben", "elegi", "eleg", "garde", "part sur", "берём", "берем",
)  # fmt: skip
"""Of these, every decision has one, ignoring case."""
SETTLED: Final = regex("|".join(f"(?:{pattern})" for pattern in _SETTLED), re.IGNORECASE)
"""A decision of the speaker and the reader, or of a group."""
DECISION: Final = regex("|".join(f"(?:{pattern})" for pattern in (*_SETTLED, *_OWN)), re.IGNORECASE)
"""Any decision, the speaker's own included."""

STRUCTURE: Final = regex(
    r"\b(?:document structure|structure|outline|table of contents|toc|gliederung|struktur|aufbau|inhaltsverzeichnis"
    r"|estructura|índice|esquema|structure|plan|sommaire|структура|план|оглавление)\s*+"
    r"(?:is|will be|should be|ist|es|est)?\s*+:\s*(?P<list>[^\n]{3,300})"
    r"|\b(?:sections?|chapters?|parts)\s*+(?:for|on|about|called|named|titled|:|are|will be|should"
    r" be|like|such as)\s*(?P<list2>[^\n]{3,300})"
    r"|\b(?:Abschnitte|Kapitel|secciones|capítulos|apartados|sections|chapitres|parties|разделы|главы)(?:\s*+(?::|sind:?|son:?|sont:?|—)\s++|\s++)"
    r"(?:(?:für|para|pour|:)\s*+)?(?P<list3>(?-i:[A-ZÀ-ÞА-Я])[^\n]{3,300})"
    r"|(?:结构|提纲|目录|大纲|章节)(?:是|为|如下|包括)?[：:]?\s*(?P<list4>[^\n。]{3,200})",
    re.IGNORECASE,
)
"""What lists the sections of a document."""
FINAL_VERB: Final = regex(
    r"\s(?:haben|enthalten|bekommen|umfassen|sein|werden|geben|brauchen|please|bitte)\Z",
    re.IGNORECASE,
)
"""What ends a German list, and is no part of it."""
