"""No input makes the server fail: schemathesis on its OpenAPI document, and our dictionary."""

import copy
import gzip
import json
import os

import httpx2
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi import checks

from support.live_server import running
from support.rest_client import Api, conforms, document, key_for, operations

TORTURE = "FIRNLINE_TORTURE" in os.environ
EXAMPLES = 150 if TORTURE else 4
OPERATIONS = [
    pytest.param(method, path, operation, id=operation["operationId"])
    for method, path, operation in operations()
]
KNOWN = {
    "conversation": "known",
    "version": 1,
    "topic": 0,
    "seq": 0,
    "project": "known",
    "person": "known",
    "fact": "0" * 16,
}


@pytest.fixture(scope="module")
def server():
    with running(background=False, requests_per_minute=0, auth="required") as server:
        yield server


@pytest.fixture(scope="module")
def key(server):
    return key_for(server, "fuzzed")


@pytest.fixture
def api(server, key):
    """A client, and a conversation that requests can be about."""
    with Api(server.url, key) as api:
        api.say("known", "The ferry leaves at nine.", "Noted.", "And the price?", "Nine euros.")
        api.post("/conversations/known/important", {"important_data": {"entities": ["ferry"]}})
        api.put("/projects/known", {})
        yield api


# -- schemathesis -----------------------------------------------------------------------------


@schemathesis.serializer("application/jsonl")
def _lines(_, value):
    return value.encode(errors="replace") if isinstance(value, str) else json.dumps(value).encode()


def _schema():
    """The document without keys, which the tests of the gate are about."""
    raw = copy.deepcopy(document())
    raw["paths"] = {path: v for path, v in raw["paths"].items() if path.startswith("/api/v1")}
    for path in raw["paths"].values():
        for operation in path.values():
            operation.pop("security", None)
    return schemathesis.openapi.from_dict(raw)


SCHEMA = _schema()
# A text can be a cursor or a name by the schema, and be none by what it says.
UNDECIDED = [checks.positive_data_acceptance, checks.ignored_auth]


TRIED = [
    pytest.param(method, path, mode, id=f"{operation['operationId']}-{mode.value}")
    for method, path, operation in operations()
    for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    # Without input there is no invalid input.
    if mode is GenerationMode.POSITIVE or {"parameters", "requestBody"} & set(operation)
]


# The server in this process draws numbers while hypothesis does.
@pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisDeprecationWarning")
@pytest.mark.parametrize(("method", "path", "mode"), TRIED)
def test_schemathesis_finds_nothing(server, key, api, method, path, mode):
    """No 500, no undocumented answer, no other schema, no invalid input that is accepted."""
    tested = SCHEMA[path][method.upper()]
    headers = {"authorization": f"Bearer {key}"}
    count = 0

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
        derandomize=not TORTURE,
        phases=[Phase.explicit, Phase.generate],  # what fails is printed as a request anyway
    )
    @given(case=tested.as_strategy(generation_mode=mode))
    def run(case):
        nonlocal count
        count += 1
        excluded = list(UNDECIDED)
        if count % 4 or path == "/api/v1/import":
            # Mostly about something that exists; problems of a file are reported by its job.
            excluded.append(checks.negative_data_rejection)
            for name in case.path_parameters or ():
                case.path_parameters[name] = KNOWN.get(name, case.path_parameters[name])
        case.call_and_validate(
            base_url=server.url, headers=headers, excluded_checks=excluded, timeout=60
        )

    run()
    assert count, "nothing was generated"


# -- our own dictionary -----------------------------------------------------------------------

TEXTS = [
    "",
    " ",
    "\0",
    "a\0b",
    "\ud800",
    "\udfff\ud800",
    "\x1b[31mred",
    "\u202edesrever",
    "\u200b",
    "😀" * 300,
    "é" * 201,
    "x" * 100_000,
    "' OR 1=1 --",
    '"; DROP TABLE entry; --',
    "NEAR(a b)",
    '"unbalanced',
    "a AND",
    "*",
    "../../etc/passwd",
    "%00%2f",
    "{{7*7}}${7*7}",
    "<script>alert(1)</script>",
    "-1",
    "1e999",
    "NaN",
    "null",
    "true",
    "9" * 5_000,
    "2026-13-45T99:99:99Z",
    "9999-12-31T23:59:59.999999+14:00",
    "0001-01-01T00:00:00-14:00",
    "between 0 and 9",
    "<|endoftext|>",
    "\r\n\r\nGET / HTTP/1.1",
]
VALUES = [
    *TEXTS,
    None,
    True,
    0,
    -1,
    2**31,
    2**32,
    2**63,
    2**64,
    10**400,
    -(10**400),
    0.5,
    -0.0,
    1e308,
    5e-324,
    [],
    {},
    [None],
    [[]],
    {"": ""},
    {"$ref": "#"},
    {"__proto__": {}},
    ["x"] * 2_000,
    [{"role": "user"}] * 50,
]
DEEP = 100_000
BODIES = [
    b"",
    b"null",
    b"0",
    b'""',
    b"[]",
    b"{}",
    b"{",
    b"}",
    b'{"messages":',
    b'{"messages": [{"role": "user", "content": "x"',
    b"[" * DEEP,
    b'{"a":' * DEEP,
    b"[" * 65 + b"]" * 65,
    b'{"a":' * 70 + b"1" + b"}" * 70,
    b"NaN",
    b"[Infinity, -Infinity, NaN]",
    b'{"budget": 1e999}',
    b'{"budget": ' + b"9" * 5_000 + b"}",
    b"1" * 1_000_000,
    b"\xff\xfe\x00",
    b'{"query": "\xc3\x28"}',
    b'\xef\xbb\xbf{"query": "x"}',
    '{"query": "x"}'.encode("utf-16"),
    '{"query": "x"}'.encode("utf-32"),
    b'{"query": "\\ud800"}',
    b'{"query": "\\u0000"}',
    b'{"query": "x", "query": "y"}',
    b'{"\\u0000": 1, "\\u2400": 2}',
    b"{'query': 'x'}",
    b'{"query": "x"} trailing',
    b" " * 100_000,
    gzip.compress(b'{"query": "x"}'),
]
TYPES = [
    "",
    "application/json",
    "application/json; charset=utf-16",
    "application/json;;;=",
    "application/problem+json",
    "text/plain",
    "text/json",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "multipart/form-data",
    "application/jsonl",
    "application/xml",
    "x" * 5_000,
    "/",
    "application/",
]


def _spoiled(value):
    """The value with each of its parts replaced by each word of the dictionary."""
    if isinstance(value, dict):
        for name in value:
            for other in VALUES:
                yield {**value, name: other}
        yield {**value, "surprise": 1}
        yield {**value, "\0": 1}
        for name in value:
            for inner in _spoiled(value[name]):
                yield {**value, name: inner}
    elif isinstance(value, list) and value:
        for inner in _spoiled(value[0]):
            yield [inner, *value[1:]]


def _examples(operation):
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if content is None:
        return []
    schema = content["schema"]
    named = [one["$ref"] for one in schema.get("anyOf", [schema]) if "$ref" in one]
    return document()["components"]["schemas"][named[0].rsplit("/", 1)[1]]["examples"]


def _fine(response, method, path):
    """Whatever it is, it is not our mistake, and it is as documented."""
    assert response.status_code < 500, response.text
    if response.status_code not in (405, 307):
        conforms(method, path, response)


def _filled(path):
    return path.format(**KNOWN, job="0" * 16)


WITH_BODY = [p for p in OPERATIONS if "requestBody" in p.values[2]]


def test_the_dictionary_reaches_every_body():
    assert len(WITH_BODY) > 20
    for param in WITH_BODY:
        if "application/jsonl" not in param.values[2]["requestBody"]["content"]:
            assert _examples(param.values[2])


@pytest.mark.parametrize(("method", "path", "operation"), WITH_BODY)
def test_every_word_of_the_dictionary_in_every_field(server, key, api, method, path, operation):
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    step = 1 if TORTURE else 5
    with httpx2.Client(base_url=server.url, headers=headers, timeout=60) as http:
        spoiled = [body for example in _examples(operation) for body in _spoiled(example)]
        for body in spoiled[::step]:
            data = json.dumps(body).encode()
            _fine(http.request(method, _filled(path), content=data), method, _filled(path))


@pytest.mark.parametrize(("method", "path", "operation"), WITH_BODY)
def test_bodies_that_are_none(server, key, api, method, path, operation):
    with httpx2.Client(base_url=server.url, timeout=60) as http:
        for number, body in enumerate(BODIES):
            kinds = TYPES if TORTURE else [TYPES[1], TYPES[number % len(TYPES)]]
            for kind in kinds:
                headers = {"authorization": f"Bearer {key}", "content-type": kind}
                response = http.request(method, _filled(path), content=body, headers=headers)
                _fine(response, method, _filled(path))
        headers |= {"content-type": "application/json", "content-encoding": "gzip"}
        response = http.request(method, _filled(path), content=BODIES[-1], headers=headers)
        _fine(response, method, _filled(path))


SEGMENTS = [
    "%00",
    "%ff",
    "%c0%af",
    "%2e%2e",
    "%2F",
    "~",
    "~1",
    "%F0%9F%98%80",
    "a" * 2_000,
    "%E2%80%AE",
]
SEGMENTS += ["-1", "0x10", "1e9", "%D9%A3", "9" * 4_400, "1_000", "%20", ";", "*", "%0d%0a"]


@pytest.mark.thorough
@pytest.mark.parametrize(("method", "path", "operation"), OPERATIONS)
def test_every_word_of_the_dictionary_in_addresses(server, key, api, method, path, operation):
    names = [p["name"] for p in operation.get("parameters", ()) if p["in"] == "query"]
    bodies = _examples(operation)
    data = json.dumps(bodies[0]).encode() if bodies else None
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    places = [name for name in KNOWN | {"job": ""} if f"{{{name}}}" in path]
    with httpx2.Client(base_url=server.url, headers=headers, timeout=60) as http:
        for place in places:
            for segment in SEGMENTS:
                asked = path.format(**{**KNOWN, "job": "0" * 16, place: segment})
                response = http.request(method, asked, content=data)
                assert response.status_code < 500, response.text
        for name in [*names, "surprise"]:
            for value in [text for text in TEXTS if len(text) < 10_000][:: 1 if TORTURE else 3]:
                query = {name: value.encode(errors="replace")}
                response = http.request(method, _filled(path), params=query, content=data)
                _fine(response, method, _filled(path))


@pytest.mark.parametrize("name", ["idempotency-key", "if-none-match", "accept", "authorization"])
def test_every_word_of_the_dictionary_in_headers(server, key, api, name):
    path = "/api/v1/conversations/known/messages"
    body = {"messages": [{"role": "user", "content": "x"}]}
    with httpx2.Client(base_url=server.url, timeout=60) as http:
        for text in TEXTS:
            value = text.encode(errors="replace").strip()
            if len(value) > 10_000 or set(value) & set(b"\0\r\n\x1b"):
                continue  # no client could send it
            headers = {b"authorization": f"Bearer {key}".encode(), name.encode(): value}
            for method in ("GET", "POST"):
                more = {"json": body} if method == "POST" else {}
                _fine(http.request(method, path, headers=headers, **more), method, path)


def test_everything_is_as_it_was(api):
    """After all of that, the log is complete."""
    for head in api.all("/conversations"):
        assert api.post(head["url"].removeprefix("/api/v1") + "/verify")["ok"]
