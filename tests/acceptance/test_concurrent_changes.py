"""Changes by other processes between two reads: nothing is mixed up, lost or restored."""

import os
import socket
import subprocess
from datetime import timedelta

import pytest

from firnline import Memory, Message, strategies
from firnline.context.plan import Fold
from firnline.embedding.words import WordEmbedder
from firnline.errors import ConflictError, InputError, ModelError, UnknownConversation
from firnline.recall.passages import model_key
from firnline.server.drafts import Drafts
from firnline.transfer.migrate import move
from support.interleave import meanwhile

LONG = 60
"""Messages of which a context of `NARROW` tokens holds only some."""
NARROW = 1_500
ROLLING = strategies.rolling().to_json()


def said(count: int, what: str = "question", words: int = 1) -> list[Message]:
    return [Message.user(f"{what} {n} " * words) for n in range(count)]


async def anew(memory: Memory, count: int) -> None:
    """Erase the conversation, and begin another one under its name."""
    await memory.store.erase(memory._key("c"))
    for first in range(0, count, 1_000):
        await memory.append("c", said(min(count - first, 1_000), "other"))


# -- exports ------------------------------------------------------------------------------------


async def test_an_export_has_no_digest_of_what_is_not_in_it(memory, tmp_path):
    await memory.append("c", said(LONG, words=30))

    async def goes_on():
        await memory.append("c", said(40, "new", words=30))
        await memory.context("c", NARROW)

    with meanwhile(memory.store, "pinned", goes_on):
        await memory.export(tmp_path / "x.jsonl")
    assert (await memory.in_force("c"))[-1].last_seq >= LONG
    async with Memory.open("memory:") as other:
        await other.import_(tmp_path / "x.jsonl")
        context = await other.context("c", NARROW)
        assert context["recent"].entries[-1].seq == LONG - 1


async def test_topics_are_exported_as_they_were_at_one_moment(memory, tmp_path):
    await memory.append("c", said(6))
    await memory.topics("c")

    async def goes_on():
        await memory.append("c", said(6))
        await memory.topics("c")

    with meanwhile(memory.store, "members", goes_on):
        await memory.export(tmp_path / "x.jsonl")
    async with Memory.open("memory:") as other:
        assert (await other.import_(tmp_path / "x.jsonl")).added == 6


async def test_an_export_is_of_one_conversation_or_fails(memory, tmp_path):
    path = tmp_path / "x.jsonl"
    for _ in range(2):
        await memory.append("c", said(1_000))
    with (
        meanwhile(memory.store, "records", lambda: anew(memory, 2_000), call=2),
        pytest.raises(ConflictError, match="erased"),
    ):
        await memory.export(path)
    assert not path.exists()


@pytest.mark.parametrize("count", [0, 600])
@pytest.mark.parametrize("as_format", ["openai", "markdown", "html"])
async def test_an_export_for_reading_is_complete_or_fails(memory, tmp_path, as_format, count):
    path = tmp_path / "x"
    await memory.append("c", said(500))
    with (
        meanwhile(memory.store, "read", lambda: anew(memory, count), call=2),
        pytest.raises(ConflictError, match="erased"),
    ):
        await memory.export(path, conversations=["c"], as_format=as_format)
    assert not path.exists()


async def test_a_move_takes_what_was_there_when_it_looked(memory):
    await memory.append("c", said(LONG, words=30))

    async def goes_on():
        await memory.append("c", said(40, "new", words=30))
        await memory.context("c", NARROW)

    async with Memory.open("memory:") as other:
        with meanwhile(memory.store, "pinned", goes_on):
            await move(memory.store, other.store)
        context = await other.context("c", NARROW)
        assert context["recent"].entries[-1].seq == LONG - 1


@pytest.mark.parametrize("erased", ["source", "target"])
async def test_a_move_of_what_is_erased_meanwhile_is_a_conflict(memory, erased):
    async with Memory.open("memory:") as other:
        await memory.append("c", said(4))
        await move(memory.store, other.store)
        await memory.append("c", said(4))
        gone = memory if erased == "source" else other
        with (
            meanwhile(gone.store, "records", lambda: anew(gone, 0)),
            pytest.raises(ConflictError, match="erased"),
        ):
            await move(memory.store, other.store)


# -- imports ------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 20])
async def test_an_import_does_not_continue_after_messages_of_others(memory, tmp_path, count):
    path = tmp_path / "x.jsonl"
    async with Memory.open("memory:", tenant=memory.tenant) as other:
        await other.append("c", said(10))
        await other.export(path)
        begun = [entry.message for entry in await other.read("c", last_seq=4)]
    await memory.append("c", begun)

    async def goes_on():
        await memory.append("c", said(count, "other"))

    with (
        meanwhile(memory.store, "records", goes_on, call=2),
        pytest.raises(ConflictError, match="differs between the store and the file"),
    ):
        await memory.import_(path)
    assert (await memory.head("c")).entries == 5 + count


# -- proofs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 5, 2_500])
async def test_what_is_erased_while_it_is_verified_is_not_damaged(memory, count):
    for _ in range(2):
        await memory.append("c", said(1_000))
    with (
        meanwhile(memory.store, "records", lambda: anew(memory, count), call=2),
        pytest.raises(UnknownConversation, match="erased while it was verified"),
    ):
        await memory.verify("c")


async def test_what_grows_and_is_erased_while_it_is_verified_is_not_damaged(memory):
    await memory.append("c", said(5))
    with (
        meanwhile(memory.store, "damage", lambda: memory.append("c", said(1))),
        meanwhile(memory.store, "head", lambda: anew(memory, 0), call=2),
        pytest.raises(UnknownConversation, match="erased while it was verified"),
    ):
        await memory.verify("c")


# -- what is remembered of a name ---------------------------------------------------------------


async def test_nothing_is_pending_for_a_strategy_that_was_erased(url):
    async with Memory.open(url, worker=False) as memory:
        await memory.set_strategy("c", "rolling")
        await memory.append("c", [Message.user("x"), Message.assistant("y")])
        await memory.erase("c")
        await memory.append("c", [Message.user("x"), Message.assistant("y")])
        assert await memory.store.due(memory._clock()) == []


async def test_what_is_erased_while_it_is_searched_is_not_found():
    async with Memory.open("memory:", embedder=WordEmbedder()) as memory:
        await memory.append("c", said(8, "glacier"))
        await memory.embed("c")
        with meanwhile(memory.store, "vectors_at", lambda: anew(memory, 0)):
            assert await memory.recall("c", "glacier") == []


async def test_what_was_made_of_erased_words_is_not_kept_under_their_name(url):
    """Neither vectors nor topics: they were made from entries that no longer exist."""
    embedder = Interrupted()
    async with Memory.open(url, embedder=embedder, worker=False) as memory:
        for make in (memory.embed, memory.topics):
            await memory.append("c", said(8, "secret mountain"))
            embedder.happens = lambda: anew(memory, 8)
            await make("c")
            embedder.happens = None
            assert not [t for t in await memory.topics("c") if "secret" in t.title]
            await memory.embed("c")
            (model,) = {model_key(embedder, len(v)) for v in await embedder.embed(["x"])}
            kept = [v.body for v in await memory.store.vectors(memory._key("c"), model, 0, 100)]
            await memory.append("d", said(8, "other"))
            await memory.embed("d")
            fresh = [v.body for v in await memory.store.vectors(memory._key("d"), model, 0, 100)]
            assert kept == fresh
            await memory.erase("c")
            await memory.erase("d")


class Interrupted(WordEmbedder):
    """An embedder during whose work a callback runs once."""

    happens = None

    async def embed(self, texts):
        happens = self.happens
        if happens is not None and len(texts) > 1:
            self.happens = None
            await happens()
        return await super().embed(texts)


# -- what is noted of a conversation ------------------------------------------------------------


async def test_a_context_does_not_bring_back_what_is_erased(url):
    async with Memory.open(url, background=True, worker=False) as memory:
        await memory.append("c", said(LONG, words=30))
        with meanwhile(memory.store, "describe", lambda: memory.erase("c")):
            await memory.context("c", NARROW)
        assert await memory.head("c") is None


async def test_a_strategy_that_is_chosen_while_a_context_is_built_holds(url):
    async with Memory.open(url, background=True, worker=False) as memory:
        await memory.append("c", said(LONG, words=30))
        store, describe = memory.store, memory.store.describe
        with meanwhile(store, "describe", lambda: describe(memory._key("c"), strategy=ROLLING)):
            await memory.context("c", NARROW)
        assert (await memory.strategy("c")).name == "rolling"


async def test_a_branch_that_is_erased_while_it_is_made_does_not_come_back(memory):
    await memory.append("c", said(3))
    await memory.describe("c", metadata={"about": "glaciers"})
    with (
        meanwhile(memory.store, "describe", lambda: memory.erase("b")),
        pytest.raises(ConflictError, match="erased"),
    ):
        await memory.branch("c", 2, "b")
    assert await memory.head("b") is None


@pytest.mark.parametrize("name", ["digests", "records"])
async def test_a_branch_has_nothing_of_what_is_erased_before_it_is_made(memory, name):
    await memory.append("c", said(LONG, "secret", words=30))
    await memory.describe("c", metadata={"about": "secrets"})
    assert "secret" in (await memory.context("c", NARROW))["digests"].messages[0].text
    with (
        meanwhile(memory.store, name, lambda: anew(memory, LONG)),
        pytest.raises(ConflictError, match="erased"),
    ):
        await memory.branch("c", LONG - 1, "b")
    assert await memory.head("b") is None


@pytest.mark.parametrize("count", [0, 1, 3])
async def test_an_entry_that_is_erased_while_it_is_pinned_pins_no_other(memory, count):
    await memory.append("c", said(3))
    with (
        meanwhile(memory.store, "pin", lambda: anew(memory, count)),
        pytest.raises((InputError, UnknownConversation)),
    ):
        await memory.pin("c", 1)
    assert await memory.store.pinned(memory._key("c")) == []


async def test_pending_work_for_another_budget_is_not_settled(url):
    async with Memory.open(url, background=True, worker=False) as memory:
        await memory.append("c", said(LONG, words=30))
        with meanwhile(memory.store, "clear_pending", lambda: memory.context("c", NARROW)):
            assert await memory.digest("c") == 0
        assert await memory.store.due(memory._clock() + timedelta(days=1)) == [memory._key("c")]
        assert await memory.digest("c") > 0
        assert await memory.store.due(memory._clock() + timedelta(days=1)) == []


async def test_a_strategy_that_is_chosen_while_another_is_looked_up_counts(url):
    async with Memory.open(url, worker=False) as memory:
        head = memory.store.head

        async def chosen(key):
            before = await head(key)
            patch.undo()
            await memory.set_strategy("c", "rolling")
            return before

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(memory.store, "head", chosen)
            await memory.append("c", [Message.user("x"), Message.assistant("y")])
        assert await memory.store.due(memory._clock() + timedelta(days=1)) == [memory._key("c")]


@pytest.mark.parametrize("name", ["head", "describe"])
async def test_what_is_erased_while_it_is_imported_does_not_come_back(memory, tmp_path, name):
    await memory.append("c", said(3))
    await memory.describe("c", metadata={"about": "glaciers"})
    await memory.export(tmp_path / "x.jsonl")
    await memory.erase("c")
    with (
        meanwhile(memory.store, name, lambda: memory.erase("c")),
        pytest.raises(ConflictError, match="erased"),
    ):
        await memory.import_(tmp_path / "x.jsonl")
    assert await memory.head("c") is None


# -- contexts -----------------------------------------------------------------------------------


async def test_messages_that_arrive_during_a_context_are_included_if_they_fit(memory):
    await memory.append("c", said(30, words=5))

    async def goes_on():
        await memory.append("c", said(30, words=5))

    with meanwhile(memory.store, "newest", goes_on):
        built = await memory.context("c", 1_000, fold=False)
    again = await memory.context("c", 1_000, fold=False)
    assert built.messages == again.messages


@pytest.mark.parametrize("count", [2, LONG - 10, LONG + 10])
async def test_a_context_is_of_one_conversation_if_others_restart_it(memory, count):
    await memory.append("c", said(LONG, words=30))
    assert (await memory.context("c", NARROW))["digests"].pieces
    with meanwhile(memory.store, "newest", lambda: anew(memory, count)):
        context = await memory.context("c", NARROW)
    assert not context["digests"].pieces
    assert [entry.seq for entry in context["recent"].entries] == list(range(count))


async def test_what_is_erased_while_it_is_digested_in_steps_is_a_known_failure(url):
    asked = []

    async def summarizer(brief):
        asked.append(brief)
        if len(asked) > 1:
            raise ModelError("the model is gone, too")
        await memory.erase("c")
        return "what was said first"

    async with Memory.open(url, summarizer=summarizer, worker=False) as memory:
        await memory.append("c", said(40, words=300))
        fold = Fold(first_seq=0, last_seq=39, fresh_from=0)
        with pytest.raises(ModelError, match="gone"):
            await memory._engine.digester.fold(memory._key("c"), fold, None, "layered")
        assert await memory.head("c") is None


# -- turns and topics ---------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 5])
async def test_an_answer_does_not_bring_back_what_is_erased(memory, count):
    async def model(_messages, **_options):
        return "the answer"

    with (
        meanwhile(memory.store, "append", lambda: anew(memory, count), call=2),
        pytest.raises(UnknownConversation),
    ):
        await memory.turn("c", "the question", model)
    assert [entry.message.text for entry in await memory.read("c")] == [
        message.text for message in said(count, "other")
    ]


async def test_an_answer_is_stored_however_many_others_speak(memory):
    async def model(_messages, **_options):
        return "the answer"

    with (
        meanwhile(memory.store, "append", lambda: memory.append("c", said(1)), call=2),
        meanwhile(memory.store, "append", lambda: memory.append("c", said(1)), call=4),
    ):
        turn = await memory.turn("c", "the question", model)
    assert turn.answer.seq == 3


async def test_what_broke_off_does_not_bring_back_what_is_erased(memory):
    """A partial answer is stored by its own process, or by the one that finds it later."""

    async def of_tenant(_tenant):
        return memory

    for finish in ("cut", "recover"):
        (question,) = await memory.append("c", Message.user("the question"))
        draft = Drafts(memory, of_tenant).begin(memory, "c", question.seq)
        await draft.add("the ans")
        with meanwhile(memory.store, "append", lambda: memory.erase("c")):
            if finish == "cut":
                await draft.cut("the client went away")
            else:
                assert await Drafts(memory, of_tenant).recover() == 1
        assert await memory.head("c") is None


async def test_what_a_process_writes_just_before_it_dies_is_recovered(memory):
    async def of_tenant(_tenant):
        return memory

    begun = []
    with subprocess.Popen(["sleep", "60"]) as process:

        async def dies():
            await begun[1].add("swer is long")
            process.kill()
            process.wait()

        for name, owner in (("c", os.getpid()), ("d", process.pid)):
            (question,) = await memory.append(name, Message.user("the question"))
            begun.append(Drafts(memory, of_tenant).begin(memory, name, question.seq))
            begun[-1].id = name  # they are looked at in this order
            begun[-1].owner = f"{socket.gethostname()}:{owner}:of old"
            await begun[-1].add("the an")
        with meanwhile(memory.store, "append", dies):
            await Drafts(memory, of_tenant).recover()
    assert (await memory.read("d"))[-1].message.text == "the answer is long"


async def test_messages_of_a_topic_are_shown_while_it_is_merged(url):
    async with Memory.open(url, strategy=strategies.topics(), worker=False) as memory:
        await memory.append("c", Message.user("How do I bake sourdough bread with rye flour?"))
        await memory.append("c", Message.user("Which glacier in the Alps melts fastest?"))
        active, other = await memory.topics("c")

        async def merged():
            await memory.merge_topics("c", other.topic_id, active.topic_id)

        with meanwhile(memory.store, "members", merged):
            context = await memory.context("c", NARROW, fold=False)
        assert [entry.seq for entry in context["recent"].entries] == [0, 1]
