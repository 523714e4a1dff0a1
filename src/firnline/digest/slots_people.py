"""How people state facts in English; see `firnline.digest.slot_patterns`."""

# ruff: noqa: RUF001, E501 - other scripts are meant, and patterns stay on one line

from __future__ import annotations

from typing import Final

from firnline.digest import slot_patterns as slots
from firnline.digest.slot_patterns import slot_rules

# -- people -----------------------------------------------------------------------------------

_JOBS: Final = (
    r"(?:accountant|actor|actress|analyst|architect|artist|baker|barista|carpenter|chef|consultant|cook"
    r"|dentist|designer|developer|director|doctor|driver|electrician|engineer|farmer|firefighter"
    r"|founder|freelancer|gardener|journalist|lawyer|lecturer|librarian|manager|mechanic|musician"
    r"|nurse|paramedic|pharmacist|photographer|pilot|plumber|postdoc|professor|programmer"
    r"|psychologist|receptionist|researcher|salesperson|scientist|student|surgeon|teacher|therapist"
    r"|translator|tutor|vet|veterinarian|waiter|waitress|writer)"
)
_DIETS: Final = "vegan|vegetarian|pescatarian|flexitarian|omnivore|carnivore|keto"
_DIET_END: Final = (
    r"(?=[.,;!?)]|\s*\Z|\s(?:and|but|so|because|since|now|too|for|who|by|as|again|after|last|these|this"
    r"|diet|anymore)\b)"
)
_TIES: Final = "single|married|engaged|divorced|widowed|separated|in a relationship"
_OWN_THINGS: Final = (
    r"(?:phone|telephone|mobile|cell|e-?mail|postal|home|work|office|delivery|shipping|billing|mailing"
    r"|shoe|shirt|user|bank|account|dietary|time|wifi|current|new)"
)
_OWN: Final = (
    r"(?:number|phone|mobile|cell|e-?mail|address|username|handle|password|pin|size|weight|height|age"
    r"|doctor|dentist|manager|boss|therapist|landlord|teacher|plan|subscription|time ?zone|nickname"
    r"|bank|insurance|goal|major|school|university|gym|nationality|pronouns|destination|seat|hotel"
    r"|favou?rite [^\W\d_]{2,20}(?: [^\W\d_]{2,20})?)"
)
_PETS: Final = "dog|cat|puppy|kitten|parrot|rabbit|hamster|horse|bird|fish|turtle|guinea pig"

PEOPLE: Final = (
    *slot_rules(
        slots.HOME,
        "name",
        "before",
        "live lives living reside resides based settled moved relocated emigrated home city town hometown",
        r"\b(?:live|lives|living|reside|resides|based|settled(?: down)?){NOW} (?:in|near|outside) {V}",
        r"\b(?:moved|relocated|emigrated)(?: (?:house|back|over|out|up|down|permanently|here|away)){0,2}"
        r"(?: from {OLD})?(?: (?:back|over|down|up))? to {V}",
        r"\b(?:moved|relocated) (?:away|out) (?:from|of) {GONE}",
        r"\b(?:don['’]t|doesn['’]t|do not|does not|no longer) live (?:in )?(?P<gone>"
        + slots.WORDS
        + ")",
    ),
    *slot_rules(
        slots.HOME,
        "name",
        "speaker",
        "home city town hometown residence",
        r"{MY} (?:new |current )?(?:home ?town|home|city|town|residence)(?: city)? is{NOW}(?: in)? {V}",
    ),
    *slot_rules(
        slots.EMPLOYER,
        "name",
        "before",
        "work works working employed joined job position role gig hired employer jobs companies fired laid am i'm i’m",
        r"\b(?:work|works|working|employed|hired)(?: (?:now|currently|remotely|again|full[- ]time|part[- ]time"
        r"|as an? [^.,;!?\n]{1,40}?)){0,2} (?:at|for|with|by) {V}",
        r"\bjoined {V}",
        rf"\ban? (?:[^\W\d_]{{2,20}} ){{0,2}}{_JOBS} (?:at|with|for) {{V}}",
        r"\b(?:started|got|landed|took|accepted|found|have|has|began)(?: an?| my| the)?(?: (?:new|better"
        r"|different|great))?(?: [^\W\d_]{2,20})? (?:job|position|role|gig)(?: as an? [^.,;!?\n]{1,40}?)?"
        r" (?:at|with|for) {V}",
        r"\b(?:started|began)(?: (?:work|working|to work))? (?:at|with|for) {V}",
        r"\b(?:switched|changed) (?:jobs?|companies|employers?)(?: from {OLD})?(?: to|,? and now work (?:at|for)|,? (?:and )?(?:I['’]m |am |now ){1,2}(?:at|with))"
        r" {V}",
        r"\b(?:quit|left|resigned from|lost) (?:my|his|her|their) (?:job|position|role)"
        r"(?: (?:at|with) {GONE})?",
        r"\b(?:don['’]t|doesn['’]t|do not|does not|no longer) work (?:at|for|with) {GONE}",
        r"\b(?:got |was |were |been )(?:fired|laid off)(?: (?:from|by) {GONE})?",
    ),
    *slot_rules(
        slots.EMPLOYER,
        "name",
        "speaker",
        "employer company workplace firm job",
        r"{MY} (?:new |current )?(?:employer|company|workplace|firm) is{NOW} {V}",
        r"{MY} (?:new |current )?job is{NOW} (?:at|with) {V}",
    ),
    *slot_rules(
        slots.CHANGE,
        "any",
        "before",
        "left quit joined went",
        r"\b(?:left|quit) {OLD} (?:for|to join|and (?:joined|started at|went to|now work (?:at|for))) {V}",
    ),
    *slot_rules(slots.CHANGE, "any", "before", "left quit", r"\b(?:left|quit) {GONE}"),
    *slot_rules(
        slots.JOB,
        "text",
        "before",
        "work works working became promoted",
        r"\b(?:work|works|working){NOW} as an? {T}",
        r"\b(?:became|become) an? (?P<value>(?:[^\W\d_]{2,20} ){0,2}" + _JOBS + r")\b",
        r"\bpromoted to (?:an? )?{T}",
    ),
    *slot_rules(
        slots.JOB,
        "word",
        "before",
        "am is i'm i’m are he's",
        r"\ban? (?P<value>(?:[^\W\d_]{2,20} ){0,2}" + _JOBS + r")\b",
    ),
    *slot_rules(
        slots.JOB,
        "text",
        "speaker",
        "job profession occupation title",
        r"{MY} (?:new |current )?(?:job title|job|profession|occupation|title) is{NOW} (?!at |with )(?:an? )?{T}",
    ),
    *slot_rules(
        slots.BIRTHDAY,
        "date",
        "speaker",
        "birthday b-day bday birthdate birth dob",
        r"{MY} (?:actual |real )?(?:birthday|b-day|bday|birth ?date|date of birth|dob)"
        r"(?:['’]s| is| was| falls)(?: (?:actually|really|on|in|the|not the))"
        r"{0,3}(?: not [^,.;!?\n]{1,30}?,?(?: but)?(?: on)?)? {D}",
    ),
    *slot_rules(slots.BIRTHDAY, "date", "before", "born", r"\bborn (?:on |in )?{D}"),
    *slot_rules(
        slots.DIET,
        "word",
        "before",
        "vegan vegetarian pescatarian flexitarian omnivore carnivore keto",
        r"\b(?:(?:went|gone|turned|became|become|being|back to being|an?|fully|strictly|mostly|strict) ){0,3}"
        rf"(?P<value>{_DIETS}){_DIET_END}",
        rf"\b(?:follow|follows|following|switched to|started|went on|adopted|on)(?: an?| the)? (?P<value>{_DIETS})(?: diet)?{_DIET_END}",
        rf"\b(?:no longer|stopped|quit|gave up|given up|dropped)(?: being| doing| the| my)? (?:an? )?(?P<gone>{_DIETS}){_DIET_END}",
        rf"\bnot (?:an? )?(?P<gone>{_DIETS}) any ?more\b",
    ),
    *slot_rules(
        slots.DIET,
        "word",
        "before",
        "meat",
        r"\b(?:(?:started|began|resumed|went back to|back to|gone back to)(?: eating)? meat"
        r"|eat(?:s|ing)? meat(?= (?:again|now|these days)))",
        value="eats meat",
    ),
    *slot_rules(
        slots.DIET,
        "word",
        "before",
        "fish seafood",
        r"\b(?:(?:started|began|resumed|went back to|back to)(?: eating)? (?:fish|seafood)"
        r"|eat(?:s|ing)? (?:fish|seafood)(?= (?:again|now|these days)))",
        value="eats fish",
    ),
    *slot_rules(
        slots.DIET,
        "word",
        "before",
        "meat",
        r"\b(?:stopped eating|gave up|given up|quit|quit eating|no longer eat|don['’]t eat|do not eat"
        r"|doesn['’]t eat|cut out) (?:any )?meat\b",
        value="no meat",
    ),
    *slot_rules(
        slots.RELATIONSHIP,
        "word",
        "before",
        "single married engaged divorced widowed separated relationship",
        rf"\b(?:(?:got|getting|happily|newly|recently) ){{0,2}}(?P<value>{_TIES})"
        r"(?=[.,;!?)]|\s*\Z|\s(?:and|but|now|to|since|again|last|this|for|with|in|on)\b)",
    ),
    *slot_rules(
        slots.RELATIONSHIP,
        "word",
        "before",
        "broke split",
        r"\b(?:broke|split) up\b",
        value="single",
    ),
    *slot_rules(
        "own",
        "text",
        "speaker",
        "is changed was",
        rf"{{MY}} (?:new |current |actual )?(?P<thing>(?:{_OWN_THINGS} ){{0,2}}{_OWN})"
        r" (?:is|was|changed to|has changed to|has changed,? it(?:['’]s| is)){NOW}(?: at)? "
        r"(?P<value>[^;!?\n]{1,80})",
    ),
    *slot_rules(
        slots.PET,
        "text",
        "before",
        "have has got adopted",
        rf"\b(?:have|has|got|adopted) (?:an?|two|three) (?P<value>(?:[^\W\d_]{{2,20}} )?(?:{_PETS})s?"
        rf"(?: (?:named|called) {{PIECE}})?)",
    ),
)
