"""Seed C: topics that messages join, that fade, and that can be looked at (C1, C3, C4, C6)."""

import math
from dataclasses import fields
from datetime import timedelta

import pytest

from firnline import Memory, Message, strategies, sync
from firnline.errors import InputError
from firnline.log.message import ToolCall
from firnline.topics import Rules, TopicStats, replay
from support.entries import entry
from support.topic_chats import (
    BUDGET,
    DAY,
    RULES,
    START,
    Clock,
    Subjects,
    about,
    answer,
    ask,
    check_books,
    ids,
    open_memory,
    round_,
    talk,
    topic,
)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
async def memory(url, clock):
    async with open_memory(url, clock) as memory:
        yield memory


# -- C1: joining and opening ------------------------------------------------------------------


@pytest.mark.requirement("C1")
@pytest.mark.parametrize(("cosine", "joins"), [(0.69, False), (0.701, True), (0.95, True)])
async def test_a_message_joins_above_seven_tenths_and_opens_a_topic_below(memory, cosine, joins):
    await ask(memory, 3)
    await memory.append("c", Message.user(about(f"3~{cosine}")))
    assert await ids(memory) == ({0} if joins else {0, 2})


@pytest.mark.requirement("C1")
async def test_exactly_at_the_threshold_a_topic_is_opened():
    rules = Rules(similarity_threshold=1.0, merge_threshold=1.0)
    entries = [entry(n, Message.user(about(1, n), created_at=START)) for n in range(2)]
    _, second = replay(entries, {0: [1.0, 0.0], 1: [1.0, 0.0]}, rules=rules)
    assert (second.match.similarity, second.opened) == (1.0, 1), "not above it"


@pytest.mark.requirement("C1")
async def test_the_raw_cosine_and_the_similarity_can_be_seen(memory):
    assert await memory.match_topic("c", about(1)) is None, "there is no topic yet"
    await talk(memory, 1, 2)
    match = await memory.match_topic("c", about("2~0.85"))
    assert (match.topic, match.raw) == (2, pytest.approx(0.85))
    assert match.similarity == pytest.approx(0.85), "0.7 is 0.7 here, and 1 is 1"
    assert await memory.match_topic("c", "and then?") is None, "it has no subject"
    assert (await memory.head("c")).entries == 4, "looking stores nothing"


@pytest.mark.requirement("C1")
async def test_the_most_similar_of_several_topics_is_joined(memory):
    await talk(memory, 1, 2)
    await memory.append("c", Message.user(about("2~0.8")))
    assert (await memory.topic_stats("c")).topic_id == 2
    await memory.append("c", Message.user(about("1~0.8")))
    assert (await memory.topic_stats("c")).topic_id == 0


@pytest.mark.requirement("C1")
async def test_the_title_is_the_first_eighty_characters(memory):
    text = about(7) + " And what does the Köhlbrand bridge — ça va — have to do with it? 🚢🚢"
    await memory.append("c", Message.user(text))
    await ask(memory, 7)
    title = (await memory.topic_stats("c")).title
    assert title == text[:80].rstrip()
    assert len(title) <= 80


@pytest.mark.requirement("C1")
async def test_a_title_is_not_cut_inside_a_character(memory):
    family = "👩‍👩‍👧"
    await memory.append("c", Message.user(f"#5 {'x' * 75}{family}{family}"))
    assert (await memory.topic_stats("c")).title == f"#5 {'x' * 75}"


@pytest.mark.requirement("C1")
async def test_joining_refreshes_the_topic_and_counts_an_access(memory, clock):
    await ask(memory, 1)
    clock.pass_(hours=5)
    before = await topic(memory, 0)
    assert (before.access_count, before.inactive_seconds) == (0, 5 * 3600)
    await ask(memory, 1, 1)
    after = await topic(memory, 0)
    assert (after.access_count, after.inactive_seconds) == (1, 0)
    assert (after.age_seconds, after.total_messages) == (5 * 3600, 4)


@pytest.mark.requirement("C1")
async def test_the_importance_of_a_message_is_its_topics(memory):
    await memory.append("c", Message.user(about(1), metadata={"importance": 0.5}))
    assert (await memory.topic_stats("c")).importance == 0.5
    await memory.append("c", Message.user(about(1, 1), metadata={"importance": 0.25}))
    assert (await memory.topic_stats("c")).importance == 0.5, "it is not made less important"
    await memory.append("c", Message.user(about(1, 2), metadata={"importance": 0.75}))
    assert (await memory.topic_stats("c")).importance == 0.75


@pytest.mark.requirement("C1")
async def test_answers_tools_and_follow_ups_stay_with_the_question(memory):
    await talk(memory, 1, 2)
    call = Message.assistant(tool_calls=[ToolCall.of("a", "weigh", {})])
    said = [Message.user(about(1, 5)), call, Message.tool("400 t", tool_call_id="a")]
    await memory.append("c", [*said, Message.assistant("400 tonnes."), Message.user("why?")])
    history = await memory.topic_history("c")
    assert [entry.seq for entry in history] == [0, 1, 4, 5, 6, 7, 8]
    await check_books(memory)


DEFAULT = [
    ("Which neighbourhoods of Lisbon are good for a hotel in May?", 0),
    ("My sourdough starter is not rising any more, what went wrong?", 1),
    ("How do I get from Lisbon airport to the old town?", 0),
    ("How often should I feed a sourdough starter in the fridge?", 1),
    ("and how much flour?", 1),
    ("My PostgreSQL query takes twelve seconds, how do I find out why?", 5),
    ("Are day trips from Lisbon to Sintra worth it?", 0),
]


@pytest.mark.requirement("C1")
@pytest.mark.default_embedder
async def test_the_default_embedder_distinguishes_subjects(url):
    async with Memory.open(url, embedder="minilm", worker=False) as memory:
        await memory.append("c", [Message.user(text) for text, _ in DEFAULT])
        for found in await memory.topics("c"):
            history = await memory.topic_history("c", found.topic_id)
            expected = [text for text, of in DEFAULT if of == found.topic_id]
            assert [entry.message.text for entry in history] == expected
        near = await memory.match_topic("c", "Is Alfama in Lisbon too noisy at night?")
        far = await memory.match_topic("c", "Who was emperor when Rome fell in 476?")
        assert near.topic == 0
        assert near.similarity > 0.7 > far.similarity
        assert near.raw < near.similarity, "the model's own cosines are low; both can be seen"


@pytest.mark.requirement("C1")
async def test_without_an_embedder_words_alone_make_topics(url):
    async with Memory.open(url, embedder=None, worker=False) as memory:
        await memory.append("c", Message.user("The harbour crane in Hamburg lifts containers."))
        await memory.append("c", Message.user("Sourdough bread needs flour and patience."))
        await memory.append("c", Message.user("Which containers does the harbour crane lift?"))
        assert [e.seq for e in await memory.topic_history("c", 0)] == [0, 2]
        match = await memory.match_topic("c", "sourdough flour bread")
        assert match.topic == 1


# -- what is no plain question ----------------------------------------------------------------


@pytest.mark.requirement("C1")
async def test_messages_without_words_stay_in_the_active_topic(memory):
    picture = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    await ask(memory, 1)
    for content in ("", "   ", "👍🎉", "???", [picture]):
        await memory.append("c", {"role": "user", "content": content})
    assert await ids(memory) == {0}
    assert (await topic(memory, 0)).total_messages == 7
    await memory.context("c", BUDGET)
    await check_books(memory)


@pytest.mark.requirement("C1")
@pytest.mark.parametrize("first", ["", "👋", "hello", [{"type": "image_url", "image_url": {}}]])
async def test_a_first_message_without_a_subject_gets_its_title_later(memory, first):
    await memory.append("c", {"role": "user", "content": first})
    await memory.context("c", BUDGET)
    await ask(memory, 4)
    found = await memory.topics("c")
    assert [(one.topic_id, one.title) for one in found] == [(0, about(4)[:80].rstrip())]


@pytest.mark.requirement("C1")
async def test_what_the_system_says_first_is_in_no_topic_and_always_shown(memory):
    await memory.append("c", [Message.system("Be brief."), Message.system("Be kind.")])
    assert await memory.topics("c") == []
    assert [m.text for m in (await memory.context("c", BUDGET)).messages][:1] == ["Be brief."]
    with pytest.raises(InputError, match="no topics yet"):
        await memory.topic_stats("c")
    await talk(memory, 1, 2)
    texts = [m.text for m in (await memory.context("c", BUDGET)).messages]
    assert texts.count("Be brief.") == texts.count("Be kind.") == 1
    assert await ids(memory) == {2, 4}
    await check_books(memory)


@pytest.mark.requirement("C1")
async def test_tool_calls_before_any_user_message_have_a_topic(memory):
    call = Message.assistant(tool_calls=[ToolCall.of("a", "greet", {})])
    await memory.append("c", [call, Message.tool("hi", tool_call_id="a"), Message.assistant("Hi!")])
    await ask(memory, 6)
    (found,) = await memory.topics("c")
    assert (found.topic_id, found.total_messages) == (0, 5)
    assert found.title == about(6)[:80].rstrip()
    await memory.context("c", BUDGET)
    await check_books(memory)


@pytest.mark.requirement("C1")
async def test_a_huge_first_message_has_a_short_title_and_one_short_vector(memory):
    await memory.append("c", Message.user(about(1) + " crane" * 50_000))
    (found,) = await memory.topics("c")
    assert len(found.title) <= 80
    (embedder,) = {memory._engine.topics.embedders._embedder}
    assert max(map(len, embedder._embedder.asked)) < 1_000
    await memory.append("c", Message.user(about(1, 2)))
    assert (await memory.context("c", BUDGET)).tokens <= BUDGET


@pytest.mark.requirement("C1")
async def test_a_conversation_that_is_not_there_has_no_topics(memory):
    assert await memory.topics("nowhere") == []
    assert await memory.match_topic("nowhere", about(1)) is None
    with pytest.raises(InputError):
        await memory.tag_topic("nowhere", 0, add=["x"])


# -- C3: fading -------------------------------------------------------------------------------

SHORT = [(0, 1.0), (1, 0.5), (2, 0.25), (3, 0.125), (4, 0.0625), (5, 0.03125)]
LONG = [(0, 1.0), (16, 0.5), (32, 0.25), (48, 0.125), (64, 0.0625), (80, 0.03125)]
CONSOLIDATION = [
    (0, 4, 1.0, "short-term", 5),
    (5, 9, 2.0, "transitioning", 10),
    (10, 14, 4.0, "long-term", 20),
    (15, 19, 8.0, "long-term", 40),
    (20, 24, 16.0, "long-term", 80),
    (25, 40, 30.0, "long-term", 150),
]


async def accessed(memory, times):
    """A topic that was come back to so often."""
    texts = [about(1, number) for number in range(times + 1)]
    await memory.append("c", [Message.user(text) for text in texts])
    assert (await memory.topic_stats("c")).access_count == times


@pytest.mark.requirement("C3")
@pytest.mark.parametrize(("accesses", "table"), [(0, SHORT), (4, SHORT), (20, LONG), (24, LONG)])
async def test_priorities_are_the_seeds_tables(memory, clock, accesses, table):
    await accessed(memory, accesses)
    for days, priority in table:
        clock.now = START + days * DAY
        assert (await memory.topic_stats("c")).priority == priority


@pytest.mark.requirement("C3")
@pytest.mark.parametrize(("least", "most", "days", "kind", "survives"), CONSOLIDATION)
async def test_memory_consolidates_as_in_the_seeds_table(
    memory, clock, least, most, days, kind, survives
):
    await accessed(memory, least)
    for _ in range(2):
        found = await memory.topic_stats("c")
        assert (found.half_life_days, found.memory_type) == (days, kind)
        clock.now = START + survives * DAY
        assert (await memory.topic_stats("c")).priority < 0.05
        # "About" in the seed: 0.05 is reached after 4.32 half-lives.
        clock.now = START + math.log2(20) * days * DAY - timedelta(minutes=1)
        assert (await memory.topic_stats("c")).priority > 0.05
        clock.now = START
        more = [Message.user(about(1, number)) for number in range(most - least)]
        await memory.append("c", more or [Message.assistant("Yes.")])


@pytest.mark.requirement("C3")
async def test_importance_scales_the_priority(memory, clock):
    await memory.append("c", Message.user(about(1), metadata={"importance": 0.5}))
    clock.pass_(days=1)
    assert (await memory.topic_stats("c")).priority == 0.25


# -- C4: the working set ----------------------------------------------------------------------


async def many(memory, clock, count, *, days=6):
    """So many topics, said at once, and then some days go by."""
    said = []
    for subject in range(count):
        said += round_(subject, 0, created_at=clock.now)
        clock.pass_(minutes=1)
    await memory.append("c", said)
    clock.pass_(days=days)


@pytest.mark.requirement("C4")
async def test_up_to_twenty_topics_stay_however_faded(memory, clock):
    await many(memory, clock, 20, days=400)
    await ask(memory, 0, 1)
    assert not any(found.dormant for found in await memory.topics("c"))


@pytest.mark.requirement("C4")
async def test_of_more_than_twenty_the_faded_ones_leave_but_never_the_active_one(memory, clock):
    await many(memory, clock, 24)
    await ask(memory, 24)
    found = await memory.topics("c")
    assert len(found) == 25
    assert found[0].topic_id == 48
    assert not found[0].dormant
    assert all(one.dormant for one in found[1:])
    assert all(one.priority < 0.05 for one in found[1:])
    await check_books(memory)


@pytest.mark.requirement("C4")
async def test_what_has_not_faded_stays_however_many_there_are(memory, clock):
    await many(memory, clock, 30, days=0)
    await ask(memory, 30)
    assert not any(found.dormant for found in await memory.topics("c"))
    clock.pass_(days=4)
    await ask(memory, 31)
    assert not any(found.dormant for found in await memory.topics("c")), "6.25 % is not below 5 %"
    await check_books(memory)


@pytest.mark.requirement("C4")
async def test_what_people_come_back_to_stays_and_the_rest_leaves(memory, clock):
    for _ in range(6):
        await ask(memory, 0)
    await many(memory, clock, 24)
    await ask(memory, 25)
    left = {found.topic_id for found in await memory.topics("c") if found.dormant}
    assert 0 not in left, "its half-life is two days"
    assert len(left) == 23


@pytest.mark.requirement("C4")
async def test_topics_that_left_can_be_found_and_come_back(memory, clock):
    await many(memory, clock, 24)
    await ask(memory, 30)
    (hit, *_) = await memory.recall("c", "crane 7-0 lifts", roles=["assistant"])
    assert hit.message.text == answer(7)
    found = await topic(memory, 14)
    assert found.dormant
    assert [e.message.text for e in await memory.topic_history("c", 14)] == [about(7), answer(7)]
    await memory.append("c", Message.user(about(7, 1)))
    back = await topic(memory, 14)
    assert (back.dormant, back.access_count, back.inactive_seconds) == (False, 1, 0)
    texts = [message.text for message in (await memory.context("c", BUDGET)).messages]
    assert answer(7) in texts
    await check_books(memory)


@pytest.mark.requirement("C4")
async def test_the_active_topic_stays_however_unimportant_it_is(memory, clock):
    await many(memory, clock, 24)
    await memory.append("c", Message.user(about(24), metadata={"importance": 0.01}))
    found = await memory.topic_stats("c")
    assert (found.topic_id, found.priority, found.dormant) == (48, 0.01, False)


@pytest.mark.requirement("C4")
async def test_reading_topics_removes_none(memory, clock):
    await many(memory, clock, 25, days=0)
    clock.pass_(days=30)
    assert not any(found.dormant for found in await memory.topics("c"))


# -- C6: looking at topics --------------------------------------------------------------------


@pytest.mark.requirement("C6")
async def test_the_context_of_a_topic_is_its_summary_and_its_recent_messages(memory):
    await talk(memory, *[1] * 6, 2)
    await memory.append("c", Message.user(about(1, 6)))
    context = await memory.topic_context("c", BUDGET)
    (summary,) = [p.message for p in context["digests"].pieces if "summary" in p.message.text]
    assert summary.text.startswith("Topic summary: Question 0 on subject #1")
    assert summary.role == "system"
    recent = [message.text for message in context["recent"].messages]
    assert recent == [answer(1, 4), about(1, 5), answer(1, 5), about(1, 6)]


@pytest.mark.requirement("C6")
async def test_the_context_of_a_topic_can_be_had_whatever_the_strategy_is(url):
    async with open_memory(url, strategy=strategies.layered()) as memory:
        await talk(memory, 1, 2)
        await memory.append("c", Message.user(about(1, 1)))
        texts = [m.text for m in (await memory.topic_context("c", BUDGET))["recent"].messages]
        assert texts == [about(1), answer(1), about(1, 1)]
        assert (await memory.strategy("c")).name == "layered"
        await memory.set_strategy("c", strategies.topics(max_messages=2, keep=1))
        await memory.topic_context("c", BUDGET)
        assert (await topic(memory, 0)).active_messages == 1, "its own parameters count"


@pytest.mark.requirement("C6")
async def test_the_history_of_a_topic_has_archived_messages_and_times(memory, clock):
    for number in range(8):
        await ask(memory, 1, number)
        await ask(memory, 2, number)
        await memory.context("c", BUDGET)
        clock.pass_(minutes=1)
    history = await memory.topic_history("c", 0)
    assert [e.message.text for e in history[::2]] == [about(1, n) for n in range(8)]
    times = [entry.message.created_at for entry in history]
    assert times == sorted(times)
    assert times[-1] - times[0] == timedelta(minutes=7)
    assert (await memory.topic_history("c"))[0].seq == 2, "the active one is the other"
    with pytest.raises(InputError, match="no topic 1; there are: 0, 2"):
        await memory.topic_history("c", 1)


@pytest.mark.requirement("C6")
async def test_stats_have_every_field_of_the_seed(memory, clock):
    await talk(memory, *[1] * 7)
    await memory.context("c", BUDGET)
    clock.pass_(hours=1)
    found = await memory.topic_stats("c")
    assert found == TopicStats(
        topic_id=0,
        title=about(1)[:80].rstrip(),
        active_messages=4,
        archived_messages=10,
        total_messages=14,
        has_summary=True,
        importance=1.0,
        access_count=6,
        memory_type="transitioning",
        half_life_days=2.0,
        age_seconds=3600.0,
        inactive_seconds=3600.0,
        priority=pytest.approx(0.5 ** (1 / 48)),
        tags=(),
        dormant=False,
    )
    assert set(found.to_json()) == {field.name for field in fields(TopicStats)}


@pytest.mark.requirement("C6")
def test_the_synchronous_face_has_topics_too(url):
    options = {"embedder": Subjects(), "topic_rules": RULES, "strategy": strategies.topics()}
    with sync.Memory.open(url, **options) as memory:
        for number in range(7):
            memory.append("c", [Message.user(about(1, number)), Message.assistant("Yes.")])
        memory.context("c", BUDGET)
        assert memory.topic_stats("c").archived_messages == 10
        assert memory.match_topic("c", about("1~0.9")).topic == 0
        assert len(memory.topic_history("c")) == 14
        assert len(memory.topic_context("c", BUDGET)["recent"].messages) == 4
        assert memory.tag_topic("c", 0, add=["work"]).tags == ("work",)
        assert memory.feedback("c", 3, -1).importance == 0.75


async def test_what_a_context_leaves_out_has_a_reason():
    """A context explains why messages of other topics are not in it."""
    seeds = Rules(similarity_threshold=0.7)
    options = {"strategy": strategies.topics(), "embedder": None, "topic_rules": seeds}
    async with Memory.open("memory:", **options) as memory:
        for text in ("Which bread is best with rye?", "When does the Lisbon train leave?"):
            await memory.append("c", [Message.user(text), Message.assistant("Let me see. " * 9)])
        context = await memory.context("c", BUDGET)
        assert [tuple(left) for left in context.left_out] == [
            ("messages 0 to 1", "they are of other topics")
        ]
