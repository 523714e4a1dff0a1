"""What conversations are called: by what a person wrote, not by what a program put before it."""

import json
from pathlib import Path

import pytest

from firnline import Memory, Message
from firnline.server.titles import title_of, without_blocks
from support.live_server import running

SUPPORT = Path(__file__).parents[1] / "support"
CONTEXT = "<environment_context>\n  <cwd>/home/ana/project</cwd>\n</environment_context>"
REMINDER = "<system-reminder>\nToday is Friday; <b>x</b> < y.\n</system-reminder>"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Fix the mill.", "Fix the mill."),
        (CONTEXT, ""),
        (f"{CONTEXT}\n\n{REMINDER}\nFix the mill.", "Fix the mill."),
        ('<skill name="a b">x</skill> Fix <b>it</b>.', "Fix <b>it</b>."),
        ("# AGENTS.md instructions for /home\n\n<INSTRUCTIONS>\nx\n</INSTRUCTIONS>", ""),
        ("# AGENTS.md instructions", ""),
        ("<b>not closed", "<b>not closed"),
        ("3 < 4 and <5", "3 < 4 and <5"),
        ("< b>spaced</b>", "< b>spaced</b>"),
        ("", ""),
    ],
)
def test_blocks_of_a_program_are_left_out(text, left):
    assert without_blocks(text) == left


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
PDF = {
    "type": "file",
    "file": {"filename": "bill.pdf", "file_data": "data:application/pdf;base64,J"},
}
DOCUMENT = {"type": "document", "title": "Lease", "source": {"type": "url", "url": "https://a.b"}}


@pytest.mark.parametrize(
    ("contents", "title"),
    [
        ([CONTEXT, "Fix the mill."], "Fix the mill."),
        ([[{"type": "text", "text": REMINDER}, {"type": "text", "text": "Hello"}]], "Hello"),
        ([[IMAGE]], "[image]"),
        ([[IMAGE], "What is it?"], "What is it?"),
        ([[PDF]], "bill.pdf"),
        ([[DOCUMENT]], "Lease"),
        (["<config>\n<port>6543</port>\n</config>"], "<config> <port>6543</port> </config>"),
        ([], ""),
    ],
)
async def test_a_title_is_what_a_person_wrote_first(contents, title):
    async with Memory.open("memory:", embedder=None) as memory:
        said = [Message.from_openai({"role": "user", "content": each}) for each in contents]
        await memory.append("c", [Message("developer", "Be kind."), *said])
        head = await memory.head("c")
        assert await title_of(memory, head) == title


def test_sessions_of_codex_have_the_same_title_proxied_and_imported(tmp_path):
    steps = json.loads((SUPPORT / "agent_sessions.json").read_text())["codex"]
    path = tmp_path / "rollout.jsonl"
    path.write_text("".join(json.dumps(step["line"]) + "\n" for step in steps))
    with running() as server:
        memory = server.memory()
        server.run(memory.import_file(path, as_format="codex"))
        (head,) = server.run(memory.conversations(limit=9))
        assert server.run(title_of(memory, head)).startswith("The staging database is db-17")
