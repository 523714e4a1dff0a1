"""Fixtures for the REST API: a real server on each backend, and a client of it."""

import pytest

from support.live_server import running
from support.rest_client import Api


@pytest.fixture
def server(url):
    """A server in a thread, whose digests are created on request."""
    with running(store=url, background=False) as server:
        yield server


@pytest.fixture
def api(server):
    """Its API, on the local machine, where no key is needed."""
    with Api(server.url) as api:
        yield api
