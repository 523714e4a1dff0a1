"""MCP beside the other routes, if the extra ``firnline[mcp]`` is installed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from fastapi import FastAPI
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from firnline.errors import NotFound
from firnline.server.auth import Caller
from firnline.server.problems import answer
from firnline.server.state import Parts

if TYPE_CHECKING:
    from firnline.mcp.endpoint import Endpoint

PATH: Final = "/mcp"


def offer(app: FastAPI, parts: Parts) -> None:
    """Answer agents at ``/mcp``; the gate has looked at their keys."""
    parts.agents = _endpoint(parts)
    app.router.routes.append(Route(PATH, parts.agents or _missing))


@asynccontextmanager
async def answering(parts: Parts) -> AsyncIterator[None]:
    """While the application runs."""
    if parts.agents is None:
        yield
        return
    async with parts.agents.running():
        yield


def _endpoint(parts: Parts) -> Endpoint | None:
    if find_spec("mcp") is None:
        return None
    from firnline.mcp.endpoint import Endpoint  # noqa: PLC0415 - an optional extra

    most = parts.settings.body_bytes_max
    return Endpoint(parts.tenants.memory, _who, charge=parts.tokens.charge, body_bytes_max=most)


async def _who(scope: Scope) -> Caller | None:
    caller: Caller | None = scope["state"].get("caller")
    return caller


class _Missing:
    """What there is without the extra."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Say what is missing."""
        error = NotFound('agents are answered with an extra: pip install "firnline[mcp]"')
        await answer(error, PATH)(scope, receive, send)


_missing: Final = _Missing()
