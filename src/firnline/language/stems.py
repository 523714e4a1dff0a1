"""Stems of words, in the languages that Snowball has. Indexes hold them: if one changes, rebuild.

A text is stemmed in its language, which its most frequent small words show; a query in every
language of its script, because the language of what it will find is unknown.
"""

from __future__ import annotations

import threading
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from importlib import import_module
from itertools import chain
from typing import Final, Protocol, cast

from firnline.language.stop_words import ENGLISH_CORE, FRENCH_CORE, GERMAN_CORE, SPANISH_CORE
from firnline.log.regex import regex

_CHARS_MAX: Final = 40
_CERTAIN: Final = 2  # so many different small words show a language
_SHORT: Final = 12  # a text of fewer words need not have any
_STEM_MIN: Final = 3  # shorter ones are other words: "be" of "being", in Turkish
_CYRILLIC_SHORT_I: Final = regex("(?<=[аеиоуыэюя])и")

_LANGUAGES: Final[Mapping[str, str]] = {
    "LATIN": "english german french spanish italian portuguese dutch swedish danish norwegian"
    " finnish hungarian romanian turkish catalan polish czech indonesian lithuanian estonian",
    "CYRILLIC": "russian",
    "GREEK": "greek",
    "ARABIC": "arabic persian",
    "DEVANAGARI": "hindi nepali",
    "TAMIL": "tamil",
    "ARMENIAN": "armenian",
    "HEBREW": "yiddish",
}
"""The languages of each script; the first is assumed if no small words are found."""
_SMALL_WORDS: Final[Mapping[str, str]] = {
    "italian": """
anche che chi ci come con cosa da dal dei del della delle di dove e gli ha ho i il in io la le
lo ma mi mio molto nel nella non per perche piu quando questo se si sono sul tra tu un una uno
""",
    "portuguese": """
a ao as com como da das de do dos e ela ele em entre era essa esse esta eu foi isso ja mais mas
meu muito na nao nas no nos o os ou para pela pelo por quando que sao se sem ser seu sua tem um
uma voce
""",
    "dutch": """
aan als bij dat de deze die dit door een en er geen heb heeft het hij hoe ik in is je kan maar
met mijn naar niet nog om onze ook op over te uit van voor waar wat we wij zijn zo
""",
    "swedish": """
att av de den det dig du efter eller en ett for fran har hur i inte jag kan man med mig min nar
nu och om pa sig ska som till upp vad var vi vill
""",
    "danish": """
af at blev de den der det dig du efter eller en er et for fra han har hvad hvor i ikke jeg kan
med men mig min nar nu og om op pa sig skal som til ud var vi vil
""",
    "norwegian": """
at av bare ble da de deg den der det du eller en er et etter for fra ha har hva hvor i ikke jeg
kan med meg men min na nar og om opp pa seg skal som til ut var vi vil
""",
    "finnish": """
ei en etta han hanen ja joka jos kanssa kuin kun mina minun mita mutta myos niin nyt olen oli on
ovat se sen sina sita tai tama tassa
""",
    "hungarian": """
a az azt de egy el en es ez ezt ha hogy is itt kell ki lehet meg mert mi mikor mint most nagyon
nem vagy van volt
""",
    "romanian": """
acest am are as au ca care ce cu cum da dar de din dupa este eu fi fost in la mai nu o pe pentru
prin sa sau si sunt un una unde
""",
    "turkish": """
ama ancak bana ben bir bu cok da daha de degil diye gibi hangi icin ile kadar ki mi ne neden o
olan olarak sonra su var ve veya ya yok
""",
    "catalan": """
a al amb aquest aquesta com de del dels el els em en es esta i jo la les li meu molt no o on per
pero quan que si son tambe un una
""",
    "polish": """
ale bardzo byc byl byla co czy dla do gdzie i jak jest jestem kiedy lub ma mam mi mnie moj na
nie o od po pod przez sa sie ta tak tego ten to tym w z za ze
""",
    "czech": """
a aby ale bude by byl co do i jak jako je jeho jsem jsme kde kdy ktera ktere ktery mam mi na ne
nebo o od po pro se si tak ten to u v ve z za ze
""",
    "indonesian": """
ada akan aku anda apa atau bisa dalam dan dari dengan di dia ini itu juga kami karena ke kita
oleh pada saya sudah tidak untuk yang
""",
    "lithuanian": """
ar as bet bus buvo del gali ir is jau jei jis jos kad kai kaip kas kuris man mano mes ne nera
nuo per po su tai tik yra
""",
    "estonian": """
aga ei et ja ka kas kes kui kuidas ma mina minu mis mu nii ning olen oli on peale sa seda see
siis ta teha voi
""",
    "persian": """
از است این با برای به در را من می که
""",
    "nepali": """
गर छ म र हो
""",
}
"""Small words by language, folded: enough of them to tell the languages apart."""

_SHORT_TEXTS: Final = ("english", "german", "french", "spanish", "italian", "portuguese", "dutch")
"""The languages of a short text without small words."""

_BY_SCRIPT: Final = {script: names.split() for script, names in _LANGUAGES.items()}
_SCRIPT_OF: Final = {name: script for script, names in _BY_SCRIPT.items() for name in names}


def _by_word() -> dict[str, list[str]]:
    """Small words, and the languages that have them."""
    lists = {name: frozenset(words.split()) for name, words in _SMALL_WORDS.items()}
    lists |= {"english": ENGLISH_CORE, "german": GERMAN_CORE}
    lists |= {"french": FRENCH_CORE, "spanish": SPANISH_CORE}
    found: dict[str, list[str]] = {}
    for language, words in lists.items():
        for word in words:
            found.setdefault(word, []).append(language)
    return found


_BY_WORD: Final = _by_word()
ALL_LANGUAGES: Final = tuple(_SCRIPT_OF)
_ONE_AT_A_TIME: Final = threading.Lock()  # a stemmer is for one thread at a time


class _Stemmer(Protocol):
    def stemWord(self, word: str) -> str: ...  # noqa: N802 - the library's name


@cache
def _stemmer(language: str) -> _Stemmer:
    # The classes themselves: `snowballstemmer.stemmer` prefers another package if there is one,
    # whose stems may differ. Imported when it is needed, because it takes a while.
    module = import_module(f"snowballstemmer.{language}_stemmer")
    return cast("_Stemmer", getattr(module, f"{language.capitalize()}Stemmer")())


def languages_of(words: Iterable[str]) -> tuple[str, ...]:
    """The languages in which the folded words of a text are stemmed: one of each script, usually.

    Each script's language is the one with most of its small words in the text. A short text that
    has none is stemmed in several languages.
    """
    different = set(words)
    counts = Counter(chain.from_iterable(map(_BY_WORD.__getitem__, different & _BY_WORD.keys())))
    chosen: list[str] = []
    for script, names in _BY_SCRIPT.items():
        known = [name for name in names if name in counts]
        best = max(known, key=counts.__getitem__) if known else names[0]  # the first of equals
        if script == "LATIN" and counts[best] < _CERTAIN:
            chosen += _SHORT_TEXTS if len(different) <= _SHORT else ["english"]
        else:
            chosen.append(best)
    return tuple(chosen)


@lru_cache(maxsize=131_072)
def stems(word: str, languages: tuple[str, ...]) -> tuple[str, ...]:
    """A word without its endings, in each of the languages that have its script; at least one."""
    if len(word) > _CHARS_MAX or not word.isalpha():
        return (word,)
    script = "LATIN" if word.isascii() else _script(word[0])
    found = dict.fromkeys(
        _stem(word, language) for language in languages if _SCRIPT_OF[language] == script
    )
    return tuple(found) or (word,)


def stem(word: str) -> str:
    """A folded word without its English ending; other words are returned unchanged."""
    return stems(word, ("english",))[0] if word.isascii() else word


def _stem(word: str, language: str) -> str:
    if language == "russian":  # folding takes the mark off this letter, and endings need it
        word = _CYRILLIC_SHORT_I.sub("й", word)
    with _ONE_AT_A_TIME:
        found = _stemmer(language).stemWord(word)
    return found if len(found) >= _STEM_MIN else word


@lru_cache(maxsize=4_096)
def _script(character: str) -> str:
    return unicodedata.name(character, "NONE").split(maxsplit=1)[0]
