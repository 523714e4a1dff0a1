"""How people state facts in other languages; see `firnline.digest.slot_patterns`."""

# ruff: noqa: RUF001, E501 - other scripts are meant, and patterns stay on one line

from __future__ import annotations

from typing import Final

from firnline.digest import slot_patterns as slots
from firnline.digest.slot_patterns import slot_rules

# -- other languages --------------------------------------------------------------------------

_GERMAN: Final = (
    *slot_rules(
        slots.HOME,
        "name",
        "speaker",
        "wohne wohnen lebe leben gezogen umgezogen",
        r"\b(?:ich|wir) (?:wohnen?|leben?)(?: seit [^.,;!?\n]{1,20}?)?{NOW} in {V}",
        r"\b(?:bin|sind)(?: [^.,;!?\n]{1,30}?)??(?: von {OLD})? nach {S} (?:um)?gezogen",
    ),
    *slot_rules(
        slots.EMPLOYER,
        "name",
        "speaker",
        "arbeite gewechselt angefangen",
        r"\bich arbeite{NOW}(?: als [^.,;!?\n]{1,30}?)? (?:bei|für) {V}",
        r"\b(?:bin|habe?)(?: [^.,;!?\n]{1,30}?)?? (?:zu|bei) {S} (?:gewechselt|angefangen)",
    ),
    *slot_rules(
        slots.DIET,
        "word",
        "speaker",
        "vegetarier vegetarierin veganer veganerin vegetarisch vegan",
        r"\bich (?:bin|lebe|esse|ernähre mich){NOW} (?P<value>vegetarier(?:in)?|veganer(?:in)?|vegetarisch|vegan)\b",
    ),
    *slot_rules(
        slots.DIET,
        "word",
        "speaker",
        "fleisch",
        r"\bich esse (?:wieder|jetzt(?: wieder)?) Fleisch",
        value="eats meat",
    ),
    *slot_rules(
        slots.DIET, "word", "speaker", "fleisch", r"\bich esse kein Fleisch", value="no meat"
    ),
    *slot_rules(
        slots.BIRTHDAY,
        "date",
        "speaker",
        "geburtstag geboren",
        r"\bmein Geburtstag ist{NOW}(?: am)? {D}",
        r"\bich (?:bin|wurde) {D} geboren",
    ),
    *slot_rules(
        slots.TITLE,
        "name",
        "thing",
        "heißt umbenannt",
        r"\b(?:das|unser|mein) (?P<thing>Projekt) heißt{NOW} {V}",
        r"\b(?P<thing>Projekt) (?:von {OLD} )?in {S} umbenannt",
    ),
)
_SPANISH: Final = (
    *slot_rules(
        slots.HOME,
        "name",
        "speaker",
        "vivo vivimos resido mudé mudado mudamos",
        r"\b(?:vivo|vivimos|resido){NOW} en {V}",
        r"\b(?:me mudé|me he mudado|nos mudamos)(?: de {OLD})? a {V}",
    ),
    *slot_rules(
        slots.EMPLOYER,
        "name",
        "speaker",
        "trabajo empecé trabajar",
        r"\b(?<!mi )trabajo{NOW}(?: como [^.,;!?\n]{1,30}?)? (?:en|para) {V}",
        r"\b(?:empecé|he empezado)(?: a trabajar| un nuevo trabajo)? en {V}",
    ),
    *slot_rules(
        slots.DIET,
        "word",
        "speaker",
        "vegetariano vegetariana vegano vegana",
        r"\b(?:soy|me hice|me he hecho|me volví){NOW} (?P<value>vegetarian[oa]|vegan[oa])\b",
    ),
    *slot_rules(
        slots.DIET,
        "word",
        "speaker",
        "carne",
        r"\b(?:vuelvo a comer|volví a comer|(?<!no )como) carne",
        value="eats meat",
    ),
    *slot_rules(slots.DIET, "word", "speaker", "carne", r"\bno como carne", value="no meat"),
    *slot_rules(
        slots.BIRTHDAY,
        "date",
        "speaker",
        "cumpleaños nací",
        r"\bmi cumpleaños es{NOW} {D}",
        r"\bnací {D}",
    ),
    *slot_rules(
        slots.TITLE,
        "name",
        "thing",
        "llama renombramos renombrado",
        r"\b(?:el|nuestro|mi) (?P<thing>proyecto)(?: ahora)? se llama{NOW} {V}",
        r"\b(?:renombramos|hemos renombrado) el (?P<thing>proyecto) (?:a|como) {V}",
    ),
)
_FRENCH: Final = (
    *slot_rules(
        slots.HOME,
        "name",
        "speaker",
        "habite j'habite j’habite vis habitons déménagé installé installée",
        r"\b(?:j['’]habite|je vis|nous habitons){NOW} (?:à|au|en) {V}",
        r"\b(?:j['’]ai|nous avons) déménagé(?: de {OLD})? (?:à|au|en) {V}",
        r"\bje me suis installée? (?:à|au|en) {V}",
    ),
    *slot_rules(
        slots.EMPLOYER,
        "name",
        "speaker",
        "travaille commencé rejoint",
        r"\bje travaille{NOW}(?: comme [^.,;!?\n]{1,30}?)? (?:chez|pour) {V}",
        r"\bj['’]ai (?:commencé chez|rejoint) {V}",
    ),
    *slot_rules(
        slots.DIET,
        "word",
        "speaker",
        "végétarien végétarienne végan végane vegan",
        r"\bje suis(?: devenue?)?{NOW} (?P<value>végétarien(?:ne)?|végane?|vegan)\b",
    ),
    *slot_rules(
        slots.DIET,
        "word",
        "speaker",
        "viande",
        r"\bje (?:re)?mange{NOW}(?: à nouveau| de nouveau)? de la viande",
        value="eats meat",
    ),
    *slot_rules(
        slots.DIET,
        "word",
        "speaker",
        "viande",
        r"\bje ne mange (?:pas|plus) de viande",
        value="no meat",
    ),
    *slot_rules(
        slots.BIRTHDAY,
        "date",
        "speaker",
        "anniversaire née né",
        r"\bmon anniversaire (?:est|tombe){NOW} {D}",
        r"\bje suis née? {D}",
    ),
    *slot_rules(
        slots.TITLE,
        "name",
        "thing",
        "s'appelle s’appelle appelle renommé",
        r"\b(?:le|notre|mon) (?P<thing>projet) s['’]appelle{NOW} {V}",
        r"\brenommé le (?P<thing>projet) en {V}",
    ),
)
_RUSSIAN: Final = (
    *slot_rules(
        slots.HOME,
        "name",
        "speaker",
        "живу переехал переехала переехали",
        r"\bя{NOW} живу{NOW} во? {V}",
        r"\bпереехал[аи]?(?: из {OLD})? во? {V}",
    ),
    *slot_rules(
        slots.EMPLOYER,
        "name",
        "speaker",
        "работаю устроился устроилась",
        r"\bя{NOW} работаю{NOW} (?:в|на) {V}",
        r"\bустроил(?:ся|ась) (?:на работу )?в {V}",
    ),
    *slot_rules(
        slots.DIET,
        "word",
        "speaker",
        "вегетарианец вегетарианка веган",
        r"\bя{NOW} (?:стала? )?(?P<value>вегетариан(?:ец|ка)|веган)\b",
    ),
    *slot_rules(
        slots.DIET,
        "word",
        "speaker",
        "мясо",
        r"\bя{NOW} (?:снова |опять )?ем мясо",
        value="eats meat",
    ),
    *slot_rules(
        slots.DIET, "word", "speaker", "мясо", r"\bя (?:больше )?не ем мясо", value="no meat"
    ),
    *slot_rules(
        slots.BIRTHDAY,
        "date",
        "speaker",
        "рождения родился родилась",
        r"\bдень рождения(?: у меня)?(?: —|:)?{NOW} {D}",
        r"\bя родил(?:ся|ась) {D}",
    ),
    *slot_rules(
        slots.TITLE,
        "name",
        "thing",
        "называется переименовали",
        r"\b(?P<thing>проект){NOW} называется{NOW} {V}",
        r"\bпереименовали (?P<thing>проект)(?: из {OLD})? в {V}",
    ),
)
_CHINESE: Final = (
    *slot_rules(
        slots.HOME,
        "text",
        "speaker",
        "住 搬",
        r"我们?(?:现在|目前)?住在{C}",
        r"我们?(?:上周|上个月|最近|刚刚?|已经|现在)?(?:从[^，。！？\n]{1,8}?)?搬家?[到去来]了?{C}",
    ),
    *slot_rules(
        slots.EMPLOYER,
        "text",
        "speaker",
        "工 班 跳 加 入",
        r"我(?:现在|目前)?在(?P<value>[^，。！？\n在]{1,12}?)(?:工作|上班)",
        r"我(?:已经|最近|刚)?(?:跳槽[到去]|加入|入职)了?{C}",
    ),
    *slot_rules(
        slots.DIET, "word", "speaker", "素", r"我(?:现在|已经)?(?:是|吃)(?P<value>纯?素食者|纯?素)"
    ),
    *slot_rules(
        slots.DIET,
        "word",
        "speaker",
        "肉",
        r"我(?:现在)?(?:又|重新)(?:开始)?吃肉",
        value="eats meat",
    ),
    *slot_rules(slots.DIET, "word", "speaker", "肉", r"我(?:现在)?不再?吃肉", value="no meat"),
    *slot_rules(slots.BIRTHDAY, "date", "speaker", "生", r"我的?生日(?:其实)?[是在]{D}"),
    *slot_rules(
        slots.TITLE, "text", "thing", "项", r"(?P<thing>项目)(?:现在)?(?:叫|名为|改名为|改名叫){C}"
    ),
    *slot_rules(
        slots.STATUS,
        "word",
        "thing",
        "订",
        r"(?P<thing>订单(?:号)?[#：:]?\d{1,20})(?:已经?|正在|现在)?(?P<value>发货|送达|取消|处理中?|付款|退款|运输中)",
    ),
)

ABROAD: Final = (*_GERMAN, *_SPANISH, *_FRENCH, *_RUSSIAN, *_CHINESE)
"""All rules of languages other than English."""
