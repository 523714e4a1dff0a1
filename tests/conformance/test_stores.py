"""Every store passes the full suite, and is compared with the reference step by step."""

import os

import pytest
from hypothesis import HealthCheck, settings

from firnline.store import RamStore, SqliteStore
from firnline.store.mongo import MongoStore
from firnline.store.postgres import PostgresStore
from firnline.testing import StoreConformance, store_machine
from support.damage import POSTGRES, SQLITE, damage_mongo, damage_postgres_rows, damage_rows

EXAMPLES = 500 if os.environ.get("FIRNLINE_TORTURE") else 60


@pytest.mark.requirement("X2")
class TestRamStore(StoreConformance):
    backend = "memory"

    # No other program can reach its data.
    test_damage_outside_the_log_is_noticed = None

    def make_store(self, folder, clock):
        return RamStore(clock=clock)


@pytest.mark.requirement("X2")
class TestSqliteStore(StoreConformance):
    backend = "sqlite"

    def make_store(self, folder, clock):
        return SqliteStore(folder / "store.db", clock=clock)

    async def damage_rows(self, folder, what):
        damage_rows(folder / "store.db", SQLITE[what])
        return True


@pytest.mark.requirement("X2")
class TestPostgresStore(StoreConformance):
    backend = "postgres"

    @pytest.fixture(autouse=True)
    def _database(self, postgres):
        self.database, self.url = postgres, postgres.url

    def make_store(self, folder, clock):
        return PostgresStore(self.url, clock=clock)

    async def damage_rows(self, folder, what):
        damage_postgres_rows(self.database, POSTGRES[what])
        return True


@pytest.mark.requirement("X2")
class TestMongoStore(StoreConformance):
    backend = "mongo"

    @pytest.fixture(autouse=True)
    def _database(self, mongo):
        self.database, self.url = mongo, mongo.url

    def make_store(self, folder, clock):
        return MongoStore(self.url, clock=clock)

    async def damage_rows(self, folder, what):
        damage_mongo(self.database.look, what)
        return True


TestSqliteAgainstReference = store_machine(
    lambda folder, clock: SqliteStore(folder / "store.db", full_sync=False, clock=clock)
).TestCase
TestSqliteAgainstReference.settings = settings(
    max_examples=EXAMPLES,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestSqliteAgainstReference.pytestmark = [pytest.mark.promise("dense")]


class _Machine:
    """The database for random steps; empty at the start of each run."""

    def __init__(self, kind):
        self._kind = kind
        self.database = self.folder = None

    def make_store(self, folder, clock):
        if folder != self.folder:
            self.database.clean()
            self.folder = folder
        return self._kind(self.database.url, clock=clock, connections=2)


_POSTGRES, _MONGO = _Machine(PostgresStore), _Machine(MongoStore)


@pytest.fixture
def _postgres_machine(postgres):
    _POSTGRES.database = postgres


@pytest.fixture
def _mongo_machine(mongo):
    _MONGO.database = mongo


TestPostgresAgainstReference = store_machine(_POSTGRES.make_store).TestCase
TestPostgresAgainstReference.settings = settings(
    TestSqliteAgainstReference.settings, max_examples=EXAMPLES // 4
)
TestPostgresAgainstReference.pytestmark = [
    pytest.mark.promise("dense"),
    pytest.mark.usefixtures("_postgres_machine"),
]

TestMongoAgainstReference = store_machine(_MONGO.make_store).TestCase
TestMongoAgainstReference.settings = settings(
    TestSqliteAgainstReference.settings, max_examples=EXAMPLES // 6
)
TestMongoAgainstReference.pytestmark = [
    pytest.mark.promise("dense"),
    pytest.mark.usefixtures("_mongo_machine"),
]
