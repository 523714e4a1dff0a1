"""The words and pieces of the English patterns."""

# ruff: noqa: RUF001, E501 - other scripts are meant, and patterns stay on one line

from __future__ import annotations

from typing import Final

KIN_WORDS: Final = (
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
    + "|".join(sorted(set(KIN_WORDS.split()), key=len, reverse=True))
    + r")"
)
"""Nouns for people whom a speaker calls theirs."""
ANCESTRY: Final = (
    r"(?:older|younger|elder|eldest|oldest|youngest|little|big|best|twin|late|only|dear|lovely|own|new|old|two|three|four|running|first|second"
    r"|current|former|great|good|close|ex|adult|teenage|beloved|future|middle)"
)
WHOSE: Final = rf"\b(?:my|our) (?:{ANCESTRY} ){{0,2}}(?P<whose>{KIN})"
KIN_CUES: Final = f"{KIN_WORDS} {KIN_WORDS.replace('-', ' ')} man law"
TITLED: Final = r"(?P<value>(?:(?:Mrs?|Ms|Dr|Prof)\.? )?(?-i:[A-ZÀ-Þ])(?!['’])[\w-]{1,20}(?: (?-i:[A-ZÀ-Þ])[\w-]{1,20}){0,2})"
CALLED: Final = r"(?: (?P<called>(?-i:[A-ZÀ-Þ])[\w'’-]{1,20}))?"
SMALL: Final = r"one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
NUMBER: Final = rf"(?:{SMALL}|\d{{1,3}})"
HAVE: Final = r"(?:\b(?:have|has|got|having)(?: also| just| now| already)?(?: got)? |(?<=['’]ve )(?:also )?(?:got )?)"
SOME: Final = rf"(?:an? |{NUMBER} |some |a couple of |a few )"
DIETS: Final = "vegan|vegetarian|pescatarian|flexitarian|omnivore|carnivore|keto|paleo"
RESTRICTED: Final = (
    r"(?:lactose|gluten|fructose|histamine)[ -]intolerant|gluten[ -]free|dairy[ -]free|halal|kosher"
)
STOP: Final = (
    r"(?=[.,;!?)–—]|\s-\s|\s*\Z|\s(?:and|but|so|because|since|now|too|for|who|by|as|again|after|last|these|this|btw|lol"
    r"|diet|anymore|myself|with|while|if|though|in|since|two|three|about|around|at|when|this|from)\b)"
)
TIES: Final = (
    "single|married|engaged|divorced|widowed|separated|in a relationship|a widower|a widow"
)
OWN_THINGS: Final = (
    r"(?:phone|telephone|mobile|cell|e-?mail|postal|home|work|office|delivery|shipping|billing|mailing|street|policy|order|case|member(?:ship)?"
    r"|customer|reference|booking|invoice|license|plate|flight|room|student|employee|serial|contract|tracking|claim"
    r"|shoe|shirt|dress|ring|user|account|dietary|insurance|passport|registration|social security|tax|bank|time|wifi|current|new|discord|twitch|instagram|twitter|github|steam)"
)
DIGITS: Final = r"(?P<value>(?=[^,;!?\n]{0,30}\d)[^,;!?\n]{1,40}?)(?=[,;!?)]|\.\s|\.?\s*\Z|\s(?:and|but|so|now|if|please|btw)\b)"
NAMED: Final = r"(?P<value>(?-i:[A-ZÀ-Þ])[\w'’.&-]{1,25}(?: (?:(?-i:[A-ZÀ-Þ0-9])[\w'’.&-]{0,25}|of|de|van|von|the)){0,4})"
IS: Final = r"(?:['’]s| is| was| changed to| has changed to| has changed[,:;]? (?:and )?(?:it(?:['’]s| is)|to|now it(?:['’]s| is)))"
