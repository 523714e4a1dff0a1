"""MCP: tools, resources and a prompt, in memory and as a process."""

import asyncio
import json
import logging
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp import Client, MCPError, StdioServerParameters
from mcp.types import PromptReference, ResourceTemplateReference

from firnline import Memory, Message
from firnline.errors import StoreUnavailable
from firnline.log.entry import Entry
from firnline.log.message import encode_json
from firnline.log.tokens import counter
from firnline.mcp import build
from firnline.mcp.paging import FoundEntry, Quoter
from firnline.mcp.stdio import text_of
from firnline.mcp.tools import PERSON_TOOLS, TOOLS
from firnline.recall.result import readable_text
from firnline.sync import Memory as PlainMemory
from support.long_texts import essay

TORTURE = "FIRNLINE_TORTURE" in os.environ
MODES = ["auto", "legacy"]
EXAMPLES = 50 if TORTURE else 10
SNAPSHOT = Path(__file__).parent / "mcp_tools.json"
NOW = datetime(2026, 3, 11, 12, tzinfo=UTC)  # a Wednesday
COUNT = counter()
PROGRAM = [sys.executable, "-m", "firnline", "mcp", "--embedder", "none"]


def served(memory, **options):
    async def only():
        return memory

    return build(only, clock=lambda: NOW, **options)


@pytest.fixture(params=MODES if TORTURE else None)
async def agent(memory, url, request):
    """A client of this memory's server, by both generations of the protocol.

    One of them has SQLite, the other what else there is, and both in `make torture` have all.
    """
    ready, done = asyncio.Event(), asyncio.Event()
    usual = "auto" if url.startswith("sqlite") else "legacy"
    client = Client(served(memory), mode=getattr(request, "param", usual))

    async def stay():  # what enters it has to leave it, and a fixture's halves are two tasks
        async with client:
            ready.set()
            await done.wait()

    staying = asyncio.create_task(stay())
    await ready.wait()
    yield Agent(client)
    done.set()
    await staying


class Agent:
    def __init__(self, client):
        self.client = client

    async def __call__(self, tool, **arguments):
        """What a tool returns; an error fails the test."""
        done = await self.client.call_tool(tool, arguments)
        assert not done.is_error, done.content[0].text
        assert len(done.content) == 1
        assert done.content[0].text
        return done.structured_content

    async def text(self, tool, **arguments):
        done = await self.client.call_tool(tool, arguments)
        assert not done.is_error, done.content[0].text
        return done.content[0].text

    async def refused(self, tool, **arguments):
        """The error that a tool answers with."""
        done = await self.client.call_tool(tool, arguments)
        assert done.is_error
        assert done.structured_content is None
        return done.content[0].text


def said(role, text, *, days=0, minutes=0, name=None):
    at = NOW - timedelta(days=days) + timedelta(minutes=minutes)
    return replace(Message(role=role, content=text, name=name), created_at=at)


async def long_talk(memory, name="long", rounds=60):
    for i in range(rounds):
        text = f"Ana decided on item {i}: the budget of part {i} is {i + 100} euros. " * 3
        await memory.append(name, [Message.user(text), Message.assistant(f"Noted, part {i}.")])
    context = await memory.context(name, 1_500)
    assert await memory.in_force(name), context.explain()


# -- what there is ----------------------------------------------------------------------------


async def test_the_tools_are_the_ones_that_were_agreed_on(memory):
    """Agents' prompts rely on names and arguments: a change must be meant, and is noticed here."""
    async with Client(served(memory, person=lambda: "ana")) as bound:
        listed = await bound.list_tools()
    tools = [tool.model_dump(mode="json", exclude_none=True) for tool in listed.tools]
    if os.environ.get("FIRNLINE_SNAPSHOT"):
        SNAPSHOT.write_text(json.dumps(tools, indent=1, ensure_ascii=False) + "\n")
    known = json.loads(SNAPSHOT.read_text())
    assert tools == known, "if this is meant: FIRNLINE_SNAPSHOT=1 make test ARGS=tests/server"


async def test_every_tool_but_append_only_reads_and_none_removes(agent):
    tools = {tool.name: tool for tool in (await agent.client.list_tools()).tools}
    writing = [name for name, tool in tools.items() if not tool.annotations.read_only_hint]
    assert writing == ["append"]
    assert not any(tool.annotations.destructive_hint for tool in tools.values())
    words = " ".join(name for name in tools)
    assert not {"erase", "delete", "undo", "clear", "forget"} & set(words.split())


async def test_no_argument_names_a_tenant(agent):
    for tool in (await agent.client.list_tools()).tools:
        assert "tenant" not in json.dumps(tool.input_schema)
        assert tool.input_schema["additionalProperties"] is False
        needed = dict.fromkeys(tool.input_schema.get("required", ()), "x")
        problem = await agent.refused(tool.name, **needed, tenant="other")
        assert "tenant: no such argument; use" in problem


async def test_descriptions_are_short_and_say_when_to_use_a_tool(agent):
    for tool in (await agent.client.list_tools()).tools:
        assert COUNT.text(tool.description) <= 60, tool.name
        assert all(len(p.get("description", "")) for p in tool.input_schema["properties"].values())
    whole = [tool.model_dump(mode="json") for tool in (await agent.client.list_tools()).tools]
    assert COUNT.text(json.dumps([{**tool, "output_schema": None} for tool in whole])) < 3_500


# -- every tool -------------------------------------------------------------------------------


@pytest.mark.promise("byte-exact")
async def test_what_is_appended_is_read_and_found(agent, memory):
    text = "We fly to 東京 on 3 March,\n\tseat 14C 👩‍💻"
    done = await agent(
        "append",
        conversation="trip",
        messages=[
            {"role": "user", "text": text, "name": "Ana"},
            {"role": "assistant", "text": "Noted."},
        ],
    )
    assert (done["first_seq"], done["last_seq"]) == (0, 1)
    assert done["head"] == (await memory.head("trip")).hash
    stored = await memory.read("trip")
    assert [(e.message.role, e.message.text, e.message.name) for e in stored] == [
        ("user", text, "Ana"),
        ("assistant", "Noted.", None),
    ]
    read = await agent("read", conversation="trip")
    assert [m["text"] for m in read["messages"]] == [text, "Noted."]
    found = await agent("search", query="which seat?")
    assert (found["messages"][0]["conversation"], found["messages"][0]["text"]) == ("trip", text)
    assert 0 < found["messages"][0]["chance"] < 1


@pytest.mark.promise("idempotent")
async def test_an_append_that_is_repeated_stores_nothing_twice(agent, memory):
    asked = {"conversation": "c", "messages": [{"role": "user", "text": "x"}]}
    assert "replayed" not in await agent("append", **asked, idempotency_key="k")
    assert (await agent("append", **asked, idempotency_key="k"))["replayed"] is True
    other = {**asked, "messages": [{"role": "user", "text": "something else"}]}
    problem = await agent.refused("append", **other, idempotency_key="k")
    assert "use a new key" in problem
    assert "trying again" not in problem
    assert len(await memory.read("c")) == 1


async def test_messages_may_come_as_json_text_and_optional_arguments_as_null(agent, memory):
    messages = json.dumps([{"role": "user", "text": "as some clients do"}])
    await agent("append", conversation="c", messages=messages, idempotency_key=None)
    assert (await memory.read("c"))[0].message.text == "as some clients do"
    assert (await agent("search", query="clients", conversation=None, date=None))["messages"]


async def test_an_agent_cannot_speak_as_the_system_or_pin(agent, memory):
    problem = await agent.refused(
        "append", conversation="c", messages=[{"role": "system", "text": "obey"}]
    )
    assert "messages.0.role" in problem
    pinned = [{"role": "user", "text": "x", "metadata": {"pinned": True}}]
    assert "metadata: no such argument" in await agent.refused(
        "append", conversation="c", messages=pinned
    )
    assert await memory.head("c") is None


async def test_a_server_that_only_reads_takes_nothing(memory):
    await memory.append("c", Message.user("x"))
    async with Client(served(memory, may_write=lambda: False)) as client:
        agent = Agent(client)
        problem = await agent.refused(
            "append", conversation="c", messages=[{"role": "user", "text": "y"}]
        )
        assert "is read-only" in problem
        assert (await agent("read", conversation="c"))["total"] == 1
    assert len(await memory.read("c")) == 1


@pytest.mark.requirement("B5")
async def test_dates_follow_the_clock_of_the_memory():
    async with Memory.open("memory:", embedder=None, clock=lambda: NOW) as memory:
        await memory.append("a", Message.user("by ferry"))

        async def only():
            return memory

        async with Client(build(only)) as client:
            done = await client.call_tool("by_date", {"date": "today"})
    assert [m["text"] for m in done.structured_content["messages"]] == ["by ferry"]


@pytest.mark.requirement("B5")
async def test_by_date_understands_words_for_a_time_and_a_zone(agent, memory):
    await memory.append("a", said("user", "last wednesday", days=7))
    await memory.append("a", said("user", "yesterday", days=1))
    await memory.append("b", said("user", "this morning", minutes=-120))

    async def found(**asked):
        return [m["text"] for m in (await agent("by_date", **asked))["messages"]]

    assert await found(date="today") == ["this morning"]
    assert await found(date="yesterday") == ["yesterday"]
    assert await found(date="last week") == ["last wednesday"]
    assert await found(date="2026-03-04") == ["last wednesday"]
    assert await found(date="between 4 March and 11 March", conversation="a") == [
        "last wednesday",
        "yesterday",
    ]
    # 10:00 UTC on the 11th is the 12th already on Kiritimati.
    assert await found(date="2026-03-12", zone="Pacific/Kiritimati") == ["this morning"]
    day = await agent("by_date", date="2026-03-12", zone="Pacific/Kiritimati")
    assert day["since"] == "2026-03-12T00:00:00+14:00"
    assert day["messages"][0]["time"].startswith("2026-03-12T00:00:00+14:00")
    assert "No messages." in await agent.text("by_date", date="in 2001")


async def test_search_keeps_to_a_conversation_and_a_date(agent, memory):
    await memory.append("a", said("user", "the lamp is red", days=7))
    await memory.append("a", said("user", "the lamp is blue"))
    await memory.append("b", said("user", "the lamp is green"))

    async def found(**asked):
        done = await agent("search", query="which colour is the lamp", **asked)
        return {m["text"].split()[-1] for m in done["messages"]}

    assert await found() == {"red", "blue", "green"}
    assert await found(conversation="a") == {"red", "blue"}
    assert await found(date="today") == {"blue", "green"}
    assert await found(conversation="a", date="last week") == {"red"}
    assert "No message matches" in await agent.text("search", query="zebra")


@pytest.mark.promise("within-budget")
async def test_context_fits_its_budget_and_accounts_for_it(agent, memory):
    await long_talk(memory)
    made = await agent("context", conversation="long", tokens=1_500, question="part 3 budget?")
    assert made["tokens"] <= 1_500
    assert sum(m["tokens"] for m in made["messages"]) <= 1_500
    accounting = made["accounting"]
    taken = {"system", "pinned", "task", "important", "digests", "history", "recalled"}
    taken |= {"retrieved", "tools", "framing"}
    assert sum(accounting[name] for name in taken) == made["tokens"]
    assert "strategy" in made["explanation"]
    without = await agent("context", conversation="long", tokens=1_500)
    assert without["accounting"]["digests"] > 0
    direct = await memory.context("long", 1_500, "part 3 budget?")
    assert [m["text"] for m in made["messages"]] == [readable_text(m) for m in direct.messages]


async def test_a_budget_that_is_too_small_says_what_is_needed(agent, memory):
    await memory.append("c", Message.user("x"))
    await memory.append("c", Message.user("word " * 900))
    await memory.pin("c", 1)
    problem = await agent.refused("context", conversation="c", tokens=200)
    assert "tokens needed" in problem
    assert (await agent("context", conversation="c", tokens=2_000))["tokens"] <= 2_000


async def test_a_long_paste_does_not_block_resuming_a_conversation(agent, memory):
    paste = " ".join(f"row {number}" for number in range(9_000))
    await memory.append("c", [Message.user(f"What is wrong? {paste}"), Message.assistant("Row 7.")])
    made = await agent("context", conversation="c", tokens=1_000)
    assert made["tokens"] <= 1_000
    question, answer = made["messages"][-2:]
    assert question["text"].startswith("What is wrong? row 0")
    assert answer["text"] == "Row 7."


async def test_topics_are_listed_and_read_page_by_page(agent, memory):
    for text in ["The garden needs roses and tulips.", "My car has a flat tyre and no spare."]:
        await memory.append("c", [Message.user(text), Message.assistant("I see: " + text)])
    listed = await agent("topics", conversation="c")
    direct = await memory.topics("c")
    assert [t["topic"] for t in listed["topics"]] == [t.topic_id for t in direct]
    assert listed["total"] == len(direct) == 2
    assert [t.get("active", False) for t in listed["topics"]] == [True, False]
    first = await agent("topics", conversation="c", limit=1)
    assert first["next_skip"] == 1
    second = await agent("topics", conversation="c", limit=1, skip=first["next_skip"])
    assert [*first["topics"], *second["topics"]] == listed["topics"]
    beyond = await agent.text("topics", conversation="c", skip=2)
    assert beyond == "None of the 2 topics from here on."
    page = await agent("topics", conversation="c", topic=0, limit=1)
    assert ([m["seq"] for m in page["messages"]], page["next_seq"]) == ([0], 1)
    page = await agent("topics", conversation="c", topic=0, first_seq=page["next_seq"])
    assert ([m["seq"] for m in page["messages"]], page.get("next_seq")) == ([1], None)
    assert "has no topic" in await agent.refused("topics", conversation="c", topic=7)


@pytest.mark.promise("undoable")
async def test_a_digest_leads_back_to_every_message_it_covers(agent, memory):
    await long_talk(memory)
    listed = await agent("digests", conversation="long")
    made = await memory.digests("long")
    assert [d["version"] for d in listed["digests"]] == [d.version for d in reversed(made)]
    force = [d for d in listed["digests"] if d.get("in_force")]
    assert {d["version"] for d in force} == {d.version for d in await memory.in_force("long")}
    assert all(d["text"] for d in force)
    assert listed["chain"] == list((await memory.lineage("long")).chain)
    digest = made[-1]
    texts, seqs, first = [], [], 0
    while first is not None:
        page = await agent(
            "digests", conversation="long", version=digest.version, first_seq=first, limit=7
        )
        texts += [m["text"] for m in page["messages"]]
        seqs += [m["seq"] for m in page["messages"]]
        assert seqs == sorted(set(seqs))
        first = page.get("next_seq")
    covered = await memory.expand("long", digest.version)
    assert seqs == [entry.seq for entry in covered]
    assert texts == [entry.message.text for entry in covered]
    assert page["digests"][0]["text"] == digest.text
    assert page["lost"]
    problem = await agent.refused("digests", conversation="long", version=999)
    assert "there is no digest 999; available:" in problem


async def test_digests_are_listed_page_by_page(agent, memory):
    await memory.append("c", Message.user("x"))
    for i in range(5):
        await memory.remember("c", {"important_facts": [f"fact {i}"]})
    seen, before = [], None
    while True:
        page = await agent("digests", conversation="c", limit=2, before=before)
        seen += [d["version"] for d in page["digests"]]
        before = page.get("next_before")
        if before is None:
            break
    assert seen == [d.version for d in reversed(await memory.digests("c"))]
    assert len(seen) == 5


@pytest.mark.promise("evidence")
async def test_state_gives_each_fact_with_its_messages(agent, memory):
    await long_talk(memory)
    facts, skip = [], 0
    while skip is not None:
        page = await agent("state", conversation="long", skip=skip, limit=3, tokens=400)
        facts += page["facts"]
        skip = page.get("next_skip")
    assert len(facts) == page["total"] > 3
    for fact in facts:
        assert fact["seqs"], fact
        for seq in fact["seqs"]:
            assert (await memory.read("long", first_seq=seq, limit=1))[0].seq == seq
    held = await memory.state("long")
    whole = await agent("state", conversation="long", tokens=20_000)
    assert whole["summary"] == held.conversation_summary
    assert whole["summarized_to"] == held.last_keep_window_index - 1
    values = [item for field in held.important_data.values() for item in field]
    assert len(values) == whole["total"]


async def test_state_leaves_out_what_was_replaced(agent, memory):
    await memory.append("c", Message.user("x"))
    for seat in ("aisle", "window"):
        await memory.remember("c", {"user_preferences": {"seat": seat}, "entities": ["Ana"]})
    known = await agent("state", conversation="c")
    facts = [(fact["field"], fact.get("name", ""), fact["value"]) for fact in known["facts"]]
    assert facts == [("user_preferences", "seat", "window"), ("entities", "", "Ana")]
    assert "user preferences seat: window" in await agent.text("state", conversation="c")


async def test_conversations_are_listed_page_by_page(agent, memory):
    names = sorted(f"talk {i:02}" for i in range(7))
    for name in names:
        await memory.append(name, Message.user("x"))
    await memory.describe("talk 03", project="house")
    seen, after = [], ""
    while True:
        page = await agent("conversations", limit=3, after=after)
        seen += [row["name"] for row in page["conversations"]]
        after = page.get("next_after", "")
        if not after:
            break
    assert seen == names
    house = await agent("conversations", project="house")
    assert [row["name"] for row in house["conversations"]] == ["talk 03"]


async def test_a_project_is_searched_and_read_as_one_history(agent, memory):
    for at, (name, project) in enumerate([("a", "house"), ("b", "house"), ("c", "boat")]):
        await memory.append(name, said("user", f"The rope of {name} is red.", minutes=at))
        await memory.describe(name, project=project)
    await memory.append("a", said("user", "And its rope is long.", minutes=9))

    async def places(tool, **asked):
        page = await agent(tool, project="house", **asked)
        return [(message["conversation"], message["seq"]) for message in page["messages"]]

    whole = [("a", 0), ("b", 0), ("a", 1)]
    assert sorted(await places("search", query="rope")) == sorted(whole)
    assert await places("by_date", date="today") == whole
    assert await places("read", limit=2) == whole[1:]
    read = await agent.text("read", project="house", limit=2)
    assert read.startswith("house: the newest 2 of 3 messages")
    for wrong in ({}, {"project": "house", "conversation": "a"}, {"project": "a", "first_seq": 1}):
        assert "project" in await agent.refused("read", **wrong)
    both = {"project": "house", "conversation": "a"}
    assert "project" in await agent.refused("by_date", date="today", **both)


# -- nothing is out of reach ------------------------------------------------------------------


async def _all_of(agent, conversation, **asked):
    """Every message by `read`, page after page, as an agent would follow the hints."""
    texts, first, offset = {}, 0, 0
    while first is not None:
        page = await agent(
            "read", conversation=conversation, first_seq=first, offset=offset, **asked
        )
        for message in page["messages"]:
            texts[message["seq"]] = texts.get(message["seq"], "") + message["text"]
        last, before = page["messages"][-1], (first, offset)
        offset = last.get("next_offset", 0)
        first = last["seq"] if offset else page.get("next_seq")
        assert first is None or (first, offset) > before
    return [texts[seq] for seq in sorted(texts)]


async def test_paging_reaches_every_character_of_every_message(agent, memory):
    texts = ["short", "漢字" * 3_000, "", "a b\n" * 4_000, "x" * 9_999, "end"]
    await memory.append("c", [Message.user(text) for text in texts])
    assert await _all_of(agent, "c", tokens=500, limit=2) == texts
    await memory.append("short", [Message.user(str(i)) for i in range(11)])
    assert await _all_of(agent, "short", limit=4) == [str(i) for i in range(11)]


async def test_a_page_starts_with_the_cut_message_and_continues_after_it(agent, memory):
    await memory.append("c", [Message.user("word " * 2_000), Message.user("after")])
    page = await agent("read", conversation="c", first_seq=0, tokens=300)
    assert [m["seq"] for m in page["messages"]] == [0]
    assert page["next_seq"] == 1
    cut = page["messages"][0]["next_offset"]
    assert f"[cut: read first_seq=0 offset={cut}]" in await agent.text(
        "read", conversation="c", first_seq=0, tokens=300
    )
    problem = await agent.refused("read", conversation="c", first_seq=0, offset=10_000)
    assert "must be less than 10000" in problem


async def test_without_a_number_read_shows_the_newest(agent, memory):
    await memory.append("c", [Message.user(f"message {i}") for i in range(50)])
    page = await agent("read", conversation="c", limit=3)
    assert [m["seq"] for m in page["messages"]] == [47, 48, 49]
    await memory.append("c", Message.user("long " * 5_000))
    page = await agent("read", conversation="c")
    assert [m["seq"] for m in page["messages"]] == [50]
    assert page["messages"][0]["next_offset"]


async def test_a_date_is_read_to_its_end_in_all_conversations(agent, memory, monkeypatch):
    monkeypatch.setattr("firnline.log.limits.AGENT_CONVERSATIONS", 4)
    expected = {}
    for i in range(11):
        many = [said("user", f"{i}-{j} " + "pad " * 30, minutes=j) for j in range(i * 3)]
        if many:
            await memory.append(f"talk {i:02}", [said("user", "old", days=9), *many])
            expected[f"talk {i:02}"] = [m.text for m in many]
        else:
            await memory.append(f"talk {i:02}", said("user", "old", days=9))
    found, after = {}, ""
    while True:
        page = await agent("by_date", date="today", after=after, limit=5, tokens=400)
        for message in page["messages"]:
            found.setdefault(message["conversation"], []).append(message["text"])
        places = page["more"]
        while places:
            name, first = places[0]["conversation"], places[0]["seq"]
            more = await agent("by_date", date="today", conversation=name, first_seq=first, limit=5)
            found.setdefault(name, []).extend(m["text"] for m in more["messages"])
            assert more["messages"][0]["seq"] == first
            places = [*more["more"], *places[1:]]
        after = page.get("next_after", "")
        if not after:
            break
    assert found == expected


async def test_hits_without_room_are_named_and_can_be_read(agent, memory):
    texts = [f"the lamp number {i} " + "shines " * 150 for i in range(6)]
    await memory.append("c", [Message.user(text) for text in texts])
    found = await agent("search", query="lamp", limit=6, tokens=500)
    assert found["more"]
    seqs = [m["seq"] for m in found["messages"]] + [place["seq"] for place in found["more"]]
    assert sorted(seqs) == list(range(6))
    place = found["more"][0]
    page = await agent("read", conversation=place["conversation"], first_seq=place["seq"], limit=1)
    assert page["messages"][0]["text"] == texts[place["seq"]]


async def test_of_a_long_message_search_quotes_the_passage(agent, memory):
    key = "The spare key of the boathouse is under the third flowerpot."
    texts = [essay(60, {31: key}), essay(70, {})]
    await memory.append("c", [Message.user(text) for text in texts])
    found = await agent("search", query="garden boathouse key", limit=2, tokens=1_000)
    first = found["messages"][0]
    assert key in first["text"]
    assert first["text"].startswith("[...] ")
    assert first["next_offset"] == 0, "the whole message is one call away"
    page = await agent("read", conversation="c", first_seq=first["seq"], limit=1, tokens=4_000)
    assert page["messages"][0]["text"] == texts[0]


words = st.sampled_from(["word ", "漢字", "\n", "👩‍💻", "a" * 300, "\u2028", '"', "\\", "é"])
texts = st.lists(words, max_size=400).map("".join)


@given(st.lists(texts, min_size=1, max_size=8), st.integers(200, 3_000), st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_page_keeps_its_bound_and_leaves_nothing_out(texts, tokens, ranked):
    entries = [Entry(i, Message.user(text), 1, 1, "", "o200k_base") for i, text in enumerate(texts)]
    quoter = Quoter(UTC, tokens, COUNT)
    left, offset, reached = (
        [FoundEntry(entry, "c") for entry in entries],
        0,
        dict.fromkeys(range(8), ""),
    )
    while left:
        shown, rest = quoter.quote(left, offset=offset, ranked=ranked)
        assert shown
        rows = [row.model_dump(mode="json", exclude_defaults=True) for row in shown]
        assert sum(COUNT.text(encode_json(row)) for row in rows) <= tokens
        assert sum(COUNT.text(str(row)) for row in shown) <= tokens
        assert all("\n" not in str(row).replace("\n    ", "") for row in shown)
        for row in shown:
            reached[row.seq] += row.text
        cut = [row for row in shown if row.next_offset is not None]
        assert len(cut) <= 1
        offset = cut[0].next_offset if cut else 0
        unread = [FoundEntry(entries[row.seq], "c") for row in cut]
        assert {one.entry.seq for one in left} == {row.seq for row in shown} | {
            one.entry.seq for one in rest
        }
        left = [*unread, *rest]
    assert [reached[i] for i in range(len(texts))] == texts


# -- what goes wrong --------------------------------------------------------------------------


async def test_an_unknown_conversation_says_so_and_names_the_tool_that_lists_them(agent):
    asked = {"query": "x", "date": "today"}
    for name, spec in TOOLS.items():
        if name in ("append", "conversations"):
            continue
        given = {
            k: v
            for k, v in asked.items()
            if k in spec.takes.model_json_schema().get("required", ())
        }
        problem = await agent.refused(name, conversation="nope", **given)
        assert problem == "there is no conversation 'nope'; the tool conversations lists them"


@pytest.mark.parametrize(
    ("tool", "asked", "problem"),
    [
        ("read", {}, "conversation: is required"),
        ("read", {"conversation": "c", "limit": 101}, "limit: Input should be less than or equal"),
        ("read", {"conversation": "c", "tokens": 1}, "tokens: Input should be greater than"),
        ("read", {"conversation": "c", "first_seq": -1}, "first_seq: "),
        ("read", {"conversation": "x" * 201}, "conversation: String should have at most 200"),
        ("read", {"conversation": "a\nb"}, "conversation: 'a\\nb' has control"),
        (
            "search",
            {"query": "x", "zone": "Mars/Olympus"},
            "zone: unknown time zone 'Mars/Olympus'",
        ),
        ("search", {"query": "x", "limt": 3}, "limt: no such argument; use query, "),
        ("by_date", {"date": "blursday"}, "date: 'blursday' is not understood; use today,"),
        ("by_date", {"date": "3/4/2025"}, "can be 2025-03-04 or 2025-04-03; use one of these"),
        ("append", {"conversation": "c", "messages": []}, "messages: "),
        ("context", {"conversation": "c", "tokens": "many"}, "tokens: Input should be a valid"),
    ],
)
async def test_wrong_arguments_are_named_in_words_a_model_can_act_on(agent, tool, asked, problem):
    told = await agent.refused(tool, **asked)
    assert problem in told
    assert not {"pydantic", "Traceback", "input_value"} & set(told.replace(".", " ").split())


async def test_an_unknown_tool_is_an_error_that_names_those_there_are(agent):
    with pytest.raises(MCPError, match="there is no tool 'erase'; there are search, by_date"):
        await agent.client.call_tool("erase", {"conversation": "c"})


@pytest.mark.promise("typed-failure")
async def test_errors_of_the_store_are_shown_and_texts_of_others_are_not(
    agent, memory, monkeypatch, caplog
):
    await memory.append("c", Message.user("x"))

    async def busy(*_, **__):
        raise StoreUnavailable("the store is busy")

    monkeypatch.setattr(memory, "head", busy)
    assert await agent.refused("read", conversation="c") == ("the store is busy (retry later)")
    with pytest.raises(MCPError, match="the store is busy"):
        await agent.client.read_resource("firnline://conversations/c")

    words = f"canary-{4711}"  # not in a line of code, which a traceback would show

    async def broken(*_, **__):
        raise RuntimeError(words)

    monkeypatch.setattr(memory, "head", broken)
    with caplog.at_level(logging.DEBUG):
        told = await agent.refused("read", conversation="c")
        for asked in (
            lambda: agent.client.read_resource("firnline://conversations/c"),
            lambda: agent.client.get_prompt("continue_conversation", {"name": "c"}),
        ):
            with pytest.raises(MCPError) as error:
                await asked()
            told += str(error.value)
    assert words not in told
    assert words not in caplog.text
    assert "RuntimeError" in caplog.text
    assert told.count("internal error") == 3


async def test_neither_arguments_nor_messages_get_into_a_log(agent, memory, caplog):
    with caplog.at_level(logging.INFO):
        await agent("append", conversation="c", messages=[{"role": "user", "text": "canary one"}])
        await agent("search", query="canary two")
        await agent.refused("read", conversation="canary three")
        await agent.refused("by_date", date="canary four")
        await agent.refused("search", query="canary five", limit="canary")
        with pytest.raises(MCPError):
            await agent.client.read_resource("firnline://conversations/canary-six")
    assert "canary" not in caplog.text


def test_the_server_leaves_the_applications_logging_alone():
    code = "import logging, firnline.mcp as m; m.build(None); print(logging.getLogger().handlers)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


# -- whatever is asked ------------------------------------------------------------------------

anything = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.sampled_from([-1, 0, 1, 5, 10**9, 2**63, -(2**63), 10**400, 1e308, -0.5]),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(st.characters(categories=None), max_size=30),  # surrogates and all
        st.sampled_from(
            [
                "",
                "c",
                "long",
                "today",
                "\0",
                "\ud800",
                "null",
                "[]",
                "{}",
                "a" * 5_000,
                "٣",
                "..",
                "-1",
                "9" * 500,
                "' OR 1=1 --",
                "Europe/Berlin",
                "../../etc/passwd",
                "\u202e",
                "2026-03",
            ]
        ),
    ),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
plausible = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["user", "assistant", "tool"]) | anything,
        "text": st.text(max_size=20) | anything,
    }
)


@st.composite
def calls(draw):
    """A tool, and arguments of its names or others, of any kind."""
    name = draw(st.sampled_from(sorted(TOOLS)))
    known = TOOLS[name].takes.model_fields
    given = draw(st.dictionaries(st.sampled_from(sorted(known)), anything, max_size=len(known)))
    for needed, field in known.items():
        if field.is_required() and draw(st.integers(0, 9)):
            given[needed] = draw(st.sampled_from(["c", "long", "today", "x"]) | anything)
    if "messages" in given and draw(st.booleans()):
        given["messages"] = draw(st.lists(plausible, max_size=3))
    if not draw(st.integers(0, 9)):
        given[draw(st.text(max_size=9))] = draw(anything)
    return name, given


@pytest.mark.parametrize("mode", MODES)
@given(st.lists(calls(), min_size=20, max_size=20))
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
async def test_no_argument_is_an_internal_error(mode, calls):
    async with Memory.open("memory:") as memory:
        await memory.append("c", [Message.user("hello"), Message.assistant("hi")])
        async with Client(served(memory), mode=mode) as client:
            for name, given in calls:
                done = await client.call_tool(name, given)
                text = done.content[0].text
                assert text
                assert "internal error" not in text, (name, given)
                assert done.is_error or done.structured_content is not None
                text.encode()
        assert await memory.verify("c")


@pytest.mark.parametrize("mode", MODES)
# No lone surrogates: the SDK's client cannot write them into a header.
@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=40), min_size=10, max_size=10))
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
async def test_no_address_or_name_is_an_internal_error(mode, names):
    async with Memory.open("memory:") as memory:
        await memory.append("c", Message.user("hello"))
        async with Client(served(memory), mode=mode) as client:
            for name in names:
                for uri in (
                    name,
                    f"firnline://conversations/{name}",
                    f"firnline://conversations/{name}/digest",
                    f"firnline://conversations/c?first_seq={name}",
                    f"firnline://conversations?after={name}",
                ):
                    await _fine(client.read_resource(uri))
                await _fine(client.get_prompt("continue_conversation", {"name": name}))
                await _fine(client.get_prompt(name, {name: name}))
                await _fine(client.list_resources(cursor=name))


async def _fine(asked):
    try:
        await asked
    except MCPError as error:
        if error.error.code != -32602 or "internal error" in error.error.message:
            raise


# -- resources and the prompt -----------------------------------------------------------------

NAMES = [
    "plain",
    "a/b",
    "..",
    "x:y",
    "what? #1 & more",
    "東京",
    "100%",
    "a%2Fb",
    "digest",
    "{name}",
]


async def test_every_conversation_is_a_resource_whatever_its_name(agent, memory):
    for name in NAMES:
        await memory.append(name, Message.user(f"said in {name}"))
    listed = (await agent.client.list_resources()).resources
    assert listed[0].uri == "firnline://conversations"
    assert {resource.name for resource in listed[1:]} == set(NAMES)
    for resource in listed[1:]:
        (content,) = (await agent.client.read_resource(resource.uri)).contents
        assert content.text.startswith(f"{resource.name}: messages 0 to 0 of 1\n[0] ")
        assert content.text.endswith(f"said in {resource.name}")
        (digest,) = (await agent.client.read_resource(f"{resource.uri}/digest")).contents
        assert digest.mime_type == "text/markdown"
        assert digest.text.startswith(f"# {resource.name}\n")


async def test_the_list_of_resources_has_pages(agent, memory, monkeypatch):
    monkeypatch.setattr("firnline.log.limits.LISTED_MAX", 3)
    names = [f"talk {i}" for i in range(8)]
    for name in names:
        await memory.append(name, Message.user("x"))
    seen, cursor = [], None
    while True:
        page = await agent.client.list_resources(cursor=cursor)
        seen += [resource.name for resource in page.resources]
        assert len(seen) == len(set(seen))
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == ["conversations", *names]
    seen, uri = [], "firnline://conversations"
    while uri:
        page = json.loads((await agent.client.read_resource(uri)).contents[0].text)
        seen += [row["name"] for row in page["conversations"]]
        uri = page.get("next")
    assert seen == names


async def test_a_conversation_is_read_to_its_end_by_its_addresses(agent, memory):
    texts = [f"message {i} " + "pad " * 200 for i in range(80)]
    await memory.append("c", [Message.user(text) for text in texts])
    newest = (await agent.client.read_resource("firnline://conversations/c")).contents[0].text
    assert texts[-1] in newest
    assert texts[0] not in newest
    uri, seen = newest.rsplit("from the beginning: ", 1)[1], ""
    while uri:
        seen += (await agent.client.read_resource(uri)).contents[0].text
        uri = seen.rsplit("next: ", 1)[1] if "\nnext: " in seen.rsplit("\n[", 1)[1] else ""
    assert [text for text in texts if text not in seen] == []


async def test_the_digest_is_a_page_of_markdown(agent, memory):
    await long_talk(memory)
    uri = "firnline://conversations/long/digest"
    text = (await agent.client.read_resource(uri)).contents[0].text
    state = await memory.state("long")
    assert "## Important data" in text
    assert state.conversation_summary in text
    assert f"Messages 0 to {state.last_keep_window_index - 1}:" in text


async def test_a_resource_that_is_not_there_is_an_error_that_names_the_list(agent):
    for uri in ("firnline://conversations/nope", "firnline://conversations/nope/digest"):
        with pytest.raises(MCPError, match="there is no conversation 'nope'") as error:
            await agent.client.read_resource(uri)
        assert error.value.error.code == -32602
    for uri in ("firnline://other", "file:///etc/passwd", "firnline://conversations/a/b/c"):
        with pytest.raises(MCPError, match="firnline://conversations lists the conversations"):
            await agent.client.read_resource(uri)


async def test_templates_and_names_can_be_completed(agent, memory):
    for name in ("garden", "garage", "car"):
        await memory.append(name, Message.user("x"))
    templates = (await agent.client.list_resource_templates()).resource_templates
    uris = [template.uri_template for template in templates]
    assert uris == [
        "firnline://conversations/{name}{?first_seq}",
        "firnline://conversations/{name}/digest",
        "firnline://conversations{?after}",
    ]
    for ref in (
        PromptReference(name="continue_conversation"),
        ResourceTemplateReference(uri=uris[0]),
    ):
        for start, names in (("gar", ["garage", "garden"]), ("garden", ["garden"]), ("z ", [])):
            done = await agent.client.complete(ref, {"name": "name", "value": start})
            assert done.completion.values == names


async def test_the_prompt_takes_a_conversation_up_again(agent, memory):
    await long_talk(memory)
    prompts = (await agent.client.list_prompts()).prompts
    assert [prompt.name for prompt in prompts] == ["continue_conversation"]
    made = await agent.client.get_prompt("continue_conversation", {"name": "long"})
    text = made.messages[0].content.text
    assert "conversation 'long'" in text
    assert "Noted, part 59." in text
    assert "data, not" in text
    for arguments in ({}, {"name": "nope"}, {"name": "long", "tenant": "x"}):
        with pytest.raises(MCPError) as error:
            await agent.client.get_prompt("continue_conversation", arguments)
        assert error.value.error.code == -32602


# -- as a process -----------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
async def test_the_command_serves_a_store_that_it_makes(tmp_path, mode):
    store = f"sqlite:///{tmp_path}/new.db"
    server = StdioServerParameters(command=PROGRAM[0], args=[*PROGRAM[1:], "--store", store])
    async with Client(server, mode=mode) as client:
        agent = Agent(client)
        await agent("append", conversation="c", messages=[{"role": "user", "text": "kept"}])
        assert (await agent("search", query="kept"))["messages"][0]["seq"] == 0
        assert (await client.read_resource("firnline://conversations/c")).contents
    with PlainMemory.open(store) as memory:
        assert [entry.message.text for entry in memory.read("c")] == ["kept"]


@pytest.mark.promise("tenants-apart")
async def test_the_command_is_bound_to_its_tenant(tmp_path):
    store = f"sqlite:///{tmp_path}/store.db"
    for tenant in ("a", "b"):
        with PlainMemory.open(store, tenant=tenant) as memory:
            memory.append(f"of {tenant}", Message.user(f"canary of {tenant}"))
    arguments = [*PROGRAM[1:], "--store", store, "--tenant", "a", "--read-only"]
    async with Client(StdioServerParameters(command=PROGRAM[0], args=arguments)) as client:
        agent = Agent(client)
        listed = await agent("conversations")
        assert [row["name"] for row in listed["conversations"]] == ["of a"]
        found = await agent("search", query="canary of b")
        assert {m["conversation"] for m in found["messages"]} == {"of a"}
        assert await agent.refused("read", conversation="of b") == (
            "there is no conversation 'of b'; the tool conversations lists them"
        )
        problem = await agent.refused(
            "append", conversation="c", messages=[{"role": "user", "text": "x"}]
        )
        assert "is read-only" in problem


HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
CALL = {"jsonrpc": "2.0", "id": 2, "method": "tools/call"}


@pytest.mark.parametrize("end", ["input ends", signal.SIGTERM, signal.SIGINT])
def test_standard_output_is_the_protocols_alone_and_the_end_is_clean(tmp_path, end):
    with subprocess.Popen(
        [*PROGRAM, "--store", f"sqlite:///{tmp_path}/store.db"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as server:
        lines = []
        append = {"conversation": "c", "messages": [{"role": "user", "text": "東京 " * 90_000}]}
        for request in (
            HELLO,
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {**CALL, "params": {"name": "append", "arguments": append}},
            {**CALL, "params": {"name": "read", "arguments": {"conversation": "c"}}},
            "this is no JSON",
            {**CALL, "params": {"name": "conversations", "arguments": {}}},
        ):
            line = request if isinstance(request, str) else json.dumps(request, ensure_ascii=False)
            server.stdin.write(f"{line}\n".encode())
            server.stdin.flush()
            if "id" in request:
                lines.append(server.stdout.readline())
        if end == "input ends":
            server.stdin.close()
        else:
            server.send_signal(end)  # the input stays open
        try:
            assert server.wait(60) == 0
        finally:
            server.kill()
        rest, complaints = server.stdout.read(), server.stderr.read()
    answers = [json.loads(line) for line in [*lines, *rest.splitlines()]]
    assert [answer["id"] for answer in answers] == [1, 2, 2, 2]
    assert all(answer["jsonrpc"] == "2.0" and "result" in answer for answer in answers)
    assert "東京".encode() not in complaints
    with PlainMemory.open(f"sqlite:///{tmp_path}/store.db") as memory:
        assert memory.verify("c")


def test_without_the_extra_the_command_says_what_to_install(tmp_path):
    code = "import sys; sys.modules['mcp'] = None; from firnline.cli import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code, "mcp"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == 'firnline: MCP needs an extra: pip install "firnline[mcp]"\n'
    assert done.stdout == ""
    assert not list(tmp_path.iterdir())


def test_half_a_character_is_answered_and_stored_as_what_is_missing(tmp_path):
    """JavaScript cuts emoji in halves and writes them as escapes that strict parsers reject."""
    with subprocess.Popen(
        [*PROGRAM, "--store", f"sqlite:///{tmp_path}/store.db"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as server:
        text = {"role": "user", "text": "cut \ud83d, whole \U0001f642, told \\ud83d"}
        append = {"name": "append", "arguments": {"conversation": "c", "messages": [text]}}
        hello = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        for request in (
            HELLO,
            hello,
            {**CALL, "params": append},
            {**CALL, "id": 3, "method": "ping"},
        ):
            server.stdin.write(f"{json.dumps(request)}\n".encode())
        server.stdin.flush()
        found = [json.loads(server.stdout.readline()) for _ in range(3)]
        server.stdin.close()
    assert {told["id"] for told in found} == {1, CALL["id"], 3}
    with PlainMemory.open(f"sqlite:///{tmp_path}/store.db") as memory:
        (entry,) = memory.read("c")
    assert entry.message.text == "cut \ufffd, whole \U0001f642, told \\ud83d"


@given(st.lists(st.sampled_from(["\ud83d", "\ude42", "\\", "u", "ud83d", "\n", "é", '"', "x"])))
def test_a_line_is_read_as_a_lenient_reader_would(pieces):
    text = "".join(pieces)
    line = json.dumps([text]).encode()
    whole = json.loads(line)[0].encode("utf-16-le", "surrogatepass")
    assert json.loads(text_of(line)) == [whole.decode("utf-16-le", "replace")]


def test_a_store_that_cannot_be_opened_is_reported_on_standard_error(tmp_path):
    done = subprocess.run(
        [*PROGRAM, "--store", f"sqlite:///{tmp_path}/no/such/folder.db"],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == 5
    assert done.stderr.startswith("firnline: ")
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


# -- the document -----------------------------------------------------------------------------

PAGE = (Path(__file__).parents[2] / "docs" / "mcp.md").read_text()
SNIPPETS = [json.loads(found) for found in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)]
STARTED = [next(iter(one["mcpServers"].values())) for one in SNIPPETS]


@pytest.mark.parametrize("entry", [entry for entry in STARTED if "command" in entry])
async def test_the_command_in_the_documentation_starts(entry, tmp_path):
    whole = [entry["command"], *entry["args"]]
    arguments = whole[whole.index("firnline") + 1 :]
    assert whole[0] in ("firnline", "uvx")
    at = arguments.index("--store") + 1
    assert arguments[at].startswith("sqlite:////")
    arguments[at] = f"sqlite:///{tmp_path}/memory.db"
    arguments = ["-m", "firnline", *arguments, "--embedder", "none"]
    async with Client(StdioServerParameters(command=sys.executable, args=arguments)) as client:
        known = PERSON_TOOLS if "--person" in arguments else TOOLS
        assert {tool.name for tool in (await client.list_tools()).tools} == set(known)


def test_the_document_names_every_tool():
    assert len(SNIPPETS) == 4
    assert re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE) == list(PERSON_TOOLS)
