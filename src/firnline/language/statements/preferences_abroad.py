"""How people state likes, wishes and allergies in other languages: the data of `digest.preferences`.

A pattern has two groups: `how`, the words that say what the speaker thinks of a thing, and `thing`.
"""

# ruff: noqa: RUF001, E501, ISC004 - other scripts are meant, and patterns stay on one line

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
    r"(?:\A\W*|[,;] |\bund )(?P<how>(?:schreibe?|antworte|formuliere|erkläre?|kontaktiere|informiere|erinnere|benachrichtige)(?:n Sie)?(?: (?:mir|mich|uns))?) (?:doch )?bitte "
    r"(?P<thing>(?:immer |nur |lieber |stets )?(?:in|per|auf|als|mit|ohne|via|über|kurz|knapp|ausführlich|einfach|höflich)\b[^.,;!?\n]{0,40})",
    r"\A\W*(?P<thing>[A-ZÄÖÜ]\w{2,30}) (?P<how>(?:esse|trinke|vertrage) ich(?: gar| überhaupt)? nicht|kann ich(?: gar| überhaupt)? nicht (?:leiden|ausstehen|ab))\b",
    # Spanish
    rf"\b(?:yo )?(?P<how>no (?:como|bebo|tomo|fumo)) {_THING}",
    rf"(?<!\ble )(?<!\bles )(?<!\bte )\b(?P<how>prefiero|preferimos|(?:no )?me (?:gustan?|encantan?)|(?:no )?nos (?:gustan?|encantan?)|odio|odiamos|detesto|adoro|no soporto)(?: mucho| más| nada)? {_THING}",
    rf"\A\W*no,? (?:gracias,? )?(?P<how>quiero|quisiera|prefiero) {_THING}",
    rf"(?:\A\W*|[,;] |\by )(?P<how>no (?:uses?|usen|utilices?|utilicen|escribas?|escriban|añadas|incluyas?|pongas?|envíes?|envíen|me (?:llames?|llamen|escribas?|escriban|envíes?|envíen|mandes?|manden))(?: nunca)?) {_THING}",
    rf"(?:\A\W*|[,;] |\by |\bpor favor,? )(?P<how>(?:escriba?n?|escribe|usa|usen?|responda?n?|responde|trata|llama|pon|ponga|manda|envía|envíe|añade) (?:siempre|solo|nunca)) {_THING}",
    rf"\bnunca (?P<how>uses?|usen|escribas?|escriban|me llamen?|me llames) {_THING}",
    rf"\bsoy (?P<how>alérgic[oa]) (?:al?|a los?|a las?) {_THING}",
    rf"\btengo (?P<how>alergia) (?:al?|a los?|a las?) {_THING}",
    r"(?:\A\W*|[,;] |\by |\bpor favor,? )(?P<how>(?:escríb[ae]|respónd[ae]|contéstan?|contést[ae]|contáct[ae]|llám[ae]|avís[ae]|envía|mánd[ae]|explíca|háblan?)(?:n)?(?:me|nos|melo))(?: (?:siempre|solo|sólo|únicamente|mejor))? "
    r"(?P<thing>(?:por|en|con|de|sin)\b [^.,;!?\n]{2,40})",
    # French
    rf"\b(?:je|nous) (?P<how>préfère|préférons|déteste|détestons|adore|adorons|aimons|n['’]aime pas|n['’]aimons pas|ne supporte pas|hais)(?: beaucoup| vraiment)? {_THING}",
    rf"\bj['’](?P<how>aime(?! bien que\b)|adore)(?: beaucoup| bien| vraiment)? {_THING}",
    rf"\A\W*non,? (?:merci,? )?(?:je (?P<how>veux|voudrais|préfère)) {_THING}",
    rf"(?:\A\W*|[,;] |\bet )(?P<how>n(?:e |['’])(?:utilise[zs]?|écri(?:s|vez)|mets|mettez|ajoute[zs]?|envoie[zs]?|envoyez|m['’]appele[zs]|m['’]appelle[zs]?|m['’]écrivez|me téléphonez|me contactez) (?:pas|jamais|plus)) {_THING}",
    rf"(?:\A\W*|[,;] |\bet )(?P<how>(?:écri(?:s|vez)|utilise[zs]?|réponde?z?|réponds|appelle[zs]?|mets|mettez|envoie[zs]?) (?:toujours|uniquement|seulement)) {_THING}",
    rf"\bje suis (?P<how>allergique) (?:à l['’]|à la|à|aux?) ?{_THING}",
    rf"\bj['’]ai une (?P<how>allergie) (?:à l['’]|à la|à|aux?) ?{_THING}",
    rf"\bje (?P<how>ne (?:bois|mange|fume) (?:pas|plus|jamais))(?: (?:de |du |des )| d['’]){_THING}",
    r"\b(?P<how>(?:tutoie|tutoyez|vouvoie|vouvoyez))-(?P<thing>moi|nous)\b",
    r"(?:\A\W*|[,;] |\bet )(?P<how>(?:écri(?:s|vez)|répond(?:s|ez)|contacte[zs]?|préviens|prévenez|appelle[zs]?|envoie|envoyez|explique[zs]?)-(?:moi|nous|le-moi))(?: (?:toujours|uniquement|seulement|plutôt))? "
    r"(?P<thing>(?:par|en|avec|sans)\b [^.,;!?\n]{2,40})",
    # Russian
    rf"\bя(?: больше)? (?P<how>не (?:ем|пью|курю)) {_THING}",
    rf"\b(?:я|мы)(?: очень| больше| также| всегда)? (?P<how>предпочита(?:ю|ем)|(?:не )?люб(?:лю|им)|обожаю|ненавижу|не переношу|терпеть не могу) {_THING}",
    rf"\b(?:мне|нам)(?: очень| больше)? (?P<how>(?:не )?нрав(?:и|я)тся) {_THING}",
    rf"(?:\A\W*|[,;] (?:но )?|\bно )(?P<how>ненавижу|обожаю|предпочитаю|терпеть не могу|не люблю) {_THING}",
    rf"\A\W*нет,? (?:спасибо,? )?я (?P<how>хочу|хотел бы|хотела бы) {_THING}",
    rf"(?:\A\W*|[,;] |\bи )(?P<how>(?:никогда )?не (?:используй(?:те)?|пиши(?:те)?|звони(?:те)?|присылай(?:те)?|добавляй(?:те)?|отправляй(?:те)?)) {_THING}",
    rf"(?:\A\W*|[,;] |\bи )(?P<how>(?:всегда|только) (?:пиши(?:те)?|используй(?:те)?|отвечай(?:те)?)|(?:пиши(?:те)?|используй(?:те)?|отвечай(?:те)?) (?:всегда|только)) {_THING}",
    rf"\bу меня (?P<how>аллергия) на {_THING}",
    r"(?:\A\W*|[,;] |\bи )(?P<how>(?:пиши|отвечай|объясняй|присылай|звони|сообщай|обращайся)(?:те|тесь)?)(?: (?:мне|нам))?(?: пожалуйста,?|, пожалуйста,)? "
    r"(?P<thing>(?:всегда |только |лучше )?(?:по|на|в|без|через|кратко|коротко|подробно|просто|вежливо)\b[^.,;!?\n]{0,40})",
    r"\A\W*(?P<thing>[А-ЯЁ][а-яё]{2,30}) (?P<how>не (?:хочу|люблю|ем|пью|переношу|терплю)|терпеть не могу|ненавижу|обожаю)\b",
    # Chinese
    rf"(?:我们?|，(?:但是?|可是|却|也)?|(?<=。)|\A)(?:也|都|更|最|比较|很|还是)?(?P<how>喜欢|偏好|偏爱|热爱|讨厌|不喜欢|不爱|受不了|不想要)(?P<_>)?{_FAR_THING}",
    rf"\A不(?:用了?|要)?，我(?P<how>想要?|要|希望){_FAR_THING}",
    rf"请(?:您|你)?(?P<how>不要|别|始终|总是|永远|一直|只|一律|尽量)(?:再)?{_FAR_THING}",
    rf"(?:\A|，)(?P<how>别|不要|千万别)(?:再)?(?=[给用写发加打]){_FAR_THING}",
    rf"我们?(?P<how>不(?:吃|喝|抽)){_FAR_THING}",
    r"我对(?P<thing>[^，。！？\n]{1,12}?)(?P<how>过敏|不耐受)",
    r"请(?P<how>用)(?P<thing>[^，。！？；、,.!?\n]{1,12}?(?:回答|回复|写|说明|列出|总结|解释|称呼))",
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
        "escribe",
        "escriba",
        "escriban",
        "escribas",
        "responde",
        "responda",
        "respondan",
        "trata",
        "llama",
        "llames",
        "llamen",
        "manda",
        "mandes",
        "manden",
        "pon",
        "ponga",
        "pongas",
        "utilices",
        "utilicen",
        "incluyas",
        "encanta",
        "encantan",
        "como",
        "bebo",
        "tomo",
        "fumo",
        "bevorzuge",
        "hasse",
        "liebe",
        "mets",
        "mettez",
        "tutoie",
        "tutoyez",
        "vouvoie",
        "vouvoyez",
        "contacte",
        "contactez",
        "schreib",
        "schreibe",
        "antworte",
        "antworten",
        "formuliere",
        "informiere",
        "kontaktiere",
        "erinnere",
        "llamame",
        "solo",
        "uniquement",
        "seulement",
        "appelez",
        "n'utilise",
    ]
)
"""Of these, every sentence of ASCII characters that a pattern matches has one."""
