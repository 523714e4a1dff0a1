"""A real model understands our prompts."""

import json
from dataclasses import replace

import pytest

from firnline import Memory, Message
from firnline.digest import prompts
from firnline.models import Timeouts, open_model
from firnline.models.json_answer import schema_problem
from firnline.protocols import Brief

CHAT = [
    Message.user(
        "I'm planning a trip to Lisbon in March with my wife Ana and our kids Leo and Mia."
    ),
    Message.assistant("Lovely! How long will you stay, and what is your budget?"),
    Message.user("Seven nights, 3000 euros with flights from Munich. Ana is allergic to cats."),
    Message.assistant(
        "Noted: no pets in the flat. Shall I look for an apartment with two bedrooms?"
    ),
    Message.user(
        "Yes. I prefer a quiet street in Graca. I decided on the flat for 110 euros a night."
    ),
    Message.assistant("Good choice. Leo's passport expires on 2 February, so please renew it."),
]


@pytest.fixture
async def model(url):
    model = open_model("qwen2.5-coder", url=url, timeouts=Timeouts(first_byte=600, between=600))
    yield model
    await model.close()


@pytest.fixture
async def brief():
    async with Memory.open("memory:") as memory:
        await memory.append("c", CHAT)
        entries = tuple(await memory.read("c"))
    return Brief(entries=entries, words_min=40, words_max=100)


async def test_a_summary_keeps_names_and_numbers(model, brief):
    completion = await model.complete(prompts.summary_messages(brief), max_tokens=250)
    text = completion.message.text
    print(f"\n{text}\n{completion.prompt_tokens} + {completion.completion_tokens} tokens")  # noqa: T201
    assert completion.finish_reason == "stop"
    assert 15 <= len(text.split()) <= 150
    assert "Lisbon" in text
    assert sum(fact in text for fact in ("Ana", "3000", "Munich", "110", "cats", "Leo")) >= 3


async def test_important_data_comes_as_json_with_evidence(model, brief):
    schema = prompts.EXTRACTION_SCHEMA
    short = replace(brief, entries=brief.entries[:3])  # it writes six tokens a second
    completion = await model.complete(
        prompts.extraction_messages(short), schema=schema, max_tokens=1_500
    )
    found = json.loads(completion.message.text)
    print(f"\n{json.dumps(found, indent=1)}")  # noqa: T201
    assert schema_problem(found, schema) is None
    assert found["items"]
    words = " ".join(message.text for message in CHAT)
    assert any(item["quote"].strip(".") in words for item in found["items"] if item["quote"])


async def test_a_stream_equals_the_full_answer(model):
    asked = [{"role": "user", "content": "Say only the word yes."}]
    *pieces, completion = [item async for item in model.stream(asked, max_tokens=5)]
    assert "".join(pieces) == completion.message.text
    assert completion.prompt_tokens > 0
