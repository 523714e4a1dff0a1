"""How people state facts in German; see `firnline.language.statements.patterns`."""

# ruff: noqa: RUF001, E501 - other scripts are meant, and patterns stay on one line

from __future__ import annotations

from typing import Final

from firnline.language.statements import patterns as slots
from firnline.language.statements.patterns import slot_rules

_KIN: Final = (
    r"(?:mutter|vater|mama|papa|eltern|mann|ehemann|frau|ehefrau|partner(?:in)?|freund(?:in)?|verlobte[rn]?|sohn|tochter|kind|kinder|baby|bruder|schwester"
    r"|geschwister|gro(?:ß|ss)(?:mutter|vater|eltern)|oma|opa|tante|onkel|cousine?|nichte|neffe|enkel(?:in)?|schwieger(?:mutter|vater|eltern|sohn|tochter)"
    r"|schwager|schwägerin|mitbewohner(?:in)?|kolleg(?:e|in|en)|chef(?:in)?|lehrer(?:in)?|arzt|ärztin|hausarzt|hausärztin|vermieter(?:in)?|nachbar(?:in)?"
    r"|trainer(?:in)?|söhne|töchter|stief(?:sohn|tochter|vater|mutter)|handwerker|hebamme|therapeut(?:in)?)"
)
_WHOSE: Final = (
    r"\b(?:mein|meine|unser|unsere)(?: (?:älter|jünger|klein|groß|jüngst|ältest|neu|best|zweit|erst)(?:e[rs]?|er)?)?"
    rf" (?P<whose>{_KIN})(?: (?P<called>(?-i:[A-ZÄÖÜ])[a-zäöüß]{{1,15}}))?"
)
_WHO: Final = _WHOSE.partition("(?: (?P<called>")[0]
_WHO_ELSE: Final = _WHO.replace("<whose>", "<whose2>")
_ALSO: Final = rf"(?:{_WHOSE}|{_WHO_ELSE}[^.;!?\n]{{0,50}}[,.;] ?(?:er|sie|der|die))"
"""A relative, or what stands for one in the same sentence."""
_THEY: Final = rf"(?:{_WHOSE}|{_WHO_ELSE}[^.;!?\n]{{0,60}}\b(?:und|er|sie))"
_KIN_CUES: Final = (
    "mutter vater mama papa eltern mann ehemann frau ehefrau partner partnerin freund freundin verlobte verlobter sohn tochter kind bruder schwester"
    " großmutter großvater oma opa tante onkel cousin cousine nichte neffe enkel enkelin schwiegermutter schwiegervater mitbewohner mitbewohnerin"
    " kollege kollegin chef chefin lehrer lehrerin arzt ärztin hausarzt hausärztin vermieter vermieterin nachbar nachbarin trainer trainerin handwerker hebamme"
)
_ADV: Final = r"(?: (?:jetzt|nun|derzeit|inzwischen|mittlerweile|eigentlich|wieder|noch|auch|selbst|zurzeit|gerade|seit \w+(?: \w{1,30})?|ja|schon|immer|aktuell|leider|zum glück|übrigens|nebenbei|momentan|ab \w{1,30}|jeden \w{1,30}|morgens|abends|am abend|ganz gut|gut|sehr|gern|gerne|am liebsten|täglich|hauptberuflich)){0,3}"
_END: Final = slots.END_FAR
_NAME: Final = r"(?P<value>(?-i:[A-ZÄÖÜ])[\w'’-]{1,20}(?: (?-i:[A-ZÄÖÜ])[\w'’-]{1,20}){0,2})"
_NOUNS: Final = rf"(?P<value>(?:[\wäöüß-]{{2,25}} ){{0,3}}?[\wäöüß-]{{2,25}}(?:(?:, | und | oder )(?:[\wäöüß-]{{2,20}} ){{0,2}}?[\wäöüß-]{{2,25}}){{0,3}}){_END}"
_NUM: Final = r"(?:ein(?:en?)?|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf|\d{1,2})"
_PROFESSION: Final = (
    r"(?!(?:Vegetarier|Veganer|Raucher|Nichtraucher|Deutscher?|Europäer|Anfänger|Mutter|Vater|Single|Linkshänder|Rechtshänder|Brillenträger|Berliner|Münchner|Kölner"
    r"|Hamburger|Wiener|Frankfurter|Stuttgarter|Schweizer|Österreicher|Engländer|Italiener|Spanier|Amerikaner|Allergiker|Diabetiker|Asthmatiker|Diabetikerin|Frühaufsteher"
    r"|Allergikerin|Asthmatikerin|Morgenmensch|Mitglied|Student|Studentin|Katrin|Karin|Kathrin|Kerstin|Jasmin|Yasmin|Martin|Robin|Kevin|Colin|Valentin|Benjamin|Konstantin|Quentin|Marvin|Peter|Günter|Günther|Walter|Werner|Dieter|Rainer|Reiner|Oliver|Alexander|Heiner|Holger|Rüdiger|Vincent|Laurent|Viktor|Victor|Theodor|Igor|Hektor|Vegetarierin|Veganerin|Linkshänderin|Europäerin|Anfängerin|Kunde|Kundin|Fan|Partner|Besitzer)\b)"
    r"(?-i:[A-ZÄÖÜ])[a-zäöüß-]*(?:in|er|ist|eur|ent|ant|or|wirt|mann|frau|kraft|arzt|ärztin|koch|köchin|beamte[rn]?|schwester|hebamme|hilfe|loge|graf|iker|meister|anwalt|anwältin|rat|coach|chef|manager)"
)
_STATES: Final = (
    r"versandt|verschickt|versendet|geliefert|zugestellt|storniert|bezahlt|in bearbeitung|unterwegs|offen|geschlossen|erledigt|abgeschlossen|gelöst|angekommen|eingetroffen|da|gekommen|zurückgeschickt"
    r"|erstattet|genehmigt|abgelehnt|bestätigt|behoben|verspätet|fertig|blockiert"
)
_THING: Final = r"(?P<thing>(?:bestellung|ticket|auftrag|paket|lieferung|rechnung|aufgabe|issue|vorgang|antrag|buchung|reservierung|sendung|order|task)(?: (?:nr\.?|nummer))? ?#?[A-Z]{0,4}-?\d[\w-]{0,20}|(?<=die )bestellung|(?<=meine )bestellung|(?<=das )paket|(?<=mein )paket)"
_ILLS: Final = (
    r"(?:(?:leichtes|leichte|schwere|starke|chronische|chronisches|hohen|hoher|saisonale) )?(?:asthma|diabetes(?: typ \w{1,30})?|adhs|ads|autismus|epilepsie|migräne|arthrose|arthritis|rheuma|bluthochdruck|hohen blutdruck|depressionen|angststörung|schlafstörungen"
    r"|zöliakie|neurodermitis|schuppenflechte|tinnitus|legasthenie|dyskalkulie|skoliose|bandscheibenvorfall|heuschnupfen|rückenprobleme|rückenschmerzen|höhenangst|flugangst|laktoseintoleranz|glutenunverträglichkeit|krebs|gicht|knieprobleme|herzprobleme|endometriose|schilddrüsenunterfunktion|osteoporose|reizdarm|morbus \w{1,30}|demenz|alzheimer|schlaganfall|parkinson|multiple sklerose|ms)(?: in (?:den|der|dem) \w{1,30}| im \w{1,30})?"
)
_REGIONS: Final = r"(?:Allgäu|Saarland|Schwarzwald|Ruhrgebiet|Ruhrpott|Rheinland|Harz|Sauerland|Siegerland|Münsterland|Emsland|Burgenland|Elsass|Tessin|Wallis|Vogtland|Erzgebirge|Odenwald|Spessart|Taunus|Hunsrück|Westerwald|Iran|Irak|Libanon|Kosovo|Jemen|Sudan|Oman|Norden|Süden|Osten|Westen)"
_TOOLS_BEFORE: Final = r"(?:benutzen?|nutzen?|verwenden?|setzen auf|arbeiten? mit)"

GERMAN: Final = (
    *slot_rules(
        slots.NAME,
        "any",
        "speaker",
        _KIN_CUES + " unser unsere mein meine",
        r"\b(?:mein|meine|unser|unsere) (?P<whose>[a-zäöü]*(?-i:[A-ZÄÖÜ])?[a-zäöüß]+(?:in|er|ist|eur|mann|frau)),? (?P<value>(?-i:[A-ZÄÖÜ])[a-zäöüß]{1,15})(?=\s(?:ist|hat|und|wohnt|arbeitet|hilft|kann|macht|will|kommt|mag|sagt|spielt|\w+t)\b)",
        rf"{_WHO} (?:heißt|heisst|namens|nennt sich|ist) (?:(?:frau|herr|dr\.) )*{_NAME}(?=[,.;!)]|\s*\Z|\s(?:und|ist|hat|aber|kommt|wohnt|die|der)\b)",
        rf"{_WHO},? (?P<value>(?-i:[A-ZÄÖÜ])[a-zäöüß]{{1,15}})(?=[,.;!)]|\s*\Z|\s(?:ist|hat|und|wohnt|arbeitet|lebt|hilft|kann|macht|will|kommt|mag|bleibt|sagt|spielt|studiert|programmiert|braucht|zieht|isst|\w+t)\b)",
        rf"\b(?:ich habe|wir haben|habe|haben) (?:einen?|eine) (?P<whose>{_KIN})(?: namens|,? (?:der|die) heißt)? {_NAME}",
    ),
    *slot_rules(
        slots.CHILDREN,
        "any",
        "speaker",
        "kinder kind töchter söhne zwillinge sohn tochter",
        rf"\b(?:habe|haben)(?: \w{{1,30}})? (?P<value>(?:{_NUM}|keine|zwillinge)(?: (?:kleine|erwachsene|große|süße))? (?:kinder|söhne|töchter|jungs|mädchen|kind|sohn|tochter)(?:, (?-i:[A-Z])\w+(?:(?: und|,) (?-i:[A-Z])\w{{1,30}}){{0,3}})?)",
        rf"\b(?:unsere|meine) (?P<value>{_NUM} (?:kinder|söhne|töchter|jungs|mädchen))\b",
        rf"\b(?:ich|wir) (?P<value>{_NUM} (?:\w{{1,30}} )?(?:kinder|söhne|töchter)) (?:habe|haben)\b",
    ),
    *slot_rules(
        slots.SIBLINGS,
        "any",
        "speaker",
        "schwester bruder brüder schwestern geschwister",
        rf"\b(?:ich )?habe (?P<value>{_NUM}(?: (?:ältere|jüngere|kleine|große)[nrs]?)? (?:schwestern?|brüder|bruder|geschwister)(?: und {_NUM}(?: \w{{1,30}})? (?:schwestern?|brüder|bruder))?)\b",
    ),
    *slot_rules(
        slots.AGE,
        "word",
        "speaker",
        "bin jahre alt ist rentner " + _KIN_CUES,
        r"\bich bin(?: \w{1,30})?,? (?P<value>\d{1,2})(?: jahre(?: alt)?)?(?=[.,;!)]|\s*\Z|\s(?:und|aber)\b)",
        r"\b(?P<value>\d{1,2}) jahre alt(?! (?:ist|war))\b(?<!ist \d\d jahre alt)",
        r"\bich bin [^.,;!?\n]{2,30}, (?P<value>[1-9]\d),",
        rf"{_ALSO} ist (?P<value>\d{{1,2}}|eins|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf)(?: jahre(?: alt)?)?(?=[.,;!)]|\s*\Z|\s(?:und|aber)\b)",
    ),
    *slot_rules(
        slots.HOME,
        "name",
        "speaker",
        "wohne wohnen lebe leben gezogen umgezogen ziehe ziehen wohnt lebt hause zuhause wohnort",
        rf"(?<!früher )\b(?:wohne|lebe)(?: ich| wir)?{_ADV}(?: (?:mit|bei|allein|zusammen|als) ?[^.,;!?\n]{{0,30}}?)? (?:in|bei|nahe|nähe) (?:der nähe von )?{{V}}",
        rf"\bwir (?:wohnen|leben){_ADV}(?: (?:mit|bei|zusammen)? ?[^.,;!?\n]{{0,20}}?)? in {{V}}",
        r"\b(?:bin|sind)(?: (?!nach\b)[^.,;!?\n]{1,30}?)??(?: von {OLD})? nach {S} (?:um|zurück)?gezogen",
        r"\b(?:ziehe|ziehen)(?: ich| wir)?(?: [^.,;!?\n]{1,30}?)?? von {OLD} nach {V}",
        rf"{_WHOSE} (?:wohnt|lebt|wohnen|leben){_ADV} in {{V}}",
        rf"{_WHOSE}[^.;!?\n]{{0,40}}, (?:er|sie) (?:wohnt|lebt) in {{V}}",
        r"\b(?:wohne|lebe|wohnen|leben)(?: ich| wir)? (?:nicht mehr|nicht länger) in {GONE}(?=[.,;!]|\s*\Z|\s(?:und|sondern|aber)\b)",
        r"\b(?:bin|sind)(?: [^.,;!?\n]{1,20}?)?? (?:aus|von) {GONE} (?:weggezogen|fortgezogen|ausgezogen)",
        r"\bmein (?:neuer )?wohnort ist(?: jetzt)? {V}",
    ),
    *slot_rules(
        slots.FROM,
        "name",
        "speaker",
        "komme kommen stamme",
        rf"\b(?:komme|stamme|kommen)(?: ich| wir)?(?: (?:ursprünglich|eigentlich|gebürtig|selbst)){{0,4}} aus (?:dem (?={_REGIONS}\b)|(?!dem\b)){{V}}",
    ),
    *slot_rules(
        slots.GREW_UP,
        "name",
        "speaker",
        "aufgewachsen geboren",
        r"\bin {S} (?:aufgewachsen|geboren)(?=[.,;!]|\s*\Z|\s(?:und|aber|bin)\b)",
    ),
    *slot_rules(
        slots.EMPLOYER,
        "name",
        "speaker",
        "arbeite gewechselt angefangen arbeitet angestellt fange",
        rf"\barbeite(?: ich)?{_ADV}(?: als [^.,;!?\n]{{1,30}}?)?(?: (?:ab|seit) [^.,;!?\n]{{2,20}}?)? (?:bei(?:m)?|für|in der|im|an der|am) (?:der |dem )?{{V}}",
        r"\b(?:bin|habe?)(?: [^.,;!?\n]{1,30}?)?? (?:zu|bei) {S} (?:gewechselt|angefangen|angestellt)",
        r"\b(?:fange|beginne)(?: ich)?(?: [^.,;!?\n]{1,20}?)? bei {S}(?: [^.,;!?\n]{1,20})? an\b",
        rf"{_WHOSE} arbeitet{_ADV}(?: als [^.,;!?\n]{{1,30}}?)? (?:bei|für) {{V}}",
        r"\barbeite (?:nicht mehr|nicht länger) (?:bei|für) {GONE}",
        r"\b(?:habe|hab) bei {OLD} (?:gekündigt|aufgehört)\b(?P<gone>)",
    ),
    *slot_rules(
        slots.JOB,
        "any",
        "speaker",
        "bin arbeite beruf ist unterrichte " + _KIN_CUES,
        r"\b(?:ich |und )(?P<value>unterrichte (?-i:[A-ZÄÖÜ])[\wäöüß-]{2,25}(?: und (?-i:[A-ZÄÖÜ])[\wäöüß-]{2,25})?)(?=[.,;!?)]|\s*\Z|\s(?:an|am|in|im|und|seit|für|auf)\b)",
        rf"\b(?:ich bin|und bin|bin ich|,? bin)(?: (?:von beruf|eigentlich|hauptberuflich|übrigens|selber|ja|auch|seit \w+(?: \w{{1,30}})?|selbstständige[rn]?|freiberufliche[rn]?|gelernte[rn]?|freie[rn]?|die einzige|der einzige))*,? (?P<value>{_PROFESSION})(?=[.,;!?)–]|\s*\Z|\s(?:und|in|bei|an|am|im|aber|von|für|mit|beim|auf|der|die)\b)",
        rf"\barbeite(?: ich)?{_ADV}(?: (?:bei|für|in|am|im) [^.,;!?\n]{{2,30}}?)? als (?P<value>(?:[\wäöüß-]{{2,25}} ){{0,2}}?[\wäöüß-]{{3,25}})(?=[.,;!?)–]|\s*\Z|\s(?:und|in|bei|an|am|im|aber|von|für|mit|beim)\b)",
        rf"{_WHOSE} (?:ist|arbeitet als)(?: (?:auch|ja|jetzt|von beruf))? (?P<value>{_PROFESSION})(?=[.,;!?)–]|\s*\Z|\s(?:und|in|bei|an|am|im|aber|von|für|mit|beim)\b)",
        rf"{_WHO}[^.;!?\n]{{0,40}}, (?:er|sie|der|die) (?:ist|arbeitet als) (?P<value>{_PROFESSION})(?=[.,;!?)–]|\s*\Z|\s(?:und|in|bei)\b)",
        r"\bich bin (?:jetzt |seit \w{1,30} )?(?P<value>in rente|rentner(?:in)?|pensioniert|arbeitslos|selbst(?:st)?ändig|hausfrau|hausmann|in elternzeit|azubi)\b",
        r"\b(?:bin|wurde) zur? (?P<value>(?-i:[A-ZÄÖÜ])[a-zäöüß-]{4,30}) befördert",
    ),
    *slot_rules(
        slots.STUDIES,
        "any",
        "speaker",
        "studiere studiert studium",
        r"\bstudiere(?: ich)?(?: (?:seit \w{1,30}|im \w{1,30} semester|noch|gerade|derzeit)){0,4} (?P<value>(?-i:[A-ZÄÖÜ])[\wäöüß-]{2,25}(?: und (?-i:[A-ZÄÖÜ])[\wäöüß-]{2,25})?)(?=[.,;!?)]|\s*\Z|\s(?:in|an|und|im|seit|aber)\b)",
        rf"{_WHOSE} studiert (?P<value>(?-i:[A-ZÄÖÜ])[\wäöüß-]{{2,25}})(?=[.,;!?)]|\s*\Z|\s(?:in|an|und)\b)",
    ),
    *slot_rules(
        slots.BIRTHDAY,
        "date",
        "speaker",
        "geburtstag geboren",
        r"\bmein Geburtstag (?:ist|fällt)(?: [^.;!?\d\n]{1,30}?)??(?: am)? {D}",
        r"\bich (?:bin|wurde) {D} geboren",
        r"\bich habe am {D} geburtstag",
    ),
    *slot_rules(
        slots.RELATIONSHIP,
        "word",
        "speaker",
        "verheiratet ledig single geschieden verlobt verwitwet vergeben getrennt",
        r"\b(?:ich bin|bin|wir sind|sind)(?: (?:seit \w{1,30}(?: \w{1,30})?|jetzt|frisch|glücklich|noch|wieder|inzwischen|mittlerweile|mit (?-i:[A-ZÄÖÜ])\w{1,20})){0,4} (?P<value>verheiratet|ledig|single|geschieden|verlobt|verwitwet|getrennt|vergeben)\b",
        r"\b(?:haben uns|habe mich) (?P<value>getrennt|verlobt|scheiden lassen)\b",
    ),
    *slot_rules(
        slots.DIET,
        "word",
        "speaker",
        "vegetarier vegetarierin veganer veganerin vegetarisch vegan halal koscher glutenfrei",
        r"\b(?:ich )?(?:bin|lebe|esse|ernähre mich|koche)(?: ich)?{NOW}(?: seit \w{1,30}(?: \w{1,30})?)? (?P<value>vegetarier(?:in)?|veganer(?:in)?|vegetarisch|vegan|halal|koscher|glutenfrei)\b",
        r"\bbin (?:nicht mehr|nicht länger|kein(?:e)?) (?P<gone>vegetarier(?:in)?|veganer(?:in)?|vegetarisch|vegan)(?: mehr)?\b",
        rf"{_WHOSE} (?:ist|isst|lebt|ernährt sich) (?P<value>vegetarier(?:in)?|veganer(?:in)?|vegetarisch|vegan)\b",
    ),
    *slot_rules(
        slots.DIET,
        "word",
        "speaker",
        "fleisch",
        r"\besse(?: ich)? (?:wieder|jetzt(?: wieder)?) Fleisch",
        value="eats meat",
    ),
    *slot_rules(
        slots.DIET,
        "word",
        "speaker",
        "fleisch",
        r"\besse(?: ich)?(?: (?:gar|seit \w{1,30}|jetzt)){0,4} (?P<value>kein Fleisch)(?: mehr)?\b",
    ),
    *slot_rules(
        slots.AVOIDS,
        "list",
        "speaker",
        "esse trinke vertrage rauche mag isst trinkt verträgt",
        rf"\b(?:esse|trinke|vertrage)(?: ich)?(?: (?:selbst|gar|leider|auch)){{0,4}} kein(?:e[nr]?)? (?!Fleisch){_NOUNS}",
        rf"{_WHOSE} (?:isst|trinkt|verträgt)(?: (?:gar|leider|auch)){{0,4}} kein(?:e[nr]?)? {_NOUNS}",
        r"\besse alles außer (?P<value>[\wäöüß-]{3,25})",
    ),
    *slot_rules(
        slots.ALLERGY,
        "list",
        "speaker",
        "allergisch allergie allergien unverträglichkeit " + _KIN_CUES,
        rf"\b(?:ich )?(?:bin|reagiere)(?: ich)?(?: (?:sehr|stark|leider|auch|hoch|schwer)){{0,4}} (?:allergisch (?:gegen|auf) {_NOUNS}|(?:gegen|auf) (?P<value2>[\wäöüß-]{{3,25}}(?: und [\wäöüß-]{{3,25}})?) allergisch)",
        rf"\b(?:ich )?habe(?: ich)? (?:eine? )?(?:\w{{1,30}} )?allergie gegen {_NOUNS}",
        r"\b(?:ich )?habe(?: ich)? eine (?P<value>(?-i:[A-ZÄÖÜ])[\wäöüß]{2,20})(?:allergie|-Allergie)\b",
        rf"{_WHOSE} hat (?:eine |leider eine )?(?P<value>(?-i:[A-ZÄÖÜ])[\wäöüß]{{2,20}})(?:allergie|-Allergie|unverträglichkeit)\b",
        rf"{_WHOSE} hat (?:eine )?(?:\w{{1,30}} )?(?:allergie|unverträglichkeit) gegen {_NOUNS}",
        rf"{_WHOSE} (?:ist|reagiert) (?:allergisch (?:gegen|auf) {_NOUNS}|(?:gegen|auf) (?P<value2>[\wäöüß-]{{3,25}}) allergisch)",
    ),
    *slot_rules(
        slots.ENDED,
        "any",
        "speaker",
        "allergisch mehr aufgehört verkauft gestorben tot",
        r"\b(?:bin|reagiere) (?:doch )?(?:nicht(?: mehr)?) (?:allergisch (?:gegen|auf) {GF}|(?:gegen|auf) (?P<gone2>[\wäöüß-]{3,25}) allergisch)",
        r"\b(?:habe|haben) (?:mit dem|mit der|mit) (?P<gone>[\wäöüß-]{3,25}) aufgehört\b",
        r"\b(?:habe|haben) (?:meine?n?|unsere?n?|das|den|die) (?P<gone>(?:\w{1,30} )?(?-i:[A-ZÄÖÜ])[\wäöüß-]{2,25}) (?:verkauft|gekündigt|verschenkt|abgegeben|abgeschafft)\b",
        r"\b(?:habe|nutze|benutze|spiele|nehme|fahre|haben|nutzen|verwenden)(?: ich| wir)? (?P<gone>(?-i:[A-ZÄÖÜ])[\w'+#-]{1,25}) nicht mehr\b",
        r"\b(?:habe|haben)(?: ich| wir)? kein(?:en?)? (?P<gone>(?-i:[A-ZÄÖÜ])[\wäöüß-]{2,25}) mehr\b",
        r"\b(?:unser|mein|unsere|meine) (?P<gone>(?:hund|katze|kater|hamster|pferd|kaninchen|vogel|wellensittich)(?: (?-i:[A-Z])\w{1,30})?) (?:ist (?:\w{1,30} ){0,3})?(?:gestorben|tot|eingeschläfert worden)",
    ),
    *slot_rules(
        slots.HEALTH,
        "any",
        "speaker",
        "habe haben hat leide asthma diabetes adhs zöliakie migräne arthrose legasthenie bin schwanger diabetiker diabetikerin linkshänder linkshänderin "
        + _KIN_CUES,
        rf"\b(?:ich )?(?:habe|leide (?:an|unter)|hab)(?: (?:leider|auch|ich|selbst|seit \w{{1,30}})){{0,4}} (?:eine[nr]? )?(?P<value>{_ILLS})\b",
        rf"{_THEY} (?:hat|leidet (?:an|unter)) (?:einen? )?(?P<value>{_ILLS})\b",
        r"\bich bin (?:im \w{1,30} monat )?(?P<value>schwanger|diabetiker(?:in)?|asthmatiker(?:in)?|schwerhörig|gehörlos|blind|farbenblind|laktoseintolerant|linkshänder(?:in)?|legastheniker(?:in)?|rollstuhlfahrer(?:in)?)\b",
        rf"{_WHOSE} ist (?P<value>schwanger|diabetiker(?:in)?|asthmatiker(?:in)?|schwerhörig|gehörlos|blind|linkshänder(?:in)?)\b",
    ),
    *slot_rules(
        slots.MEDICATION,
        "any",
        "speaker",
        "nehme",
        r"\bnehme(?: ich)?(?: (?:jeden \w{1,30}|täglich|morgens|abends|dagegen|seit \w{1,30}|regelmäßig|dafür)){0,4} (?P<value>(?-i:[A-ZÄÖÜ])[\wäöüß-]*(?:in|ol|il|an|en|um|fen|pril|statin|tabletten|tropfen|medikamente|antibiotika|spray|cortison)|(?:\w{1,30} )?(?:tabletten|medikamente|antibiotika|insulin|ibuprofen|metformin|paracetamol|ritalin))(?=[.,;!?)]|\s*\Z|\s(?:und|gegen|am|morgens|abends|täglich|zweimal|seit|für)\b)",
    ),
    *slot_rules(
        slots.AFRAID,
        "any",
        "speaker",
        "angst höhenangst flugangst",
        rf"\bhabe (?:\w{{1,30}} )?angst vor(?: dem| der| den)? {_NOUNS}",
    ),
    *slot_rules(
        slots.SPEAKS,
        "list",
        "speaker",
        "spreche",
        r"\bspreche(?: ich)?(?: (?:fließend|ganz gut|gut|ein bisschen|etwas|auch|nur|ein wenig|perfekt)){0,4} (?P<value>(?-i:[A-ZÄÖÜ])[a-zäöüß]*isch(?:(?:, | und )(?:etwas |ein bisschen )?(?-i:[A-ZÄÖÜ])[a-zäöüß]*isch){0,4})",
    ),
    *slot_rules(
        slots.LEARNS,
        "list",
        "speaker",
        "lerne",
        r"\blerne(?: ich)?(?: (?:gerade|seit \w{1,30}(?: \w{1,30})?|jetzt|derzeit)){0,4} (?P<value>(?-i:[A-ZÄÖÜ])[a-zäöüß]*isch|klavier|gitarre|geige)\b",
    ),
    *slot_rules(
        slots.PLAYS,
        "list",
        "speaker",
        "spiele",
        r"\bspiele(?: ich)?(?: (?:gern|gerne|seit \w+(?: \w{1,30})?|auch|selbst|in der freizeit)){0,4} (?!mit|eine|auf|keine)(?P<value>[\wäöüß-]{3,25}(?: und [\wäöüß-]{3,25})?)(?=[.,;!?)]|\s*\Z|\s(?:in|im|seit|und|aber|mit|jeden)\b)",
    ),
    *slot_rules(
        slots.LIKES,
        "list",
        "speaker",
        "liebe mag gern gerne",
        rf"\bich (?:liebe|mag)(?: (?:sehr|besonders|auch|total|wirklich))? (?!es|das|keine|dich|deine|ihre|sie|wie|diese|dass|den|die|der\b|nicht){_NOUNS}(?!\s(?:gar |überhaupt )?nicht)",
        r"\b(?:wir|ich) (?P<value>wandern?|koche[n]?|backe[n]?|lese[n]?|reise[n]?|tanze[n]?|schwimme[n]?|klettere?n?|male?n?|fotografiere[n]?) (?:sehr )?gerne?\b",
    ),
    *slot_rules(
        slots.PET,
        "any",
        "speaker",
        "hund hunde katze katzen kater hamster pferd pferde kaninchen wellensittich wellensittiche hündin welpe welpen hühner schildkröte schildkröten meerschweinchen",
        rf"\b(?:habe|haben|halte|adoptiert)\b[^.;!?\n]{{0,60}}? (?P<value>(?:{_NUM}) (?:\w{{1,30}} ){{0,2}}?(?:hunde?|katzen?|kater|hamster|pferde?|kaninchen|wellensittiche?|hündin|welpen?|hühner|schildkröten?|meerschweinchen)(?:(?: namens|, (?:der|die|das) heißt)? (?-i:[A-ZÄÖÜ])\w{{1,30}})?)(?=[.,;!?)]|\s*\Z|\s(?:und|aber|der|die|das|adoptiert|bekommen|gekauft)\b)",
        r"\b(?:mein|unser|meine|unsere) (?P<value>(?:hund|katze|kater|hamster|pferd|kaninchen|hündin)(?: heißt)? (?-i:[A-ZÄÖÜ])\w{1,30})(?=[.,;!?)]|\s*\Z|\s(?:ist|hat|und|mag|frisst|schläft)\b)",
    ),
    *slot_rules(
        slots.DRIVES,
        "any",
        "speaker",
        "fahre",
        r"\bfahre(?: ich)?(?: \w{1,30})? (?:einen?|eine) (?P<value>(?:(?:alten?|neuen?|kleinen?) )?(?-i:[A-ZÄÖÜ])[\w-]{1,20}(?: (?-i:[A-Z0-9])[\w-]{0,15})*)(?=[.,;!?)]|\s*\Z|\s(?:und|aber|mit)\b)",
    ),
    *slot_rules(
        slots.OWNS,
        "any",
        "speaker",
        "besitze hab habe gekauft fotografiere",
        r"\b(?:besitze|hab|habe|haben|fotografiere mit)(?: mir| uns)?(?: (?:gerade|neulich|kürzlich|letzte woche|gestern))? (?:einen?|eine|einer|einem) (?P<value>(?:\w{1,30} )?(?:auto|wohnung|haus|garten|schrebergarten|boot|wohnmobil|klavier|gitarre|kamera|fahrrad|e-bike|motorrad)|(?-i:[A-Z])[\w-]{1,15}(?: (?-i:[A-Z0-9])[\w-]{1,15}){1,3})(?: gekauft)?(?=[.,;!?)]|\s*\Z|\s(?:in|und|aber|mit)\b)",
    ),
    *slot_rules(
        slots.PLAN,
        "any",
        "speaker",
        "fliege fliegen fahre fahren reise reisen heirate heiraten ziehe gebucht habe haben",
        r"\b(?P<value>(?:fliegen?|fahren?|reisen?)(?: (?:ich|wir))?(?: (?:am|im|ab|nächste[nrs]?|diesen) [^,;!?\n]{2,25}?)? nach (?-i:[A-ZÄÖÜ])[\wäöüß-]{2,20})(?=[.,;!?)]|\s*\Z|\s(?:und|mit|zu|für|um|in)\b)",
        r"\bhaben?(?: (?:ich|wir))? (?P<value>am {DAY} (?:ein(?:en?)? )?(?-i:[A-ZÄÖÜ])[\wäöüß-]{3,25}(?: (?:mit|bei|in|beim) [^.,;!?\n]{2,25})?)(?=[.,;!?]|\s*\Z)",
        r"\b(?P<value>heiraten?(?: (?:ich|wir))? (?:am|im|nächste[sn]) [^,;!?\n]{2,25})(?=[.,;!?)]|\s*\Z)",
        r"\bhaben?(?: (?:ich|wir|schon|bereits))? (?P<value>(?:einen?|eine|das|ein) (?-i:[A-ZÄÖÜ])[\wäöüß-]{2,20}(?: [^.,;!?\n]{1,40}?)? gebucht)\b",
    ),
    *slot_rules(
        slots.GOAL,
        "any",
        "speaker",
        "ziel möchte will trainiere übe bereite",
        r"\b(?:trainiere|übe)(?: ich)?(?: (?:gerade|zurzeit|seit \w{1,30}(?: \w{1,30})?)){0,2} für (?:den|die|das|einen|eine|meinen|meine) (?P<value>[^.,;!?\n]{4,50}?)(?=[.,;!?)]|\s*\Z|\s(?:und|aber|im|am)\b)",
        r"\b(?:bereite)(?: ich)? mich(?: gerade)? auf (?:den|die|das|einen|eine|meinen|meine) (?P<value>(?:[\wäöüß-]{0,20}(?:marathon|prüfung|triathlon|examen|abitur|klausur|wettkampf|meisterschaft|turnier))[^.,;!?\n]{0,50}?) vor\b",
        r"\bmein ziel ist(?: es)?,? (?P<value>[^.;!?\n]{5,60})(?=[.;!?]|\s*\Z)",
    ),
    *slot_rules(
        slots.OWN,
        "any",
        "speaker",
        "adresse lieferadresse rechnungsadresse büroadresse postadresse telefonnummer handynummer mobilnummer kundennummer bestellnummer vertragsnummer mitgliedsnummer versicherungsnummer nummer mail e-mail mail-adresse größe schuhgröße kleidergröße konfektionsgröße",
        r"\bmeine? (?:neue )?(?P<thing>(?:liefer|rechnungs|büro|post)?adresse) (?:ist|lautet)(?: jetzt)?:? (?P<value>(?=[^;!?\n]{0,60}\d)(?-i:[A-ZÄÖÜ0-9])[^;!?\n]{3,80}?)(?=[;!?]|\.\s|\.?\s*\Z)",
        r"\bmeine? (?:neue )?(?P<thing>(?:telefon|handy|mobil|kunden|bestell|vertrags|mitglieds|versicherungs)?nummer|e-?mail(?:-adresse)?|mail) (?:ist|lautet)(?: jetzt)?:? (?P<value>(?=[^,;!?\n]{0,40}[\d@])[^,;!?\n]{3,50}?)(?=[,;!?]|\.\s|\.?\s*\Z)",
        r"\bmeine? (?P<thing>(?:schuh|kleider|konfektions)?größe) ist (?P<value>\d[\d,]{0,4})",
    ),
    *slot_rules(
        slots.OWN,
        "any",
        "speaker",
        "ist sind",
        r"\bmeine? (?P<thing>lieblings[\wäöüß]{2,20}) (?:ist|sind)(?: jetzt)? (?P<value>[^.,;!?\n]{1,50}?)(?=[.,;!?]|\s(?:und|aber)\b|\s*\Z)",
    ),
    *slot_rules(
        slots.TITLE,
        "name",
        "thing",
        "heißt umbenannt",
        r"\b(?:das|unser|mein|unsere|die) (?P<thing>Projekt|App|Firma|Band|Buch|Roman|Laden|Produkt|Team|Blog|Shop) heißt{NOW} [„\"]?{V}",
        r"\b(?P<thing>Projekt|App|Firma) (?:von {OLD} )?in [„\"]?{S}[“\"]? umbenannt",
    ),
    *slot_rules(
        slots.NAME,
        "any",
        "thing",
        "heißt handwerker vermieter hebamme architekt architektin anwalt",
        rf"\b(?:der|die) (?P<thing>handwerker|vermieter|architekt|architektin|anwalt|anwältin|hebamme|hund|katze|hotel) heißt {_NAME}(?=[.,;!)]|\s*\Z|\s(?:und|kommt|ist|hat)\b)",
    ),
    *slot_rules(
        slots.WISHES,
        "any",
        "speaker",
        "bitte keine kein nicht",
        r"\bbitte (?P<value>(?:schreibe?n?|schick(?:e|en)?|ruf(?:e|en)?|nenn(?:e|en)?|mach(?:e|en)?|gib|geben|verwende?n?)(?: Sie)?(?: mir| mich| uns)? (?:kein\w*|nicht|nie|immer|nur) [^.,;!?\n]{2,40})(?=[.,;!?]|\s*\Z)",
    ),
    *slot_rules(
        slots.STATUS,
        "word",
        "thing",
        _STATES.replace("|", " "),
        rf"\b{_THING}(?:\s(?:ist|wurde|wird|jetzt|nun|bereits|schon|noch|endlich|heute|immer)){{0,5}}(?P<no> nicht)?(?: bei mir)? (?P<value>{_STATES})(?= bei mir\b|[.,;!?)]|\s*\Z|\s(?:und|aber|worden)\b)",
    ),
    *slot_rules(
        slots.DATE,
        "date",
        "thing",
        "deadline termin prüfung klausur hochzeit abgabe release start handwerker umzug kommt schreibe auftritt findet steigt startet beginnt ist",
        r"\b(?:der|die|das|unser|unsere|mein|meine) (?P<thing>deadline|termin|prüfung|klausur|hochzeit|abgabe|release|start|umzug|launch|party|operation|feier|vorstellung|besprechung|meeting)(?: \w{1,30})?(?:\s(?:ist|findet|wurde|beginnt|jetzt|auf|verschoben|der|den|am)){1,5} {W}",
        r"\b(?:der|die|das|unser|unsere|mein|meine) (?:erste |nächste |letzte |große )?(?P<thing>(?-i:[A-ZÄÖÜ])[\wäöüß-]{3,25}) (?:ist|findet|startet|beginnt|steigt)(?: (?:am|jetzt am|auf den))? (?P<value>{DAY})",
        r"\bschreibe(?: ich)? (?:am )?{W} (?:eine |die )?(?P<thing>klausur|prüfung)",
        r"\b(?:der|die) (?P<thing>handwerker|maler|umzugsfirma)\b[^.;!?\n]{0,40}? kommt am {W}",
    ),
    *slot_rules(
        slots.AMOUNT,
        "text",
        "thing",
        "budget miete preis gehalt kosten",
        r"\b(?:das|unser|mein|die|meine|unsere|der) (?P<thing>budget|miete|preis|gehalt|kaution|rate)(?:\s(?:ist|beträgt|liegt|bei|jetzt|auf|wurde|etwa|rund)){1,4} {A}",
    ),
    *slot_rules(
        slots.TOOL,
        "name",
        "speaker",
        "benutze benutzen nutze nutzen verwende verwenden hosten arbeiten arbeite umgestiegen gewechselt",
        rf"\b(?:wir|ich) {_TOOLS_BEFORE} (?P<value>(?-i:[A-Z])[\w.+#-]{{1,20}}(?: (?-i:[A-Z0-9])[\w.+#-]{{0,15}})?)(?=[.,;!?]|\s*\Z|\s(?:und|für|als|aber|mit|zum)\b)",
        r"\bhosten(?: \w{1,30})? (?:bei|auf) {S}(?=[.,;!?]|\s*\Z|\s(?:und|aber)\b)",
    ),
    *slot_rules(
        slots.TOOL,
        "any",
        "speaker",
        "geschrieben gebaut programmiert datenbank backend frontend",
        r"\b(?:das|unser|die|unsere) (?P<thing>backend|frontend|app|datenbank|server|website|api) (?:ist|wurde|läuft)(?: komplett)? (?:in|mit|auf) (?P<value>(?-i:[A-Z])[\w.+#-]{1,20})(?: (?:geschrieben|gebaut|programmiert|entwickelt))?",
    ),
    *slot_rules(
        slots.CHANGE,
        "text",
        "speaker",
        "gewechselt umgestiegen statt migriert",
        r"\b(?:sind|haben)(?: \w{1,30})? von {OLD} (?:zu|auf|nach) {S} (?:gewechselt|umgestiegen|migriert|gewechselt)",
    ),
)
"""The rules of German."""
