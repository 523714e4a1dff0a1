"""How people state in English what they do, and how they are; see `patterns`."""

# ruff: noqa: RUF001, E501 - other scripts are meant, and patterns stay on one line

from __future__ import annotations

from typing import Final

from firnline.language.statements import patterns as slots
from firnline.language.statements.english import DIETS, RESTRICTED, STOP
from firnline.language.statements.nouns import (
    CONDITIONS,
    JOBS,
    MEDICINES,
    NO_JOBS,
    STATES_OF_HEALTH,
    TITLES,
)
from firnline.language.statements.patterns import slot_rules

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
        r"(?-i:[A-ZÀ-Þ])\w{1,30} here, (?:an? |the )?[a-z][^.,;!?\n]{2,30}? (?:at|from|with) {V}",
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
        rf"\ban? (?P<value>(?:(?:retired|freelance|part-time|full-time|junior|senior|trainee|qualified|registered|licensed|certified|professional|former) )?(?!{NO_JOBS}\b)[a-z]{{3,15}}(?:er|or|ist|ian|eer|lord|lady|man|woman))(?=[.,;!)–—]|\s-\s|\s*\Z|\s(?:and|but|so|by trade|by profession|at|in (?-i:[A-Z])|for a living|with \w{{1,30}} (?:flats|years|kids|employees|clients|students)|here|now|myself|from (?-i:[A-Z])|working)\b)",
        r"\b(?P<value>retired|self[- ]employed|unemployed|between jobs|a freelancer|freelance|a stay[- ]at[- ]home (?:mom|mum|dad|parent|mother|father))(?=[.,;!?)]|\s*\Z|\s(?:and|but|so|now|since|last|for|from|too)\b)",
    ),
    *slot_rules(
        slots.JOB,
        "text",
        "speaker",
        "job profession occupation title living here",
        r"(?-i:[A-ZÀ-Þ])\w{1,30} here, (?:an? |the )?(?P<value>[a-z][^.,;!?\n]{2,30}?)(?= (?:at|from|with|for)\b)",
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
        rf"(?P<value>{DIETS}){STOP}",
        rf"\b(?:follow|follows|following|switched to|started|went on|adopted|on)(?: an?| the)?(?: strict)? (?P<value>{DIETS})(?: diet)?{STOP}",
        rf"\b(?:no longer|stopped|quit|gave up|given up|dropped)(?: being| doing| the| my)? (?:an? )?(?P<gone>{DIETS}){STOP}",
        rf"\bnot (?:an? )?(?P<gone>{DIETS}) any ?more\b",
        rf"\b(?:(?:eat|eats|keep|keeps|only eat|an?|strictly|mostly) ){{0,2}}(?P<value>{RESTRICTED}){STOP}",
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
        "weight",
        "any",
        "before",
        "weigh weighs",
        r"\bweighs?(?: (?:about|around|only|roughly))? (?P<value>\d{1,3}(?:[.,]\d)? ?(?:kilos?|kgs?|kilograms?|pounds|lbs?|stone))\b",
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
        "have has get got had diagnosed suffer suffers suffering surgery living i've i’ve bad "
        + CONDITIONS.replace("|", " ").replace("(?:", " ").replace(")", " ").replace("?", " "),
        rf"\b(?:have|has|got|suffer from|suffers from|suffering from|living with|struggle with|deal with|developed)(?: got| an?| some| severe| my)? (?P<value>(?:(?:mild|severe|chronic|type \w{{1,30}}|bad|slight|high|low|seasonal|two|three|social|an? bad|an? weak|a|early|stage \w{{1,30}}|generalized|recurring|occasional|terrible|bad) ){{0,2}}(?:{CONDITIONS})(?: (?:in my|of the) [^\W\d_]+)?)(?=[.,;!?)–—]|\s-\s|\s*\Z|\s(?:and|but|so|since|that|which|from|because|for|in|on|when|too|now)\b)",
        r"\bget (?:\w{1,20} ){0,1}(?P<value>(?:sea|car|air|motion|travel|home)[ -]?sick|migraines|nosebleeds|panic attacks|heat rash)\b",
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

LIFE: Final = (*_WORK, *_BODY)
"""The rules of English for work and health."""
