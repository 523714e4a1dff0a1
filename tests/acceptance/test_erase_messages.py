"""Erasing some messages: nothing shows or quotes them, and everything else stays as it was."""

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firnline import Budget, Memory, Message, ToolCall, strategies
from firnline.errors import InputError, KeyReused, UnknownConversation
from firnline.log.entry import Card, Key
from firnline.log.message import encode
from firnline.store.cards import prompt_name
from firnline.store.ram import RamStore

AT = datetime(2025, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)
SECRET = "The passphrase of the vault is Glacierwolf."
SMALL = Budget(window_tokens=400, reserve_tokens=50)


def said(count, secret_at=()):
    """An ordinary chat with the secret in some places."""
    found = []
    for i in range(count):
        words = f"Message {i}: we drilled a core of {i} meters near station {i % 7}."
        text = f"{SECRET} It is number {i}." if i in secret_at else words
        made = Message.user(text) if i % 2 == 0 else Message.assistant(text)
        found.append(made.at(AT + timedelta(hours=i)))
    return found


async def texts_of(memory, conversation="c"):
    """Everything that a reader, a model or a program gets to see of a conversation."""
    context = await memory.context(conversation, 2_000, "What is the passphrase of the vault?")
    hits = await memory.recall(conversation, "passphrase Glacierwolf vault", limit=50)
    return "\n".join([
        *(entry.message.text for entry in await memory.read(conversation)),
        json.dumps(context.to_openai()),
        *(hit.message.text for hit in hits),
        *(f"{d.text} {d.data} {d.receipt}" for d in await memory.digests(conversation)),
        *(topic.title for topic in await memory.topics(conversation)),
        str(await memory.state(conversation)),
    ])  # fmt: skip


@pytest.mark.promise("erase-total")
async def test_nothing_shows_an_erased_message_and_the_rest_stays(memory):
    await memory.append("c", said(30, secret_at=(8, 9)))
    await memory.topics("c")
    await memory.archive("c", keep=15)
    await memory.context("c", SMALL)
    await memory.pin("c", 8)
    before = await memory.read("c")
    assert "Glacierwolf" in await texts_of(memory)
    erased = await memory.erase_messages("c", 8, 9)
    assert (erased.entries, erased.spans, erased.survives) == (2, ((8, 9),), ())
    assert "Glacierwolf" not in await texts_of(memory)
    assert await memory.pinned("c") == []
    after = await memory.read("c")
    assert [e.seq for e in after if e.erased_at is not None] == [8, 9]
    same = [replace(e, archived=False) for e in before if e.seq not in (8, 9)]
    assert [replace(e, archived=False) for e in after if e.erased_at is None] == same
    verified = await memory.verify("c", anchor=before[29].hash)
    assert (verified.ok, verified.erased, verified.head) == (True, 2, before[29].hash)
    assert "2 of them erased" in str(verified)
    assert await memory.store.damage(Key("default", "c")) == []
    with pytest.raises(InputError, match="erased"):
        await memory.pin("c", 8)
    assert (await memory.erase_messages("c", 8, 9)).entries == 0


@pytest.mark.promise("erase-total")
async def test_digests_are_rebuilt_from_the_rest_and_what_was_stated_is_kept(memory):
    await memory.append("c", said(40, secret_at=(4,)))
    await memory.remember("c", {"key_decisions": ["We meet in Oslo."]})
    await memory.context("c", SMALL)
    count = len(await memory.digests("c"))
    assert "Glacierwolf" in str(await memory.digests("c"))
    erased = await memory.erase_messages("c", 4)
    assert erased.digests > 0
    left = await memory.digests("c")
    assert "Glacierwolf" not in str(left)
    assert await memory.store.damage(Key("default", "c")) == []
    assert "We meet in Oslo." in str(await memory.state("c"))
    context = await memory.context("c", SMALL)
    assert "Glacierwolf" not in str(context.to_openai())
    assert len(await memory.digests("c")) > count
    assert (await memory.in_force("c"))[0].first_seq == 0


async def test_a_topic_gets_the_title_of_what_is_left(memory):
    await memory.append("c", [Message.user(SECRET), Message.assistant("Noted.")])
    await memory.append("c", [Message.user("Where is the vault key?"), Message.assistant("Here.")])
    (before,) = await memory.topics("c")
    assert before.title == SECRET
    await memory.erase_messages("c", 0, 0)
    (after,) = await memory.topics("c")
    assert (after.topic_id, after.title) == (before.topic_id, "Where is the vault key?")
    assert after.total_messages == 3
    assert [e.seq for e in await memory.topic_history("c")] == [1, 2, 3]
    await memory.append("c", Message.user("And the door of the vault?"))
    assert (await memory.topics("c"))[0].total_messages == 4


async def test_recorded_prompts_and_drafts_go_and_earlier_prompts_stay(memory):
    await memory.append("c", said(8, secret_at=(4,)))
    cards = [
        Card(tenant="default", kind=kind, name=name, body=b"{}", conversation="c")
        for kind, name in (
            ("prompt", prompt_name("c", 3)),
            ("prompt", prompt_name("c", 5)),
            ("draft", "d/000000"),
            ("prefix", "hash"),
        )
    ]
    await memory.cards.put(*cards)
    erased = await memory.erase_messages("c", 4)
    assert dict(erased.cards) == {"prompt": 1, "draft": 1}
    assert [card.name for card in await memory.cards.find("prompt")] == [prompt_name("c", 3)]
    assert await memory.cards.find("draft") == []


async def test_a_call_and_its_results_are_erased_together(memory):
    calls = [ToolCall.of(f"call-{i}", "measure", {}) for i in range(2)]
    messages = [
        Message.user("How deep?"),
        Message.assistant(None, tool_calls=calls),
        Message.tool("42 m", tool_call_id="call-0"),
        Message.tool("43 m", tool_call_id="call-1"),
        Message.assistant("42 m."),
    ]
    for seq in (1, 2, 3):
        name = f"c{seq}"
        await memory.append(name, messages)
        assert (await memory.erase_messages(name, seq, seq)).spans == ((1, 3),)
        shown = (await memory.context(name, 1_000)).to_openai()
        assert [message["content"] for message in shown] == ["How deep?", "42 m."]
    await memory.append("d", messages)
    assert (await memory.erase_messages("d", 0, 0)).spans == ((0, 0),)
    assert (await memory.erase_messages("d", role="tool")).spans == ((1, 3),)


async def test_a_retry_does_not_bring_an_erased_message_back(memory):
    await memory.append("c", Message.user(SECRET), idempotency_key="k")
    await memory.erase_messages("c", 0)
    with pytest.raises(KeyReused, match="erased"):
        await memory.append("c", Message.user(SECRET), idempotency_key="k")
    assert (await memory.head("c")).entries == 1


# -- branches, age, rules ---------------------------------------------------------------------


async def test_copies_in_branches_are_named_and_erased_on_request(memory):
    await memory.append("c", said(10, secret_at=(4, 6)))
    await memory.branch("c", 5, "near")
    await memory.branch("c", 8, "far")
    await memory.branch("c", 2, "early")
    first = await memory.erase_messages("c", 6)
    assert first.survives == ("far",)
    second = await memory.erase_messages("c", 4, branches=True)
    assert (second.branches, second.survives) == (("far", "near"), ())
    for name, erased in (("c", [4, 6]), ("near", [4]), ("far", [4])):
        there = [e.seq for e in await memory.read(name) if e.erased_at is not None]
        assert there == erased
        assert (await memory.verify(name)).ok
    assert [e.erased_at for e in await memory.read("early")] == [None] * 3


async def test_old_messages_are_erased_everywhere_by_rule(memory):
    for name in ("a", "b", "new"):
        start = AT + timedelta(days=100) if name == "new" else AT
        await memory.append(name, [m.at(start + timedelta(hours=i)) for i, m in enumerate(said(6))])
    await memory.describe("a", project="p")
    until = AT + timedelta(hours=4)
    only = await memory.erase_before(until, project="p", role="user")
    assert [(one.conversation, one.spans) for one in only] == [("a", ((0, 0), (2, 2)))]
    every = await memory.erase_before(until)
    assert [(one.conversation, one.entries) for one in every] == [("a", 2), ("b", 4)]
    assert await memory.erase_before(until) == []
    later = await memory.erase_messages("b", since=AT + timedelta(hours=5))
    assert later.spans == ((5, 5),)
    for call in (
        memory.erase_messages("b", -1),
        memory.erase_messages("b", 3, 2),
        memory.erase_messages("b"),
        memory.erase_messages("b", role="nobody"),
        memory.erase_before(datetime(2025, 1, 1)),  # noqa: DTZ001
    ):
        with pytest.raises(InputError):
            await call
    with pytest.raises(UnknownConversation):
        await memory.erase_messages("nothing", 0)


# -- copies of the log ------------------------------------------------------------------------


@pytest.mark.promise("round-trip")
async def test_exports_imports_and_branches_keep_tombstones(memory, tmp_path):
    await memory.append("c", said(12, secret_at=(0, 5)))
    await memory.erase_messages("c", 0, 0)
    await memory.erase_messages("c", 5, 5)
    await memory.export(tmp_path / "all.jsonl")
    for name in ("openai", "markdown", "html"):
        await memory.export(tmp_path / name, conversations=["c"], as_format=name)
    for file in tmp_path.rglob("*.*"):
        assert b"Glacierwolf" not in file.read_bytes()
    await memory.branch("c", 7, "d")
    assert [e.seq for e in await memory.read("d") if e.erased_at is not None] == [0, 5]
    assert (await memory.verify("d")).erased == 2
    before = [replace(e, archived=False) for e in await memory.read("c")]
    for tenant, same in (("default", True), ("other", False)):
        async with Memory(RamStore(), tenant=tenant, worker=False) as copy:
            manifest = await copy.import_(tmp_path / "all.jsonl")
            assert manifest.added == 12
            assert (await copy.import_(tmp_path / "all.jsonl")).added == 0
            after = await copy.read("c")
            assert [e.erased_at for e in after] == [e.erased_at for e in before]
            assert [encode(e.message) for e in after] == [encode(e.message) for e in before]
            assert ([e.hash for e in after] == [e.hash for e in before]) is same
            assert (await copy.verify("c")).ok


# -- any log, any erasure ---------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_erasure_of_any_log_leaves_the_rest(data):
    count = data.draw(st.integers(1, 24))
    spans = data.draw(st.lists(st.tuples(st.integers(0, 25), st.integers(0, 8)), max_size=4))
    keep = data.draw(st.integers(0, 24))
    strategy = data.draw(st.sampled_from([strategies.layered(), strategies.rolling()]))
    asyncio.run(_erased_and_compared(count, spans, keep, strategy))


async def _erased_and_compared(count, spans, keep, strategy):
    async with Memory(RamStore(), worker=False, strategy=strategy) as memory:
        words = [
            f"marker{i}x is what message {i} says of the firn and its layers" for i in range(count)
        ]
        await memory.append("c", [
            (Message.user if i % 2 else Message.assistant)(text).at(AT + timedelta(minutes=i))
            for i, text in enumerate(words)
        ])  # fmt: skip
        await memory.topics("c")
        await memory.archive("c", keep=keep)
        await memory.context("c", 300)
        before, gone = await memory.read("c"), set()
        for first, length in spans:
            await memory.erase_messages("c", first, first + length)
            gone |= set(range(first, min(first + length + 1, count)))
            verified = await memory.verify("c")
            assert (verified.ok, verified.erased) == (True, len(gone))
        after = await memory.read("c")
        assert [e.seq for e in after if e.erased_at is not None] == sorted(gone)
        kept = [replace(e, archived=False) for e in before if e.seq not in gone]
        assert [replace(e, archived=False) for e in after if e.erased_at is None] == kept
        seen = str((await memory.context("c", 300, "marker layers")).to_openai())
        seen += str(await memory.recall("c", "marker layers firn", limit=50))
        seen += str(await memory.digests("c")) + str(await memory.topics("c"))
        assert not [i for i in gone if f"marker{i}x" in seen]
        await memory.append("c", Message.user("one more"))
        assert (await memory.verify("c")).ok
        assert len(await memory.store.records(Key("default", "c"), 0, 100)) == count + 1
