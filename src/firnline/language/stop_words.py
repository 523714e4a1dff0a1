"""Stop words, which say nothing about a subject: one list per language.

All are folded: lower case, no accents. Words that are nouns in another of the languages (war, pour,
son) are left out. Each list starts with a core: search removes only these words, topics remove all.
"""

from __future__ import annotations

import unicodedata
from typing import Final

from firnline.log.regex import regex

_WORD: Final = regex(r"[^\W_]+(?:['’][^\W_]+)*")  # noqa: RUF001 - both apostrophes
_ELISION: Final = regex(r"^(?:[cdjlmnst]|qu)['’](?=\w)")  # noqa: RUF001


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ENGLISH_CORE: Final = _words("""
a about after all also am an and any are as at be because been before being but by can could did
do does doing for from had has have having he her here him his how i if in into is it its just me
more most my no not now of off on only or other our out over own same she should so some such than
that the their them then there these they this those through to too up very was we were what when
where which while who why will with would you your
""")
ENGLISH_FREQUENT: Final = ENGLISH_CORE | _words("""
above again below between both down each ever few further long many might much must myself nor
once ours say says shall under until whom whose yours yourself
""")
ENGLISH: Final = ENGLISH_FREQUENT | _words("""
actually ago almost already always another anyone anything away back best better bit can't cannot
cheaper couldn't didn't doesn't don't done either else every everything far first get gets getting
go goes going gone got hasn't haven't how's however i'd i'll i'm i've instead isn't last later
least less let let's like little longer lot made make makes may maybe mine need needs neither
never next nothing often one ones others per perhaps please put quite rather really second short
shorter shouldn't since someone something soon still that's there's thing things think though thus
till today together upon us use via want wants wasn't way we'd we'll we're we've well what's
where's whether who's whole within without won't worse wouldn't yet you'd you'll you're you've
""")
GERMAN_CORE: Final = _words("""
aber als am an auch auf aus bei das dass dem den der des die du ein eine einem einen einer er es
fur hat ich ihr im in ist ja mit nicht noch nur oder sich sie sind so und uns vom von was wie wir
zu zum zur
""")
GERMAN: Final = GERMAN_CORE | _words("""
alle alles also andere beim bin bis bist bitte da dabei dafur damit dann darf davon dazu dein
deine denn dies diese dieser dieses dir doch durch eines einfach erst etwas euch gar geht genau
gerne gibt habe haben hast hatte hier ihm ihn ihre immer jede jetzt kann kannst kein keine konnen
kurz kurzer lang lange lieber mach mache machen macht mal man mehr mein meine mich mir moglich
muss nach nein nichts ohne schon sehr sein seine soll sollte sonst uber um unser unter viel viele
vielleicht vor wann warum wegen weil weiter welche welchen welcher welches wenn wer werden wieder
wieso wieviel will wird wo wozu wurde zwischen
""")
FRENCH_CORE: Final = _words("""
au avec ce dans de elle en est et il je la le les nous ou par pas que qui se si sur un une vous y
""")
FRENCH: Final = FRENCH_CORE | _words("""
alors apres assez aussi autre aux avant avez avoir beaucoup bien bon ca car cela ces cet cette
chez ci combien comme comment deja depuis des deux dire donc du elles encore ete etes etre eux
faire fais fait faut ils jusqu laquelle lequel leur lui ma mais me meme mes mieux moi moins mon ne
ni nos notre on ont oui parce peu peut peux plus plutot pourquoi pouvez puis quand quel quelle
quelles quelque quels quoi rien s sa sans ses sont sous suis ta tes toi ton toujours tous tout
toute tres tu va vas vers veux voir vos votre vraiment
""")
SPANISH_CORE: Final = _words("""
como con de del el en es la las le les lo los no por que se si su sus un una y
""")
SPANISH: Final = SPANISH_CORE | _words("""
a ahora al algo algun alguna alli antes aqui asi aun aunque bien bueno cada cosa cual cuales
cuando cuanta cuanto cuantos desde despues donde dos ella ellos entonces entre era eres esa ese
eso esta estan estar estas este esto estos estoy fue ha hace hacer hacerlo haces haga hasta haz
hazlo mas me mejor menos mi mis mucho muchos muy nada ni nos nosotros nunca o otra otro para pero
poco podria porque puede puedes puedo pues quien quiero sea ser siempre sino sobre solo tal
tambien tan tanto te tengo tiene tienes todo todos tu tus uno unos usted va vale vez ya yo
""")
CORE: Final = ENGLISH_CORE | GERMAN_CORE | FRENCH_CORE | SPANISH_CORE
ENGLISH_SPLIT: Final = _words("d ll m re s t ve")
"""The second half of contractions in search terms: "we'll" is "we" and "ll"."""

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
"""Words that keep a conversation going."""

REFERRING: Final = _words("""
aquello both ca ceci cela celle celles celui ceux dabei dafur damit daran darauf daruber das
davon dazu deren dessen dies diese dieser dieses dort ella ellas elle elles ello ellos er esa
ese eso esto he he's her hers him his ihm ihn ihnen ils it it'd it'll it's its lo lui one
ones she she's that that's their theirs them these they they'll they're this those
""")
"""Words that refer to something mentioned before."""
PERSONS: Final = _words("he he's him his she she's her hers er ihn ihm elle lui ella they them")
"""Those that may refer to a person."""
POINTING: Final = _words(
    "that this these those one ones both das dies diese dieser dieses ese esa her his their its"
)
"""Those that refer only if no noun follows: "explain that", not "that contract"."""

BEING: Final = _words("is are was were isn't aren't ist sind est sont es")
"""Between one of these and a last word, even those refer to something: "is that safe?"."""

OPENERS: Final = _words(
    "and but or so then also und aber oder dann et mais ou puis alors y e pero o"
)
"""A question that starts with one of these continues the one before."""
OPENING_PAIRS: Final = (("what", "about"), ("how", "about"), ("what", "if"), ("que", "tal"))
"""The same for pairs of words."""

_NO_SUBJECT: Final = ENGLISH | GERMAN | FRENCH | SPANISH | FILLERS | REFERRING


def fold(word: str) -> str:
    """A word in lower case without accents."""
    if word.isascii():
        return word.lower()
    apart = unicodedata.normalize("NFKD", word.casefold().replace("’", "'"))  # noqa: RUF001
    return "".join(char for char in apart if not unicodedata.combining(char))


def split_words(text: str) -> list[str]:
    """The words of a text as written."""
    return _WORD.findall(text)


def word_root(word: str) -> str:
    """A folded word without a leading elided article and a trailing English genitive."""
    folded = fold(word)
    return _ELISION.sub("", folded.removesuffix("'s"))


def is_content(word: str) -> bool:
    """Whether a word as written says something about a subject."""
    folded = fold(word)
    if len(folded) == 1 and folded.isascii() and not folded.isdigit():
        return False
    return folded not in _NO_SUBJECT and word_root(word) not in _NO_SUBJECT
