"""How people state facts in French; see `firnline.language.statements.patterns`."""

# ruff: noqa: RUF001, E501 - patterns stay on one line

from __future__ import annotations

from typing import Final

from firnline.language.statements import patterns as slots
from firnline.language.statements.patterns import slot_rules

_KIN: Final = (
    r"(?:mère|père|maman|papa|parents|mari|époux|femme|épouse|compagn(?:on|e)|conjointe?|copain|copine|fiancée?|fils|fille|enfants?|bébé|frère|sœur|soeur|grand-(?:mère|père)|mamie|papi"
    r"|tante|oncle|cousine?|neveu|nièce|petit-fils|petite-fille|belle-(?:mère|sœur|fille)|beau-(?:père|frère|fils)|amie?s?|ami|colocataire|coloc|collègue|patronn?e?|cheffe?|médecin|docteur|dentiste"
    r"|prof|professeure?|voisine?|propriétaire|associée?|coach|avocate?|psy)"
)
_WHO: Final = rf"\b(?:mon|ma|notre)(?: (?:petite?|grande?|meilleure?|premier|première|jeune|ex))? (?P<whose>{_KIN})(?: (?:aînée?|cadette?|de maths|d['’]\w{{1,30}}))?"
_WHOSE: Final = rf"{_WHO}(?:,? (?P<called>(?-i:[A-ZÀÉÈ])[\wàâéèêëîïôûüç-]{{1,15}}))?,?"
_KIN_CUES: Final = (
    "mère père maman papa parents mari époux femme épouse compagnon compagne conjoint conjointe copain copine fiancé fiancée fils fille enfants bébé frère sœur soeur"
    " grand-mère grand-père grand mamie papi tante oncle cousin cousine neveu nièce petit-fils petite-fille belle beau ami amie colocataire coloc collègue patron patronne chef"
    " médecin docteur dentiste prof professeur voisin voisine propriétaire associé associée coach avocat avocate psy guide"
)
_ADV: Final = r"(?: (?:maintenant|actuellement|désormais|aussi|encore|toujours|déjà|seule?|depuis (?:\w{1,30} )?\w{1,30}|ici|en ce moment|beaucoup|vraiment|surtout|également)){0,3}"
_END: Final = slots.END_FAR
_W: Final = r"[\w'’àâäéèêëîïôöûüùçœ-]"
_NAME: Final = r"(?P<value>(?-i:[A-ZÀÂÉÈÊÎÔ])[\w'’àâéèêëîïôûüç-]{1,20}(?: (?:(?-i:[A-ZÀÂÉÈÊÎÔ])[\w'’àâéèêëîïôûüç-]{1,20}|de|du|la|le)){0,3})"
_LIST: Final = (
    rf"(?P<value>(?:{_W}{{1,20}} ){{0,3}}?{_W}{{2,25}}(?:(?:, | et | ou | ni )(?:{_W}{{1,20}} ){{0,3}}?{_W}{{2,25}}){{0,4}}?)"
    r"(?=[.;:!?()\n—–]|\s-\s|,? (?:mais|parce|car|que|depuis|quand|donc|désolée?|avec|pour|ce n|aussi|en ce moment)\b|,|\s*\Z)"
)
_NUM: Final = r"(?:une?|deux|trois|quatre|cinq|six|sept|huit|neuf|dix|\d{1,2})"
_JOB: Final = (
    r"(?!(?:végétarien|végan|vegan|allergique|marié|divorcé|célibataire|veuf|veuve|français|belge|suisse|canadien|québécois|parisien|diabétique|asthmatique|dyslexique|gaucher|droitier|enceinte|fan|client|content|désolé|sûr|fatigué|nouveau|nouvelle|né|prêt|seul|perdu|en\b|à\b|au\b|le\b|la\b|un\b|une\b|très|plus|pas|trop|de\b|d['’]|bien|aussi|ici|là|contre|pour|dans|chez|votre|ton|mère|père|membre|débutant|étudiant|inscrit|intolérant|cœliaque|étranger|italien|espagnol|lyonnais|marseillais|breton))"
    rf"{_W}{{2,20}}(?:eur|euse|ier|ière|iste|icien|icienne|ien|ienne|teur|trice|ant|ante|ogue|aire|er|ère|eute|in|ine|ecte|ef|effe|at|ate|al|ale|che|graphe|of|nte|ste|ge|ure|ur)(?: (?:indépendante?|retraitée?|libérale?|de {_W}{{2,15}}|freelance|informatique|commerciale?|scolaire|d['’]{_W}{{2,15}}|du {_W}{{2,15}}))?"
)
_ILLS: Final = (
    r"(?:asthme|diabète(?: de type \w{1,30})?|tdah|autisme|épilepsie|migraines?|arthrite|arthrose|hypertension|tension|dépression|anxiété|insomnies?|maladie de \w{1,30}|maladie cœliaque|psoriasis|dyslexie|scoliose|hernie(?: \w{1,30})?"
    r"|fibromyalgie|thyroïde|cholestérol|cancer|endométriose|anémie|reflux|vertiges?|acouphènes|sclérose en plaques|eczéma|apnée du sommeil|mal de mer|vertige|problèmes de (?:dos|genou|cœur)|mal au dos|mauvais dos|rhume des foins|lombalgie|sciatique|goutte|lupus|ostéoporose)"
)
_LANGS: Final = r"(?:français|anglais|allemand|espagnol|italien|portugais|néerlandais|russe|chinois|mandarin|japonais|coréen|arabe|hébreu|grec|turc|polonais|roumain|suédois|norvégien|danois|finnois|ukrainien|tchèque|hongrois|hindi|breton|catalan|basque|occitan|corse|flamand|wolof|créole|vietnamien|berbère|kabyle|latin)"
_STATES: Final = r"expédiée?|livrée?|annulée?|payée?|en cours(?: de livraison)?|en attente|en route|retournée?|renvoyée?|remboursée?|ouverte?|fermée?|résolue?|en retard|confirmée?|approuvée?|refusée?|prête?|perdue?|arrivée?|reçue?"
_THING: Final = r"(?P<thing>(?:commande|ticket|facture|colis|réservation|dossier|tâche|demande|livraison)(?: (?:numéro|n°))? ?#?[A-Z]{0,4}-?\d[\w-]{0,20}|(?<=ma )commande|(?<=la )commande|(?<=mon )colis|(?<=le )colis)"
_IL: Final = rf"{_WHO}[^.;!?\n]{{0,50}}[,.] ?(?:il|elle)"

FRENCH: Final = (
    *slot_rules(
        slots.NAME,
        "any",
        "speaker",
        _KIN_CUES,
        rf"{_WHO},? (?:qui )?s['’]appelle {_NAME}(?=[.,;!)]|\s*\Z|\s(?:et|qui|est|a|mais)\b)",
        rf"{_WHO},? (?P<value>(?-i:[A-ZÀÉÈ])[\wàâéèêëîïôûüç]{{1,15}})(?=[.,;!)]|\s*\Z|\s(?:est|a|et|vit|habite|travaille|qui|étudie|préfère|dit|veut|fait|me|vient|va|s['’]|n['’]|ne|[a-zéè]+e)\b)",
        rf"{_WHO} est (?:le |la )?(?P<value>(?:(?:docteur|dr\.?|m\.|mme) )?(?-i:[A-ZÀÉÈ])[\wàâéèêëîïôûüç]{{1,15}}(?: (?-i:[A-Z])\w{{1,15}})?)(?=[.,;!)]|\s*\Z)",
        rf"\bj['’]ai (?:un|une) (?P<whose>{_KIN})(?: qui s['’]appelle|,?) {_NAME}",
    ),
    *slot_rules(
        slots.NAME,
        "any",
        "thing",
        "appelle s'appelle s’appelle",
        rf"\b(?:le|la|notre|mon|ma|l['’]) ?(?P<thing>(?!projet|appli|boutique|livre|roman|groupe|équipe|société|librairie|entreprise){_W}{{4,18}}) s['’]appelle (?:(?:mme|m\.|madame|monsieur) )?{_NAME}(?=[.,;!)]|\s*\Z|\s(?:et|qui|est)\b)",
    ),
    *slot_rules(
        slots.CHILDREN,
        "any",
        "speaker",
        "enfants enfant filles fils fille jumeaux jumelles garçons",
        rf"\b(?:ai|avons|a)(?: \d{{1,2}} ans et)?(?: aussi)? (?P<value>(?:{_NUM}|pas d['’])(?: (?:grands?|petits?|petites?|jeunes))? ?(?:enfants?|filles?|fils|garçons|jumeaux|jumelles)(?:, (?-i:[A-Z])\w+(?:(?: et|,) (?-i:[A-Z])\w{{1,30}}){{0,3}})?)",
        rf"\bmes (?P<value>{_NUM} (?:enfants|filles|fils|garçons))\b",
    ),
    *slot_rules(
        slots.SIBLINGS,
        "any",
        "speaker",
        "frère frères sœur sœurs soeurs",
        rf"\bj['’]ai (?P<value>{_NUM} (?:petite?s? |grande?s? )?(?:frères?|sœurs?|soeurs?)(?: et {_NUM} (?:frères?|sœurs?))?)\b",
    ),
    *slot_rules(
        slots.AGE,
        "word",
        "speaker",
        "ans j'ai j’ai " + _KIN_CUES,
        rf"\bj['’]ai (?P<value>\d{{1,2}}|{_W}{{3,20}}) ans\b",
        rf"{_WHOSE} a (?P<value>\d{{1,2}}|{_W}{{3,20}}) ans\b",
    ),
    *slot_rules(
        slots.HOME,
        "name",
        "speaker",
        "habite j'habite j’habite vis habitons vivons déménagé installé installée habitent vit vivent déménage",
        rf"\b(?:j['’]habite|je vis|nous (?:habitons|vivons)|on (?:habite|vit)){_ADV}(?: (?:avec|chez|seule?|près de)[^.,;!?\n]{{1,25}}?)? (?:à|au|en|aux) (?!côté|la\b|deux|trois){{V}}",
        r"\b(?:j['’]ai|nous avons|on a|je viens de|nous venons de) (?:récemment |enfin )?(?:déménagé|déménager)(?: (?:le mois dernier|la semaine dernière|il y a \w{1,30} \w{1,30}))?(?: de {OLD})? (?:à|au|en) {V}",
        r"\b(?:je me suis|on s['’]est|nous nous sommes) installée?s? (?:à|au|en) {V}",
        rf"{_WHOSE} (?:habite|vit|habitent|vivent){_ADV} (?:à|au|en) {{V}}",
        rf"{_IL} (?:habite|vit) (?:à|au|en) {{V}}",
        r"\bj['’]habite (?:au )?\d{1,4}(?: bis)?,? [^.,;!?\n]{3,40}? à {V}",
        r"\b(?:je n['’]habite|je ne vis|nous n['’]habitons|on n['’]habite) plus (?:à|au|en) {GONE}(?=[.,;!]|\s*\Z|\s(?:et|mais|depuis)\b)",
        r"\b(?:j['’]ai|nous avons|on a) quitté {GONE}(?=[.,;!]|\s*\Z|\s(?:et|mais|pour|il|en|le)\b)",
    ),
    *slot_rules(
        slots.FROM,
        "name",
        "speaker",
        "viens suis originaire",
        r"\b(?:je viens|je suis originaire|je suis) (?:de|d['’]) ?(?!la\b|retour|faire|finir|loin|l['’]|nouveau|bonne|mauvaise|plus|passage|permanence)(?P<value>(?-i:[A-ZÀÉ])[\w'’àâéèêëîïôûüç-]{2,20}(?: (?-i:[A-Z])[\w-]{1,20})?)(?=[.,;!?)]|\s*\Z|\s(?:et|mais|à|où)\b)",
    ),
    *slot_rules(
        slots.GREW_UP,
        "name",
        "speaker",
        "né née grandi",
        r"\b(?:je suis née?|j['’]ai grandi) (?:à|au|en) {V}",
    ),
    *slot_rules(
        slots.EMPLOYER,
        "name",
        "speaker",
        "travaille commencé rejoint embauché embauchée commence bosse travaillons quitté démissionné",
        rf"\bje (?:travaille|bosse){_ADV}(?: comme [^.,;!?\n]{{1,30}}?)? (?:chez|pour|au|à l['’]|à la) ?(?!maison|domicile|temps|mi-|distance|mon\b|un\b|une\b|distance){{V}}",
        r"\b(?:j['’]ai commencé|j['’]ai rejoint|je commence|j['’]ai été embauchée?)(?: (?:comme [^.,;!?\n]{1,25}?|lundi|demain))? ?(?:chez )?{V}",
        rf"{_WHOSE} travaille{_ADV}(?: comme [^.,;!?\n]{{1,30}}?)? (?:chez|pour|au|à la|à l['’]) ?{{V}}",
        r"\bet je travaille (?:au|chez|à) {V}",
        r"\bje ne travaille plus (?:chez|pour|à|au) {GONE}(?=[.,;!]|\s*\Z|\s(?:et|mais)\b)",
        r"\bj['’]ai (?:démissionné|quitté mon (?:travail|emploi|poste))(?: (?:de|d['’]|chez) ?{GONE})?",
    ),
    *slot_rules(
        slots.JOB,
        "any",
        "speaker",
        "suis travaille est bosse enseigne j'enseigne j’enseigne " + _KIN_CUES,
        rf"\b(?P<value>j['’]enseigne (?:le |la |les |l['’])?{_W}{{3,20}}(?: et (?:le |la |l['’])?{_W}{{3,20}})?)(?=[.,;!?)]|\s*\Z|\s(?:à|au|en|dans|et|depuis)\b)",
        rf"\bje suis(?: (?:aussi|actuellement|maintenant|un|une|désormais))? (?P<value>{_JOB})(?=[.,;!?)–]|\s-\s|\s*\Z|\s(?:et|à|au|en|dans|mais|depuis|chez|pour|avec|de nuit)\b)",
        rf"\bje (?:travaille|bosse)(?: [^.,;!?\n]{{1,20}}?)? comme (?P<value>(?:{_W}{{2,20}} ){{0,2}}?{_W}{{3,20}})(?=[.,;!?)]|\s*\Z|\s(?:et|à|au|en|dans|mais|depuis|chez|pour)\b)",
        rf"\bje travaille chez [^.,;!?\n]{{2,20}}? comme (?P<value>{_W}{{3,20}})",
        rf"{_WHOSE} (?:est|travaille comme)(?: aussi)? (?P<value>{_JOB})(?=[.,;!?)–]|\s*\Z|\s(?:et|à|au|en|dans|mais|depuis|chez|pour|avec)\b)",
        rf"{_IL} est (?P<value>{_JOB})(?=[.,;!?)–]|\s*\Z|\s(?:et|à|au|en|dans|chez)\b)",
        r"\bje suis (?P<value>à la retraite|retraitée?|au chômage|indépendante?|à mon compte|freelance|mère au foyer|père au foyer|en congé (?:maternité|parental))\b",
    ),
    *slot_rules(
        slots.RUNS,
        "any",
        "speaker",
        "tiens tenons gère dirige",
        rf"\b(?:je (?:tiens|gère|dirige)|nous tenons|on tient|j['’]ai) (?P<value>une? (?:{_W}{{2,20}} ){{0,2}}?(?:librairie|boulangerie|restaurant|boutique|magasin|entreprise|café|bar|ferme|salon|agence|atelier|cabinet|hôtel|épicerie|garage|brasserie|crèperie|société))(?=[.,;!?)]|\s*\Z|\s(?:et|à|au|en|dans|avec|mais|de)\b)",
    ),
    *slot_rules(
        slots.STUDIES,
        "any",
        "speaker",
        "étudie étudiant étudiante fais terminale licence master",
        rf"{_WHOSE} étudie (?:le |la |les |l['’])?(?P<value>{_W}{{3,20}})(?=[.,;!?)]|\s*\Z|\s(?:à|au|en|et|depuis)\b)",
        rf"\bj['’]étudie (?:le |la |l['’]|les )?(?P<value>(?:{_W}{{2,20}} ){{0,2}}?{_W}{{3,20}})(?=[.,;!?)]|\s*\Z|\s(?:à|au|en|et|depuis|mais)\b)",
        rf"\bje suis (?:étudiante?|en (?:licence|master|doctorat|fac|école|prépa|bts)) (?:en |de |d['’])(?P<value>(?:{_W}{{2,20}} ){{0,1}}?{_W}{{3,20}})(?=[.,;!?)]|\s*\Z|\s(?:à|au|et|depuis)\b)",
        r"\bje suis en (?P<value>terminale|première|seconde|troisième|prépa)\b",
    ),
    *slot_rules(
        slots.BIRTHDAY,
        "date",
        "speaker",
        "anniversaire née né",
        r"\bmon anniversaire (?:est|tombe|c['’]est){NOW} {D}",
        r"\bje suis née? (?:à \w{1,30} )?{D}",
    ),
    *slot_rules(
        slots.RELATIONSHIP,
        "word",
        "speaker",
        "marié mariée célibataire divorcé divorcée veuf veuve fiancé fiancée pacsé pacsée séparé séparée",
        r"\b(?:je suis|on est|nous sommes)(?: (?:heureusement|maintenant|depuis peu|récemment|toujours|encore)){0,4} (?P<value>mariée?s?|célibataire|divorcée?s?|veuf|veuve|fiancée?s?|pacsée?s?|séparée?s?)\b",
    ),
    *slot_rules(
        slots.DIET,
        "word",
        "speaker",
        "végétarien végétarienne végan végane vegan cœliaque intolérant intolérante",
        r"\bje suis(?: devenue?)?{NOW} (?P<value>végétarien(?:ne)?|végane?|vegan|cœliaque|coeliaque|intolérante? au (?:lactose|gluten))\b",
        rf"{_WHOSE} est{{NOW}} (?P<value>végétarien(?:ne)?|végane?|vegan|cœliaque|intolérante? au (?:lactose|gluten))\b",
        r"\bje ne suis plus (?P<gone>végétarien(?:ne)?|végane?|vegan)\b",
    ),
    *slot_rules(
        slots.DIET,
        "word",
        "speaker",
        "viande",
        r"\bje (?:re)?mange{NOW}(?: à nouveau| de nouveau)? de la viande",
        value="eats meat",
    ),
    *slot_rules(
        slots.DIET,
        "word",
        "speaker",
        "viande",
        r"\bje (?P<value>ne mange (?:pas|plus|jamais) de viande)",
    ),
    *slot_rules(
        slots.AVOIDS,
        "list",
        "speaker",
        "mange bois supporte digère tolère",
        rf"\bje ne (?:mange|bois|supporte|digère|tolère) (?:pas|plus|jamais) (?:de la |de l['’]|de |du |des |d['’]|le |la |les |l['’])(?!viande){_LIST}",
    ),
    *slot_rules(
        slots.ALLERGY,
        "list",
        "speaker",
        "allergique allergie allergies " + _KIN_CUES,
        rf"\bje suis(?: \w{{1,30}})? allergique (?:à l['’]|à la |au |aux |à ){_LIST}",
        rf"\bj['’]ai une allergie (?:à l['’]|à la |au |aux |à ){_LIST}",
        rf"{_WHOSE} est(?: \w{{1,30}})? allergique (?:à l['’]|à la |au |aux |à ){_LIST}",
    ),
    *slot_rules(
        slots.ENDED,
        "any",
        "speaker",
        "allergique vendu arrêté mort morte utilise ai plus",
        r"\bje ne suis (?:plus|pas) allergique (?:à l['’]|à la |au |aux |à ){GF}",
        r"\b(?:j['’]ai|nous avons|on a) (?:vendu|donné|résilié) (?:mon|ma|notre|le|la) {GF}",
        r"\b(?:j['’]ai|nous avons|on a) arrêté (?:de (?:fumer|boire|manger|prendre|jouer (?:au|à la|du|de la)) ?(?:du |de la |des |d['’])?|le |la |l['’]){GF}",
        r"\b(?:je n['’]utilise|nous n['’]utilisons|on n['’]utilise|je n['’]ai|nous n['’]avons|on n['’]a|je ne prends|je ne joue) plus (?:de |d['’]|le |la |notre |du |au )?{GF}",
        r"\b(?:mon|notre|ma|le|la) (?P<gone>(?:chien(?:ne)?|chat(?:te)?|lapin|cheval|hamster|perroquet)(?: (?-i:[A-Z])\w{1,30})?) est (?:morte?|décédée?)\b",
    ),
    *slot_rules(
        slots.HEALTH,
        "any",
        "speaker",
        "ai souffre diagnostiqué suis enceinte asthme diabète diabétique " + _KIN_CUES,
        rf"\b(?:j['’]ai|je souffre (?:de|d['’]))(?: (?:un|une|du|de la|de l['’]|des|le|d['’]))? ?(?P<value>(?:{_ILLS}))(?! (?:en|tout))\b",
        rf"{_WHOSE} (?:a|souffre (?:de|d['’]))(?: (?:un|une|du|de la|de l['’]|des|le))? ?(?P<value>{_ILLS})\b",
        r"\bje suis (?P<value>diabétique|asthmatique|dyslexique|épileptique|autiste|enceinte|sourde?|aveugle|daltonien(?:ne)?|gauch(?:er|ère)|malentendante?|en fauteuil(?: roulant)?)\b",
        rf"{_WHOSE} est (?P<value>diabétique|asthmatique|dyslexique|épileptique|autiste|enceinte|sourde?|aveugle|gauch(?:er|ère)|en fauteuil(?: roulant)?)\b",
    ),
    *slot_rules(
        slots.MEDICATION,
        "any",
        "speaker",
        "prends",
        r"\bje prends (?:du |de la |de l['’]|des |un |mon |ma )?(?P<value>(?-i:[A-Z])[\wàâéèêëîïôûüç-]{3,20}|(?:médicaments?|cachets?|comprimés?) (?:pour|contre) [^.,;!?\n]{3,30}?|insuline|antidépresseurs|antibiotiques|la pilule|anxiolytiques|[a-zé]*(?:pril|ine|ol|fène|statine|prazole|mol|cilline))(?=[.,;!?)]|\s*\Z|\s(?:de temps|le|tous|chaque|et|pour|matin|depuis|avant|après|au|une|deux|trois|\d)\b)",
    ),
    *slot_rules(
        slots.AFRAID,
        "list",
        "speaker",
        "peur phobie vertige",
        rf"\bj['’]ai (?:très )?(?:peur|la phobie) (?:de l['’]|de la |des |du |de |d['’]){_LIST}",
    ),
    *slot_rules(
        slots.SPEAKS,
        "list",
        "speaker",
        "parle parlons",
        rf"\bje parle(?: (?:couramment|un peu|bien|aussi))*(?: (?:le |l['’]))? ?(?P<value>{_LANGS}(?:(?: et |, )(?:un peu )?(?:le |l['’])?{_LANGS}){{0,4}})",
    ),
    *slot_rules(
        slots.LEARNS,
        "list",
        "speaker",
        "apprends apprendre",
        rf"\bj['’]apprends (?:à jouer du |à jouer de la |le |l['’]|la )?(?P<value>{_LANGS}|piano|guitare|violon)\b",
    ),
    *slot_rules(
        slots.PLAYS,
        "list",
        "speaker",
        "joue",
        rf"\bje joue (?:du |de la |de l['’]|au |à la |aux )(?P<value>{_W}{{3,15}}(?: et (?:du |de la |au )?{_W}{{3,15}})?)(?=[.,;!?)]|\s*\Z|\s(?:et|le|depuis|pour|avec|en|tous)\b)",
    ),
    *slot_rules(
        slots.HOBBY,
        "list",
        "speaker",
        "fais",
        r"\b(?:je|et je) fais (?:du |de la |de l['’])(?P<value>escalade|natation|yoga|vélo|randonnée|danse|théâtre|judo|karaté|ski|surf|voile|équitation|course|boxe|poterie|peinture|photographie|jardinage|couture|tricot|plongée|musculation|escrime|parapente|course à pied)\b",
    ),
    *slot_rules(
        slots.LIKES,
        "list",
        "speaker",
        "adore aime j'adore j’adore j'aime j’aime",
        rf"\bj['’](?:adore|aime(?: bien| beaucoup)?) (?:les |le |la |l['’])(?!idée|autre|première|dernière){_LIST}",
    ),
    *slot_rules(
        slots.PET,
        "any",
        "speaker",
        "chien chienne chiens chat chatte chats lapin hamster cheval perroquet tortue poules",
        rf"\b(?:ai|avons|a|adopté)\b[^.;!?\n]{{0,60}}? ?(?P<value>(?:{_NUM}) (?:(?:petite?s?|vieux|vieille|grande?s?|gros|grosse|jeune|beau|belle) )?(?:chiens?|chiennes?|chats?|chattes?|lapins?|hamsters?|chevaux|cheval|perroquets?|tortues?|poules)(?: {_W}{{3,12}})?(?:,? (?:qui s['’]appelle|nommée?|appelée?))?(?:,? (?-i:[A-Z])\w{{1,30}})?)(?=[.,;!?)]|\s*\Z|\s(?:et|qui|mais|à|depuis|de|dans)\b)",
        r"\b(?:mon|notre|ma) (?P<value>(?:chien(?:ne)?|chat(?:te)?|lapin|hamster)(?: s['’]appelle|,)? (?-i:[A-Z])\w{1,30})(?=[.,;!?)]|\s*\Z|\s(?:est|a|et|dort|mange|adore)\b)",
    ),
    *slot_rules(
        slots.DRIVES,
        "any",
        "speaker",
        "conduis roule j'ai j’ai",
        r"\b(?:je conduis|je roule en|j['’]ai) (?:une? )?(?P<value>(?:(?:vieille|vieux|petite|nouvelle) )?(?-i:[A-Z])[\w-]{1,15}(?: (?-i:[A-Z0-9])[\w-]{0,12}){0,2})(?=[.,;!?)]|\s*\Z|\s(?:et|mais|pour|depuis)\b)(?<! ans)",
    ),
    *slot_rules(
        slots.PLAN,
        "any",
        "speaker",
        "prépare pars partons vais allons voyage marie marions réservé inscrit inscrite déménage attends passe",
        rf"\b(?P<value>(?:je pars|nous partons|on part|je vais|nous allons|on va|je déménage|nous déménageons)(?: en vacances)? (?:à|au|en|aux) (?-i:[A-ZÀÉ])[\wàâéèêëîïôûüç-]{{2,20}}(?:,? (?:le |en |du )?{slots.WHEN})?)",
        r"\b(?P<value>je prépare (?:le|un|la|une) (?-i:[A-Z])[^.,;!?\n]{1,25}(?: pour [^.,;!?\n]{2,20})?)(?=[.,;!?]|\s*\Z)",
        r"\b(?P<value>(?:je me marie|nous nous marions|on se marie) (?:le|en) [^.,;!?\n]{3,25})",
        r"\b(?P<value>(?:j['’]ai|nous avons|on a) réservé [^.,;!?\n]{3,50}?)(?=[.,;!?]|\s*\Z|\s(?:et|mais|parce)\b)",
        r"\bje me suis (?P<value>inscrite? (?:au|à la|à l['’]) ?[^.,;!?\n]{3,40})",
        r"\b(?P<value>j['’]attends (?:mon|un|notre) (?:\w{1,30} )?(?:enfant|bébé)(?: pour \w{1,30})?)",
        r"\b(?P<value>je passe (?:le bac|mon permis|un examen)(?: (?:en|le) [^.,;!?\n]{3,15})?)",
    ),
    *slot_rules(
        slots.GOAL,
        "any",
        "speaker",
        "veux objectif rêve but prépare entraîne",
        r"\bje m(?:e prépare|['’]entraîne) (?:pour|à|au)(?: (?:le|la|un|une|mon|ma|l['’])|(?<=au)) ?(?P<value>(?:(?:semi-)?marathon|triathlon|examen|concours|bac|course|permis|championnat|trail|ironman|certification)[^.,;!?\n]{0,50}?)(?=[.,;!?)]|\s*\Z|\s(?:et|mais|en (?:janvier|février|mars|avril|mai|juin|juillet|août|septembre|octobre|novembre|décembre))\b)",
        r"\bmon (?:objectif|rêve|but) (?:est|c['’]est) de (?P<value>[^.;!?\n]{5,60})(?=[.;!?]|\s*\Z)",
        rf"\bje (?:veux|voudrais|souhaite) (?P<value>(?:devenir {_W}{{3,20}}|perdre \w{{1,30}} kilos|apprendre (?:à|le|la|l['’]) ?{_W}{{3,20}}|courir un {_W}{{3,20}}|acheter (?:un|une) (?:maison|appartement|voiture)|arrêter de fumer|ouvrir (?:un|une|ma|mon) {_W}{{3,20}}|reprendre (?:la|le|l['’]) ?{_W}{{3,20}}))(?=[.,;!?]|\s*\Z|\s(?:et|mais|avant|parce)\b)",
    ),
    *slot_rules(
        slots.OWN,
        "any",
        "speaker",
        "numéro téléphone mail adresse préféré préférée",
        r"\bmon (?:nouveau )?(?P<thing>(?:numéro(?: (?:d['’]|de )?\w{1,30})?|téléphone|portable|e-?mail|mail|adresse (?:e-?mail|mail|électronique))) (?:est|c['’]est)(?: maintenant)?(?: le)?:? (?P<value>(?=[^,;!?\n]{0,40}[\d@])[^,;!?\n]{3,50}?)(?=[,;!?]|\.\s|\.?\s*\Z)",
        r"\bmon (?:nouvelle )?(?P<thing>adresse) (?:est|c['’]est)(?: maintenant)?(?: le)?:? (?P<value>(?=[^;!?\n]{0,60}\d)(?-i:[A-Z0-9])[^;!?\n]{3,80}?)(?=[;!?]|\.\s|\.?\s*\Z)",
        rf"\bm(?:on|a) (?P<thing>{_W}{{3,20}} préférée?) (?:est|c['’]est) (?P<value>[^.,;!?\n]{{1,50}}?)(?=[.,;!?]|\s(?:et|mais)\b|\s*\Z)",
    ),
    *slot_rules(
        slots.TITLE,
        "name",
        "thing",
        "s'appelle s’appelle appelle renommé renommée",
        r"\b(?:le|notre|mon|la|ma|l['’]) ?(?P<thing>projet|appli(?:cation)?|boutique|entreprise|livre|roman|groupe|blog|équipe|produit|bar|librairie|société) s['’]appelle{NOW} [«\"“]?{V}",
        r"\brenommé (?:le|la) (?P<thing>projet|appli|boutique) en {V}",
    ),
    *slot_rules(
        slots.STATUS,
        "word",
        "thing",
        "expédié expédiée livré livrée annulé annulée payé payée cours attente route retourné retournée remboursé remboursée ouvert ouverte fermé fermée résolu résolue retard confirmé confirmée prêt prête arrivé arrivée",
        rf"\b{_THING}(?:\s(?:est|a|été|maintenant|déjà|toujours|encore|enfin)){{0,4}} (?P<value>{_STATES})\b",
        rf"\b{_THING}(?P<no> (?:n['’](?:est|a)|ne sont) (?:toujours )?(?:pas|plus))(?:\s(?:encore|été|toujours)){{0,2}} (?P<value>{_STATES})\b",
    ),
    *slot_rules(
        slots.DATE,
        "date",
        "thing",
        "examen oral réunion mariage sortie lancement fête rendez-vous date travaux lieu bac concours",
        r"\b(?:le|la|l['’]|mon|notre|ma|les) ?(?P<thing>(?:examen|oral|réunion|mariage|sortie|lancement|fête|rendez-vous|date de sortie|date limite|travaux|concours|opération|déménagement|concert|soutenance|bac)(?: (?:de|des|du) (?:\w{1,30} ?){1,3})?)(?:\s(?:est|sera|aura lieu|a lieu|commence|commencent|tombe|le)){1,3} {W}",
    ),
    *slot_rules(
        slots.AMOUNT,
        "text",
        "thing",
        "budget loyer prix salaire",
        r"\b(?:le|notre|mon) (?P<thing>budget|loyer|prix|salaire)(?: \w{1,30})?(?:\s(?:est|sera|de|passe|maintenant|à|environ)){1,4} {A}",
    ),
    *slot_rules(
        slots.TOOL,
        "any",
        "speaker",
        "utilise utilisons écrite écrit codée hébergée",
        r"\b(?:on utilise|nous utilisons|j['’]utilise|je me sers de) (?P<value>(?-i:[A-Z])[\w.+#-]{1,20}(?: (?-i:[A-Z0-9])[\w.+#-]{0,15})?)(?=[.,;!?]|\s*\Z|\s(?:pour|et|avec|mais|comme)\b)",
        r"\b(?:est|sont) (?:écrite?|codée?|développée?|hébergée?|faite?) (?:en|avec|chez|sur) (?P<value>(?-i:[A-Z])[\w.+#-]{1,20})",
    ),
    *slot_rules(
        slots.CHANGE,
        "text",
        "speaker",
        "passé passés migré remplacé",
        r"\b(?:on est|nous sommes|je suis|on a|nous avons) (?:passée?s?|migrée?s?) de {OLD} à {S}(?=[.,;!?]|\s*\Z|\s(?:et|parce|pour)\b)",
        r"\b(?:on a|nous avons|j['’]ai) remplacé {OLD} par {S}(?=[.,;!?]|\s*\Z|\s(?:et|parce|pour)\b)",
    ),
    *slot_rules(
        slots.WISHES,
        "any",
        "speaker",
        "écrivez écris réponds répondez appelez plutôt fais faites",
        r"(?:\A\W*|[,;.] |\bdonc |\bet )(?P<value>(?:écrivez|écris|réponds|répondez|appelez|appelle|contactez|fais|faites)(?:-(?:moi|nous))? (?:plutôt|toujours|seulement|uniquement|des phrases) [^.,;!?\n]{2,30})(?=[.,;!?]|\s*\Z)",
    ),
)
"""The rules of French."""
