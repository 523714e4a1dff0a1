"""How people state facts in Spanish; see `firnline.language.statements.patterns`."""

# ruff: noqa: RUF001, E501 - other scripts are meant, and patterns stay on one line

from __future__ import annotations

from typing import Final

from firnline.language.statements import patterns as slots
from firnline.language.statements.patterns import slot_rules

_KIN: Final = (
    r"(?:madre|padre|mamá|papá|padres|marido|esposo|esposa|mujer|pareja|novi[oa]|prometid[oa]|hij[oa]s?|bebé|herman[oa]s?|abuel[oa]s?|tí[oa]|prim[oa]|sobrin[oa]"
    r"|niet[oa]|suegr[oa]|cuñad[oa]|yerno|nuera|amig[oa]s?|compañer[oa](?: de piso)?|jef[ea]|médic[oa]|doctora?|dentista|profesora?|profe|vecin[oa]|casero|casera|soci[oa]"
    r"|entrenadora?|albañil|fontanero|abogad[oa]|psicólog[oa])"
)
_WHO: Final = rf"\b(?:mi|nuestr[oa])(?: (?:herman[oa]|mejor|primer|segund[oa]|otr[oa]))?(?: (?:mayor|menor|pequeñ[oa]))? (?P<whose>{_KIN})(?: (?:mayor|menor|pequeñ[oa]))?"
_WHOSE: Final = rf"{_WHO}(?: (?P<called>(?-i:[A-ZÁÉÍÓÚÑ])[\wáéíóúñ]{{1,15}}))?,?"
_KIN_CUES: Final = (
    "madre padre mamá papá padres marido esposo esposa mujer pareja novio novia prometido prometida hijo hija hijos hijas hermano hermana hermanos abuelo abuela"
    " tío tía primo prima sobrino sobrina nieto nieta suegro suegra cuñado cuñada amigo amiga compañero compañera jefe jefa médico médica doctor doctora dentista"
    " profesor profesora profe vecino vecina casero casera socio socia entrenador entrenadora albañil fontanero abogado abogada psicólogo psicóloga"
)
_ADV: Final = r"(?: (?:ahora|actualmente|ya|también|todavía|aún|solo|sola|desde (?:hace )?\w+(?: \w{1,30})?|hoy|mismo|siempre|mucho|además|sigo|por ahora|aquí)){0,3}"
_END: Final = slots.END_FAR
_NAME: Final = r"(?P<value>(?-i:[A-ZÁÉÍÓÚÑ])[\w'’áéíóúñ-]{1,20}(?: (?:(?-i:[A-ZÁÉÍÓÚÑ])[\w'’áéíóúñ-]{1,20}|de|del|la|los)){0,3})"
_NP: Final = rf"(?P<value>(?:[\wáéíóúñ-]{{1,20}} ){{0,4}}?[\wáéíóúñ-]{{2,25}}){_END}"
_LIST: Final = r"(?P<value>(?:[\wáéíóúñ-]{1,20} ){0,3}?[\wáéíóúñ-]{2,25}(?:(?:, | y | e | o | ni )(?:[\wáéíóúñ-]{1,20} ){0,3}?[\wáéíóúñ-]{2,25}){0,4}?)(?=[.;:!?()\n—–]|\s-\s|,? (?:pero|porque|que|desde|cuando|aunque|así|por cierto|desde|ya|como|con|para|por)\b|, [yo]|,|\s*\Z)"
_NUM: Final = r"(?:un[oa]?|dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez|\d{1,2})"
_JOB: Final = (
    r"(?!(?:vegan|vegetarian|alérgic|celíac|diabétic|español|mexican|argentin|colombian|chilen|peruan|catalan|vasc|gallego|gallega|andaluz|solter|casad|viud|divorciad|madre|padre|zurd|fumador|cliente|fan|hij[oa]|alt[oa]|baj[oa]|nuev[oa]"
    r"|asmátic|intolerante|estudiante|dueñ|usuari|miembro|principiante|person|mejor|much|tan|muy|el|la|los|las|un|una|de|del|así|yo|consciente|feliz|capaz|disléxic|celos|tímid|tont|pobre|ric[oa]|autista))"
    r"[a-záéíóúñ]+(?:ero|era|or|ora|ista|nte|nta|ico|ica|ivo|iva|ogo|oga|ado|ada|ario|aria|ano|ana|tor|triz|iz|feur|al|az|able|ta|ólogo|óloga|urgo|urga|ef|on|ona|ente)(?: (?:jubilad[oa]|autónom[oa]|de (?:\w{1,30} )?\w{1,30}|freelance|técnic[oa]|gráfic[oa]|civil|industrial|social|clínic[oa]|web))?"
)
_ILLS: Final = (
    r"(?:asma|azúcar(?: alto)?|diabetes(?: tipo \w{1,30})?|tdah|autismo|epilepsia|migrañas?|artritis|artrosis|hipertensión|tensión alta|depresión|ansiedad|insomnio|celiaquía|psoriasis|dislexia|escoliosis|una hernia(?: \w{1,30})?|hernia(?: \w{1,30})?"
    r"|fibromialgia|tiroides|hipotiroidismo|colesterol(?: alto)?|cáncer|endometriosis|anemia|reflujo|vértigo|tinnitus|parkinson|esclerosis múltiple|crohn|colon irritable|p[aá]rkinson|alzh[eé]imer|problemas de (?:espalda|rodilla|corazón)|dolor de espalda|mala espalda|apnea del sueño|osteoporosis|lupus|gota)"
)
_LANGS: Final = r"(?:español|castellano|catalán|gallego|euskera|vasco|inglés|francés|alemán|italiano|portugués|ruso|chino|mandarín|japonés|coreano|árabe|hebreo|griego|turco|polaco|rumano|neerlandés|holandés|sueco|noruego|danés|finés|ucraniano|checo|húngaro|hindi|quechua|guaraní|náhuatl|valenciano|latín)"
_STATES: Final = r"enviad[oa]|entregad[oa]|cancelad[oa]|pagad[oa]|pendiente|en camino|en tránsito|devuelt[oa]|reembolsad[oa]|abiert[oa]|cerrad[oa]|resuelt[oa]|retrasad[oa]|confirmad[oa]|aprobad[oa]|rechazad[oa]|list[oa]|en proceso|perdid[oa]|llegado|sido (?:enviad|entregad)[oa]"
_THING: Final = r"(?P<thing>(?:pedido|ticket|factura|paquete|reserva|incidencia|tarea|solicitud|caso|envío)(?: (?:número|nº|n\.º))? ?#?[A-Z]{0,4}-?\d[\w-]{0,20}|(?<=mi )pedido|(?<=el )pedido|(?<=el )paquete|(?<=mi )paquete)"

SPANISH: Final = (
    *slot_rules(
        slots.NAME,
        "any",
        "speaker",
        _KIN_CUES,
        rf"{_WHO},? (?:que )?se llama {_NAME}(?=[.,;!)]|\s*\Z|\s(?:y|que|es|tiene|pero)\b)",
        rf"{_WHO},? (?P<value>(?-i:[A-ZÁÉÍÓÚÑ])[\wáéíóúñ]{{1,15}})(?=[.,;!)]|\s*\Z|\s(?:es|tiene|y|vive|trabaja|que|estudia|prefiere|dice|quiere|conduce|viene|está|va|[a-záéíóúñ]+[aeó])\b)",
        rf"{_WHO} es (?:el |la )?(?P<value>(?:(?:doctora?|dr\.|dra\.) )?(?-i:[A-ZÁÉÍÓÚÑ])[\wáéíóúñ]{{1,15}}(?: (?-i:[A-ZÁÉÍÓÚÑ])[\wáéíóúñ]{{1,15}})?)(?=[.,;!)]|\s*\Z)",
        rf"\btengo (?:un|una) (?P<whose>{_KIN})(?: que se llama|,?) {_NAME}",
    ),
    *slot_rules(
        slots.NAME,
        "any",
        "thing",
        "llama albañil fontanero guía hotel perro arquitecto arquitecta",
        rf"\b(?:el|la) (?P<thing>albañil|fontanero|guía|hotel|arquitect[oa]|abogad[oa]|caser[oa]) se llama {_NAME}(?=[.,;!)]|\s*\Z|\s(?:y|que|es)\b)",
    ),
    *slot_rules(
        slots.CHILDREN,
        "any",
        "speaker",
        "hijos hijas hijo hija gemelos mellizos niños madre padre",
        rf"\b(?:tengo|tenemos)(?: ya)? (?P<value>(?:{_NUM})(?: pequeñ[oa]s?)? (?:hij[oa]s?|niñ[oa]s|gemel[oa]s|mellizos)(?:, (?-i:[A-Z])\w+(?:(?: y|,) (?-i:[A-Z])\w{{1,30}}){{0,3}})?)",
        rf"\bmis (?P<value>{_NUM} (?:hij[oa]s|niñ[oa]s))\b",
        rf"\b(?:soy|y) (?P<value>(?:madre|padre) de (?:{_NUM}|mellizos|gemelos|gemelas|una \w{{1,30}}|un \w{{1,30}}))\b",
    ),
    *slot_rules(
        slots.SIBLINGS,
        "any",
        "speaker",
        "hermanos hermanas hermano hermana",
        rf"\btengo (?P<value>(?:{_NUM}) (?:herman[oa]s?)(?: (?:mayor(?:es)?|menor(?:es)?|pequeñ[oa]s?))?)",
    ),
    *slot_rules(
        slots.AGE,
        "word",
        "speaker",
        "años tengo tiene " + _KIN_CUES,
        r"\btengo (?P<value>\d{1,2}|[a-z]+) años\b",
        rf"{_WHOSE} (?:que )?tiene (?P<value>\d{{1,2}}|[a-z]+) años\b",
    ),
    *slot_rules(
        slots.HOME,
        "name",
        "speaker",
        "vivo vivimos resido mudé mudado mudamos mudar mudo vive viven mudado trasladé trasladado",
        rf"(?<!que )\b(?:vivo|vivimos|resido){_ADV}(?: (?:con|sol[oa]|cerca de|en un[ao]? [^.,;!?\n]{{1,25}}?)[^.,;!?\n]{{0,20}}?)? en (?:un (?:pueblo|piso|barrio) (?:de|en|cerca de) )?(?!un\b|una\b|casa\b|el piso|la\b|el\b){{V}}",
        r"\b(?:me mudé|me he mudado|nos mudamos|nos hemos mudado|me acabo de mudar|nos acabamos de mudar|me trasladé|me he trasladado)(?: (?:hace \w{1,30} \w{1,30}|ayer|la semana pasada|el mes pasado))?(?: de {OLD})? a {V}",
        rf"{_WHOSE} (?:vive|viven){_ADV} en {{V}}",
        rf"{_WHO}[^.;!?\n]{{0,50}}, (?:vive|y vive) en {{V}}",
        r"\bya no (?:vivo|vivimos) en {GONE}(?=[.,;!]|\s*\Z|\s(?:y|sino|pero|desde)\b)",
        r"\b(?:me fui|nos fuimos|me he ido) de {GONE}(?=[.,;!]|\s*\Z|\s(?:y|hace|en|el)\b)",
    ),
    *slot_rules(
        slots.FROM,
        "name",
        "speaker",
        "soy somos vengo procedo",
        r"\b(?:soy|somos|vengo|procedo)(?: (?:originariamente|originalmente))? de (?!la\b|las\b|los\b|el\b|l[ao]s? que|eso|ese|verdad|acuerdo){V}",
    ),
    *slot_rules(
        slots.GREW_UP,
        "name",
        "speaker",
        "nací crecí criado criada",
        r"\b(?:nací|crecí|me crié|me he criado)(?: y crecí)? en {V}",
    ),
    *slot_rules(
        slots.EMPLOYER,
        "name",
        "speaker",
        "trabajo empecé trabajar empiezo trabaja trabajamos contratado fichado dejé",
        rf"\b(?<!mi )(?<!el )trabajo{_ADV}(?: (?:como|de) [^.,;!?\n]{{1,30}}?)? (?:en|para) (?:el |la )?(?!casa\b|un\b|una\b|remoto){{V}}",
        r"\b(?:empecé|he empezado|empiezo|voy a empezar)(?: a trabajar| un nuevo trabajo)?(?: como [^.,;!?\n]{1,30}?)? en {V}",
        rf"{_WHOSE} trabaja{_ADV}(?: (?:como|de) [^.,;!?\n]{{1,30}}?)? (?:en|para) (?!casa\b|un\b|una\b){{V}}",
        r"\bya no trabajo (?:en|para) {GONE}(?=[.,;!]|\s*\Z|\s(?:y|sino|pero)\b)",
        r"\b(?:dejé|he dejado) (?:mi trabajo|el trabajo)(?: en {GONE})?",
    ),
    *slot_rules(
        slots.EMPLOYER,
        "any",
        "speaker",
        "trabajo",
        r"\b(?<!mi )(?<!el )trabajo(?: ahora)? en (?P<value>una? (?:[\wáéíóúñ-]{2,20} ){0,3}?[\wáéíóúñ-]{3,20})(?=[.,;!?)]|\s*\Z|\s(?:y|pero|de|como|desde)\b)",
    ),
    *slot_rules(
        slots.JOB,
        "any",
        "speaker",
        "soy trabajo es dedico somos enseño doy " + _KIN_CUES,
        r"\b(?P<value>(?:enseño|doy clases de) [\wáéíóúñ]{3,20}(?: y [\wáéíóúñ]{3,20})?)(?=[.,;!?)]|\s*\Z|\s(?:en|a|y|pero|desde)\b)",
        rf"\b(?:soy|y soy)(?: (?:también|ahora|desde hace \w{{1,30}} \w{{1,30}})){{0,4}} (?P<value>{_JOB})(?=[.,;!?)–]|\s-\s|\s*\Z|\s(?:y|en|pero|desde|por|que|a|con|así|jubilad[oa]|de formación|de profesión)\b)",
        r"\b(?<!mi )(?<!el )trabajo(?: ahora| actualmente)? (?:como|de) (?P<value>(?:[\wáéíóúñ-]{2,20} ){0,3}?[\wáéíóúñ-]{3,20})(?=[.,;!?)]|\s*\Z|\s(?:y|en|pero|para|desde|así)\b)",
        rf"{_WHOSE} (?:es|trabaja (?:como|de))(?: también)? (?P<value>{_JOB})(?=[.,;!?)–]|\s*\Z|\s(?:y|en|pero|desde|por|que|a|con)\b)",
        r"\b(?:estoy|soy) (?P<value>jubilad[oa]|en paro|desemplead[oa]|autónom[oa]|prejubilad[oa])\b",
        r"\bme dedico a (?P<value>(?:la |el |los |las )?(?:[\wáéíóúñ-]{2,20} ){0,2}?[\wáéíóúñ-]{3,20})(?=[.,;!?)]|\s*\Z|\s(?:y|en|pero|desde)\b)",
    ),
    *slot_rules(
        slots.RUNS,
        "any",
        "speaker",
        "tengo tenemos llevo regento",
        r"\b(?:tengo|tenemos|llevo|regento|llevamos) (?P<value>una? (?:[\wáéíóúñ-]{2,20} ){0,2}?(?:tienda(?: online)?|panadería|restaurante|empresa|negocio|bar|cafetería|librería|peluquería|clínica|academia|estudio|granja|taller)(?: [\wáéíóúñ-]{3,15})?)(?=[.,;!?)]|\s*\Z|\s(?:y|en|de|con|que|pero)\b)",
    ),
    *slot_rules(
        slots.STUDIES,
        "any",
        "speaker",
        "estudio estudia estudiando",
        r"\b(?:(?<!mi )(?<!un )(?<!el )estudio|estoy estudiando)(?: (?:un máster en|un grado en|la carrera de|segundo de|primero de|tercero de))? (?!en\b|con\b|para\b|mucho\b|por\b|de\b|todo)(?P<value>(?:[\wáéíóúñ-]{2,20} ){0,2}?[\wáéíóúñ-]{3,20})(?=[.,;!?)]|\s*\Z|\s(?:en|y|pero|desde|por)\b)",
        rf"{_WHOSE} estudia (?P<value>[\wáéíóúñ-]{{3,20}})(?=[.,;!?)]|\s*\Z|\s(?:en|y)\b)",
    ),
    *slot_rules(
        slots.BIRTHDAY,
        "date",
        "speaker",
        "cumpleaños nací cumplo",
        r"\bmi cumpleaños es{NOW} {D}",
        r"\bnací (?:en [^.,;!?\n\d]{2,25} )?{D}",
        r"\bcumplo años {D}",
    ),
    *slot_rules(
        slots.RELATIONSHIP,
        "word",
        "speaker",
        "casado casada soltero soltera divorciado divorciada viudo viuda separado separada prometido prometida",
        r"\b(?:estoy|soy|estamos|me he|nos hemos)(?: (?:felizmente|ya|ahora|recién)){0,4} (?P<value>casad[oa]s?|solter[oa]|divorciad[oa]|viud[oa]|separad[oa]|prometid[oa]s?)\b",
        r"\b(?P<value>me casé|nos casamos|me divorcié|me separé)(?= (?:hace|en|el|la)\b|[.,;!]|\s*\Z)",
    ),
    *slot_rules(
        slots.DIET,
        "word",
        "speaker",
        "vegetariano vegetariana vegano vegana celíaco celíaca celiaco celiaca intolerante",
        r"\b(?:soy|me hice|me he hecho|me volví|me he vuelto){NOW} (?P<value>vegetarian[oa]|vegan[oa]|cel[ií]ac[oa]|intolerante (?:a la|al) [\wáéíóúñ]+)\b",
        rf"{_WHOSE} es{{NOW}} (?P<value>vegetarian[oa]|vegan[oa]|cel[ií]ac[oa]|intolerante (?:a la|al) [\wáéíóúñ]+)\b",
        r"\bya no soy (?P<gone>vegetarian[oa]|vegan[oa])\b",
    ),
    *slot_rules(
        slots.DIET,
        "word",
        "speaker",
        "carne",
        r"\b(?:vuelvo a comer|volví a comer|he vuelto a comer|(?<!no )como) carne",
        value="eats meat",
    ),
    *slot_rules(
        slots.DIET,
        "word",
        "speaker",
        "carne",
        r"\b(?P<value>(?:ya )?no como (?:nada de )?carne|dejé de comer carne|he dejado de comer carne)\b",
    ),
    *slot_rules(
        slots.AVOIDS,
        "list",
        "speaker",
        "como bebo tomo",
        rf"\bno (?:como|bebo|tomo|puedo (?:comer|beber|tomar))(?: nada de| ningún| ninguna)? (?!carne\b|eso\b|mucho\b|bien\b|en\b|nada\b|a\b|un\b|que\b){_LIST}",
    ),
    *slot_rules(
        slots.ALLERGY,
        "list",
        "speaker",
        "alérgico alérgica alergia alergias " + _KIN_CUES,
        rf"(?<!no )\b(?:soy|tengo)(?: (?:muy|bastante))? (?:alérgic[oa]|alergia) (?:al?|a los?|a las?) {_LIST}",
        rf"{_WHOSE} (?:es alérgic[oa]|tiene alergia) (?:al?|a los?|a las?) {_LIST}",
    ),
    *slot_rules(
        slots.ENDED,
        "any",
        "speaker",
        "alérgico alérgica vendí vendido dejé dejado murió muerto uso usamos tengo",
        r"\b(?:ya no|no) soy alérgic[oa] (?:al?|a los?|a las?) {GF}",
        r"\b(?:vendí|he vendido|vendimos|hemos vendido|regalé|cancelé|he cancelado)(?: mi| el| la| nuestro| nuestra) {GF}",
        r"\b(?:tenía|teníamos) (?:un|una) (?P<gone>[\wáéíóúñ]{3,20}) pero (?:lo|la) (?:vendí|vendimos|regalé)",
        r"\b(?:dejé|he dejado|dejamos|hemos dejado) de (?:usar|tomar|beber|comer|jugar al?|estudiar|utilizar) {GF}",
        r"\bya no (?:uso|usamos|tengo|tenemos|tomo|juego al?|conduzco)(?: (?:el|la|mi|un|una|nuestro))? {GF}",
        r"\b(?:mi|nuestr[oa]|el|la) (?P<gone>(?:perr[oa]|gat[oa]|hámster|caballo|conejo|loro)(?: (?-i:[A-Z])\w{1,30})?) (?:murió|ha muerto|se murió|falleció)\b",
    ),
    *slot_rules(
        slots.HEALTH,
        "any",
        "speaker",
        "tengo padezco sufro diagnosticado diagnosticaron asma diabetes soy estoy embarazada "
        + _KIN_CUES,
        rf"\b(?:tengo|padezco|sufro(?: de)?)(?: un poco de| algo de)? (?P<value>{_ILLS})\b",
        rf"\b(?:me han diagnosticado|me diagnosticaron|diagnosticado de|diagnosticada de) (?P<value>(?:{_ILLS}|[\wáéíóúñ-]{{4,25}}(?: [\wáéíóúñ-]{{2,15}})?))(?=[.,;!?)]|\s*\Z|\s(?:y|en|hace|el|cuando)\b)",
        rf"{_WHOSE} (?:tiene|padece|sufre(?: de)?) (?P<value>{_ILLS})\b",
        r"\b(?:soy|estoy) (?P<value>diabétic[oa]|asmátic[oa]|disléxic[oa]|epiléptic[oa]|autista|embarazada|sord[oa]|ciego|ciega|daltónic[oa]|hipertens[oa]|zurd[oa])\b",
        rf"{_WHOSE} (?:es|está) (?P<value>diabétic[oa]|asmátic[oa]|disléxic[oa]|epiléptic[oa]|autista|embarazada|sord[oa]|ciego|ciega|hipertens[oa]|zurd[oa])\b",
        rf"{_WHO} (?P<value>va en silla de ruedas|usa silla de ruedas)\b",
    ),
    *slot_rules(
        slots.MEDICATION,
        "any",
        "speaker",
        "tomo pincho inyecto uso",
        r"\b(?:tomo|me tomo|me pincho|me inyecto|uso) (?P<value>(?:(?:pastillas|medicación|medicamentos|antidepresivos|insulina) (?:para|de) [^.,;!?\n]{3,30}?|[a-záéíóúñ]*(?:pril|ina|ol|eno|statina|prazol|sartán|pam|mol|formina|idona|cilina)|insulina|antidepresivos|ansiolíticos))(?=[.,;!?)]|\s*\Z|\s(?:por|para|cada|y|todas|todos|desde|antes|después|al|una|dos|tres|\d)\b)(?<!cocina)",
    ),
    *slot_rules(
        slots.AFRAID,
        "list",
        "speaker",
        "miedo fobia pánico",
        rf"\b(?:tengo|me da|me dan) (?:\w{{1,30}} )?(?:miedo|fobia|pánico)(?: a| al| a las| a los| a la)? {_LIST}",
    ),
    *slot_rules(
        slots.SPEAKS,
        "list",
        "speaker",
        "hablo hablamos",
        rf"(?<!no )\bhablo(?: (?:bien|perfectamente|un poco de|algo de|con fluidez)){{0,4}} (?P<value>{_LANGS}(?:(?:,? y |, | e )(?:un poco de |algo de )?{_LANGS}){{0,4}})",
    ),
    *slot_rules(
        slots.LEARNS,
        "list",
        "speaker",
        "aprendiendo estudio aprendo",
        rf"\b(?:estoy aprendiendo|aprendo|estudio)(?: a tocar| a hablar)?(?: el| la)? (?P<value>{_LANGS}|piano|guitarra|violín)\b",
    ),
    *slot_rules(
        slots.PLAYS,
        "list",
        "speaker",
        "toco juego",
        r"\btoco (?:el|la|los) (?P<value>[\wáéíóúñ]{3,15}(?: y (?:el |la )?[\wáéíóúñ]{3,15})?)(?=[.,;!?)]|\s*\Z|\s(?:para|desde|en|y|pero|los)\b)",
        r"\b(?<!en )(?<!el )juego (?:al|a la|a los) (?P<value>[\wáéíóúñ]{3,15})(?=[.,;!?)]|\s*\Z|\s(?:con|desde|en|y|los|pero)\b)",
    ),
    *slot_rules(
        slots.PET,
        "any",
        "speaker",
        "perro perra perros gato gata gatos conejo hámster caballo loro tortuga gallinas periquito",
        rf"\b(?:tengo|tenemos|hemos adoptado|adopté|vivo)\b[^.;!?\n]{{0,60}}? (?P<value>(?:{_NUM}) (?:perr[oa]s?|gat[oa]s?|conej[oa]s?|hámster(?:es)?|caballos?|loros?|tortugas?|gallinas|periquitos?|galg[oa])(?:,? (?:que se llama|llamad[oa]))?(?:,? (?-i:[A-Z])\w{{1,30}})?)(?=[.,;!?)]|\s*\Z|\s(?:y|que|de|pero|en|desde|con)\b)",
        r"\b(?:mi|nuestr[oa]) (?P<value>(?:perr[oa]|gat[oa]|conejo|hámster)(?:,? se llama)? (?-i:[A-Z])\w{1,30})(?=[.,;!?)]|\s*\Z|\s(?:es|tiene|y|duerme|come|está)\b)",
    ),
    *slot_rules(
        slots.DRIVES,
        "any",
        "speaker",
        "conduzco coche moto furgoneta",
        r"\b(?:conduzco|tengo) un (?:coche )?(?P<value>(?-i:[A-Z])[\w-]{1,15}(?: (?-i:[A-Z0-9])[\w-]{0,12}){0,2})(?=[.,;!?)]|\s*\Z|\s(?:y|pero|desde|viejo|de)\b)",
        r"\btengo (?P<value>una? (?:coche|moto|furgoneta|bici(?:cleta)?)(?: (?-i:[A-Z])[\w-]{1,15}(?: (?-i:[A-Z0-9])[\w-]{0,12})*)?)(?=[.,;!?)]|\s*\Z|\s(?:y|pero|desde|de)\b)",
    ),
    *slot_rules(
        slots.PLAN,
        "any",
        "speaker",
        "vamos voy viajo viajamos vuelo volamos caso casamos reservado reservamos iremos iré mudo",
        rf"\b(?P<value>(?:nos vamos|me voy|vamos|voy|viajo|viajamos|volamos|iremos|viajaremos|me mudo|nos mudamos) (?:de \w{{1,30}} )?a (?-i:[A-ZÁÉÍÓÚ])[\wáéíóúñ]{{2,20}}(?: (?-i:[A-Z])\w{{1,30}})?(?:,? (?:el |en |la )?{slots.WHEN}(?: de \w{{1,30}})?)?)",
        r"\b(?P<value>me caso (?:el|en) [^.,;!?\n]{3,25}|nos casamos (?:el|en) [^.,;!?\n]{3,25})",
        r"\b(?P<value>(?:hemos reservado|he reservado|reservé|reservamos) [^.,;!?\n]{3,50}?)(?=[.,;!?]|\s*\Z|\s(?:y|pero|porque)\b)",
    ),
    *slot_rules(
        slots.GOAL,
        "any",
        "speaker",
        "quiero objetivo meta sueño preparando entrenando preparo entreno",
        r"\b(?:me estoy preparando|me preparo|estoy entrenando|entreno|estoy preparando)(?: (?:para|ahora|ya)){0,2} (?:el|la|las|los|un|una|mi|mis) (?P<value>(?:(?:media )?marat[oó]n|triatlón|ex[aá]men|oposici|carrera|selectividad|certifica|campeonato|ironman)[^.,;!?\n]{4,50}?)(?=[.,;!?)]|\s*\Z|\s(?:y|pero|en (?:enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre))\b)",
        r"\bmi (?:objetivo|meta|sueño) es (?P<value>[^.;!?\n]{5,60})(?=[.;!?]|\s*\Z)",
        r"\bquiero (?P<value>(?:perder \w{1,30} (?:kilos|quilos)|ser (?:[\wáéíóúñ]{4,20})|aprender a \w{1,30}|correr (?:un|una) \w{1,30}|comprar(?:me)? (?:un|una) (?:piso|casa|coche)|dejar de fumar|montar (?:mi|un) \w{1,30})[^.,;!?\n]{0,30}?)(?=[.,;!?]|\s*\Z|\s(?:y|pero|porque)\b)",
    ),
    *slot_rules(
        slots.OWN,
        "any",
        "speaker",
        "número teléfono correo dirección favorito favorita talla",
        r"\bmi (?:nuev[oa] )?(?P<thing>(?:número(?: de \w{1,30})?|teléfono|móvil|correo(?: electrónico)?|email)) es(?: ahora)?(?: el)?:? (?P<value>(?=[^,;!?\n]{0,40}[\d@])[^,;!?\n]{3,50}?)(?=[,;!?]|\.\s|\.?\s*\Z)",
        r"\bmi (?:nueva )?(?P<thing>dirección) es(?: ahora)?:? (?P<value>(?=[^;!?\n]{0,60}\d)(?-i:[A-Z0-9])[^;!?\n]{3,80}?)(?=[;!?]|\.\s|\.?\s*\Z)",
        r"\bmi (?P<thing>[\wáéíóúñ]{3,20} favorit[oa]) es(?: ahora)? (?P<value>[^.,;!?\n]{1,50}?)(?=[.,;!?]|\s(?:y|pero)\b|\s*\Z)",
        r"\bmi (?P<thing>talla(?: de \w{1,30})?) es (?:la )?(?P<value>\w{1,4})\b",
    ),
    *slot_rules(
        slots.TITLE,
        "name",
        "thing",
        "llama renombramos renombrado",
        r"\b(?:el|nuestro|mi|la|nuestra) (?P<thing>proyecto|app|aplicación|tienda|empresa|libro|novela|grupo|blog|equipo|producto|negocio|bar|librería)(?: ahora)? se llama{NOW} [«\"“]?{V}",
        r"\b(?:renombramos|hemos renombrado) (?:el|la) (?P<thing>proyecto|app|empresa) (?:a|como) {V}",
    ),
    *slot_rules(
        slots.STATUS,
        "word",
        "thing",
        _STATES.replace("|", " ").replace("[oa]", "o ")
        + " "
        + _STATES.replace("|", " ").replace("[oa]", "a "),
        rf"\b{_THING}(?:\s(?:todavía|aún|ya|ahora|sigue))?(?P<no> no)?(?:\s(?:me|nos|ha|han|sido|fue|está|ya|ahora|es|sigue|todavía|aún)){{0,4}} (?P<value>{_STATES})\b",
    ),
    *slot_rules(
        slots.DATE,
        "date",
        "thing",
        "examen reunión boda entrega campaña obras cita lanzamiento empieza empiezan fecha curso",
        r"\b(?:el|la|mi|nuestra|nuestro|las|los) (?P<thing>(?:examen|reunión|boda|entrega|campaña|obras|cita|lanzamiento|curso|fecha límite|fiesta|operación|mudanza|presentación|viaje|concierto)(?: final| oral)?)(?: de [\wáéíóúñ]+)?(?:\s(?:es|será|son|empieza|empiezan|tiene lugar|para|el|cae)){1,3} {W}",
    ),
    *slot_rules(
        slots.WISHES,
        "any",
        "speaker",
        "escríbelo escribe escríbeme respóndeme responde contéstame hazlo respóndame",
        r"(?:\A\W*|[,;.] |\by |\basí que )(?P<value>(?:escríb[ea](?:lo|me|melo)?|escribe|respónde?me|responde|respóndame|contéstame|hazlo|háblame|trátame)(?: siempre)?(?: (?:corto|breve|claro|despacio)|,? (?:sin|con|en|de) [^.,;!?\n]{2,25}))(?=[.,;!?]|\s*\Z)",
    ),
    *slot_rules(
        slots.DATE,
        "date",
        "thing",
        "es será el",
        r"\b(?:el|la|los|las|mi|nuestra|nuestro) (?P<thing>(?!cumpleaños\b)[\wáéíóúñ]{3,20})(?: (?:con|de|del) [^.,;!?\n]{2,25}?)? (?:es|será|son|empieza|se celebra) (?P<value>el {DAY})",
    ),
    *slot_rules(
        slots.AMOUNT,
        "text",
        "thing",
        "presupuesto alquiler precio sueldo",
        r"\b(?:el|nuestro|mi) (?P<thing>presupuesto|alquiler|precio|sueldo|salario)(?: de [\wáéíóúñ]+)?(?:\s(?:es|son|de|unos|ahora|sube|a)){1,3} {A}",
    ),
    *slot_rules(
        slots.TOOL,
        "any",
        "speaker",
        "usamos uso utilizamos hecha escrito prototipo backend frontend app web servidor base aplicación",
        r"\b(?:usamos|utilizamos|(?<!el )uso) (?P<value>(?:una? [\wáéíóúñ]+ )?(?-i:[A-Z])[\w.+#-]{1,20}(?: (?-i:[A-Z0-9])[\w.+#-]{0,15})?)(?=[.,;!?]|\s*\Z|\s(?:para|y|con|pero|como|en)\b)",
        r"\b(?:el|la|y el|y la) (?P<thing>prototipo|backend|frontend|app|web|servidor|base de datos|aplicación)(?: está| va| corre)? (?:en|con|sobre) (?P<value>(?-i:[A-Z])[\w.+#-]{1,20})",
        r"\b(?:está|están) (?:hech[oa]|escrit[oa]|programad[oa]|montad[oa]) (?:con|en) (?P<value>(?-i:[A-Z])[\w.+#-]{1,20})",
    ),
    *slot_rules(
        slots.CHANGE,
        "text",
        "speaker",
        "cambiamos cambiado migramos pasamos",
        r"\b(?:cambiamos|hemos cambiado|pasamos|hemos pasado|migramos) de {OLD} a {S}(?=[.,;!?]|\s*\Z|\s(?:y|porque|para)\b)",
    ),
)
"""The rules of Spanish."""
