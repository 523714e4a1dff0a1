"""MCP inside the server: the same authentication, keys and tenants."""

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from firnline.server.keys import NO_TENANT, Keys
from firnline.store.cards import TenantCards
from support.live_server import running

SAID = {"conversation": "tea", "messages": [{"role": "user", "text": "Tea at five."}]}


async def _found(url, token=None):
    headers = {"authorization": f"Bearer {token}"} if token else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http)) as agent,
    ):
        stored = await agent.call_tool("append", SAID)
        listed = await agent.call_tool("conversations", {})
        return stored, str(listed.structured_content)


async def test_an_agent_on_this_machine_needs_no_key():
    with running() as server:
        stored, listed = await _found(server.url)
        assert not stored.is_error
        assert "tea" in listed


async def test_agents_with_keys_see_their_own_tenant(tmp_path):
    with running(store=f"sqlite:///{tmp_path}/a.db", auth="required") as server:
        keys = Keys(TenantCards(server.parts.tenants.store, NO_TENANT))
        tokens = [server.run(keys.create(tenant))[1] for tenant in ("ana", "boris")]
        only_read = server.run(keys.create("boris", scopes=["read"]))[1]
        await _found(server.url, tokens[0])
        async with (
            httpx2.AsyncClient(
                headers={"authorization": f"Bearer {only_read}"}, timeout=60
            ) as http,
            Client(streamable_http_client(f"{server.url}/mcp", http_client=http)) as agent,
        ):
            listed = await agent.call_tool("conversations", {})
            assert "tea" not in str(listed.structured_content)
            refused = await agent.call_tool("append", SAID)
            assert refused.is_error
        for headers in ({}, {"authorization": "Bearer fl_0000000000000000_11"}):
            answer = httpx2.post(f"{server.url}/mcp", json={}, headers=headers, timeout=60)
            assert answer.status_code == 401


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_other_methods_are_rejected(method):
    with running() as server:
        assert httpx2.request(method, f"{server.url}/mcp", timeout=60).status_code == 405
