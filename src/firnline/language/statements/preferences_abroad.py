"""How people state likes, wishes and allergies in other languages: the data of `digest.preferences`.

A pattern has two groups: `how`, the words that say what the speaker thinks of a thing, and `thing`.
"""

# ruff: noqa: RUF001, E501 - other scripts are meant, and patterns stay on one line

from __future__ import annotations

import re
from typing import Final

from firnline.log.regex import regex

_THING: Final = (
    r"(?P<thing>[^.,;:!?()\n]{2,80}?)(?=[.,;:!?()\n]|\s*\Z|\s(?:aber|weil|denn|und (?:ich|wir|mag|hasse|liebe|bevorzuge)"
    r"|pero|porque|y (?:odio|no|me|prefiero|detesto|yo)|mais|car|parce|et (?:je|j['’]|nous)|но|потому|а|и (?:я|не|мне|ненавижу))\b)"
)
_FAR_THING: Final = r"(?P<thing>[^，。！？；、,.!?\n]{1,30}?)(?=而不是|但|[，。！？；、,.!?\n]|\Z)"
_STYLE_DE: Final = r"verwende|verwenden Sie|benutze|benutzen Sie|nutze|nutzen Sie|antworte|antworten Sie|duze|duzen Sie|sieze|siezen Sie|schreibe?(?: Sie)?(?= (?!ein|mir|uns|an |den |das |die |dem ))"

_PATTERNS: Final = (
    # German
    rf"\b(?:ich|wir) (?P<how>bevorzugen?|mag|mögen|liebe|lieben|hasse|hassen|verabscheue|genieße)(?: (?:sehr|wirklich|besonders|auch|am liebsten))? (?!(?:die|das|es|den|ihn|sie)[.,!]){_THING}",
    rf"(?<!\w )(?P<how>bevorzuge|mag|hasse) ich {_THING}",
    rf"\bund (?P<how>bevorzuge|mag|hasse|liebe) {_THING}",
    r"\bich (?P<how>möchte|will|hätte gerne?) (?P<thing>[^.,;!?\n]{0,60}?\b(?:nur|lieber|immer|nie|niemals|keinen?|keine|ohne|auf (?:Deutsch|Englisch))\b[^.,;!?\n]{1,60})",
    rf"\A\W*nein,? (?:danke,? )?ich (?P<how>möchte|will) {_THING}",
    rf"\bbitte (?P<how>{_STYLE_DE}) {_THING}",
    r"\bbitte (?P<thing>[^.,;!?\n]{3,40}?) (?P<how>nie|niemals|immer|nur|keinesfalls) (?P<more>[^.,;!?\n]{2,60})",
    rf"\bich (?P<how>esse|trinke|benutze|nutze|fliege) (?P<no>nie|niemals|immer|keine?n?) {_THING}",
    r"\bbitte (?P<how>ohne) (?P<thing>[A-ZÄÖÜ][\wäöüß-]{2,25})(?=[.,;!]|\s*\Z)",
    rf"\bich (?:bin|reagiere) (?P<how>allergisch) (?:gegen|auf) {_THING}",
    rf"\bich habe eine? (?P<how>\w{{0,20}}[Aa]llergie) gegen {_THING}",
    r"\A\W*(?P<thing>[A-ZÄÖÜ]\w{2,30}) (?P<how>mag ich(?: gar| überhaupt)? nicht|mag ich|hasse ich|liebe ich)\b",
    # Spanish
    rf"\b(?:yo )?(?P<how>no (?:como|bebo|tomo|fumo)) {_THING}",
    rf"(?<!\ble )(?<!\bles )(?<!\bte )\b(?P<how>prefiero|preferimos|(?:no )?me (?:gustan?|encantan?)|(?:no )?nos (?:gustan?|encantan?)|odio|odiamos|detesto|adoro|no soporto)(?: mucho| más| nada)? {_THING}",
    rf"\A\W*no,? (?:gracias,? )?(?P<how>quiero|quisiera|prefiero) {_THING}",
    rf"(?:\A\W*|[,;] |\by )(?P<how>no (?:uses?|usen|utilices?|utilicen|escribas?|escriban|añadas|incluyas?|pongas?|envíes?|envíen|me (?:llames?|llamen|escribas?|escriban|envíes?|envíen|mandes?|manden))(?: nunca)?) {_THING}",
    rf"(?:\A\W*|[,;] |\by |\bpor favor,? )(?P<how>(?:escriba?n?|escribe|usa|usen?|responda?n?|responde|trata|llama|pon|ponga|manda|envía|envíe|añade) (?:siempre|solo|nunca)) {_THING}",
    rf"\bnunca (?P<how>uses?|usen|escribas?|escriban|me llamen?|me llames) {_THING}",
    rf"\bsoy (?P<how>alérgic[oa]) (?:al?|a los?|a las?) {_THING}",
    rf"\btengo (?P<how>alergia) (?:al?|a los?|a las?) {_THING}",
    # French
    rf"\b(?:je|nous) (?P<how>préfère|préférons|déteste|détestons|adore|adorons|aimons|n['’]aime pas|n['’]aimons pas|ne supporte pas|hais)(?: beaucoup| vraiment)? {_THING}",
    rf"\bj['’](?P<how>aime(?! bien que\b)|adore)(?: beaucoup| bien| vraiment)? {_THING}",
    rf"\A\W*non,? (?:merci,? )?(?:je (?P<how>veux|voudrais|préfère)) {_THING}",
    rf"(?:\A\W*|[,;] |\bet )(?P<how>n(?:e |['’])(?:utilise[zs]?|écri(?:s|vez)|mets|mettez|ajoute[zs]?|envoie[zs]?|envoyez|m['’]appele[zs]|m['’]appelle[zs]?|m['’]écrivez|me téléphonez|me contactez) (?:pas|jamais|plus)) {_THING}",
    rf"(?:\A\W*|[,;] |\bet )(?P<how>(?:écri(?:s|vez)|utilise[zs]?|réponde?z?|réponds|appelle[zs]?|mets|mettez|envoie[zs]?) (?:toujours|uniquement|seulement)) {_THING}",
    rf"\bje suis (?P<how>allergique) (?:à l['’]|à la|à|aux?) ?{_THING}",
    rf"\bj['’]ai une (?P<how>allergie) (?:à l['’]|à la|à|aux?) ?{_THING}",
    rf"\bje (?P<how>ne (?:bois|mange|fume) (?:pas|plus|jamais))(?: (?:de |du |des )| d['’]){_THING}",
    # Russian
    rf"\bя(?: больше)? (?P<how>не (?:ем|пью|курю)) {_THING}",
    rf"\b(?:я|мы)(?: очень| больше| также| всегда)? (?P<how>предпочита(?:ю|ем)|(?:не )?люб(?:лю|им)|обожаю|ненавижу|не переношу|терпеть не могу) {_THING}",
    rf"\b(?:мне|нам)(?: очень| больше)? (?P<how>(?:не )?нрав(?:и|я)тся) {_THING}",
    rf"(?:\A\W*|[,;] (?:но )?|\bно )(?P<how>ненавижу|обожаю|предпочитаю|терпеть не могу|не люблю) {_THING}",
    rf"\A\W*нет,? (?:спасибо,? )?я (?P<how>хочу|хотел бы|хотела бы) {_THING}",
    rf"(?:\A\W*|[,;] |\bи )(?P<how>(?:никогда )?не (?:используй(?:те)?|пиши(?:те)?|звони(?:те)?|присылай(?:те)?|добавляй(?:те)?|отправляй(?:те)?)) {_THING}",
    rf"(?:\A\W*|[,;] |\bи )(?P<how>(?:всегда|только) (?:пиши(?:те)?|используй(?:те)?|отвечай(?:те)?)|(?:пиши(?:те)?|используй(?:те)?|отвечай(?:те)?) (?:всегда|только)) {_THING}",
    rf"\bу меня (?P<how>аллергия) на {_THING}",
    # Chinese
    rf"(?:我们?|，(?:但是?|可是|却|也)?|(?<=。)|\A)(?:也|都|更|最|比较|很|还是)?(?P<how>喜欢|偏好|偏爱|热爱|讨厌|不喜欢|不爱|受不了|不想要)(?P<_>)?{_FAR_THING}",
    rf"\A不(?:用了?|要)?，我(?P<how>想要?|要|希望){_FAR_THING}",
    rf"请(?:您|你)?(?P<how>不要|别|始终|总是|永远|一直|只|一律|尽量)(?:再)?{_FAR_THING}",
    rf"(?:\A|，)(?P<how>别|不要|千万别)(?:再)?(?=[给用写发加打]){_FAR_THING}",
    rf"我们?(?P<how>不(?:吃|喝|抽)){_FAR_THING}",
    r"我对(?P<thing>[^，。！？\n]{1,12}?)(?P<how>过敏)",
)
PATTERNS: Final = tuple(
    regex(pattern.replace("(?P<_>)?", ""), re.IGNORECASE) for pattern in _PATTERNS
)

CUES: Final = frozenset(
    [
        "ich",
        "wir",
        "bitte",
        "mag",
        "prefiero",
        "preferimos",
        "gusta",
        "gustan",
        "odio",
        "odiamos",
        "detesto",
        "adoro",
        "soporto",
        "quiero",
        "uses",
        "use",
        "usa",
        "usen",
        "siempre",
        "nunca",
        "soy",
        "tengo",
        "je",
        "nous",
        "utilise",
        "utilisez",
        "toujours",
        "jamais",
        "n'utilise",
    ]
)
"""Of these, every sentence of ASCII characters that a pattern matches has one."""
