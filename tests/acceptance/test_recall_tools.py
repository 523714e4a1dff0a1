"""The recall tools: what a model can ask its own conversation, and no other (B3, B4, B6, B8)."""

import inspect
import json
import random
from datetime import UTC, datetime, timedelta

import pytest

from firnline import Memory, Message, Part, Tool, ToolCall, count_tokens, sync
from firnline.context.tools import answer
from firnline.engine.stats import stats
from firnline.errors import InputError
from firnline.log.entry import Head
from firnline.recall.tools import recall_tools
from firnline.testing.provider_rules import openai_problems

NOW = datetime(2026, 3, 11, 12, tzinfo=UTC)  # a Wednesday
CALLS = {"sqlite": 2_000, "memory": 7_800}
CALLS_TO_A_SERVER = 100

SIGNATURES = {
    "search_history": "(query: 'str', limit: 'int' = 5) -> 'str'",
    "get_messages_by_date": "(date: 'str', limit: 'int' = 20) -> 'str'",
    "get_extended_context": "(count: 'int' = 30) -> 'str'",
    "get_message_by_id": "(id: 'int | str') -> 'str'",
    "expand_digest": "(version: 'int', offset: 'int' = 0) -> 'str'",
    "list_topics": "(limit: 'int' = 20) -> 'str'",
}
FORBIDDEN = ("tenant", "conversation", "chat", "user", "session", "project", "owner", "scope")


@pytest.fixture
async def memory(url):
    async with Memory.open(url, clock=lambda: NOW, background=False) as memory:
        yield memory


async def _chat(memory, name="c", rounds=30):
    """Orders and depots, a round an hour, the newest at noon today."""
    start = NOW - timedelta(hours=rounds)
    for number in range(rounds):
        at = start + timedelta(hours=number)
        await memory.append(
            name,
            [
                Message.user(f"Where is parcel {number} now?", created_at=at),
                Message.assistant(f"Order {1100 + number} is at depot {number}.", created_at=at),
            ],
        )


async def _told(tools, name, **arguments) -> dict:
    return json.loads(await tools[name](**arguments))


# -- what is offered --------------------------------------------------------------------------


@pytest.mark.requirement("B3")
async def test_the_tools_have_their_names_and_arguments_and_none_says_whose_messages(memory):
    tools = memory.tools("c")
    assert {t.name: str(inspect.signature(tools[t.name])) for t in tools} == SIGNATURES
    for ours, theirs in zip(tools.to_openai(), tools.to_anthropic(), strict=True):
        function = ours["function"]
        assert ours["type"] == "function"
        assert (function["name"], function["description"]) == (
            theirs["name"],
            theirs["description"],
        )
        schema = function["parameters"]
        assert schema == theirs["input_schema"]
        assert schema["additionalProperties"] is False
        given = inspect.signature(tools[function["name"]]).parameters
        assert list(schema["properties"]) == list(given)
        assert schema["required"] == [n for n, p in given.items() if p.default is p.empty]
        for name, field in schema["properties"].items():
            assert field["description"]
            assert field.get("default", inspect.Parameter.empty) == given[name].default
            assert not any(word in name for word in FORBIDDEN)
    assert count_tokens("x", tools=tools.to_openai()) < 800


@pytest.mark.requirement("B3")
async def test_each_tool_returns_full_messages_as_json(memory):
    await _chat(memory)
    await _chat(memory, "other")
    tools = memory.tools("c")
    entries = await memory.read("c")
    found = await _told(tools, "search_history", query="depot order 1103", limit=2)
    assert found["messages"][0] == {
        "id": 7,
        "role": "assistant",
        "time": "2026-03-10T09:00:00+00:00",
        "text": "Order 1103 is at depot 3.",
    }
    assert len(found["messages"]) == 2
    one = await _told(tools, "get_message_by_id", id=7)
    assert one["messages"] == found["messages"][:1]
    newest = await _told(tools, "get_extended_context")
    assert [m["id"] for m in newest["messages"]] == list(range(30, 60))
    assert [m["text"] for m in newest["messages"]] == [e.message.text for e in entries[30:]]
    assert "30 are older" in newest["note"]
    day = await _told(tools, "get_messages_by_date", date="today", limit=100)
    today = [e for e in entries if e.message.created_at.date() == NOW.date()]
    assert [m["text"] for m in day["messages"]] == [e.message.text for e in today]
    assert (day["since"], day["until"]) == (
        "2026-03-11T00:00:00+00:00",
        "2026-03-12T00:00:00+00:00",
    )


@pytest.mark.requirement("B3")
async def test_dates_are_those_of_the_users_time_zone(memory):
    late = datetime(2026, 3, 10, 23, 30, tzinfo=UTC)
    await memory.append("c", Message.user("half past midnight", created_at=late))
    berlin = memory.tools("c", zone="Europe/Berlin")
    assert (await _told(berlin, "get_messages_by_date", date="yesterday"))["messages"] == []
    today = await _told(berlin, "get_messages_by_date", date="today")
    assert today["messages"][0]["time"] == "2026-03-11T00:30:00+01:00"
    london = memory.tools("c", zone="Europe/London")
    assert len((await _told(london, "get_messages_by_date", date="yesterday"))["messages"]) == 1


@pytest.mark.requirement("B3")
async def test_results_over_the_limit_and_no_results_are_reported(memory):
    await _chat(memory)
    tools = memory.tools("c")
    some = await _told(tools, "get_messages_by_date", date="today", limit=3)
    assert len(some["messages"]) == 3
    assert "There are more" in some["note"]
    none = await _told(tools, "get_messages_by_date", date="2019-01-01")
    assert (none["messages"], none["note"]) == ([], "No message was said then.")
    nothing = await _told(tools, "search_history", query="zebra")
    assert nothing["messages"] == []
    assert "try others" in nothing["note"]
    empty = memory.tools("not begun")
    assert (await _told(empty, "get_extended_context"))["messages"] == []
    assert "nothing was said" in (await _told(empty, "get_message_by_id", id=0))["error"]


@pytest.mark.requirement("B3")
@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("search_history", {"query": "x", "limit": 0}, "the minimum is 1"),
        ("search_history", {"query": "x", "limit": 51}, "the maximum is 50"),
        ("search_history", {"query": 7}, "expected string, got integer"),
        ("search_history", {}, "missing arguments: query"),
        ("search_history", {"query": "x", "tenant": "b"}, "unknown arguments: tenant"),
        ("search_history", {"query": "x", "conversation": "d"}, "known: query, limit"),
        ("get_messages_by_date", {"date": "the day of the zebra"}, "yesterday"),
        ("get_messages_by_date", {"date": ""}, "yesterday"),
        ("get_messages_by_date", {"date": "2026-02-30"}, "2026-02-30"),
        ("get_extended_context", {"count": 0}, "the minimum is 1"),
        ("get_message_by_id", {"id": -1}, "ids are 0 to 59"),
        ("get_message_by_id", {"id": 60}, "ids are 0 to 59"),
        ("get_message_by_id", {"id": 2**70}, "ids are 0 to 59"),
        ("get_message_by_id", {"id": "7.0"}, "ids are 0 to 59"),
        ("get_message_by_id", {"id": "other:0"}, "no such message"),
        ("get_message_by_id", {"id": "c:60"}, "ids are 0 to 59"),
        ("get_message_by_id", {"id": 7.5}, "expected integer or string, got number"),
        ("expand_digest", {"version": 9}, "no such summary; there are: none"),
    ],
)
async def test_errors_help_a_model_to_correct_its_call(memory, name, arguments, told):
    await _chat(memory)
    result = await _told(memory.tools("c"), name, **arguments)
    assert list(result) == ["error"]
    assert told in result["error"]


async def test_a_caller_that_cannot_be_served_gets_an_error_at_once(memory):
    for wrong in ({"zone": "Mars/Base"}, {"zone": ""}, {"tokens_max": 10}, {"tokens_max": 300.5}):
        with pytest.raises(InputError):
            memory.tools("c", **wrong)
    with pytest.raises(InputError):
        memory.tools("")


# -- bounds -----------------------------------------------------------------------------------


@pytest.mark.requirement("B3")
@pytest.mark.parametrize("tokens_max", [200, 500, 2_000])
async def test_results_are_bounded_in_tokens_and_say_what_is_missing(memory, tokens_max):
    words = ["river", "stone", "lamp", "cloud", "paper", "engine", "garden", "window"]
    rng = random.Random(5)
    texts = [f"note {n} " + " ".join(rng.choices(words, k=rng.randint(1, 60))) for n in range(50)]
    await memory.append("c", [Message.user(text) for text in texts])
    tools = memory.tools("c", tokens_max=tokens_max)
    asked = [
        ("search_history", {"query": "note", "limit": 50}, 50),
        ("get_messages_by_date", {"date": "today", "limit": 50}, 50),
        ("get_extended_context", {"count": 50}, 50),
    ]
    for name, arguments, wanted in asked:
        text = await tools[name](**arguments)
        assert count_tokens(text) <= tokens_max
        result = json.loads(text)
        shown = [m["id"] for m in result["messages"]]
        assert 1 <= len(shown) < wanted
        assert all(m["text"] == texts[m["id"]] for m in result["messages"])
        assert result["note"].startswith(f"{wanted - len(shown)} more do not fit (ids ")
        assert "get_message_by_id" in result["note"]
        if name != "search_history":
            assert shown == sorted(shown)
            assert shown[0] == 0 or shown[-1] == 49  # the oldest of the day, the newest of all


@pytest.mark.requirement("B3")
@pytest.mark.parametrize("text", ["word " * 20_000, "\U0001f9ca" * 9_000, " " * 300_000])
async def test_a_message_larger_than_the_bound_is_shown_by_its_beginning_and_end(memory, text):
    long = f"beginning {text} ending"
    await memory.append("c", [Message.user("hi"), Message.user(long), Message.user("bye")])
    for tokens_max in (200, 2_000):
        tools = memory.tools("c", tokens_max=tokens_max)
        told = await tools["get_message_by_id"](id=1)
        assert count_tokens(told) <= tokens_max
        row = json.loads(told)["messages"][0]
        assert (row["id"], row["shortened"]) == (1, True)
        assert row["text"].startswith("beginning")
        assert row["text"].endswith("ending")
        assert "middle of message 1 is left out" in row["text"]
        around = await _told(tools, "get_extended_context")
        assert [m["id"] for m in around["messages"]] == [0, 1, 2][tokens_max == 200 :]


async def test_calls_pictures_names_and_extreme_times_can_be_shown(memory):
    picture = Message.user([Part.of_text("look"), Part.image("https://x/y.png")], name="Ana")
    first = Message.assistant(
        tool_calls=[ToolCall.of("1", "find", {"order": 7})],
        created_at=datetime.min.replace(tzinfo=UTC),
    )
    await memory.append("c", [first, Message.tool("found", tool_call_id="1"), picture])
    shown = await _told(memory.tools("c", zone="America/New_York"), "get_extended_context")
    texts = [m["text"] for m in shown["messages"]]
    assert texts == ['[calls find {"order":7}]', "found", "look\n[image]"]
    assert shown["messages"][2]["name"] == "Ana"


@pytest.mark.requirement("B3")
async def test_a_digest_is_expanded_page_by_page_until_every_message_was_shown(memory):
    await _chat(memory, rounds=100)
    digest = await memory.remember("c", {"important_facts": ["x"]})
    while digest.last_seq < 50:
        await memory.context("c", 1_500)
        digest = (await memory.digests("c"))[-1]
    tools = memory.tools("c", tokens_max=600)
    shown, offset = [], 0
    while True:
        page = await _told(tools, "expand_digest", version=digest.version, offset=offset)
        shown += page["messages"]
        if "note" not in page:
            break
        offset = int(page["note"].rsplit("offset ", 1)[1].rstrip("."))
    span = range(digest.first_seq, digest.last_seq + 1)
    assert [m["id"] for m in shown] == list(span)
    texts = [e.message.text for e in await memory.expand("c", digest.version)]
    assert [m["text"] for m in shown] == texts
    beyond = await _told(tools, "expand_digest", version=digest.version, offset=len(span))
    assert f"offset 0 to {len(span) - 1}" in beyond["error"]
    unknown = await _told(tools, "expand_digest", version=10**6)
    assert f"{digest.version} (ids {digest.first_seq} to {digest.last_seq})" in unknown["error"]


# -- archived messages ------------------------------------------------------------------------


@pytest.mark.requirement("B4")
async def test_search_sees_archived_messages_as_it_sees_the_others(memory):
    await _chat(memory)
    tools = memory.tools("c")
    queries = ["depot 3", "order 1129", "Where is parcel 1?", "depot", "zebra"]
    before = [await tools["search_history"](query=query) for query in queries]
    for keep in (10, 0):
        assert (await memory.archive("c", keep=keep)).entries
        assert [await tools["search_history"](query=query) for query in queries] == before
        day = await _told(tools, "get_messages_by_date", date="yesterday", limit=100)
        assert len(day["messages"]) == 36
        assert (await _told(tools, "get_message_by_id", id=0))["messages"]
    assert all(entry.archived for entry in await memory.read("c"))


@pytest.mark.requirement("B4")
async def test_search_is_better_than_like(memory):
    notes = ["We decided that the price is 40 euros.", "The euro fell.", "Prices of 3 lamps."]
    await memory.append("c", [Message.user(text) for text in notes])
    query = "euros price decided"  # no message contains this text, so LIKE finds nothing
    found = await _told(memory.tools("c"), "search_history", query=query)
    assert found["messages"][0]["text"] == notes[0]


# -- the loop ---------------------------------------------------------------------------------


def _calls(*calls: tuple[str, object]) -> dict:
    made = [ToolCall.of(f"call_{n}", *call).fields for n, call in enumerate(calls)]
    return {"role": "assistant", "content": None, "tool_calls": made}


@pytest.mark.requirement("B6")
async def test_the_loop_over_http_with_several_calls_at_once_and_wrong_ones(memory, server, model):
    await _chat(memory)
    server.say(
        _calls(
            ("search_history", {"query": "order 1103 depot", "limit": 1}),
            ("get_messages_by_date", {"date": "yesterday", "limit": 2}),
            ("get_message_by_id", {"id": 7, "tenant": "other"}),
            ("delete_history", {}),
            ("get_extended_context", "{not json"),
            ("mine", {}),
        ),
        _calls(("get_message_by_id", {"id": 7})),
        "Order 1103 is at depot 3.",
    )
    mine = Tool("mine", lambda: "my own tool")
    turn = await memory.turn(
        "c", "At which depot is order 1103?", model, tools=[mine], recall_tools=True
    )
    assert (turn.text, turn.calls) == ("Order 1103 is at depot 3.", 3)
    texts = [entry.message.text for entry in turn.tool_results]
    found, dated, tenant, unknown, broken = map(json.loads, texts[:5])
    assert found["messages"][0]["text"] == "Order 1103 is at depot 3."
    assert len(dated["messages"]) == 2
    assert "unknown arguments: tenant" in tenant["error"]
    assert "known: mine, search_history" in unknown["error"]
    assert "not JSON" in broken["error"]
    assert texts[5] == "my own tool"
    assert json.loads(texts[6])["messages"][0]["id"] == 7
    offered = [tool["function"]["name"] for tool in server.requests[0]["tools"]]
    assert offered == ["mine", *SIGNATURES]
    results = [m for m in server.requests[1]["messages"] if m["role"] == "tool"]
    assert [m["content"] for m in results][-6:] == texts[:6]
    for request in server.requests:
        assert openai_problems(request["messages"]) == []


@pytest.mark.requirement("B6")
async def test_a_model_that_only_ever_calls_tools_is_stopped(memory, server, model):
    await _chat(memory)
    server.answer = lambda request: (
        _calls(("search_history", {"query": "depot"})) if request.get("tools") else "Enough."
    )
    turn = await memory.turn("c", "Go.", model, recall_tools=True, rounds_max=3)
    assert (turn.text, turn.calls, len(turn.tool_results)) == ("Enough.", 4, 3)
    assert not server.requests[-1].get("tools")


async def test_without_the_option_no_tools_are_offered_and_custom_tools_win(memory):
    offered = []

    async def model(messages, tools=()):
        offered.append([tool["function"]["name"] for tool in tools])
        return "Hello."

    await memory.turn("c", "Hi.", model)
    own = Tool("search_history", lambda query: "mine")
    await memory.turn("c", "Hi.", model, recall_tools=True, tools=[own])
    assert offered[0] == []
    assert sorted(offered[1]) == sorted(SIGNATURES)


async def test_what_a_search_left_in_the_log_does_not_crowd_out_what_it_looks_for(memory):
    await _chat(memory, rounds=5)
    answers = []

    async def model(messages, tools=()):
        if len(answers) % 2 == 0:
            answers.append("call")
            call = ToolCall.of(str(len(answers)), "search_history", {"query": "order 1103 depot"})
            return Message.assistant(tool_calls=[call])
        answers.append("Depot three.")
        return "Depot three."

    for again in range(6):
        question = "Please look again." if again else "order 1103 depot?"
        turn = await memory.turn("c", question, model, recall_tools=True)
        found = json.loads(turn.tool_results[0].message.text)["messages"]
        assert "Order 1103 is at depot 3." in [message["text"] for message in found[:2]]
        assert turn.question.seq not in {message["id"] for message in found}


# -- without await ----------------------------------------------------------------------------


@pytest.mark.requirement("B3")
def test_the_tools_without_await(url):
    with sync.Memory.open(url) as memory:
        memory.append("c", [Message.user("The door code is 4711."), Message.assistant("Noted.")])
        tools = memory.tools("c", zone="Europe/Berlin")
        found = json.loads(tools["search_history"]("door code"))
        assert found["messages"][0]["text"] == "The door code is 4711."
        assert "error" in json.loads(tools["get_message_by_id"](id="x"))
        assert memory.stats("c").messages == 2
        said = iter([Message.assistant(tool_calls=[ToolCall.of("1", "get_extended_context", {})])])

        async def model(messages, tools=()):
            return next(said, "It is 4711.")

        turn = memory.turn("c", "The code?", model, tools=tools)
        assert "4711" in turn.tool_results[0].message.text


# -- stats ------------------------------------------------------------------------------------


@pytest.mark.requirement("B8")
async def test_stats_count_what_is_there_and_compare_what_it_costs(memory):
    await _chat(memory)
    head = await memory.head("c")
    result = await memory.stats("c", price=2.0)
    assert (result.conversation, result.messages, result.tokens) == ("c", 60, head.tokens)
    assert result.oldest == NOW - timedelta(hours=30)
    assert result.newest == NOW - timedelta(hours=1)
    recent = await memory.tokens_between("c", 48, 59)
    assert result.lean.tokens == 4_000 + recent
    assert result.whole.tokens == 4_000 + head.tokens
    found = 5 * (head.tokens // 60 + 40)
    assert result.with_tools.tokens == 2 * result.lean.tokens + min(found, head.tokens - recent)
    assert result.whole.price == pytest.approx(result.whole.tokens * 2.0 / 1e6)
    assert "60 messages, 2026-03-10 to 2026-03-11" in str(result)
    await memory.archive("c", keep=0)
    assert await memory.stats("c", price=2.0) == result


@pytest.mark.requirement("B8")
async def test_oldest_and_newest_are_by_time_in_whatever_order_things_came(memory):
    rng = random.Random(3)
    for number, order in enumerate(("shuffled", "falling", "rising", "equal")):
        days = [rng.randrange(10_000) * (order != "equal") for _ in range(60)]
        if order in ("falling", "rising"):
            days.sort(reverse=order == "falling")
        times = [NOW - timedelta(days=day, microseconds=day) for day in days]
        name = f"c{number}"
        await memory.append(name, [Message.user("x", created_at=at) for at in times])
        result = await memory.stats(name)
        assert (result.oldest, result.newest) == (min(times), max(times)), order


@pytest.mark.requirement("B8")
async def test_an_empty_conversation_has_stats_and_an_unknown_one_has_none(memory):
    await memory.describe("c", project="p")
    empty = await memory.stats("c")
    assert (empty.messages, empty.oldest, empty.newest, empty.tokens) == (0, None, None, 0)
    assert empty.lean == empty.whole
    assert "0 messages, 0 tokens" in str(empty)
    with pytest.raises(InputError, match="no conversation 'nope'"):
        await memory.stats("nope")


@pytest.mark.requirement("B8")
def test_the_comparison_is_that_of_a_long_history():
    """About 25K lean, 50K with tools, 600K whole: half a cent, a cent, twelve cents."""
    head = Head("c", 9_999, "", 596_000, NOW, NOW)
    result = stats(head)
    assert [cost.tokens for cost in (result.lean, result.with_tools, result.whole)] == [
        24_000,
        48_495,
        600_000,
    ]
    prices = [round(cost.price, 4) for cost in (result.lean, result.with_tools, result.whole)]
    assert prices == [0.0048, 0.0097, 0.12]


@pytest.mark.requirement("B8")
@pytest.mark.parametrize(("mean", "found"), [(60, 500), (1_500, 7_700), (30_000, 20_000)])
def test_what_the_tools_return_depends_on_how_long_messages_are(mean, found):
    """The seed's 5,000 to 20,000 tokens for a search, where messages are as long as its own."""
    head = Head("c", 999, "", 1_000 * mean, NOW, NOW)
    result = stats(head)
    assert result.with_tools.tokens - 2 * result.lean.tokens == found
    assert stats(head, tool_tokens=3_000).with_tools.tokens == 2 * result.lean.tokens + 3_000


# -- whatever a model may try -----------------------------------------------------------------

FOREIGN = "xyzzy"
NAMES = [*SIGNATURES, "list_tenants", "", "search_history; DROP TABLE entry", "\ud800", "_last"]
STRINGS = [
    "order",
    FOREIGN,
    f"{FOREIGN} OR 1=1 --",
    f'" OR conversation:{FOREIGN} NEAR(a b) *',
    "'; DELETE FROM entry; --",
    "tenant:b conversation:secret",
    "%_%",
    "\ud800\0",
    "*" * 5_000,
    "",
    "yesterday",
    "today",
    "last week",
    "2026-03-10",
    "0001-01-01",
    "9999-12-31",
    "999999999 days ago",
    "between today and ../secret",
]
NUMBERS = [-1, 0, 1, 5, 20, 50, 51, 100, 101, 2**31, 2**32, 2**32 + 1, 2**63, 2**64, -(2**63)]
ODD = [None, True, 1.5, float("nan"), float("inf"), [], ["a"], {}, {"$ne": 1}, 10**300]
KEYS = ["query", "limit", "date", "count", "id", "version", "offset"]
INJECTED = [
    "tenant",
    "tenant_id",
    "conversation",
    "conversation_id",
    "chat_id",
    "user_id",
    "filter",
    "self",
    "memory",
    "__proto__",
    "__class__",
    "seq",
]


def _arguments(rng: random.Random, properties: list[str]) -> dict:
    if rng.random() < 0.5:  # nothing is wrong but what the text says
        texts, numbers = rng.choices(STRINGS, k=2), rng.choices(range(25), k=2)
        return {k: (texts if k in ("query", "date") else numbers).pop() for k in properties}
    keys = properties if rng.random() < 0.8 else rng.sample(KEYS, rng.randint(0, 4))
    arguments = {}
    for key in keys:
        text = key in ("query", "date")
        likely = STRINGS if text else NUMBERS
        arguments[key] = rng.choice(rng.choice([likely, likely, likely, STRINGS, NUMBERS, ODD]))
    if rng.random() < 0.3:
        arguments[rng.choice(INJECTED)] = rng.choice(["b", "secret", "*", None, {"$gt": ""}, 0])
    return arguments


async def _two_tenants(memory):
    """Own messages, and those of others in the same store, all with the foreign word."""
    other = Memory(memory.store, tenant="b", clock=lambda: NOW)
    foreign = [Message.user(f"{FOREIGN} order {n} secret", created_at=NOW) for n in range(40)]
    await other.append("c", foreign)
    await other.append("secret", foreign)
    await memory.append("secret", foreign)
    await memory.append(FOREIGN, foreign)
    await memory.remember("secret", {"important_facts": [FOREIGN]})
    await _chat(memory, rounds=10)
    await memory.append("c", Message.user("long order " * 3_000, created_at=NOW))
    await memory.archive("c", keep=5)


@pytest.mark.requirement("B3")
@pytest.mark.requirement("B6")
async def test_no_tool_call_raises_or_shows_data_of_others(memory, url):
    await _two_tenants(memory)
    tools = memory.tools("c", tokens_max=400)
    known = {tool.name: list(tool.parameters["properties"]) for tool in tools}
    own = {entry.seq: entry.message.text for entry in await memory.read("c")}
    calls = CALLS.get(url.partition(":")[0], CALLS_TO_A_SERVER)
    rng = random.Random(11)
    shown = 0
    for number in range(calls):
        name = rng.choice(NAMES if rng.random() < 0.1 else list(known))
        arguments = _arguments(rng, known.get(name, []))
        if number % 4 or name not in known:
            text = await answer(ToolCall.of("1", name, json.dumps(arguments)), tools)
        else:
            text = await tools[name](**arguments)
        assert count_tokens(text) <= 400, (name, arguments)
        result = json.loads(text)
        if name == "list_topics" and "topics" in result:
            assert FOREIGN not in text, "of another conversation"
            continue
        assert ("error" in result) != ("messages" in result), (name, arguments)
        for message in result.get("messages", ()):
            shown += 1
            whole = message["text"] == own[message["id"]]
            assert whole or message["shortened"], (name, arguments)
            assert FOREIGN not in message["text"], (name, arguments)
    assert shown > calls / 4


def test_the_tools_need_no_more_than_a_reader(url):
    class Nothing:
        """No memory is opened; the conversation is checked before any read."""

    assert len(recall_tools(Nothing(), "c")) == len(SIGNATURES)
