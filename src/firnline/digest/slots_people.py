"""How people state in English what they are and have; see `firnline.digest.slot_patterns`."""

# ruff: noqa: RUF001, E501 - other scripts are meant, and patterns stay on one line

from __future__ import annotations

from typing import Final

from firnline.digest import slot_patterns as slots
from firnline.digest.slot_nouns import (
    ANIMALS,
    CONDITIONS,
    DEMONYMS,
    DURABLES,
    GAMES,
    INSTRUMENTS,
    JOBS,
    LANGUAGES,
    MEDICINES,
    NO_JOBS,
    STATES_OF_HEALTH,
    TITLES,
)
from firnline.digest.slot_patterns import slot_rules

_KIN_WORDS: Final = (
    "mother father mom mum mommy mummy dad daddy parents wife husband partner girlfriend boyfriend spouse fiancé fiancée fiance fiancee ex ex-wife ex-husband"
    " son daughter child kid kids children baby boy boys girl girls twin twins brother brothers sister sisters sibling siblings grandmother grandfather grandma grandpa"
    " grandson granddaughter grandparents grandchild grandkids nan nana granny aunt auntie uncle cousin cousins niece nephew stepson stepdaughter stepmother stepfather stepmom"
    " stepdad stepbrother stepsister mother-in-law father-in-law brother-in-law sister-in-law son-in-law daughter-in-law godmother godfather godson goddaughter"
    " friend friends buddy mate roommate roommates flatmate flatmates housemate colleague colleagues coworker coworkers co-worker boss manager supervisor teacher tutor coach"
    " trainer doctor dentist therapist lawyer accountant landlord landlady neighbor neighbors neighbour neighbours nanny builder plumber publisher editor teammate classmate"
    " co-founder cofounder physician surgeon neurologist cardiologist psychiatrist psychologist dermatologist physio physiotherapist handyman contractor tenant babysitter"
    " assistant secretary client mentor advisor adviser agent accompanist drummer singer bassist guitarist pianist gardener cleaner hairdresser barber mechanic electrician"
    " midwife nurse vet instructor professor principal carer caregiver pastor priest rabbi"
)
KIN: Final = (
    r"(?:mother in law|father in law|brother in law|sister in law|son in law|daughter in law|best man|business partner|step ?mum|"
    + "|".join(sorted(set(_KIN_WORDS.split()), key=len, reverse=True))
    + r")"
)
"""Nouns for people whom a speaker calls theirs."""
ANCESTRY: Final = (
    r"(?:older|younger|elder|eldest|oldest|youngest|little|big|best|twin|late|only|dear|lovely|own|new|old|two|three|four|running|first|second"
    r"|current|former|great|good|close|ex|adult|teenage|beloved|future|middle)"
)
_WHOSE: Final = rf"\b(?:my|our) (?:{ANCESTRY} ){{0,2}}(?P<whose>{KIN})"
_KIN_CUES: Final = f"{_KIN_WORDS} {_KIN_WORDS.replace('-', ' ')} man law"
_TITLED: Final = r"(?P<value>(?:(?:Mrs?|Ms|Dr|Prof)\.? )?(?-i:[A-ZÀ-Þ])(?!['’])[\w-]{1,20}(?: (?-i:[A-ZÀ-Þ])[\w-]{1,20}){0,2})"
_CALLED: Final = r"(?: (?P<called>(?-i:[A-ZÀ-Þ])[\w'’-]{1,20}))?"
_SMALL: Final = r"one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
_NUMBER: Final = rf"(?:{_SMALL}|\d{{1,3}})"
_HAVE: Final = r"(?:\b(?:have|has|got|having)(?: also| just| now| already)?(?: got)? |(?<=['’]ve )(?:also )?(?:got )?)"
_SOME: Final = rf"(?:an? |{_NUMBER} |some |a couple of |a few )"
_DIETS: Final = "vegan|vegetarian|pescatarian|flexitarian|omnivore|carnivore|keto|paleo"
_RESTRICTED: Final = (
    r"(?:lactose|gluten|fructose|histamine)[ -]intolerant|gluten[ -]free|dairy[ -]free|halal|kosher"
)
_STOP: Final = (
    r"(?=[.,;!?)–—]|\s-\s|\s*\Z|\s(?:and|but|so|because|since|now|too|for|who|by|as|again|after|last|these|this|btw|lol"
    r"|diet|anymore|myself|with|while|if|though|in|since|two|three|about|around|at|when|this|from)\b)"
)
_TIES: Final = (
    "single|married|engaged|divorced|widowed|separated|in a relationship|a widower|a widow"
)
_OWN_THINGS: Final = (
    r"(?:phone|telephone|mobile|cell|e-?mail|postal|home|work|office|delivery|shipping|billing|mailing|street|policy|order|case|member(?:ship)?"
    r"|customer|reference|booking|invoice|license|plate|flight|room|student|employee|serial|contract|tracking|claim"
    r"|shoe|shirt|dress|ring|user|account|dietary|time|wifi|current|new|discord|twitch|instagram|twitter|github|steam)"
)
_DIGITS: Final = r"(?P<value>(?=[^,;!?\n]{0,30}\d)[^,;!?\n]{1,40}?)(?=[,;!?)]|\.\s|\.?\s*\Z|\s(?:and|but|so|now|if|please|btw)\b)"
_NAMED: Final = r"(?P<value>(?-i:[A-ZÀ-Þ])[\w'’.&-]{1,25}(?: (?:(?-i:[A-ZÀ-Þ0-9])[\w'’.&-]{0,25}|of|de|van|von|the)){0,4})"
_IS: Final = r"(?:['’]s| is| was| changed to| has changed to| has changed[,:;]? (?:and )?(?:it(?:['’]s| is)|to|now it(?:['’]s| is)))"

_FAMILY: Final = (
    *slot_rules(
        slots.NAME,
        "name",
        "speaker",
        _KIN_CUES,
        rf"{_WHOSE}(?:['’]s name(?: is|['’]s)|,? (?:is |who is |who['’]s )?(?:called|named)| goes by) {{P}}",
        rf"{_WHOSE} is {_TITLED}(?=[.,!;)]|\s*\Z| and (?:my|our|I|we)\b)",
        rf"(?P<value>(?-i:[A-ZÀ-Þ])[\w'’-]{{1,20}}(?: (?-i:[A-ZÀ-Þ])[\w'’-]{{1,20}})?)(?:,? (?:is )?| \()(?:my|our) (?:{ANCESTRY} ){{0,2}}(?P<whose>{KIN})(?=[,.;!)]|\s*\Z)",
        rf"\b(?:my|our) (?:{ANCESTRY} ){{0,2}}(?P<whose>(?!\w+s\b){KIN}|boss),? {_TITLED}(?=[,.;!)'’]|\s*\Z|\s(?:is|has|was|and|will|who|says|said|thinks|lives|works|wants|loves"
        r"|hates|likes|can|can['’]t|moved|studies|plays|handles|turned|just|set|got|does|doesn['’]t|started|helps|also|still|said|told|made|runs|took|came|went|goes|comes|visits|needs|prefers|with|\(|[a-z]+s)\b|\s\()",
        rf"\bI(?:['’]ve| have)?(?: got)? an? (?:{ANCESTRY} ){{0,2}}(?P<whose>{KIN}),? (?:called|named|who is called) {{P}}",
    ),
    *slot_rules(
        slots.CHILDREN,
        "text",
        "before",
        "kids kid children child sons son daughters daughter boys girls twins mother father mom mum dad parent",
        rf"(?:{_HAVE}|\b(?:raise|raising) )(?P<value>(?:{_NUMBER}|no|a|twin|several)(?: (?:small|little|young|grown|adult|teenage|beautiful|lovely|older|school-age|wonderful|grown-up|adopted))?"
        r" (?:kids?|children|child|sons?|daughters?|boys?|girls?|twins)(?:,? (?-i:[A-Z])\w{1,15}(?: \(\d{1,2}\))?(?:(?:,| and) (?-i:[A-Z])\w{1,15}(?: \(\d{1,2}\))?){0,4})?)"
        r"(?=[.,;!?)–—]|\s-\s|\s*\Z|\s(?:and|but|so|who|aged|under|now|already|with|from|in|at|that)\b)",
        rf"\ban? (?:single |proud |working |stay-at-home )?(?P<value>(?:mother|father|mom|mum|dad|parent) of (?:{_NUMBER}|a \w+))",
    ),
    *slot_rules(
        slots.CHILDREN,
        "text",
        "speaker",
        "kids children sons daughters boys girls twins",
        rf"\b(?:my|our) (?P<value>(?:{_NUMBER}) (?:small |little |young |grown |adult |teenage )?(?:kids|children|sons|daughters|boys|girls))\b",
        r"\bthe (?P<value>twins (?:are|is) (?:\w+|\d+)(?: months?| years?)?(?:, (?-i:[A-Z])\w+ and (?-i:[A-Z])\w+)?)",
        r"(?<=[,;] )(?P<value>no kids|no children|two kids|three kids)(?=[.,;!])",
    ),
    *slot_rules(
        slots.SIBLINGS,
        "text",
        "before",
        "sister brother sisters brothers siblings",
        rf"\b(?:have|got)(?: got)? (?P<value>(?:an?|{_NUMBER}|no)(?: (?:older|younger|little|big|twin|half))? (?:sisters?|brothers?|siblings?)(?: and (?:an?|{_NUMBER})(?: (?:older|younger|little|big|twin))? (?:sisters?|brothers?))?)\b",
    ),
    *slot_rules(
        slots.AGE,
        "word",
        "before",
        "im i'm i’m am is turned old yo years year at",
        rf"(?<![$€£#.,:\d])\b(?P<value>\d{{1,2}}|{_SMALL}|[a-z]+ty(?:-\w+)?)(?: years?[ -]olds?| y/?o\b| yrs?(?: old)?)\b",
        rf"(?<![$€£#.,:\d\w-])(?P<value>\d{{1,2}}|{_SMALL})(?! ?(?:%|:|am|pm|km|kg|cm|minutes|hours|days|weeks|months|miles))"
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
        rf"\b(?:(?:got|happily|newly|recently|now) ){{0,2}}(?P<value>{_TIES})"
        r"(?=[.,;!?)]|\s*\Z|\s(?:and|but|now|again|last|for \d|since|to (?-i:[A-Z])|to my|to a|with no|with (?:two|three|a) kids?)\b)",
        r"(?<!getting )\b(?:(?:got|recently|now) )?(?P<value>married|divorced|widowed|separated)(?= (?:in|this|on|two|three|a) (?-i:(?:[A-Z]\w+|\d{4}|spring|summer|autumn|fall|winter|week|month|year|years|weeks|months))\b)",
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
        r"(?<!not )(?:(?<=I['’]m )|(?<=im )|(?<=am )|(?<=is )|(?<=are )|(?<=originally )|(?<=actually )|(?<=I )|(?<=we )|(?<=['’]s ))(?:come |comes |originally |actually )*from {V}(?! (?:to|is|was|last|until)\b)",
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
_WORK: Final = (
    *slot_rules(
        slots.EMPLOYER,
        "name",
        "before",
        "work works working worked employed joined job position role gig hired employer jobs companies fired laid am i'm i’m im start starting started signed teach teaches began quit left resigned lost freelance",
        r"\b(?:work|works|working|employed|hired|freelance|freelancing|consult|intern|interning)(?: (?:now|currently|remotely|again|full[- ]time|part[- ]time|freelance|there"
        r"|as an? [^.,;!?\n]{1,40}?|in [a-z][^.,;!?\n]{1,25}?)){0,2} (?:at|for|with|by) (?!a |an |my |our |home\b){V}",
        r"\bjoined (?!the |a |an |my |our ){V}",
        r"\bworked (?:at|for) (?!a |an |my |our |the )(?P<value>(?-i:[A-Z])[\w&'’-]{1,20}(?: (?-i:[A-Z])[\w&'’-]{1,20}){0,2})",
        rf"\b(?:(?:an?|the) )?(?:[^\W\d_]{{2,20}} ){{0,2}}(?:{JOBS}) (?:at|with|for) (?:the )?{{V}}",
        r"\b(?:started|got|landed|took|accepted|found|have|has|began)(?: an?| my| the)?(?: (?:new|better|different|great|part-time|full-time))?(?: [^\W\d_]{2,20})? (?:job|position|role|gig|offer)(?: as an? [^.,;!?\n]{1,40}?)? (?:at|with|for|from) (?:the )?{V}",
        r"\b(?:started|began|starting|start|signed)(?: (?:work|working|to work|on))? (?:at|with) {V}",
        r"\b(?:switched|changed) (?:jobs?|companies|employers?)(?: from {OLD})?(?: to|,? and now work (?:at|for)|,? (?:and )?(?:I['’]m |am |now ){1,2}(?:at|with)(?: the)?) {V}",
        r"\b(?:teach|teaches|teaching)(?: [^.,;!?\n]{1,30}?)? at (?:the )?{V}",
        r"\b(?:quit|left|resigned from|lost) (?:my|his|her|their) (?:job|position|role)(?: (?:at|with) {GONE})?",
        r"\b(?:don['’]t|doesn['’]t|do not|does not|no longer) work (?:at|for|with) {GONE}",
        r"\b(?:got |was |were |been )(?:fired|laid off|let go)(?: (?:from|by) {GONE})?",
        r"\bhanded in my notice(?: at {GONE})?",
    ),
    *slot_rules(
        slots.EMPLOYER,
        "text",
        "before",
        "work works working",
        r"\b(?:work|works|working)(?: remotely| freelance| part-time| full-time| shifts)? (?:at|for) (?P<value>an? (?!home|lot|while|few|bit)(?:[^\W\d_][\w'’-]{1,20} ){0,3}?[^\W\d_][\w'’-]{2,20})(?=[.,;!?)]|\s*\Z|\s(?:in|and|but|so|as|since|that|which|near|on|where|for|there|here|called)\b)",
    ),
    *slot_rules(
        slots.EMPLOYER,
        "name",
        "speaker",
        "employer company workplace firm job here",
        r"{MY} (?:new |current )?(?:employer|company|workplace|firm) is(?! called){NOW} {V}",
        r"{MY} (?:new |current )?job is{NOW} (?:at|with) {V}",
        r"(?-i:[A-ZÀ-Þ])\w+ here, (?:an? |the )?[a-z][^.,;!?\n]{2,30}? (?:at|from|with) {V}",
    ),
    *slot_rules(
        slots.CHANGE,
        "any",
        "before",
        "left quit joined went",
        r"\b(?:left|quit) (?!my |the |a |his |her ){OLD} (?:for(?! good\b| now\b| ever\b| home\b| work\b| the\b| a\b)|to join|and (?:joined|started at|went to|now work (?:at|for))) {V}",
    ),
    *slot_rules(
        slots.ENDED,
        "any",
        "before",
        "left quit",
        r"\b(?:left|quit) (?!my |the |a |his |her |for |home|it|early|this|that|some|them|him|behind)(?P<gone>(?-i:[A-Z])[\w&'’-]{1,20}(?: (?-i:[A-Z])[\w&'’-]{1,20})?)(?=[.,;!]|\s*\Z|\s(?:last|in|on|after|yesterday|because|since|and|this)\b)",
    ),
    *slot_rules(
        slots.JOB,
        "text",
        "before",
        "work works working became promoted teach teaches run manage start starting job freelance promotion",
        rf"\b(?:work|works|working|start|starting|started){{NOW}}(?: (?:freelance|full[- ]time|part[- ]time|nights|days|remotely|(?:night|day|late|early) shifts?))? as (?:an? |the )?+(?!(?:team|group|whole|couple|unit|kid|child|teenager|result|family|reminder|favor|gift|test|joke)\b)(?P<value>(?:{slots.PIECE} ){{0,4}}?{slots.PIECE})(?! player\b)(?=[.,;!?)]|\s-\s|\s*\Z|\s(?:and|but|so|in|at|for|with|from|on|near|since|who|because|now|too|here|there|by|under)\b)",
        rf"\b(?:became|become) an? (?P<value>(?:[^\W\d_]{{2,20}} ){{0,2}}(?:{JOBS}))\b",
        r"\bpromoted to (?:an? |the )?(?P<value>(?:[^\W\d_][\w-]{1,20} ){0,3}?[^\W\d_][\w-]{1,20})(?=[.,;!?)]|\s*\Z|\s(?:and|but|at|in|last|this|of|so|now|today|yesterday)\b)",
        r"\b(?P<value>(?:teach|teaches|manage|manages) (?!me|you|him|her|them|us|my|to|the same|a )(?:the )?(?:[^\W\d_][\w'’-]{1,20} ){0,2}?[^\W\d_][\w'’-]{2,20})(?=[.,;!?)]|\s*\Z|\s(?:at|in|and|but|so|for|of|to|there|here)\b)",
    ),
    *slot_rules(
        slots.JOB,
        "word",
        "before",
        "am is i'm i’m im are a an the retired self-employed unemployed freelance "
        + TITLES.replace("|", " ")
        + " "
        + JOBS.replace("|", " ").replace("(?:", " ").replace(")", " ").replace("?", " "),
        rf"\b(?P<value>(?:(?!a\b|an\b|the\b|my\b|not\b|and\b|or\b|of\b|in\b|at\b|to\b|for\b|that\b|with\b|chance\b|your\b|better\b|good\b|great\b|bad\b)[^\W\d_][\w-]{{1,20}} ){{0,3}}(?:{JOBS}))(?=[.,;!?)–—]|\s-\s|\s*\Z|\s(?:and|but|so|by|at|in|for|from|who|myself|on|with|now|here|as|since|working|btw|near|too|there|living|of \d|then|these|day)\b)",
        rf"\b(?:the|an?) (?P<value>(?:(?!a\b|an\b|the\b|my\b|of\b|to\b|good\b|bad\b|bit\b|lot\b|better\b|great\b|big\b)[^\W\d_][\w-]{{1,20}} ){{0,2}}(?:{TITLES}))(?=[.,;!?)–—]|\s-\s|\s*\Z|\s(?:and|but|so|at|in|for|of|here|there|on|with|now|since|by)\b)",
        rf"\ban? (?P<value>(?:(?:retired|freelance|part-time|full-time|junior|senior|trainee|qualified|registered|licensed|certified|professional|former) )?(?!{NO_JOBS}\b)[a-z]{{3,15}}(?:er|or|ist|ian|eer|lord|lady|man|woman))(?=[.,;!)–—]|\s-\s|\s*\Z|\s(?:and|but|so|by trade|by profession|at|in (?-i:[A-Z])|for a living|with \w+ (?:flats|years|kids|employees|clients|students)|here|now|myself|from (?-i:[A-Z])|working)\b)",
        r"\b(?P<value>retired|self[- ]employed|unemployed|between jobs|a freelancer|freelance|a stay[- ]at[- ]home (?:mom|mum|dad|parent|mother|father))(?=[.,;!?)]|\s*\Z|\s(?:and|but|so|now|since|last|for|from|too)\b)",
    ),
    *slot_rules(
        slots.JOB,
        "text",
        "speaker",
        "job profession occupation title living here",
        r"(?-i:[A-ZÀ-Þ])\w+ here, (?:an? |the )?(?P<value>[a-z][^.,;!?\n]{2,30}?)(?= (?:at|from|with|for)\b)",
        r"{MY} (?:new |current |day )?(?:job title|job|profession|occupation|title) is{NOW} (?!at |with |to |not |on |in |very |so |too |really |a bit |the )(?:an? )?{N}",
    ),
    *slot_rules(
        slots.JOB,
        "text",
        "before",
        "retired",
        r"\bretired (?:last|in|two|three|five|ten|\d|early|this|from)\b",
        value="retired",
    ),
    *slot_rules(
        slots.RUNS,
        "text",
        "before",
        "run runs own owns manage founded started opened have business shop bakery company conduct conducts coach coaches direct lead leads edit host organize organise chair preside",
        r"\b(?:conduct|conducts|coach|coaches|direct|lead|edit|host|organi[sz]e|chair) (?P<value>(?:an?|the|our|my) (?!meeting|call|team meeting|way|charge|problem)(?:[^\W\d_][\w'’-]{1,20} ){0,3}?[^\W\d_][\w'’-]{2,20})(?=[.,;!?)]|\s*\Z|\s(?:in|and|but|so|on|every|at|for|with|of)\b)",
        r"\b(?:run|runs|own|owns|co-own|founded|opened|started)(?: and run)? (?P<value>(?:an?|my own|our own|the) (?:[^\W\d_][\w'’-]{1,20} ){0,3}?(?:bakery|shop|store|company|business|restaurant|caf[eé]|studio|agency|farm|salon|startup|start-up|practice|hotel|bar|pub|gallery|brewery|vineyard|school|gym|blog|podcast|channel|newsletter|workshop|garage|clinic|nonprofit|charity|firm|consultancy|bookshop|bookstore|winery|bistro|food truck|kennel|daycare|nursery))\b",
    ),
    *slot_rules(
        slots.STUDIES,
        "text",
        "before",
        "study studies studying student major majoring degree phd master's year doing degree graduated",
        r"\b(?:study|studies|studying|majoring in|reading) (?!for|with|at|in\b|on|hard|a lot|every|from|the\b|how|whether)(?P<value>(?:[^\W\d_][\w'’&-]{1,20} ){0,3}?[^\W\d_][\w'’&-]{2,20})(?=[.,;!?)]|\s*\Z|\s(?:at|in|and|but|so|now|since|here|there|with|for)\b)",
        r"\b(?:an? |the )?(?:(?:first|second|third|fourth|final|last|1st|2nd|3rd|4th)[- ]year )?(?P<value>(?!good|bad|a|an|the|new|young|poor|exchange|phd|part-time|full-time|college|university|grad|graduate)(?:[^\W\d_][\w'’&-]{1,20} )?[^\W\d_][\w'’&-]{2,20}) student(?=[.,;!?)]|\s*\Z|\s(?:at|in|and|but|so|from|living)\b)",
        r"\b(?:doing|pursuing|finishing|getting|have|got|completing|completed)(?: an?| my)? (?P<value>(?:master['’]?s?|bachelor['’]?s?|phd|ph\.d\.?|doctorate|mba|degree|diploma)(?: degree)? in (?:[^\W\d_][\w'’&-]{1,20} ){0,3}?[^\W\d_][\w'’&-]{2,20})(?=[.,;!?)]|\s*\Z|\s(?:at|from|and|but|so|with)\b)",
    ),
    *slot_rules(
        "works",
        "text",
        "before",
        "work works shifts nights",
        r"\b(?:work|works|working) (?P<value>(?:night|day|late|early|double|long|rotating|weekend) shifts?|nights|weekends|from home|remotely|part[- ]time|full[- ]time|in (?:hospitality|healthcare|marketing|sales|finance|construction|retail|education|tech|it|hr|logistics|insurance|advertising|publishing|banking|real estate|tourism|agriculture|film|fashion|law|politics|government|manufacturing|consulting))\b",
    ),
    *slot_rules(
        slots.INCOME,
        "any",
        "before",
        "earn earns make salary",
        r"\b(?:earn|earns|earning|make|makes)(?: (?:about|around|roughly))? (?P<value>[$€£]?\d[\d.,]{1,9}k?(?: (?:euros?|dollars?|pounds|kroner|francs))?(?: (?:a|per) (?:month|year|hour|week))?(?: (?:after|before) tax(?:es)?| net| gross)?)",
    ),
)
_BODY: Final = (
    *slot_rules(
        slots.DIET,
        "word",
        "before",
        "vegan vegetarian pescatarian flexitarian omnivore carnivore keto paleo intolerant gluten dairy halal kosher",
        r"\b(?:(?:went|gone|turned|became|become|being|back to being|an?|fully|strictly|mostly|strict) ){0,3}"
        rf"(?P<value>{_DIETS}){_STOP}",
        rf"\b(?:follow|follows|following|switched to|started|went on|adopted|on)(?: an?| the)?(?: strict)? (?P<value>{_DIETS})(?: diet)?{_STOP}",
        rf"\b(?:no longer|stopped|quit|gave up|given up|dropped)(?: being| doing| the| my)? (?:an? )?(?P<gone>{_DIETS}){_STOP}",
        rf"\bnot (?:an? )?(?P<gone>{_DIETS}) any ?more\b",
        rf"\b(?:(?:eat|eats|keep|keeps|only eat|an?|strictly|mostly) ){{0,2}}(?P<value>{_RESTRICTED}){_STOP}",
    ),
    *slot_rules(
        slots.DIET,
        "word",
        "before",
        "meat",
        r"\b(?:(?:started|began|resumed|went back to|back to|gone back to)(?: eating)? meat|eat(?:s|ing)? meat(?= (?:again|now|these days)))",
        value="eats meat",
    ),
    *slot_rules(
        slots.DIET,
        "word",
        "before",
        "fish seafood",
        r"\b(?:(?:started|began|resumed|went back to|back to)(?: eating)? (?:fish|seafood)|eat(?:s|ing)? (?:fish|seafood)(?= (?:again|now|these days)))",
        value="eats fish",
    ),
    *slot_rules(
        slots.DIET,
        "word",
        "before",
        "meat",
        r"\b(?:stopped eating|gave up|given up|quit|quit eating|no longer eat|don['’]t eat|do not eat|doesn['’]t eat|cut out) (?:any )?meat\b",
        value="no meat",
    ),
    *slot_rules(
        slots.AVOIDS,
        "list",
        "before",
        "eat eats drink drinks drinking eating touch smoke",
        r"\b(?:don['’]t|doesn['’]t|do not|does not|can['’]t|cannot|no longer|never|stopped|quit)(?: really| usually| ever)? (?:eat|eating|drink|drinking|have|touch|tolerate)(?: any)? (?!(?<!never eat )meat\b|it\b|that\b|them\b|this\b|much\b|out\b|enough\b|well\b|a\b|an\b|the\b|to\b|breakfast\b|lunch\b|dinner\b|before\b|after\b|time|your|my|here|there|anything|what|as\b)"
        r"(?P<value>[^\W\d_][\w'’-]{1,20}(?:(?:,? (?:and |or )?)[^\W\d_][\w'’-]{1,20}){0,4}?)(?=[.;:!?()\n—–]|,? (?:but|so|because|since|they|it|only|and I|which|how|what|though|anymore|any more|at all|these|after|before|in|on|for)\b|\s*\Z|, )",
    ),
    *slot_rules(
        slots.AVOIDS,
        "word",
        "before",
        "drink smoke drinking",
        r"\b(?P<value>don['’]t (?:drink|smoke))(?=[.,;!?)]|\s*\Z|\s(?:and|but|anymore|any more|at all|so)\b)",
    ),
    *slot_rules(
        slots.ALLERGY,
        "list",
        "before",
        "allergic allergy allergies intolerance hives reaction",
        r"(?<!not )(?<!longer )(?<!n['’]t )\b(?:(?:badly|severely|highly|deathly|mildly|slightly|terribly|extremely|quite|really|deadly) )?allergic to {L}",
        rf"\b(?:have|has|got|having)(?: got)?(?: an?)?(?: (?:bad|severe|mild|serious|strong|slight|terrible))? (?P<value>(?!food|seasonal|skin|severe|bad|an?\b|no\b)[^\W\d_]{{2,20}}(?: [^\W\d_]{{2,20}})?) (?:allergy|allergies|intolerance){slots.END}",
        r"\b(?:have|has|got)(?: got)?(?: an?)?(?: (?:bad|severe|mild|serious|food))? allergy to {L}",
    ),
    *slot_rules(
        slots.ALLERGY,
        "list",
        "speaker",
        "hives rash allergic",
        r"\b(?P<value>[^\W\d_]{3,20})[, ](?:they |it )?(?:gives?|makes?) me (?:hives|a rash|itchy|swell)",
        r"\bcan['’]t (?:eat|have|touch) (?P<value>[^\W\d_]{3,20}), (?:they|it) gives? me (?:hives|a rash|migraines|cramps)",
    ),
    *slot_rules(
        slots.ENDED,
        "any",
        "before",
        "allergic",
        r"\b(?:not|no longer|isn['’]t|wasn['’]t|aren['’]t) (?:actually )?allergic to {G}",
        r"\bnot (?:actually )?(?:diabetic|dyslexic|vegan|vegetarian) (?:after all|any ?more)\b(?P<gone>)",
    ),
    *slot_rules(
        slots.HEALTH,
        "text",
        "before",
        "have has got had diagnosed suffer suffers suffering surgery living i've i’ve bad "
        + CONDITIONS.replace("|", " ").replace("(?:", " ").replace(")", " ").replace("?", " "),
        rf"\b(?:have|has|got|suffer from|suffers from|suffering from|living with|struggle with|deal with|developed)(?: got| an?| some| severe| my)? (?P<value>(?:(?:mild|severe|chronic|type \w+|bad|slight|high|low|seasonal|two|three|social|an? bad|an? weak|a|early|stage \w+|generalized|recurring|occasional|terrible|bad) ){{0,2}}(?:{CONDITIONS})(?: (?:in my|of the) [^\W\d_]+)?)(?=[.,;!?)–—]|\s-\s|\s*\Z|\s(?:and|but|so|since|that|which|from|because|for|in|on|when|too|now)\b)",
        r"\bdiagnosed with (?P<value>(?:(?:[^\W\d_][\w'’-]{1,20}|\d) ){0,3}?[^\W\d_][\w'’-]{2,25})(?=[.,;!?)]|\s*\Z|\s(?:in|when|at|last|this|and|but|a|two|three|five|years?|after|as|by|since|recently)\b)",
        r"\bhad (?P<value>(?:[^\W\d_]{2,15} ){0,2}?(?:surgery|bypass|transplant|replacement|stroke|heart attack|c-section|hysterectomy)(?: on my [^\W\d_]+)?)\b",
        r"\b(?P<value>broke my (?:leg|arm|wrist|ankle|foot|hip|collarbone|nose|toe|finger|hand|back|rib))\b",
    ),
    *slot_rules(
        slots.HEALTH,
        "word",
        "before",
        STATES_OF_HEALTH.replace("|", " ").replace("-", " ")
        + " "
        + STATES_OF_HEALTH.replace("|", " ")
        + " wheelchair stutter",
        rf"(?<!not )(?<!n['’]t )\b(?P<value>{STATES_OF_HEALTH})(?=[.,;!?)–—]|\s-\s|\s*\Z|\s(?:and|but|so|since|too|in (?:one|both|my|the)|with|from birth|as|because|now|which|myself)\b)",
        r"\b(?P<value>stutter|use a wheelchair|uses a wheelchair|wear glasses|wear hearing aids|wear contacts|wear contact lenses|have a pacemaker)\b",
    ),
    *slot_rules(
        slots.HEALTH,
        "text",
        "speaker",
        "back knee hearing eyesight blood shoulder hip heart eyes",
        r"\b(?P<value>my (?:back|knees?|hearing|eyesight|shoulder|hip|heart|eyes) (?:is|are|isn['’]t|aren['’]t) (?:very |really |not |quite |so |pretty |completely |a bit )?(?:bad|weak|poor|good|great|terrible|damaged|failing|shot|gone|sore|stiff|knackered|ruined|playing up))\b",
        r"{MY} blood type is (?P<value>(?:A|B|AB|O)(?: ?[+-]| (?:positive|negative|pos|neg))?)",
    ),
    *slot_rules(
        slots.MEDICATION,
        "text",
        "before",
        "take takes taking on use prescribed pills medication",
        rf"\b(?:take|takes|taking|am on|['’]m on|is on|use|prescribed|on)(?: (?:daily|some|my|the|low-dose|\d+ ?mg(?: of)?))? (?P<value>(?:[^\W\d_][\w-]{{1,20}} ){{0,3}}(?:{MEDICINES})(?: \d+ ?mg)?)(?=[.,;!?)–—(]|\s-\s|\s*\Z|\s(?:and|but|so|every|in|for|at|daily|each|twice|once|since|with|before|after|when|because|as|from|too|against)\b)",
        r"\bcarry an? (?P<value>inhaler|epi-?pen|insulin pen)\b",
        r"\b(?:use|have|wear|got) an? (?P<value>insulin pump|inhaler|epi-?pen|cpap(?: machine)?|hearing aid)\b",
    ),
    *slot_rules(
        slots.AFRAID,
        "list",
        "before",
        "afraid scared terrified fear phobia phobic",
        r"\b(?:afraid|scared|terrified|petrified) of (?!the future|you|that|this|it\b|losing|being|what|not|making|doing|getting|asking){L}",
        r"\b(?:have|has)(?: got)?(?: an?)? (?:fear|phobia) of {L}",
    ),
)
_TASTES: Final = (
    *slot_rules(
        slots.LIKES,
        "list",
        "before",
        "love loves like likes enjoy enjoys adore adores into fan fond obsessed",
        r"(?<!would )(?<!['’]d )(?<!to )(?<!you )(?<!not )(?<!n['’]t )(?<!n['’]t really )\b(?:love|loves|like|likes|enjoy|enjoys|adore|adores)(?: (?:my|a good|good|some|anything (?:about|with)))? (?!it\b|that\b|this\b|these\b|those\b|them\b|you|your\b|how\b|what\b|when\b|the [a-z]|to (?!cook|read|travel|hike|swim|run|bake|paint|dance|sing|garden|draw|knit|fish|sail|ski|surf|climb|cycle|camp|write\b)|having some|one\b|him\b|her\b|our\b|his\b|their\b|both\b|all\b|each\b|where\b|why\b|an? (?!good)|seeing|being|knowing|not\b|more\b|something|anything\b|everything\b|two\b|either\b|that|if\b|me\b|us\b)(?:to )?{L}",
        r"(?<!not )(?<!n['’]t )(?<!n['’]t really )\b(?:really |so |very |super |totally )?into (?!it\b|that\b|this\b|the\b|an?\b|my\b|some\b|trouble|account|them\b|him\b|her\b|problems?\b){L}",
        r"(?<!not )(?<!not a )\b(?:big |huge |massive |lifelong |great )?(?:fan of|fond of|obsessed with|addicted to) (?!it\b|that\b|this\b|the [a-z]|them\b|him\b|her\b|how\b|your\b){L}",
    ),
    *slot_rules(
        slots.DISLIKES,
        "list",
        "before",
        "hate hates dislike dislikes stand like likes enjoy detest loathe into fan bear",
        r"\b(?:hate|hates|dislike|dislikes|detest|loathe|can['’]t (?:really )?(?:stand|bear)|cannot stand|(?:don['’]t|doesn['’]t|do not|does not|never)(?: really| much| particularly)? (?:like|liked|enjoy))(?: the (?:taste|smell|feel|look|sound|texture) of)? (?!it\b|that\b|this\b|these\b|those\b|them\b|you|your\b|how\b|what\b|when\b|the [a-z]|to\b|when|being\b|one\b|him\b|her\b|our\b|his\b|their\b|my\b|an?\b|where\b|not\b|any\b|if\b|me\b|us\b|all\b|both\b|having to|asking|bothering){L}",
        r"\b(?:not|isn['’]t|n['’]t)(?: really| much| that)? (?:into|a (?:big |huge )?fan of|fond of|keen on|crazy about) (?!it\b|that\b|this\b|them\b|the [a-z]){L}",
    ),
    *slot_rules(
        slots.SPEAKS,
        "list",
        "before",
        "speak speaks fluent native bilingual tongue",
        rf"(?<!n['’]t )(?<!not )(?<!to )(?<!you )\b(?:speak|speaks|fluent in|bilingual in|native speaker of)(?: (?:fluent|some|a (?:bit|little)(?: of)?|good|decent|basic|native|only|both|perfect|broken))? (?P<value>(?:(?:a bit of |some |a little |fluent |basic |good )?(?:{LANGUAGES})(?:,? and |,? but also |, | or )?){{1,6}})",
    ),
    *slot_rules(
        slots.SPEAKS,
        "any",
        "speaker",
        "native mother first language tongue",
        rf"{{MY}} (?:native|mother|first|second) (?:language|tongue) is (?P<value>{LANGUAGES})",
    ),
    *slot_rules(
        slots.LEARNS,
        "list",
        "before",
        "learning learn studying teaching practicing practising",
        rf"\b(?:learning|teaching myself|practi[cs]ing|taking lessons in|taking)(?: (?:some|to (?:speak|play)|how to play))?(?: the)? (?P<value>(?:{LANGUAGES}|{INSTRUMENTS})(?:(?:,? and |, )(?:{LANGUAGES}|{INSTRUMENTS}))?)(?! (?:classes|class|course) (?:is|are))",
    ),
    *slot_rules(
        slots.PLAYS,
        "list",
        "before",
        "play plays playing",
        rf"(?<!to )(?<!n['’]t )(?<!n['’]t really )\b(?:play|plays|playing)(?: (?:the|a bit of|a little|some|mostly|competitive|casual|pickup|a lot of|the electric|bass and))? (?P<value>(?:{INSTRUMENTS}|{GAMES})(?:(?:,? and |, | or )(?:the )?(?:{INSTRUMENTS}|{GAMES}))?)\b",
        r"\bplay(?: mostly| mainly| a lot of)? (?P<value>(?!with|a\b|an\b|it\b|that\b|this\b|the\b|on\b|in\b|around|by\b|along|some\b|games?\b|music\b|sports?\b|video|my\b|at\b|for\b|safe|dumb|devil|fair|nice|well|every|role|out\b|out|to\b|as\b|you)(?:[^\W\d_][\w'’:-]{1,20} ){0,2}?[^\W\d_][\w'’:-]{2,20}(?: and (?:[^\W\d_][\w'’:-]{1,20} )?[^\W\d_][\w'’:-]{2,20})?)(?=[.,;!?)]|\s*\Z|\s(?:on|with|at|in|every|myself|a lot|but|so|since)\b)",
    ),
    *slot_rules(
        slots.HOBBY,
        "list",
        "before",
        "go goes do does hobby hobbies collect collecting weekends",
        r"\b(?:go|goes|going) (?P<value>climbing|bouldering|running|hiking|swimming|cycling|fishing|sailing|surfing|skiing|snowboarding|camping|jogging|kayaking|horse riding|horseback riding|birding|birdwatching|dancing|biking|rowing|diving|scuba diving|hunting)(?= (?:every|on|twice|once|a lot|most|each|three|in my|whenever|regularly|with)|[.,;!]|\s*\Z)",
        r"\b(?:do|does|practi[cs]e|practi[cs]es) (?P<value>yoga|pilates|karate|judo|taekwondo|crossfit|ballet|triathlons?|tai chi|jiu[- ]jitsu|boxing|martial arts|pottery|parkour|gymnastics|archery|fencing|ceramics|woodworking|photography|improv)\b",
        r"\bcollect(?:s|ing)? (?P<value>(?:[^\W\d_][\w-]{1,20} ){0,2}?[^\W\d_][\w-]{2,20}s)(?=[.,;!?)]|\s*\Z|\s(?:and|but|from|since|as)\b)",
    ),
    *slot_rules(
        slots.HOBBY,
        "list",
        "speaker",
        "hobby hobbies pastime",
        r"{MY} (?:main |favou?rite |biggest )?(?:hobby|hobbies|pastime)(?: is| are|['’]s) {L}",
    ),
)
_HAVINGS: Final = (
    *slot_rules(
        slots.PET,
        "any",
        "before",
        "have has got adopted rescued bought getting own keep "
        + ANIMALS.replace("|", " ").replace("s?", " "),
        rf"(?:{_HAVE}|\b(?:adopted|rescued|own|owns|keep|keeps|bought|foster|with|getting)(?: also| just)? )(?!you)(?P<value>(?:{_SOME})?(?:(?!in\b|on\b|with\b|for\b)[^\W\d_][\w-]{{1,15}} ){{0,3}}?(?:{ANIMALS})(?:(?:,? (?:named|called)|, a [^\W\d_]+(?: named| called)?|,)? (?-i:[A-ZÀ-Þ])[\w'’-]{{1,20}}(?: and (?-i:[A-ZÀ-Þ])[\w'’-]{{1,20}})?)?(?: and (?:{_SOME})(?:[^\W\d_][\w-]{{1,15}} ){{0,2}}?(?:{ANIMALS})(?:(?:,? (?:named|called)|,)? (?-i:[A-ZÀ-Þ])[\w'’-]{{1,20}})?)?)(?=[.,;!?)–—(]|\s-\s|\s*\Z|\s(?:and|but|so|who|that|which|at|from|now|too|since|last|with|to|as|because|yesterday)\b)",
    ),
    *slot_rules(
        slots.PET,
        "any",
        "before",
        "have has got we've we’ve i've i’ve",
        rf"\b(?:have|has|got)\b[^.;!?\n]{{3,80}}?,? and (?P<value>(?:{_SOME})(?:[^\W\d_][\w-]{{1,15}} ){{0,3}}?(?:{ANIMALS})(?:(?:,? (?:named|called)|,)? (?-i:[A-ZÀ-Þ])[\w'’-]{{1,20}})?)(?=[.,;!?)–—(]|\s*\Z|\s(?:and|but|so|who|that|which|at|from)\b)",
    ),
    *slot_rules(
        slots.PET,
        "any",
        "speaker",
        ANIMALS.replace("|", " ").replace("s?", " "),
        rf"\b(?:my|our) (?P<value>(?:(?:old|new|little|rescue|beloved|sweet|first|second|other) )?(?:{ANIMALS})(?:['’]s name is|,? (?:is )?(?:named|called)|,)? (?-i:[A-ZÀ-Þ])[\w-]{{1,20}})(?=[.,;!?)'’]|\s*\Z|\s(?:is|has|was|and|will|who|loves|hates|likes|can|just|got|ate|does|keeps|needs|turned|also|still|[a-z]+s)\b)",
        rf"(?P<value>(?-i:[A-ZÀ-Þ])[\w-]{{1,20}}, my (?:(?:old|new|little|rescue) )?(?:{ANIMALS}))(?=[,.;!])",
    ),
    *slot_rules(
        slots.ENDED,
        "any",
        "speaker",
        "died passed put rehomed gone",
        rf"\b(?:my|our|the) (?:(?:old|little|beloved|sweet) )?(?P<gone>(?:{ANIMALS})(?: (?-i:[A-Z])\w+)?) (?:died|passed(?: away| on)?|has died|is gone|was put down|had to be put (?:down|to sleep)|ran away)\b",
        r"(?:\A|[.,;!] |\bthat )(?P<gone>(?-i:[A-Z])[\w-]{1,20}) (?:died|passed away|has died|has passed away|had to be put (?:down|to sleep)|crossed the rainbow bridge)\b",
        rf"\b(?:had to put|rehomed|gave away|lost)(?: down)? (?:my|our) (?P<gone>(?:{ANIMALS}))\b",
    ),
    *slot_rules(
        slots.DRIVES,
        "text",
        "before",
        "drive drives ride rides",
        r"(?<!to )\b(?:drive|drives|ride|rides) (?:an? |my )?(?P<value>(?:beat-up |old |small |big |used |electric |\d{4} )*(?-i:[A-Z])[\w-]{1,20}(?: (?-i:[A-Z0-9])[\w-]{0,20}){0,3}|(?:an? )?(?:motorbike|motorcycle|scooter|vespa|e-bike|van|pickup|truck|convertible))\b",
    ),
    *slot_rules(
        slots.OWNS,
        "text",
        "before",
        "own owns have has got bought purchased i've i’ve",
        r"\b(?:own|owns|have|has|got|bought|purchased)(?: got| just| also)? (?P<value>(?:an?|two|three|my own) (?:(?:new|used|old|second-hand|secondhand|small|big|vintage|refurbished|\d{4}|red|blue|black|white|green|silver) ){0,2}(?-i:[A-Z])[\w.-]{1,20}(?: (?-i:[A-Z0-9])[\w.-]{0,20}){0,3})(?! (?:call|meeting|appointment|interview|deadline|account|question|problem|issue|error|subscription|exam|class|course|degree|accent|passport|visa|license|budget|allergy|background|server|database|cluster|project|contract|ticket|trip|flight|test|friend|boyfriend|girlfriend|wife|husband|teacher|boss|colleague|dog|cat|puppy|kitten|nanny|roots|heritage|ancestry|citizenship|family|name|mother|father|grandmother)s?\b)(?=[.,;!?)–—]|\s-\s|\s*\Z|\s(?:and|but|so|with|that|which|for|from|now|too|since|last|at|in|on|to)\b)",
        rf"\b(?:own|owns|bought|purchased|have|has|got)(?: got| just| also| both)? (?P<value>(?:an?|two|three|only an?) (?:(?!very\b)[^\W\d_][\w-]{{1,15}} ){{0,2}}(?:{DURABLES}))(?=[.,;!?)–—]|\s-\s|\s*\Z|\s(?:and|but|so|with|that|which|for|from|now|too|since|last|at|in|near|on|to|yesterday)\b)",
        rf"\bbought (?P<value>(?:[^\W\d_][\w-]{{1,15}} ){{0,2}}(?:{DURABLES}))(?=[.,;!?)]|\s*\Z|\s(?:last|yesterday|this|from|for)\b)",
    ),
    *slot_rules(
        slots.OWNS,
        "any",
        "before",
        "have has got own bought",
        r"\b(?:have|has|got|own|bought) (?P<value>an? (?:(?!at\b|on\b|in\b|for\b|with\b|of\b|every\b|about\b)[^\W\d_][\w-]{1,15} ){1,2}[a-z]?\d[\w-]{1,10}(?: \d[\w-]{1,8})?)(?! (?:am|pm|minutes?|hours?|days?|years?|people|euros?|dollars?|kg|km|%))(?=[.,;!?)]|\s*\Z|\s(?:and|but|so|with|that|for|from|now)\b)",
    ),
    *slot_rules(
        slots.WISHES,
        "any",
        "before",
        "want",
        r"\b(?P<value>don['’]t want (?:any |a |an )?(?!to\b|it\b|that\b|this\b|you\b|them\b|my\b|him\b|her\b)(?:[^\W\d_][\w'’-]{1,20} ){0,3}?[^\W\d_][\w'’-]{2,20})(?=[.,;!?)]|\s*\Z|\s(?:in|and|but|so|because|at|on|by|for|from|please|any ?more)\b)",
    ),
    *slot_rules(
        slots.ENDED,
        "any",
        "before",
        "sold rid gave cancelled canceled stopped quit longer dropped abandoned retired ditched unsubscribed use using have own",
        r"\b(?:sold|got rid of|gave away|donated|cancelled|canceled|ditched|deleted|unsubscribed from|returned|scrapped)(?: my| our| the)? (?!it\b|that\b|this\b|them\b|order\b|booking\b){G}",
        r"\b(?:stopped|quit|gave up|given up) (?:using|playing|doing|taking|learning|studying|driving|collecting|working with|going to) {G}",
        r"\b(?:no longer|don['’]t|do not|doesn['’]t)(?: really)? (?:use|have|own|play|take|drive|learn|speak|like|love|enjoy|keep|do)(?: (?:the|an?|my|our|any))? (?P<gone>[^\W_][\w'’+#.-]{1,20}(?: [^\W_][\w'’+#.-]{1,20}){0,2}?)(?: any ?more\b|(?<=longer use )|(?=[.!;]?\s*\Z(?<=no longer)))",
        r"\bno longer (?:use|have|own|play|take|drive|learn|do|like|love|enjoy|keep)(?: (?:the|an?|my|our|any))? {G}",
    ),
    *slot_rules(
        slots.OWN,
        "any",
        "speaker",
        "is changed was are it's my our have number reach",
        rf"{{MY}} (?:new |current |actual )?(?P<thing>(?:{_OWN_THINGS} ){{0,2}}(?:number|phone|mobile|cell|id)){_IS}{{NOW}}:? {_DIGITS}",
        rf"{{MY}} (?:new |current |actual )?(?P<thing>(?:{_OWN_THINGS} ){{0,2}}e-?mail(?: address)?){_IS}{{NOW}}:? (?P<value>[\w.+-]{{1,64}}@[\w-]+(?:\.[\w-]+)+)",
        rf"{{MY}} (?:new |current |actual )?(?P<thing>(?:{_OWN_THINGS} ){{0,2}}address){_IS}{{NOW}}(?: at)?:? (?P<value>(?=[^;!?\n]{{0,60}}(?:\d|,))(?-i:[A-ZÀ-Þ0-9])[^;!?\n]{{3,80}}?)(?=[;!?]|\.\s|\.?\s*\Z)",
        rf"{{MY}} (?:new |current )?(?P<thing>(?:{_OWN_THINGS} ){{0,2}}(?:username|handle|nickname|gamertag|pronouns)){_IS}{{NOW}}:? (?P<value>[\w./@#-]{{2,30}})(?=[.,;!?]|\s*\Z| and\b)",
        rf"{{MY}} (?:new |current )?(?P<thing>(?:{_OWN_THINGS} )?(?:size|weight|height|shoe size|resting heart rate|blood pressure)){_IS}{{NOW}} (?P<value>[\d.,'’/]{{1,7}}(?: ?(?:kg|cm|m|lbs?|pounds|inches|ft|feet|bpm))?(?: ?\d{{1,2}})?|(?-i:XXS|XS|S|M|L|XL|XXL))(?=[.,;!?]|\s*\Z| (?:and|now|but)\b)",
        rf"{{MY}} (?:new |current )?(?P<thing>(?:bank|insurance|insurer|landlord|dentist|school|university|college|gym|hotel|destination|time ?zone|airline|phone|laptop|car|bike|camera|computer|pc|gpu|cpu|case|tablet|console|guitar|editor|publisher|provider|carrier|team|club|religion|star sign|plan|subscription|caterer|builder|contractor|doctor|teacher|venue)){_IS}{{NOW}} (?:(?:called|with|an?|the) )?{_NAMED}(?=[.,;!?)]|\s*\Z|\s(?:and|but|so|now|in|at|on|with|which|who|since)\b)",
        r"{MY} (?:new |current )?(?P<thing>(?:phone|car|laptop|bike|camera|computer|pc|gpu|case|tablet|guitar|oven|boiler)) is{NOW} an? (?P<value>(?:[\w-]{2,15} ){0,2}[\w-]{2,20})(?=[.,;!?)]|\s*\Z|\s(?:and|but|so|now)\b)",
        r"{MY} (?:new |current )?(?P<thing>seat) is{NOW} (?P<value>\d{1,2}[A-K])\b",
        r"{MY} (?P<thing>favou?rite (?!thing|part|one\b|time|moment|way|bit|aspect|memory|piece|feature|idea)[^\W\d_]{2,20}(?: [^\W\d_]{2,20}){0,2}?)(?: is| are| was|['’]s| has always been| have always been){NOW} (?!to\b|when\b|that\b|how\b|not\b|the one\b)(?P<value>[^.;!?\n]{1,60}?)(?=[.;!?]|,(?! \w+(?: and| or|,))|\s(?:but|because|since|though|so|now|these days)\b|\s*\Z)",
        rf"\b(?:have|got) an? new (?P<thing>(?:{_OWN_THINGS} )?(?:number|phone number|e-?mail(?: address)?|address))[:,]? (?:it(?:['’]s| is) )?{_DIGITS}",
        rf"\b(?:changed|updated) (?:my|our) (?P<thing>(?:{_OWN_THINGS} )?(?:number|address|e-?mail)) to {_DIGITS}",
    ),
    *slot_rules(
        slots.OWN,
        "any",
        "before",
        "have drive got handed",
        rf"\b(?P<value>(?:left|right)-handed|ambidextrous){_STOP}(?P<thing>)",
    ),
)
_AIMS: Final = (
    *slot_rules(
        slots.GOAL,
        "text",
        "speaker",
        "goal dream aim want wanna trying hoping planning training like love hope plan",
        r"{MY} (?:main |big |biggest |long-term )?(?:goal|dream|aim|resolution)(?: for [^.,;!?\n]{1,20})? is to (?P<value>(?:become|learn|lose|run|finish|buy|retire|open|start|quit|stop|save|travel|get|move|publish|write|earn|graduate|complete|climb|visit|read|pay off|live|sail|swim|cycle|have|reach)\b[^.,;!?\n]{2,60}?)(?=[.,;!?]|\s*\Z|\s(?:but|so|because|and I)\b)",
        r"\b(?:I|we)(?: really| always| eventually| also)?(?:['’]d (?:like|love)| want| wanna(?= )| hope| plan|['’]m (?:planning|hoping|trying|training)| am (?:planning|hoping|trying)|['’]re (?:planning|hoping|trying))(?: to|(?<=wanna)|(?<=training) for)? (?P<value>(?:(?:become|be) an? (?:\w+ )?(?:\w+(?:er|or|ist|ian|eer|man|woman|nurse|vet|pilot|chef|judge|artist|cop))\b|become an?|learn (?!more|how|about|if|why|to send)|lose \d+|run (?:my|a|an|the) (?:\w+ )?(?:half[- ]?)?marathon|buy an? (?:\w+ )?(?:house|flat|apartment|car|home)|retire|open (?:my|a|an|our) (?:\w+ )?(?:shop|store|caf[eé]|restaurant|bakery|business|second shop)|start (?:my|a|an|our) (?:own )?(?:\w+ )?(?:business|company|family|shop|startup)|quit smoking|stop smoking|save \S*\d|get (?:fit|in shape|a dog|a cat|pregnant|promoted|my driving licen[cs]e)|have (?:kids|children)|(?:a|the) (?:half[- ]?)?marathon)[^.,;!?\n]{0,50}?)(?=[.,;!?]|\s*\Z|\s(?:but|so|because|and|before|what|how)\b)",
    ),
    *slot_rules(
        slots.PLAN,
        "text",
        "before",
        "off flying fly go going traveling travelling moving visiting driving leaving travel heading getting starting running visit booked reserved signed registered hired expecting taking start appointment surgery exam interview",
        rf"\b(?P<value>(?:flying|fly|traveling|travelling|heading|driving|moving|sailing|off|going|travel|relocating)(?: (?:back|home|out|over|down|up|abroad))? to (?!(?:be|the doctor|the store|work|bed|sleep|school|use|do|try|need|have|make|get|say|ask|take|start|go|buy|write|find)\b)(?:the )?(?-i:[A-ZÀ-Þ])[\w'’-]{{1,20}}(?: (?-i:[A-ZÀ-Þ])[\w'’-]{{1,20}}){{0,2}}(?:,? (?:on |in |at |from |for |next )?(?:{slots.WHEN}|Christmas|Easter|New Year|summer|winter|spring|autumn|fall|next (?:week|month|year)|this (?:summer|weekend|week)|[a-z]+ days|two weeks))?)",
        rf"\b(?P<value>(?:visiting|visit|seeing|meeting|hiking|touring|exploring) (?:my |our |some )?[^.,;!?\n]{{2,40}}? (?:on |in |at |next |this )(?:{slots.WHEN}|Christmas|Easter|summer|winter|spring|autumn|fall|week|month|year))",
        rf"\b(?P<value>getting married(?:,? (?:on |in |next |this )?(?:{slots.WHEN}|summer|spring|autumn|fall|winter|year)))",
        r"\b(?P<value>(?:booked|reserved|signed up for|registered for|hired|ordered tickets (?:for|to)) (?!it\b|that\b|this\b|them\b)[^.,;!?\n]{3,60}?)(?=[.,;!?]|\s*\Z|\s(?:and|but|so|because|which|who)\b)",
        rf"\b(?:have|got|has)(?: got)? (?P<value>an? (?:[^\W\d_][\w'’-]{{1,20}} ){{0,3}}?(?:appointment|exam|interview|surgery|operation|flight|test drive|check-?up|meeting|wedding|concert|deadline|presentation|date|race|tournament|trip|recital|viewing|court date|scan|mri)(?: (?:with|at|for) [^.,;!?\n]{{1,30}}?)?,? (?:on |in |at |this |next )?(?:{slots.WHEN}))",
        r"\b(?P<value>expecting (?:our|my|a|another|twins|their)(?: (?:first|second|third|fourth|next))?(?: (?:child|baby|girl|boy|kid|son|daughter))?(?: in (?-i:[A-Z])\w+| this \w+| next \w+)?)(?! (?:package|call|delivery|answer|reply|result))(?=[.,;!?]|\s*\Z|\s(?:and|but|so)\b)",
    ),
    *slot_rules(
        slots.ORDERED,
        "text",
        "before",
        "ordered",
        r"\bordered (?P<value>(?:an?|two|three|some|\d+) [^.,;!?\n]{3,50}?)(?=[.,;!?]|\s*\Z|\s(?:from|on|last|yesterday|but|and it|because|for|two|three|with)\b)",
    ),
    *slot_rules(
        slots.OWN,
        "any",
        "speaker",
        "reach called",
        r"\bmy (?P<thing>policy number|order number|case number|customer number|member(?:ship)? number|reference) is (?P<value>[A-Z0-9][\w/-]{2,20})",
    ),
)

PEOPLE: Final = (*_FAMILY, *_PLACES, *_WORK, *_BODY, *_TASTES, *_HAVINGS, *_AIMS)
"""The rules of English for people."""
