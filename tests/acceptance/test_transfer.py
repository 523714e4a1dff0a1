"""Export and import: a round trip is the identity, a damaged file is rejected completely."""

import asyncio
import hashlib
import json
import os
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firnline import Digest, Memory, Message, Project
from firnline.errors import ConflictError, InputError, UnknownConversation
from firnline.log.entry import Key, genesis, next_hash
from support.message_strategies import clean, json_objects, messages

pytestmark = pytest.mark.promise("round-trip")

EXAMPLES = 10_000 if os.environ.get("FIRNLINE_TORTURE") else 200

names = st.sampled_from(["c1", "c2", "東京 chat", "a/b", "Ünïcode"])
stores = st.fixed_dictionaries(
    {
        "logs": st.dictionaries(names, st.lists(messages, min_size=0, max_size=6), max_size=3),
        "metadata": json_objects,
        "text": clean.filter(str.strip),
        "archive": st.booleans(),
        "strategy": st.none() | json_objects,
        "pins": st.integers(0, 63),
    }
)


async def _fill(memory: Memory, plan: dict) -> None:
    await memory.save_project(Project("p", metadata=plan["metadata"]))
    for i, (name, log) in enumerate(plan["logs"].items()):
        if i % 2 or not log:
            await memory.describe(name, project="p", metadata=plan["metadata"])
        if log:
            await memory.append(name, log)
            first = Digest(version=1, first_seq=0, last_seq=0, status="undone", text=plan["text"])
            digest = replace(first, version=3, status="completed", beside=(1, 2), parts=(1,))
            await memory.store.put_digests(Key(memory.tenant, name), [first, digest])
            for seq in range(len(log)):
                if plan["pins"] >> seq & 1:
                    await memory.store.pin(Key(memory.tenant, name), seq)
            if plan["archive"]:
                await memory.archive(name, keep=1)
        if plan["strategy"] is not None:
            await memory.store.describe(Key(memory.tenant, name), strategy=plan["strategy"])


async def _pinned(memory: Memory, name: str) -> list[int]:
    return [entry.seq for entry in await memory.store.pinned(Key(memory.tenant, name))]


async def _state(memory: Memory) -> list:
    return [
        (
            (head.conversation, head.hash, head.tokens, head.project, head.metadata, head.strategy),
            [entry.message for entry in await memory.read(head.conversation)],
            await memory.digests(head.conversation),
            await _pinned(memory, head.conversation),
        )
        for head in await memory.conversations()
    ]


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(plan=stores)
@pytest.mark.long
def test_import_of_an_export_is_the_identity(plan, tmp_path):
    first, second = tmp_path / "1.jsonl", tmp_path / "2.jsonl"

    async def check():
        async with Memory.open("memory:") as a, Memory.open("memory:") as b:
            await _fill(a, plan)
            exported = await a.export(first)
            imported = await b.import_(first)
            assert imported.added == imported.entries == exported.entries
            assert await _state(b) == await _state(a)
            assert (await b.import_(first)).added == 0
            await b.export(second)
        assert first.read_bytes() == second.read_bytes()

    asyncio.run(check())


async def test_it_works_between_backends_and_in_pages(tmp_path):
    path = tmp_path / "x.jsonl"
    async with Memory.open(f"sqlite:///{tmp_path}/a.db") as a, Memory.open("memory:") as b:
        await a.append("c", [Message.user(f"m{i}") for i in range(2_300)])
        await a.archive("c", keep=100)
        progress = []
        await a.export(path, progress=lambda done, total: progress.append(done))
        assert progress[-1] == 2_300
        await b.import_(path, progress=lambda done, total: progress.append((done, total)))
        assert progress[-1][0] == progress[-1][1] == path.stat().st_size
        assert await b.verify("c")
        assert (await b.head("c")).hash == (await a.head("c")).hash


async def test_another_tenant_gets_the_same_messages_under_its_own_chain(tmp_path):
    path = tmp_path / "x.jsonl"
    async with Memory.open("memory:", tenant="a") as a, Memory.open("memory:", tenant="b") as b:
        await a.append("c", [Message.user("x"), Message.user("y")])
        await a.export(path)
        assert (await b.import_(path)).added == 2
        assert (await b.import_(path)).added == 0
        assert await b.verify("c")
        texts = [entry.message.text for entry in await b.read("c")]
        assert texts == ["x", "y"]
        assert (await a.head("c")).hash != (await b.head("c")).hash


async def test_an_interrupted_import_is_resumed(memory, tmp_path):
    path = tmp_path / "x.jsonl"
    await memory.append("c", [Message.user(f"m{i}") for i in range(10)])
    for seq in (2, 7):
        await memory.store.pin(Key(memory.tenant, "c"), seq)
    await memory.export(path)
    async with Memory.open("memory:") as other:
        first = await memory.read("c", last_seq=3)
        await other.append("c", [entry.message for entry in first])
        assert (await other.import_(path)).added == 6
        assert await _pinned(other, "c") == [7], "what is here already is newer than the file"
        assert (await other.head("c")).hash == (await memory.head("c")).hash


async def test_other_messages_under_the_same_name_are_a_conflict(memory, tmp_path):
    path = tmp_path / "x.jsonl"
    await memory.append("a", Message.user("fine"))
    await memory.append("b", Message.user("mine"))
    await memory.export(path)
    async with Memory.open("memory:") as other:
        await other.append("b", Message.user("theirs"))
        with pytest.raises(ConflictError, match="nothing was imported"):
            await other.import_(path)
        assert [head.conversation for head in await other.conversations()] == ["b"]


async def test_some_conversations_only(memory, tmp_path):
    for name in "abc":
        await memory.append(name, Message.user(name))
    manifest = await memory.export(tmp_path / "x.jsonl", conversations=["c", "a"])
    assert manifest.conversations == 2
    with pytest.raises(UnknownConversation):
        await memory.export(tmp_path / "y.jsonl", conversations=["a", "nobody"])
    assert sorted(path.name for path in tmp_path.glob("*.jsonl*")) == ["x.jsonl"]


async def test_damage_of_any_kind_is_rejected_and_nothing_is_imported(tmp_path):
    path, bad = tmp_path / "x.jsonl", tmp_path / "bad.jsonl"
    async with Memory.open("memory:") as memory:
        await memory.append("c", [Message.user(f"message {i}") for i in range(5)])
        await memory.append("d", Message.user("other"))
        await memory.export(path)
    lines = path.read_bytes().splitlines(keepends=True)
    broken = {
        "empty": [],
        "cut off": lines[:-1],
        "cut in a line": [*lines[:-1], lines[-1][:-5]],
        "no header": lines[1:],
        "a line missing": [*lines[:3], *lines[4:]],
        "lines swapped": [*lines[:2], lines[3], lines[2], *lines[4:]],
        "a word changed": [line.replace(b"message 2", b"message 7") for line in lines],
        "tokens changed": [line.replace(b'"tokens":5', b'"tokens":6') for line in lines],
        "not JSON": [*lines[:2], b"{oops\n", *lines[2:]],
        "not an object": [*lines[:2], b"[1]\n", *lines[2:]],
        "a key twice": [*lines[:2], lines[2].replace(b'{"seq":', b'{"seq":9,"seq":'), *lines[3:]],
        "unknown line": [*lines[:2], b'{"x":1}\n', *lines[2:]],
        "more behind": [*lines, b"{}\n"],
        "newer format": [lines[0].replace(b":1,", b":2,"), *lines[1:]],
        "binary": [bytes(range(256))],
        "deep": [b"[" * 100_000 + b"\n"],
    }
    for what, content in broken.items():
        bad.write_bytes(b"".join(content))
        async with Memory.open("memory:") as memory:
            with pytest.raises(InputError) as caught:
                await memory.import_(bad)
            assert "bad.jsonl, line" in str(caught.value), what
            assert await memory.conversations() == [], what


async def test_the_damaged_line_is_named(tmp_path):
    path = tmp_path / "x.jsonl"
    async with Memory.open("memory:") as memory:
        await memory.append("c", [Message.user(f"message {i}") for i in range(5)])
        await memory.export(path)
        path.write_bytes(path.read_bytes().replace(b"message 2", b"message 7"))
        with pytest.raises(InputError, match="line 5: message 2 does not match its hash"):
            await memory.import_(path)


async def test_every_flipped_byte_is_rejected(tmp_path):
    path, bad = tmp_path / "x.jsonl", tmp_path / "bad.jsonl"
    async with Memory.open("memory:") as memory:
        await memory.append("c", [Message.user("hello"), Message.assistant("there")])
        await memory.export(path)
    data = path.read_bytes()
    for i in range(len(data)):
        bad.write_bytes(data[:i] + bytes([data[i] ^ 1]) + data[i + 1 :])
        async with Memory.open("memory:") as memory:
            with pytest.raises(InputError):
                await memory.import_(bad)
            assert await memory.conversations() == []


async def test_files_that_cannot_be_read_or_written(memory, tmp_path):
    await memory.append("c", Message.user("x"))
    with pytest.raises(InputError, match="cannot be read"):
        await memory.import_(tmp_path / "missing.jsonl")
    with pytest.raises(InputError, match="cannot be written"):
        await memory.export(tmp_path / "missing" / "x.jsonl")


async def test_the_format_is_plain_json_lines(memory, tmp_path):
    path = tmp_path / "x.jsonl"
    await memory.append("c", Message.user("hello"))
    await memory.export(path)
    header, conversation, entry, manifest = map(json.loads, path.read_text().splitlines())
    assert header == {"firnline": 1, "tenant": "default"}
    assert conversation["conversation"] == "c"
    assert entry["message"]["content"] == "hello"
    assert manifest["manifest"]["entries"] == 1


def _forged(path, tenant, lines):
    """A file whose hashes and manifest are right, whatever is in it."""
    digest = hashlib.sha256()
    with path.open("wb") as file:
        for line in [{"firnline": 1, "tenant": tenant}, *lines]:
            data = json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
            digest.update(data)
            file.write(data)
        entries = [line for line in lines if "seq" in line]
        counts = {
            "conversations": sum("conversation" in line for line in lines),
            "entries": len(entries),
            "tokens": sum(entry["tokens"] for entry in entries),
        }
        file.write(
            json.dumps({"manifest": {**counts, "sha256": digest.hexdigest()}}).encode() + b"\n"
        )


def _entry(tokens=3, tokenizer="o200k_base", message=None):
    body = message or {"role": "user", "content": "x", "created_at": "2026-01-01T00:00:00.000000Z"}
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    hash_ = next_hash(genesis(Key("t", "c")), text, tokens, tokenizer)
    return {"seq": 0, "tokens": tokens, "tokenizer": tokenizer, "hash": hash_, "message": body}


def _conversation(entry, **fields):
    about = {"conversation": "c", "entries": 1, "head": entry["hash"], "project": None}
    return {**about, "metadata": {}, **fields}


DIGEST = {"version": 1, "first_seq": 0, "last_seq": 0, "base": None, "status": "completed"}


@pytest.mark.promise("tenants-apart")
@pytest.mark.parametrize(
    "lines",
    [
        [_conversation(_entry(tokens=-3)), _entry(tokens=-3)],
        [_conversation(_entry(tokenizer="mine")), _entry(tokenizer="mine")],
        [_conversation(_entry(message={"role": "user"})), _entry(message={"role": "user"})],
        [_conversation(e := _entry(message={"role": "user", "content": "x", "new": 1})), e],
        [_conversation(_entry(), metadata=[1]), _entry()],
        [_conversation(_entry(), strategy=[1]), _entry()],
        [_conversation(_entry(), pinned=[1]), _entry()],
        [_conversation(_entry(), pinned=[-1]), _entry()],
        [_conversation(_entry(), pinned=["0"]), _entry()],
        [_conversation(_entry(), pinned=[False]), _entry()],
        [_conversation(_entry(), pinned=0), _entry()],
        [_conversation(_entry(), project={"x": 1}), _entry()],
        [_conversation(_entry(), project="\x1b[2J"), _entry()],
        [_conversation(_entry()), _entry(), {"digest": {**DIGEST, "version": (2 << 32) | 1}}],
        [_conversation(_entry()), _entry(), {"digest": {**DIGEST, "version": "x"}}],
        [_conversation(_entry()), _entry(), {"digest": {**DIGEST, "status": "odd"}}],
        [_conversation(_entry()), _entry(), {"digest": {**DIGEST, "beside": "12"}}],
        [_conversation(_entry()), _entry(), {"digest": {**DIGEST, "parts": [1.5]}}],
        [_conversation(_entry()), _entry(), {"digest": 7}],
        [{"project": {"name": "p", "status": 7}}],
        [{"project": "p"}],
    ],
    ids=range(21),
)
async def test_a_forged_file_is_rejected_completely(memory, tmp_path, lines):
    path = tmp_path / "forged.jsonl"
    _forged(path, "t", lines)
    with pytest.raises(InputError, match=r"forged.jsonl, line"):
        await memory.import_(path)
    assert await memory.conversations() == []
    assert await memory.projects() == []


async def test_the_forged_file_without_a_change_is_valid(memory, tmp_path):
    path = tmp_path / "fine.jsonl"
    _forged(path, "t", [{"project": {"name": "p"}}, _conversation(_entry()), _entry()])
    assert (await memory.import_(path)).added == 1
    assert (await memory.head("c")).strategy is None, "older files have neither of these"
    assert await _pinned(memory, "c") == []
    lines = [{**_conversation(_entry()), "strategy": {"x": 1}, "pinned": [0]}, _entry()]
    _forged(path, "t", [*lines, {"digest": {**DIGEST, "text": "x", "created_at": None}}])
    async with Memory.open("memory:") as other:
        assert (await other.import_(path)).added == 1
        assert (await other.head("c")).strategy == {"x": 1}
        assert await _pinned(other, "c") == [0]
        assert [digest.beside for digest in await other.digests("c")] == [()]


async def test_what_is_known_here_is_not_overwritten_by_an_old_file(memory, tmp_path):
    path = tmp_path / "x.jsonl"
    await memory.append("c", Message.user("x"))
    await memory.describe("c", metadata={"title": "old"})
    key = Key(memory.tenant, "c")
    await memory.store.describe(key, strategy={"name": "old"})
    await memory.store.pin(key, 0)
    await memory.save_project(Project("p", task="old"))
    await memory.export(path)
    await memory.describe("c", metadata={"title": "new"})
    await memory.store.describe(key, strategy={})
    await memory.store.pin(key, 0, pinned=False)
    await memory.save_project(Project("p", task="new"))
    await memory.import_(path)
    assert (await memory.head("c")).metadata == {"title": "new"}
    assert (await memory.head("c")).strategy == {}
    assert await _pinned(memory, "c") == []
    assert (await memory.projects())[0].task == "new"


async def test_a_folder_is_not_an_export(memory, tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        await memory.import_(tmp_path)
