"""`Memory`, the public interface, on every backend."""

import asyncio
import re
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from firnline import Memory, Message, Project, Tool, ToolCall, count_tokens, strategies, sync
from firnline.errors import (
    BadURL,
    ConflictError,
    InputError,
    MessageTooLarge,
    StoreNotOpen,
    UnknownConversation,
)
from firnline.log import limits
from firnline.store import open_store

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


@pytest.mark.promise("byte-exact")
@pytest.mark.requirement("X1")
async def test_messages_are_read_back(memory):
    said = [
        Message.system("Be brief."),
        Message.user("Order 1138 never arrived.", name="Ana", metadata={"channel": "mail"}),
        Message.assistant(tool_calls=[ToolCall.of("c1", "find_order", {"order": 1138})]),
        Message.tool("in transit", tool_call_id="c1"),
        {"role": "assistant", "content": "On its way.", "annotations": [{"x": 1}]},
    ]
    appended = await memory.append("ticket-42", said)
    assert appended.seq == 4
    entries = await memory.read("ticket-42")
    assert entries == list(appended)
    assert [entry.message.to_openai() for entry in entries][4] == said[4]
    assert entries[1].message.metadata == {"channel": "mail"}
    assert (await memory.head("ticket-42")).seq == 4


async def test_a_message_without_a_time_gets_the_present_one(url):
    async with Memory.open(url, clock=lambda: NOON) as memory:
        await memory.append(
            "c", [Message.user("a"), Message.user("b", created_at=NOON - timedelta(1))]
        )
        times = [entry.message.created_at for entry in await memory.read("c")]
    assert times == [NOON, NOON - timedelta(1)]


@pytest.mark.promise("exact-tokens")
@pytest.mark.requirement("A1")
async def test_tokens_are_counted_once_at_append(memory):
    texts = ["Hello there", "東京タワー", "x" * 20_000, "def f():\n    return 1"]
    await memory.append("c", [Message.user(text) for text in texts])
    entries = await memory.read("c")
    assert [entry.tokens for entry in entries] == [
        count_tokens({"role": "user", "content": text}) for text in texts
    ]
    assert {entry.tokenizer for entry in entries} == {"o200k_base"}
    assert await memory.tokens_between("c", 1, 2) == entries[1].tokens + entries[2].tokens
    assert [e.seq for e in await memory.newest("c", tokens=entries[3].tokens)] == [3]


async def test_the_model_decides_the_encoding(url):
    async with Memory.open(url, tokens_of="gpt-4") as memory:
        (entry,) = await memory.append("c", Message.user("hello"))
    assert entry.tokenizer == "cl100k_base"


async def test_an_estimate_is_marked_in_the_log(memory):
    (entry,) = await memory.append("c", Message.user(" " * 1_000_000))
    assert entry.tokenizer == "o200k_base~"
    assert await memory.verify("c")


@pytest.mark.promise("idempotent")
async def test_a_retry_with_its_key_stores_nothing_twice(memory):
    message = Message.user("pay 5 euros")
    first = await memory.append("c", message, idempotency_key="req-1")
    again = await memory.append("c", message, idempotency_key="req-1")
    assert (again.entries, again.replayed) == (first.entries, True)
    with pytest.raises(ConflictError):
        await memory.append("c", Message.user("pay 6 euros"), idempotency_key="req-1")
    assert len(await memory.read("c")) == 1


@pytest.mark.promise("dense")
async def test_expected_seq_rejects_a_stale_writer(memory):
    await memory.append("c", Message.user("a"), expected_seq=0)
    with pytest.raises(ConflictError) as caught:
        await memory.append("c", Message.user("b"), expected_seq=0)
    assert (caught.value.status, caught.value.retryable) == (409, True)
    await memory.append("c", Message.user("b"), expected_seq=1)


@pytest.mark.promise("typed-failure")
@pytest.mark.parametrize(
    ("conversation", "messages"),
    [
        ("", Message.user("x")),
        ("a\0b", Message.user("x")),
        ("c", []),
        ("c", "just text"),
        ("c", [Message.user("fine"), {"role": "nobody"}]),
        ("c", [Message.user("x")] * 10_001),
        ("c", None),
        (7, Message.user("x")),
    ],
)
async def test_bad_input_is_a_clear_error_and_stores_nothing(memory, conversation, messages):
    with pytest.raises(InputError) as caught:
        await memory.append(conversation, messages)
    assert str(caught.value)
    assert await memory.conversations() == []


@pytest.mark.promise("typed-failure")
async def test_an_oversized_batch_is_rejected_completely(memory):
    big = "x" * (15 * 1024 * 1024)
    with pytest.raises(MessageTooLarge):
        await memory.append("c", Message.user(big + big))
    with pytest.raises(MessageTooLarge):
        await memory.append("c", [Message.user(big)] * 5)
    assert await memory.head("c") is None


@pytest.mark.promise("tamper-evident")
async def test_verify_reports_a_complete_log(memory, monkeypatch):
    monkeypatch.setattr(limits, "READ_PAGE", 100)
    await memory.append("c", [Message.user(f"m{i}") for i in range(250)])
    await memory.archive("c", keep=50)
    seen = []
    result = await memory.verify("c", progress=lambda done, total: seen.append((done, total)))
    assert result
    assert (result.ok, result.entries, result.problems) == (True, 250, ())
    assert result.head == (await memory.head("c")).hash
    assert "intact" in str(result)
    assert seen[-1] == (250, 250)


@pytest.mark.promise("tamper-evident")
async def test_an_anchor_noted_elsewhere_proves_which_log_it_is(memory):
    noted = (await memory.append("c", [Message.user("a"), Message.user("b")]))[1].hash
    await memory.append("c", Message.user("c"))
    assert await memory.verify("c", anchor=noted)
    await memory.erase("c")
    await memory.append("c", [Message.user(text) for text in "axc"])
    assert await memory.verify("c")
    replaced = await memory.verify("c", anchor=noted)
    assert not replaced
    assert "different log" in str(replaced)
    for mistyped in ("", "abc", noted[:-1], noted.upper(), f"{noted} "):
        with pytest.raises(InputError, match="not a hash"):
            await memory.verify("c", anchor=mistyped)


@pytest.mark.promise("tamper-evident")
async def test_verify_under_load_raises_no_false_alarm(memory, monkeypatch):
    monkeypatch.setattr(limits, "READ_PAGE", 100)
    await memory.append("c", [Message.user(f"m{i}") for i in range(350)])

    async def go_on():
        for i in range(100):
            await memory.append("c", Message.user(f"more {i}"))

    task = asyncio.create_task(go_on())
    for _ in range(5):
        assert await memory.verify("c")
    await task
    assert await memory.verify("c")


async def test_what_does_not_exist_is_an_error(memory):
    assert await memory.read("nobody") == []
    assert await memory.head("nobody") is None
    for verb in (memory.verify, memory.erase, memory.archive, memory.restore, memory.stats):
        with pytest.raises(UnknownConversation) as caught:
            await verb("nobody")
        assert caught.value.status == 404


async def test_what_is_remembered_of_a_new_conversation_creates_it(memory):
    digest = await memory.remember("new", {"user_preferences": {"tea": "green"}})
    assert [found.version for found in await memory.in_force("new")] == [digest.version]
    assert await memory.head("new") is not None
    assert await memory.verify("new")


@pytest.mark.promise("tenants-apart")
async def test_tenants_see_only_their_own(tmp_path):
    url = f"sqlite:///{tmp_path}/store.db"
    async with Memory.open(url, tenant="a") as a, Memory.open(url, tenant="b") as b:
        await a.append("c", Message.user("the canary of a"))
        await a.describe("c", project="p")
        await a.save_project(Project("p"))
        assert await b.read("c") == []
        assert await b.head("c") is None
        assert await b.conversations() == []
        assert await b.projects() == []
        assert await b.recall(None, "canary") == []
        assert await b.recall("c", "canary") == []
        with pytest.raises(UnknownConversation):
            await b.erase("c")
        assert len(await a.recall(None, "canary")) == 1


async def test_conversations_projects_and_metadata(memory):
    await memory.save_project(Project("alps", status="active", schedule="daily", task="ship"))
    await memory.append("c1", Message.user("x"))
    head = await memory.describe("c1", project="alps", metadata={"title": "Ropes"})
    assert (head.project, head.metadata) == ("alps", {"title": "Ropes"})
    await memory.append("c2", Message.user("y"))
    assert [h.conversation for h in await memory.conversations()] == ["c1", "c2"]
    assert [h.conversation for h in await memory.conversations(project="alps")] == ["c1"]
    assert [p.name for p in await memory.projects()] == ["alps"]
    for limit in (0, -1, 10**6):
        with pytest.raises(InputError):
            await memory.conversations(limit=limit)
        with pytest.raises(InputError):
            await memory.recall("c1", "x", limit=limit)


@pytest.mark.requirement("B7")
async def test_entries_by_date_need_a_zone(memory):
    await memory.append(
        "c", [Message.user(f"d{i}", created_at=NOON + timedelta(i)) for i in range(5)]
    )
    found = await memory.dated("c", NOON + timedelta(1), NOON + timedelta(3))
    assert [entry.message.text for entry in found] == ["d1", "d2"]
    with pytest.raises(InputError):
        await memory.dated("c", datetime(2026, 1, 1), NOON)  # noqa: DTZ001 - that is the point


@pytest.mark.promise("search-total")
async def test_recall_finds_old_words(memory):
    texts = ["my order number is 1138", "the weather is nice", "東京に行きたい"]
    await memory.append("c", [Message.user(text) for text in texts])
    await memory.archive("c", keep=0)
    assert [hit.message.text for hit in await memory.recall("c", "order 1138")] == texts[:1]
    assert [hit.seq for hit in await memory.recall(None, "東京")] == [2]


@pytest.mark.promise("typed-failure")
@pytest.mark.parametrize(
    "url",
    [
        "",
        "notes.db",
        "sqlite:",
        "sqlite://",
        "sqlite:///",
        "sqlite://host/file.db",
        "sqlite:///:memory:",
        "mysql://x/y",
        "sqlite:///x.db?mode=rw2",
        "sqlite:///x.db?cache=shared",
        Path("notes.db"),
        None,
        b"sqlite:///x.db",
    ],
)
def test_a_bad_url_says_what_a_good_one_looks_like(url):
    with pytest.raises(BadURL, match=r"sqlite:///|memory:|option"):
        open_store(url)


@pytest.mark.parametrize(
    ("verb", "given", "said"),
    [
        ("recall", {"query": "x", "limit": "5"}, "limit: expected an integer, got '5'"),
        ("recall", {"query": "x", "limit": 0}, "limit: 0 is not between 1 and"),
        ("recall", {"query": "x", "tokens": True}, "tokens: expected an integer"),
        ("recall", {"query": "x", "tokens": -1}, "tokens: -1 is less than 0"),
        ("newest", {"tokens": "a"}, "tokens: expected an integer"),
        ("read", {"first_seq": "a"}, "first_seq: expected an integer"),
        ("read", {"limit": 2.5}, "limit: expected an integer"),
        ("pin", {"seq": "0"}, "seq: expected an integer"),
        ("unpin", {"seq": None}, "seq: expected an integer"),
        ("archive", {"keep": -1}, "keep: -1 is less than 0"),
        ("context", {"budget": 500, "question": 5}, "question: expected a string, got int"),
    ],
)
async def test_a_value_that_is_no_number_or_text_is_an_error(memory, verb, given, said):
    await memory.append("c", Message.user("x"))
    with pytest.raises(InputError, match=re.escape(said)):
        await getattr(memory, verb)("c", **given)


async def test_a_strategy_can_be_given_by_its_name():
    async with Memory.open("memory:", strategy="window") as memory:
        assert (await memory.strategy("c")).name == "window"
    for wrong in ("wndow", 5, strategies.window):
        with pytest.raises(InputError, match="strategy: "):
            Memory.open("memory:", strategy=wrong)
    with pytest.raises(InputError, match=r"unknown parameter 'foo'; use .*keep"):
        strategies.strategy("layered", {"foo": 1})


async def test_a_misspelt_option_is_not_passed_over(memory):
    """Else `tennant="ann"` would mean the tenant that everybody shares."""
    for face in (Memory, sync.Memory):
        with pytest.raises(InputError, match="tennant: unknown option; use tenant, "):
            face.open("memory:", tennant="ann")
    with pytest.raises(InputError, match="recal: unknown option; use budget, "):
        await memory.turn("c", "Hello?", lambda _: "Hello.", recal=False)
    assert await memory.head("c") is None


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"budget": 0}, "window_tokens 0, reserve_tokens 0"),
        ({"budget": "8000"}, "budget: '8000' is a string"),
        (
            {"system": [Message.system("Be brief.")]},
            "system: expected a string or a Message, got l",
        ),
        ({"tools": [{"type": "function"}]}, "tools: expected a list of Tool objects.*got dict"),
        ({"tools": None}, "tools: expected a list of Tool objects.*got NoneType"),
    ],
)
async def test_a_turn_with_a_wrong_option_stores_no_question(memory, wrong, why):
    """Else who puts the call right asks twice."""
    with pytest.raises(InputError, match=why):
        await memory.turn("c", "Hello?", lambda _: "Hello.", **wrong)
    assert await memory.head("c") is None


async def test_what_is_of_the_wrong_kind_is_named(memory):
    for face in (Memory, sync.Memory):
        with pytest.raises(InputError, match=r"model: expected a name .* got int"):
            face.open("memory:", model=5)
    with pytest.raises(InputError, match="system: expected a string or a Message, got dict"):
        await memory.context("c", 1_000, system={"role": "system", "content": "Be brief."})
    for wrong in ("find", {"type": "function"}, [Tool("find", print)], None):
        with pytest.raises(InputError, match="tools: expected a list of schemas"):
            await memory.context("c", 1_000, tools=wrong)
    with pytest.raises(InputError, match="important data: expected an object, got str"):
        await memory.remember("c", "the plan is gold")
    with pytest.raises(InputError, match="project: expected a Project, got str"):
        await memory.save_project("holiday")
    with pytest.raises(InputError, match="until: expected a datetime, got str"):
        await memory.dated("c", NOON, "tomorrow")


@pytest.mark.promise("typed-failure")
async def test_the_store_must_be_open(url):
    memory = Memory.open(url)
    with pytest.raises(StoreNotOpen, match=r"not open: use `async with"):
        await memory.append("c", Message.user("x"))
    async with memory:
        await memory.append("c", Message.user("x"))
    with pytest.raises(StoreNotOpen, match="not open"):
        await memory.read("c")
    await memory.close()


@pytest.mark.promise("durable")
async def test_a_store_can_be_closed_and_opened_again(tmp_path):
    url = f"sqlite:///{tmp_path}/a folder/with ünïcode %20.db".replace("%20", "%2520")
    (tmp_path / "a folder").mkdir()
    for i in range(3):
        async with Memory.open(url) as memory:
            assert (await memory.append("c", Message.user(f"m{i}"))).seq == i
    assert (tmp_path / "a folder" / "with ünïcode %20.db").exists()


@pytest.mark.promise("offline")
async def test_nothing_goes_over_the_network(url, monkeypatch, tmp_path):
    connect, attempts = socket.socket.connect, []

    def refuse(*args, **_kwargs):
        attempts.append(args)
        raise AssertionError("a socket was connected")

    def connect_here(own, address):
        """To the store's own server alone; the others are files, or connect in C."""
        local = own.family == socket.AF_UNIX and url.startswith("mongodb:")
        return connect(own, address) if local else refuse()

    monkeypatch.setattr(socket.socket, "connect", connect_here)
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    async with Memory.open(url) as memory:
        await memory.append("c", [Message.user(f"hello {i}") for i in range(50)])
        await memory.archive("c", keep=5)
        assert await memory.recall("c", "hello")
        assert (await memory.verify("c")).ok
        await memory.export(tmp_path / "x.jsonl")
        await memory.erase("c")
    assert attempts == []
