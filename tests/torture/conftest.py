"""Fixtures of the torture tests: the seed of a run, and the kit that the scripts use, too."""

import os
import random
import sys
import tempfile
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parent / "scripts"

# Test modules are imported by path; they and their scripts import the kit.
sys.path.insert(0, str(SCRIPTS))

TORTURE = bool(os.environ.get("FIRNLINE_TORTURE"))


@pytest.fixture
def seed():
    """Always the same seed, but a new one for each long run; FIRNLINE_SEED repeats one."""
    new = random.SystemRandom().randrange(1, 2**32) if TORTURE else 1138
    chosen = int(os.environ.get("FIRNLINE_SEED", "0")) or new
    sys.stdout.write(f"FIRNLINE_SEED={chosen} repeats this run\n")
    return chosen


@pytest.fixture
def rng(seed):
    return random.Random(seed)


@pytest.fixture(params=["sqlite", "postgres", "mongo"])
def shared(request, database):
    """A store that several processes share: a file's path, or a server's URL."""
    return database if request.param == "sqlite" else request.getfixturevalue(request.param).url


@pytest.fixture
def tmp_path():
    """A folder on a disk, if there is one: other tests' folders may be in memory."""
    disk = "/var/tmp" if os.access("/var/tmp", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="firnline-torture-", dir=disk) as folder:
        yield Path(folder)


@pytest.fixture
def database(tmp_path):
    """The path of a test's database, alone in its folder, so that its side files are visible."""
    folder = tmp_path / "database"
    folder.mkdir()
    return folder / "torture.db"
