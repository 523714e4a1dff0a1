"""The sample conversations of the first minute."""

import pytest

from firnline import Memory
from firnline.server import prompts
from firnline.server.offline_model import OfflineModel
from firnline.server.sample import add_samples, samples


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
        assert all(turn["tokens"] < 0.8 * turn["whole_tokens"] for turn in turns)
        assert await sampled.in_force(sample.name)
        assert await sampled.verify(sample.name)
    assert {p.name for p in await sampled.projects()} == {"support", "survey app"}


@pytest.mark.parametrize(
    ("name", "question", "answer"),
    [
        ("leo", "In which city do I live now?", "Vienna"),
        ("field-survey", "When is the launch?", "26 May"),
        ("field-survey", "Who is the duty officer?", "Selin Aydin"),
        ("ticket-42", "What did we decide about the second rope?", "order it separately"),
    ],
)
async def test_an_obvious_question_gets_the_right_passage_first(sampled, name, question, answer):
    model = OfflineModel(sampled, name)
    said = (await model.complete([{"role": "user", "content": question}])).message.text
    assert answer in said.split("\n")[1], said
