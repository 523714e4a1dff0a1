"""Telegram end to end: a real server, a real webhook, a test Bot API, a model over HTTP."""

import asyncio
import json
import logging
import subprocess
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firnline.cli import main
from firnline.context.plan import ends_round
from firnline.errors import ConflictError, StoreUnavailable
from firnline.log.entry import Key
from firnline.log.message import Message, utc_now
from firnline.models import open_model
from firnline.protocols import Completion
from firnline.server import prompts
from firnline.server.limits import TELEGRAM_BODY_BYTES_MAX, TELEGRAM_FAILURES_MAX
from firnline.server.settings import load
from firnline.server.telegram.api import Api, TelegramError
from firnline.server.telegram.jobs import Claim, Place, is_ahead
from firnline.server.telegram.webhook import HEADER, _same
from firnline.store import open_store
from firnline.store.cards import TenantCards
from firnline.testing import ModelServer, TelegramServer, call_tool
from support.interleave import meanwhile
from support.live_server import running
from support.telegram_server import PATIENCE, SECRET, TOKEN, House, bot_at, until

CHAT = "telegram:7"

on_both = pytest.mark.parametrize("url", ["sqlite", "memory"], indirect=True)
on_all = pytest.mark.parametrize("url", ["sqlite", "memory", "postgres", "mongo"], indirect=True)


@pytest.fixture
def url(request, tmp_path):
    """SQLite where a test does not ask for more: this is not about stores."""
    kind = getattr(request, "param", "sqlite")
    if kind in ("postgres", "mongo"):
        return request.getfixturevalue(kind).url
    return f"sqlite:///{tmp_path}/house.db" if kind == "sqlite" else "memory:"


@pytest.fixture
async def telegram():
    async with TelegramServer(token=TOKEN, pause=0.1) as server:
        yield server


@pytest.fixture
async def server():
    async with ModelServer() as server:
        yield server


@pytest.fixture
async def model(server):
    model = open_model("test-model", url=server.url, api_key="k", retries=0)
    yield model
    await model.close()


@pytest.fixture
async def house(url, telegram, model):
    """A server whose worker runs."""
    house = House(open_store(url), [bot_at(telegram.url)], model=model)
    async with house.served():
        yield house


@pytest.fixture
async def quiet(url, telegram, model):
    """A server whose worker runs on request: `quiet.worker.once()`."""
    house = House(open_store(url), [bot_at(telegram.url)], model=model, replies=False)
    async with house.served():
        yield house


async def push(telegram, house, *updates, url=None, **options):
    """Deliver updates one after the other; the statuses of the last one."""
    statuses = []
    for update in updates:
        statuses = await asyncio.to_thread(
            telegram.push, update, url or house.url, SECRET, **options
        )
    return statuses


async def entries(house, conversation=CHAT, tenant="default"):
    return await (await house.memory(tenant)).read(conversation)


async def texts(house, conversation=CHAT):
    return [entry.message.text for entry in await entries(house, conversation)]


# -- end to end -------------------------------------------------------------------------------


async def test_a_private_chat_is_with_its_user_unless_the_application_says_otherwise(
    quiet, telegram
):
    memory = await quiet.memory()
    await push(telegram, quiet, telegram.said("I live in Oslo."))
    head = await memory.head(CHAT)
    assert head.person.startswith("telegram:")
    assert [one.value for one in await memory.facts(person=head.person)] == ["Oslo"]
    await memory.describe(CHAT, person="ana")
    await push(telegram, quiet, telegram.said("I'm vegan."))
    assert [one.value for one in await memory.facts(person="ana")] == ["Oslo", "vegan"]


@on_all
@pytest.mark.requirement("B10")
async def test_from_a_message_to_its_answer_with_a_tool_and_a_lean_context(house, telegram, server):
    memory = await house.memory()
    await memory.append(CHAT, {"role": "user", "content": "The door code is 4711."})
    for number in range(40):
        await memory.append(CHAT, {"role": "assistant", "content": f"Filler {number}."})
    server.say(call_tool("search_history", {"query": "door code"}), "It is 4711.")
    assert await push(telegram, house, telegram.said("What was the door code?")) == [200]
    await house.idle()
    assert telegram.texts(7) == ["It is 4711."]
    question, call, result, answer = (await entries(house))[41:]
    assert (question.message.text, question.message.name) == ("What was the door code?", "Ada")
    assert call.message.tool_calls[0].name == "search_history"
    assert "4711" in result.message.text
    assert answer.message.metadata["answers"] == [question.seq]
    first = server.requests[0]
    assert first["messages"][0]["role"] == "system"
    shown = [message["content"] for message in first["messages"]]
    recent = "\n\n".join(f"Filler {number}." for number in range(29, 40))
    assert shown[-1] == "What was the door code?"
    assert recent in shown, "the last 12 messages"
    assert "Filler 28." not in str(shown)
    offered = {tool["function"]["name"] for tool in first["tools"]}
    assert {"search_history", "get_messages_by_date", "get_extended_context"} <= offered
    assert [call.method for call in telegram.calls] == ["sendChatAction", "sendMessage"]
    kept = await prompts.read(memory, CHAT, answer.seq)
    assert (kept["via"], kept["question"]) == ("telegram", question.seq)
    assert [piece["seq"] for piece in kept["pieces"]][-2:] == [call.seq, result.seq]
    assert (await memory.verify(CHAT)).ok


@on_both
@pytest.mark.requirement("B10")
async def test_without_a_model_the_bot_quotes_what_it_holds(url, telegram):
    house = House(open_store(url), [bot_at(telegram.url)])
    async with house.served():
        await push(telegram, house, telegram.said("The boiler is serviced in March."))
        await house.idle()
        await push(telegram, house, telegram.said("When is the boiler serviced?"))
        await house.idle()
        assert "The boiler is serviced in March." in telegram.texts(7)[-1]
        assert "no language model" in telegram.texts(7)[-1]


async def test_commands_have_fixed_answers_and_ask_no_model(house, telegram, server):
    await push(telegram, house, telegram.said("/start from-a-link"), telegram.said("/help"))
    await house.idle()
    bot = bot_at(telegram.url)
    assert telegram.texts(7) == [bot.greeting, bot.help]
    assert server.requests == []
    await push(telegram, house, telegram.said("/forget everything"))
    await house.idle()
    assert len(server.requests) == 1, "other commands are for the model"
    assert len(await entries(house)) == 6, "nothing is destroyed"


async def test_long_answers_come_in_parts_in_order(house, telegram, server):
    text = "\n\n".join(f"Paragraph {number}. {'😀' * 300}" for number in range(30))
    server.say(text)
    await push(telegram, house, telegram.said("Tell me everything."))
    await house.idle()
    parts = telegram.texts(7)
    assert len(parts) == 5
    assert "\n\n".join(parts) == text
    assert (await entries(house))[-1].message.text == text


# -- once, however often it is delivered ------------------------------------------------------


@pytest.mark.promise("idempotent")
@on_both
@pytest.mark.requirement("B10")
async def test_an_update_that_comes_five_times_at_once_is_stored_and_answered_once(house, telegram):
    update = telegram.said("Hello?")
    await asyncio.gather(*(push(telegram, house, update) for _ in range(5)))
    await house.idle()
    for _ in range(5):
        assert await push(telegram, house, update) == [200]
    await house.idle()
    assert len(await entries(house)) == 2
    assert len(telegram.texts(7)) == 1
    assert sorted(house.outcomes()) == ["repeated"] * 9 + ["stored"]


@pytest.mark.promise("idempotent")
async def test_an_update_that_comes_again_after_a_restart_is_known(tmp_path, telegram, model):
    update = telegram.said("Hello?")
    for _ in range(3):
        store = open_store(f"sqlite:///{tmp_path}/house.db")
        house = House(store, [bot_at(telegram.url)], model=model)
        async with house.served():
            await push(telegram, house, update, update)
            await house.idle()
            assert len(await entries(house)) == 2
    assert len(telegram.texts(7)) == 1


async def test_messages_that_come_quickly_are_answered_together_by_the_newest(quiet, telegram):
    updates = [telegram.said(f"Part {number}") for number in range(3)]
    await push(telegram, quiet, *updates)
    assert await quiet.worker.once() == 1
    *_, answer = await entries(quiet)
    assert answer.message.metadata["answers"] == [0, 1, 2]
    assert len(telegram.texts(7)) == 1
    assert await quiet.left() == 0


async def test_messages_during_a_model_call_are_answered(quiet, telegram, server):
    first, second = telegram.said("What is"), telegram.said("the capital of France?")
    said = []

    def answer(request):
        if not said:
            telegram.push(second, quiet.url, SECRET)
        said.append(request["messages"])
        return "Paris." if "France" in str(said[-1]) else "What?"

    server.answer = answer
    await push(telegram, quiet, first)
    await quiet.worker.once()
    assert len(said) == 2
    assert await texts(quiet) == ["What is", "the capital of France?", "Paris."]
    assert telegram.texts(7) == ["Paris."]


async def test_a_user_who_never_stops_writing_gets_an_answer(quiet, telegram, server):
    def answer(request):
        telegram.push(telegram.said("and"), quiet.url, SECRET)
        return "Let me answer."

    server.answer = answer
    await push(telegram, quiet, telegram.said("and"))
    working = asyncio.create_task(quiet.worker.once())
    await until(lambda: telegram.texts(7))
    server.answer = None
    await working
    assert await quiet.left() == 0
    said = [entry for entry in await entries(quiet) if entry.message.role == "user"]
    answered = [
        seq for entry in await entries(quiet) for seq in entry.message.metadata.get("answers", ())
    ]
    assert sorted(answered) == [entry.seq for entry in said]


async def test_a_command_among_messages_does_not_swallow_their_answer(quiet, telegram, server):
    server.say("Two.", "Yes.")
    said = ["1 + 1?", "/help", "Really?"]
    await push(telegram, quiet, *map(telegram.said, said))
    await quiet.worker.once()
    assert telegram.texts(7) == ["Two.", bot_at(telegram.url).help, "Yes."]


# -- who may deliver --------------------------------------------------------------------------


async def post(url, content, headers):
    async with httpx2.AsyncClient(timeout=60) as client:
        return await client.post(url, content=content, headers=headers)


@on_both
@pytest.mark.requirement("B10")
async def test_forged_updates_are_rejected_without_a_reason(house, telegram):
    body = json.dumps(telegram.said("I am Telegram, trust me")).encode()
    unknown = house.url.replace("house", "mouse")
    wrong = [SECRET[:-1], f"{SECRET}x", SECRET.upper(), "", "é" * 20, "no bot has this secret"]
    tries = [(house.url, [])]
    tries += [(house.url, [(HEADER, secret.encode())]) for secret in wrong]
    tries += [(house.url, [(HEADER, SECRET), (HEADER, SECRET)])]
    tries += [(unknown, [(HEADER, SECRET)]), (unknown, [])]
    tries += [(unknown, [(HEADER, "no bot has this secret: it has spaces")])]
    answers = [await post(url, body, headers) for url, headers in tries]
    assert {answer.status_code for answer in answers} == {401}
    assert {answer.content for answer in answers} == {b""}
    assert await entries(house) == []
    assert telegram.calls == []


@given(st.lists(st.sampled_from([SECRET, SECRET[:-1], "", "x"]) | st.text(max_size=30), max_size=3))
def test_only_the_exact_secret_is_accepted_and_only_once(sent):
    assert _same(sent, bot_at("http://x").secret) == (sent == [SECRET])


async def test_the_secret_is_checked_before_the_body_is_read(house):
    """The body never ends, and the answer comes all the same."""
    host, port = house.url.split("/")[2].split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    path = house.url.split(f":{port}")[1]
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n{{"
    try:
        writer.write(head.encode())
        async with asyncio.timeout(PATIENCE):
            assert b" 401 " in await reader.readline()
    finally:
        writer.close()
        await writer.wait_closed()


async def test_what_is_not_an_update_is_not_repeated_for_ever_but_counted(house, telegram):
    headers = {HEADER: SECRET}
    assert (await post(house.url, b"{no json", headers)).status_code == 400
    assert (await post(house.url, b"[" * 100_000, headers)).status_code == 400
    assert (await post(house.url, b'{"update_id": NaN}', headers)).status_code == 400
    assert (await post(house.url, b" " * (TELEGRAM_BODY_BYTES_MAX + 1), headers)).status_code == 413
    query = {"update_id": 1, "callback_query": {"data": "x"}}
    for unhandled in (query, {}, [], "x", {"update_id": 2}):
        content = json.dumps(unhandled).encode()
        assert (await post(house.url, content, headers)).status_code == 200
    assert house.outcomes() == ["malformed"] * 3 + ["unhandled"] * 5


async def test_an_update_that_cannot_be_stored_is_put_aside(house, telegram):
    update = {"update_id": 77, "message": {"message_id": 1, "date": 1, "text": "where am I?"}}
    assert await push(telegram, house, update) == [200]
    assert house.outcomes() == ["refused"]
    (card,) = await house.tenants.store.cards("telegram-refused", tenant="default")
    assert json.loads(card.body) == update


async def test_an_update_is_not_acknowledged_while_the_store_fails(house, telegram, monkeypatch):
    update = telegram.said("Keep this.")
    store = house.tenants.store
    append, fails = store.append, [True, True]

    async def unsteady(*args, **options):
        if fails:
            fails.pop()
            raise StoreUnavailable
        return await append(*args, **options)

    monkeypatch.setattr(store, "append", unsteady)
    assert await push(telegram, house, update) == [503, 503, 200]
    assert (await texts(house))[0] == "Keep this."


async def test_in_other_chats_the_bot_stores_and_sends_nothing(url, telegram, server, model):
    house = House(open_store(url), [bot_at(telegram.url, chats=[7, -50])], model=model)
    async with house.served():
        told = telegram.said("Who are you?", chat_id=8)
        assert await push(telegram, house, told, telegram.edited(told, "Well?")) == [200]
        assert await push(telegram, house, telegram.said("Hello.", chat_id=7)) == [200]
        group = {"id": -50, "type": "supergroup", "is_forum": True}
        topic = {"message_thread_id": 3, "is_topic_message": True}
        await push(telegram, house, telegram.said("/help", chat_id=-50, chat=group, **topic))
        await house.idle()
        assert house.outcomes() == ["stranger", "stranger", "stored", "stored"]
        heads = await (await house.memory()).conversations()
        assert {head.conversation for head in heads} == {"telegram:7", "telegram:-50:3"}
    assert {message["chat"]["id"] for message in telegram.sent} == {7, -50}


async def test_a_group_of_the_bots_that_gets_a_new_number_is_still_the_bots(url, telegram, model):
    house = House(open_store(url), [bot_at(telegram.url, chats=[-50])], model=model)
    async with house.served():
        now = {"id": -1001, "type": "supergroup"}
        moved = telegram.said(chat_id=-1001, chat=now, migrate_from_chat_id=-50)
        later = telegram.said("/help", chat_id=-1001, chat=now)
        await push(telegram, house, telegram.said("Hello, all.", chat_id=-50), moved, later)
        await house.idle()
        assert house.outcomes() == ["stored"] * 3


# -- edits, groups, topics --------------------------------------------------------------------


@on_both
@pytest.mark.requirement("B10")
async def test_an_edit_is_a_new_version_and_gets_no_second_answer(house, telegram, server):
    first = telegram.said("Meet at five")
    await push(telegram, house, first)
    await house.idle()
    edits = [telegram.edited(first, f"Meet at {hour}") for hour in ("six", "seven")]
    await push(telegram, house, *edits, *edits)
    await house.idle()
    question, _, six, seven = [entry.message for entry in await entries(house)]
    assert (question.text, six.text) == ("Meet at five", "[edited] Meet at six")
    number = first["message"]["message_id"]
    assert [(m.metadata["edits"], m.metadata["version"]) for m in (six, seven)] == [
        (number, 2),
        (number, 3),
    ]
    assert len(server.requests) == 1
    assert len(telegram.texts(7)) == 1


async def test_concurrent_edits_have_separate_versions(quiet, telegram):
    first = telegram.said("v1")
    await push(telegram, quiet, first)
    edits = [telegram.edited(first, f"v{number}") for number in range(2, 10)]
    await asyncio.gather(*(push(telegram, quiet, edit) for edit in edits * 2))
    versions = [entry.message.metadata.get("version") for entry in await entries(quiet)]
    assert versions == [None, *range(2, 10)]


async def test_private_chats_groups_and_topics_are_separate_conversations(house, telegram):
    to_bot = {"reply_to_message": {"message_id": 1, "from": {"id": 42}}}
    topic = {"message_thread_id": 9, "is_topic_message": True}
    await push(
        telegram,
        house,
        telegram.said("private secret"),
        telegram.said("in the group", chat_id=-1005, **to_bot),
        telegram.said("in the topic", chat_id=-1005, **to_bot, **topic),
    )
    await house.idle()
    memory = await house.memory()
    names = [head.conversation for head in await memory.conversations()]
    assert names == ["telegram:-1005", "telegram:-1005:9", "telegram:7"]
    for name in names:
        assert len(await entries(house, name)) == 2
    where = {
        message["text"].split()[-1]: (message["chat"]["id"], message.get("message_thread_id"))
        for message in telegram.sent
    }
    assert where == {"secret": (7, None), "group": (-1005, None), "topic": (-1005, 9)}


async def test_private_messages_never_appear_in_a_group(house, telegram, server):
    await push(telegram, house, telegram.said("My canary is called Zarathustra."))
    await house.idle()
    server.say(call_tool("search_history", {"query": "canary Zarathustra"}), "I do not know.")
    to_bot = {"reply_to_message": {"message_id": 1, "from": {"id": 42}}}
    await push(telegram, house, telegram.said("my canary?", chat_id=-5, **to_bot))
    await house.idle()
    assert len(server.requests) == 3
    assert "Zarathustra." not in str(server.requests[1:])


async def test_in_a_group_all_is_stored_and_only_what_is_for_the_bot_is_answered(
    house, telegram, server
):
    def mention(name, text):
        entity = {"type": "mention", "offset": 0, "length": len(name)}
        return telegram.said(f"{name} {text}", chat_id=-5, entities=[entity])

    ours = mention("@Firnline_Bot", "what do you think?")
    await push(
        telegram,
        house,
        telegram.said("just between us", chat_id=-5),
        mention("@somebody", "and you?"),
        ours,
        telegram.said("/help@other_bot", chat_id=-5),
    )
    await house.idle()
    (answer,) = telegram.sent
    assert answer["reply_parameters"]["message_id"] == ours["message"]["message_id"]
    assert len(server.requests) == 1
    stored = await entries(house, "telegram:-5")
    assert [e.message.role for e in stored].count("user") == 4
    (only,) = [e for e in stored if ends_round(e.message)]
    assert only.message.metadata["answers"] == [2]


async def test_a_group_that_gets_a_new_number_keeps_its_conversation(house, telegram):
    to_bot = {"reply_to_message": {"message_id": 1, "from": {"id": 42}}}
    before = telegram.said("before", chat_id=-5, **to_bot)
    await push(telegram, house, before)
    await house.idle()
    telegram.moved[-5] = -1005
    await push(telegram, house, telegram.said("to the old number", chat_id=-5, **to_bot))
    await house.idle()
    await push(
        telegram,
        house,
        telegram.said(chat_id=-5, migrate_to_chat_id=-1005),
        telegram.said(chat_id=-1005, migrate_from_chat_id=-5),
        telegram.said("after", chat_id=-1005, **to_bot),
        before,
    )
    await house.idle()
    memory = await house.memory()
    assert [head.conversation for head in await memory.conversations()] == ["telegram:-5"]
    assert [m["chat"]["id"] for m in telegram.sent] == [-5, -1005, -1005]


async def test_bots_of_two_tenants_are_apart(url, telegram, model):
    async with TelegramServer(token="43:the-other-token") as second:
        bots = [
            bot_at(telegram.url, tenant="one"),
            bot_at(second.url, tenant="two", name="mouse", token=second.token),
        ]
        house = House(open_store(url), bots, model=model)
        async with house.served():
            await push(telegram, house, telegram.said("for one"))
            await push(
                second, house, second.said("for two"), url=house.url.replace("house", "mouse")
            )
            await house.idle()
            for name, double, text in (("one", telegram, "for one"), ("two", second, "for two")):
                stored = [e.message.text for e in await entries(house, CHAT, name)]
                assert stored[0] == text
                assert len(stored) == 2
                assert double.texts(7) == [stored[1]]


# -- when something fails ---------------------------------------------------------------------


async def test_telegram_says_when_to_come_again(quiet, telegram):
    telegram.retry_after = 3_600
    telegram.fail("429")
    await push(telegram, quiet, telegram.said("Hello?"))
    assert await quiet.worker.once() == 0
    assert await quiet.worker.once() == 0, "not before the hour is over"
    assert [call.method for call in telegram.calls].count("sendMessage") == 1
    (job,) = await quiet.tenants.store.cards("telegram", tenant="default")
    body = json.loads(job.body)
    assert 3_599 < body["due"] - body["queued"] < 3_700
    assert len(await entries(quiet)) == 2, "the answer is stored"


@pytest.mark.parametrize("fault", ["429", "500", "401", "timeout", "not_json", "cut", "lost"])
async def test_what_passes_is_tried_again_and_the_model_is_asked_once(
    house, telegram, server, fault
):
    telegram.retry_after = 0
    telegram.fail(fault, fault)
    await push(telegram, house, telegram.said("Hello?"))
    await house.idle()
    done = fault in ("not_json", "cut", "lost")  # the message was sent, but the answer was lost
    assert len(telegram.texts(7)) == (3 if done else 1)
    assert len(set(telegram.texts(7))) == 1
    assert len(server.requests) == 1
    assert len(await entries(house)) == 2


async def test_a_retry_continues_with_the_part_that_was_not_sent(house, telegram, server):
    server.say("\n".join(str(number) * 3_000 for number in range(5)))
    telegram.fail(None, None, "500", None, "429")
    telegram.retry_after = 0
    await push(telegram, house, telegram.said("Count."))
    await house.idle()
    assert [text[0] for text in telegram.texts(7)] == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize("fault", ["403", "400"])
async def test_a_chat_that_does_not_want_the_bot_ends_the_job_and_the_reason_is_kept(
    house, telegram, fault
):
    telegram.fail(fault)
    update = telegram.said("Goodbye.")
    await push(telegram, house, update)
    await house.idle()
    await push(telegram, house, update)
    await house.idle()
    assert telegram.texts(7) == []
    assert [call.method for call in telegram.calls].count("sendMessage") == 1
    (card,) = await house.tenants.store.cards("telegram-sent", tenant="default")
    assert fault in json.loads(card.body)["error"]
    assert house.outcomes("telegram_answer") == ["failed"]
    await push(telegram, house, telegram.said("I am back."))
    await house.idle()
    assert len(telegram.texts(7)) == 1


async def test_a_model_that_fails_for_a_while_is_asked_again(house, telegram, server):
    server.fail("500", "invalid_body", "empty")
    server.say("unused", "Here I am.")
    await push(telegram, house, telegram.said("Hello?"))
    await house.idle()
    assert telegram.texts(7) == ["Here I am."]
    assert len(await entries(house)) == 2


async def test_an_empty_answer_is_none(url, telegram):
    said = ["", " \n", "At last."]

    class Shy:
        name = "shy"

        async def complete(self, messages, **_):
            return Completion(message=Message.assistant(said.pop(0)))

    house = House(open_store(url), [bot_at(telegram.url)], model=Shy())
    async with house.served():
        await push(telegram, house, telegram.said("Hello?"))
        await house.idle()
        assert await texts(house) == ["Hello?", "At last."]
        assert telegram.texts(7) == ["At last."]


async def test_a_model_that_keeps_failing_leads_to_an_apology_and_no_more_calls(
    house, telegram, server
):
    server.fail("500", repeat=True)
    await push(telegram, house, telegram.said("Hello?"))
    await house.idle()
    assert telegram.texts(7) == [bot_at(telegram.url).apology]
    assert len(server.requests) == TELEGRAM_FAILURES_MAX
    assert (await entries(house))[-1].message.metadata["degraded"] is True
    server.heal()
    server.say("Now I can.")
    await push(telegram, house, telegram.said("And now?"))
    await house.idle()
    assert telegram.texts(7)[-1] == "Now I can."


async def test_an_apology_in_a_group_where_others_are_mentioned_first(house, telegram, server):
    server.fail("500", repeat=True)
    entity = {"type": "mention", "offset": 0, "length": 9}
    to_bot = {"reply_to_message": {"message_id": 1, "from": {"id": 42}}}
    telegram.fail("500", method="getMe")
    await push(
        telegram,
        house,
        telegram.said("@somebody hi", chat_id=-5, entities=[entity]),
        telegram.said("and you?", chat_id=-5, **to_bot),
    )
    await house.idle()
    assert telegram.texts(-5) == [bot_at(telegram.url).apology]
    assert (await entries(house, "telegram:-5"))[-1].message.metadata["answers"] == [1]


async def test_a_model_that_never_answers_is_given_up(url, telegram):
    async def silent(messages, tools=()):
        await asyncio.Event().wait()

    house = House(open_store(url), [bot_at(telegram.url)], model=silent, answer_seconds=0.02)
    async with house.served():
        await push(telegram, house, telegram.said("Hello?"))
        await house.idle()
        assert telegram.texts(7) == [bot_at(telegram.url).apology]


async def test_telegrams_faults_are_no_reason_to_apologize(house, telegram):
    telegram.fail(*["500"] * 20, method="getMe")
    entity = {"type": "mention", "offset": 0, "length": 13}
    await push(telegram, house, telegram.said("@firnline_bot hi", chat_id=-5, entities=[entity]))
    await house.idle()
    assert telegram.texts(-5) == ["You said: @firnline_bot hi"]


async def test_an_answer_that_cannot_be_sent_for_a_day_is_given_up(quiet, telegram):
    telegram.fail("500", repeat=True)
    await push(telegram, quiet, telegram.said("Hello?"))
    await quiet.worker.once()
    store = quiet.tenants.store
    (card,) = await store.cards("telegram", tenant="default")
    body = json.loads(card.body)
    old = json.dumps({**body, "queued": body["queued"] - 90_000, "due": 0}).encode()
    await store.put_cards([replace(card, body=old)])
    await quiet.worker.once()
    assert await quiet.left() == 0
    (sent,) = await store.cards("telegram-sent", tenant="default")
    assert "500" in json.loads(sent.body)["error"]


async def test_one_chat_that_is_slow_keeps_no_other_waiting(house, telegram, server):
    go_on = asyncio.Event()
    loop = asyncio.get_running_loop()

    def answer(request):
        if "slow" in str(request["messages"][-1]):
            asyncio.run_coroutine_threadsafe(go_on.wait(), loop).result()
        return "Done."

    server.answer = answer
    await push(telegram, house, telegram.said("slow", chat_id=1))
    await until(lambda: server.requests)
    await push(telegram, house, telegram.said("quick", chat_id=2))
    await until(lambda: telegram.texts(2))
    assert telegram.texts(1) == []
    go_on.set()
    await house.idle()
    assert telegram.texts(1) == ["Done."]


@on_both
async def test_an_erased_chat_stays_erased(quiet, telegram, server):
    memory = await quiet.memory()
    loop = asyncio.get_running_loop()

    def answer(request):
        asyncio.run_coroutine_threadsafe(memory.erase(CHAT), loop).result()
        return "What was the question?"

    server.answer = answer
    await push(telegram, quiet, telegram.said("Forget me."))
    await quiet.worker.once()
    assert await memory.head(CHAT) is None
    assert telegram.texts(7) == []
    for kind in ("telegram", "telegram-claim", "telegram-sent", "telegram-edit"):
        assert await quiet.tenants.store.cards(kind, tenant="default") == []


async def test_an_answer_is_never_appended_after_an_erasure(quiet, telegram, server):
    memory = await quiet.memory()
    loop = asyncio.get_running_loop()
    asked = []

    def answer(request):
        asked.append(request["messages"][-1]["content"])
        if len(asked) == 1:
            asyncio.run_coroutine_threadsafe(memory.erase(CHAT), loop).result()
            telegram.push(telegram.said("Hello again."), quiet.url, SECRET)
        return f"To {asked[-1]}"

    server.answer = answer
    await push(telegram, quiet, telegram.said("A secret."))
    await quiet.worker.once()
    await quiet.worker.once()
    assert await texts(quiet) == ["Hello again.", "To Hello again."]
    assert telegram.texts(7) == ["To Hello again."]


async def test_a_conversation_that_is_erased_at_the_last_moment_stays_erased(
    quiet, telegram, server, monkeypatch
):
    memory = await quiet.memory()
    head = memory.head

    async def erased_behind_it(conversation):
        found = await head(conversation)
        if server.requests:
            await memory.erase(conversation)
        return found

    await push(telegram, quiet, telegram.said("Forget me."))
    with monkeypatch.context() as patched:
        patched.setattr(memory, "head", erased_behind_it)
        patched.setattr("firnline.server.telegram.answer.questions_of", still_there)
        await quiet.worker.once()
    assert server.requests
    assert await memory.head(CHAT) is None


@on_both
async def test_a_chat_that_is_erased_when_its_answer_is_planned_stays_erased(quiet, telegram):
    memory = await quiet.memory()
    await push(telegram, quiet, telegram.said("Forget me."))
    with meanwhile(quiet.tenants.store, "describe", lambda: memory.erase(CHAT)):
        await quiet.worker.once()
    assert await memory.head(CHAT) is None


async def still_there(memory, jobs):
    class Anything:
        def __eq__(self, other):
            return True

        __hash__ = None

    return Anything()


# -- who answers ------------------------------------------------------------------------------


@on_both
async def test_of_many_workers_one_answers(url, telegram, server):
    store = open_store(url)
    bots = [bot_at(telegram.url)]
    models = [open_model("test-model", url=server.url, api_key="k", retries=0) for _ in range(4)]
    house = House(store, bots, model=models[0], replies=False)
    others = [House(store, bots, model=model, replies=False).worker for model in models[1:]]
    async with house.served():
        for round_ in range(5):
            chats = range(1, 6)
            await asyncio.gather(
                *(push(telegram, house, telegram.said(f"{round_}", chat_id=chat)) for chat in chats)
            )
            workers = [house.worker, *others]
            while await house.left():
                await asyncio.gather(*(worker.once() for worker in workers))
        for worker in others:
            await worker.close()
        for chat in chats:
            assert telegram.texts(chat) == [f"You said: {round_}" for round_ in range(5)]
        assert len(server.requests) == 25
    for model in models:
        await model.close()


@on_both
async def test_even_without_claims_one_answer_is_stored(url, telegram, monkeypatch):
    """A worker that was away for too long does not know that another one took over."""
    monkeypatch.setattr(Claim, "take", take_always)
    store, asked = open_store(url), asyncio.Barrier(3)

    def model(name):
        async def answers(messages, tools=()):
            await asked.wait()
            return f"I am {name}."

        return answers

    houses = [
        House(store, [bot_at(telegram.url)], model=model(name), replies=False) for name in "abc"
    ]
    async with houses[0].served():
        await push(telegram, houses[0], telegram.said("Who are you?"))
        await asyncio.gather(*(house.worker.once() for house in houses))
        (_, answer) = await entries(houses[0])
        assert set(telegram.texts(7)) == {answer.message.text}, "nobody sends another one"
        assert await houses[0].left() == 0
        for house in houses[1:]:
            await house.worker.close()


async def take_always(store, place, *, seconds, clock):
    claim = Claim(store, clock, seconds, place, 1)
    await claim._write(seconds)
    return claim


@on_both
async def test_a_claim_is_one_holders_until_it_runs_out(url):
    now = [1_000.0]
    store = open_store(url, clock=lambda: datetime_at(now[0]))
    place, cards = Place("default", 42, "c"), TenantCards(store, "default")

    async def take(seconds=10.0):
        return await Claim.take(cards, place, seconds=seconds, clock=lambda: datetime_at(now[0]))

    await store.open()
    await store.describe(Key("default", "c"))
    first = await take()
    assert await take() is None
    now[0] += 5
    await first.renew()
    now[0] += 9
    assert await take() is None, "it was renewed"
    now[0] += 2
    takers = await asyncio.gather(*(take() for _ in range(20)))
    (second,) = [claim for claim in takers if claim]
    with pytest.raises(ConflictError):
        await first.renew()
    await first.release()
    assert await take() is None, "whoever lost it cannot give it away"
    await second.renew()
    await second.release()
    assert not second.held
    third = await take()
    assert third.held
    assert len(await store.cards("telegram-claim", tenant="default")) == 1
    await store.close()


@on_both
async def test_a_claim_of_a_wrong_clock_is_not_honored(url):
    now = [1_000.0 + 365 * 86_400]
    store, place = open_store(url), Place("default", 42, "c")
    cards = TenantCards(store, "default")

    async def take():
        return await Claim.take(cards, place, seconds=10.0, clock=lambda: datetime_at(now[0]))

    await store.open()
    await store.describe(Key("default", "c"))
    wrong = await take()
    now[0] = 1_000.0
    right = await take()
    assert right.held
    with pytest.raises(ConflictError):
        await wrong.renew()
    assert await take() is None
    await store.close()


def test_a_job_is_postponed_for_a_bounded_time():
    for ahead, postponed in ((-1, False), (0, False), (1, True), (3_600, True), (3_601, False)):
        assert is_ahead(1_000 + ahead, lambda: datetime_at(1_000), 3_600) is postponed


@on_both
async def test_a_claim_is_not_used_twice(url):
    store, place = open_store(url), Place("default", 42, "c")
    cards = TenantCards(store, "default")

    async def take():
        return await Claim.take(cards, place, seconds=60.0, clock=utc_now)

    async def others():
        await (await take()).release()
        taken.append(await take())

    taken = []
    await store.open()
    await store.describe(Key("default", "c"))
    with meanwhile(store, "put_cards", others):
        assert await take() is None
    await taken[0].renew()
    assert await take() is None
    await store.close()


def datetime_at(seconds):
    return datetime.fromtimestamp(seconds, UTC)


async def test_a_worker_that_lost_its_claim_sends_nothing_more(
    quiet, telegram, server, monkeypatch
):
    """Another one took over while this one was away: it stops before the next part."""
    server.say("\n".join(str(number) * 3_000 for number in range(4)))
    await push(telegram, quiet, telegram.said("Count."))
    part, sent = quiet.worker._part, []

    async def counted(*args, **options):
        sent.append(await part(*args, **options))
        return sent[-1]

    monkeypatch.setattr(quiet.worker, "_part", counted)
    with monkeypatch.context() as patched:
        patched.setattr(Claim, "held", property(lambda _: len(sent) < 2))
        assert await quiet.worker.once() == 0
    assert [text[0] for text in telegram.texts(7)] == ["0", "1"]
    assert await quiet.worker.once() == 1
    assert [text[0] for text in telegram.texts(7)] == ["0", "1", "2", "3"]


# -- secrets ----------------------------------------------------------------------------------


async def test_tokens_and_secrets_and_messages_are_in_no_log(house, telegram, server, caplog):
    caplog.set_level(logging.DEBUG)
    telegram.fail("500", "403")
    server.fail("500")
    await push(telegram, house, telegram.said("a canary called Zarathustra"))
    await house.idle()
    await push(telegram, house, {"update_id": 5, "message": {"text": "Zarathustra"}})
    await post(house.url, b"{Zarathustra", {HEADER: SECRET})
    await post(house.url, b"{}", {HEADER: "Zarathustra"})
    assert "HTTP Request: POST" in caplog.text, "the client tells every address"
    assert "/bot42:***/sendMessage" in caplog.text
    for hidden in (TOKEN, TOKEN.partition(":")[2], SECRET, "Zarathustra"):
        assert hidden not in caplog.text
    for card in [
        card
        for kind in ("telegram", "telegram-sent", "telegram-claim")
        for card in await house.tenants.store.cards(kind)
    ]:
        assert b"Zarathustra" not in card.body
        assert TOKEN.encode() not in card.body


async def test_errors_do_not_show_the_token(telegram):
    bot = bot_at(telegram.url, token="42:canary-token")
    api = Api(bot.token, url=bot.api_url, seconds=PATIENCE)
    with pytest.raises(TelegramError) as refused:
        await api.call("getMe")
    assert refused.value.context["code"] == 401
    await api.close()
    api = Api(bot.token, url="http://127.0.0.1:9", seconds=PATIENCE)
    with pytest.raises(TelegramError) as unreachable:
        await api.call("getMe")
    await api.close()
    for error in (refused.value, unreachable.value):
        assert "canary" not in f"{error} {error.context} {error!r} {error.__cause__!r}"


async def test_a_call_that_hangs_ends(telegram):
    telegram.pause = 60
    telegram.fail("timeout", method="getMe")
    bot = bot_at(telegram.url)
    api = Api(bot.token, url=bot.api_url, seconds=0.2)
    with pytest.raises(TelegramError, match="cannot be reached"):
        await api.call("getMe")
    await api.close()


# -- in the server, and by hand ---------------------------------------------------------------


def settings_for(telegram, server, **more):
    bot = {"token": TOKEN, "secret": SECRET, "api_url": telegram.url}
    known = {"telegram": {"house": bot}, "model": "test-model", "model_url": server.url}
    return {**known, **more}


@pytest.mark.requirement("B10")
async def test_the_server_has_it_all(tmp_path, telegram, server):
    def chat():
        chosen = settings_for(telegram, server, store=f"sqlite:///{tmp_path}/house.db")
        with running(**chosen) as whole:
            url = f"{whole.url}/telegram/house/webhook"
            assert telegram.push(telegram.said("Hello?"), url, SECRET) == [200]
            assert telegram.push(telegram.said("Hello?"), url, "wrong", tries=1) == [401]
            eventually(lambda: telegram.texts(7))
            entries = httpx2.get(
                f"{whole.url}/api/v1/conversations/telegram:7/messages", timeout=60
            ).json()
            metrics = httpx2.get(f"{whole.url}/metrics", timeout=60).text
        return entries["data"], metrics

    data, metrics = await asyncio.to_thread(chat)
    assert [entry["message"]["content"] for entry in data] == ["Hello?", "You said: Hello?"]
    assert 'firnline_telegram_updates_total{outcome="stored"} 1.0' in metrics
    assert telegram.texts(7) == ["You said: Hello?"]


def eventually(condition):
    ends = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < ends, "it does not happen"
        time.sleep(0.01)


@pytest.fixture
def config(tmp_path, telegram, server, monkeypatch):
    """A file of settings, in the working folder."""
    lines = [
        f'store = "sqlite:///{tmp_path}/house.db"',
        f'model = "test-model"\nmodel_url = "{server.url}"\nembedder = "none"',
        f'[telegram.house]\ntoken = "{TOKEN}"\nsecret = "{SECRET}"\napi_url = "{telegram.url}"',
    ]
    (tmp_path / "firnline.toml").write_text("\n".join(lines))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "firnline.toml"


async def command(*arguments):
    """A command runs its own event loop, so it gets a separate thread."""
    return await asyncio.to_thread(main, ["telegram", *arguments])


async def test_set_webhook_and_info_by_hand(config, telegram, capsys):
    assert await command("info") == 0
    assert "not set" in capsys.readouterr().out
    assert await command("set-webhook", "--url", "http://chat.example.org/") == 0
    address = "http://chat.example.org/telegram/house/webhook"
    assert address in capsys.readouterr().out
    given = telegram.calls[-1].parameters
    assert given["url"] == address
    assert given["secret_token"] == SECRET
    assert given["allowed_updates"] == ["message", "edited_message"]
    telegram.webhook |= {"last_error_message": "Connection refused", "last_error_date": 86_400}
    assert await command("info", "--json") == 0
    assert json.loads(capsys.readouterr().out)["url"] == address
    assert await command("info", "--bot", "house") == 0
    assert "1970-01-02 00:00: Connection refused" in capsys.readouterr().out


async def test_wrong_commands_are_explained_and_no_token_is_shown(config, telegram, capsys):
    assert await command("info", "--bot", "mouse") == 2
    assert "configured bots: house" in capsys.readouterr().err
    assert await command("set-webhook", "--url", "chat.example.org") == 2
    assert "https://" in capsys.readouterr().err
    text = config.read_text()
    config.write_text(text.replace(TOKEN, "42:another-token"))
    assert await command("info") == 2
    told = capsys.readouterr().err
    assert "401" in told
    assert "another-token" not in told
    config.write_text(text.replace(SECRET, "too short"))
    assert await command("info") == 2
    told = capsys.readouterr().err
    assert "TELEGRAM__HOUSE__SECRET" in told
    assert "too short" not in told
    config.write_text(text.replace(telegram.url, "https://api.telegram.org"))
    assert await command("set-webhook", "--url", "http://chat.example.org") == 2


async def test_answers_can_be_given_by_a_process_apart(config, telegram, server):
    def chat():
        chosen = settings_for(telegram, server, worker=False, store=load(str(config)).store)
        with running(**chosen) as whole:
            url = f"{whole.url}/telegram/house/webhook"
            assert telegram.push(telegram.said("Hello?"), url, SECRET) == [200]
            answer = [sys.executable, "-m", "firnline", "telegram", "answer"]
            once = subprocess.run([*answer, "--once"], capture_output=True, text=True, check=True)
            assert once.stdout == "1 answer\n"
            assert telegram.push(telegram.said("And now?"), url, SECRET) == [200]
            with subprocess.Popen(answer) as process:
                eventually(lambda: len(telegram.texts(7)) > 1)
                process.terminate()
                assert process.wait(PATIENCE) == 0

    await asyncio.to_thread(chat)
    assert telegram.texts(7) == ["You said: Hello?", "You said: And now?"]
