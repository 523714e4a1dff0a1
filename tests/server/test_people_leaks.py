"""Random operations of many people of many tenants: no answer has the words of another one."""

import json
import os
import random

import httpx2
import pytest

from firnline.testing import ModelServer
from server.test_mcp_http import HEADERS, rpc
from support.live_server import running
from support.rest_client import key_for

TENANTS, PEOPLE = 5, 10
OPERATIONS = 100_000 if os.environ.get("FIRNLINE_TORTURE") else 180
OPERATIONS = int(os.environ.get("FIRNLINE_LEAK_OPERATIONS", OPERATIONS))
MODEL = "gpt-4o"
ASKED = ("Where do I live?", "hi", "What do you know of me?", "I'm vegan.", "Secret code, please")
TOOLS = ("profile", "facts", "conversations", "search", "append")


class Someone:
    """A person of a tenant, with a word that only they have said."""

    def __init__(self, tenant, number, key, own_key):
        self.tenant, self.name, self.secret = tenant, f"p{number}", f"Secret{tenant}x{number}q"
        self.own_key = own_key  # a key for this person alone
        self.headers = {"authorization": f"Bearer {own_key or key}"}
        self.conversations = 0
        self.told = False

    def new_conversation(self):
        self.conversations += 1
        return f"{self.name}-{self.conversations}"

    def text(self, rng):
        said = rng.random() < 0.4
        self.told |= said
        return f"I live in {self.secret}." if said else rng.choice(ASKED)


def over_proxy(http, model, rng, person):
    """A chat through the proxy: what was sent to the model."""
    messages = [{"role": "user", "content": person.text(rng)}]
    headers = dict(person.headers)
    body = {"model": MODEL, "messages": messages}
    match rng.randrange(4):
        case 0:
            body["user"] = person.name
        case 1:
            body["safety_identifier"] = person.name
        case 2:
            body["metadata"] = {"user_id": person.name}
        case _:
            headers["x-firnline-user"] = person.name
    if rng.random() < 0.3:
        headers["x-firnline-conversation"] = f"{person.name}-{rng.randrange(1, 4)}"
    asked = len(model.requests)
    http.post("/v1/chat/completions", json=body, headers=headers).raise_for_status()
    return json.dumps(model.requests[asked:])


def over_rest(http, model, rng, person):
    """One operation of the API."""
    name, api = person.name, "/api/v1"
    mine = f"{api}/conversations/{person.new_conversation()}"
    match rng.randrange(7):
        case 0 | 1:
            body = {"messages": [{"role": "user", "content": person.text(rng)}], "person": name}
            got = http.post(f"{mine}/messages", json=body, headers=person.headers)
        case 2:
            body = {"question": "Where do I live?", "budget": 4_000, "person": name}
            got = http.post(f"{mine}/context", json=body, headers=person.headers)
        case 3:
            body = {"query": rng.choice(("Secret", "live", "vegan")), "person": name}
            got = http.post(f"{api}/search", json=body, headers=person.headers)
        case 4:
            got = http.get(f"{api}/people/{name}", headers=person.headers)
        case 5:
            query = {"history": "true"}
            got = http.get(f"{api}/people/{name}/facts", params=query, headers=person.headers)
        case _:
            got = http.get(f"{api}/conversations", params={"person": name}, headers=person.headers)
    got.raise_for_status()
    return got.text


def over_mcp(http, model, rng, person):
    """A call of an agent's tool."""
    tool = rng.choice(TOOLS)
    arguments = {
        "search": {"query": "Where do I live? Secret"},
        "append": {
            "conversation": person.new_conversation(),
            "messages": [{"role": "user", "text": person.text(rng)}],
        },
    }.get(tool, {})
    headers = {**HEADERS, **person.headers, "x-firnline-user": person.name}
    call = rpc("tools/call", {"name": tool, "arguments": arguments})
    got = http.post("/mcp", json=call, headers=headers)
    got.raise_for_status()
    return got.text


@pytest.mark.promise("one-person")
def test_random_operations_of_many_people_leak_nothing():
    rng = random.Random(int(os.environ.get("FIRNLINE_SEED", "25")))
    with ModelServer(model=MODEL) as model, running(upstream=model.url, embedder="none") as server:
        people = [
            Someone(tenant, number, key, _own_key(server, tenant, number))
            for tenant in range(TENANTS)
            for key in [key_for(server, f"t{tenant}")]
            for number in range(PEOPLE)
        ]
        known = 0
        with httpx2.Client(base_url=server.url, timeout=60) as http:
            for turn in range(OPERATIONS):
                person = rng.choice(people)
                operation = rng.choice((over_proxy, over_rest, over_rest, over_mcp))
                answer = operation(http, model, rng, person)
                leaked = [
                    one.secret for one in people if one is not person and one.secret in answer
                ]
                assert leaked == [], (turn, operation.__name__, person.name, answer[:2_000])
                known += person.secret in answer
                if len(model.requests) > 1_000:
                    del model.requests[:]
        assert known > OPERATIONS // 10, "people are known: the test sees what there is to leak"


def _own_key(server, tenant, number):
    """For every third person, a key for them alone."""
    if number % 3:
        return None
    keys = server.parts.keys
    made = keys.create(f"t{tenant}", scopes=("read", "write"), person=f"p{number}")
    return server.run(made)[1]
