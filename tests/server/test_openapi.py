"""The OpenAPI document: complete, with examples that match their schemas."""

import json
from pathlib import Path
from urllib.parse import unquote

import jsonschema_rs
import pytest

from firnline.client.paths import escape_name, unescape_name
from support.rest_client import document, operations

OPERATIONS = [
    pytest.param(method, path, operation, id=operation["operationId"])
    for method, path, operation in operations()
]
PROBLEM = "application/problem+json"


def valid(schema, value):
    whole = {**schema, "components": document()["components"]}
    jsonschema_rs.validator_for(whole, validate_formats=True).validate(value)


def resolved(schema):
    name = schema["$ref"].rsplit("/", 1)[1]
    return document()["components"]["schemas"][name]


@pytest.mark.parametrize(("method", "path", "operation"), OPERATIONS)
def test_every_operation_says_what_it_is(method, path, operation):
    assert operation["tags"]
    assert operation["summary"]
    assert operation["description"].endswith((".", "`."))
    assert operation["security"] == [{"key": []}]
    for parameter in operation.get("parameters", ()):
        assert parameter["description"] or parameter["name"] == "job", parameter["name"]


@pytest.mark.parametrize(("method", "path", "operation"), OPERATIONS)
def test_every_operation_documents_its_problems(method, path, operation):
    answers = operation["responses"]
    assert {"default", "400", "401", "403", "422", "429", "503"} <= set(answers)
    if "{conversation}" in path and operation["operationId"] not in (
        "append_messages",
        "take_turn",
    ):
        assert "404" in answers
    for status, answer in answers.items():
        if status == "default" or int(status) >= 400:
            assert list(answer["content"]) == [PROBLEM]
            assert answer["content"][PROBLEM]["schema"] == {"$ref": "#/components/schemas/Problem"}
            if "example" in answer["content"][PROBLEM]:
                valid(answer["content"][PROBLEM]["schema"], answer["content"][PROBLEM]["example"])
        elif method == "get" and status == "200" and "application/json" in answer["content"]:
            assert "ETag" in answer["headers"]
            assert "304" in answers


def _body(operation):
    return operation.get("requestBody", {}).get("content", {}).get("application/json")


BODIES = [
    pytest.param(content, id=operation["operationId"])
    for *_, operation in operations()
    if (content := _body(operation)) is not None
]


@pytest.mark.parametrize("content", BODIES)
def test_bodies_have_examples_that_fit(content):
    schema = content["schema"]
    named = [one for one in schema.get("anyOf", [schema]) if "$ref" in one]
    body = resolved(named[0])
    assert body["additionalProperties"] is False
    for example in body["examples"]:
        valid(schema, example)
    for field, about in body["properties"].items():
        assert (
            about.get("description")
            or about.get("$ref")
            or about.get("examples")
            or ("maxLength" in json.dumps(about) or "maximum" in json.dumps(about))
        ), field


BOUNDS = {
    "integer": {"maximum", "enum"},
    "number": {"maximum"},
    "array": {"maxItems"},
    "string": {"maxLength", "enum", "const", "format"},
}
FREE = {"system", "task", "message", "summary"}


def unbounded(name, schema):
    """The parts of a schema of which one could be as large as the body."""
    parts = schema.get("anyOf", [schema])
    return [
        name
        for part in parts
        if part.get("type") in BOUNDS and not BOUNDS[part["type"]] & set(part) and name not in FREE
    ]


def test_every_number_and_text_of_a_request_is_bounded():
    """A field without a limit is limited by the size of the body."""
    asked = [
        (field, about)
        for name, schema in document()["components"]["schemas"].items()
        if name.endswith("Request")
        for field, about in schema["properties"].items()
    ]
    asked += [
        (parameter["name"], parameter["schema"])
        for _, _, operation in operations()
        for parameter in operation.get("parameters", ())
    ]
    assert len(asked) > 100
    assert [found for field, about in asked for found in unbounded(field, about)] == []


def test_no_reference_leads_nowhere():
    text = json.dumps(document())
    for name in {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}:
        assert name in document()["components"]["schemas"]
    ours = json.dumps([operation for _, _, operation in operations()])
    assert "HTTPValidationError" not in ours


@pytest.mark.parametrize("path", sorted({path for _, path, _ in operations()}))
def test_every_path_is_in_the_tour_with_its_verbs(path):
    text = Path(__file__).parents[2].joinpath("docs", "rest.md").read_text()
    short = path.removeprefix("/api/v1").replace("/conversations/{conversation}", "…")
    own = {method.upper() for method, its_path, _ in operations() if its_path == path}
    verbs = [verb for verb in ("GET", "POST", "PUT", "PATCH", "DELETE") if verb in own]
    assert f"`{' '.join(verbs)} {short}`" in text


# -- names in paths ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["a", "a/b", "~", "~0~1", ".", "..", "...", "a~/b.~2", "%2F", "é/"]
)
def test_a_name_survives_its_way_through_a_path(name):
    path = escape_name(name)
    assert "/" not in path
    assert path.replace("%2E", ".") not in (".", "..")
    decoded = unquote(path)  # as a server does
    assert unescape_name(decoded) == name
