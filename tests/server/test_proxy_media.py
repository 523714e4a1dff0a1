"""Images, PDFs and sound go through the proxy by both protocols, counted by their rules."""

import anthropic
import openai
import pytest

from firnline.testing import ModelServer
from support import media
from support.live_server import running
from support.media import encoded

pytestmark = [pytest.mark.promise("media-by-rule")]

MODEL = "gpt-4o"
PDF = encoded(media.pdf(10, filler=300_000))
PNG = encoded(media.png(1_024, 1_024))
SOUND = encoded(media.wav(20))
WORDS = {"type": "text", "text": "What is in these?"}
FILE = {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PDF}"}
OPENAI_PARTS = [
    WORDS,
    {"type": "file", "file": FILE},
    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}", "detail": "high"}},
    {"type": "input_audio", "input_audio": {"data": SOUND, "format": "wav"}},
]
DOCUMENT = {"type": "base64", "media_type": "application/pdf", "data": PDF}
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
BLOCKS = [WORDS, {"type": "document", "source": DOCUMENT, "title": "a.pdf"}, PICTURE]


@pytest.fixture
def model():
    with ModelServer(model=MODEL) as server:
        yield server


def entries(server, conversation):
    return server.run(server.memory().read(conversation))


def ask(server, history):
    with openai.OpenAI(base_url=f"{server.url}/c/c/v1", api_key="k", max_retries=0) as sdk:
        raw = sdk.chat.completions.with_raw_response.create(model=MODEL, messages=history)
        return raw.parse().choices[0].message.content, raw.headers


def ask_anthropic(server, history):
    tools = [{"name": "shot", "input_schema": {"type": "object"}}]
    with anthropic.Anthropic(base_url=f"{server.url}/c/c", api_key="k", max_retries=0) as sdk:
        counted = sdk.messages.count_tokens(model=MODEL, messages=history).input_tokens
        sdk.messages.create(model=MODEL, max_tokens=200, messages=history, tools=tools)
        return counted


def test_an_openai_client_sends_a_pdf_an_image_and_sound(model):
    with running(upstream=model.url, window_tokens=16_000) as server:
        text, headers = ask(server, [{"role": "user", "content": OPENAI_PARTS}])
        assert text
        assert 10 * 85 + 765 + 200 < int(headers["x-firnline-tokens"]) < 6_000
        ask(server, [{"role": "user", "content": "And now?"}])
        first, *_ = entries(server, "c")
        assert [part.fields for part in first.message.content] == OPENAI_PARTS
    for request in model.requests:
        assert request["messages"][0]["content"] == OPENAI_PARTS


@pytest.mark.parametrize("way", ["anthropic", "upstream"])
def test_an_anthropic_client_sends_a_pdf_and_a_tool_returns_an_image(model, way):
    call = {"type": "tool_use", "id": "a", "name": "shot", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "a", "content": [PICTURE]}
    history = [
        {"role": "user", "content": BLOCKS},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ]
    with running(**{way: model.url, "window_tokens": 16_000}) as server:
        counted = ask_anthropic(server, history)
        assert 10 * 85 + 2 * 765 < counted < 7_000
        first, *_ = entries(server, "c")
        assert [part.fields for part in first.message.content] == BLOCKS
    sent = model.requests[-1]["messages"]
    if way == "anthropic":
        assert sent == history
        return
    url = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
    assert sent[0]["content"] == [WORDS, {"type": "file", "file": FILE}, url]
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "user"]
    assert sent[-1]["content"] == [url]


def test_what_an_anthropic_client_sent_an_openai_client_continues(model):
    with running(anthropic=model.url, upstream=model.url, window_tokens=16_000) as server:
        ask_anthropic(server, [{"role": "user", "content": BLOCKS}])
        ask(server, [{"role": "user", "content": "And now?"}])
    kinds = [part["type"] for part in model.requests[-1]["messages"][0]["content"]]
    assert kinds == ["text", "file", "image_url"]


def test_what_does_not_fit_is_an_error_with_its_size(model):
    with running(upstream=model.url, window_tokens=2_000) as server:
        with pytest.raises(openai.BadRequestError) as raised:
            ask(server, [{"role": "user", "content": OPENAI_PARTS}])
        assert raised.value.code == "context_length_exceeded"
    assert model.requests == []
