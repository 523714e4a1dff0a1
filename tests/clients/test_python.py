"""The Python client against a real server: every route, the library's values, its errors."""

import dataclasses
import inspect
import sys
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from subprocess import run

import pytest

from firnline import Appended, Digest, Entry, Erased, Head, Hit, Message, Project, Stats, strategies
from firnline import errors as known
from firnline.client import Client, Turn, sync, values, verbs
from firnline.client.files import save
from firnline.client.problems import error_of
from firnline.context.context import Accounting, LeftOut
from firnline.engine.digest_history import Difference, State
from firnline.log.chain import Verification
from firnline.log.entry import Archived
from firnline.log.message import Part, ToolCall
from firnline.recall.chance import EARNED_CHANCE
from firnline.server.app import create_app
from firnline.server.settings import load
from firnline.topics import TopicMatch, TopicStats
from support.http_server import served
from support.live_server import free_port, running
from support.long_texts import essay
from support.rest_client import document, key_for, operations, template


@pytest.fixture(scope="module")
def server():
    """A server whose digests are made when they are asked for."""
    with running(background=False) as server:
        yield server


@pytest.fixture
async def client(server):
    async with Client(server.url) as client:
        yield client


def talk(number):
    roles = (Message.user, Message.assistant)
    words = "The tide at Cascais on day {0} is at {0} past noon, said the harbour master."
    return [roles[i % 2](words.format(i) * 6) for i in range(number)]


async def every(items):
    return [item async for item in items]


# -- every route ------------------------------------------------------------------------------

ALSO_BY_BODY = {"search", "search_conversation"}
"""The same as a POST, which is what the client does: no words in addresses."""


async def test_every_operation_of_the_document_is_reached_by_a_verb(tmp_path):
    """And what comes back is what the library itself says, value for value."""
    asked = set()

    async def note(request):
        asked.add((request.method.lower(), template(request.url.path)))

    with running(background=False) as server:
        async with Client(server.url) as client:
            client._to._open_client().event_hooks["request"].append(note)
            memory = server.memory()
            await _written_and_read(client, server.run, memory)
            await _digested(client, server.run, memory)
            await _found_and_counted(client, server.run, memory)
            await _known(client, server.run, memory)
            await _moved(client, tmp_path)
    missing = {
        operation["operationId"]
        for method, path, operation in operations()
        if (method, path) not in asked
    }
    assert missing == ALSO_BY_BODY


async def _known(client, run, memory):
    await client.append("hello", Message.user("I live in Berlin."), person="ana")
    facts = await client.facts(person="ana")
    assert facts == run(memory.facts(person="ana"))
    assert await client.profile("ana") == run(memory.profile("ana"))
    assert await every(client.people()) == run(memory.people())
    assert (await client.revert_fact("ana", facts[0].id)).value == "Berlin"
    erased = await client.erase_person("ana")
    assert [one.conversation for one in erased.conversations] == ["hello"]


async def _written_and_read(client, run, memory):
    added = await client.append("trip", talk(40), expected_seq=0)
    assert isinstance(added, Appended)
    assert (added.seq, added.replayed) == (39, False)
    assert await every(client.read("trip")) == run(memory.read("trip")) == list(added)
    assert await every(client.read("trip", limit=3, newest_first=True)) == list(added[:-4:-1])
    assert await client.entry("trip", 7) == added[7]
    assert await client.head("nowhere") is None
    await client.save_project(Project("garden", task="Plant the beans."))
    described = await client.describe("trip", project="garden", metadata={"customer": "4711"})
    assert await client.head("trip") == described == run(memory.head("trip"))
    assert (await client.conversation("trip")).head == described
    assert (await client.project("garden")).task == "Plant the beans."
    assert [board.conversations for board in [b async for b in client.projects()]] == [1]
    assert await every(client.conversations(project="garden")) == [described]
    planned = await client.set_strategy("trip", strategies.layered(fan=3))
    assert (planned.name, planned.parameters["fan"], planned.own) == ("layered", 3, True)
    branched = await client.branch("trip", 3, "plan-b")
    assert branched == dataclasses.replace(run(memory.head("plan-b")), strategy=None)
    await client.pin("trip", 2)
    assert [entry.seq for entry in await client.pinned("trip")] == [2]
    assert (await client.conversation("trip")).pinned == (2,)
    await client.unpin("trip", 2)
    assert await client.pinned("trip") == []
    assert await client.verify("trip") == run(memory.verify("trip"))
    noted = await client.checkpoint("trip")
    assert noted == run(memory.checkpoint("trip"))
    assert await client.prove("trip", 2) == run(memory.prove("trip", 2))
    assert await client.prove_growth("trip", noted) == run(memory.prove_growth("trip", noted))


async def _digested(client, run, memory):
    context = await client.context("trip", 1_000, "When is the tide?", system="Be brief.")
    assert context.messages[0] == {"role": "system", "content": "Be brief."}
    assert context.tokens <= context.budget.limit == 1_000
    assert isinstance(context.accounting, Accounting)
    assert all(isinstance(left, LeftOut) for left in context.left_out)
    assert (await client.digest("trip")).more is False
    made = await every(client.digests("trip"))
    assert made == run(memory.digests("trip"))
    assert len(made) > 0
    assert await client.in_force("trip") == run(memory.in_force("trip"))
    assert await client.version("trip", 1) == made[0]
    assert await every(client.expand("trip", 1)) == run(memory.expand("trip", 1))
    await client.remember("trip", {"user_preferences": {"food": "no fish"}})
    last = await client.remember("trip", {"user_preferences": {"food": "fish"}})
    versions = last.version - 1, last.version
    changed = await client.diff("trip", *versions)
    assert changed == run(memory.diff("trip", *versions))
    assert isinstance(changed, Difference)
    important = await client.important("trip")
    assert {item.value for item in important.data if item.name == "food"} == {"fish", "no fish"}
    assert isinstance(await client.revert("trip", -1), Digest)
    state = await client.state("trip")
    assert state == run(memory.state("trip"))
    assert state.important_data["user_preferences"] == {"food": "no fish"}
    lineage = await client.lineage("trip")
    assert lineage.chain == run(memory.lineage("trip")).chain
    assert (await client.undo("trip")).status == "undone"
    assert len(await client.rebuild("trip")) > 0
    assert await client.clear("trip") > 0
    assert await client.in_force("trip") == ()


async def _found_and_counted(client, run, memory):
    hits = await client.recall("trip", "tide on day 7", limit=3, roles=["assistant"])
    assert hits == run(memory.recall("trip", "tide on day 7", limit=3, roles=["assistant"]))
    assert {hit.message.role for hit in hits} == {"assistant"}
    assert hits.earned == sum(hit.chance >= EARNED_CHANCE for hit in hits) > 0
    assert len(await client.recall(None, "harbour master", tokens=5_000)) > 3
    today = await client.interval("today")
    assert (today.until - today.since).days == 1
    assert len(await every(client.dated("trip", "since 2020-01-01", limit=5))) == 5
    topics = await client.topics("trip")
    assert sum(topic.total_messages for topic in topics) == 40
    first = topics[0].topic_id
    assert (await client.topic_stats("trip", first)).title == topics[0].title
    history = await every(client.topic_history("trip", first))
    assert history == run(memory.topic_history("trip", first))
    assert (await client.topic_context("trip", 2_000)).tokens <= 2_000
    assert (await client.tag_topic("trip", first, add=["sea"])).tags == ("sea",)
    assert isinstance(await client.feedback("trip", 0, 1), TopicStats)
    match = await client.match_topic("trip", "tides")
    assert isinstance(match, TopicMatch)
    assert match == run(memory.match_topic("trip", "tides"))
    with pytest.raises(known.InputError):
        await client.merge_topics("trip", first, first)
    assert await client.stats("trip") == run(memory.stats("trip"))
    assert (await client.tenant_stats()).conversations == 2
    turn = await client.turn("trip", "When is the tide on day 7?")
    assert isinstance(turn, Turn)
    assert (await client.entry("trip", 41)) == turn.answer
    past = await every(client.turns("trip"))
    assert [one.answer for one in past] == [41]
    prompt = await client.prompt("trip", 41)
    assert prompt.proved
    assert prompt.messages == len(prompt.prompt) > 0
    assert (await client.costs()).turns == 1
    assert await client.stop("trip") == 0
    assert (await client.work()).conversations == 2
    me = await client.me()
    assert (me.tenant, me.server.store) == ("default", "memory")
    assert isinstance(await client.archive("trip", keep=2), Archived)
    assert await client.restore("trip") == 40


async def _moved(client, tmp_path):
    whole = await client.export(tmp_path / "whole.jsonl")
    assert (whole.conversations, whole.entries) == (2, 46)
    job = await client.begin_export(conversations=["plan-b"])
    states = await every(client.watch(job.id))
    assert states[-1].state == (await client.job(job.id)).state == "done"
    part = await client.fetch(job.id, tmp_path / "part.jsonl")
    assert part == states[-1].result
    assert await client.branches("plan-b") == ["trip"]
    erased = await client.erase("plan-b")
    assert isinstance(erased, Erased)
    assert (erased.entries, erased.branches, erased.survives) == (4, (), ("trip",))
    assert (await client.import_(tmp_path / "whole.jsonl")).added == 4
    assert next(job.kind for job in await client.jobs()) == "import"
    report = await client.import_file(tmp_path / "whole.jsonl")
    assert (report.formats, report.added, report.known) == (("firnline",), 0, 46)
    again = await client.export(tmp_path / "again.jsonl")
    assert again == whole
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    one = await client.erase_messages("plan-b", 1, branches=True)
    assert (one.spans, one.branches, one.survives) == (((1, 1),), ("trip",), ())
    assert (await client.entry("trip", 1)).erased_at is not None
    assert (await client.entry("plan-b", 1)).erased_at == one.erased_at
    assert (await client.erase_messages("plan-b", 2, 3)).entries == 2
    assert await client.erase_before(datetime(1999, 1, 1, tzinfo=UTC)) == []


# -- the document and the values --------------------------------------------------------------

SCHEMAS = {  # schemas that have another name here, or are values of the library
    "Board": "ProjectBoard",
    "StrategyInfo": "Strategy",
}
LIBRARY = {
    "Entry": (Entry, {"created_at", "metadata", "normalised"}),  # the message's own
    "Head": (Head, {"entries", "title"}),
    "Digest": (Digest, {"in_force"}),
    "Hit": (Hit, {"explanation", "text"}),
    "Project": (Project, set()),
    "State": (State, set()),
    "Stats": (Stats, set()),
    "Topic": (TopicStats, set()),
    "Verified": (Verification, {"ok"}),
    "Archived": (Archived, set()),
    "Erased": (Erased, set()),
    "DigestDifference": (Difference, set()),
    "Accounting": (Accounting, set()),
}
OWN = [
    kind
    for kind in vars(values).values()
    if dataclasses.is_dataclass(kind) and kind.__module__ == values.__name__
]


def _named(schema):
    return set(document()["components"]["schemas"][schema]["properties"]) - {"url"}


@pytest.mark.parametrize("kind", OWN, ids=lambda kind: kind.__name__)
def test_a_value_has_the_fields_that_the_document_names(kind):
    fields = {field.name for field in dataclasses.fields(kind)}
    if kind is values.Conversation:
        fields = (fields - {"head"}) | _named("Head")
    assert fields == _named(SCHEMAS.get(kind.__name__, kind.__name__))


@pytest.mark.parametrize("schema", LIBRARY)
def test_the_librarys_values_hold_every_field_of_the_answer(schema):
    kind, elsewhere = LIBRARY[schema]
    assert _named(schema) - {field.name for field in dataclasses.fields(kind)} == elsewhere


async def test_the_passage_of_a_long_message_arrives(client, server):
    key = "The spare key of the boathouse is under the third flowerpot. 🌼"
    await client.append("essay", [Message.user("🌊 " + essay(60, {31: key}))])
    (found,) = await client.recall("essay", "boathouse key", tokens=400)
    assert found == server.run(server.memory().recall("essay", "boathouse key", tokens=400))[0]
    assert key in found.text
    assert found.passage[0].start > 0
    assert len(found.text) < len(found.message.text) / 2


async def test_nothing_of_a_message_is_lost_on_the_way(client, server):
    said = [
        Message.user([Part.of_text("look"), Part.image("https://x/y.png")], name="Ana"),
        Message.assistant(tool_calls=[ToolCall.of("c1", "f", {"a": 1})]),
        Message.tool("r", tool_call_id="c1", metadata={"deep": {"er": [1, None]}}),
        {"role": "user", "content": "more \ud800", "future_field": {"kept": True}},
        {"role": "assistant", "content": None, "refusal": None},
    ]
    added = await client.append("lossless", said)
    altered = server.run(server.memory().append("lossless", Message.user("raw \x00")))
    assert altered[0].message.normalised
    assert [*added, *altered] == await every(client.read("lossless"))
    assert [*added, *altered] == server.run(server.memory().read("lossless"))
    assert added[0].message.content == said[0].content
    assert added[2].message.metadata == said[2].metadata
    assert added[3].message.extra == {"future_field": {"kept": True}}
    timed = Message.user("then").at(added[0].message.created_at.replace(year=2020))
    assert (await client.append("lossless", timed))[0].message.created_at.year == 2020


async def test_what_is_null_in_the_callers_own_data_stays_there(client, server):
    own = {"closed": None, "steps": [None, {"by": None}]}
    await client.append("nulls", Message.user("x"))
    assert (await client.describe("nulls", metadata=own)).metadata == own
    assert (await client.save_project(Project("nulls", metadata=own))).metadata == own
    given = {"type": "object", "properties": {"day": {"type": "string", "default": None}}}
    tools = [{"type": "function", "function": {"name": "f", "parameters": given}}]
    asked = await client.context("nulls", 4_000, tools=tools)
    said = server.run(server.memory().context("nulls", 4_000, tools=tools))
    assert asked.accounting.tools == said.accounting.tools


async def test_a_turn_keeps_the_other_fields_of_its_message(client, server):
    """As the library's own turn does: when it was said, and what the application knows of it."""
    then = datetime(2020, 1, 1, tzinfo=UTC)
    said = Message.user("Where is it?", metadata={"ticket": 7, "by": None}, created_at=then)
    await client.turn("beside", said)
    _ = [piece async for piece in client.stream("beside", said)]
    for entry in [*await every(client.read("beside"))][::2]:
        assert (entry.message.metadata, entry.message.created_at) == (said.metadata, then)
    turn = await client.turn("beside", {"role": "user", "content": "Well?", "name": "Ana"})
    asked = server.run(server.memory().read("beside"))[turn.question.seq].message
    assert (asked.name, asked.metadata) == ("Ana", {})


@pytest.mark.parametrize("name", [".", "..", "a/b", "~1", "%2F", "ü 🙂", "a?b#c", "in force", "~"])
async def test_any_name_is_one_segment(client, name):
    await client.append(name, Message.user(name))
    assert [entry.message.text async for entry in client.read(name)] == [name]
    assert (await client.head(name)).conversation == name


# -- streams ----------------------------------------------------------------------------------


async def test_a_streamed_turn_has_pieces_and_then_the_full_answer(client, server):
    await client.append("streamed", Message.user("The key is under the blue pot."))
    *pieces, turn = [piece async for piece in client.stream("streamed", "Where is the key?")]
    assert "".join(pieces) == turn.text
    assert "blue pot" in turn.text
    assert turn.answer == server.run(server.memory().read("streamed"))[-1]
    named = {"idempotency_key": "k1"}
    first = [piece async for piece in client.stream("streamed", "And the lamp?", **named)][-1]
    again = await client.turn("streamed", "And the lamp?", **named)
    assert (again.calls, again.answer) == (0, first.answer)


def test_the_face_without_await_does_the_same(server):
    with sync.Client(server.url) as client:
        added = client.append("plain", [Message.user("one"), Message.assistant("two")])
        assert list(client.read("plain")) == list(added)
        *pieces, turn = client.stream("plain", "What is one?")
        assert "".join(pieces) == turn.text
        abandoned = client.read("plain")
        assert next(abandoned) == added[0]
        abandoned.close()
        with pytest.raises(known.UnknownConversation):
            client.state("nowhere")
    with pytest.raises(known.StoreNotOpen, match="with Client"):
        client.head("plain")


def test_both_faces_have_the_same_verbs():
    def named(kind):
        found = inspect.getmembers(kind, inspect.isfunction)
        return {name: found_ for name, found_ in found if not name.startswith("_")}

    own = {"start", "run", "walk"}
    there, here = named(verbs.Client), named(sync.Client)
    assert set(here) - set(there) == own
    for name, verb in there.items():
        assert here[name].__doc__ or name == "close"
        assert inspect.signature(here[name]).parameters == inspect.signature(verb).parameters


# -- errors -----------------------------------------------------------------------------------


async def test_problems_are_the_librarys_errors(client, server):
    await client.append("wrong", talk(4))
    with pytest.raises(known.UnknownConversation, match="nowhere"):
        await client.state("nowhere")
    with pytest.raises(known.NotFound):
        await client.entry("wrong", 99)
    with pytest.raises(known.ConflictError):
        await client.append("wrong", Message.user("late"), expected_seq=0)
    with pytest.raises(known.BudgetError) as small:
        await client.context("wrong", 10, system="A long instruction. " * 50)
    assert small.value.context["floor"] > small.value.context["available"]
    with pytest.raises(known.InputError, match="limit") as invalid:
        await client.recall("wrong", "x", limit=0)
    assert invalid.value.context["status"] == 422
    for given in (["text"], "text", 7):
        with pytest.raises(known.InputError, match="try Message"):
            await client.append("wrong", given)
    with pytest.raises(known.InputError, match="not JSON"):
        await client.append("wrong", {"role": "user", "content": "x", "n": float("nan")})
    with pytest.raises(known.InputError, match="idempotency_key"):
        await client.append("wrong", Message.user("x"), idempotency_key="a\nb")


async def test_a_key_says_whose_conversations_they_are():
    with running(auth="required") as server:
        async with Client(server.url) as nobody:
            with pytest.raises(known.Unauthorized):
                await nobody.me()
        reader, secret = key_for(server, "acme", "read"), key_for(server, "acme")
        async with Client(server.url, key=reader) as client:
            assert (await client.me()).tenant == "acme"
            with pytest.raises(known.Forbidden):
                await client.append("c", Message.user("x"))
            assert reader not in repr(client)
        async with Client(server.url, key=secret) as client:
            assert (await client.append("c", Message.user("x"))).seq == 0


ERRORS = [kind for kind in vars(known).values() if hasattr(kind, "retryable")]


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.__name__)
def test_every_error_survives_the_way(kind):
    problem = {"code": kind.__name__, "status": kind.status, "detail": "what it was"}
    back = error_of(problem, kind.status)
    assert (type(back), str(back)) == (kind, "what it was")


NOWHERE = ["localhost:8080", "ftp://x", "http://", "http://a:b@x", "http://x:99999", "http://[::1"]


async def test_the_address_of_the_api_that_the_server_prints_will_do(server):
    for ending in ("", "/", "/api/v1", "/api/v1/"):
        async with Client(f"{server.url}{ending}") as client:
            assert (await client.me()).scopes


@pytest.mark.parametrize("url", NOWHERE)
def test_an_invalid_address_is_rejected(url):
    with pytest.raises(known.InputError, match="url"):
        Client(url)


@pytest.mark.parametrize("key", ["", " ", "fl_a\nb", "fl_ä", "fl a"])
def test_an_invalid_key_is_rejected_and_not_repeated(key):
    with pytest.raises(known.InputError, match="key: expected") as refused:
        Client("http://localhost:8080", key=key)
    assert not key.strip() or key not in str(refused.value)


async def test_a_key_may_have_the_end_of_its_line():
    with running(auth="required") as server:
        async with Client(server.url, key=f"{key_for(server, 'acme')}\n") as client:
            assert (await client.me()).tenant == "acme"


async def test_an_import_that_is_rejected_says_why(client, tmp_path):
    (tmp_path / "odd.jsonl").write_text('{"firnline":1,"tenant":"default"}\n')
    with pytest.raises(known.InputError, match="the file"):
        await client.import_(tmp_path / "odd.jsonl")
    with pytest.raises(known.InputError, match="cannot be read"):
        await client.import_(tmp_path / "none.jsonl")
    with pytest.raises(known.InputError, match="cannot be read"):
        await client.import_(tmp_path)


# -- a server that fails ----------------------------------------------------------------------


class Faulty:
    """The real application; its next requests fail as is said."""

    def __init__(self, app):
        self.app, self.faults, self.asked = app, [], 0

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http" or not scope["path"].startswith("/api"):
            await self.app(scope, receive, send)
            return
        self.asked += 1
        fault = self.faults.pop(0) if self.faults else None
        if fault is None:
            await self.app(scope, receive, send)
        elif fault == "cut":
            await self._cut(scope, receive, send)
        else:
            status, headers = fault
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": b"<h1>busy</h1>"})

    async def _cut(self, scope, receive, send):
        """The request is done, but the answer is lost on the way."""
        sent = []

        async def keep(event):
            sent.append(event)

        await self.app(scope, receive, keep)
        body = b"".join(event.get("body", b"") for event in sent)
        headers = [(b"content-length", b"%d" % len(body))]
        start = {"type": "http.response.start", "status": sent[0]["status"], "headers": headers}
        await send(start)
        await send({"type": "http.response.body", "body": body[:10]})  # uvicorn cuts it off


@asynccontextmanager
async def faulty(*faults):
    app = Faulty(create_app(load(store="memory:", embedder="none", port=0)))
    async with served(app, lifespan="on") as http, Client(str(http.base_url)) as client:
        client.waits = []

        async def waited(seconds):
            client.waits.append(seconds)

        client._to._sleep = waited
        await client.append("c", talk(2))
        app.faults, app.asked = list(faults), 0
        yield app, client


@pytest.mark.parametrize("said", [b"{}", b"[]", b"null", b'"x"', b"<h1>hello</h1>"])
async def test_what_no_firnline_says_is_an_error_of_the_librarys(said):
    async def stranger(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": said})

    async with served(stranger) as http, Client(str(http.base_url)) as client:
        asked = [client.append("c", Message.user("x")), client.topics("c"), client.clear("c")]
        asked += [client.match_topic("c", "x"), client.interval("today"), every(client.read("c"))]
        for asking in asked:
            with pytest.raises(known.FirnlineError, match="the response"):
                await asking


async def test_an_append_whose_answer_is_lost_is_stored_once():
    async with faulty("cut", "cut") as (app, client):
        added = await client.append("c", Message.user("once"))
        assert (added.seq, added.replayed, app.asked) == (2, True, 3)
        assert len(await every(client.read("c"))) == 3


async def test_what_could_happen_twice_is_not_tried_again():
    async with faulty("cut") as (app, client):
        with pytest.raises(known.StoreTimeout):
            await client.erase("c")
        assert app.asked == 1
        assert await client.head("c") is None
    async with faulty((503, [])) as (app, client):
        with pytest.raises(known.StoreTimeout):
            await client.remember("c", {"user_preferences": {"a": "b"}})
        assert app.asked == 1


async def test_a_busy_server_is_asked_again_when_it_says():
    after = [(b"retry-after", b"3")]
    async with faulty((429, after), (503, after), "cut") as (app, client):
        assert len(await every(client.read("c"))) == 2
        assert app.asked == 4
        assert client.waits[:2] == [3.0, 3.0]
        assert len(client.waits) == 3
    async with faulty(*[(429, [])] * 9) as (app, client):
        with pytest.raises(known.TooFast):
            await client.erase("c")
        assert app.asked == 4
    async with faulty((429, [(b"retry-after", b"900")])) as (app, client):
        with pytest.raises(known.TooFast) as told:
            await client.me()
        assert (app.asked, told.value.context["retry_after"]) == (1, 900.0)


async def test_an_export_that_breaks_off_leaves_no_file(tmp_path):
    async with faulty("cut") as (_, client):
        with pytest.raises(known.StoreTimeout):
            await client.export(tmp_path / "x.jsonl")
        assert list(tmp_path.iterdir()) == []
        assert (await client.export(tmp_path / "x.jsonl")).entries == 2


async def test_a_stream_that_breaks_off_says_so_and_its_key_leads_to_the_answer():
    async with faulty("cut") as (_, client):
        with pytest.raises(known.StoreTimeout):
            await every(client.stream("c", "Which tide?", idempotency_key="q"))
        async with aclosing(client.stream("c", "Which tide?", idempotency_key="q")) as pieces:
            turn = [piece async for piece in pieces][-1]
        assert turn.question.seq == 2
        assert len(await every(client.read("c"))) == 4


async def test_a_server_that_is_not_there_is_unavailable():
    async with Client(f"http://127.0.0.1:{free_port()}", retries=0) as client:
        with pytest.raises(known.StoreUnavailable):
            await client.append("c", Message.user("x"))


@pytest.mark.parametrize(
    "spoil", [lambda lines: lines[:-1], lambda lines: [*lines[1:]], lambda _: []]
)
async def test_a_file_that_did_not_arrive_as_it_was_sent_is_none(client, tmp_path, spoil):
    await client.append("whole", talk(2))
    await client.export(tmp_path / "whole.jsonl", conversations=["whole"])
    lines = (tmp_path / "whole.jsonl").read_bytes().splitlines(keepends=True)

    async def pieces(given):
        for line in given:
            yield line

    assert (await save(pieces(lines), tmp_path / "copy.jsonl")).conversations == 1
    with pytest.raises(known.StoreTimeout):
        await save(pieces(spoil(lines)), tmp_path / "spoiled.jsonl")
    assert {path.name for path in tmp_path.iterdir()} == {"whole.jsonl", "copy.jsonl"}


def test_without_its_extra_it_says_what_to_install():
    code = "import sys; sys.modules['httpx2'] = None; import firnline.client"
    done = run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert 'the client needs an extra: pip install "firnline[client]"' in done.stderr
