"""Keys for one person: whatever the request says, nobody else's conversations exist."""

import json

import httpx2
import openai
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from firnline import Message
from firnline.cli.program import main
from firnline.client import Client as RestClient
from firnline.errors import Forbidden, UnknownConversation, UnknownPerson
from firnline.testing import ModelServer
from support.live_server import running

SECRET = "Zanzibar"
SCOPES = ("read", "write", "admin")


@pytest.fixture(scope="module")
def server():
    with ModelServer(model="gpt-4o") as model, running(upstream=model.url) as live:
        live.model = model
        memory = live.memory()
        secret = Message.user(f"I live in {SECRET}. Order 7 has shipped.")
        for name, person in (("bobs", "bob"), ("everyones", None)):
            live.run(memory.append(name, [secret, Message.assistant(SECRET)], person=person))
        live.run(memory.append("anas", Message.user("I live in Riga."), person="ana"))
        yield live


@pytest.fixture(scope="module")
def token(server):
    made = server.run(server.parts.keys.create("default", scopes=SCOPES, person="ana"))
    return made[1]


def operations(server):
    paths = httpx2.get(f"{server.url}/openapi.json", timeout=60).json()["paths"]
    return [
        (method, path, one)
        for path, methods in paths.items()
        for method, one in methods.items()
        if path not in ("/livez", "/readyz", "/openapi.json")
    ]


@pytest.mark.promise("one-person")
def test_no_operation_shows_or_changes_what_is_another_persons(server, token):
    """Every operation of the API, asked with every name that is not the person's."""
    before = {name: server.run(server.memory().read(name)) for name in ("bobs", "everyones")}
    headers = {"authorization": f"Bearer {token}", "x-firnline-user": "bob"}
    with httpx2.Client(base_url=server.url, headers=headers, timeout=60) as client:
        for method, path, operation in operations(server):
            for name in ("bobs", "everyones"):
                place = path.replace("{conversation}", name).replace("{person}", "bob")
                for other in ("seq", "version", "topic", "fact", "job", "project"):
                    place = place.replace(f"{{{other}}}", "0")
                query = {"q": SECRET, "query": SECRET, "person": "bob", "when": "today"}
                body = {"query": SECRET, "question": SECRET, "person": "bob", "name": "mine"}
                more = {"json": body} if "requestBody" in operation else {}
                got = client.request(method, place, params=query, **more)
                shown = got.text.replace(f'"{SECRET}"', "")  # an error may repeat the query
                assert SECRET not in shown, (method, path, name, got.text[:300])
                named = "{conversation}" in path or "{person}" in path
                if named:
                    assert got.status_code in (403, 404, 405, 415, 422), (method, path, got.text)
    assert before == {name: server.run(server.memory().read(name)) for name in before}
    heads = {head.conversation: head.person for head in server.run(server.memory().conversations())}
    assert (heads["bobs"], heads["everyones"]) == ("bob", None)


async def test_the_person_of_a_key_can_use_what_is_theirs(server, token):
    async with RestClient(server.url, key=token) as client:
        await client.append("new", Message.user("I'm vegan."))
        assert {head.person async for head in client.conversations()} == {"ana"}
        facts = {one.value for one in await client.facts(person="ana")}
        assert facts == {"Riga", "vegan"}
        assert [one.person async for one in client.people()] == ["ana"]
        hits = await client.recall(None, f"{SECRET} Riga")
        assert {"anas"} <= {hit.conversation for hit in hits}
        assert not {hit.conversation for hit in hits} & {"bobs", "everyones"}
        context = await client.context("later", 4_000, "Where do I live?")
        assert "Riga" in json.dumps(context.messages, default=str)
        with pytest.raises(UnknownConversation):
            [entry async for entry in client.read("bobs")]
        with pytest.raises(UnknownPerson):
            await client.profile("bob")
        for refused in (
            client.append("x", Message.user("hi"), person="bob"),
            client.work(),
            client.erase("anas", branches=True),
        ):
            with pytest.raises(Forbidden):
                await refused


def test_the_proxy_takes_the_person_from_the_key(server, token):
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key=token, max_retries=0) as client:
        for name in (None, "bobs", "everyones"):
            headers = {"x-firnline-user": "bob"}
            headers |= {"x-firnline-conversation": name} if name else {}
            client.chat.completions.create(
                model="gpt-4o",
                messages=[{"role": "user", "content": "Where do I live?"}],
                user="bob",
                extra_headers=headers,
            )
            sent = json.dumps(server.model.requests[-1]["messages"])
            assert SECRET not in sent
            assert ("Riga" in sent) == (name is None)
    assert server.run(server.memory().head("bobs")).entries == 2
    assert server.run(server.memory().head("everyones")).entries == 2


async def test_an_agent_with_the_key_is_for_the_person(server, token):
    headers = {"authorization": f"Bearer {token}", "x-firnline-user": "bob"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(f"{server.url}/mcp", http_client=http)) as agent,
    ):
        for tool, arguments in (("profile", {}), ("search", {"query": SECRET}), ("facts", {})):
            got = await agent.call_tool(tool, arguments)
            assert f"in {SECRET}" not in str(got)
        assert "Riga" in str(await agent.call_tool("profile", {}))


def test_the_command_creates_a_key_for_a_person_and_rotation_keeps_it(tmp_path, capsys):
    store = ["--store", f"sqlite:///{tmp_path}/keys.db", "--json"]
    main(["keys", "create", "--person", "ana", *store])
    key = json.loads(capsys.readouterr().out)
    assert key["person"] == "ana"
    main(["keys", "rotate", key["id"], *store])
    assert json.loads(capsys.readouterr().out)["person"] == "ana"
