"""Branches: conversations that share the start of another one."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from firnline import Memory, Message, Part, ToolCall, strategies
from firnline.errors import (
    ConflictError,
    InputError,
    StoreCorrupt,
    StoreUnavailable,
    UnknownConversation,
)
from firnline.log import limits
from firnline.log.entry import Card, Digest, Key
from firnline.log.message import encode
from firnline.transfer import branch
from support.seed_chats import play

AT = datetime(2025, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)
SMALL = 7


@pytest.fixture
def small_pages(monkeypatch):
    monkeypatch.setattr(limits, "READ_PAGE", SMALL)


def said(count):
    """Messages of every shape, an hour apart."""
    call = ToolCall.of("call-1", "measure", {"what": "depth"})
    shapes = [
        Message.user("How deep is the firn? 万年雪 🧊", metadata={"mood": "glücklich"}),
        Message.assistant(None, tool_calls=[call]),
        Message.tool("42 m", tool_call_id="call-1"),
        Message.assistant([Part.of_text("42 m."), Part({"type": "new", "z": [1.5]})], name="Bo"),
    ]
    return [shapes[i % 4].at(AT + timedelta(hours=i)) for i in range(count)]


def words(entries):
    """All that a branch keeps of its entries."""
    return [(e.seq, encode(e.message), e.tokens, e.total, e.tokenizer) for e in entries]


async def test_a_branch_begins_word_for_word(memory, small_pages):
    await memory.append("c", said(30))
    for seq in (0, 3, 28):
        await memory.pin("c", seq)
    await memory.archive("c", keep=20)
    await memory.describe("c", project="p", metadata={"a": 1, "branch": "of something"})
    await memory.set_strategy("c", strategies.rolling())
    before, head = await memory.read("c"), await memory.head("c")
    made = await memory.branch("c", 22, "d")
    assert words(await memory.read("d")) == words(before[:23])
    assert [entry.seq for entry in await memory.store.pinned(Key("default", "d"))] == [0, 3]
    assert (made.conversation, made.entries, made.project) == ("d", 23, "p")
    assert made.metadata == {"a": 1, "branch": {"of": "c", "at": 22}}
    assert made.strategy["name"] == head.strategy["name"] == "rolling"
    assert made.strategy["parameters"] == head.strategy["parameters"]
    assert made == await memory.head("d")
    assert await memory.verify("d")
    assert (await memory.read("c"), await memory.head("c")) == (before, head)
    await memory.append("d", Message.user("its own way"))
    assert [hit.seq for hit in await memory.recall("d", "own way")][:1] == [23]
    assert (await memory.head("c")).entries == 30


async def test_memory_holds_one_page_at_a_time(memory, small_pages, monkeypatch):
    await memory.append("c", said(30))
    store, sizes = memory.store, []
    records, append = store.records, store.append

    async def counted(*arguments):
        sizes.append(len(page := await records(*arguments)))
        return page

    async def added(key, drafts, **options):
        sizes.append(len(drafts))
        return await append(key, drafts, **options)

    monkeypatch.setattr(store, "records", counted)
    monkeypatch.setattr(store, "append", added)
    await memory.branch("c", 29, "d")
    assert len(sizes) == 10, "five pages, each read and written"
    assert max(sizes) == SMALL + 1, "a page and the entry before it"


@pytest.mark.parametrize("seq", range(8))
async def test_it_may_end_anywhere_even_behind_a_tool_call(memory, seq):
    await memory.append("c", said(8))
    await memory.branch("c", seq, "d")
    assert words(await memory.read("d")) == words(await memory.read("c"))[: seq + 1]
    await memory.append("d", Message.user("go on"))
    assert (await memory.context("d", 2_500)).tokens <= 2_500


# -- digests ----------------------------------------------------------------------------------


@pytest.mark.promise("digests-additive")
@pytest.mark.promise("undoable")
async def test_digests_of_what_it_took_go_along_and_can_be_undone(digested):
    newest = max(digest.version for digest in await digested.in_force("c"))
    before = await digested.digests("c")
    whole = await digested.branch("c", 179, "whole")
    assert whole.entries == 180
    assert await digested.in_force("whole") == await digested.in_force("c")
    lineage = await digested.lineage("c")
    assert (await digested.lineage("whole")).chain == lineage.chain
    for version in lineage.chain:
        assert (await digested.undo("whole")).version == version
        undone = await digested.undo("c")
        assert undone.version == version
        assert await digested.in_force("whole") == await digested.in_force("c")
    assert len(lineage.chain) > 3
    assert [d.version for d in await digested.digests("c")] == [d.version for d in before]
    assert newest == lineage.chain[0]


@pytest.mark.promise("digests-additive")
async def test_a_branch_has_what_was_in_force_of_its_entries(digested):
    chain = (await digested.lineage("c")).chain
    digests = {digest.version: digest for digest in await digested.digests("c")}
    seen = set()
    for seq in range(0, 180, 18):
        name = f"at {seq}"
        await digested.branch("c", seq, name)
        force = await digested.in_force(name)
        assert all(digest.last_seq <= seq for digest in force)
        assert [d.first_seq for d in force] == [0, *(d.last_seq + 1 for d in force[:-1])][
            : len(force)
        ]
        later = (n for n, v in enumerate(sorted(chain)) if digests[v].last_seq > seq)
        fitting = sorted(chain)[: next(later, len(chain))]
        assert max((d.version for d in force), default=None) == max(fitting, default=None)
        seen.add(len(force))
    assert len(seen) > 2, "with none, one and several"


async def test_a_branch_is_digested_further(digested):
    await digested.branch("c", 120, "d")
    before = await digested.digests("d")
    await play(digested, "d", 30, start=200)
    await digested.context("d", 2_500)
    after = await digested.digests("d")
    assert after[: len(before)] == before
    assert len(after) > len(before)
    assert after[len(before)].base == before[-1].version
    context = await digested.context("d", 2_500)
    assert context.seqs[-1] == (await digested.head("d")).seq


def _digest(version, last_seq, **fields):
    made = Digest(version=version, first_seq=0, last_seq=last_seq, status="completed", text="x")
    return replace(made, **fields)


@pytest.mark.parametrize(
    ("digests", "taken"),
    [
        ([], []),
        ([_digest(1, 5)], [1]),
        ([_digest(1, 10)], [1]),
        ([_digest(1, 11)], []),
        ([_digest(1, -1)], [1]),  # what the application knows
        ([_digest(1, 5), _digest(2, 11, base=1), _digest(3, 7, base=2)], [1]),
        ([_digest(1, 5), _digest(2, 6, base=1, status="undone"), _digest(3, 7, base=1)], [1, 3]),
        ([_digest(1, 5), _digest(2, 6, base=1, status="processing")], [1]),
        ([_digest(1, 5, status="failed"), _digest(2, 6, base=1)], []),  # it was damaged
        ([_digest(1, 5), _digest(2, 6, base=1), _digest(3, 7, base=2, beside=(1, 2))], [1, 2, 3]),
        ([_digest(2, 6), _digest(3, 7, base=2, beside=(1,))], [2]),
        ([_digest(2, 6), _digest(3, 7, base=2, parts=(1,))], [2]),
        ([_digest(1, 5, topic=0), _digest(2, 6), _digest(3, 7, topic=0, base=1)], [2]),
    ],
)
def test_which_digests_are_inherited(digests, taken):
    assert [digest.version for digest in branch.inherited(digests, 10)] == taken


# -- again, and at the same time --------------------------------------------------------------


@pytest.mark.promise("idempotent")
async def test_the_same_call_changes_nothing(digested, monkeypatch):
    monkeypatch.setattr(limits, "READ_PAGE", SMALL)
    made = await digested.branch("c", 60, "d")
    digests = await digested.digests("d")
    assert await digested.branch("c", 60, "d") == made
    await digested.append("d", Message.user("its own way"))
    await digested.describe("d", project="mine", metadata={"mine": True})
    await digested.pin("d", 60)
    await digested.undo("d")
    await digested.append("c", Message.user("meanwhile"))
    changed = await digested.branch("c", 60, "d")
    assert changed == await digested.head("d")
    assert (changed.entries, changed.project, changed.metadata) == (62, "mine", {"mine": True})
    assert [d.version for d in await digested.digests("d")] == [d.version for d in digests]
    assert [e.seq for e in await digested.store.pinned(Key("default", "d"))] == [60]
    assert await digested.verify("d")


@pytest.mark.promise("idempotent")
async def test_many_may_branch_at_once(digested, monkeypatch):
    monkeypatch.setattr(limits, "READ_PAGE", SMALL)
    made = await asyncio.gather(*(digested.branch("c", 60, "d") for _ in range(8)))
    assert set(map(repr, made)) == {repr(await digested.head("d"))}
    assert words(await digested.read("d")) == words(await digested.read("c", last_seq=60))
    assert await digested.in_force("d")
    assert await digested.verify("d")


async def fail_at(store, monkeypatch, nth):
    """Let the nth write fail before it is done, or succeed without an answer; returns how many."""
    count = 0

    def failing(write):
        async def call(*arguments, **options):
            nonlocal count
            count += 1
            if count * 2 - 1 == nth:
                raise StoreUnavailable("not now")
            done = await write(*arguments, **options)
            if count * 2 == nth:
                raise StoreUnavailable("done, but who knows")
            return done

        return call

    for name in ("append", "describe", "put_digests"):
        monkeypatch.setattr(store, name, failing(getattr(store, name)))
    return lambda: count


@pytest.mark.promise("idempotent")
async def test_what_an_error_left_half_done_is_finished(digested):
    await digested.describe("c", project="p")
    for nth in range(1, 100):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(limits, "READ_PAGE", SMALL)
            writes = await fail_at(digested.store, patch, nth)
            try:
                await digested.branch("c", 30, "d")
            except StoreUnavailable:
                pass
            else:
                assert nth > 2 * writes()
                break
            half = await digested.head("d")
            assert half is None or words(await digested.read("d")) == words(
                await digested.read("c", last_seq=half.seq)
            )
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(limits, "READ_PAGE", SMALL)
            made = await digested.branch("c", 30, "d")
        assert (made.entries, made.project) == (31, "p")
        assert made.metadata == {"branch": {"of": "c", "at": 30}}
        assert words(await digested.read("d")) == words(await digested.read("c", last_seq=30))
        await digested.branch("c", 30, "in one go")
        assert await digested.digests("d") == await digested.digests("in one go") != []
        await digested.erase("d")
    assert nth == 15, "five pages, a description and digests, each before and after"


# -- what is refused --------------------------------------------------------------------------


async def test_another_conversation_of_that_name_is_not_touched(memory):
    await memory.append("c", said(4))
    await memory.append("other", said(4))
    await memory.append("longer", said(6))
    await memory.append("d", Message.user("mine"))
    await memory.describe("d", metadata={"mine": True})
    await memory.branch("c", 2, "branch")
    for source, seq, name in (
        ("c", 3, "d"),
        ("c", 3, "other"),  # the same entries, but not a branch
        ("c", 3, "longer"),
        ("c", 3, "branch"),  # it ended elsewhere
        ("c", 1, "branch"),
        ("other", 2, "branch"),  # it has the same entries, but is another's
    ):
        before = await memory.head(name), await memory.read(name)
        with pytest.raises(ConflictError, match="choose another name"):
            await memory.branch(source, seq, name)
        assert (await memory.head(name), await memory.read(name)) == before


async def test_a_branch_is_not_made_longer_or_shorter(memory, small_pages):
    """Although its first pages are the same."""
    await memory.append("c", said(30))
    await memory.branch("c", 2 * SMALL - 1, "d")
    before = await memory.head("d")
    for seq in (SMALL - 1, 3 * SMALL - 1):
        with pytest.raises(ConflictError, match="choose another name"):
            await memory.branch("c", seq, "d")
    assert await memory.head("d") == before


async def test_a_conversation_that_was_only_described_becomes_the_branch(memory):
    await memory.append("c", said(4))
    await memory.describe("d", project="mine")
    made = await memory.branch("c", 3, "d")
    assert (made.entries, made.metadata) == (4, {"branch": {"of": "c", "at": 3}})


async def test_bad_input_is_rejected_and_nothing_made(memory):
    await memory.append("c", said(4))
    await memory.describe("empty", project="p")
    for seq in (-1, 4, 1 << 40, True, 1.0, "1", None):
        with pytest.raises(InputError):
            await memory.branch("c", seq, "d")
    with pytest.raises(InputError):
        await memory.branch("empty", 0, "d")
    with pytest.raises(InputError):
        await memory.branch("c", 3, "c")
    for name in ("", " d", "x" * 201, "\0"):
        with pytest.raises(InputError):
            await memory.branch("c", 3, name)
    with pytest.raises(UnknownConversation):
        await memory.branch("nothing", 0, "d")
    assert [head.conversation for head in await memory.conversations()] == ["c", "empty"]


@pytest.mark.promise("tenants-apart")
async def test_a_branch_stays_with_its_tenant(memory):
    await memory.append("c", said(4))
    other = Memory(memory.store, tenant="evil")
    with pytest.raises(UnknownConversation):
        await other.branch("c", 3, "d")
    assert await other.conversations() == []


async def test_a_branch_is_erased_by_itself(memory):
    await memory.append("c", said(4))
    await memory.branch("c", 3, "d")
    await memory.branch("c", 3, "e")
    await memory.erase("c")
    assert (await memory.verify("d")).entries == 4
    await memory.erase("d")
    assert (await memory.verify("e")).entries == 4
    await memory.append("c", said(5)[1:])
    with pytest.raises(ConflictError, match="choose another name"):
        await memory.branch("c", 3, "e")


@pytest.mark.parametrize("anew", [0, 10, 30])
async def test_an_erasure_meanwhile_is_no_alarm(memory, small_pages, monkeypatch, anew):
    """Restarted or not: no entry of one conversation is appended to the other."""
    await memory.append("c", said(30))
    records = memory.store.records

    async def late(key, first, limit):
        if first > 0:
            monkeypatch.setattr(memory.store, "records", records)
            await memory.erase("c")
            if anew:
                await memory.append("c", said(anew + 1)[1:])
        return await records(key, first, limit)

    monkeypatch.setattr(memory.store, "records", late)
    with pytest.raises(ConflictError, match="was erased"):
        await memory.branch("c", 29, "d")
    assert (await memory.verify("d")).entries == SMALL


@pytest.mark.promise("tamper-evident")
@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE entry SET body = x'00' WHERE id & 65535 = 3",
        "DELETE FROM entry WHERE id & 65535 = 3",
        "DELETE FROM entry",
        "DELETE FROM entry WHERE id & 65535 >= 7",
    ],
)
async def test_damage_is_not_copied(tmp_path, small_pages, damage):
    async with Memory.open(f"sqlite:///{tmp_path}/x.db") as memory:
        await memory.append("c", said(14))
        await memory.store._write(lambda con: con.execute(damage).get)
        with pytest.raises(StoreCorrupt):
            await memory.branch("c", 13, "d")
        made = await memory.head("d")
        assert made is None or made.entries == SMALL, "no page with damage in it"


async def test_the_digests_of_a_branch_are_pending_in_the_background(url):
    """As after an append: its newest entries may be due."""
    async with Memory.open(url, background=True, worker=False) as memory:
        await memory.append("c", said(3))  # no answer yet: nothing is pending
        await memory.branch("c", 2, "d")
        owed = await memory.store.due(datetime.now(UTC) + timedelta(minutes=1))
        assert [key.conversation for key in owed] == ["d"]


# -- erasing ----------------------------------------------------------------------------------


async def family(memory):
    """A source, a branch of it, a branch of that, and another conversation with equal words."""
    await memory.append("source", said(6))
    await memory.branch("source", 4, "branch")
    await memory.branch("branch", 2, "twig")
    await memory.append("stranger", [message.at(AT + timedelta(days=9)) for message in said(6)])
    await memory.append("branch", Message.user("only here"))


async def test_erasing_says_which_conversations_still_hold_copies(memory):
    await family(memory)
    assert await memory.branches("twig") == ["branch", "source"]
    erased = await memory.erase("branch")
    assert (erased.entries, erased.branches, erased.survives) == (6, (), ("source", "twig"))
    # The twig's origin is gone, and so may be what was recorded of it.
    await memory.describe("twig", metadata={})
    assert await memory.branches("source") == ["twig"]
    assert (await memory.erase("source")).survives == ("twig",)
    assert (await memory.erase("stranger")).survives == ()


async def test_branches_are_erased_with_a_conversation_on_request(memory):
    await family(memory)
    erased = await memory.erase("branch", branches=True)
    assert (erased.conversation, erased.entries) == ("branch", 6)
    assert (erased.branches, erased.survives) == (("source", "twig"), ())
    assert [head.conversation for head in await memory.conversations()] == ["stranger"]


async def test_a_conversation_that_took_the_name_of_an_erased_origin_is_not_a_copy(memory):
    await family(memory)
    await memory.erase("source")
    await memory.append("source", Message.user("a new start"))
    assert await memory.branches("source") == []
    assert (await memory.erase("source", branches=True)).branches == ()
    assert await memory.branches("twig") == ["branch"]


async def test_a_branch_made_while_branches_are_erased_is_erased_or_named(memory):
    await family(memory)
    erase, made = memory.store.erase, []

    async def branching(key):
        if not made:
            made.append(await memory.branch("branch", 1, "late"))
        return await erase(key)

    memory.store.erase = branching
    assert (await memory.erase("branch", branches=True)).branches == ("late", "source", "twig")
    assert await memory.head("late") is None


async def test_the_certificate_counts_what_was_erased(memory):
    await memory.append("c", said(6))
    await memory.topics("c")
    vectors = await memory.embed("c")
    await memory.cards.put(
        *(Card(tenant="default", kind=kind, name=name, conversation="c") for kind, name in CARDS)
    )
    erased = await memory.erase("c")
    assert erased.topics == 1
    assert (erased.vectors > 0) == (vectors > 0)
    assert dict(erased.cards) == {"draft": 2, "prompt": 1}


CARDS = (("draft", "a"), ("draft", "b"), ("prompt", "c"))
