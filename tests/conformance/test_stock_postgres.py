"""PostgreSQL as it is installed: Debian's packages with their settings, and behind PgBouncer."""

import psycopg
import pytest

from firnline.log.entry import Scope
from firnline.store.postgres import PostgresStore, search
from firnline.store.postgres.connection import Transaction
from firnline.testing import StoreConformance
from firnline.testing.drafts import KEY, drafts
from support.damage import POSTGRES, damage_postgres_rows
from support.postgres_server import ROLE, Databases, Server, pgbouncer

pytestmark = [pytest.mark.requirement("X2"), pytest.mark.debian("postgres")]


@pytest.fixture(scope="module")
def server():
    server = Server(stock=True)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def databases(server):
    databases = Databases(server.url, "stock")
    yield databases
    databases.close()


@pytest.fixture(scope="module")
def pooler(server):
    with pgbouncer(server, ROLE) as place:
        yield place


@pytest.fixture
def database(databases):
    with databases.one() as database:
        yield database


@pytest.fixture
def pooled(pooler, database):
    return f"postgresql://{ROLE}@/{database.name}{pooler}"


async def test_no_query_is_compiled(database, monkeypatch):
    """By default, those of a search are: that took 34 to 90 times as long as running them."""
    with psycopg.connect(database.conninfo) as connection:
        assert connection.execute("SHOW jit").fetchone() == ("on",)
        estimate = connection.execute("SELECT pg_jit_available()").fetchone()
    plans = []
    each = Transaction.each

    async def explained(self, *queries):
        for sql, values in queries:
            (plan,) = await each(self, (f"EXPLAIN (ANALYZE) {sql}", values))
            plans.append("\n".join(line for (line,) in plan))
        return await each(self, *queries)

    store = PostgresStore(database.url)
    await store.open()
    await store.append(KEY, drafts([f"the weather of day {i} was fine" for i in range(60)]))
    monkeypatch.setattr(Transaction, "each", explained)
    await store._database.read(
        KEY.tenant,
        lambda tx: search.matches(tx, KEY.tenant, "weather day 7", Scope(), 5),
        brief=False,
    )
    await store.close()
    assert estimate == (True,)
    assert len(plans) > 2
    assert not [plan for plan in plans if "JIT:" in plan]


@pytest.mark.debian("pgbouncer")
async def test_a_store_works_behind_a_pooler(pooled, database):
    stores = [PostgresStore(pooled) for _ in range(3)]
    for store in stores:
        await store.open()
    for number, store in enumerate(stores):
        await store.append(KEY, drafts([f"word{number}", "more"]))
        assert [hit.seq for hit in await store.search(KEY.tenant, f"word{number}")] == [2 * number]
    assert len(await stores[0].read(KEY)) == 6
    for store in stores:
        await store.close()


@pytest.mark.thorough
class TestStockStore(StoreConformance):
    backend = "postgres"

    @pytest.fixture(autouse=True)
    def _database(self, database):
        self.database, self.url = database, database.url

    def make_store(self, folder, clock):
        return PostgresStore(self.url, clock=clock)

    async def damage_rows(self, folder, what):
        damage_postgres_rows(self.database, POSTGRES[what])
        return True


@pytest.mark.thorough
@pytest.mark.debian("pgbouncer")
class TestPooledStore(TestStockStore):
    @pytest.fixture(autouse=True)
    def _database(self, database, pooled):
        self.database, self.url = database, pooled
