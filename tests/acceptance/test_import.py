"""Imports from other programs: everything arrives once, and what was skipped is in the report."""

import asyncio
import json
import random
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firnline import Memory, Message, sync
from firnline.errors import InputError
from firnline.transfer.importer import name_of
from support import foreign_exports
from support.message_strategies import anything

CHANGED = "a message that changed since the last import; the first version is kept"
UNREAL = "a time that does not exist"


async def texts(memory, conversation):
    return [entry.message.text for entry in await memory.read(conversation)]


async def everything(memory):
    return {
        head.conversation: (head.metadata, head.hash, await texts(memory, head.conversation))
        for head in await memory.conversations(limit=1_000)
    }


@pytest.fixture
def samples(tmp_path):
    """A file of each format."""
    folder = tmp_path / "samples"
    folder.mkdir()
    for name, data in foreign_exports.SAMPLES.items():
        (folder / f"{name}.{'txt' if name == 'whatsapp' else 'json'}").write_bytes(data)
    return folder


async def test_a_second_import_adds_nothing(memory, samples):
    before = {}
    for path in sorted(samples.iterdir()):
        report = await memory.import_file(path)
        assert report.formats == (path.stem,)
        assert report.added == report.messages > 0
        assert report.known == 0
        known = await everything(memory)
        assert len(known) - len(before) == report.conversations + report.branches
        again = await memory.import_file(path)
        assert (again.added, again.known) == (0, report.messages)
        assert CHANGED not in again.left_out
        before = known
    assert await everything(memory) == before
    for head in await memory.conversations():
        assert await memory.verify(head.conversation)
    (samples / "link.json").symlink_to(samples / "claude.json")
    whole = await memory.import_file(samples)
    assert whole.left_out["a link (not followed)"].examples == ["link.json"]
    assert (whole.added, set(whole.formats)) == (0, set(foreign_exports.SAMPLES))


async def test_branches_are_conversations_that_begin_as_theirs_does(memory, tmp_path):
    path = tmp_path / "conversations.json"
    path.write_bytes(foreign_exports.dumped([foreign_exports.branched()]))
    report = await memory.import_file(path)
    assert (report.conversations, report.branches, report.messages) == (1, 2, 7)
    main_head, *others = await memory.conversations()
    assert main_head.metadata == {"title": "Tea", "source": "chatgpt", "source_id": "conv-1"}
    assert (await texts(memory, "chatgpt/conv-1"))[-1] == "Assam, with milk."
    by_origin = {head.metadata["branch"]["at"]: head for head in others}
    assert all(head.metadata["title"] == "Tea" for head in others)
    assert await texts(memory, by_origin[2].conversation) == [
        "Which tea is good in the evening?",
        "Rooibos; it has no caffeine.",
        "And in the morning?",
        "Coffee.",
    ]
    assert await texts(memory, by_origin[-1].conversation) == [
        "Which tea helps me sleep?",
        "Camomile.",
    ]


async def test_a_newer_file_adds_what_is_new_wherever_it_is(tmp_path):
    path = tmp_path / "conversations.json"
    chat = foreign_exports.branched()
    path.write_bytes(foreign_exports.dumped([chat]))
    async with Memory.open("memory:") as memory:
        await memory.import_file(path)
        await memory.append("chatgpt/conv-1", Message.user("said here"))
        before = await everything(memory)
        nodes = [
            *chat["mapping"].values(),
            foreign_exports.node(
                "q3", "a2-old", text="Why coffee?"
            ),  # the owner went to the other answer
            foreign_exports.node("a3", "q3", "assistant", "Because."),
            foreign_exports.node("q4", "a2-new", text="With sugar?"),
        ]
        path.write_bytes(foreign_exports.dumped([foreign_exports.chatgpt(nodes, "a3")]))
        report = await memory.import_file(path)
        assert (report.added, report.known, report.branches) == (3, 7, 3)
        after = await everything(memory)
        for name, (_, _, said) in before.items():
            assert after[name][2][: len(said)] == said, "nothing stored is touched"
        longer = [name for name in before if len(after[name][2]) > len(before[name][2])]
        assert [after[name][2][-2:] for name in longer] == [["Why coffee?", "Because."]]
        (new,) = set(after) - set(before)
        assert after[new][2][-2:] == ["Assam, with milk.", "With sugar?"]
        assert (await memory.import_file(path)).added == 0


def chat(*messages):
    """A chat of Telegram's: the messages' texts with their times."""
    about = {"type": "message", "from": "Ana", "date": None}
    said = [
        {"id": at, "text": text, "date_unixtime": time, **about}
        for at, (text, time) in enumerate(messages)
    ]
    return {"name": "Ana", "type": "personal_chat", "id": 7, "messages": said}


def fact(text, time):
    return [{"id": "m1", "memory": text, "user_id": "ana", "created_at": time}]


def asked(text, time):
    message = {
        "author": {"role": "user"},
        "create_time": time,
        "content": {"content_type": "text", "parts": [text]},
    }
    return [{"id": "c", "mapping": {"q": {"parent": None, "children": [], "message": message}}}]


async def test_what_a_newer_file_says_differently_is_in_the_report(tmp_path):
    path, time = tmp_path / "file.json", "1704164645"
    newer = [
        ("telegram/7", chat(("at 5", time)), chat(("at 6", time), ("ok", time))),
        ("mem0/ana", fact("Lives in Bergen.", ""), fact("Lives in Oslo.", "")),
        ("chatgpt/c", asked("Which te", 1.7e9), asked("Which tea?", 1.7e9)),
    ]
    async with Memory.open("memory:") as memory:
        for name, old, new in newer:
            path.write_text(json.dumps(old))
            assert CHANGED not in (await memory.import_file(path)).left_out
            before = await texts(memory, name)
            path.write_text(json.dumps(new))
            report = await memory.import_file(path)
            assert (report.known, report.left_out[CHANGED].count) == (1, 1)
            assert report.left_out[CHANGED].examples[0].startswith(f"{name}, ")
            assert (await texts(memory, name))[:1] == before


async def test_a_time_that_does_not_exist_is_in_the_report(tmp_path):
    path = tmp_path / "file.json"
    said = {"uuid": "u", "sender": "human", "text": "hi", "created_at": "2024-02-30T00:00:00Z"}
    files = [
        chat(("a", "99999999999999999"), ("b", "1704164645"), ("c", None)),
        fact("Lives in Bergen.", "yesterday"),
        asked("Which tea?", 1e20),
        [{"uuid": "c", "name": "", "chat_messages": [said]}],
    ]
    async with Memory.open("memory:") as memory:
        for file in files:
            path.write_text(json.dumps(file))
            report = await memory.import_file(path)
            assert (report.added, report.not_understood[UNREAL].count) == (report.messages, 1)
            assert not report


async def test_a_chat_that_went_on_is_continued(tmp_path):
    path = tmp_path / "result.json"
    async with Memory.open("memory:") as memory:
        for count in (3, 700, 1_300):
            messages = [foreign_exports.telegram_message(n, f"m{n}") for n in range(count)]
            path.write_bytes(
                foreign_exports.dumped({**foreign_exports.TELEGRAM_CHAT, "messages": messages})
            )
            report = await memory.import_file(path)
            assert report.messages == count
            assert await texts(memory, "telegram/4711") == [f"m{n}" for n in range(count)]


async def test_two_imports_at_once_add_everything_once(url, tmp_path):
    path = foreign_exports.zipped(
        tmp_path / "x.zip", {"conversations.json": foreign_exports.SAMPLES["chatgpt"]}
    )
    messages = [foreign_exports.telegram_message(n, f"m{n}") for n in range(1_200)]
    chat = tmp_path / "result.json"
    chat.write_bytes(
        foreign_exports.dumped({**foreign_exports.TELEGRAM_CHAT, "messages": messages})
    )
    async with Memory.open(url) as memory:
        for file in (path, chat):
            reports = await asyncio.gather(*(memory.import_file(file) for _ in range(3)))
            assert sum(report.added for report in reports) == reports[0].messages
        assert await texts(memory, "telegram/4711") == [f"m{n}" for n in range(1_200)]
        assert len(await texts(memory, "chatgpt/conv-1")) == 4


async def test_an_older_and_a_newer_file_at_once_add_everything_once(url, tmp_path):
    counts = (300, 900, 600)
    for count in counts:
        messages = [foreign_exports.telegram_message(n, f"m{n}") for n in range(count)]
        chat = {**foreign_exports.TELEGRAM_CHAT, "messages": messages}
        (tmp_path / f"{count}.json").write_bytes(foreign_exports.dumped(chat))
    async with Memory.open(url) as memory:
        reports = await asyncio.gather(
            *(memory.import_file(tmp_path / f"{count}.json") for count in counts)
        )
        assert sum(report.added for report in reports) == 900
        assert sorted(await texts(memory, "telegram/4711")) == sorted(f"m{n}" for n in range(900))


async def test_an_export_in_shards_with_other_files_next_to_it(memory, tmp_path):
    members = {
        "conversations-000.json": foreign_exports.dumped([foreign_exports.branched("a")]),
        "conversations-001.json": foreign_exports.dumped([foreign_exports.branched("b")]),
        "user.json": b'{"id":"user-1"}',
        "chat.html": b"<html>",
        "file-1-photo.png": b"png",
    }
    progress = []
    path = foreign_exports.zipped(tmp_path / "export.zip", members)
    report = await memory.import_file(path, progress=lambda *told: progress.append(told))
    assert (report.conversations, report.branches) == (2, 4)
    assert report, "nothing was there that is not understood"
    assert report.left_out["a file of another type: .png"].count == 1
    assert report.left_out["a file without known conversations"].examples == [
        "chat.html",
        "user.json",
    ]
    assert progress[-1][0] == progress[-1][1] > 0
    assert progress == sorted(progress)


async def test_a_whatsapp_zip_is_named_as_its_chat(memory, tmp_path):
    members = {"_chat.txt": foreign_exports.WHATSAPP_IOS.encode(), "photo.jpg": b"x"}
    path = foreign_exports.zipped(tmp_path / "WhatsApp Chat - Ana Maria.zip", members)
    await memory.import_file(path, zone="Europe/Helsinki")
    first = (await memory.read("whatsapp/Ana Maria"))[0].message
    assert (first.name, first.created_at.hour) == ("Ana Maria", 8)


async def test_whatsapp_chats_whose_files_have_the_same_name_are_not_mixed(
    memory, tmp_path, monkeypatch
):
    chats = {"A": "[13/01/2025, 10:00:00] Ana: a\n", "B": "[13/01/2025, 10:00:05] Bob: b\n"}
    for folder, text in chats.items():
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "_chat.txt").write_text(text)
        assert (await memory.import_file(tmp_path / folder / "_chat.txt")).added == 1
    names = sorted(await everything(memory))
    assert [name[: len("whatsapp/A-")] for name in names] == ["whatsapp/A-", "whatsapp/B-"]
    assert [await texts(memory, name) for name in names] == [["a"], ["b"]]
    whole = await memory.import_file(tmp_path)
    assert (whole.conversations, whole.added, whole.known) == (2, 0, 2)
    monkeypatch.chdir(tmp_path / "A")
    assert (await memory.import_file("_chat.txt")).added == 0, "the same file, in other words"
    longer = chats["A"] + "[14/01/2025, 10:00:00] Ana: c\n"
    (tmp_path / "A" / "_chat.txt").write_text(longer)
    assert (await memory.import_file(".")).added == 1
    assert await texts(memory, names[0]) == ["a", "c"]
    (tmp_path / "A" / "_chat.txt").write_text(chats["B"])
    assert (await memory.import_file("_chat.txt")).added == 1, "another chat in the same folder"
    assert await texts(memory, names[0]) == ["a", "c"]


async def test_the_own_format_is_recognized_too(memory, tmp_path):
    await memory.append("c", Message.user("x"))
    await memory.export(tmp_path / "x.jsonl")
    async with Memory.open("memory:") as other:
        report = await other.import_file(tmp_path / "x.jsonl")
        assert (report.formats, report.added) == (("firnline",), 1)


# -- hostile and broken files -----------------------------------------------------------------


async def refused(path, match):
    async with Memory.open("memory:") as memory:
        with pytest.raises(InputError, match=match):
            await memory.import_file(path)
        assert await memory.conversations() == []


async def test_an_archive_that_unpacks_to_far_too_much_is_not_read(tmp_path):
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("conversations.json", b"[" + b" " * 80 * 1024**2 + b"]")
    assert path.stat().st_size < 10_000
    await refused(path, "declares 83,886,082 unpacked bytes")


async def test_an_archive_that_lies_about_its_size_is_read_no_further(tmp_path):
    data = b"[" + b" " * 80 * 1024**2 + b"]"
    path = foreign_exports.zipped(tmp_path / "bomb.zip", {"conversations.json": data})
    lie = path.read_bytes().replace(struct.pack("<L", len(data)), struct.pack("<L", 1_000))
    path.write_bytes(lie)
    await refused(path, "unknown format")


async def test_an_archive_with_far_too_many_files_is_not_read(tmp_path):
    path = foreign_exports.zipped(tmp_path / "many.zip", {"x.json": b"[]"})
    data = bytearray(path.read_bytes())
    end = data.rfind(b"PK\5\6")
    data[end + 12 : end + 16] = struct.pack("<L", 1 << 31)
    path.write_bytes(data)
    await refused(path, "files|cannot be read")


@pytest.mark.parametrize(
    "name", ["../conversations.json", "/etc/x.json", "a/../../b.json", "..\\x.json"]
)
async def test_a_name_that_leads_out_of_the_archive_is_not_followed(tmp_path, name):
    members = {name: foreign_exports.dumped([foreign_exports.branched("evil")])}
    members["conversations.json"] = foreign_exports.dumped([foreign_exports.branched("good")])
    path = foreign_exports.zipped(tmp_path / "x.zip", members)
    async with Memory.open("memory:") as memory:
        report = await memory.import_file(path)
        assert not report
        assert list(report.not_understood) == ["a file with a path outside the archive"]
        assert "chatgpt/evil" not in await everything(memory)
        assert "chatgpt/good" in await everything(memory)
    assert sorted(one.name for one in tmp_path.rglob("*")) == ["x.zip"], "nothing is unpacked"


async def test_a_damaged_member_is_noted_and_the_others_are_read(tmp_path):
    members = {
        "a.json": foreign_exports.SAMPLES["claude"],
        "b.json": foreign_exports.SAMPLES["chatgpt"],
    }
    path = foreign_exports.zipped(tmp_path / "x.zip", members)
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        at = archive.getinfo("a.json").header_offset + 60
    data[at : at + 40] = bytes(40)
    path.write_bytes(data)
    async with Memory.open("memory:") as memory:
        report = await memory.import_file(path)
        assert any("cannot be read" in what for what in report.not_understood)
        assert "chatgpt/conv-1" in await everything(memory)


async def test_a_member_with_a_password_is_noted(tmp_path):
    members = {
        "a.json": foreign_exports.SAMPLES["claude"],
        "b.json": foreign_exports.SAMPLES["chatgpt"],
    }
    path = foreign_exports.zipped(tmp_path / "x.zip", members)
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\1\2") + 8] |= 1
    path.write_bytes(data)
    async with Memory.open("memory:") as memory:
        report = await memory.import_file(path)
        assert "password" in report.not_understood["a file that cannot be read"].examples[0]
        assert report.formats == ("chatgpt",)


async def test_what_cannot_be_imported_says_why(tmp_path):
    for name, data, match in (
        ("a.json", b"{}", "unknown format"),
        ("b.json", b"", "unknown format"),
        ("m.json", b'[{"role": "user", "content": "hi"}]', "use append for a list"),
        ("c.html", b"<html>", "is HTML"),
        ("d.zip", b"PK\5\6" + bytes(18), "unknown format"),
        ("e.bin", bytes(range(256)), "unknown format"),
    ):
        (tmp_path / name).write_bytes(data)
        await refused(tmp_path / name, match)
    await refused(tmp_path / "missing.json", "cannot be read")
    (tmp_path / "empty").mkdir()
    await refused(tmp_path / "empty", "unknown format")
    async with Memory.open("memory:") as memory:
        with pytest.raises(InputError, match="time zone"):
            await memory.import_file(tmp_path / "a.json", zone="Mars/Olympus")
        with pytest.raises(InputError, match="unknown format"):
            await memory.import_file(tmp_path / "a.json", as_format="odd")


async def test_a_message_that_is_too_large_is_in_the_report(tmp_path):
    nodes = [
        foreign_exports.node("big", None, text="x" * 17 * 1024**2),
        foreign_exports.node("small", "big", "assistant", "ok"),
    ]
    path = tmp_path / "conversations.json"
    path.write_bytes(foreign_exports.dumped([foreign_exports.chatgpt(nodes, "small")]))
    async with Memory.open("memory:") as memory:
        report = await memory.import_file(path)
        assert report.not_understood["a message that is too large"].count == 1
        assert await texts(memory, "chatgpt/conv-1") == ["ok"]


async def test_a_tree_of_branches_copies_only_so_much(tmp_path, monkeypatch):
    """A file of a kilobyte could else ask for a gigabyte: each branch begins as its main way."""
    monkeypatch.setattr("firnline.log.limits.IMPORT_COPIED_MAX", 50)
    nodes = [
        foreign_exports.node(f"n{i}", f"n{i - 1}" if i else None, text=f"m{i}") for i in range(20)
    ]
    nodes += [foreign_exports.node(f"b{i}", f"n{i}", text=f"other {i}") for i in range(19)]
    path = tmp_path / "conversations.json"
    path.write_bytes(foreign_exports.dumped([foreign_exports.chatgpt(nodes, "n19")]))
    async with Memory.open("memory:") as memory:
        report = await memory.import_file(path)
        assert report.added == report.messages == 39
        known = await everything(memory)
        assert sum(len(said) for _, _, said in known.values()) <= 39 + 50
        assert all(any(f"other {i}" in said for _, _, said in known.values()) for i in range(19))
        assert "the beginning of a branch, which is in chatgpt/conv-1" in report.left_out
        assert (await memory.import_file(path)).added == 0


@settings(max_examples=30, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(anything.filter(bool), anything.filter(bool)), min_size=1, max_size=5))
def test_ids_of_any_characters_are_distinguished(tmp_path, pairs):
    wanted = {}
    for key, text in pairs:
        wanted.setdefault(key, text)
    chats = [
        foreign_exports.chatgpt([foreign_exports.node(key, None, text=text)], key, key)
        for key, text in wanted.items()
    ]
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps(chats))
    with sync.Memory.open("memory:") as memory:
        report = memory.import_file(path)
        assert report.added == report.messages == len(wanted)
        assert len(memory.conversations()) == len(wanted)
        assert memory.import_file(path).added == 0
    assert len({name_of("x", key) for key in wanted}) == len(wanted)


async def test_branches_of_long_names_are_distinguished(tmp_path):
    chats = [foreign_exports.branched("x" * 300 + last) for last in "ab"]
    path = tmp_path / "conversations.json"
    path.write_bytes(foreign_exports.dumped(chats))
    async with Memory.open("memory:") as memory:
        report = await memory.import_file(path)
        assert (report.conversations, report.branches, report.added) == (2, 4, 14)
        assert len(await memory.conversations()) == 6


# -- the command ------------------------------------------------------------------------------


def test_the_command_recognizes_the_format_and_prints_the_report(run, samples):
    code, out, _ = run("import", str(samples / "chatgpt.json"))
    assert code == 1, "something in it is not understood"
    assert "chatgpt.json (chatgpt): 2 conversations, 2 branches, 14 messages, 14 added" in out
    assert "not understood:\n  1 times content of type 'brand_new', kept unchanged\n" in out
    assert "conv-2, w" in out
    code, out, _ = run("import", str(samples / "claude.json"), "--json")
    report = json.loads(out)
    assert (code, report["added"], report["not_understood"]) == (0, 7, {})
    code, out, _ = run("import", str(samples / "claude.json"), "--format", "claude")
    assert (code, "0 added" in out) == (0, True)
    code, out, _ = run("show", "claude/cl-2")
    assert "user: Hello" in out


def test_the_command_says_what_is_wrong(run, samples, tmp_path):
    (tmp_path / "x.json").write_bytes(b"{}")
    code, _, err = run("import", "x.json")
    assert (code, "unknown format" in err) == (2, True)
    assert run("import", "missing.json")[0] == 2
    code, out, _ = run("import", str(samples / "claude.json"), "--format", "telegram")
    assert code == 1, "read as something that it is not"
    assert "not understood" in out
    assert run("import", "x.json", "--format", "odd")[0] == 2


# -- memory -----------------------------------------------------------------------------------

# The system's figure for a child begins with its parent's, so the process looks at itself.
PEAK = """
import io, re, sys
from pathlib import Path
from firnline.transfer.formats import READERS
from firnline.transfer.formats.records import Notes, SourceFile

class Repeated(io.RawIOBase):
    def __init__(self, item, times):
        self.item, self.left, self.at = b"," + item, times * (len(item) + 1), 0
    def read(self, size=-1):
        take = min(size, self.left)
        start = self.at % len(self.item)
        data = (self.item * (take // len(self.item) + 2))[start : start + take]
        first, self.at, self.left = not self.at, self.at + take, self.left - take
        return b"[" + data[1:] if first else data

def peak():
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\\s+([0-9]+) kB", status)[1]) // 1024

item = Path(sys.argv[1]).read_bytes()
for megabytes in (2, 48):
    stream = Repeated(item, megabytes * 1024**2 // len(item))
    found = READERS["chatgpt"](SourceFile("x", stream), Notes())
    count = sum(len(tree.nodes) > 10 for tree in found)
    print(count, peak(), file=sys.stderr)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_a_large_export_is_read_in_the_memory_of_a_small_one(tmp_path):
    item = tmp_path / "item.json"
    item.write_bytes(foreign_exports.dumped(foreign_exports.long_chat(1, random.Random(1), 200)))
    command = [sys.executable, "-c", PEAK, str(item)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    few, before, many, after = map(int, done.stderr.split())
    assert many > 20 * few > 0, "all of it was read"
    assert after - before < 20, "megabytes"
