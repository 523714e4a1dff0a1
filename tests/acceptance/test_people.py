"""One person, all conversations: facts with evidence and time, on every store."""

import asyncio
import os
import random
from datetime import UTC, datetime, timedelta

import pytest

from acceptance.test_updates import CASES, CHATTER
from firnline import Memory, Message
from firnline.errors import ConflictError, InputError
from firnline.store import facts as fact_cards

START = datetime(2026, 3, 11, 12, tzinfo=UTC)


def said(text, day=0, name=None):
    return Message.user(text, created_at=START + timedelta(days=day), name=name)


async def values(memory, person="ana", **when):
    return [(fact.attribute, fact.value) for fact in await memory.facts(person=person, **when)]


@pytest.mark.promise("one-person")
async def test_a_fact_of_one_chat_is_known_in_all_and_a_newer_one_outdates_it(url):
    async with Memory.open(url) as memory:
        await memory.append("a", said("I live in Berlin. I have a dog named Rex."), person="ana")
        await memory.append("b", said("I moved to Lisbon last week.", 10), person="ana")
        await memory.append("c", said("I live in Rome.", 20), person="bob")
        assert await values(memory) == [("pet", "dog named Rex"), ("home city", "Lisbon")]
        assert await values(memory, as_of="2026-03-15") == [
            ("home city", "Berlin"),
            ("pet", "dog named Rex"),
        ]
        assert await values(memory, as_of=START - timedelta(days=1)) == []
        assert await values(memory, known_at=START + timedelta(days=1)) == await values(
            memory, as_of="2026-03-15"
        )
        fact = (await memory.facts(person="ana"))[-1]
        (evidence,) = fact.evidence
        assert (evidence.conversation, evidence.seq) == ("b", 0)
        assert evidence.quote == "I moved to Lisbon last week."
        assert fact.recorded_at == fact.valid_from == START + timedelta(days=10)
        berlin = (await memory.facts(person="ana", history=True))[0]
        assert (berlin.value, berlin.superseded_by) == ("Berlin", fact.id)
        assert berlin.valid_until == fact.valid_from
        assert berlin.ended_by == evidence
        assert (await memory.profile("ana")).text == (
            "- home city: Lisbon (said 2026-03-21)\n- pet: dog named Rex (said 2026-03-11)"
        )


@pytest.mark.promise("one-person")
async def test_a_conversation_is_not_given_to_another_person_by_an_append(url):
    async with Memory.open(url) as memory:
        await memory.append("a", said("I live in Berlin."), person="ana")
        with pytest.raises(ConflictError, match="describe"):
            await memory.append("a", said("I live in Rome.", 1), person="bob")
        await memory.append("a", said("I'm vegan.", 2))
        head = await memory.head("a")
        assert (head.entries, head.person) == (2, "ana")
        assert await values(memory) == [("home city", "Berlin"), ("diet", "vegan")]
        await memory.describe("a", person="bob")
        assert await values(memory) == []
        assert (await memory.profile("ana")).text == ""
        assert await values(memory, "bob") == [("home city", "Berlin"), ("diet", "vegan")]
        assert [head.conversation for head in await memory.conversations(person="bob")] == ["a"]
        assert await memory.conversations(person="ana") == []
        with pytest.raises(InputError):
            await memory.append("b", said("Hi."), person=" ")


@pytest.mark.promise("one-person")
async def test_conversations_of_before_are_read_when_their_person_is_set(url):
    async with Memory.open(url) as memory:
        await memory.append("a", [said("I live in Berlin."), said("I'm vegan.", 1)])
        assert await values(memory) == []
        await memory.describe("a", person="ana")
        assert await values(memory) == [("home city", "Berlin"), ("diet", "vegan")]
        assert (await memory.check(thorough=True))[0].state != "broken"


@pytest.mark.promise("current-facts-win")
async def test_the_current_fact_is_first_across_conversations(url):
    wrong = []
    async with Memory.open(url, embedder=None, worker=False) as memory:
        for number, case in enumerate(CASES):
            person = f"p{number}"
            chats = [[case.old], CHATTER[:4], [case.new], CHATTER[4:]]
            for day, texts in enumerate(chats):
                entries = [said(text, day) for text in texts]
                await memory.append(f"{person}-{day}", entries, person=person)
            hits = await memory.recall(None, case.question, person=person)
            held = await memory.facts(person=person)
            known = [fact for fact in held if fact.evidence[-1].quote == case.new]
            shown = (await memory.profile(person)).text
            marked = [hit.superseded_in for hit in hits if hit.message.text == case.old]
            if (
                hits[0].message.text != case.new
                or any(hit != f"{person}-2" for hit in marked)
                or len(known) != 1
                or known[0].value not in shown
                or any(fact.evidence[-1].quote == case.old for fact in held)
            ):
                wrong.append((case.question, [h.message.text for h in hits], shown))
    assert wrong == []


@pytest.mark.promise("one-person")
async def test_a_reverted_fact_makes_way_for_what_it_replaced(url):
    async with Memory.open(url) as memory:
        await memory.append("a", said("I live in Berlin."), person="ana")
        await memory.append("b", said("I moved to Lisbon.", 1), person="ana")
        (lisbon,) = await memory.facts(person="ana")
        before = await memory.profile("ana")
        gone = await memory.revert_fact("ana", lisbon.id)
        assert (gone.value, gone.reverted_at is None) == ("Lisbon", False)
        assert await values(memory) == [("home city", "Berlin")]
        after = await memory.profile("ana")
        assert after.version > before.version
        assert "Berlin" in after.text
        assert "Lisbon" not in after.text
        history = await memory.facts(person="ana", history=True)
        assert {fact.value for fact in history} == {"Berlin", "Lisbon"}
        with pytest.raises(InputError, match="reverted already"):
            await memory.revert_fact("ana", lisbon.id)
        assert await memory.rebuild_facts("ana") == 1  # what was reverted stays so
        await memory.append("c", said("I live in Lisbon, really.", 2), person="ana")
        assert await values(memory) == [("home city", "Lisbon")]


async def test_others_and_the_assistant_state_nothing_of_the_person(url):
    async with Memory.open(url) as memory:
        talk = [
            said("My sister lives in Madrid."),
            Message.assistant("You live in Paris. I live in Oslo.", created_at=START),
            said("I live in Bonn.", name="Bob"),
            said("I'm vegan.", name="Ana"),
            Message.assistant("Order 1138 has shipped.", created_at=START),
        ]
        await memory.append("a", talk, person="ana")
        found = await memory.facts(person="ana")
        assert {(fact.subject, fact.attribute, fact.value) for fact in found} == {
            ("sister", "home city", "Madrid"),
            ("bob", "home city", "Bonn"),
            ("ana", "diet", "vegan"),
            ("order 1138", "order 1138 · status", "shipped"),
        }


async def test_two_processes_that_read_the_same_messages_know_each_fact_once(url):
    texts = [said(f"I live in City{n}. Order {n} is pending.", n) for n in range(6)]
    async with Memory.open(url) as one:
        await one.append("a", texts)
        await one.store.describe(one._key("a"), person="ana")  # it is not read by this
        people = [Memory(one.store) for _ in range(4)]
        await asyncio.gather(*(memory.profile("ana") for memory in people))
        held = [await values(memory) for memory in (one, *people)]
        assert all(found == held[0] for found in held)
        assert len(held[0]) == 7
        assert [(await m.profile("ana")).text for m in people] == [
            (await one.profile("ana")).text
        ] * 4


@pytest.mark.promise("erase-total")
async def test_erasing_a_conversation_withdraws_the_facts_that_rest_on_it(url):
    async with Memory.open(url) as memory:
        await memory.append("a", said("I live in Berlin. I'm vegan."), person="ana")
        await memory.append("b", said("I moved to Lisbon.", 1), person="ana")
        await memory.append("c", said("I'm vegan.", 2), person="ana")
        await memory.profile("ana")
        await memory.erase("b")
        assert await values(memory) == [("diet", "vegan"), ("home city", "Berlin")]
        assert "Lisbon" not in (await memory.profile("ana")).text
        await memory.erase("a")
        assert await values(memory) == [("diet", "vegan")]
        (vegan,) = await memory.facts(person="ana")
        assert [one.conversation for one in vegan.evidence] == ["c"]
        await memory.append(
            "d", [said("I'm a nurse.", 3), said("I live in Rome.", 4)], person="ana"
        )
        await memory.erase_messages("d", 1)
        assert await values(memory) == [("diet", "vegan"), ("job", "nurse")]
        assert (await memory.profile("ana")).receipt["facts"] == 2


@pytest.mark.promise("erase-total")
async def test_erasing_a_person_erases_all_that_is_theirs(url):
    async with Memory.open(url) as memory:
        await memory.append("a", said("I live in Berlin."), person="ana")
        await memory.branch("a", 0, "a2")
        await memory.append("b", said("I'm vegan.", 1), person="ana")
        await memory.append("c", said("I live in Rome.", 1), person="bob")
        await memory.profile("ana")
        erased = await memory.erase_person("ana")
        names = {one.conversation for one in erased.conversations} | {
            name for one in erased.conversations for name in one.branches
        }
        assert (names, erased.survives) == ({"a", "a2", "b"}, ())
        assert [head.conversation for head in await memory.conversations()] == ["c"]
        assert await values(memory) == []
        assert await values(memory, "bob") == [("home city", "Rome")]
        kinds = (fact_cards.FACT, fact_cards.PROFILE, fact_cards.PROGRESS)
        left = [card for kind in kinds for card in await memory.store.cards(kind)]
        assert {b"Berlin" in card.body for card in left} <= {False}
        assert not [card for card in left if b"ana" in card.body]


@pytest.mark.promise("erase-total")
async def test_no_byte_of_an_erased_fact_is_left_on_disk(tmp_path):
    async with Memory.open(f"sqlite:///{tmp_path / 'x.db'}") as memory:
        await memory.append("a", said("I moved to Reykjavik."), person="ana")
        await memory.append("b", said("I'm vegan.", 1), person="ana")
        assert "Reykjavik" in (await memory.profile("ana")).text
        await memory.erase("a")
        assert "vegan" in (await memory.profile("ana")).text
        for file in tmp_path.iterdir():
            assert b"eykjavi" not in file.read_bytes(), file


@pytest.mark.promise("one-person")
async def test_every_context_of_a_person_says_what_holds_and_only_of_them(url):
    async with Memory.open(url, embedder=None, worker=False) as memory:
        await memory.append("a", said("I live in Berlin."), person="ana")
        await memory.append("b", said("I moved to Lisbon last week.", 1), person="ana")
        await memory.append("z", said("I live in Rome.", 1), person="bob")
        context = await memory.context("new", 8_000, "Where do I live?", person="ana")
        assert await memory.head("new") is None  # a context stores nothing
        profile, elsewhere = context["profile"], context["elsewhere"]
        assert "- home city: Lisbon (said 2026-03-12)" in profile.messages[0].text
        assert [section.name for section in context.sections] == ["profile", "elsewhere"]
        assert "[conversation b]\n(0, 2026-03-12) user: I moved to Lisbon" in (
            elsewhere.messages[0].text
        )
        assert elsewhere.why.startswith("b: 0")
        assert context.pieces[-1].message == elsewhere.messages[0]
        assert context.accounting.profile == profile.tokens
        assert context.accounting.elsewhere == elsewhere.tokens
        assert context.tokens <= context.budget.limit == 8_000
        await memory.append("new", said("Where do I live?", 2), person="ana")
        stored = await memory.context("new", 8_000, "Where do I live?")  # its person is known
        assert stored["profile"] == profile
        assert stored.messages[-1].text == "Where do I live?"
        other = await memory.context("z", 8_000, "Where do I live?")
        assert not any("Lisbon" in message.text for message in other.messages)
        with pytest.raises(ConflictError, match="another person"):
            await memory.context("z", 8_000, person="ana")
        small = await memory.context("new", 200, "Where do I live?")
        assert small.tokens <= 200
        # What a context says of a person is never read as what they say.
        await memory.append("new", [*context.messages, Message.assistant("Lisbon.")])
        assert await values(memory) == [("home city", "Lisbon")]
        assert len((await memory.facts(person="ana"))[0].evidence) == 1


@pytest.mark.promise("current-facts-win")
async def test_a_context_has_the_current_fact_of_every_kind(url):
    wrong = []
    async with Memory.open(url, embedder=None, worker=False) as memory:
        for number, case in enumerate(CASES[::2]):
            person = f"p{number}"
            for day, text in enumerate([case.old, case.new]):
                await memory.append(f"{person}-{day}", said(text, day), person=person)
            context = await memory.context(f"{person}-9", 4_000, case.question, person=person)
            (held,) = [
                fact
                for fact in await memory.facts(person=person)
                if fact.evidence[-1].quote == case.new
            ]
            shown = context["profile"].messages[0].text
            if f": {held.value} (" not in shown or case.new not in str(context.messages):
                wrong.append((case.question, shown))
    assert wrong == []


@pytest.mark.promise("prefix-stable")
async def test_a_profile_changes_the_start_of_a_prompt_only_when_a_fact_changes():
    async with Memory.open("memory:", embedder=None, worker=False) as memory:
        await memory.append("other", said("I live in Berlin. I'm vegan."), person="ana")
        stable = []
        for turn in range(60):
            text = "I moved to Lisbon." if turn == 30 else f"Tell me of the tide of day {turn}."
            await memory.append("chat", said(text, turn + 1), person="ana")
            context = await memory.context("chat", 100_000, text)
            await memory.append("chat", Message.assistant(f"The tide of day {turn} is high."))
            stable.append(context["profile"].messages[0].text)
        assert len(set(stable)) == 2
        assert [n for n in range(1, 60) if stable[n] != stable[n - 1]] == [30]


async def test_what_a_context_reads_does_not_grow_with_the_conversations_of_a_person():
    reads = {}
    for count in (3, 40):
        async with Memory.open("memory:", embedder=None, worker=False) as memory:
            for n in range(count):
                await memory.append(f"c{n}", said("I live in Lisbon.", n), person="ana")
            await memory.context("new", 8_000, person="ana")
            store, calls = memory.store, []
            for name in ("cards", "read", "at", "head", "conversations"):
                real = getattr(store, name)

                def counted(*given, real=real, name=name, calls=calls, **more):
                    calls.append(name)
                    return real(*given, **more)

                setattr(store, name, counted)
            await memory.context("new", 8_000, person="ana")
            reads[count] = sorted(calls)
    assert reads[3] == reads[40]


async def test_a_profile_does_not_outlive_a_conversation_that_another_program_erased():
    async with Memory.open("memory:", embedder=None, worker=False) as memory:
        await memory.append("a", said("I moved to Lisbon."), person="ana")
        await memory.append("b", said("I'm vegan.", 1), person="ana")
        assert "Lisbon" in (await memory.profile("ana")).text
        await memory.store.erase(memory._key("a"))
        assert (await memory.profile("ana")).text == "- diet: vegan (said 2026-03-12)"


SAID = [
    "I live in Berlin.",
    "I moved to Lisbon.",
    "I'm vegan.",
    "I eat meat again.",
    "I have a dog named Rex.",
    "I no longer live in Lisbon.",
    "Order 7 is pending.",
    "Order 7 has shipped.",
    "We decided to use Postgres.",
    "Hello!",
]


async def derived(memory, names):
    """All that is derived of a person's conversations, without what differs by chance."""
    facts = await memory.facts(person="ana", history=True)
    question = "Where do I live?"
    contexts = [await memory.context(name, 2_000, question, person="ana") for name in names]
    return (
        [(one.id, one.value, one.valid_from, one.valid_until, one.superseded_by) for one in facts],
        (await memory.profile("ana")).text,
        [[(m.role, m.text) for m in context.messages] for context in contexts],
        [(await memory.state(name)).important_data for name in names if await memory.head(name)],
    )


@pytest.mark.promise("one-person")
@pytest.mark.parametrize("seed", range(20 if "FIRNLINE_TORTURE" in os.environ else 1))
async def test_at_every_message_what_is_derived_equals_the_replay_of_the_log(url, seed):
    rng = random.Random(seed)
    log = []
    async with Memory.open(url, embedder=None, worker=False) as memory:
        for number in range(5):
            message = said(rng.choice(SAID), rng.randrange(9))
            log.append((rng.choice("ab"), message))
            await memory.append(*log[-1], person="ana")
            async with Memory.open("memory:", embedder=None, worker=False) as replay:
                for name, one in log:
                    await replay.append(name, one, person="ana")
                assert await derived(memory, "abc") == await derived(replay, "abc"), number
        held_before = await derived(memory, "abc")
        await memory.rebuild_facts("ana")
        assert await derived(memory, "abc") == held_before
