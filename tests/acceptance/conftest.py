"""Fixtures of the acceptance tests: the command, a model over real HTTP, and a digested chat."""

import pytest

from firnline import Memory, strategies, sync
from firnline.cli import main
from firnline.models import open_model
from firnline.testing import ModelServer
from support.seed_chats import rounds

IN_LAYERS = strategies.layered(fan=3, digest_tokens=120)


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run a command in a separate folder; returns exit code, output and errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FIRNLINE_STORE", raising=False)

    def run(*arguments):
        try:
            code = main(arguments)
        except SystemExit as stop:
            code = stop.code
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


@pytest.fixture
async def server():
    async with ModelServer() as server:
        yield server


@pytest.fixture
async def model(server):
    model = open_model("test-model", url=server.url, api_key="k", retries=0)
    yield model
    await model.close()


@pytest.fixture(scope="session")
def digested_file(tmp_path_factory):
    """An export of "c", 180 entries with many digests in layers, created once: it is slow."""
    path = tmp_path_factory.mktemp("digested") / "c.jsonl"
    with sync.Memory.open("memory:", strategy=IN_LAYERS, background=False) as memory:
        for start in range(0, 90, 3):
            memory.append("c", list(rounds(3, start=start)))
            memory.context("c", 2_500)
        memory.export(path)
    return path


@pytest.fixture
async def digested(url, digested_file):
    """A memory with several digests in force, once for each backend."""
    async with Memory.open(url, strategy=IN_LAYERS, background=False) as memory:
        await memory.import_(digested_file)
        yield memory
