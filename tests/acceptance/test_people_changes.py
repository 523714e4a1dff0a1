"""What happens to the facts of a person when conversations are erased, given away and imported."""

import asyncio
import logging
from datetime import UTC, datetime, timedelta

import pytest

from firnline import Memory, Message, strategies
from firnline.errors import ConflictError, UnknownPerson
from firnline.log.entry import Project
from firnline.store import open_store
from firnline.testing.drafts import drafts

START = datetime(2026, 3, 11, 12, tzinfo=UTC)
OPTIONS = {"embedder": None, "worker": False}


def said(text, day=0, name=None):
    return Message.user(text, created_at=START + timedelta(days=day), name=name)


async def values(memory, person="ana", **when):
    return [(fact.attribute, fact.value) for fact in await memory.facts(person=person, **when)]


async def names(memory):
    return [head.conversation for head in await memory.conversations()]


@pytest.mark.promise("erase-total")
async def test_erasing_a_person_leaves_the_origin_and_its_other_branches(url):
    async with Memory.open(url, **OPTIONS) as memory:
        await memory.append("template", [said("Welcome to the course."), said("Chapter one.", 1)])
        for person in ("ana", "eva"):
            await memory.branch("template", 1, f"{person}-1")
            await memory.describe(f"{person}-1", person=person)
            await memory.append(f"{person}-1", said(f"I live in {person.title()}ville.", 2))
        await memory.branch("ana-1", 2, "ana-2")
        await memory.branch("ana-1", 2, "lent")
        await memory.describe("lent", person="eva")
        await memory.append("lent", said("I'm vegan.", 3))
        erased = await memory.erase_person("ana")
        assert await names(memory) == ["eva-1", "lent", "template"]
        assert {one.conversation for one in erased.conversations} == {"ana-1", "ana-2", "lent"}
        assert erased.facts == 1
        lent = await memory.read("lent")
        assert [entry.seq for entry in lent if entry.erased_at] == [2]
        assert await values(memory, "eva") == [("home city", "Evaville"), ("diet", "vegan")]
        assert set(erased.survives) == {"eva-1", "lent", "template"}  # what the template says
        with pytest.raises(UnknownPerson):
            await memory.erase_person("ana")


@pytest.mark.promise("one-person")
async def test_a_reverted_fact_does_not_come_back_when_something_else_is_erased(url):
    async with Memory.open(url, **OPTIONS) as memory:
        await memory.append("a", [said("Hello."), said("I live in Berlin.", 1)], person="ana")
        await memory.append("a", said("I live in Lisbon.", 2), person="ana")
        await memory.branch("a", 2, "b")
        (lisbon,) = await memory.facts(person="ana")
        await memory.revert_fact("ana", lisbon.id)
        assert await values(memory) == [("home city", "Berlin")]
        await memory.erase_messages("a", 0)
        assert await values(memory) == [("home city", "Berlin")]
        await memory.erase("a")
        assert await values(memory) == [("home city", "Berlin")]
        await memory.rebuild_facts("ana")
        assert await values(memory) == [("home city", "Berlin")]


@pytest.mark.promise("one-person")
async def test_what_was_stored_without_being_read_is_known_in_the_next_context(url, tmp_path):
    """By an import, by another program, or by a process that stopped after it had appended."""
    async with Memory.open(url, **OPTIONS) as memory:
        await memory.append("a", said("I live in Berlin."), person="ana")
        await memory.store.append(memory._key("b"), drafts(["I'm vegan."]), person="ana")
        await memory.store.append(memory._key("a"), drafts(["I have a cat."]))
        context = await memory.context("new", 8_000, person="ana")
        shown = context["profile"].messages[0].text
        assert all(text in shown for text in ("Berlin", "vegan", "cat"))
        await memory.append("c", said("I'm a nurse.", 3), person="ana")
        await memory.append("c", said("I moved to Lisbon.", 4))  # the caller names nobody
        context = await memory.context("new", 8_000, person="ana")
        assert "Lisbon" in context["profile"].messages[0].text
        await memory.export(tmp_path / "all.jsonl")
    async with Memory.open("memory:", **OPTIONS) as other:
        await other.import_(tmp_path / "all.jsonl")
        context = await other.context("new", 8_000, person="ana")
        assert "Lisbon" in context["profile"].messages[0].text


async def test_statements_that_are_made_at_once_are_all_stored_and_each_once(tmp_path, caplog):
    url = f"sqlite:///{tmp_path / 'x.db'}"
    caplog.set_level(logging.WARNING, "firnline")
    async with Memory.open(url, **OPTIONS) as one, Memory.open(url, **OPTIONS) as other:
        both = [one, other]
        await asyncio.gather(
            *(
                both[n % 2].append(f"c{n % 30}", said(f"Order {n} is pending.", n), person="ana")
                for n in range(200)
            )
        )
        found = await one.facts(person="ana")
        assert len(found) == len({fact.subject for fact in found}) == 200
        assert await other.facts(person="ana") == found
    assert not [record for record in caplog.records if "facts" in record.message]


@pytest.mark.promise("one-person")
async def test_the_version_of_a_profile_never_goes_back():
    async with Memory.open("memory:", **OPTIONS) as memory:
        await memory.append("a", said("I live in Berlin."), person="ana")
        await memory.append("b", said("I'm vegan.", 1), person="ana")
        first = await memory.profile("ana")
        assert await memory.rebuild_facts("ana") == 2
        assert await memory.profile("ana") == first
        seen = [first.version]
        for step in range(3):
            await memory.append("c", said(f"I have a cat named Tom{step}.", 2 + step), person="ana")
            seen.append((await memory.profile("ana")).version)
            await memory.erase("c")
            seen.append((await memory.profile("ana")).version)
        assert seen == sorted(set(seen))


@pytest.mark.promise("one-person")
async def test_many_orders_do_not_drive_out_what_matters():
    async with Memory.open("memory:", **OPTIONS) as memory:
        await memory.append("a", said("I live in Berlin. I'm vegan."), person="ana")
        await memory.append(
            "b", [said(f"Order {n} is pending.", 1 + n) for n in range(600)], person="ana"
        )
        lines = (await memory.profile("ana")).text.splitlines()
        assert {line.partition(":")[0] for line in lines[:2]} == {"- home city", "- diet"}
        assert len(await memory.facts(person="ana")) == 602


@pytest.mark.promise("one-person")
@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([("I live in Rome.", "Ana")], [("user_8812", "Rome")]),
        ([("Hi.", "Ana"), ("I live in Rome.", None)], [("user_8812", "Rome")]),
        ([("Hi.", "Ana"), ("I live in Oslo.", "Bob")], [("bob", "Oslo")]),
        ([("Hi.", None), ("I live in Oslo.", "Bob")], [("bob", "Oslo")]),
        ([("Hi.", "Bob"), ("I live in Rome.", "USER_8812")], [("user_8812", "Rome")]),
    ],
)
async def test_who_speaks_first_is_the_person(messages, expected):
    async with Memory.open("memory:", **OPTIONS) as memory:
        for day, (text, name) in enumerate(messages):
            await memory.append("a", said(text, day, name), person="user_8812")
        for _ in range(2):
            found = await memory.facts(person="user_8812")
            assert [(fact.subject, fact.value) for fact in found] == expected
            await memory.rebuild_facts("user_8812")


@pytest.mark.promise("one-person")
async def test_a_conversation_can_be_with_no_person_again(url):
    async with Memory.open(url, **OPTIONS) as memory:
        await memory.append("a", said("I live in Berlin."), person="ana")
        await memory.append("b", said("I'm vegan.", 1), person="ana")
        head = await memory.describe("a", person="")
        assert head.person is None
        assert await values(memory) == [("diet", "vegan")]
        await memory.append("a", said("I live in Rome.", 2), person="eva")
        assert await values(memory, "eva") == [("home city", "Rome")]
        with pytest.raises(ConflictError) as error:
            await memory.append("a", said("Hi.", 3), person="bob")
        assert "eva" not in str(error.value)


@pytest.mark.promise("one-person")
async def test_a_project_shows_a_person_no_other_persons_conversations(url):
    async with Memory.open(url, strategy=strategies.project(), **OPTIONS) as memory:
        await memory.save_project(Project("alps"))
        for day, (name, person) in enumerate((("a", "ana"), ("b", "bob"), ("c", "ana"))):
            text = f"{person} says the secret word is {name}word."
            await memory.append(name, said(text, day), person=person)
            await memory.describe(name, project="alps")
        shown = str((await memory.context("c", 8_000)).messages)
        assert "aword" in shown
        assert "bword" not in shown
        tools = memory.tools("c")
        calls = [
            ("search_history", {"query": "secret word"}),
            ("get_extended_context", {"count": 20}),
            ("get_messages_by_date", {"date": "2026-03-12"}),
            ("get_message_by_id", {"id": "b:0"}),
        ]
        answers = [await tools[name](**arguments) for name, arguments in calls]
        assert "aword" in answers[0]
        assert all("bword" not in answer for answer in answers)


async def test_a_copy_in_a_branch_is_no_second_evidence():
    async with Memory.open("memory:", **OPTIONS) as memory:
        await memory.append("a", said("I live in Berlin."), person="ana")
        await memory.branch("a", 0, "b")
        (fact,) = await memory.facts(person="ana")
        assert len(fact.evidence) == 1
        await memory.append("b", said("I live in Berlin.", 1))
        (fact,) = await memory.facts(person="ana")
        assert len(fact.evidence) == 2


async def test_all_of_a_long_message_is_read():
    async with Memory.open("memory:", **OPTIONS) as memory:
        text = "The sea was calm and the wind was low that day. " * 200
        await memory.append("a", said(f"{text}I live in Berlin."), person="ana")
        assert await values(memory) == [("home city", "Berlin")]


async def test_facts_are_read_from_a_store_that_another_process_writes(tmp_path):
    url = f"sqlite:///{tmp_path / 'x.db'}"
    async with Memory.open(url, **OPTIONS) as one:
        await one.append("a", said("I live in Berlin."), person="ana")
        store = open_store(url)
        await store.open()
        await store.append(one._key("b"), drafts(["I'm vegan."]), person="ana")
        await store.close()
        assert len(await one.facts(person="ana")) == 2
