"""A model behind real HTTP, for the tests that let one answer."""

import pytest

from firnline.models import open_model
from firnline.testing import ModelServer


@pytest.fixture
async def server():
    async with ModelServer() as server:
        yield server


@pytest.fixture
async def model(server):
    model = open_model("test-model", url=server.url, api_key="k", retries=0)
    yield model
    await model.close()
