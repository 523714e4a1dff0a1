"""How the state of things is stated in English; see `firnline.digest.slot_patterns`."""

# ruff: noqa: RUF001, E501 - other scripts are meant, and patterns stay on one line

from __future__ import annotations

from typing import Final

from firnline.digest import slot_patterns as slots
from firnline.digest.slot_patterns import slot_rules

# -- things -----------------------------------------------------------------------------------

_NAMED: Final = (
    r"project|app|product|company|startup|band|team|blog|book|novel|game|tool|library|package"
    r"|service|channel|podcast|repo|repository"
)
_NUMBERED: Final = (
    r"order|ticket|issue|case|invoice|package|parcel|shipment|pr|pull request|bug|task|claim|request"
    r"|booking|reservation|application|refund|delivery|bestellung|pedido|commande|заказ|auftrag"
)
_ITEM: Final = (
    rf"(?P<thing>(?:{_NUMBERED})(?: (?:number|no\.?|nr\.?|id|numéro|número|номер))?"
    r" ?[#№]?(?:n[°º] ?)?[A-Z]{0,5}-?\d[\w-]{0,20}"
    rf"|(?<=the )(?:{_NUMBERED})|(?<=my )(?:{_NUMBERED})|(?<=our )(?:{_NUMBERED})|(?<=your )(?:{_NUMBERED}))"
)
_STATES: Final = (
    r"placed|confirmed|processed|being processed|processing|pending|packed|being packed|shipped|sent"
    r"|dispatched|out for delivery|on its way|on the way|in transit|delivered|arrived|cancell?ed|returned"
    r"|refunded|open|closed|resolved|reopened|fixed|in progress|blocked|on hold|approved|rejected"
    r"|paid|unpaid|overdue|delayed|lost|done|merged|escalated|finished|completed|ready|denied"
)
_STATES_FAR: Final = (
    r"versandt|verschickt|versendet|geliefert|zugestellt|storniert|bezahlt|in bearbeitung|unterwegs"
    r"|offen|geschlossen|enviado|entregado|cancelado|pagado|pendiente|en camino|expédiée?|livrée?"
    r"|annulée?|payée?|en cours|en attente|отправлен|доставлен|отмен[её]н|оплачен|в обработке|в пути"
)
_EVENTS: Final = (
    r"meeting|appointment|deadline|launch|release|call|interview|party|wedding|flight|exam|demo"
    r"|review|conference|trip|dinner|lunch|due date|standup|sync|workshop|training|session|lesson"
    r"|concert|surgery|checkup|check-in|visit|start date|kickoff|presentation|webinar|reservation|booking"
)
_EVENT: Final = (
    rf"\b(?:the|our|my|your) (?P<thing>(?:[^\W_]{{1,20}}['’]?s? ){{0,3}}?(?:{_EVENTS})"
    r"(?: (?:with|for) (?:the |our |my )?[^\W_]{1,20})?)"
)
_PRICED: Final = (
    r"\b(?:the|our|my) (?P<thing>(?:[^\W_]{1,20} ){0,2}?(?:budget|price|rent|cost|fee|salary|rate|deposit"
    r"|quote|estimate|total|fare)(?: (?:for|of) (?:the |our |my )?[^\W_]{1,20})?)"
)
_MOVED: Final = "moved|rescheduled|pushed|postponed|shifted|changed|delayed|brought"

THINGS: Final = (
    *slot_rules(
        slots.TITLE,
        "name",
        "thing",
        "called named renamed known rebranded name codename",
        rf"\b(?:the|our|my|this) (?P<thing>{_NAMED})(?:['’]s (?:new )?(?:code ?)?name is| is| was| has been| got)"
        r"{NOW} ?(?:called|named|known as|renamed(?: from {OLD})?(?: to| as)?|rebranded(?: to| as)?)? {V}",
        rf"\b(?:renamed|rebranded) (?:the |our |my |this )?(?P<thing>{_NAMED})(?: from {{OLD}})?"
        r"(?: to| as| into|[:,;] it(?:['’]s| is)(?: now)?(?: called)?)? {V}",
        rf"\b(?:a|the|our|my) (?P<thing>{_NAMED})(?: is| was)? (?:called|named) {{V}}",
        rf"\bthe (?:new |current )?(?:code ?)?name (?:of|for) (?:the|our|my) (?P<thing>{_NAMED}) is{{NOW}} {{V}}",
        rf"\b(?:the|our|my) (?P<thing>{_NAMED}) name (?:is|changed to|has changed to){{NOW}} {{V}}",
    ),
    *slot_rules(
        slots.CHANGE,
        "name",
        "speaker",
        "called named renamed rebranded",
        r"\b(?:project )?{OLD} (?:is{NOW} (?:called|named|known as)"
        r"|(?:was|has been|got|is) (?:renamed|rebranded)(?: to| as)?) {V}",
        r"\b(?:renamed|rebranded) (?:from )?{OLD} (?:to|as|into) {V}",
    ),
    *slot_rules(
        slots.STATUS,
        "word",
        "thing",
        _STATES.replace("|", " ") + " cancelled canceled way hold",
        rf"\b{_ITEM}(?:['’]s)?(?:\s(?:is|was|has|had|been|got|gets|now|currently|still|finally|already"
        r"|just|status|to|marked|as|set|changed|went|moved|from|pending|status:|today)){0,6}:?"
        rf"(?P<no> not(?: yet)?(?: been)?|(?:\s?(?:has|is|was))?n['’]t(?: been)?)? (?P<value>{_STATES})\b",
        rf"\b(?P<value>shipped|sent|cancell?ed|delivered|refunded|returned|received|placed|closed|resolved|reopened"
        rf"|approved|rejected|paid|merged|fixed)(?: out)?(?: (?:the|my|our|your))? {_ITEM}",
        rf"\bstatus of (?:the |my |our |your )?{_ITEM} (?:is|changed to|has changed to){{NOW}}"
        rf" (?P<value>{_STATES})\b",
    ),
    *slot_rules(
        slots.STATUS,
        "word",
        "thing",
        _STATES_FAR.replace("|", " ").replace("é", "é ")
        + " expédiée livrée annulée отменен отменён expédié livré bearbeitung camino cours attente пути",
        rf"\b{_ITEM}(?:\s(?:ist|wurde|wird|jetzt|nun|bereits|schon|ha|sido|fue|está|ya|ahora|est|a|été"
        rf"|maintenant|déjà|уже|теперь|был)){{0,4}} (?P<value>{_STATES_FAR})\b",
    ),
    *slot_rules(
        slots.DATE,
        "date",
        "thing",
        _MOVED.replace("|", " ") + " is on has got for due scheduled set",
        rf"{_EVENT}(?:\s(?:is|was|has|been|got|will|be|now|{_MOVED}|set|scheduled|planned|due|back|forward|up"
        r"|for|to|on|at|by|until|till|actually|from {WOLD})){1,7} {W}",
        rf"\b(?:{_MOVED}) {_EVENT[2:]}(?: (?:back|forward|up))?(?: from {{WOLD}})?"
        r" (?:to|until|till|for) {W}",
    ),
    *slot_rules(
        slots.AMOUNT,
        "text",
        "thing",
        "budget price rent cost fee salary rate deposit quote estimate total fare",
        rf"{_PRICED} (?:is|was|has been|went|will be|got)"
        r"(?:\s(?:now|raised|increased|cut|lowered|reduced|changed|set|up|down|to|at|from {AOLD}|actually)){0,5} {A}",
        rf"\b(?:raised|increased|cut|lowered|reduced|changed|set) {_PRICED[2:]}(?: from {{AOLD}})? (?:to|at) {{A}}",
    ),
    *slot_rules(
        slots.TOOL,
        "name",
        "before",
        "use uses using chose picked run adopted settled decided went going",
        r"\b(?:use|uses|using|chose|picked|adopted|settled on|decided (?:on|for|to use)|went with|going with){NOW}"
        r" {S}(?: (?:for|as) (?:the |our |my |all )?(?P<thing>[^\W_]{1,20}(?: [^\W_]{1,20})?))?(?=[.,;!?]|\s*\Z|\s(?:now|and|but|because|since)\b)",
    ),
    *slot_rules(
        slots.CHANGE,
        "any",
        "before",
        "switched migrated changed converted moved transitioned replaced dropped instead",
        r"\b(?:switched|migrated|changed|converted|transitioned)(?: (?:over|everything"
        r"|(?:the|our|my) [^\W_]{1,20}))? from {OLD} to {V}",
        r"\b(?:switched|migrated|converted|transitioned)(?: (?:over|everything|(?:the|our|my) [^\W_]{1,20}))? to {V}",
        r"\breplaced {OLD} (?:with|by) {V}",
        r"\bdropped {OLD} (?:in favou?r of|for) {V}",
        r"\b(?:use|uses|using|go with|going with|went with|chose|picked|drink|eat|take|have) {S}"
        r"(?: now)? instead of {OLD}(?=[.,;!?]|\s*\Z|\s(?:now|and|but|because|since|for)\b)",
    ),
    *slot_rules(
        slots.CHANGE,
        "any",
        "speaker",
        "not meant correction",
        r"\b(?:it['’]s|it is|that['’]s|that is|I meant|should be|is|on|correction:(?: it['’]s)?)"
        r"(?: actually| really| on| the){0,2} (?P<value>(?:{DAY})|{SHORT}),? (?:and )?not (?:on |the |in )?"
        r"(?P<old>(?:{DAY})|{SHORT})(?=[.,;!?]|\s*\Z)",
    ),
)
