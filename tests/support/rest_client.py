"""A client of the REST API that checks every answer against the OpenAPI document."""

import copy
import json
import re
from functools import cache
from typing import Any, Self

import httpx2
import jsonschema_rs
import pytest

from firnline.server.app import create_app
from firnline.server.settings import load

# For requests that are rejected before the store is used: one backend is enough.
on_any_store = pytest.mark.parametrize("url", ["memory"], indirect=True)

PREFIX = "/api/v1"
METHODS = ("get", "put", "post", "patch", "delete")


@cache
def document() -> dict[str, Any]:
    """The server's OpenAPI document."""
    return create_app(load(store="memory:", embedder="none")).openapi()


@cache
def _closed() -> dict[str, Any]:
    """The schemas, strict: unknown fields in an answer fail."""
    schemas = copy.deepcopy(document()["components"]["schemas"])
    for schema in schemas.values():
        if "properties" in schema:
            schema.setdefault("additionalProperties", False)
    return schemas


@cache
def operations() -> list[tuple[str, str, dict[str, Any]]]:
    """Every method of every path of the REST API."""
    return [
        (method, path, found[method])
        for path, found in document()["paths"].items()
        if path.startswith(PREFIX)
        for method in METHODS
        if method in found
    ]


@cache
def _patterns() -> list[tuple[re.Pattern[str], str]]:
    plain_first = sorted(document()["paths"], key=lambda path: path.count("{"))
    return [
        (re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path))), path) for path in plain_first
    ]


@cache
def _validator(schema: str) -> jsonschema_rs.Validator:
    whole = {**json.loads(schema), "components": {"schemas": _closed()}}
    return jsonschema_rs.validator_for(whole, validate_formats=True)


def template(path: str) -> str:
    """The documented path template of a path."""
    return next(known for pattern, known in _patterns() if pattern.fullmatch(path))


def conforms(method: str, path: str, response: httpx2.Response) -> None:
    """Fail unless the document describes this answer to this request."""
    operation = document()["paths"][template(path)][method.lower()]
    answers = operation["responses"]
    documented = answers.get(str(response.status_code), answers["default"])
    told = response.headers.get("content-type", "").partition(";")[0]
    if response.status_code == 304:
        assert not response.content
        return
    assert told in documented["content"], f"{method} {path}: {told}"
    for name, about in documented.get("headers", {}).items():
        assert name.lower() in response.headers or not about.get("required"), name
    if told.endswith("json"):
        _validator(json.dumps(documented["content"][told]["schema"])).validate(response.json())


class Api:
    """The API of a running server, used with one key."""

    def __init__(self, url: str, key: str | None = None) -> None:
        headers = {"authorization": f"Bearer {key}"} if key else {}
        self.http = httpx2.Client(base_url=url, headers=headers, timeout=60)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    def ask(self, method: str, path: str, body: Any = None, **more: Any) -> httpx2.Response:
        """Any request below the prefix; its answer is checked against the document."""
        if body is not None:
            more["json"] = body
        response = self.http.request(method, PREFIX + path, **more)
        conforms(method, PREFIX + path, response)
        return response

    def get(self, path: str, **query: Any) -> Any:
        """The body of a GET."""
        return _good(self.ask("GET", path, params=query))

    def post(self, path: str, body: Any = None, **more: Any) -> Any:
        """The body of the answer."""
        return _good(self.ask("POST", path, body, **more))

    def put(self, path: str, body: Any = None) -> Any:
        return _good(self.ask("PUT", path, body))

    def patch(self, path: str, body: Any = None) -> Any:
        return _good(self.ask("PATCH", path, body))

    def delete(self, path: str, **query: Any) -> Any:
        return _good(self.ask("DELETE", path, params=query))

    def say(self, conversation: str, *texts: str, **more: Any) -> Any:
        """Append messages, the user's and the assistant's by turns."""
        roles = ("user", "assistant")
        messages = [{"role": roles[i % 2], "content": text} for i, text in enumerate(texts)]
        return self.post(f"/conversations/{conversation}/messages", {"messages": messages}, **more)

    def all(self, path: str, **query: Any) -> list[Any]:
        """Every item of a list, page by page."""
        found, cursor, seen = [], None, set()
        while True:
            page = self.get(path, **{**query, **({"cursor": cursor} if cursor else {})})
            found += page["data"]
            cursor = page["next_cursor"]
            assert page["has_more"] == (cursor is not None)
            if cursor is None:
                return found
            assert cursor not in seen, "it goes on for ever"
            seen.add(cursor)

    def refused(self, method: str, path: str, body: Any = None, **more: Any) -> dict[str, Any]:
        """The problem in the answer to a request."""
        response = self.ask(method, path, body, **more)
        assert response.status_code >= 400, response.text
        problem = response.json()
        assert problem["status"] == response.status_code
        assert response.headers["content-type"] == "application/problem+json"
        return problem


def _good(response: httpx2.Response) -> Any:
    assert response.status_code < 300, response.text
    return response.json()


def key_for(server: Any, tenant: str, *scopes: str) -> str:
    """A new key of a running server."""
    keys = server.parts.keys
    _, token = server.run(keys.create(tenant, scopes=scopes or ("read", "write", "admin")))
    return token


def parse_events(text: str) -> list[tuple[str, Any]]:
    """Server-sent events: their names and data."""
    found = []
    for block in text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
        if "event" in lines:
            found.append((lines["event"], json.loads(lines["data"])))
    return found
