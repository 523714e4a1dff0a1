"""Exports for other programs: nothing is missing, and no message is executed in them."""

import json
import os
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firnline import Digest, Memory, Message, Part, ToolCall, sync
from firnline.cli import main
from firnline.digest import items
from firnline.errors import InputError, UnknownConversation
from firnline.log.entry import Key
from firnline.transfer.exporter import file_name
from support.hostile_texts import PAYLOADS
from support.message_strategies import messages

EXAMPLES = 1_000 if os.environ.get("FIRNLINE_TORTURE") else 30


def digest(version, first, last, text, **more):
    return Digest(
        version=version, first_seq=first, last_seq=last, text=text, status="completed", **more
    )


async def with_layers(memory, name="c"):
    """A conversation of 12 messages; 0 to 7 are below digests in two layers."""
    await memory.append(name, [Message.user(f"message {n}") for n in range(12)])
    first = digest(1, 0, 3, "the first four")
    second = digest(2, 4, 5, "two more", base=1, beside=(1,))
    both = digest(3, 0, 5, "the first six", base=2, parts=(1, 2), layer=1)
    last = digest(4, 6, 7, "and then two", base=3, beside=(3,))
    last = replace(last, data=items.to_json(items.items_from_data({"important_facts": ["Mia"]})))
    await memory.store.put_digests(Key(memory.tenant, name), [first, second, both, last])


class Tags(HTMLParser):
    """The tags of a page, the words in them, and how they are nested."""

    ALONE = frozenset(("meta", "br"))

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.words, self._open = [], [], []
        self.feed(text)
        self.close()
        assert self._open == [], "every tag is closed"

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.ALONE:
            self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if "style" not in self._open:
            self.words.append(data)


OURS = {
    "html",
    "head",
    "meta",
    "title",
    "style",
    "body",
    "main",
    "h1",
    "h2",
    "p",
    "b",
    "br",
    "code",
}
OURS |= {"section", "details", "summary", "article", "ul", "li", "span"}
ATTRIBUTES = {"class", "id", "lang", "charset", "name", "content", "http-equiv"}


def harmless(text):
    page = Tags(text)
    assert {tag for tag, _ in page.tags} <= OURS
    assert {name for _, attributes in page.tags for name in attributes} <= ATTRIBUTES
    assert re.search(r"url\(|@import|src=|href=", text.split("</style>")[0]) is None
    return page


@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@given(logs=st.lists(st.lists(messages, min_size=1, max_size=5), max_size=3))
def test_openai_lines_can_be_read_by_any_program(logs, tmp_path):
    path = tmp_path / "x.jsonl"
    with sync.Memory.open("memory:") as memory, sync.Memory.open("memory:") as other:
        for number, log in enumerate(logs):
            memory.append(f"c{number}", log)
        manifest = memory.export(path, as_format="openai")
        assert manifest.entries == sum(map(len, logs))
        lines = [json.loads(line) for line in path.read_text().split("\n") if line]
        assert [line["messages"] for line in lines] == [
            [message.to_openai() for message in log] for log in logs
        ]
        report = other.import_file(path, as_format="finetune")
        same = {json.dumps(line) for line in lines}
        assert report.messages == manifest.entries
        assert len(other.conversations()) == len(same)


@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@given(log=st.lists(messages, min_size=1, max_size=6))
def test_every_word_is_on_the_page_and_none_of_them_is_a_tag(log, tmp_path):
    path = tmp_path / "x.html"
    with sync.Memory.open("memory:") as memory:
        memory.append("c", log)
        memory.export(path, conversations=["c"], as_format="html")
        words = "\0".join(harmless(path.read_bytes().decode()).words)
        for entry in memory.read("c"):
            content = entry.message.content or ()
            said = [content] if isinstance(content, str) else [part.text for part in content]
            for text in said:  # HTML makes one newline of whatever ends a line
                assert re.sub("\r\n?", "\n", text) in re.sub("\r\n?", "\n", words)


async def test_no_payload_becomes_a_tag(tmp_path):
    path = tmp_path / "x.html"
    async with Memory.open("memory:") as memory:
        for payload in PAYLOADS:
            call = ToolCall.of(payload, payload, payload)
            parts = [Part.of_text(payload), Part.file(payload, filename=payload)]
            await memory.append("c", Message.user(parts, name=payload))
            await memory.append("c", Message.assistant(payload, tool_calls=[call]))
        await memory.describe("c", metadata={"title": PAYLOADS[0] + "</title><script>"})
        made = [digest(1, 0, 1, PAYLOADS[0], made_by=PAYLOADS[1])]
        await memory.store.put_digests(Key(memory.tenant, "c"), made)
        await memory.export(path, conversations=["c"], as_format="html")
    harmless(path.read_text())


async def test_messages_are_below_the_digests_that_cover_them(memory, tmp_path):
    await with_layers(memory)
    path = tmp_path / "x.html"
    manifest = await memory.export(path, conversations=["c"], as_format="html")
    assert (manifest.conversations, manifest.entries) == (1, 12)
    text = path.read_text()
    harmless(text)
    order = ["the first six", "the first four", "message 0", "message 3", "two more", "message 5"]
    order += ["and then two", "message 6", "message 7", "message 8", "message 11"]
    assert "</span>Mia</li>" in text
    places = [text.index(f">{words}<") for words in order]
    assert places == sorted(places)
    before = text[: text.index(">message 3<")]
    assert before.count("<details>") - before.count("</details>") == 2
    after = text[: text.index(">message 8<")]
    assert after.count("<details>") == after.count("</details>")
    assert all(text.count(f">message {n}<") == 1 for n in range(12))


async def test_digests_that_overlap_show_every_message_once(tmp_path):
    async with Memory.open("memory:") as memory:
        await memory.append("c", [Message.user(f"message {n}") for n in range(6)])
        made = [digest(1, 0, 3, "early"), digest(2, 2, 5, "late", base=1, beside=(1,))]
        await memory.store.put_digests(Key(memory.tenant, "c"), made)
        await memory.export(tmp_path / "x.html", conversations=["c"], as_format="html")
    text = (tmp_path / "x.html").read_text()
    assert all(text.count(f">message {n}<") == 1 for n in range(6))
    assert ">early<" in text
    assert ">late<" in text


async def test_markdown_quotes_messages(memory, tmp_path):
    await memory.append("c", Message.user("# not a heading\n\n> nor ours", name="A*na"))
    call = ToolCall.of("1", "clock", "```\n{}")
    await memory.append("c", Message.assistant(tool_calls=[call]))
    await memory.append("c", Message.tool("12:00", tool_call_id="1"))
    await memory.append(
        "c", Message.user([Part.of_text("see"), Part.file("f-1", filename="x.pdf")])
    )
    await memory.describe("c", metadata={"title": "Clocks & `ticks`"})
    manifest = await memory.export(tmp_path / "c.md", conversations=["c"], as_format="markdown")
    assert manifest.entries == 4
    lines = (tmp_path / "c.md").read_text().splitlines()
    assert lines[0] == "# Clocks & \\`ticks\\`"
    headings = [line for line in lines if line.startswith("#")]
    assert [line.split(",")[0] for line in headings[1:]] == [
        "## 0: user (A\\*na)",
        "## 1: assistant",
        "## 2: tool",
        "## 3: user",
    ]
    for said in ("> # not a heading", "> > nor ours", "> → `clock`", "> ````", "> 12:00", "> see"):
        assert said in lines
    assert any("x.pdf" in line for line in lines)


async def test_several_conversations_are_files_in_a_folder(tmp_path):
    async with Memory.open("memory:") as memory:
        for name in ("notes", "Notes", "a/b", "../up", "con.", "x" * 200):
            await memory.append(name, Message.user(f"said in {name}"))
        manifest = await memory.export(tmp_path / "out", as_format="markdown")
        assert manifest.conversations == 6
    files = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert len({name.lower() for name in files}) == 6, "also where capitals do not count"
    assert "notes.md" in files
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]
    assert all(re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*\.md", name) for name in files)


def test_names_of_files_are_distinguished():
    names = ["a", "A", "a b", "a-b", "a/b", "a.", "a..", "ä", "ö", ".hidden", "-x", "日本"]
    made = {file_name(name, ".md").lower() for name in names}
    assert len(made) == len(names)


async def test_what_cannot_be_exported(memory, tmp_path):
    await memory.append("c", Message.user("x"))
    with pytest.raises(UnknownConversation):
        await memory.export(tmp_path / "x.md", conversations=["nobody"], as_format="markdown")
    with pytest.raises(InputError, match="cannot be written"):
        where = tmp_path / "no" / "x.html"
        await memory.export(where, conversations=["c"], as_format="html")
    with pytest.raises(InputError, match="cannot be created as a folder"):
        await memory.export(tmp_path / "no" / "x", as_format="markdown")
    with pytest.raises(InputError, match="unknown format"):
        await memory.export(tmp_path / "x", as_format="pdf")
    assert list(tmp_path.glob("x*")) == []


def test_the_command_writes_each_format(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FIRNLINE_STORE", raising=False)
    assert main(["append", "c", "hello"]) == 0
    assert main(["export", "x.jsonl", "--format", "openai"]) == 0
    assert json.loads((tmp_path / "x.jsonl").read_text()) == {
        "messages": [{"role": "user", "content": "hello"}]
    }
    assert main(["export", "x.md", "c", "--format", "markdown"]) == 0
    assert "> hello" in (tmp_path / "x.md").read_text()
    assert main(["export", "x.html", "c", "--format", "html"]) == 0
    assert ">hello<" in (tmp_path / "x.html").read_text()
    assert main(["export", "pages", "--format", "html"]) == 0
    assert (tmp_path / "pages" / "c.html").exists()
    assert "1 conversation, 1 message" in capsys.readouterr().out
