"""Seed C: questions that stand alone (C8), and what topics remember of people (C9)."""

from dataclasses import replace

import pytest

from firnline import Memory, Message, strategies
from firnline.digest import offline_summarizer
from firnline.errors import ConflictError, InputError
from firnline.log.tokens import counter
from firnline.topics import Rules, used_entries
from support.entries import entry
from support.topic_chats import (
    BUDGET,
    RULES,
    Clock,
    Subjects,
    about,
    answer,
    ask,
    check_books,
    ids,
    open_memory,
    talk,
    topic,
)

FLAT = [
    Message.user("Tell me about the Alfama apartment in Lisbon."),
    Message.assistant("It has two rooms and a balcony, and belongs to Marta Novak."),
]
BREAD = [
    Message.user("My sourdough starter does not rise in the kitchen."),
    Message.assistant("Feed it with rye flour at 26 degrees."),
]


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
async def memory(url, clock):
    async with open_memory(url, clock) as memory:
        yield memory


@pytest.fixture
async def plain(url):
    """A memory whose topics are distinguished by words."""
    options = {"strategy": strategies.topics(), "worker": False}
    async with Memory.open(url, embedder=None, **options) as memory:
        yield memory


# -- C8: questions that stand alone -----------------------------------------------------------


@pytest.mark.requirement("C8")
async def test_a_follow_up_is_rewritten_from_its_own_topic(plain):
    await plain.append("c", [*FLAT, *BREAD])
    await plain.topics("c")
    assert "sourdough" in await plain.standalone("c", "and how long does it take?")
    await plain.append("c", [*FLAT[:1], Message.assistant("As I said.")])
    rewritten = await plain.standalone("c", "and what does it cost?")
    assert "Alfama apartment" in rewritten
    assert "sourdough" not in rewritten, "the newest messages are not of this topic"


@pytest.mark.requirement("C8")
async def test_a_question_that_stands_alone_is_left_as_it_is(plain):
    await plain.append("c", FLAT)
    for question in ("Which trams run in Porto on Sundays?", "How do vaccines work?"):
        assert await plain.standalone("c", question) == question
    assert await plain.standalone("nowhere", "and then?") == "and then?"


@pytest.mark.requirement("C8")
async def test_a_person_is_named(plain):
    await plain.append("c", FLAT)
    assert "Marta Novak" in await plain.standalone("c", "Who is she?")


@pytest.mark.requirement("C8")
async def test_a_model_rewrites_it_with_words_of_the_conversation(url, model, server):
    async with Memory.open(url, model=model, embedder=None) as memory:
        await memory.append("c", FLAT)
        server.say("What does the Alfama apartment in Lisbon cost?")
        found = await memory.standalone("c", "What does it cost?")
        assert found == "What does the Alfama apartment in Lisbon cost?"
        assert "balcony" in str(server.requests[-1])


@pytest.mark.requirement("C8")
@pytest.mark.parametrize(
    "answer_",
    [
        "What does the Alfama penthouse in Barcelona cost?",
        "Sure! Here it is:\nWhat does the apartment cost?",
        "What does the Lisbon apartment cost? " * 40,
    ],
)
async def test_a_model_that_invents_something_is_not_believed(url, model, server, answer_):
    async with Memory.open(url, model=model, embedder=None) as memory:
        await memory.append("c", FLAT)
        server.say(answer_)
        found = await memory.standalone("c", "What does it cost?")
        assert found == "What does it cost? (Alfama apartment, Lisbon)"


@pytest.mark.requirement("C8")
async def test_if_the_model_fails_the_rules_do_it(url, model, server):
    async with Memory.open(url, model=model, embedder=None) as memory:
        await memory.append("c", FLAT)
        server.fail("500", repeat=True)
        found = await memory.standalone("c", "What does it cost?")
        assert found == "What does it cost? (Alfama apartment, Lisbon)"


@pytest.mark.requirement("C8")
async def test_a_context_recalls_for_the_question_that_stands_alone(url):
    question = "and is it noisy?"
    async with Memory.open(url, embedder=None, strategy=strategies.layered()) as memory:
        await memory.append("c", Message.user("The Alfama apartment has thin walls: 40 decibels."))
        for number in range(40):
            await memory.append("c", Message.user(f"Filler {number}: the weather is grey."))
        await memory.append("c", [*FLAT, Message.user(question)])
        assert 0 not in [hit.seq for hit in await memory.recall("c", question, limit=50)]
        context = await memory.context("c", 600, question)
        assert 0 in [hit.seq for hit in context.hits]
        assert "40 decibels" in "".join(message.text for message in context.messages)


# -- C9: persistence --------------------------------------------------------------------------


@pytest.mark.requirement("C9")
async def test_topics_are_there_after_a_restart(tmp_path, clock):
    url = f"sqlite:///{tmp_path}/a.db"
    async with open_memory(url, clock) as memory:
        await talk(memory, *[1] * 7, 2)
        await memory.context("c", BUDGET)
        await memory.append("c", Message.user(about(1, 9)))
        await memory.context("c", BUDGET)
        await memory.tag_topic("c", 0, add=["cranes"])
        await memory.feedback("c", 0, -1)
        before = await memory.topics("c")
    embedder = Subjects()
    async with open_memory(url, clock, embedder=embedder) as memory:
        assert await memory.topics("c") == before
        assert embedder.asked == [], "nothing is embedded twice"
        await memory.append("c", Message.assistant("Yes."))
        assert (await memory.topic_stats("c")).tags == ("cranes",)
        await check_books(memory)


@pytest.mark.requirement("C9")
async def test_export_and_import_keep_topics(memory, url, tmp_path, clock):
    await talk(memory, *[1] * 7, 2)
    await memory.context("c", BUDGET)
    await memory.tag_topic("c", 0, add=["cranes"])
    await memory.merge_topics("c", 0, 14)
    await ask(memory, 3)
    before = await memory.topics("c")
    await memory.export(tmp_path / "x.jsonl")
    other = f"sqlite:///{tmp_path}/other.db" if url.startswith("sqlite") else "memory:"
    async with open_memory(other, clock) as copy:
        await copy.import_(tmp_path / "x.jsonl")
        assert await copy.topics("c") == before
        assert await copy.topic_history("c", 0) == await memory.topic_history("c", 0)
        await copy.import_(tmp_path / "x.jsonl")
        await check_books(copy)
        await copy.append("c", Message.user(about(1, 8)))
        assert (await copy.topic_stats("c")).topic_id == 0
        await copy.context("c", BUDGET)
        await check_books(copy)


@pytest.mark.requirement("C9")
async def test_erasing_removes_topics(memory):
    await talk(memory, *[1] * 7)
    await memory.context("c", BUDGET)
    await memory.tag_topic("c", 0, add=["cranes"])
    await memory.erase("c")
    assert await memory.topics("c") == []
    await ask(memory, 2)
    (found,) = await memory.topics("c")
    assert (found.title, found.tags) == (about(2)[:80].rstrip(), ())
    await check_books(memory)


# -- C9: merging ------------------------------------------------------------------------------


@pytest.mark.requirement("C9")
async def test_two_topics_can_be_made_one(memory):
    await talk(memory, *[1] * 7)
    await memory.context("c", BUDGET)
    await talk(memory, *[2] * 7)
    await memory.context("c", BUDGET)
    await memory.tag_topic("c", 0, add=["old"])
    await memory.tag_topic("c", 14, add=["new"])
    merged = await memory.merge_topics("c", 0, 14)
    assert (merged.topic_id, merged.total_messages, merged.access_count) == (0, 28, 12)
    assert merged.tags == ("new", "old")
    assert (merged.archived_messages, merged.has_summary) == (0, False)
    assert (await memory.head("c")).archived == 0
    assert await ids(memory) == {0}
    assert (await topic(memory, 14)).topic_id == 0, "its old name leads there"
    context = await memory.context("c", BUDGET)
    newest = (await memory.digests("c"))[-1]
    assert (newest.topic, newest.first_seq, newest.last_seq, newest.parts) == (0, 0, 23, ())
    assert len(context["recent"].messages) == 4
    await memory.append("c", Message.user(about(2, 9)))
    assert await ids(memory) == {0}
    await check_books(memory)
    with pytest.raises(InputError, match="the same topic"):
        await memory.merge_topics("c", 0, 14)
    with pytest.raises(InputError, match="no topic 99"):
        await memory.merge_topics("c", 0, 99)


@pytest.mark.requirement("C9")
async def test_topics_that_grow_together_become_one_by_themselves(url):
    """Two that are alike, but each message of them is not enough so."""
    rules = Rules(likeness={"subjects": 0.7}, merge_threshold=0.75)
    async with open_memory(url, topic_rules=rules) as memory:
        await talk(memory, *["1"] * 7)
        await memory.context("c", BUDGET)
        assert (await memory.head("c")).archived == 10
        await ask(memory, "1~0.69", 8)
        assert await ids(memory) == {0, 14}
        await memory.append("c", Message.user(about("1~0.85", 9)))
        await memory.append("c", Message.user(about("1~0.85", 10)))
        assert await ids(memory) == {0}
        found = await topic(memory, 14)
        assert (found.topic_id, found.total_messages) == (0, 18)
        assert (found.archived_messages, found.has_summary) == (0, False)
        assert (await memory.head("c")).archived == 0
        context = await memory.context("c", BUDGET)
        assert len(context["recent"].messages) == 4
        assert [e.seq for e in await memory.expand("c", 2)] == list(range(14))
        await check_books(memory)


@pytest.mark.requirement("C9")
async def test_a_digest_written_during_a_merge_does_not_stand_for_the_merged_topic(url):
    summed_up, merged = set(), []

    async def merging(brief):
        summed_up.update(entry.seq for entry in brief.entries)
        if not merged:
            merged.append(await memory.merge_topics("c", 0, 2))
        return await offline(brief)

    offline = offline_summarizer(counter().text)
    async with open_memory(url, summarizer=merging) as memory:
        await ask(memory, 1)
        await ask(memory, 2)
        for number in range(6):
            await ask(memory, 1, number)
        await memory.context("c", BUDGET)
        assert merged
        assert summed_up
        context = await memory.context("c", BUDGET)
        assert {2, 3} <= {*summed_up, *context.seqs}, "what came with the merger is not lost"
        await check_books(memory)


# -- C9: feedback -----------------------------------------------------------------------------


@pytest.mark.requirement("C9")
async def test_praise_and_blame_change_the_importance_and_the_priority(memory, clock):
    await memory.append("c", Message.user(about(1), metadata={"importance": 0.5}))
    await ask(memory, 2)
    praised = await memory.feedback("c", 0, 1)
    assert (praised.topic_id, praised.importance, praised.access_count) == (0, 0.625, 1)
    assert praised.priority == 0.625
    blamed = await memory.feedback("c", 2, -1)
    assert (blamed.topic_id, blamed.importance, blamed.access_count) == (1, 0.75, 0)
    clock.pass_(days=1)
    assert (await topic(memory, 1)).priority == 0.375
    for _ in range(26):
        await memory.feedback("c", 0, 1)
        await memory.feedback("c", 1, -1)
    assert (await topic(memory, 0)).importance <= 1
    assert 0 <= (await topic(memory, 1)).importance < 0.001
    for vote, seq in ((2, 0), (0, 0), (1, 99)):
        with pytest.raises(InputError):
            await memory.feedback("c", seq, vote)


@pytest.mark.requirement("C9")
async def test_what_is_blamed_leaves_first(url, clock):
    async with open_memory(url, clock) as memory:
        for subject in range(21):
            await ask(memory, subject)
        for _ in range(9):
            await memory.feedback("c", 6, -1)
        clock.pass_(days=1)
        await ask(memory, 30)
        assert [t.topic_id for t in await memory.topics("c") if t.dormant] == [6]


@pytest.mark.requirement("C9")
async def test_an_answer_that_uses_what_was_recalled_raises_its_topic(url, model, server):
    async with open_memory(url, model=model) as memory:
        secret = Message.user(
            "Subject #1: the crane code is Walnut 4711.", metadata={"importance": 0.5}
        )
        await memory.append("c", [secret, Message.assistant("Noted.")])
        other = Message.user("Subject #1: the gate code is Poplar 1234.")
        await memory.append("c", [other, Message.assistant("Noted.")])
        for number in range(20):  # more than the newest of a topic
            await ask(memory, 2, number)
        await memory.context("c", BUDGET)
        question = "On subject #2: which crane code was it?"
        server.say("I do not know that.")
        turn = await memory.turn("c", question, budget=BUDGET)
        assert 0 in [hit.seq for hit in turn.context.hits]
        assert (await topic(memory, 0)).importance == 0.5, "it was recalled, but not used"
        server.say("It is Walnut 4711.")
        await memory.turn("c", question, budget=BUDGET)
        used = await topic(memory, 0)
        assert used.importance == 0.525
        assert used.access_count == 1, "for the other message; a machine is no person"
        server.say("It is Poplar 1234.")
        question = "On subject #2: which gate code was it?"
        async for _ in memory.stream("c", question, budget=BUDGET):
            pass
        assert (await topic(memory, 0)).importance > 0.525


@pytest.mark.requirement("C9")
async def test_a_turn_goes_well_if_its_use_cannot_be_noted(url, model, server, monkeypatch):
    async with open_memory(url, model=model) as memory:
        await memory.append("c", Message.user("Subject #1: the crane code is Walnut 4711."))
        await ask(memory, 2)
        await memory.context("c", BUDGET)

        async def refuse(*_, **__):
            raise ConflictError("many at once")

        monkeypatch.setattr(memory._engine.topics, "change", refuse)
        server.say("It is Walnut 4711.")
        turn = await memory.turn("c", "On subject #2: which crane code was it?", budget=BUDGET)
        assert turn.text == "It is Walnut 4711."


@pytest.mark.requirement("C9")
def test_use_is_detected_by_words_from_no_other_source():
    walnut = entry(0, Message.user("The crane code is Walnut 4711."))
    ana = entry(1, Message.user("Ana Silva paints boats in Lisbon."))
    both = [walnut, ana]
    assert used_entries("It is 4711.", both, ["Which code?"]) == [walnut]
    assert used_entries("Ana Silva does.", both, ["Who paints?"]) == [ana]
    assert used_entries("Somebody paints.", both, ["Who?"]) == [], "one plain word is chance"
    assert used_entries("Ana Silva does.", both, ["What does Ana Silva do?"]) == []
    assert used_entries("", both, []) == used_entries("Yes.", [], []) == []


# -- C9: tags and search ----------------------------------------------------------------------


@pytest.mark.requirement("C9")
async def test_tags_can_be_added_and_removed(memory):
    await ask(memory, 1)
    tagged = await memory.tag_topic("c", 0, add=["work", "harbour", "work"])
    assert tagged.tags == ("harbour", "work")
    assert (await memory.tag_topic("c", 0, remove=["work", "other"])).tags == ("harbour",)
    for wrong in ("work", [""], [f"t{n}" for n in range(60)]):
        with pytest.raises(InputError):
            await memory.tag_topic("c", 0, add=wrong)
    assert (await topic(memory, 0)).tags == ("harbour",)
    assert (await topic(memory, 0)).access_count == 0


@pytest.mark.requirement("C9")
async def test_search_goes_across_topics_and_conversations_and_can_keep_to_some(memory):
    for conversation, subjects in (("a", (1, 2)), ("b", (1, 3))):
        await talk(memory, *subjects, conversation=conversation)
    await memory.tag_topic("a", 0, add=["cranes", "work"])
    await memory.tag_topic("b", 2, add=["cranes"])

    async def found(conversation, **filters):
        hits = await memory.recall(conversation, "harbour crane tonnes", limit=50, **filters)
        return {(hit.conversation, hit.seq) for hit in hits}

    everything = await found(None)
    assert everything >= {("a", 0), ("a", 2), ("b", 0), ("b", 2)}
    assert await found("a", topic=2) <= {("a", 2), ("a", 3)}
    assert ("a", 2) in await found("a", topic=2)
    tagged = await found(None, tags=["cranes"])
    assert {("a", 0), ("b", 2)} <= tagged <= {("a", 0), ("a", 1), ("b", 2), ("b", 3)}
    assert await found(None, tags=["cranes", "work"]) <= {("a", 0), ("a", 1)}
    assert await found(None, tags=["unknown"]) == set()
    await memory.append("b", Message.user(about(3, 7)))
    assert ("b", 4) in await found(None, tags=["cranes"]), "what is new in the topic, too"
    with pytest.raises(InputError, match="no topic 1"):
        await found("a", topic=1)
    with pytest.raises(InputError, match="specify its conversation"):
        await found(None, topic=0)


@pytest.mark.requirement("C9")
async def test_looking_for_a_tag_embeds_only_where_it_is(memory, url):
    embedder = memory._engine.topics.embedders._embedder._embedder
    await ask(memory, 1, conversation="a")
    await ask(memory, 2, conversation="b")
    await memory.tag_topic("a", 0, add=["cranes"])
    before = [text for text in embedder.asked if text == about(2)]
    await memory.recall(None, "crane", tags=["cranes"])
    assert [text for text in embedder.asked if text == about(2)] == before


@pytest.mark.requirement("C9")
async def test_search_in_a_merged_topic_finds_what_came_from_both(memory):
    await talk(memory, 1, 2, 3)
    await memory.merge_topics("c", 0, 2)
    hits = await memory.recall("c", "harbour crane", limit=50, topic=2)
    assert {hit.seq for hit in hits} == {0, 1, 2, 3}


@pytest.mark.requirement("C9")
async def test_search_by_topic_continues_while_the_embedder_fails(url):
    embedder = Subjects()
    async with open_memory(url, embedder=embedder) as memory:
        await talk(memory, 1, 2)
        await memory.topics("c")
        await memory.append("c", Message.user(about(1, 5)))
        embedder.down = True
        hits = await memory.recall("c", "harbour crane", topic=0)
        assert 0 in [hit.seq for hit in hits]
        assert (await memory.tag_topic("c", 0, add=["x"])).tags == ("x",)
        assert (await memory.feedback("c", 2, -1)).importance == 0.75
        assert (await memory.merge_topics("c", 0, 2)).total_messages == 4


# -- C7: two at once --------------------------------------------------------------------------


@pytest.mark.requirement("C7")
async def test_an_outdated_assignment_is_decided_again(tmp_path, clock):
    url = f"sqlite:///{tmp_path}/a.db"
    async with open_memory(url, clock) as one, open_memory(url, clock) as two:
        await talk(one, 1, 2)
        slow = one._engine.topics.embedders._embedder
        quick = slow._embedder.embed

        async def overtaken(texts):
            vectors = await quick(texts)
            await ask(two, 1, 5)
            await two.topics("c")
            await two.tag_topic("c", 0, add=["seen"])
            return vectors

        await one.append("c", Message.user(about(3)))
        slow._embedder.embed = _once(overtaken, quick)
        found = await one.topics("c")
        assert sum(t.total_messages for t in found) == 7
        assert {t.topic_id for t in found} == {0, 2, 4}
        assert (await topic(one, 0)).tags == ("seen",)
        await check_books(one)
        await check_books(two)


def _once(first, then):
    calls = []

    async def embed(texts):
        calls.append(texts)
        return await (first if len(calls) == 1 else then)(texts)

    return embed


@pytest.mark.requirement("C7")
async def test_a_fold_that_comes_after_the_user_came_back_hides_nothing(url):
    """One process digests the topic while another restores it."""
    state = {}

    async def slowly(brief):
        if state.pop("once", None):
            memory = state["memory"]
            await ask(memory, 2)
            await memory.append("c", Message.user(about(1, 30)))
            await memory.topics("c")
        return await offline(brief)

    offline = offline_summarizer(counter().text)
    async with open_memory(url, summarizer=slowly) as memory:
        state |= {"memory": memory}
        await talk(memory, *[1] * 7)
        await memory.context("c", BUDGET)
        for number in range(7, 12):
            await ask(memory, 1, number)
        state["once"] = True
        await memory.context("c", BUDGET)
        context = await memory.context("c", BUDGET)
        shown = [message.text for message in context["recent"].messages]
        assert answer(1, 0) in shown, "all of it is back until the answer"
        assert (await topic(memory, 0)).archived_messages == 0
        await check_books(memory)


def test_rules_are_checked():
    assert replace(RULES, max_topics=1).max_topics == 1
    for wrong in ({"max_topics": 0}, {"priority_floor": 2}, {"similarity_threshold": 0.9}):
        with pytest.raises(InputError):
            Rules(**wrong)
