"""MCP for one person: the server fixes whom it is with, and no argument can choose another one."""

import asyncio
import json

import httpx2
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ResourceTemplateReference

from firnline import Message
from firnline.sync import Memory as PlainMemory
from server.test_mcp import COUNT, PROGRAM, Agent, said, served
from server.test_mcp_http import HEADERS, rpc
from support.live_server import running

FOREIGN = ("Ben's cat Kestrel has a code: 7741.", "Nobody's code is 5150.")
NAMES = ("of ben", "of none", "missing")
OF_ONE = (
    ("read", {}),
    ("context", {}),
    ("state", {}),
    ("topics", {}),
    ("digests", {}),
    ("search", {"query": "code"}),
    ("by_date", {"date": "today"}),
)


async def people(memory):
    """Conversations with Ana, with Ben, and with no one."""
    await memory.append("of ana", said("user", "I live in Berlin.", days=90), person="ana")
    await memory.append(
        "ana 2", said("user", "I moved to Lisbon. The code is at the door: 1138."), person="ana"
    )
    await memory.append("of ben", said("user", FOREIGN[0]), person="ben")
    await memory.append("of none", said("user", FOREIGN[1]))


def bound(memory, person="ana"):
    return Client(served(memory, person=lambda: person))


async def test_profile_and_facts_are_those_of_the_person(memory):
    await people(memory)
    async with bound(memory) as client:
        agent = Agent(client)
        profile = await agent("profile")
        assert "home city: Lisbon" in profile["text"]
        assert profile["version"] >= 1
        (home,) = (await agent("facts"))["facts"]
        assert (home["attribute"], home["value"]) == ("home city", "Lisbon")
        assert home["since"].startswith("2026-03-11")
        quote = home["quotes"][0]
        assert (quote["conversation"], quote["seq"]) == ("ana 2", 0)
        assert quote["text"] == "I moved to Lisbon."
        (before,) = (await agent("facts", as_of="2026-01-01"))["facts"]
        assert before["value"] == "Berlin"
        assert before["until"].startswith("2026-03-11")
        first = await agent("facts", history=True, limit=1)
        assert (first["total"], first["next_skip"]) == (2, 1)
        rest = await agent("facts", history=True, skip=first["next_skip"])
        assert {first["facts"][0]["value"], rest["facts"][0]["value"]} == {"Berlin", "Lisbon"}
        assert "next_skip" not in rest
        assert "[ana 2 0]" in await agent.text("facts")
        assert "is no date or time" in await agent.refused("facts", as_of="the day before")
        page = await client.read_resource("firnline://profile")
        assert page.contents[0].text == profile["text"]
    async with bound(memory, "eva") as client:
        agent = Agent(client)
        assert await agent.text("profile") == "Nothing is known of this person yet."
        assert await agent.text("facts") == "No facts are known."


async def test_what_others_said_does_not_exist(memory):
    await people(memory)
    async with bound(memory) as client:
        agent, answers = Agent(client), []
        for tool, more in OF_ONE:
            refused = [await agent.refused(tool, conversation=name, **more) for name in NAMES]
            texts = {text.replace(name, "") for text, name in zip(refused, NAMES, strict=True)}
            assert len(texts) == 1, tool
        for tool, more in (("search", {"query": "code cat"}), ("by_date", {"date": "today"})):
            answers.append(await agent.text(tool, **more))
        answers.append(await agent.text("conversations"))
        answers.append(str(await client.list_resources()))
        answers.append((await client.read_resource("firnline://conversations")).contents[0].text)
        ref = ResourceTemplateReference(uri="firnline://conversations/{name}")
        for start in ("of", "of ben"):
            found = await client.complete(ref, {"name": "name", "value": start})
            answers.append(str(found.completion.values))
        for name in NAMES:
            for uri in ("", "/digest", "?first_seq=0"):
                where = f"firnline://conversations/{name.replace(' ', '%20')}{uri}"
                with pytest.raises(MCPError, match="there is no conversation"):
                    await client.read_resource(where)
            with pytest.raises(MCPError, match="there is no conversation"):
                await client.get_prompt("continue_conversation", {"name": name})
    seen = "\n".join(answers)
    assert "1138" in seen
    assert "ana 2" in seen
    for foreign in (*FOREIGN, "Kestrel", "5150", "of ben", "of none"):
        assert foreign not in seen


async def test_branches_of_others_are_not_named(memory):
    await people(memory)
    await memory.branch("ana 2", 0, "of eva")
    await memory.describe("of eva", person="eva")
    async with bound(memory) as client:
        found = await Agent(client)("search", query="code 1138")
        assert [m["conversation"] for m in found["messages"]] == ["ana 2"]
        assert "eva" not in json.dumps(found)


async def test_new_conversations_are_with_the_person(memory):
    await people(memory)
    messages = [{"role": "user", "text": "I work at Miele."}]
    async with bound(memory) as client:
        agent = Agent(client)
        await agent("append", conversation="new", messages=messages)
        assert (await memory.head("new")).person == "ana"
        assert "Miele" in await agent.text("profile")
        assert "Lisbon" in await agent.text("context", conversation="new")
        for name in NAMES[:2]:
            before = await memory.head(name)
            problem = await agent.refused("append", conversation=name, messages=messages)
            assert problem == f"conversation: {name!r} is not available; use a new name"
            assert await memory.head(name) == before


async def test_a_conversation_that_is_created_meanwhile_is_not_taken_over(memory, monkeypatch):
    head, raced = memory.head, []

    async def slow_head(name):
        found = await head(name)
        if not raced:
            raced.append(name)
            await memory.append(name, Message.user(FOREIGN[1]))
        return found

    monkeypatch.setattr(memory, "head", slow_head)
    asked = {"conversation": "new", "messages": [{"role": "user", "text": "Hello."}]}
    async with bound(memory) as client:
        assert "retry" in await Agent(client).refused("append", **asked)
        assert "is not available" in await Agent(client).refused("append", **asked)
    assert (await head("new")).person is None
    assert len(await memory.read("new")) == 1


async def test_no_argument_names_a_person(memory):
    async with bound(memory) as client:
        for tool in (await client.list_tools()).tools:
            assert "person" not in tool.input_schema["properties"]
            needed = dict.fromkeys(tool.input_schema.get("required", ()), "x")
            problem = await Agent(client).refused(tool.name, **needed, person="ben")
            assert "person: no such argument" in problem
            assert COUNT.text(tool.description) <= 60, tool.name


async def test_without_a_person_there_are_no_facts(memory):
    await people(memory)
    async with Client(served(memory)) as client:
        assert not {"facts", "profile"} & {tool.name for tool in (await client.list_tools()).tools}
        for name in ("facts", "profile"):
            with pytest.raises(MCPError, match="there is no tool"):
                await client.call_tool(name, {})
        with pytest.raises(MCPError, match="there is no such resource"):
            await client.read_resource("firnline://profile")
        assert "of ben" in await Agent(client).text("conversations")


async def test_the_command_is_for_one_person(tmp_path):
    store = f"sqlite:///{tmp_path}/store.db"
    with PlainMemory.open(store) as memory:
        for person in ("ana", "ben"):
            memory.append(
                f"of {person}", Message.user(f"My name is {person.title()}."), person=person
            )
    arguments = [*PROGRAM[1:], "--store", store, "--person", "ana"]
    async with Client(StdioServerParameters(command=PROGRAM[0], args=arguments)) as client:
        agent = Agent(client)
        listed = await agent("conversations")
        assert [row["name"] for row in listed["conversations"]] == ["of ana"]
        assert (await agent("facts"))["facts"]


async def test_over_http_a_header_names_the_person(tmp_path):
    with running(store=f"sqlite:///{tmp_path}/store.db") as server:

        async def ask(person, tool, arguments):
            headers = {"X-Firnline-User": person} if person else {}
            async with (
                httpx2.AsyncClient(headers=headers, timeout=60) as http,
                Client(streamable_http_client(f"{server.url}/mcp", http_client=http)) as client,
            ):
                return await Agent(client).text(tool, **arguments)

        async def tell(person):
            messages = [{"role": "user", "text": f"My name is {person.title()}."}]
            await ask(person, "append", {"conversation": f"of {person}", "messages": messages})

        await asyncio.gather(tell("ana"), tell("ben"))
        profiles = await asyncio.gather(*(ask(name, "profile", {}) for name in ("ana", "ben")))
        assert ["Ana" in profiles[0], "Ben" in profiles[0]] == [True, False]
        assert ["Ana" in profiles[1], "Ben" in profiles[1]] == [False, True]
        assert "of ben" not in await ask("ana", "conversations", {})
        listed = await ask("", "conversations", {})
        assert "of ana" in listed
        assert "of ben" in listed

        # A header that names no one must not open everyone's messages.
        for values in ([""], ["a\u200bb"], ["ana", "ben"]):
            users = [(b"X-Firnline-User", value.encode()) for value in values]
            headers = [*((k.encode(), v.encode()) for k, v in HEADERS.items()), *users]
            got = httpx2.post(
                f"{server.url}/mcp", json=rpc("tools/list"), headers=headers, timeout=60
            )
            assert got.status_code == 400, values
            assert "x-firnline-user" in got.json()["error"]["message"]
