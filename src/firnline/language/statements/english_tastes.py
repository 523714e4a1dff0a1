"""How people state in English what they like, have and plan; see `patterns`."""

# ruff: noqa: RUF001, E501 - other scripts are meant, and patterns stay on one line

from __future__ import annotations

from typing import Final

from firnline.language.statements import patterns as slots
from firnline.language.statements.english import DIGITS, HAVE, IS, NAMED, OWN_THINGS, SOME, STOP
from firnline.language.statements.nouns import ANIMALS, DURABLES, GAMES, INSTRUMENTS, LANGUAGES
from firnline.language.statements.patterns import slot_rules

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
        rf"(?:{HAVE}|\b(?:adopted|rescued|own|owns|keep|keeps|bought|foster|with|getting)(?: also| just)? )(?!you)(?P<value>(?:{SOME})?(?:(?!in\b|on\b|with\b|for\b)[^\W\d_][\w-]{{1,15}} ){{0,3}}?(?:{ANIMALS})(?:(?:,? (?:named|called)|, a [^\W\d_]+(?: named| called)?|,)? (?-i:[A-ZÀ-Þ])[\w'’-]{{1,20}}(?: and (?-i:[A-ZÀ-Þ])[\w'’-]{{1,20}})?)?(?: and (?:{SOME})(?:[^\W\d_][\w-]{{1,15}} ){{0,2}}?(?:{ANIMALS})(?:(?:,? (?:named|called)|,)? (?-i:[A-ZÀ-Þ])[\w'’-]{{1,20}})?)?)(?=[.,;!?)–—(]|\s-\s|\s*\Z|\s(?:and|but|so|who|that|which|at|from|now|too|since|last|with|to|as|because|yesterday)\b)",
    ),
    *slot_rules(
        slots.PET,
        "any",
        "before",
        "have has got we've we’ve i've i’ve",
        rf"\b(?:have|has|got)\b[^.;!?\n]{{3,80}}?,? and (?P<value>(?:{SOME})(?:[^\W\d_][\w-]{{1,15}} ){{0,3}}?(?:{ANIMALS})(?:(?:,? (?:named|called)|,)? (?-i:[A-ZÀ-Þ])[\w'’-]{{1,20}})?)(?=[.,;!?)–—(]|\s*\Z|\s(?:and|but|so|who|that|which|at|from)\b)",
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
        rf"\b(?:my|our|the) (?:(?:old|little|beloved|sweet) )?(?P<gone>(?:{ANIMALS})(?: (?-i:[A-Z])\w{{1,30}})?) (?:died|passed(?: away| on)?|has died|is gone|was put down|had to be put (?:down|to sleep)|ran away)\b",
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
        rf"{{MY}} (?:new |current |actual )?(?P<thing>(?:{OWN_THINGS} ){{0,2}}(?:number|phone|mobile|cell|id)){IS}{{NOW}}:? {DIGITS}",
        rf"{{MY}} (?:new |current |actual )?(?P<thing>(?:{OWN_THINGS} ){{0,2}}e-?mail(?: address)?){IS}{{NOW}}:? (?P<value>[\w.+-]{{1,64}}@[\w-]+(?:\.[\w-]+)+)",
        rf"{{MY}} (?:new |current |actual )?(?P<thing>(?:{OWN_THINGS} ){{0,2}}address){IS}{{NOW}}(?: at)?:? (?P<value>(?=[^;!?\n]{{0,60}}(?:\d|,))(?-i:[A-ZÀ-Þ0-9])[^;!?\n]{{3,80}}?)(?=[;!?]|\.\s|\.?\s*\Z)",
        rf"{{MY}} (?:new |current )?(?P<thing>(?:{OWN_THINGS} ){{0,2}}(?:username|handle|nickname|gamertag|pronouns)){IS}{{NOW}}:? (?P<value>[\w./@#-]{{2,30}})(?=[.,;!?]|\s*\Z| and\b)",
        rf"{{MY}} (?:new |current )?(?P<thing>(?:{OWN_THINGS} )?(?:size|weight|height|shoe size|resting heart rate|blood pressure)){IS}{{NOW}} (?P<value>[\d.,'’/]{{1,7}}(?: ?(?:kg|cm|m|lbs?|pounds|inches|ft|feet|bpm))?(?: ?\d{{1,2}})?|(?-i:XXS|XS|S|M|L|XL|XXL))(?=[.,;!?]|\s*\Z| (?:and|now|but)\b)",
        rf"{{MY}} (?:new |current )?(?P<thing>(?:bank|insurance|insurer|landlord|dentist|school|university|college|gym|hotel|destination|time ?zone|airline|phone|laptop|car|bike|camera|computer|pc|gpu|cpu|case|tablet|console|guitar|editor|publisher|provider|carrier|team|club|religion|star sign|plan|subscription|caterer|builder|contractor|doctor|teacher|venue)){IS}{{NOW}} (?:(?:called|with|an?|the) )?{NAMED}(?=[.,;!?)]|\s*\Z|\s(?:and|but|so|now|in|at|on|with|which|who|since)\b)",
        r"{MY} (?:new |current )?(?P<thing>(?:phone|car|laptop|bike|camera|computer|pc|gpu|case|tablet|guitar|oven|boiler)) is{NOW} an? (?P<value>(?:[\w-]{2,15} ){0,2}[\w-]{2,20})(?=[.,;!?)]|\s*\Z|\s(?:and|but|so|now)\b)",
        r"{MY} (?:new |current )?(?P<thing>seat) is{NOW} (?P<value>\d{1,2}[A-K])\b",
        r"{MY} (?P<thing>favou?rite (?!thing|part|one\b|time|moment|way|bit|aspect|memory|piece|feature|idea)[^\W\d_]{2,20}(?: [^\W\d_]{2,20}){0,2}?)(?: is| are| was|['’]s| has always been| have always been){NOW} (?!to\b|when\b|that\b|how\b|not\b|the one\b)(?P<value>[^.;!?\n]{1,60}?)(?=[.;!?]|,(?! \w+(?: and| or|,))|\s(?:but|because|since|though|so|now|these days)\b|\s*\Z)",
        rf"\b(?:have|got) an? new (?P<thing>(?:{OWN_THINGS} )?(?:number|phone number|e-?mail(?: address)?|address))[:,]? (?:it(?:['’]s| is) )?{DIGITS}",
        rf"\b(?:changed|updated) (?:my|our) (?P<thing>(?:{OWN_THINGS} )?(?:number|address|e-?mail)) to {DIGITS}",
    ),
    *slot_rules(
        slots.OWN,
        "any",
        "before",
        "have drive got handed",
        rf"\b(?P<value>(?:left|right)-handed|ambidextrous){STOP}(?P<thing>)",
    ),
)
_AIMS: Final = (
    *slot_rules(
        slots.GOAL,
        "text",
        "speaker",
        "goal dream aim want wanna trying hoping planning training like love hope plan studying preparing",
        r"\b(?:I|we)(?:['’]m| am|['’]re| are)(?: \w{1,12})? (?:training for|(?:studying|preparing|revising) for (?=[^.,;!?\n]{0,40}\b(?:exams?|test|certification|certificate|marathon|triathlon|bar|boards|license|licence)\b))"
        r" (?:the |my |our |an? )?(?P<value>(?!this\b|that\b|it\b)[^.,;!?\n]{3,50}?)(?=[.,;!?)]|\s*\Z|\s(?:and|but|so|because|since|at|with)\b|\s(?:in|on) (?-i:[A-Z]))",
        r"{MY} (?:main |big |biggest |long-term )?(?:goal|dream|aim|resolution)(?: for [^.,;!?\n]{1,20})? is to (?P<value>(?:become|learn|lose|run|finish|buy|retire|open|start|quit|stop|save|travel|get|move|publish|write|earn|graduate|complete|climb|visit|read|pay off|live|sail|swim|cycle|have|reach)\b[^.,;!?\n]{2,60}?)(?=[.,;!?]|\s*\Z|\s(?:but|so|because|and I)\b)",
        r"\b(?:I|we)(?: really| always| eventually| also)?(?:['’]d (?:like|love)| want| wanna(?= )| hope| plan|['’]m (?:planning|hoping|trying|training)| am (?:planning|hoping|trying)|['’]re (?:planning|hoping|trying))(?: to|(?<=wanna)|(?<=training) for)? (?P<value>(?:(?:become|be) an? (?:\w{1,30} )?(?:\w+(?:er|or|ist|ian|eer|man|woman|nurse|vet|pilot|chef|judge|artist|cop))\b|become an?|learn (?!more|how|about|if|why|to send)|lose \d+|run (?:my|a|an|the) (?:\w{1,30} )?(?:half[- ]?)?marathon|buy an? (?:\w{1,30} )?(?:house|flat|apartment|car|home)|retire|open (?:my|a|an|our) (?:\w{1,30} )?(?:shop|store|caf[eé]|restaurant|bakery|business|second shop)|start (?:my|a|an|our) (?:own )?(?:\w{1,30} )?(?:business|company|family|shop|startup)|quit smoking|stop smoking|save \S*\d|get (?:fit|in shape|a dog|a cat|pregnant|promoted|my driving licen[cs]e)|have (?:kids|children)|(?:a|the) (?:half[- ]?)?marathon)[^.,;!?\n]{0,50}?)(?=[.,;!?]|\s*\Z|\s(?:but|so|because|and|before|what|how)\b)",
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
        r"\b(?P<value>expecting (?:our|my|a|another|twins|their)(?: (?:first|second|third|fourth|next))?(?: (?:child|baby|girl|boy|kid|son|daughter))?(?: in (?-i:[A-Z])\w{1,30}| this \w{1,30}| next \w{1,30})?)(?! (?:package|call|delivery|answer|reply|result))(?=[.,;!?]|\s*\Z|\s(?:and|but|so)\b)",
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

TASTES: Final = (*_TASTES, *_HAVINGS, *_AIMS)
"""The rules of English for tastes, possessions and plans."""
