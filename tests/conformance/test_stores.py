"""Every store of ours takes the whole suite, and is compared with the reference step by step."""

import os

import pytest
from hypothesis import HealthCheck, settings

from firnline.store import RamStore, SqliteStore
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
