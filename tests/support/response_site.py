"""A server with a model behind it that is asked through OpenAI's Responses API."""

import httpx2
import openai

from firnline.testing import ModelServer
from support.live_server import running

MODEL = "gpt-4o"  # counted exactly, so the budget can be kept to the last token
WAYS = ("native", "chat", "anthropic")
"""The kinds of endpoints: one that speaks the Responses API, and two that it is translated for."""


class Site:
    """A server with the model behind it, in one of three ways."""

    def __init__(self, stack, way, **settings):
        self.way = way
        self.model = stack.enter_context(ModelServer(model=MODEL, pause=0.02))
        self.model.responses = way == "native"
        name = "anthropic" if way == "anthropic" else "upstream"
        self.server = stack.enter_context(running(**{name: self.model.url, **settings}))
        self.http = stack.enter_context(httpx2.Client(timeout=60))
        self.sdk = self.client()

    def client(self, **more):
        options = {"api_key": "sk-mine", "max_retries": 0, "http_client": self.http, **more}
        return openai.OpenAI(base_url=f"{self.server.url}/v1", **options)

    def log(self, conversation):
        return [e.message for e in self.server.run(self.server.memory().read(conversation))]

    def heads(self):
        found = self.server.run(self.server.memory().conversations(limit=1_000))
        return [head.conversation for head in found]

    def seen(self):
        """The roles of the last request to the model, whatever its shape."""
        request = self.model.requests[-1]
        items = request.get("input") or request["messages"]
        return [item.get("role") or item["type"] for item in items]


def create(sdk, given, *, stream=False, **more):
    request = {"model": MODEL, "input": given, **more}
    if not stream:
        return sdk.responses.create(**request)
    with sdk.responses.stream(**request) as events:
        return events.get_final_response()
