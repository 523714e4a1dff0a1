"""Changes to a topic while it is digested, undone or merged hide none of its entries."""

import asyncio

import pytest

from firnline.digest import offline_summarizer
from firnline.engine.topic_assigner import TopicAssigner
from firnline.log.message import utc_now
from firnline.protocols import TopicAssignments
from firnline.store import RamStore
from firnline.testing.drafts import KEY, drafts
from support.interleave import meanwhile
from support.topic_chats import BUDGET, RULES, Subjects, about, check_books, open_memory, talk


class Telling:
    """Summarises offline, and remembers which entries each of the summaries is made of."""

    def __init__(self):
        self._write = offline_summarizer(lambda text: len(text) // 4)
        self._made_of = {}
        self.happens = None

    async def __call__(self, brief):
        happens, self.happens = self.happens, None
        if happens is not None:
            await happens()
        written = await self._write(brief)
        before = [self._made_of[text] for text in brief.earlier]
        self._made_of[written.text] = {e.seq for e in brief.entries}.union(*before)
        return written

    async def check(self, memory):
        """All that was said on the active topic is in the context: word for word, or digested."""
        context = await memory.context("c", BUDGET, fold=False)
        shown = "".join(piece.message.text for piece in context["digests"].pieces)
        made_of = [seqs for text, seqs in self._made_of.items() if text in shown]
        told = set(context.seqs).union(*made_of)
        active = (await memory.topics("c"))[0]
        said = {e.seq for e in await memory.topic_history("c", active.topic_id)}
        assert said <= told
        archived = [entry.seq for entry in await memory.read("c") if entry.archived]
        assert len(archived) == sum(t.archived_messages for t in await memory.topics("c"))
        await check_books(memory)


@pytest.fixture
def telling():
    return Telling()


@pytest.fixture
async def memory(url, telling):
    async with open_memory(url, summarizer=telling) as memory:
        yield memory


async def fold(memory):
    await memory.context("c", BUDGET)


async def go_on(memory):
    await talk(memory, *[0] * 6)
    await fold(memory)


# -- undoing --------------------------------------------------------------------------------------


@pytest.mark.requirement("C7")
async def test_an_interrupted_undo_hides_nothing(memory, telling):
    await talk(memory, *[0] * 8)
    await fold(memory)
    await memory._engine.digester.undo(memory._key("c"), 0)
    await memory.context("c", BUDGET, fold=False)
    await telling.check(memory)


@pytest.mark.parametrize("name", ["topics", "members", "assign"])
async def test_a_topic_that_is_digested_while_a_digest_of_it_is_undone(memory, telling, name):
    await talk(memory, *[0] * 8)
    await fold(memory)
    with meanwhile(memory.store, name, lambda: go_on(memory)):
        await memory.undo("c", topic=0)
    await telling.check(memory)
    await go_on(memory)
    await telling.check(memory)


@pytest.mark.parametrize("name", ["topics", "members", "assign"])
async def test_a_digest_that_is_undone_before_what_it_covers_is_archived(memory, telling, name):
    await talk(memory, *[0] * 8)
    await memory.topics("c")
    topics = memory._engine.topics
    real = topics.folded

    with pytest.MonkeyPatch.context() as patch:

        async def folded(key, digest):
            patch.undo()
            with meanwhile(memory.store, name, lambda: memory.undo("c", topic=0)):
                await real(key, digest)
            await check_books(memory)  # at once, not at the next read of the topic

        patch.setattr(topics, "folded", folded)
        await fold(memory)
    await telling.check(memory)
    await go_on(memory)
    await telling.check(memory)


# -- merging --------------------------------------------------------------------------------------


@pytest.mark.requirement("C7")
@pytest.mark.parametrize("digested", [False, True])
async def test_a_topic_that_is_merged_when_its_fold_is_planned(memory, telling, digested):
    await talk(memory, 1, *[0] * 8)
    if digested:
        await go_on(memory)
        await talk(memory, *[0] * 6)
    await memory.topics("c")

    with meanwhile(memory._engine.digester, "fold", lambda: memory.merge_topics("c", 2, 0)):
        await fold(memory)
    await telling.check(memory)
    await go_on(memory)
    await telling.check(memory)


async def test_a_topic_that_is_merged_while_a_digest_of_it_is_begun(memory, telling):
    await talk(memory, 1, *[0] * 8)
    await memory.topics("c")
    begun, merged, folding = asyncio.Event(), asyncio.Event(), []

    async def goes_on():
        begun.set()
        await merged.wait()

    async def begin():
        telling.happens = goes_on
        folding.append(asyncio.create_task(fold(memory)))
        await begun.wait()

    with meanwhile(memory.store, "assign", begin):
        await memory.merge_topics("c", 2, 0)
    merged.set()
    await asyncio.gather(*folding)
    await telling.check(memory)


async def test_what_a_merge_made_outdated_is_not_rebuilt(memory, telling):
    await talk(memory, 1, *[0] * 8)
    await fold(memory)
    await memory.merge_topics("c", 2, 0)
    assert await memory.in_force("c") == ()
    assert await memory.rebuild("c") == []
    await fold(memory)
    assert await memory.rebuild("c")
    await telling.check(memory)


class TornStore(RamStore):
    """Reads topics while another process saves newer ones, as a database without snapshots may."""

    torn = 0

    async def topics(self, key):
        found = await super().topics(key)
        if not self.torn or not found.topics:
            return found
        self.torn -= 1
        return TopicAssignments(found.topics, found.next_seq - 2, found.revision - 1)


@pytest.mark.requirement("C7")
async def test_topics_that_change_while_they_are_read_are_read_again():
    store = TornStore()
    await store.open()
    await store.append(KEY, drafts([about(0, 0), about(0, 1), about(1, 2), about(1, 3)]))
    assigner = TopicAssigner(store, Subjects(), clock=utc_now, rules=RULES)
    whole = await assigner.catch_up(KEY)
    store.torn = 2
    assert await assigner.catch_up(KEY) == whole
    assert store.torn == 0
