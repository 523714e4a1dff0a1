"""What `firnline doctor` checks of a server's settings: that they are valid, and what they name.

The endpoints are asked for their lists of models, which costs nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final, NamedTuple

import httpx2

from firnline.errors import FirnlineError, cause
from firnline.models import locate_model
from firnline.protocols import Finding
from firnline.server.base_urls import endpoint_hint
from firnline.server.limits import CHECKUP_BYTES_MAX, CHECKUP_SECONDS
from firnline.server.serve import unknown_variables
from firnline.server.settings import Settings, load
from firnline.store import redact_url

_REJECTED: Final = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})


class _Endpoint(NamedTuple):
    """An endpoint that the settings name: what it is for, and what is sent to it."""

    what: str
    setting: str
    url: str
    headers: Mapping[str, str]
    model: str = ""


async def check_settings(config: str | None, store: str) -> list[Finding]:
    """The findings for the settings of a server; `store` is the store that is checked otherwise."""
    try:
        settings = load(config)
        endpoints = _endpoints(settings)
    except FirnlineError as error:
        return [Finding("server", "broken", " ".join(str(error).split()))]
    found = [_settings(settings, store)]
    async with httpx2.AsyncClient(timeout=CHECKUP_SECONDS) as client:
        found += [await _ask(client, endpoint) for endpoint in endpoints]
    named = {endpoint.what for endpoint in endpoints}
    if "model" not in named:
        found.append(Finding("model", "ok", "none; digests are created offline"))
    if "upstream" not in named:
        found.append(Finding("upstream", "ok", "none; the proxy answers with quotes from memory"))
    return found


def _settings(settings: Settings, store: str) -> Finding:
    if unknown := unknown_variables(settings):
        return Finding("server", "warning", f"not a setting: {', '.join(unknown)}")
    if "store" in settings.model_fields_set and settings.store != store:
        serves = redact_url(settings.store)
        return Finding("server", "warning", f"the server uses {serves}, which is not this store")
    chosen = ", ".join(sorted(settings.model_fields_set)) or "none, all are the defaults"
    return Finding("server", "ok", f"settings are valid; set: {chosen}")


def _endpoints(settings: Settings) -> list[_Endpoint]:
    found = []
    if settings.model is not None:
        key = settings.model_key.get_secret_value() if settings.model_key else None
        at = locate_model(settings.model, url=settings.model_url, api_key=key)
        headers = {"authorization": f"Bearer {at.api_key}"} if at.api_key else {}
        url = at.url.rstrip("/")
        found.append(_Endpoint("model", "FIRNLINE_MODEL_URL", url, headers, at.model))
    if settings.upstream is not None:
        given = settings.upstream_key
        headers = {"authorization": f"Bearer {given.get_secret_value()}"} if given else {}
        found.append(_Endpoint("upstream", "FIRNLINE_UPSTREAM", settings.upstream, headers))
    if settings.anthropic is not None:
        given = settings.anthropic_key
        headers = {"x-api-key": given.get_secret_value()} if given else {}
        headers["anthropic-version"] = "2023-06-01"
        found.append(_Endpoint("anthropic", "FIRNLINE_ANTHROPIC", settings.anthropic, headers))
    return found


async def _ask(client: httpx2.AsyncClient, endpoint: _Endpoint) -> Finding:
    what, setting, url, headers, model = endpoint
    body = bytearray()
    try:
        async with client.stream("GET", f"{url}/models", headers=headers) as answer:
            async for piece in answer.aiter_bytes():
                body += piece
                if len(body) > CHECKUP_BYTES_MAX:
                    break
    except httpx2.RequestError as error:
        return Finding(what, "broken", f"{url} cannot be reached: {cause(error)}")
    status = answer.status_code
    has_key = bool({"authorization", "x-api-key"} & headers.keys())
    if status in _REJECTED and not has_key and what != "model":
        return Finding(what, "ok", f"{url} answers; clients send keys of their own")
    if status in _REJECTED:
        return Finding(what, "broken", f"{url} rejects the key with {status}")
    hint = endpoint_hint(url, setting) if status == HTTPStatus.NOT_FOUND else ""
    if hint or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return Finding(what, "broken", f"{url} answered {status}" + (f": {hint}" if hint else ""))
    names = _names(bytes(body)) if status == HTTPStatus.OK else set()
    if model and names and not {model, f"models/{model}"} & names:
        return Finding(what, "warning", f"{url} answers, but does not list {model}")
    return Finding(what, "ok", f"{url} answers")


def _names(body: bytes) -> set[str]:
    """The names of the listed models; empty if it is no such list."""
    try:
        rows = json.loads(body)["data"]
        return {str(row["id"]) for row in rows}
    except (ValueError, KeyError, TypeError):
        return set()
