"""Words that say nothing about a subject, in English, German, French and Spanish.

All are folded: small letters, no accents. Words that are a noun in another of the languages (war,
pour, son) are left out where a message could be about them.
"""

from __future__ import annotations

import unicodedata
from typing import Final

from firnline.log.regex import regex

_WORD: Final = regex(r"[^\W_]+(?:['’][^\W_]+)*")  # noqa: RUF001 - both apostrophes
_ELISION: Final = regex(r"^(?:[cdjlmnst]|qu)['’](?=\w)")  # noqa: RUF001


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FUNCTION: Final = _words("""
a about above actually after again ago all almost already also always am an and another any anyone
anything are as at away back be because been before being below best better between bit both but
by can can't cannot cheaper could couldn't did didn't do does doesn't doing don't done down each
either else ever every everything far few first for from further get gets getting go goes going
gone got had has hasn't have haven't having here how how's however i i'd i'll i'm i've if in
instead into is isn't just last later least less let let's like little long longer lot made make
makes many may maybe me might mine more most much must my myself need needs neither never next no
nor not nothing now of off often on once one ones only or other others our ours out over own per
perhaps please put quite rather really same say says second shall short shorter should shouldn't
since so some someone something soon still such than that's the then there there's these thing
things think this those though through thus till to today together too under until up upon us use
very via want wants was wasn't way we we'd we'll we're we've well were what what's when where
where's whether which while who who's whole whom whose why will with within without won't worse
would wouldn't yet you you'd you'll you're you've your yours yourself

aber alle alles als also am an andere auch auf aus bei beim bin bis bist bitte da dabei dafur
damit dann darf das dass davon dazu dein deine dem den denn der des die dies diese dieser dieses
dir doch du durch ein eine einem einen einer eines einfach er erst es etwas euch fur gar geht
genau gerne gibt habe haben hast hat hatte hier ich ihm ihn ihr ihre im immer in ist ja jede jetzt
kann kannst kein keine konnen kurz kurzer lang lange lieber mach mache machen macht mal man mehr
mein meine mich mir mit moglich muss nach nein nicht nichts noch nur oder ohne schon sehr sein
seine sich sie sind so soll sollte sonst uber um und uns unser unter viel viele vielleicht vom von
vor wann warum was wegen weil weiter welche welchen welcher welches wenn wer werden wie wieder
wieso wieviel will wir wird wo wozu wurde zu zum zur zwischen

alors apres assez au aussi autre aux avant avec avez avoir beaucoup bien bon ca car ce cela ces
cet cette chez ci combien comme comment dans de deja depuis des deux dire donc du elle elles en
encore est et ete etes etre eux faire fais fait faut il ils je jusqu la laquelle le lequel
les leur lui ma mais me meme mes mieux moi moins mon ne ni nos notre nous on ont ou oui par parce
pas peu peut peux plus plutot pourquoi pouvez puis quand que quel quelle quelles quelque quels qui
quoi rien s sa sans se ses si sont sous suis sur ta tes toi ton toujours tous tout toute tres tu
un une va vas vers veux voir vos votre vous vraiment y

a ahora al algo algun alguna alli antes aqui asi aun aunque bien bueno cada como con cosa cual
cuales cuando cuanta cuanto cuantos de del desde despues donde dos el ella ellos en entonces entre
era eres es esa ese eso esta estan estar estas este esto estos estoy fue ha hace hacer hacerlo
haces haga hasta haz hazlo la las le les lo los mas me mejor menos mi mis mucho muchos muy nada ni
no nos nosotros nunca o otra otro para pero poco podria por porque puede puedes puedo pues que
quien quiero se sea ser si siempre sino sobre solo su sus tal tambien tan tanto te tengo tiene
tienes todo todos tu tus un una uno unos usted va vale vez y ya yo
""")
"""Articles, pronouns, helping verbs, question words."""

FILLERS: Final = _words("""
absolutely accord add advice again agree agreed alright amazing answer anyway ask awesome awful
beispiel bien bonjour bravo bye cheers claro clear continua continue continuer cool correct course
coute cuesta cuestan d'accord daccord danke dankeschon description detail detailed details ejemplo
elaborate erklar erklare erklaren exactly example examples excellent exemple expand explain
explanation explica explicame explique expliquer fair fine genial give good goodbye gracias great
gut haha hallo hello help helpful helps hey hi hm hmm hola idea interesting it'd k keep klar know
kosten kostet lol look makes mean means meine meinst mention merci moment nah nee nice nope oh ok
okay okey parfait perfect perfecto please proceed question questions repeat rephrase rewrite
richtig right sag salut say schade schon sense show sicher sigue sorry sounds stimmt stop suggest
suggestion summarise summarize super sure table talk tell thank thanks think thx toll true try
understand understood update vale verstanden verstehe wait weitermachen welcome whatever wonderful
work worked works wow wrong yeah yep yes yup zeig
""")
"""What is said to keep a conversation going."""

REFERRING: Final = _words("""
aquello both ca ceci cela celle celles celui ceux dabei dafur damit daran darauf daruber das
davon dazu deren dessen dies diese dieser dieses dort ella ellas elle elles ello ellos er esa
ese eso esto he he's her hers him his ihm ihn ihnen ils it it'd it'll it's its lo lui one
ones she she's that that's their theirs them these they they'll they're this those
""")
"""Words that stand for something said before."""
PERSONS: Final = _words("he he's him his she she's her hers er ihn ihm elle lui ella they them")
"""Those that may stand for a person."""
POINTING: Final = _words(
    "that this these those one ones both das dies diese dieser dieses ese esa her his their its"
)
"""Those that stand for something only if no noun follows: "explain that", not "that contract"."""

BEING: Final = _words("is are was were isn't aren't ist sind est sont es")
"""Between one of them and a last word, even those stand for something: "is that safe?"."""

OPENERS: Final = _words(
    "and but or so then also und aber oder dann et mais ou puis alors y e pero o"
)
"""A question that begins with one of them goes on with the one before."""
ABOUT: Final = (("what", "about"), ("how", "about"), ("what", "if"), ("que", "tal"))
"""Pairs of words that do the same."""

_NOTHING: Final = FUNCTION | FILLERS | REFERRING


def fold(word: str) -> str:
    """A word without differences of case and accents."""
    if word.isascii():
        return word.lower()
    apart = unicodedata.normalize("NFKD", word.casefold().replace("’", "'"))  # noqa: RUF001
    return "".join(char for char in apart if not unicodedata.combining(char))


def words(text: str) -> list[str]:
    """The words of a text as they are written."""
    return _WORD.findall(text)


def root(word: str) -> str:
    """A folded word without an elided article in front of it and an English genitive behind it."""
    folded = fold(word)
    return _ELISION.sub("", folded.removesuffix("'s"))


def is_content(word: str) -> bool:
    """Whether a word, as it is written, says something about a subject."""
    folded = fold(word)
    if len(folded) == 1 and folded.isascii() and not folded.isdigit():
        return False
    return folded not in _NOTHING and root(word) not in _NOTHING
