"""What all tests share."""

from pathlib import Path

import pytest

from firnline import Memory
from firnline.log import Key

BACKENDS = ("sqlite", "memory")


@pytest.fixture(params=BACKENDS)
def url(request, tmp_path: Path) -> str:
    """A new store's URL, once for each backend."""
    return f"sqlite:///{tmp_path}/store.db" if request.param == "sqlite" else "memory:"


@pytest.fixture
async def memory(url: str):
    """An open memory, once for each backend."""
    async with Memory.open(url) as memory:
        yield memory


@pytest.fixture
def key() -> Key:
    return Key("default", "c")
