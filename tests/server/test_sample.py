"""The sample conversations of the first minute."""

import pytest

from firnline import Memory
from firnline.server import prompts
from firnline.server.offline_model import OfflineModel
from firnline.server.sample import add_samples, samples
from support.live_server import running
from support.rest_client import Api


@pytest.fixture
async def sampled():
    async with Memory.open("memory:", embedder=None, worker=False) as memory:
        await add_samples(memory)
        await add_samples(memory)  # nothing is added twice
        yield memory


async def test_there_are_three_with_titles_and_turns_that_saved_tokens(sampled):
    heads = {head.conversation: head for head in await sampled.conversations()}
    assert list(heads) == ["field-survey", "leo", "ticket-42"]
    for sample in samples():
        head = heads[sample.name]
        assert (head.entries, head.person) == (len(sample.messages), sample.person)
        assert head.metadata["title"] == sample.title
        turns = await prompts.list_records(sampled, sample.name)
        assert len(turns) == 3
        assert all(turn["tokens"] < 0.85 * turn["whole_tokens"] for turn in turns)
        assert not any(turn["degraded"] for turn in turns)
        assert any(turn["hits"] for turn in turns), "one sees messages that were recalled"
        assert await sampled.in_force(sample.name)
        assert await sampled.verify(sample.name)
    assert {p.name for p in await sampled.projects()} == {"support", "survey app"}


@pytest.mark.parametrize(
    ("name", "question", "answer"),
    [
        ("leo", "In which city do I live now?", "Vienna"),
        ("field-survey", "When is the launch?", "26 May"),
        ("field-survey", "Who is the duty officer?", "Selin Aydin"),
        ("ticket-42", "What about my warranty claim?", "Claim 77 is ready"),
        ("ticket-42", "Where do I live?", "Salzburg"),
        ("ticket-42", "What did we decide about Yuki's rope?", "order it separately"),
    ],
)
async def test_an_obvious_question_gets_the_right_passage_first(sampled, name, question, answer):
    model = OfflineModel(sampled, name)
    said = (await model.complete([{"role": "user", "content": question}])).message.text
    assert answer in said.split("\n")[1], said


@pytest.mark.parametrize(
    ("person", "slot", "values"),
    [
        ("Ana", "home city", ["Innsbruck", "Salzburg"]),
        ("Leo", "home city", ["Graz", "Vienna"]),
        ("Mara", "launch · date", ["12 May", "26 May"]),
    ],
)
async def test_a_fact_was_replaced_and_its_history_is_there(sampled, person, slot, values):
    facts = [f for f in await sampled.facts(person=person, history=True) if f.attribute == slot]
    assert [fact.value for fact in facts] == values
    assert facts[0].superseded_by == facts[1].id


async def test_topics_faded_and_one_came_back(sampled):
    topics = {topic.topic_id: topic for topic in await sampled.topics("ticket-42")}
    assert min(topic.priority for topic in topics.values()) < 0.05
    headlamp = await sampled.topic_seqs("ticket-42", 0)
    assert {1, 39} <= set(headlamp)
    assert not set(range(10, 38)) <= set(headlamp), "there was something else between"


def test_the_first_turn_over_rest_sends_less_than_the_plain_history():
    with running(store="memory:", embedder="none") as server, Api(server.url) as api:
        server.run(add_samples(server.memory()))
        for sample in samples():
            about = f"/conversations/{sample.name}"
            plain = api.get(about)["tokens"]
            api.post(f"{about}/turns", {"message": sample.messages[-2][1].text})
            turn = api.all(f"{about}/turns")[0]
            assert turn["model"] == "firnline-offline"
            assert turn["tokens"] < 0.85 * plain, sample.name
        costs = api.get("/costs")
        assert costs["sent"] + costs["digest_tokens"] < 0.75 * costs["whole"]
