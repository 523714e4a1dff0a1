"""Every store of ours takes the whole suite, and is compared with the reference step by step."""

import os

import pytest
from hypothesis import HealthCheck, settings

from firnline.store import RamStore, SqliteStore
from firnline.store.postgres import PostgresStore
from firnline.testing import StoreConformance, store_machine

EXAMPLES = 500 if os.environ.get("FIRNLINE_TORTURE") else 60


@pytest.mark.requirement("X2")
class TestRamStore(StoreConformance):
    backend = "memory"

    def make_store(self, folder, clock):
        return RamStore(clock=clock)


@pytest.mark.requirement("X2")
class TestSqliteStore(StoreConformance):
    backend = "sqlite"

    def make_store(self, folder, clock):
        return SqliteStore(folder / "store.db", clock=clock)


@pytest.mark.requirement("X2")
class TestPostgresStore(StoreConformance):
    backend = "postgres"

    @pytest.fixture(autouse=True)
    def _database(self, postgres):
        self.url = postgres.url

    def make_store(self, folder, clock):
        return PostgresStore(self.url, clock=clock)


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
    """The database that random steps are taken on; empty at the beginning of each run of them."""

    database = folder = None

    def make_store(self, folder, clock):
        if folder != self.folder:
            self.database.clean()
            self.folder = folder
        return PostgresStore(self.database.url, clock=clock, connections=2)


_MACHINE = _Machine()


@pytest.fixture
def _machine_database(postgres):
    _MACHINE.database = postgres


TestPostgresAgainstReference = store_machine(_MACHINE.make_store).TestCase
TestPostgresAgainstReference.settings = settings(
    TestSqliteAgainstReference.settings, max_examples=EXAMPLES // 4
)
TestPostgresAgainstReference.pytestmark = [
    pytest.mark.promise("dense"),
    pytest.mark.usefixtures("_machine_database"),
]
