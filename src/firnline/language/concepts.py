"""Groups of related everyday words, so that a question about a pet finds the dog.

Each line is a concept: words that people use for the same thing in questions and in statements. It
is not a dictionary. A word may be in several lines. A match by concept counts little, so a wrong
one does little harm.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from typing import Final

from firnline.language.stems import stem

_LINES: Final = """
kid child children son daughter baby toddler parent teenager
mom mother mum mommy
dad father daddy
family relative grandma grandmother grandpa grandfather sibling brother sister cousin aunt uncle
nephew niece family relative
wife husband spouse partner girlfriend boyfriend fiance marry wedding marriage engaged
friend buddy pal friendship
date dating relationship romantic
pet dog puppy cat kitten animal bird turtle fish hamster rabbit
job work career profession employ company office hire occupation position role
boss manager colleague coworker team
fired laid quit resign unemployed
business startup shop store company customer client
buy purchase bought get got order shop shopping
sell sold sale
movie film cinema watch show series tv documentary
book novel read author write series
write writing script screenplay story blog journal poem article
music song band concert sing singer album tune
instrument guitar piano violin drum clarinet flute
dance dancing dancer ballet
trip travel vacation holiday visit journey roadtrip tour abroad
flight fly plane airport airline
hotel hostel stay booking reservation
hike trail mountain climb camp camping outdoor nature forest park
paint painting art draw drawing artist artwork sculpture pottery craft
museum gallery exhibit exhibition
game gaming play video console player
sport team match tournament win won championship league competition
ball soccer football basketball baseball tennis golf
food cook cooking dish recipe meal eat bake restaurant dinner lunch breakfast cuisine
dessert cake cookie chocolate pie sweet
drink coffee tea wine beer
diet vegan vegetarian allergy allergic healthy nutrition weight
car vehicle drive truck motorcycle bike
bus train subway commute
house home apartment flat live move moved rent landlord
room kitchen bedroom furniture decorate renovate
school college university class course study degree student education graduate graduation
exam test grade score
doctor hospital health medical sick ill illness disease clinic nurse
medicine medication pill drug dose prescription
therapy therapist counseling counselor mental
symptom headache fever cough pain ache
exercise gym workout fitness yoga run running jog marathon race
money pay cost price budget expensive cheap dollar euro fee salary income
bank loan debt mortgage savings invest investment
happy glad excite excited joy proud thrilled
sad upset depressed grief lonely
hard tough difficult struggle challenge problem obstacle trouble issue
scare afraid fear anxious nervous worry stress stressed anxiety
relax calm peaceful unwind destress
start begin began launch open opened
end finish complete stop done
make made create build built
fix repair broken break broke
plan intend hope want wish goal dream future
like love enjoy favorite favourite prefer
dislike hate
hobby interest activity pastime passion
meet met together hang
gift present give gave
photo picture image photograph camera
beach sea ocean lake swim swimming surf
city town country place state village
weather rain snow storm sunny cold hot
church faith religion religious god spiritual pray
volunteer charity donate help support community shelter
activism activist protest rights campaign
politics election vote government law
learn teach taught lesson teacher
phone call text message mobile
computer laptop device tablet
code program software app programming developer bug
website web site online internet
email mail letter
meeting appointment schedule calendar deadline
password login account
garden plant flower grow vegetable
hurt injury injure accident crash
die death dead passed lost lose funeral
birthday born age old anniversary
party celebrate celebration festival event
clothes dress wear shirt shoe jacket outfit
name called nickname
award prize trophy medal
motivate motivation inspire inspiration inspired
advice suggest suggestion recommend recommendation tip
nationality country origin roots hometown
color colour red blue green yellow
"""
_NONE: Final[frozenset[str]] = frozenset()


def concepts(stemmed: str) -> frozenset[str]:
    """The concepts of a stem. No stem contains a hash sign, so the two never mix."""
    return _concepts().get(stemmed, _NONE)


@cache
def _concepts() -> Mapping[str, frozenset[str]]:
    """Concepts by stem; a concept's name is a hash sign and its line number."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for number, line in enumerate(_LINES.strip().splitlines()):
        for word in line.split():
            found[stem(word)].add(f"#{number}")
    return {word: frozenset(names) for word, names in found.items()}
