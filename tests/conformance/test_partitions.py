"""PostgreSQL with partitioned tables passes the full suite, too."""

from pathlib import Path

import psycopg
import pytest

from firnline import Memory, Message
from firnline.store.postgres import PostgresStore
from firnline.testing import StoreConformance
from support.damage import POSTGRES, damage_postgres_rows

SCRIPT = Path(__file__).parents[2] / "deploy" / "partitions.sql"
TABLES = ("entry", "segment", "said", "search", "vector", "member")


@pytest.fixture(scope="module")
def partitioned(postgres_databases):
    """A database of this module's own, cut into partitions once."""
    with postgres_databases.one() as database:
        database.meddle()
        yield database


async def cut(database):
    store = PostgresStore(database.url)
    await store.open()
    await store.close()
    with psycopg.connect(database.conninfo, autocommit=True) as owner, owner.transaction():
        owner.execute(SCRIPT.read_text())


def kinds(database):
    return dict(
        database.run(
            "SELECT relname::text, relkind::text FROM pg_class WHERE relname = ANY(%s)"
            " AND relnamespace = to_regnamespace('firnline')",
            [list(TABLES)],
        )
    )


@pytest.mark.requirement("X2")
class TestPartitionedStore(StoreConformance):
    backend = "postgres"

    @pytest.fixture(autouse=True)
    async def _database(self, partitioned):
        if not self.is_cut(partitioned):
            await cut(partitioned)
        self.database, self.url = partitioned, partitioned.url
        yield
        partitioned.empty()

    @pytest.mark.thorough
    async def test_two_thousand_searches_find_the_same_in_the_same_order(self, store):
        await super().test_two_thousand_searches_find_the_same_in_the_same_order(store)

    @staticmethod
    def is_cut(database):
        return set(kinds(database).values()) == {"p"}

    def make_store(self, folder, clock):
        return PostgresStore(self.url, clock=clock)

    async def damage_rows(self, folder, what):
        damage_postgres_rows(self.database, POSTGRES[what])
        return True


async def test_what_is_there_stays_and_each_conversation_is_in_one_partition(postgres, tmp_path):
    postgres.meddle()
    async with Memory.open(postgres.url) as memory:
        for name in ("a", "b", "c"):
            await memory.append(name, [Message.user(f"Snow in {name} {i}") for i in range(5)])
        await memory.archive("b", keep=1)
        await memory.export(tmp_path / "before")
    await cut(postgres)
    await cut(postgres)  # again: nothing is left to do
    assert kinds(postgres) == dict.fromkeys(TABLES, "p")
    async with Memory.open(postgres.url) as memory:
        await memory.export(tmp_path / "after")
        assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()
        assert len(await memory.recall("c", "snow")) == 5
        await memory.append("a", Message.user("more"))
        await memory.backup(tmp_path / "copy.sql")
        assert not [f for f in await memory.check() if f.state == "broken"]
    spread = postgres.run(
        "SELECT conversation, count(DISTINCT tableoid) FROM firnline.entry GROUP BY conversation"
    )
    assert {parts for _, parts in spread} == {1}
    copied = (tmp_path / "copy.sql").read_text()
    assert copied.count(b"Snow in c 4".hex()) == 1, "each row once"
