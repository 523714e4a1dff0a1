"""Imports for one person: what they said elsewhere is known here."""

import gc
import json

import pytest

from firnline import Message, sync
from firnline.cli.program import main
from firnline.errors import InputError
from support import foreign_exports


@pytest.fixture
def export(tmp_path):
    path = tmp_path / "chatgpt.json"
    path.write_bytes(foreign_exports.SAMPLES["chatgpt"])
    return path


async def people(memory):
    return {head.person for head in await memory.conversations(limit=1_000)}


async def test_every_imported_conversation_and_branch_is_with_the_person(memory, export, caplog):
    report = await memory.import_file(export, person="ana")
    heads = await memory.conversations(person="ana")
    assert len(heads) == report.conversations + report.branches > 0
    again = await memory.import_file(export, person="ana")
    assert (again.added, again.known) == (0, report.messages)
    with pytest.raises(InputError, match="with another person"):
        await memory.import_file(export, person="ben")
    gc.collect()
    assert not [one for one in caplog.records if one.name == "asyncio"]
    assert await people(memory) == {"ana"}
    assert (await memory.import_file(export)).added == 0
    assert await people(memory) == {"ana"}


async def test_what_was_imported_with_no_person_can_be_given_one(memory, export):
    await memory.import_file(export)
    assert await people(memory) == {None}
    await memory.import_file(export, person="ana")
    assert await people(memory) == {"ana"}


async def test_what_was_said_elsewhere_is_a_fact(memory, tmp_path):
    path = tmp_path / "chat.jsonl"
    said = [{"role": "user", "content": "I live in Rome."}, {"role": "assistant", "content": "Ok."}]
    path.write_text(json.dumps({"messages": said}) + "\n")
    await memory.import_file(path, person="ana")
    (home,) = await memory.facts(person="ana")
    assert (home.attribute, home.value) == ("home city", "Rome")


async def test_a_firnline_export_says_itself_whom_it_is_with(memory, tmp_path):
    await memory.append("c", Message.user("Hello."), person="ana")
    path = tmp_path / "own.jsonl"
    await memory.export(path)
    with pytest.raises(InputError, match="import it without a person"):
        await memory.import_file(path, person="ben")
    with pytest.raises(InputError, match="person: 0 characters"):
        await memory.import_file(path, person="")


async def values(memory, person="ana"):
    return {(one.attribute, one.value, one.source) for one in await memory.facts(person=person)}


def write(path, value):
    path.write_text(json.dumps(value))
    return path


def instructed(key, told, started, answer=None):
    """A ChatGPT conversation with these custom instructions, as exports have them: hidden."""
    framed = f"The user provided the following about themselves:\n```{told}```"
    about = {"user_context_message_data": {"about_user_message": told}}
    context = {"content_type": "user_editable_context", "user_profile": framed}
    hidden = {**foreign_exports.HIDDEN, **(about if answer else {})}
    nodes = [
        {"id": "root", "parent": None, "children": [], "message": None},
        foreign_exports.node("i", "root", "user", content=context, metadata=hidden),
        foreign_exports.node("q", "i", text="Hello"),
    ]
    return foreign_exports.chatgpt(nodes, "q", key) | {"create_time": started}


@pytest.mark.parametrize("answer", ["framed", ""])
async def test_custom_instructions_are_the_persons_own_words(memory, tmp_path, answer):
    old = instructed("c1", "I live in Bern. I'm a nurse.", 1_700_000_000.0, answer)
    new = instructed("c2", "I live in Basel. I'm a nurse.", 1_730_000_000.0, answer)
    path = write(tmp_path / "conversations.json", [new, old])  # the newest first
    await memory.import_file(path, person="ana")
    found = {("home city", "Basel", "instructions"), ("job", "nurse", "instructions")}
    assert await values(memory) == found
    (head,) = [
        one for one in await memory.conversations(person="ana") if "custom" in one.conversation
    ]
    entries = await memory.read(head.conversation)
    assert [one.message.text for one in entries] == [
        "I live in Bern. I'm a nurse.",
        "I live in Basel. I'm a nurse.",
    ]
    assert (await memory.import_file(path, person="ana")).added == 0


async def test_what_claude_noted_of_a_person_is_known(memory, tmp_path):
    noted = (
        "**Work context**\n\nAna is a nurse at Charité. She lives in Basel with her husband Tom."
        " He works at Bosch. She mostly asks about her garden.\n\n**Personal**\n\nAna is allergic"
        " to nuts. Her sister Mia lives in Porto. She is a lawyer."
    )
    record = {"conversations_memory": noted, "project_memories": {"p-1": "Ana speaks Finnish."}}
    path = write(tmp_path / "memories.json", [record | {"account_uuid": "u"}])
    await memory.import_file(path, person="user-7")
    assert await values(memory, "user-7") >= {
        ("job", "nurse", "memory"),
        ("employer", "Charité", "memory"),
        ("home city", "Basel", "memory"),
        ("allergy", "nuts", "memory"),
        ("speaks", "Finnish", "memory"),
    }
    own = {one.value for one in await memory.facts(person="user-7") if one.subject == "user-7"}
    assert not own & {"Bosch", "Porto", "lawyer"}, "others are not the person"
    (nuts,) = [one for one in await memory.facts(person="user-7") if one.value == "nuts"]
    assert nuts.evidence[0].quote == "Ana is allergic to nuts."
    assert await memory.rebuild_facts("user-7") == len(await memory.facts(person="user-7"))


async def test_a_user_of_mem0_is_a_person_unless_another_is_named(memory, tmp_path):
    texts = ("Lives in Oslo", "Is vegan", "Has a dog named Rex", "Sister lives in Rome")
    rows = [{"id": str(n), "memory": text, "user_id": "sam"} for n, text in enumerate(texts)]
    path = write(tmp_path / "mem0.json", {"results": rows})
    await memory.import_file(path)
    facts = await memory.facts(person="sam")
    assert {(one.subject, one.attribute, one.value) for one in facts} == {
        ("sam", "home city", "Oslo"),
        ("sam", "diet", "vegan"),
        ("sam", "pet", "dog named Rex"),
        ("sister", "home city", "Rome"),
    }
    with pytest.raises(InputError, match="with another person"):
        await memory.import_file(path, person="ana")


def test_the_command_imports_for_a_person(tmp_path, export, capsys):
    store = f"sqlite:///{tmp_path}/store.db"
    main(["import", str(export), "--person", "ana", "--store", store])
    assert "chatgpt" in capsys.readouterr().out
    with sync.Memory.open(store) as memory:
        assert {head.person for head in memory.conversations()} == {"ana"}
