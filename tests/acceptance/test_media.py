"""A 300 KB PDF, images and sound in a conversation: stored, shown, exported, imported."""

import pytest

from firnline import Budget, Message, Part, sync
from firnline.context.render import Sizes, excerpt
from firnline.log.tokens import counter
from support import media
from support.media import data_url, encoded

PDF = media.pdf(10, filler=300_000)
PNG = encoded(media.png(800, 600))
PARTS = [
    {"type": "text", "text": "What is in these?"},
    {"type": "file", "file": {"filename": "a.pdf", "file_data": data_url("application/pdf", PDF)}},
    {"type": "document", "source": {"type": "base64", "media_type": "x/y", "data": encoded(PDF)}},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
    {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "low"}},
    {"type": "input_audio", "input_audio": {"data": encoded(media.wav(3)), "format": "wav"}},
    {"type": "brand_new_2027", "data": encoded(PDF)},
]
ASKED = Message.user([Part(fields) for fields in PARTS])


async def with_media(memory):
    await memory.append("c", [ASKED, Message.assistant("A fox and a dog.")])


@pytest.mark.promise("within-budget")
async def test_each_kind_is_in_a_context_and_within_its_budget(memory):
    await with_media(memory)
    first, _ = await memory.read("c")
    assert first.tokens < 60_000
    for model in ("gpt-4o", "gpt-5-mini", "claude-opus-4-7", "gemini-2.5-pro"):
        context = await memory.context("c", Budget(100_000, 1_000, model=model))
        assert context.tokens <= 99_000
        assert [part.fields for part in context["recent"].messages[0].content] == PARTS
        assert context.to_anthropic()["messages"][0]["content"][1]["type"] == "document"
        kinds = [part["type"] for part in context.to_openai()[0]["content"]]
        assert kinds[:5] == ["text", "file", "file", "image_url", "image_url"]


@pytest.mark.promise("byte-exact")
@pytest.mark.parametrize("as_format", ["jsonl", "openai"])
def test_exported_and_imported_it_is_the_same(as_format, tmp_path):
    path = tmp_path / "c.jsonl"
    with sync.Memory.open("memory:") as memory, sync.Memory.open("memory:") as other:
        memory.append("c", [ASKED, Message.assistant("A fox and a dog.")])
        memory.export(path, as_format=as_format)
        if as_format == "jsonl":
            other.import_(path)
            assert [entry.hash for entry in other.read("c")] == [e.hash for e in memory.read("c")]
        else:
            other.import_file(path, as_format="finetune")
        (head,) = other.conversations()
        first, _ = other.read(head.conversation)
        assert [part.fields for part in first.message.content] == PARTS


@pytest.mark.parametrize("as_format", ["markdown", "html"])
def test_a_page_names_what_it_cannot_show_and_has_no_base64(as_format, tmp_path):
    result = Part.tool_result("a", [{"type": "image", "base64": PNG}])
    with sync.Memory.open("memory:") as memory:
        memory.append("c", [ASKED, Message.user([result])])
        memory.export(tmp_path / "c", conversations=["c"], as_format=as_format)
    page = (tmp_path / "c").read_text()
    assert len(page) < 10_000
    for text in ("What is in these?", "a.pdf", "document", "image", "audio"):
        assert text in page


def test_an_excerpt_keeps_the_text_and_leaves_out_what_is_too_large():
    sizes = Sizes(counter())
    words = "Compare the two offers and name the cheaper one. " * 6
    asked = Message.user([Part.of_text(words), *map(Part, PARTS[1:4])])
    short = excerpt(asked, 200, sizes, None)
    assert short.message.content.startswith(words)
    assert short.tokens <= 200
    long = Message.user([Part.of_text(words * 20), *map(Part, PARTS[1:4])])
    short = excerpt(long, 400, sizes, None)
    assert 300 <= short.tokens <= 400
    assert PNG[:40] not in short.message.text
