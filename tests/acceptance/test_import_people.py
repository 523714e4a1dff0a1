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


def test_the_command_imports_for_a_person(tmp_path, export, capsys):
    store = f"sqlite:///{tmp_path}/store.db"
    main(["import", str(export), "--person", "ana", "--store", store])
    assert "chatgpt" in capsys.readouterr().out
    with sync.Memory.open(store) as memory:
        assert {head.person for head in memory.conversations()} == {"ana"}
