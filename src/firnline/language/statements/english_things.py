"""How people state in English what things are; see `firnline.language.statements.patterns`."""

# ruff: noqa: RUF001, E501 - other scripts are meant, and patterns stay on one line

from __future__ import annotations

from typing import Final

from firnline.language.statements import patterns as slots
from firnline.language.statements.patterns import slot_rules

_NAMED: Final = (
    r"project|app|product|company|startup|band|team|blog|book|novel|library|channel|podcast|repo|repository|shop"
    r"|store|bakery|restaurant|website|site|newsletter|boat|club|thesis|bot|brand|studio|agency|album"
)
_NUMBERED: Final = (
    r"order|ticket|issue|case|invoice|package|parcel|shipment|pr|pull request|bug|task|claim|request|booking|reservation|application|refund"
    r"|delivery|return|replacement|payment|loan|visa|flight"
)
_ITEM: Final = (
    rf"(?P<thing>(?:{_NUMBERED})(?: (?:number|no\.?|nr\.?|id))? ?[#№]?(?:n[°º] ?)?[A-Z]{{0,5}}-?\d[\w-]{{0,20}}"
    rf"|(?<=the )(?:{_NUMBERED})(?! of\b)|(?<=my )(?:{_NUMBERED})|(?<=our )(?:{_NUMBERED})|(?<=your )(?:{_NUMBERED})|(?-i:[A-Z]{{2,6}}-\d{{1,6}}))"
)
_STATES: Final = (
    r"placed|confirmed|processed|being processed|processing|pending|packed|being packed|shipped|sent|dispatched|out for delivery|on its way"
    r"|on the way|in transit|delivered|arrived|cancell?ed|returned|refunded|open|closed|resolved|reopened|fixed|in progress|blocked|on hold"
    r"|approved|rejected|paid|unpaid|overdue|delayed|lost|done|merged|escalated|finished|completed|ready|denied|granted|stuck|missing|damaged"
)
_EVENTS: Final = (
    r"meeting|appointment|deadline|launch|release|call|interview|party|wedding|flight|exam|demo|review|conference|trip|dinner|lunch|due date"
    r"|standup|sync|workshop|training|session|lesson|concert|surgery|checkup|check-in|visit|start date|kickoff|presentation|webinar|reservation"
    r"|booking|lease|test drive|installation|inspection|move|race|marathon|tournament|hearing|defense|defence|graduation|ceremony|anniversary"
    r"|recital|audition|premiere|opening|election|vote|go-live|cutover|migration|audit|renewal|viewing|closing|handover|operation|scan|due date|oral"
)
_EVENT: Final = rf"\b(?:the|our|my|your) (?P<thing>(?:[^\W_][\w'’-]{{0,20}} ){{0,3}}?(?:{_EVENTS})(?: (?:with|for|at|in|of) (?:the |our |my )?[^\W_]{{1,20}}(?: (?-i:[A-Z])\w{{1,20}}){{0,2}})?)"
_PRICED: Final = (
    r"\b(?:the|our|my) (?P<thing>(?:[^\W_]{1,20} ){0,2}?(?:budget|price|rent|cost|fee|salary|rate|deposit|quote|estimate|total|fare|mortgage|loan|pension|income|limit|allowance|savings)"
    r"(?: (?:for|of) (?:the |our |my )?[^\W_]{1,20})?)"
)
_MOVED: Final = "moved|rescheduled|pushed|postponed|shifted|changed|delayed|brought"
_STACK: Final = (
    r"backend|back end|back-end|frontend|front end|front-end|database|db|server|app|api|site|website|stack|infrastructure|pipeline|cluster|cms|mobile app|client|bot"
    r"|service|services|microservices|game|code|codebase|firmware|dashboard|shop|store|blog|script|cli|engine|ui"
)
_TECH: Final = r"(?P<value>(?-i:[A-Z0-9])[\w.+#-]{0,20}(?: (?-i:[A-Z0-9])[\w.+#-]{0,20}){0,2}|go|python|rust|java|kotlin|typescript|javascript|react|vue|svelte|postgres|mysql|sqlite|mongodb|redis)"
_TECH_END: Final = r"(?=[.,;!?)]|\s-\s|\s*\Z|\s(?:and|but|so|because|since|for|with|now|at|in|on|these|as|which|from|version|right|currently|to|inside|behind|,)\b)"

THINGS: Final = (
    *slot_rules(
        slots.TITLE,
        "name",
        "thing",
        "called named rename renamed known rebranded name codename",
        rf"\b(?:the|our|my) (?P<thing>{_NAMED})(?:['’]s (?:new )?(?:code ?)?name(?: is|['’]s)| is| was| has been| got)"
        r"{NOW} ?(?:called|named|known as|renamed(?: from {OLD})?(?: to| as)?|rebranded(?: to| as)?)? [\"“]?{V}",
        rf"\b(?:renamed|rebranded) (?:the |our |my |this )?(?P<thing>{_NAMED})(?: from {{OLD}})?"
        r"(?: to| as| into|[:,;] it(?:['’]s| is)(?: now)?(?: called)?)? [\"“]?{V}",
        rf"\b(?:a|the|our|my) (?:[^\W\d_]+ )?(?P<thing>{_NAMED})(?: is| was)?,? (?:called|named) [\"“]?{{V}}",
        rf"\bthe (?:new |current )?(?:code ?)?name (?:of|for) (?:the|our|my) (?P<thing>{_NAMED}) is{{NOW}} [\"“]?{{V}}",
        rf"\b(?:the|our|my) (?P<thing>{_NAMED}) name (?:is|changed to|has changed to){{NOW}} [\"“]?{{V}}",
        r"\brename (?P<thing>it)[:,;]?(?: to|,? (?:and )?(?:now )?it(?:['’]s| is)(?: now)?(?: called)?) [\"“]?{V}",
        r"\b(?P<thing>it)(?:['’]s| is) (?:now )?called [\"“]?(?P<value>(?-i:[A-Z])[\w-]{1,20}(?: (?-i:[A-Z])[\w-]{1,20}){0,2})(?: now)?(?=[.,;!\"”]|\s*\Z)",
        r"\bwe(?:['’]ll| will) (?:name|call) (?P<thing>it) [\"“]?{V}",
    ),
    *slot_rules(
        slots.CHANGE,
        "name",
        "speaker",
        "called named renamed rebranded",
        r"\b(?:project )?(?P<old>(?-i:[A-Z])[\w-]{1,20}(?: (?-i:[A-Z])[\w-]{1,20})?) (?:is{NOW} (?:called|named|known as)"
        r"|(?:was|has been|got|is) (?:renamed|rebranded)(?: to| as)?) {V}",
        r"\b(?:renamed|rebranded) (?:from )?(?!the |our |my |it ){OLD} (?:to|as|into) {V}",
    ),
    *slot_rules(
        slots.STATUS,
        "word",
        "thing",
        _STATES.replace("|", " ") + " cancelled canceled way hold",
        rf"\b{_ITEM}(?:['’]s)?(?:\s(?:is|was|has|had|been|got|gets|now|currently|still|finally|already|can be|just|status|to|marked|as|set|changed|went|moved|from|pending|status:|today)){{0,6}}:?"
        rf"(?P<no> not(?: yet)?(?: been)?|(?:\s?(?:has|is|was))?n['’]t(?: been)?)? (?P<value>{_STATES})\b(?! (?:to|for) (?:\w+ing|the))",
        rf"\b(?P<value>shipped|sent|cancell?ed|delivered|refunded|returned|received|placed|closed|resolved|reopened"
        rf"|approved|rejected|paid|merged|fixed)(?: out)?(?: (?:the|my|our|your))? {_ITEM}",
        rf"\bstatus of (?:the |my |our |your )?{_ITEM} (?:is|changed to|has changed to){{NOW}} (?P<value>{_STATES})\b",
        r"\b(?P<value>approved|rejected|denied|granted|cancell?ed|paid) (?:the|my|our) (?P<thing>loan|visa|claim|application|refund|request|mortgage|invoice|booking)\b",
    ),
    *slot_rules(
        slots.DATE,
        "date",
        "thing",
        _MOVED.replace("|", " ")
        + " is on has got for due scheduled set starts start begins ends come comes must needs takes will by be",
        rf"{_EVENT}(?:['’]s|\s(?:is|was|has been|got|will be|starts|begins|takes place|ends|falls|comes|has|{_MOVED}))(?:\s(?:is|was|been|be|now|{_MOVED}|set|scheduled|planned|due|back|forward|up"
        r"|for|to|on|at|by|until|till|actually|from {WOLD})){0,6} {W}",
        rf"\b(?:{_MOVED}) {_EVENT[2:]}(?: (?:back|forward|up))?(?: from {{WOLD}})? (?:to|until|till|for) {{W}}",
        rf"(?:\A|[.;!] )(?:our |my |the )?(?P<thing>(?:[^\W\d_][\w-]{{1,20}} ){{0,2}}?(?:{_EVENTS}))(?:['’]s| is| starts| begins| ends| will be) (?:on |in |at |due |due on )?{{W}}",
        r"\b(?:the |our |my )?(?P<thing>[^\W\d_]{3,20}) (?:has to|must|needs to|should) be (?:finished|done|ready|completed|delivered|sent|in|over|submitted|complete|live)(?: \w{1,30})? (?:by|before|on) {W}",
        r"\b(?:the|our|my) (?P<thing>(?!birthday\b)(?:[^\W\d_][\w'’-]{1,20} ){0,2}?[^\W\d_][\w'’-]{2,20}) (?:is|will be|takes place|has been moved to|was moved to|is scheduled for|is set for|is due) (?:on |by )?(?P<value>{DAY}(?:,? at [\w: ]{1,8})?)(?=[.,;!?)]|\s*\Z|\s(?:and|but|so|in|at|which|because)\b)",
        r"\bthe (?P<thing>movers|guests|painters|builders|plumber|electrician|installer|inspector|twins|baby) (?:come|comes|arrive|arrives|is due|are due|will come)(?: on| in| at)? {W}",
        r"\b(?:have|got) an? (?P<thing>(?:[^\W\d_][\w'’-]{1,20} ){0,2}?(?:exam|test|race|recital|deadline|interview|test drive)) (?:on|in|at) {W}",
        r"\bmy (?P<thing>(?:[^\W\d_][\w'’-]{1,20} ){0,2}?(?:exam|test|recital|deadline|interview))(?: (?:at|for|in) (?:the )?[^.,;!?\n]{1,30}?)? is (?:on |in |at )?{W}",
    ),
    *slot_rules(
        slots.AMOUNT,
        "text",
        "thing",
        "budget price rent cost fee salary rate deposit quote estimate total fare mortgage loan pension income limit allowance savings",
        rf"{_PRICED}(?:['’]s| is| was| has been| went| will be| got)(?:\s(?:now|raised|increased|cut|lowered|reduced|changed|set|up|down|to|at|from {{AOLD}}|actually|about|around|roughly|max)){{0,5}} {{A}}",
        rf"\b(?:raised|increased|cut|lowered|reduced|changed|set) {_PRICED[2:]}(?: from {{AOLD}})? (?:to|at) {{A}}",
        r"(?:\A|[.;!] )(?P<thing>budget|rent|deadline)(?:['’]s| is|:| of)(?: about| around)? {A}",
        r"\bwe can (?P<thing>spend)(?: about| around| up to)? {A}",
    ),
    *slot_rules(
        slots.TOOL,
        "name",
        "before",
        "use uses using chose picked run runs adopted settled decided went going deploy deploys host hosts heat",
        r"\b(?:use|uses|using|chose|picked|adopted|settled on|decided (?:on|for|to use)|went with|going with|(?<=I )run|(?<=we )run){NOW}"
        r" (?P<value>(?:an? )?(?:(?-i:[A-Za-z0-9])[\w.+#-]{1,20})(?: (?-i:[A-Z0-9])[\w.+#-]{0,20}){0,2})(?: (?:for|as) (?:the |our |my |all )?(?P<thing>[^\W_]{1,20}(?: [^\W_]{1,20})?))?(?=[.,;!?]|\s-\s|\s*\Z|\s(?:now|and|but|because|since|on|with|to|at|so|instead|in)\b)",
        rf"\b(?:deploy|deploys|deployed|host|hosts|hosted|run|runs|running)(?: everything| it| our \w{{1,30}}| the \w{{1,30}})? (?:to|on|at|with) {_TECH}{_TECH_END}",
    ),
    *slot_rules(
        slots.TOOL,
        "any",
        "speaker",
        "written built runs backend frontend database server stack is uses use made coded",
        rf"\b(?:the|our|my|this) (?P<thing>{_STACK}) (?:is|was|are)(?: all| mostly| entirely| now| currently)? (?:written|built|done|made|coded|implemented|developed) (?:in|with|on|using) {_TECH}{_TECH_END}",
        rf"\b(?:the|our|my) (?P<thing>{_STACK}) (?:is|runs on|runs|uses|use|is on|is in|sits on|lives on){{NOW}} (?:in |on |with )?(?:a |an )?{_TECH}{_TECH_END}",
        rf"\b(?:does|do|doing|writes|write|builds|build) (?:the )?(?P<thing>{_STACK}) (?:in|with|on) {_TECH}{_TECH_END}",
    ),
    *slot_rules(
        slots.CHANGE,
        "text",
        "before",
        "switched migrated changed converted moved transitioned replaced dropped instead",
        r"\b(?:switched|migrated|changed|converted|transitioned)(?: (?:over|everything|(?:the|our|my) [^\W_]{1,20}))? from {OLD} to {V}",
        r"\b(?:switched|migrated|converted|transitioned)(?: (?:over|everything|(?:the|our|my) [^\W_]{1,20}))? to {V}",
        r"\bmoved(?: (?:over|everything))? from {OLD} to (?P<value>(?-i:[A-Z])[\w.+#-]{1,20})(?=[.,;!?]|\s*\Z|\s(?:now|and|but|because|last|this|for)\b)",
        r"\breplaced {OLD} (?:with|by) {V}",
        r"\bdropped {OLD} (?:in favou?r of|for) {V}",
        r"\b(?:use|uses|using|go with|going with|went with|chose|picked|drink|eat|take|have) {S}(?: now)? instead of {OLD}(?=[.,;!?]|\s*\Z|\s(?:now|and|but|because|since|for)\b)",
    ),
    *slot_rules(
        slots.CHANGE,
        "any",
        "speaker",
        "not meant correction",
        r"\b(?:it['’]s|it is|that['’]s|that is|I meant|should be|is|on|correction:(?: it['’]s)?)"
        r"(?: actually| really| on| the){0,2} (?P<value>(?:{DAY})|{SHORT}),? (?:and )?not (?:on |the |in )?(?P<old>(?:{DAY})|{SHORT})(?=[.,;!?]|\s*\Z)",
    ),
    *slot_rules(
        slots.NAME,
        "any",
        "thing",
        "caterer venue agency supplier photographer band hotel",
        r"\b(?:the|our|my) (?P<thing>caterer|venue|supplier|agency|photographer|band|hotel|airline|insurer) is(?: called)? (?P<value>(?-i:[A-Z])[\w'’-]{1,20}(?: (?-i:[A-Z])[\w'’-]{1,20}){0,2})(?=[.,;!]|\s*\Z|\s(?:and|but)\b)",
    ),
)
"""The rules of English for things."""
