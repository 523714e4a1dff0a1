"""A person over HTTP: what is said in one chat answers in another, and never another person's."""

import json

import openai
import pytest

from firnline import Message
from firnline.client import Client
from firnline.errors import ConflictError, InputError
from firnline.testing import ModelServer
from support.live_server import running

MODEL = "gpt-4o"
CITIES = ["Lisbon", "Oslo", "Madrid", "Vienna", "Dublin", "Athens", "Riga", "Bern"]


def ask(client, text, **who):
    messages = [{"role": "user", "content": text}]
    return client.chat.completions.create(model=MODEL, messages=messages, **who)


@pytest.mark.promise("one-person")
@pytest.mark.parametrize(
    "who",
    [
        {"user": "ana"},
        {"safety_identifier": "ana"},
        {"metadata": {"user_id": "ana"}},
        {"extra_headers": {"x-firnline-user": "ana"}},
    ],
    ids=lambda who: next(iter(who)),
)
def test_a_fact_said_in_one_chat_answers_in_another_through_the_sdk_alone(who):
    with ModelServer(model=MODEL) as model, running(upstream=model.url, embedder="none") as server:
        with openai.OpenAI(base_url=f"{server.url}/v1", api_key="sk", max_retries=0) as client:
            ask(client, "I moved to Lisbon last week, so no more Berlin deliveries.", **who)
            ask(client, "Where do I live?", **who)
            assert "Lisbon" in json.dumps(model.requests[-1]["messages"])
            ask(client, "Where do I live?", user="bob")
            assert "Lisbon" not in json.dumps(model.requests[-1]["messages"])
            ask(client, "Where do I live?")
            assert "Lisbon" not in json.dumps(model.requests[-1]["messages"])
        heads = server.run(server.memory().conversations())
        assert sorted(head.person or "" for head in heads) == ["", "ana", "ana", "bob"]


def test_a_conversation_that_another_user_names_is_neither_read_nor_changed():
    with ModelServer(model=MODEL) as model, running(upstream=model.url) as server:
        with openai.OpenAI(base_url=f"{server.url}/v1", api_key="sk", max_retries=0) as client:
            named = {"extra_headers": {"x-firnline-conversation": "c"}}
            ask(client, "I moved to Lisbon.", user="ana", **named)
            ask(client, "Where do I live?", user="bob", **named)
            assert "Lisbon" not in json.dumps(model.requests[-1]["messages"])
        assert server.run(server.memory().head("c")).entries == 2


async def test_an_upload_is_with_the_person_it_is_sent_for(server, tmp_path):
    path = tmp_path / "chat.jsonl"
    path.write_text(json.dumps({"messages": [{"role": "user", "content": "I live in Rome."}]}))
    async with Client(server.url) as client:
        await client.import_file(path, person="ana")
        (home,) = await client.facts(person="ana")
        assert (home.value, home.source) == ("Rome", "said")
        await client.export(tmp_path / "own.jsonl")
        with pytest.raises(InputError, match="without a person"):
            await client.import_file(tmp_path / "own.jsonl", person="ben")


async def test_people_over_rest(server):
    async with Client(server.url) as client:
        await client.append("a", Message.user("I live in Berlin."), person="ana")
        await client.append("b", Message.user("I moved to Lisbon."), person="ana")
        await client.append("c", Message.user("I live in Rome."), person="bob")
        with pytest.raises(ConflictError):
            await client.append("c", Message.user("I'm vegan."), person="ana")
        assert [head.conversation async for head in client.conversations(person="ana")] == [
            "a",
            "b",
        ]
        people = [(one.person, one.conversations) async for one in client.people()]
        assert people == [("ana", 2), ("bob", 1)]
        (lisbon,) = await client.facts(person="ana")
        assert (lisbon.value, lisbon.evidence[0].quote) == ("Lisbon", "I moved to Lisbon.")
        assert [fact.value for fact in await client.facts(person="ana", history=True)] == [
            "Berlin",
            "Lisbon",
        ]
        profile = await client.profile("ana")
        assert (profile.version, profile.facts) == (1, (lisbon,))
        context = await client.context("new", 4_000, "Where do I live?", person="ana")
        sent = json.dumps(context.messages, default=str)
        assert "Lisbon" in sent
        assert "Rome" not in sent
        hits = await client.recall(None, "Where do I live?", person="ana")
        assert hits[0].message.text == "I moved to Lisbon."
        assert (await client.revert_fact("ana", lisbon.id)).reverted_at is not None
        assert [fact.value for fact in await client.facts(person="ana")] == ["Berlin"]
        await client.describe("b", person="bob")
        known = await client.facts(person="bob", history=True)
        assert [fact.value for fact in known] == ["Lisbon", "Rome"]
        erased = await client.erase_person("ana")
        assert [one.conversation for one in erased.conversations] == ["a"]
        assert [one.person async for one in client.people()] == ["bob"]
