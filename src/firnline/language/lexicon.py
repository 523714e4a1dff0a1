"""Word lists of the rules: months, weekdays, numbers, and words that are not names."""

# ruff: noqa: RUF001, E501 - other scripts are meant; they are wider than their characters

from __future__ import annotations

from typing import Final

from firnline.language import stop_words


def _numbered(lines: str) -> dict[str, int]:
    """Each line's words stand for the line's number, counted from 1."""
    pairs = enumerate(lines.strip().splitlines(), 1)
    return {word: number for number, line in pairs for word in line.split()}


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


MONTHS: Final = _numbered("""
january jan januar jänner enero janvier gennaio janeiro января январь
february feb februar febrero février febbraio fevereiro февраля февраль
march mar märz marzo mars março марта март
april apr abril avril aprile апреля апрель
may mai mayo maggio maio мая май
june jun juni junio juin giugno junho июня июнь
july jul juli julio juillet luglio julho июля июль
august aug agosto août августа август
september sep sept septiembre septembre settembre setembro сентября сентябрь
october oct oktober okt octubre octobre ottobre outubro октября октябрь
november nov noviembre novembre novembro ноября ноябрь
december dec dezember dez diciembre décembre dicembre dezembro декабря декабрь
""")
MONTHS_ALONE: Final = frozenset(
    word
    for word in MONTHS
    if len(word) > 3 and word not in {"march", "mars", "marzo", "sept"}  # noqa: PLR2004
)
"""Months that are recognized without a day or a year."""

WEEKDAYS: Final = _numbered("""
monday mondays montag montags lunes lundi понедельник
tuesday tuesdays dienstag dienstags martes mardi вторник
wednesday wednesdays mittwoch mittwochs miércoles mercredi среда среду
thursday thursdays donnerstag donnerstags jueves jeudi четверг
friday fridays freitag freitags viernes vendredi пятница пятницу
saturday saturdays samstag samstags sábado samedi суббота субботу
sunday sundays sonntag sonntags domingo dimanche воскресенье
""")

SMALL_NUMBERS: Final = _numbered("""
one
two
three
four
five
six
seven
eight
nine
ten
eleven
twelve
thirteen
fourteen
fifteen
sixteen
seventeen
eighteen
nineteen
""")
FOREIGN_NUMBERS: Final = _numbered("""
eins uno einen первый first once
zwei dos deux два две second twice couple pair both 二 两
drei tres trois три third 三
vier cuatro quatre четыре fourth quarter 四
fünf cinco cinq пять fifth 五
sechs seis six шесть sixth 六
sieben siete sept семь seventh 七
acht ocho huit восемь eighth 八
neun nueve neuf девять ninth 九
zehn diez dix десять tenth 十
elf once onze одиннадцать
zwölf doce douze двенадцать dozen
""")
"""Number words that support a number of a summary; in the summary itself they are not checked."""
TENS: Final = {
    word: 10 * number
    for word, number in _numbered("""
ten
twenty
thirty
forty
fifty
sixty
seventy
eighty
ninety
""").items()
    if number > 1
}
SCALES: Final = {
    "hundred": 100,
    "thousand": 1_000,
    "k": 1_000,
    "million": 1_000_000,
    "mn": 1_000_000,
    "billion": 1_000_000_000,
    "bn": 1_000_000_000,
}

COMMON: Final = (
    # Function words and what sentences start with.
    frozenset(word for word in stop_words.ENGLISH if word.isalpha())
    # These may stand at the start of a name; "may" is a month, too.
    - _words("""
ago bit cannot doing far gets getting goes going gone him little may myself ones says way whole
whom worse yourself
""")
    | _words("""
according across add added afterwards although apart around ask asked asking available based
besides beyond bring call case certainly change check choose clear clearly come consider consult
contact create current currently day days decide despite dont due during earlier end enjoy ensure
even eventually everyone exactly except expect final finally find fine firstly five following four
furthermore future generally give given goal good great hello help hence hers hey hi hope id ill
im important include including indeed initially inside itself ive keep key lastly lately latest
lets likely list look looks main mean meanwhile moreover mostly move nevertheless new nice nobody
none notably note oh ok okay old onto open originally otherwise overall part perfect plus possibly
previously probably quick ready recently regarding remember right save secondly see seems send
several show similarly simply six somebody sometimes sorry sounds start started starting stop sure
take tell ten thank thanks thats theirs thereafter therefore theyre third three throughout
tomorrow tonight toward towards true try two unfortunately unless used using usually various wait
went weve whatever whenever whereas whoever wont yes yesterday youll youre
""")
    # Sentence starts that are not a single token of the vocabulary.
    | _words("""
aww awww congrats congratulations
 deprioritise deprioritize proofread readd recheck refactor reinstall
omg reorder rerun reschedule resend reupload unfollow unmute unpin whoa woohoo yay
""")
    # Frequent words of summaries.
    | _words("""
account action actions active adults advice agenda agent agreement alternative amount analysis
annual answer answers app application approach assistant attendees author authors avoid background
basic bigger bot breakfast brief budget bug bugs chapter chat cheap cheaper choice code comment
comments complete concern concerns conclusion conclusions confirmed constraint constraints context
contract conversation cost costs critical customer customers daily data database date dates
deadline deadlines deal decided decision decisions default delivery demo deployment design detail
details developer development dialogue diet dinner discussed discussion dislikes doctor document
documents earliest easier email enjoys enough entities error errors event evidence example
expenses expensive explained fact facts failure fast faster feature features feedback fewer fifth
file files finding findings flight flights focus follow food fourth free friend full function
goals group guests guide hard harder hardware hates high higher history hopes hotel human idea
ideas image information input introduction invite invoice issue issues item items job kids label
language large launch learn lesson level likes limit link links lives local location long longer
loves low low-cost lower lunch machine manager marketing medium meet meeting meetings meets member
members memory menu message messages method methods metric milestones mode model module month
monthly morning name names nearer night normal number numbers objective older online option
options order orders outcome outcomes output overview owner owns page paid paper participants
payment pending people performance person phase phone plan planned plans platform point points
policy preference preferences preferred prefers present price pricing primary priorities priority
private problem process product production progress project projects prompt proposal public
purchase purpose quality question questions quote rationale reason recipe recommendation
recommendations reference references refund release remaining remind reminder report request
requested requests requirement requirements research reservation response result results retro
review risk risks role room rule rules safer schedule scope section sections server service
session sessions setup shipping short shorter side sign simple simpler single site size slow
slower small smaller software solution source sources speaker spending staff standup status step
steps stock strategy students study style subject success suggestion suggestions summary support
system systems table target task tasks team teams temperature test testing tests text theme ticket
tickets time timeline timing tip tips title todo tool tools top topic topics total traffic
training transcript travel trip type unknown update updates urgent user users value vegan vendor
venue version video visit wants water weather website week weekend weekly weeks work works year
years younger
""")
    # Abbreviations that are not names.
    | _words("""
ai aka api asap bios byte bytes cc chf cpu css csv eta etc eu eur faq fyi gb gbp ghz gpu hr html
http https hz inr ios jpy json kb kg km llm mb mhz ml ms nok os pdf pm q&a qa ram rest roi rsvp
saas sdk sek sms sql ssd ssh ssl tb tbd tv ui uk uri url usa usb usd utc ux vip vpn vs wifi xml
yaml
""")
)
"""Words that are not names although they are capitalized."""

GERMAN_MARKERS: Final = _words("""
auch auf bitte das dem den der des die ein eine einen für haben hat ich im ist mit nicht sie soll
und von werden wir wird zu
""")
"""Words that mark a text as German, where every noun is capitalized."""

TITLES: Final = _words("dr prof mr mrs ms mx mme mlle sr sra srta herr frau dra")
"""Titles before a name, which are no part of it."""

PARTICLES: Final = _words("of the de del di du des da do dos das la las los van von der den")
"""Words in lower case that may join the parts of a name: "University of Leeds"."""

INSTITUTIONS: Final = _words("""
academy arms bakery bank bar bay books cafe café cathedral chapel church clinic college diner farm foundation gallery
garage hall hospital hotel inn institute kitchen library market park pharmacy place pub restaurant school square
street theatre theater trust university
""")
"""What a name in the possessive may be the name of: "Saint Mary's Hospital"."""

GERMAN_NOUNS: Final = _words("""
abend absprache adresse anfang anleitung antwort app arbeit arzt aufgabe auftrag bedarf beispiel
bericht besuch betrieb bezug bild bilder bild brief buch bruder büro chef chefin cousin cousine
code dank daten datei dauer ding echtzeit ende englisch deutsch französisch spanisch russisch
erfahrung essen fall familie farbe farben feierabend ferien firma form frage frau freund freundin
freunden geburt gefahr gefühl geld grund hand haus hause herbst herr herrn hilfe hof holz höhe hund
idee ihr ihre ihrem ihren ihrer ihnen jahr jahren jahre kater katze kauf kinder kindern kollege
kollegin kollegen kosten kraft krankheit kunde kunden lager lehrer leute lust mai mann mehl meter
minuten mitte monat monaten montag morgen mutter nacht nachbar nachbarin natur neffe nichte oma
onkel opa ordnung ort partner partnerin person personen plan planung platz preis problem produktion
projekt rechnung regen reihe ruhe sachen schule schwester seite seiten server sicht sie sohn
sommer spaß stadt stelle stress stunden tag tage tagen tante tarif team teil termin text tickets
tochter trainer trainerin uhr urlaub vater vermieter vermieterin verlag verfügung vertrag verein
wahl wasser weise welt wetter winter woche wochen wohnung wunsch zahlung zahl zeit zeiten ziel
zimmer zug zukunft zustand zweck
""")
"""Frequent German nouns that stand without an article, or before a name."""

GERMAN_ENDINGS: Final = (
    "ung", "heit", "keit", "schaft", "ion", "nis", "tät", "tum", "ungen", "ionen", "zeit", "weise", "chen", "ismus",
)  # fmt: skip
"""Endings of German nouns that are no names."""

COMMON_ENDINGS: Final = (
    "ing", "tion", "sion", "ment", "ments", "ness", "ings", "ally", "ily", "ably", "edly", "ently",
)  # fmt: skip
"""Endings of English words that are rarely names."""

GIVEN_NAMES: Final = _words("""
al alan ali ana ann art ben bill cliff dan dawn don drew ed emily ethan faith gene grace grant iris
jade joy leo li lily lori mark max mia miles olive pat penny ravi sally sam sean sue ted tim tom
violet wei
""")
"""Given names that are also everyday words, or parts of them."""

GREETINGS: Final = _words("""
bonjour bonsoir salut hola hallo hello hi hey dear merci gracias danke thanks thank moin servus grüezi
coucou ciao cher chère querido querida estimado estimada liebe lieber привет здравствуйте спасибо
""")
"""Words before a name, which are no part of it."""

PLACE_NAMES: Final = frozenset(
    f"{first} {second}"
    for first, rest in {
        "new": "york zealand delhi orleans jersey mexico england hampshire guinea caledonia",
        "los": "angeles",
        "las": "vegas palmas",
        "great": "britain",
    }.items()
    for second in rest.split()
)
"""Names of two words that start with an everyday word."""

AFTER_NAMES: Final = _words("""
a accepted accepts added adds agreed agrees already also always approved approves asked asks
bought buys called calls came can comes complained complains confirmed confirms could decided
decides declined declines did didn't dijo does doesn't es est está explained explains finds found
fue gave gives goes had has hasn't hat hates helped helps insisted insists is isn't ist joined
joins knew knows leads leaves led left liked likes lived lives loses lost loved loves made makes
managed manages may meets mentioned mentions met might moved moves must möchte needed needs never
noted notes now offered offers owned owns paid pays planned plans preferred prefers promised
promises proposed proposes préfère quiere quoted quotes ran received receives recommended
recommends rejected rejects replied replies reported reports requested requests runs said says
sends sent should signed signs speaks spoke still studied studies suggested suggests takes taught
teaches tells thinks thought tiene told took used uses veut visited visits wanted wants war was
wasn't went will wins wird wished wishes won won't worked works would writes wrote était
""")
"""Words that often follow a person's name at the start of a sentence."""

ABBREVIATIONS: Final = _words("""
mr mrs ms mx dr prof st sr sra srta dra mme mlle hr fr no nr fig vs e.g i.e cf al approx dept z.b
d.h bzw ca u.a o.ä i.d.r z.t bspw evtl ggf inkl exkl zzgl sog vgl tel abt p.ej ud uds gen col sgt
rev hon pres gov sen rep vol ch art jan feb mar apr jun jul aug sep sept oct nov dec mrz okt dez
г ул им т.е т.д
""")
"""Abbreviations whose period does not end a sentence."""

SENTENCE_STARTS: Final = GERMAN_MARKERS | _words("""
aber alle allerdings alles als also am an außerdem bei bis da dabei dadurch dafür dagegen daher
damit danach dann daran darauf darum dazu denn deshalb dies diese dieser dieses doch dort du er es
euer falls gestern gibt hier heute ihr ihre in ja jede jeder jedes jedoch jetzt kann kein keine man
mein meine morgen nach nein noch nun ob oder ok okay schon sein seine seit so sobald somit später
trotzdem um unser unsere vielleicht vor wann warum was weil wenn wer wie wo zudem zuerst zum
after all and are at but can did do does for he her his how i if is it its let my no not now
of on or our she since that the their then there these they this those was we what when where
which who why will with yes you your
""")
"""Words that start a sentence, in German and English, and never follow an ordinal."""

TIME_AND_DEGREE: Final = _words("""
now nowadays today lately currently again too also instead though anymore actually please then
most best btw tho lol haha sadly jetzt nun lieber ahora maintenant теперь
""")
"""Words around a thing that say when or how much."""

NOT_A_THING: Final = _words("""
it its this that these those them they him her his their he she you your yours me us we i what
how when where who why which if whether is are was were has have had will would can not and or
but so about one ones both neither none nothing anything everything either que pas nicht si
wenn dass
""")
"""A thing does not start with these: it would be another clause, or refer to something unknown."""

POINTING_AWAY: Final = _words("""
above below here there attached latter former one ones so
""")
"""A thing that ends with these refers to something unknown."""

BINDING_WORDS: Final = _words("""
on at by of from after before during without under near while until in for with
""")
"""Words that bind what follows them to a thing."""

BEFORE_REQUESTS: Final = _words("""
i i'd i’d would want like prefer need we you should must can could may to just always also now
then ok okay so and but hi hello hey from on only simply kindly feel free rather make sure
remember try
""")
"""The words that may precede a request."""

NOT_A_NAME: Final = _words("""
i you he she it we they sie dich euch ihn ihnen a an the not no never nobody none unknown wrong
spelled spelt misspelled pronounced written mentioned listed important irrelevant missing on in
at as of for from and or but is was back anytime later soon tomorrow today tonight now again
asap ok okay whatever anything maybe always only also just when if before after please uber
german english french spanish italian polish russian turkish greek chinese japanese korean
arabic hebrew irish scottish welsh dutch swedish norwegian danish finnish portuguese czech
hungarian ukrainian persian indian latin american british european african asian
""")
"""Words that are not a name where one might stand: "my name is spelled …", "call me back"."""

NO_ENTITIES: Final = _words("""
phd msc bsc mba ceo cto cfo coo skus apis urls pdfs faqs mom dad mum grandma grandpa
mon tue tues wed thu thur thurs fri sat sun woohoo yay wow whoa aww awww haha omg hooray yikes ugh phew
christmas easter halloween thanksgiving ramadan hanukkah diwali weihnachten ostern silvester navidad
noël pâques abstract introduction methods discussion conclusion appendix bibliography preface
slovene slovak slovenian croatian serbian romanian bulgarian brazilian egyptian moroccan israeli iraqi
english british american german french spanish italian polish russian turkish greek chinese japanese
korean arabic hebrew irish scottish welsh dutch swedish norwegian danish finnish portuguese czech
hungarian ukrainian persian indian latin european african asian austrian swiss canadian australian
mexican brazilian catholic christian muslim jewish deutsch englisch französisch spanisch italienisch
""")
"""Words with a capital letter that alone name nothing: languages, weekdays, exclamations."""

SURNAMES: Final = (
    "王李张刘陈杨黄赵吴周徐孙朱胡郭何林罗郑梁谢宋唐许韩冯邓曹彭曾肖董袁潘蒋蔡杜魏吕沈姚卢姜崔谭陆汪范廖贾邹孟"
    "熊秦邱侯陶黎贺顾郝龚邵钱严武戴莫孔"
)
"""Chinese family names that are hardly ever other words."""

MORE_SURNAMES: Final = "苏方白石金田任夏高马江洪尹薛雷史龙段叶余丁万常温康施牛樊葛安俞欧于柳"
"""Others, which are only names after "my name is"."""

PLACES_FAR: Final = _words("""
北京 上海 天津 重庆 河北 山西 辽宁 吉林 黑龙江 江苏 浙江 安徽 福建 江西 山东 河南 湖北 湖南 广东 海南
四川 贵州 云南 陕西 甘肃 青海 台湾 内蒙古 广西 西藏 宁夏 新疆 香港 澳门 杭州 南京 苏州 成都 武汉 西安
广州 深圳 厦门 青岛 大连 宁波 无锡 长沙 郑州 济南 福州 昆明 大理 丽江 哈尔滨 沈阳 合肥 南昌 贵阳 南宁
海口 三亚 拉萨 兰州 西宁 银川 乌鲁木齐 太原 石家庄 长春 珠海 东莞 佛山 温州 桂林 洛阳 扬州 绍兴 台北
香格里拉 中国 美国 日本 韩国 英国 法国 德国 意大利 西班牙 葡萄牙 俄罗斯 泰国 越南 新加坡 马来西亚 印度
澳大利亚 加拿大 巴西 东京 大阪 京都 首尔 巴黎 伦敦 柏林 纽约 曼谷
""")
"""Places in Chinese, where no capitals show a name."""

FILLERS: Final = _words("""
a already also an and as btw by hello hey hi i just mentioned oh ok okay please really remember
reminder remind said say so thanks that the told very way well yes
""")
"""Words that a repetition may add: "as I said, …"."""

QUALIFIERS: Final = _words("""
after almost although barely because before but could despite except few formerly hardly if instead
less many may maybe might more most nearly never no nobody none nor not nothing nowhere once only
or per should some than though till unless unlike until used was were when while without would
ain aren can couldn didn doesn don hadn hasn haven isn mightn mustn needn shouldn t wasn weren won
wouldn aber jamais kein keine keinen nein ni nicht nie niemals nunca oder ohne pas sans senza sin
""")
"""Words that change what a sentence says."""

CONNECTING: Final = _words("de do da del della di la le los of & van von der upon am")
"""Words in lower case inside a name: "Rio de Janeiro"."""

NOT_A_PLACE: Final = _words("""
the a an my our your this that it me him her them us there here work bed sleep school home now then
free and or to in at for with by as of from on new another next last i we
""")
"""Words where a name of a place or a company might stand: "I moved to another one"."""

TOOLS: Final = {
    "database": _words("postgres postgresql mysql mariadb sqlite mongodb mongo oracle dynamodb"),
    "cloud": _words("aws azure gcp heroku vercel netlify hetzner digitalocean"),
    "framework": _words("react vue angular svelte django flask fastapi rails spring laravel"),
    "language": _words("python rust java kotlin typescript javascript golang ruby swift scala php"),
    "chat": _words("slack teams discord zulip mattermost telegram"),
    "editor": _words("vim neovim emacs vscode pycharm intellij cursor zed"),
    "container": _words("kubernetes k8s docker podman nomad"),
    "infrastructure": _words("terraform pulumi ansible chef puppet"),
    "pipeline": _words("jenkins circleci buildkite argo argocd"),
    "broker": _words("kafka rabbitmq nats celery"),
    "cache": _words("redis memcached valkey"),
    "search": _words("elasticsearch opensearch solr algolia"),
    "observability": _words("grafana prometheus datadog sentry"),
    "machine learning": _words("pytorch tensorflow keras jax sklearn"),
    "game engine": _words("unity unreal godot gamemaker bevy"),
    "backend service": _words("firebase supabase appwrite pocketbase"),
    "shop": _words("shopify woocommerce magento prestashop"),
    "site": _words("wordpress squarespace wix webflow drupal"),
    "mobile": _words("flutter ionic cordova xamarin"),
    "design": _words("figma sketch photoshop illustrator canva"),
    "system": _words("fedora ubuntu debian arch windows macos linux mint nixos"),
    "tracker": _words("jira linear trello asana github gitlab notion clickup"),
}
"""Tools of one kind, of which one replaces another."""
