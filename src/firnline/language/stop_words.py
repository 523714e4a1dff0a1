"""Stop words, which say nothing about a subject: one list per language.

All are folded: lower case, no accents. Words that are nouns in another of the languages (war, pour,
son) are left out. Each list starts with a core: search removes only these words, topics remove all.
"""

# ruff: noqa: RUF001 - letters of other alphabets look like Latin ones

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Final

from firnline.log.regex import regex
from firnline.log.text import normalize

_WORD: Final = regex(r"[^\W_]+(?:['’][^\W_]+)*")
_ELISION: Final = regex(r"^(?:[cdjlmnst]|qu)['’](?=\w)")


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
vielleicht vor wann warum wegen weil weiter dahin damals danach dann daraus daruber davor dorthin
bekomme bekommen bekommt beides beiden brauche brauchen braucht brauchst daheim deshalb dessen
durfen durft eher egal eigentlich einmal ende falls finde finden findet fast ganz geben geblieben
geben gehen gehoren gilt ging hatten heraus heisst heißt herum hin hinaus irgendwas jeder jedes
jemand kam komme kommen kommt konnte konnten konntest lasse lassen lasst liegt los manchmal meinen
meiner mochte mochten musse mussen mussten nehme nehmen niemand nimm nimmt obwohl passiert passt
raus rein reicht richtig rum sagen sagt schnell seit selbst sogar solche sollen sollten statt
steht stimmt tue tun tut trotzdem uberhaupt ungefahr uns unsere wahrend ware waren weg weiss weiß
wem wen wenig weniger wessen wie will willst wirklich wo wofur woher wohin wolle wollen wollte
womit woran worauf woraus worum wovon wovor wurden ziemlich zuerst zumindest zuruck zusammen
welche welchen welcher welches wenn wer werden wieder wieso wieviel will wird wo wozu wurde
zwischen meinem unserem
""")
FRENCH_CORE: Final = _words("""
au avec ce dans de elle en est et il je la le les nous ou par pas que qui se si sur un une vous y
""")
FRENCH: Final = FRENCH_CORE | _words("""
alors apres assez aussi autre aux avant avez avoir beaucoup bien bon ca car cela ces cet cette
chez ci combien comme comment deja depuis des deux dire donc du elles encore ete etes etre eux
faire fais fait faut ils jusqu laquelle lequel leur lui ma mais me meme mes mieux moi moins mon ne
ni nos notre on ont oui parce peu peut peux plus plutot pourquoi pouvez puis quand quel quelle
aller aurai aurait autres avais avait avons beaucoup celui chaque chose comprends connais croire
crois devrais devrait devoir dit dois doit doivent encore ensemble ensuite envie etait faudrait
jamais laisse longtemps maintenant mettre met pas peuvent pourrait pourrais prendre prend presque
personne plusieurs savoir sais sait sera serait seulement souvent suffit tant telle tel trouve
trouver veut vouloir voudrais vient venir voici voila quelles quelque quels quoi rien s sa sans
ses sont sous suis ta tes toi ton toujours tous tout toute tres tu va vas vers veux voir vos votre
vraiment
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
tambien tan tanto suele suelen debo debe deberia dice dicen decir creo ir voy vamos van ver veo
hoy ayer manana normal mismo misma parece pasa pasar poner quieres quiere saber se sabes seria
serian tener tenia algunos algunas ambos casi cerca claro dentro durante fuera gusta hacia hay
mientras nuestro nuestra otros otras parte primero segun sin solamente tanta toda todas todavia te
tengo tiene tienes todo todos tu tus uno unos usted va vale vez ya yo
""")
RUSSIAN: Final = _words("""
а без более бы был была были было быть в вам вас ваш весь во вот все всего всегда всех всю вы где
да даже для до друг его ее ей ему если есть еще же за здесь и из или им иметь их к каждый как
какая какие каким какои когда конечно которая которые которыи кто ли лучше между меня мне много
может можно мои мы на над надо нас наш не него нее нет ни них но ну нужен нужна нужно о об один он
она они оно опять от очень перед по под после потом потому почему при про просто раз с сам свои
себе себя сеичас сколько скажи со совсем спасибо стоит так такая такие такои там тебе тебя теперь
то тогда тоже только том тот три туда ты у уже хорошо хотя хочу чего чем через что чтобы чтоб эта
эти этим это этого этои этом этот эту я подскажи пожалуиста привет понятно ясно ок давай подробнее
пример короче
""")
CHINESE: Final = _words("""
为什么 怎么样 怎么办 是不是
能不能 可不可以 可以吗 有没有 什么 怎么 怎样 多少 多久 多大 哪里 哪个 哪些
哪儿 谁 吗 呢 吧 啊 了 的 地 得 着 过 是 在 有 和 与 跟 也 都 就 还 还是 不 没 很 太 更 最
我 我们 你 你们 他 她 它 他们 这 那 这个 那个 这里 那里 这样 那样 一 个 一个 一点 一下 要 会 能
可以 应该 需要 想 请 问 请问 谢谢 好 好的 嗯 然后 但是 所以 因为 如果 把 被 给 对 从 到 去 来 做
用 让 再 又 几 钱 行 短 长 举个例子 例子 继续 解释
""")
"""Texts have no spaces between them."""
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
aquello both ca ceci cela celle celles celui ceux dabei dafur damit daran darauf daruber das davon
dazu deren dessen dies diese dieser dieses dort ella ellas elle elles ello ellos er esa ese eso
esto he he's her hers him his ihm ihn ihnen ils it it'd it'll it's its lo lui one ones she she's
that that's their theirs them these they they'll they're this those его ее еи ему их им ими он она
они оно нем неи нему ней него нее это этого этои этому этим этот там туда
""")
"""Words that refer to something mentioned before."""
PERSONS: Final = _words(
    "he he's him his she she's her hers er ihn ihm elle lui ella they them он она его ее еи ему"
)
"""Those that may refer to a person."""
_OF_NOTHING: Final = _words("likely possible probable take taken takes took true")
"""After "it", these say something of the rest of the sentence."""
POINTING: Final = _words(
    "that this these those one ones both das dies diese dieser dieses ese esa her his their its"
)
"""Those that refer only if no noun follows: "explain that", not "that contract"."""

BEING: Final = _words("is are was were isn't aren't ist sind est sont es")
"""Between one of these and a last word, even those refer to something: "is that safe?"."""

SPEAKERS: Final = _words("i we")
ASKING: Final = _words("do did am are was were have had don't didn't")
"""With one of these before them and an action after them, speakers ask for facts of themselves."""
ACTIONS: Final = _words("work worked go gone going get got make made stop stopped")
"""Stop words that say something as what a speaker does: "where do I work?"."""
MEANWHILE: Final = _words("on from here wrong")
"""After an action, these make it one of the conversation: "how do we go on?"."""

OPENERS: Final = _words(
    "and but or so then also und aber oder dann et mais ou puis alors y e pero o а и но или тогда"
)
"""A question that starts with one of these continues the one before."""
OPENING_PAIRS: Final = (
    ("what", "about"),
    ("how", "about"),
    ("what", "if"),
    ("que", "tal"),
    ("а", "если"),
)
"""The same for pairs of words."""

CONTENT_MAX: Final = 2
"""Content words that a follow-up may have; with more it has a subject."""
_NO_SUBJECT: Final = ENGLISH | GERMAN | FRENCH | SPANISH | RUSSIAN | FILLERS | REFERRING
_OTHERS: Final = (GERMAN | FRENCH | SPANISH | RUSSIAN) - ENGLISH_FREQUENT
_FOREIGN_LETTERS: Final = 0.2
_WORDS_CLEAR: Final = 2
_WORDS_ENOUGH: Final = 8
_ENGLISH_SHARE: Final = 0.1
_CHINESE_WORD: Final = regex("|".join(sorted(CHINESE, key=len, reverse=True)))
_UNSPACED: Final = regex(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")


def fold(word: str) -> str:
    """A word in lower case without accents."""
    if word.isascii():
        return word.lower()
    apart = normalize("NFKD", word.casefold().replace("’", "'"))
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


def content_weight(words: Sequence[str]) -> int:
    """How many content words these are; of a script without spaces, two characters are one."""
    weight = 0
    for word in words:
        if _UNSPACED.search(word):
            weight += (len(_CHINESE_WORD.sub("", word)) + 1) // 2
        else:
            weight += is_content(word)
    return weight


def has_reference(found: Sequence[str], content_max: int = CONTENT_MAX) -> bool:
    """Whether a word refers to something outside the text, before so many words of content."""
    before = 0
    for at, word in enumerate(found):
        refers = fold(word) in REFERRING and before < content_max
        if refers and not _points_to_noun(found, at) and not _points_inside(found, at):
            return True
        before += is_content(word)
    return False


def _points_inside(found: Sequence[str], at: int) -> bool:
    """Whether the word at `at` refers to a name in the text, or to nothing.

    "When did Anna get her first cat", "one of Anna's films", "is it likely that Anna moves".
    """
    word = fold(found[at])
    after = fold(found[at + 1]) if at + 1 < len(found) else ""
    if word in PERSONS and any(map(_is_name, found[1:at])):
        return True
    if word == "that" and (after in PERSONS or after in SPEAKERS):
        return at > 0
    if word == "one" and after == "of":
        return any(map(is_content, found[at + 2 :]))
    return word == "it" and after in _OF_NOTHING and any(map(_is_name, found[at + 2 :]))


def _is_name(word: str) -> bool:
    return word[0].isupper() and is_content(word)


def _points_to_noun(found: Sequence[str], at: int) -> bool:
    """Whether the word at `at` only points to the noun after it, as in "this contract"."""
    after = found[at + 1 :]
    if fold(found[at]) not in POINTING or not after or not is_content(after[0]):
        return False
    return len(after) > 1 or at == 0 or fold(found[at - 1]) not in BEING


def is_english(text: str) -> bool | None:
    """Whether a text is English; None if it does not show: "Docker Compose problem".

    Two English function words show it, if not as many are of another language. Two of another
    language, letters of another alphabet, or a sentence without an English one show the opposite.
    """
    letters = [char for char in text if char.isalpha()]
    if sum(not char.isascii() for char in letters) > len(letters) * _FOREIGN_LETTERS:
        return False
    found = [fold(word) for word in split_words(text)]
    own = sum(word in ENGLISH_FREQUENT for word in found)
    foreign = sum(word in _OTHERS for word in found)
    if foreign >= _WORDS_CLEAR and foreign > own:
        return False
    if len(found) >= _WORDS_ENOUGH and own < len(found) * _ENGLISH_SHARE:
        return False
    return True if own >= _WORDS_CLEAR and own > foreign else None
