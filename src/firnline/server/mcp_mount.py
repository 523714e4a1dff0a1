"""The MCP endpoint, if the extra ``firnline[mcp]`` is installed."""

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
from firnline.server.problems import error_response
from firnline.server.state import Parts

if TYPE_CHECKING:
    from firnline.mcp.endpoint import Endpoint

PATH: Final = "/mcp"


def mount(app: FastAPI, parts: Parts) -> None:
    """Add the route ``/mcp``; the middleware has checked the key."""
    parts.agents = _endpoint(parts)
    app.router.routes.append(Route(PATH, parts.agents or _not_installed))


@asynccontextmanager
async def running(parts: Parts) -> AsyncIterator[None]:
    """Run the endpoint together with the application."""
    if parts.agents is None:
        yield
        return
    async with parts.agents.running():
        yield


def _endpoint(parts: Parts) -> Endpoint | None:
    if find_spec("mcp") is None:
        return None
    from firnline.mcp.endpoint import Endpoint, named_person  # noqa: PLC0415 - an optional extra

    most = parts.settings.body_bytes_max
    charge = parts.tokens.charge

    def person(scope: Scope) -> str | None:
        caller: Caller | None = scope["state"].get("caller")
        return caller.person if caller and caller.person is not None else named_person(scope)

    return Endpoint(
        parts.tenants.memory, _caller, charge=charge, person=person, body_bytes_max=most
    )


async def _caller(scope: Scope) -> Caller | None:
    caller: Caller | None = scope["state"].get("caller")
    return caller


class _NotInstalled:
    """The route without the extra."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with an error that names the extra."""
        error = NotFound('MCP needs an extra: pip install "firnline[mcp]"')
        await error_response(error, PATH)(scope, receive, send)


_not_installed: Final = _NotInstalled()
