"""Anthropic's memory tool: files in the log, with the results of Anthropic's own implementation."""

import asyncio
import json
import re
from itertools import chain

import anthropic
import pytest
from anthropic.lib.tools import ToolError
from anthropic.tools import BetaLocalFilesystemMemoryTool
from hypothesis import given
from hypothesis import strategies as st

from firnline import Memory, sync
from firnline.adapters.anthropic_memory import FirnlineMemoryTool, SyncFirnlineMemoryTool
from firnline.testing import ModelServer, call_tool
from support.live_server import running

FOLDER_SIZE = re.compile(r"^[\d.]+[BKMG]\t(.*/|/memories(?:/a)?)$", re.MULTILINE)


def answer(tool, command):
    """The result, or the error that the model reads; the size of a folder is the disk's affair."""
    try:
        return FOLDER_SIZE.sub(r"\1", tool.call(command))
    except ToolError as error:
        return f"error: {error}"


def create(path, text):
    return {"command": "create", "path": f"/memories/{path}", "file_text": text}


SESSION = [
    {"command": "view", "path": "/memories"},
    create("notes.md", "one\ntwo\nthree\n"),
    create("notes.md", "again"),
    create("a/b/c/deep.txt", "x" * 3_000),
    create("a/top.txt", "überall"),
    create(".hidden", "h"),
    {"command": "view", "path": "/memories"},
    {"command": "view", "path": "/memories/a"},
    {"command": "view", "path": "/memories/notes.md"},
    {"command": "view", "path": "/memories/notes.md", "view_range": [2, 3]},
    {"command": "view", "path": "/memories/notes.md", "view_range": [2, -1]},
    {"command": "view", "path": "/memories/none"},
    {"command": "str_replace", "path": "/memories/notes.md", "old_str": "two", "new_str": "2\n2"},
    {"command": "str_replace", "path": "/memories/notes.md", "old_str": "2", "new_str": "x"},
    {"command": "str_replace", "path": "/memories/notes.md", "old_str": "no", "new_str": "x"},
    {"command": "str_replace", "path": "/memories/a", "old_str": "x", "new_str": "y"},
    {"command": "insert", "path": "/memories/notes.md", "insert_line": 1, "insert_text": "1.5\n"},
    {"command": "insert", "path": "/memories/notes.md", "insert_line": 99, "insert_text": "y"},
    {"command": "insert", "path": "/memories/a/top.txt", "insert_line": 0, "insert_text": "z"},
    {"command": "view", "path": "/memories/notes.md"},
    {"command": "rename", "old_path": "/memories/a/b", "new_path": "/memories/moved/b"},
    {"command": "rename", "old_path": "/memories/none", "new_path": "/memories/x"},
    {"command": "rename", "old_path": "/memories/moved", "new_path": "/memories/notes.md"},
    {"command": "rename", "old_path": "/memories", "new_path": "/memories/x"},
    {"command": "view", "path": "/memories/moved/b/c/deep.txt"},
    {"command": "delete", "path": "/memories/a"},
    {"command": "delete", "path": "/memories/a"},
    {"command": "delete", "path": "/memories"},
    {"command": "view", "path": "/memories"},
    {"command": "view", "path": "/etc/passwd"},
]


def test_a_session_has_the_results_of_anthropics_own_tool(tmp_path):
    reference = BetaLocalFilesystemMemoryTool(str(tmp_path))
    with sync.Memory.open("memory:", embedder=None) as memory:
        tool = SyncFirnlineMemoryTool(memory, "files")
        for command in SESSION:
            assert answer(tool, command) == answer(reference, command), command
        assert memory.verify("files").ok


texts = st.lists(st.sampled_from(["a", "b", "\n", "é", "ab"]), max_size=8).map("".join)
edits = st.lists(
    st.one_of(
        st.builds(lambda old, new: ("str_replace", {"old_str": old, "new_str": new}), texts, texts),
        st.builds(
            lambda at, text: ("insert", {"insert_line": at, "insert_text": text}),
            st.integers(-1, 6),
            texts,
        ),
        st.just(("view", {})),
    ),
    max_size=6,
)


@given(texts, edits)
def test_edits_have_the_results_of_anthropics_own_tool(tmp_path_factory, text, given_edits):
    reference = BetaLocalFilesystemMemoryTool(str(tmp_path_factory.mktemp("m")))
    with sync.Memory.open("memory:", embedder=None) as memory:
        tool = SyncFirnlineMemoryTool(memory, "files")
        for one in (tool, reference):
            one.call(create("f", text))
        for name, fields in given_edits:
            if fields.get("old_str") == "":
                continue  # theirs finds an empty text everywhere, and fails in many words
            command = {"command": name, "path": "/memories/f", **fields}
            assert answer(tool, command) == answer(reference, command)


@pytest.mark.parametrize(
    "path", ["/memories/../x", "/memories/./x", "/memoriesx", "memories", "", 7, "/memories/a\0b"]
)
def test_no_path_leads_elsewhere(path):
    with sync.Memory.open("memory:", embedder=None) as memory:
        tool = SyncFirnlineMemoryTool(memory, "files")
        with pytest.raises(ToolError, match="Path"):
            tool.call({"command": "create", "path": path, "file_text": "x"})
        assert memory.head("files") is None


@pytest.mark.promise("undoable")
def test_each_edit_is_a_version_that_can_be_undone():
    async def talk():
        async with Memory.open("memory:", embedder=None) as memory:
            tool = FirnlineMemoryTool(memory, "files")
            view = {"command": "view", "path": "/memories/a"}
            await tool.call(create("a", "first"))
            change = {"command": "str_replace", "path": "/memories/a"}
            await tool.call({**change, "old_str": "first", "new_str": "second"})
            await tool.call({"command": "delete", "path": "/memories/a"})
            assert "delete /memories/a" in await tool.undo()
            assert "second" in await tool.call(view)
            await tool.undo()
            assert "first" in await tool.call(view)
            await tool.undo()
            with pytest.raises(ToolError, match="does not exist"):
                await tool.call(view)
            with pytest.raises(Exception, match="nothing to undo"):
                await tool.undo()
            log = await memory.read("files")
            assert len(log) == 6  # nothing was overwritten
            assert "second" in (await memory.recall("files", "second"))[0].message.text

    asyncio.run(talk())


def test_two_at_once_lose_no_edit():
    async def talk():
        async with Memory.open("memory:", embedder=None) as memory:
            tools = [FirnlineMemoryTool(memory, "files") for _ in range(4)]
            await asyncio.gather(*(t.call(create(f"f{n}", "x")) for n, t in enumerate(tools)))
            return await tools[0].call({"command": "view", "path": "/memories"})

    shown = asyncio.run(talk())
    assert all(f"/memories/f{n}" in shown for n in range(4))


def test_the_tool_and_its_betas_pass_through_the_proxy():
    betas = ["context-management-2025-06-27", "compact-2026-01-12"]
    edits = {"edits": [{"type": "clear_tool_uses_20250919"}, {"type": "compact_20260112"}]}
    use = {
        "type": "tool_use",
        "id": "t1",
        "name": "memory",
        "input": {"command": "create", "path": "/memories/a", "file_text": "tea"},
    }
    with (
        ModelServer(model="claude") as model,
        running(anthropic=model.url) as server,
        sync.Memory.open("memory:", embedder=None) as memory,
        anthropic.Anthropic(base_url=server.url, api_key="sk") as client,
    ):
        model.say({"content": [use]}, "Noted.")
        runner = client.beta.messages.tool_runner(
            model="claude-opus-5",
            max_tokens=500,
            messages=[{"role": "user", "content": "I like tea."}],
            tools=[SyncFirnlineMemoryTool(memory, "files")],
            betas=betas,
            context_management=edits,
        )
        assert runner.until_done().content[0].text == "Noted."
        assert memory.read("files")[0].message.text == "create /memories/a\ntea"
        for request, headers in zip(model.requests, model.headers, strict=True):
            assert request["context_management"] == edits
            assert request["tools"] == [{"type": "memory_20250818", "name": "memory"}]
            assert set(betas) <= set(headers["anthropic-beta"].split(","))
        assert "tool_result" in json.dumps(model.requests[-1]["messages"])


@pytest.mark.parametrize("stream", [False, True])
def test_the_tool_works_with_an_endpoint_that_speaks_openais_protocol(stream):
    commands = [
        {"command": "view", "path": "/memories"},
        create("a", "tea"),
        {"command": "str_replace", "path": "/memories/a", "old_str": "tea", "new_str": "mate"},
        {"command": "insert", "path": "/memories/a", "insert_line": 1, "insert_text": "no sugar"},
        {"command": "rename", "old_path": "/memories/a", "new_path": "/memories/b"},
        {"command": "view", "path": "/memories/b", "view_range": [1, 1]},
        {"command": "delete", "path": "/memories/b"},
    ]
    with (
        ModelServer(model="gpt-4o") as model,
        running(upstream=model.url) as server,
        sync.Memory.open("memory:", embedder=None) as memory,
        anthropic.Anthropic(base_url=server.url, api_key="sk") as client,
    ):
        model.say(*(call_tool("memory", command) for command in commands), "Noted.")
        runner = client.beta.messages.tool_runner(
            model="gpt-4o",
            max_tokens=500,
            messages=[{"role": "user", "content": "I like tea."}],
            tools=[SyncFirnlineMemoryTool(memory, "files")],
            stream=stream,
        )
        assert runner.until_done().content[0].text == "Noted."
        edits = [entry.message.text.partition(" ")[0] for entry in memory.read("files")]
        assert edits == ["create", "str_replace", "insert", "rename", "delete"]
        (function,) = (tool["function"] for tool in model.requests[0]["tools"])
        known = function["parameters"]["properties"]
        assert {*chain.from_iterable(commands)} <= {*known}
        assert {each["command"] for each in commands} == {*known["command"]["enum"]}
        results = [m["content"] for m in model.requests[-1]["messages"] if m["role"] == "tool"]
        assert "mate" in results[5]
