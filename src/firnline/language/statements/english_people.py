"""How people state in English who they are, whom they have, and where they live; see `patterns`."""

# ruff: noqa: RUF001, E501 - other scripts are meant, and patterns stay on one line

from __future__ import annotations

from typing import Final

from firnline.language.statements import patterns as slots
from firnline.language.statements.english import (
    ANCESTRY,
    HAVE,
    KIN,
    KIN_CUES,
    NUMBER,
    SMALL,
    TIES,
    TITLED,
    WHOSE,
)
from firnline.language.statements.nouns import DEMONYMS
from firnline.language.statements.patterns import slot_rules

_FAMILY: Final = (
    *slot_rules(
        slots.NAME,
        "name",
        "speaker",
        KIN_CUES,
        rf"{WHOSE}(?:['’]s name(?: is|['’]s)|,? (?:is |who is |who['’]s )?(?:called|named)| goes by) {{P}}",
        rf"{WHOSE} is {TITLED}(?=[.,!;)]|\s*\Z| and (?:my|our|I|we)\b)",
        rf"(?P<value>(?-i:[A-ZÀ-Þ])[\w'’-]{{1,20}}(?: (?-i:[A-ZÀ-Þ])[\w'’-]{{1,20}})?)(?:,? (?:is )?| \()(?:my|our) (?:{ANCESTRY} ){{0,2}}(?P<whose>{KIN})(?=[,.;!)]|\s*\Z)",
        rf"\b(?:my|our) (?:{ANCESTRY} ){{0,2}}(?P<whose>(?!\w+s\b){KIN}|boss),? {TITLED}(?=[,.;!)'’]|\s*\Z|\s(?:is|has|was|and|will|who|says|said|thinks|lives|works|wants|loves"
        r"|hates|likes|can|can['’]t|moved|studies|plays|handles|turned|just|set|got|does|doesn['’]t|started|helps|also|still|said|told|made|runs|took|came|went|goes|comes|visits|needs|prefers|with|\(|[a-z]+s)\b|\s\()",
        rf"\bI(?:['’]ve| have)?(?: got)? an? (?:{ANCESTRY} ){{0,2}}(?P<whose>{KIN}),? (?:called|named|who is called) {{P}}",
    ),
    *slot_rules(
        slots.CHILDREN,
        "text",
        "before",
        "kids kid children child sons son daughters daughter boys girls twins triplets newborn toddler toddlers stepson stepdaughter mother father mom mum dad parent",
        rf"(?:{HAVE}|\b(?:raise|raising) )(?P<value>(?:twins|triplets|(?:{NUMBER}|no|a|twin|several)(?: (?:small|little|young|grown|adult|teenage|beautiful|lovely|older|school-age|wonderful|grown-up|adopted))?"
        r" (?:kids?|children|child|sons?|daughters?|boys?|girls?|twins|newborn|toddlers?|stepson|stepdaughter))(?:,? (?-i:[A-Z])\w{1,15}(?: \(\d{1,2}\))?(?:(?:,| and) (?-i:[A-Z])\w{1,15}(?: \(\d{1,2}\))?){0,4})?)"
        r"(?=[.,;!?)–—]|\s-\s|\s*\Z|\s(?:and|but|so|who|aged|under|now|already|with|from|in|at|that)\b)",
        rf"\ban? (?:single |proud |working |stay-at-home )?(?P<value>(?:mother|father|mom|mum|dad|parent) of (?:{NUMBER}|a \w{{1,30}}))",
    ),
    *slot_rules(
        slots.CHILDREN,
        "text",
        "speaker",
        "kids children sons daughters boys girls twins",
        rf"\b(?:my|our) (?P<value>(?:{NUMBER}) (?:small |little |young |grown |adult |teenage )?(?:kids|children|sons|daughters|boys|girls))\b",
        r"\bthe (?P<value>twins (?:are|is) (?:\w{1,30}|\d+)(?: months?| years?)?(?:, (?-i:[A-Z])\w{1,30} and (?-i:[A-Z])\w{1,30})?)",
        r"(?<=[,;] )(?P<value>no kids|no children|two kids|three kids)(?=[.,;!])",
    ),
    *slot_rules(
        slots.SIBLINGS,
        "text",
        "before",
        "sister brother sisters brothers siblings child",
        r"\b(?:an? )(?P<value>only child)(?=[.,;!?)]|\s*\Z|\s(?:and|but|so)\b)",
        rf"\b(?:have|got)(?: got)? (?P<value>(?:an?|{NUMBER}|no)(?: (?:older|younger|little|big|twin|half))? (?:sisters?|brothers?|siblings?)(?: and (?:an?|{NUMBER})(?: (?:older|younger|little|big|twin))? (?:sisters?|brothers?))?)\b",
    ),
    *slot_rules(
        slots.AGE,
        "word",
        "before",
        "im i'm i’m am is turned old yo years year at",
        rf"(?<![$€£#.,:\d])\b(?P<value>\d{{1,2}}|{SMALL}|[a-z]+ty(?:-\w{{1,30}})?)(?: years?[ -]olds?| y/?o\b| yrs?(?: old)?)\b",
        rf"(?<![$€£#.,:\d\w-])(?P<value>\d{{1,2}}|{SMALL})(?! ?(?:%|:|am|pm|km|kg|cm|minutes|hours|days|weeks|months|miles))"
        r"(?=[.,;!)]|\s*\Z|\s(?:and|but|so|now)\b(?! ?\d))",
        r"\bturned (?P<value>\d{2})\b",
        r"\bat (?:the (?:ripe )?(?:old )?age of )?(?P<value>(?:twenty|thirty|forty|fifty|sixty|seventy|eighty)(?:-(?:one|two|three|four|five|six|seven|eight|nine))?)(?=[,.!;])",
        r"(?<=, )(?P<value>[1-9]\d)(?=\.?\s*\Z)",
    ),
    *slot_rules(
        slots.RELATIONSHIP,
        "word",
        "before",
        "single married engaged divorced widowed separated relationship widow widower",
        rf"\b(?:(?:got|happily|newly|recently|now) ){{0,2}}(?P<value>{TIES})"
        r"(?=[.,;!?)]|\s*\Z|\s(?:and|but|now|again|last|for \d|since|to (?-i:[A-Z])|to my|to a|with no|with (?:two|three|a) kids?)\b)",
        r"(?<!getting )\b(?:(?:got|recently|now) )?(?P<value>married|divorced|widowed|separated)(?= (?:in|this|on|two|three|a) (?-i:(?:[A-Z]\w{1,30}|\d{4}|spring|summer|autumn|fall|winter|week|month|year|years|weeks|months))\b)",
    ),
    *slot_rules(
        slots.RELATIONSHIP,
        "word",
        "before",
        "broke split",
        r"\b(?:broke|split) up\b",
        value="single",
    ),
)
_PLACES: Final = (
    *slot_rules(
        slots.HOME,
        "name",
        "before",
        "live lives living lived reside resides based days permanently good settled moved relocated emigrated move moving relocating left share rent",
        r"\b(?:live|lives|living|reside|resides|based|settled(?: down)?){NOW}(?: (?:here|over|out|alone|together|abroad|happily|with [^.,;!?\n]{1,30}?|since \d{4}))?"
        r" (?:in|near|outside|around) (?:(?:an?|the|our|my) (?:[^\W\d_]+ ){0,3}?(?:flat|apartment|house|studio|place|room|home|suburbs?|town|village|city|cottage|outskirts|center|centre|part|district|countryside)(?: (?:of|in|near|outside)) )?(?:downtown |central |the city of |north |south |east |west )?{V}",
        r"\b(?:share|rent|have|own)(?:s|ing)? (?:an?|the|our) (?:[^\W\d_]+ ){0,2}?(?:flat|apartment|house|room|studio|place)(?: with [^.,;!?\n]{1,25}?)? in {V}",
        r"\blived{NOW} in {V}",
        r"\b(?:moving|relocating)(?: (?:back|home|out|over))? to {V}",
        r"\b(?:moved|relocated|emigrated|transferred)(?: (?:house|back|over|out|up|down|permanently|here|away|together|with [^.,;!?\n]{1,20}?)){0,2}"
        r"(?: from {OLD})?(?: (?:back|over|down|up))? to (?:(?:an?|the|our|my) (?:[^\W\d_]+ ){0,3}?(?:flat|apartment|house|place|suburb|town|village) (?:of|in|near) )?{V}",
        r"\b(?:moved|relocated)(?: here)?(?: from {OLD}) (?:back )?to {V}",
        r"\bmoved?(?: back)? in(?:to)? [^.,;!?\n]{1,40}? in {V}",
        r"\b(?:moved|relocated)(?: away| out)? (?:from|of|out of) {GONE}(?=[.,;!?)]|\s*\Z|\s(?:last|in|on|for|this|years?|and|because|since)\b)",
        r"\b(?:don['’]t|doesn['’]t|do not|does not|no longer) live (?:in )?(?P<gone>"
        + slots.WORDS
        + r")(?=[.,;!?)]|\s*\Z|\s(?:any ?more|now|and|but|since)\b)",
        r"\bleft (?P<gone>" + slots.WORDS + r") (?:for good|behind|forever|for ever)\b",
    ),
    *slot_rules(
        slots.HOME,
        "name",
        "speaker",
        "home city town hometown residence live days good permanently flat house apartment moving place moved settled relocated",
        r"\b(?:I['’]m|we['’]re|I am|we are) (?:now |both |all )?in {V} (?:these days|for good|permanently)\b",
        r"{MY} (?:new |current )?(?:home|home city|city|town|residence)(?: city)? is{NOW}(?: in)? {V}",
        r"(?:\A|[.,;!] )(?:new|our new|my new) (?:home|flat|house|apartment|place) is{NOW}(?: in)? {V}",
        r"(?:\A|, )(?:from|at) {V}, (?:that['’]s|it['’]s|this is) where I live",
        r"(?:\A|[,;] |\bfrom )(?P<value>(?-i:[A-ZÀ-Þ])[\w'’-]{1,20}), (?:that['’]s |which is )?where (?:I|we) live",
        r"\bmoving(?: [^.,;!?\n]{1,20}?)? from {OLD} to {V}(?=[.,;!?]|\s*\Z)",
        r"\b(?:moved|settled|relocated) to {V} (?:last|this|in|two|three|a) (?:week|month|year|summer|spring|winter|autumn|fall)",
    ),
    *slot_rules(
        slots.FROM,
        "name",
        "before",
        "from originally come comes grew born raised",
        r"(?<!not )(?:(?<=I['’]m )|(?<=im )|(?<=am )|(?<=is )|(?<=are )|(?<=originally )|(?<=actually )|(?<=I )|(?<=we )|(?<=['’]s ))(?:come |comes |originally |actually ){0,4}from {V}(?! (?:to|is|was|last|until)\b)",
    ),
    *slot_rules(
        slots.GREW_UP,
        "name",
        "before",
        "grew raised born",
        r"\b(?:grew up|was raised|were raised|raised|brought up|was born|born and raised|born)(?: and raised)? in {V}",
    ),
    *slot_rules(
        "nationality",
        "any",
        "before",
        "passport nationality citizen citizenship " + DEMONYMS.replace("|", " "),
        rf"(?:(?<=I['’]m )|(?<=im )|(?<=am )|(?<=half )|(?<=is )|(?<=originally ))(?P<value>(?-i:{DEMONYMS}))(?=[.,;!)]|\s*\Z|\s(?:and|but|by|so|originally|myself)\b)",
        rf"\b(?:have|hold|got|with)(?: an?)? (?P<value>(?-i:{DEMONYMS})) (?:passport|citizenship|nationality)",
    ),
    *slot_rules(
        slots.BIRTHDAY,
        "date",
        "speaker",
        "birthday b-day bday birthdate birth dob",
        r"{MY} (?:actual |real )?(?:birthday|b-day|bday|birth ?date|date of birth|dob)"
        r"(?:['’]s| is| was| falls)(?: (?:actually|really|on|in|the|not the|the day after [^.,;!?\n]{1,20},)){0,3}"
        r"(?: not [^,.;!?\n]{1,30}?,?(?: but)?(?: on)?)?,? {D}",
    ),
    *slot_rules(slots.BIRTHDAY, "date", "before", "born", r"\bborn (?:on |in )?{D}"),
)

PEOPLE: Final = (*_FAMILY, *_PLACES)
"""The rules of English for people and places."""
