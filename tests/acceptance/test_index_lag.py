"""The word index of SQLite keeps up with appends, and with many small conversations."""

import asyncio
from contextlib import closing

import apsw
import pytest

from firnline import Memory, Message
from firnline.log import limits
from firnline.store.sqlite import search


def unindexed(path):
    with closing(apsw.Connection(str(path))) as connection:
        return connection.execute("SELECT sum(next_seq - indexed) FROM conversation").get


@pytest.fixture
def impatient(monkeypatch):
    """The writer has no idle moment, and keeps up in small steps."""
    monkeypatch.setattr(limits, "INDEX_IDLE_SECONDS", 3_600)
    monkeypatch.setattr(limits, "INDEX_LAG", 100)
    monkeypatch.setattr(limits, "INDEX_PAGE", 25)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("batch", [1, 60])
async def test_the_index_keeps_up_with_appends_that_never_pause(tmp_path, batch):
    path = tmp_path / "store.db"
    async with Memory.open(f"sqlite:///{path}", background=False) as memory:
        for number in range(600 // batch):
            await memory.append("c", [Message.user(f"bird{number}")] * batch)
        async with asyncio.timeout(30):
            while unindexed(path) > 100 + batch:
                await asyncio.sleep(0.01)
        (hit,) = await memory.recall("c", "bird0", limit=1)
        assert hit.entry.seq < batch


@pytest.mark.usefixtures("impatient")
async def test_many_small_conversations_are_indexed_in_few_transactions(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "INDEX_LAG", 10_000)
    pages, index_page = 0, search.index_page

    def counted(*args, **kwargs):
        nonlocal pages
        pages += 1
        return index_page(*args, **kwargs)

    monkeypatch.setattr(search, "index_page", counted)
    path = tmp_path / "store.db"
    async with Memory.open(f"sqlite:///{path}", background=False) as memory:
        for number in range(60):
            await memory.append(f"c{number}", Message.user(f"bird{number} sings"))
        assert unindexed(path) == 60
        assert await memory.recall(None, "sings", limit=100)
        assert unindexed(path) == 0
    assert pages <= 60 / 25 + 1
