"""Which sentences of a message are its speaker's own plain words. Pure.

A pasted text, a quotation, an example, another person's line of a dialogue, a scene that is only
supposed and a joke are not. In doubt a sentence is not: what it states would be taken for true.
"""

# ruff: noqa: RUF001, E501 - other scripts are meant, and patterns stay on one line

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Final

from firnline.language import prose
from firnline.language.lexicon import ABBREVIATIONS
from firnline.language.names import is_everyday_word
from firnline.language.statements import speaker
from firnline.log.regex import regex

_TEXTS: Final = (
    r"e-?mail|text|message|letter|paragraph|article|review|note|transcript|story|poem|log|bio|cv|resume|essay|post"
    r"|comment|draft|abstract|script|lyrics|dialogue|conversation|listing|advert?|chapter|verse|prompt|speech|song|tweet"
    r"|caption|blurb|snippet|passage|excerpt|quote|summary|output|file|nachricht|artikel|absatz|gedicht|geschichte"
    r"|lebenslauf|brief|texto|correo|carta|mensaje|artículo|poema|texte|courriel|lettre|poème|histoire|текст|письмо"
    r"|сообщение|статья|стих\w*|рассказ|sentence|satz|frase|phrase|предложение|statement"
)
_INTRODUCED: Final = regex(
    rf"\b(?:{_TEXTS})\b[^:：\n]{{0,40}}[:：]\s*\Z|\b(?:wrote|writes|schrieb|escribió|a écrit|написала?)\s*[:：]\s*\Z"
    r"|[信文邮件章稿诗]\S{0,6}[:：]\s*\Z|以下|\A\W*(?:from|to|subject|von|an|betreff|de|para|asunto|objet|от|кому|тема):\s",
    re.IGNORECASE,
)
"""Ends the speaker's own words: the rest of the message is a text of another one."""
_DEAR: Final = regex(
    r"\A\W*(?:dear|sehr geehrte\w*|liebe[rs]?(?=\s(?-i:[A-ZÄÖÜ]))|estimad[oa]s?|querid[oa]s?|ch(?:er|ère)s?|уважаем\w+|дорог\w+)\s"
    r"(?!(?:all|team|support|customer|assistant|ai|bot|chat|firnline|friends?|shop|help)\b)[^\n.!?;:,]{1,40}[,!]\s*(?=\n|\Z|[A-ZÄÖÜÉ])",
    re.IGNORECASE,
)
"""The start of a letter, which people have written or corrected."""
_LABEL: Final = regex(
    r"\A\W{0,3}(?:\[?\d{1,2}[:.]\d{2}(?:[:.]\d{2})?\]?\s)?(?:\[(?P<mark>[^\]\n]{1,30})\]|(?P<label>[^\W\d_][\w .'’-]{0,24}?))(?:[:：]\s|(?<=\])\s)"
)
_OWN_LABELS: Final = frozenset(
    (
        *("note", "notes", "update", "edit", "ps", "p.s", "p.s.", "pps", "fyi", "me", "correction", "background", "context"),
        *("important", "also", "btw", "yes", "no", "yeah", "ok", "okay", "sure", "hi", "hello", "hey", "right", "seriously", "actually", "result", "plan", "so", "well", "anyway", "fact", "facts", "short version", "tl;dr", "tldr", "i", "us"),
        *("ich", "wichtig", "nachtrag", "korrektur", "info", "yo", "nota", "importante", "corrección", "moi", "note", "rappel"),
        *("я", "важно", "поправка", "我", "注意", "补充"),
    )
)  # fmt: skip
"""Labels with which people go on in their own words."""
_PERSONAL: Final = regex(
    r"\b(?:I|I['’]\w+|my|we|our|me|you|your|ich|mein\w*|wir|unser\w*|du|sie|yo|mi|mis|soy|tengo|vivo|trabajo|tú|je|j['’]\w+|mon|ma|mes|nous|on|tu|vous|я|мой|моя|мы|наш\w*|ты|вы|меня|мне)\b|[我你您]",
    re.IGNORECASE,
)
"""Words of speech: "Budget: 5,000" is no line of a dialogue."""
_REMINDS: Final = regex(
    r"\A\W*(?:(?:please|and|also|oh|bitte|por favor)\b\W*)?(?:(?:can|could|will|would) you (?:please )?)?(?:remember|keep in mind|bear in mind|note|(?:do not|don['’]t) forget|remind me|merk dir|denk daran|vergiss nicht"
    r"|recuerda|ten en cuenta|no olvides|rappelle-toi|n['’]oublie pas|note que|запомни\w*|не забудь\w*|учти\w*|记住|别忘了)\b",
    re.IGNORECASE,
)
"""Asks to remember what follows."""
_LEADS: Final = regex(r"\A\W*(?:what|which|was|lo que|ce qui|что)\b[^:?\n]{2,40}:\s", re.IGNORECASE)
"""Leads to a statement: "What matters more: I'm 67"."""
_FIELDS: Final = frozenset(
    (
        *("name", "age", "email", "e-mail", "address", "phone", "mobile", "location", "city", "country", "job", "title"),
        *("diet", "allergies", "allergy", "budget", "deadline", "project", "company", "employer", "birthday", "goal", "goals"),
        *("hobbies", "languages", "pets", "family", "occupation", "profession", "medication", "conditions", "stack"),
        *("alter", "adresse", "telefon", "wohnort", "beruf", "allergien", "sprachen", "nombre", "edad", "dirección"),
        *("teléfono", "ciudad", "alergias", "idiomas", "nom", "prénom", "âge", "ville", "métier", "langues", "имя"),
        *("возраст", "адрес", "телефон", "город", "аллергия", "языки"),
    )
)  # fmt: skip
"""Labels of what people say about themselves, as in a form."""
_EXAMPLE: Final = regex(
    r"\A\W*(?:for (?:example|instance)|e\.?g\.?|examples?|q|a|z\.\s?b\.?|zum beispiel|beispiel|por ejemplo|ejemplo|par exemple"
    r"|exemple|например|пример|例如|比如|question|answer|frage|antwort|pregunta|respuesta|réponse|вопрос|ответ)\b\s*[:：,.)]"
    r"|\A\W*(?:correct|proofread|translate|rewrite|rephrase|improve|fix|check|korrigiere?|übersetze?|corrige|traduce|corrigez?"
    r"|traduis\w*|исправь\w*|переведи\w*|翻译|改正|修改|润色)\b",
    re.IGNORECASE,
)
_FICTION: Final = regex(
    r"\A\W*(?:(?:so|and|then|well|ok|okay|haha|ha|yes|no|but)\b\W*){0,3}(?:in (?:the|this|that|my|our|a|his|her) (?:\w+ ){0,2}?(?:novel|story|book|game|movie|film|dream|play|show"
    r"|series|campaign|scenario|example|song|bio|poem|letter|simulation|fantasy|comic|manga|script|chapter|ad|role ?-?play|universe|world)\b"
    r"|(?:my|our|the|her|his) (?:main |other )?(?:character|protagonist|hero|heroine|narrator|detective|avatar|persona|villain)\b"
    r"|(?:write|tell|imagine|invent|generate|create|draft|compose|make up|give me)\b[^.!?\n]{0,60}\b(?:in which|where|about|saying|who|that says|as if)\b"
    r"|act as\b|you are\b|you['’]re\b|let['’]s play\b|as an? [^\W\d_]+,? i\b|role ?-?play\b|in my (?:next|past|previous) life\b|in another life\b"
    r"|im (?:roman|buch|spiel|film|traum)\b|mein (?:charakter|protagonist)\b|du bist\b|en (?:la|el|mi) (?:novela|libro|juego|película|sueño)\b|eres\b"
    r"|dans (?:le|la|mon|ma) (?:roman|livre|jeu|film|rêve)\b|tu es\b|в (?:романе|книге|игре|фильме|моём сне|рассказе)\b|мой (?:герой|персонаж)\b|ты —)"
    r"|小说里|故事里|游戏里|梦里|扮演|我的角色",
    re.IGNORECASE,
)
_TAKES_BACK: Final = regex(
    r"\A\W*(?:(?:ha|haha|hehe|lol|nah|no|ok|sorry)\b\W*){0,3}(?:(?:I['’]m |I was |we['’]re )?(?:just |only |totally )?(?:kidding|joking)|jk|not(?: really)?|no wait|I wish|as if|psych|yeah,? right"
    r"|in my dreams|joke|just a joke|that was a joke|not true|I lied|(?:nur )?(?:ein )?(?:scherz|spaß)|war (?:nur )?(?:ein )?(?:scherz|witz|spaß)"
    r"|(?:es|era) (?:una )?broma|(?:non,? )?je (?:plaisante|rigole|blague)|c['’]est une blague|шучу|шутка|это шутка|开玩笑|骗你的|才怪)\s*(?:\W|\Z)"
    r"|\A\W*(?:🙄|😂|🤣|😜|🤪|/s\b)",
    re.IGNORECASE,
)
"""Takes back the sentence before it."""
_MOCKS: Final = regex(
    r"(?<!\w)/s\b|#sarcasm|🙄|😂|🤣|😜|🤪|\(not really\)|,? not\W{0,3}\Z|\bsaid no ?one\b|(?<=\w)[,.!…]?\s(?:ha){2,30}h?\W{0,12}\Z|\A\W{0,12}(?:\S+\s+){1,6}(?:lol|lmao|rofl)\W*\Z"
    r"|\A\W*(?:yeah,? right|sure,? (?:and )?(?=I\b)|oh great|oh sure|totally|of course I)\b",
    re.IGNORECASE,
)
_CASUAL: Final = regex(
    r"(?:\S{1,60}\s{1,4}){7}(?:lol|lmao|rofl)\W{0,12}\Z|(?:\S{1,60}\s{1,4}){9}(?:ha){2,30}h?\W{0,12}\Z",
    re.IGNORECASE,
)
"""A long sentence that ends with a laugh is meant."""
_LAUGH: Final = regex(r"\A\W*(?:ha(?:ha)+h?|hehe|lol)\b\W*(?=\w)", re.IGNORECASE)
_IF_AFTER: Final = regex(
    r"\b(?:if|unless|provided|assuming|falls|sofern|wenn|si|если)\b(?! (?:that|it|this) (?:helps|matters|counts|makes)"
    r"| you(?:['’]re| are) (?:wondering|curious|interested)| you (?:need|must|want) (?:to )?(?:know|it|me)|not\b| das hilft| это важно)",
    re.IGNORECASE,
)
_QUESTION: Final = regex(
    r"(?P<kept>\A[^?？]{6,300}?)(?:,\s|\s[-–—]\s|;\s|[，；]|\s(?=(?:so|and|but) (?:what|how|where|which|when|who|can|could|do|does|is|are|should|would|will)\b))"
    r"(?:(?:so|and|but|also|btw|und|aber|y|pero|et|mais|а|и|но)\s)?(?:\S{1,60}\s){0,39}\S{2,60}[?？]\W*\Z"
)
"""What is said before a question in the same sentence."""
_SOFT_END: Final = regex(r"(?<![.\d])[.?!](?:\s+)(?=[^\W\d_])")
"""The end of a sentence that is followed by a small letter."""
_PARAGRAPH: Final = regex(r"\n\s*\n")


def own_spans(text: str) -> Iterator[tuple[int, int]]:
    """The spans of the sentences that are the speaker's own, each without a question at its end."""
    spans = list(_spans(text))
    labels = {found for start, end in spans if (found := _label(text[start:end]))} - _FIELDS
    scene = other = False
    last = 0
    for at, (start, end) in enumerate(spans):
        sentence, between = text[start:end], text[last:start]
        line = at == 0 or "\n" in between
        if line:
            other = _is_labelled(sentence, labels)
        scene = scene and not _PARAGRAPH.search(between) and not speaker.ends_scene(sentence)
        last = end
        if _introduces(sentence) or (line and _DEAR.match(text[start : start + 80])):
            return  # what follows is a text of another
        if speaker.starts_scene(sentence) or _FICTION.search(sentence):
            scene = True
        if scene or other or sentence.startswith(">"):
            continue
        following = text[slice(*spans[at + 1])] if at + 1 < len(spans) else ""
        if not (_TAKES_BACK.match(following) or _is_foreign(sentence)):
            kept = _without_question(sentence)
            if kept:
                yield start, start + len(kept)


def _introduces(sentence: str) -> bool:
    return _INTRODUCED.search(sentence) is not None or speaker.introduces_text(sentence)


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """The spans of sentences; in a text without capitals, they end at each mark."""
    first = next(filter(str.isalpha, text), "")
    casual = first.islower()  # then most sentences start with a small letter
    for start, end in prose.spans(text):
        at = start
        for mark in _SOFT_END.finditer(text, start, end):
            word = text[at : mark.start()].rsplit(" ", 1)[-1].casefold()
            if mark[0][0] in "?!" or (casual and word not in ABBREVIATIONS and len(word) > 1):
                yield at, mark.start() + 1
                at = mark.end()
        yield at, end


def _is_foreign(sentence: str) -> bool:
    """Whether a sentence of one's own states nothing: an example, a joke, a question."""
    return bool(
        _EXAMPLE.search(sentence)
        or _MOCKS.search(sentence)
        or (speaker.is_joke(_LAUGH.sub("", sentence)) and not _CASUAL.search(sentence))
        or (
            speaker.is_foreign(sentence)
            and not (_REMINDS.match(sentence) or _LEADS.match(sentence))
        )
        or speaker.is_imagined(sentence)
    )


def _without_question(sentence: str) -> str:
    """The sentence, without the question that it ends with; empty if it is only a question."""
    if not sentence.rstrip("\"'”’)* ").endswith(("?", "？", "؟")):
        asks = speaker.is_request(sentence) and not _REMINDS.match(sentence)
        return "" if asks else sentence
    match = _QUESTION.match(sentence)
    kept = match["kept"] if match else ""
    return "" if not kept or speaker.is_request(kept) else kept


def _label(sentence: str) -> str:
    """The name of its speaker that a line starts with, "Bob: I live in Rome."; empty if none."""
    match = _LABEL.match(sentence)
    if match is None:
        return ""
    if match["mark"] is not None:
        return match["mark"].strip()
    label = match["label"].strip()
    words = label.split()
    named = len(words) <= 2 and all(word[:1].isupper() for word in words)  # noqa: PLR2004
    return label if named and label.casefold() not in _OWN_LABELS else ""


def _is_labelled(sentence: str, labels: Collection[str]) -> bool:
    """Whether a line is in another's name: one that is no word, or one of several in the text."""
    label = _label(sentence)
    if not label or not _PERSONAL.search(sentence, len(label)):
        return False
    if len(labels) > 1 and label.casefold() not in _FIELDS:
        return True
    return not any(map(is_everyday_word, label.split())) and label.casefold() not in _FIELDS


def is_reminder(sentence: str) -> bool:
    """Whether a sentence asks to remember what it says."""
    return _REMINDS.match(sentence) is not None


def is_conditional(rest: str) -> bool:
    """Whether what follows a statement in its sentence makes it a condition's consequence."""
    return _IF_AFTER.search(rest) is not None
