"""Wrong base URLs get an answer that says what to set, in the client's own format."""

import anthropic
import httpx2
import openai
import pytest

from firnline.server.base_urls import client_base_error, endpoint_hint
from firnline.testing import ModelServer
from support.endpoint import Endpoint
from support.live_server import running

SERVER = "http://localhost:8080"


@pytest.mark.parametrize(
    ("path", "right"),
    [
        ("/chat/completions", "/v1"),
        ("/completions", "/v1"),
        ("/v1/v1/chat/completions", "/v1"),
        ("/v1/v1/responses/resp_1/input_items", "/v1"),
        ("/api/v1/chat/completions", "/v1"),
        ("/api/v1/models", "/v1"),
        ("/V1/chat/completions", "/v1"),
        ("/openai/v1/models", "/v1"),
        ("/v1beta/openai/embeddings", "/v1"),
        ("/v1/chat/completions/chat/completions", "/v1"),
        ("/v1/responses/responses", "/v1"),
        ("/c/ann/responses", "/c/ann/v1"),
        ("/c/ann/v1/v1/responses", "/c/ann/v1"),
        ("/c/a b/conversations/conv_1/items", "/c/a%20b/v1"),
        ("/messages", ""),
        ("/v1/v1/messages", ""),
        ("/v1/v1/messages/count_tokens", ""),
        ("/v1/v1/messages/batches", ""),
        ("/v1/messages/v1/messages", ""),
        ("/api/v1/messages", ""),
        ("/c/ann/v1/v1/messages", "/c/ann"),
    ],
)
def test_a_wrong_base_url_is_recognized_by_the_path(path, right):
    wrong = client_base_error(path, {}, SERVER)
    assert wrong.endswith(f"; set it to {SERVER}{right}")
    assert wrong.startswith(f"{path}: the base URL ")


@pytest.mark.parametrize(
    "path",
    [
        "/v1/chat/completions",
        "/v1/responses/resp_1",
        "/v1/conversations/conv_1/items/msg_1",
        "/c/ann/v1/responses",
        "/v1/messages",
        "/v1/messages/batches",
        "/c/ann/v1/messages/count_tokens",
        "/api/v1/conversations/c",
        "/api/v1/conversations/c/messages/4",
        "/api/v1/conversations/models/messages",
        "/v1/audio/speech",
        "/ui/nothing.js",
        "/",
        "",
    ],
)
def test_other_paths_are_left_alone(path):
    assert client_base_error(path, {}, SERVER) == ""


def test_clients_of_anthropic_are_known_by_their_header():
    header = {"anthropic-version": "2023-06-01"}
    assert client_base_error("/v1/models", header, SERVER) == ""
    wrong = client_base_error("/v1/v1/models", header, SERVER)
    assert wrong == f"/v1/v1/models: the base URL ends with /v1; set it to {SERVER}"


@pytest.mark.parametrize("base", ["", "/v1/v1", "/api/v1", "/V1", "/openai/v1", "/v1/responses"])
def test_openais_sdk_is_told_its_base_url(base):
    with running() as server, openai.OpenAI(base_url=server.url + base, api_key="sk") as sdk:
        for call in (
            lambda: sdk.responses.create(model="m", input="hi"),
            lambda: sdk.chat.completions.create(model="m", messages=[]),
            sdk.models.list,
        ):
            with pytest.raises(openai.NotFoundError) as caught:
                call()
            assert caught.value.body["message"].endswith(f"set it to {server.url}/v1")


def test_anthropics_sdk_is_told_its_base_url():
    with running() as server:
        url = f"{server.url}/v1"
        with anthropic.Anthropic(base_url=url, api_key="sk", max_retries=0) as sdk:
            for call in (
                lambda: sdk.messages.create(model="m", max_tokens=9, messages=[]),
                sdk.models.list,
                sdk.messages.batches.list,
            ):
                with pytest.raises(anthropic.NotFoundError) as caught:
                    call()
                error = caught.value.body["error"]
                assert error["message"].endswith(f"set it to {server.url}")


def test_what_is_not_there_stays_a_problem_of_the_rest_api():
    with running() as server, httpx2.Client(base_url=server.url) as http:
        found = http.get("/api/v1/conversations/models/messages/4")
        assert (found.status_code, found.json()["status"]) == (404, 404)
        assert http.delete("/v1/chat/completions").status_code == 405


# -- the server's own settings ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("https://api.openai.com", "may lack /v1"),
        ("http://localhost:11434/", "may lack /v1"),
        ("https://a.b/v1/v1", "has /v1 twice"),
        ("https://a.b/v1/chat/completions", "must end before /chat/completions"),
        ("https://a.b/v1/responses/", "must end before /responses"),
        ("https://api.openai.com/v1", ""),
        ("https://generativelanguage.googleapis.com/v1beta/openai", ""),
        ("https://a.openai.azure.com/openai/v1", ""),
    ],
)
def test_a_wrong_endpoint_is_recognized(url, hint):
    found = endpoint_hint(url, "FIRNLINE_UPSTREAM")
    assert (hint in found) if hint else not found


def test_a_wrong_endpoint_is_named_when_it_answers_404():
    with Endpoint() as endpoint:
        endpoint.reply = (404, "application/json", b'{"error": {"message": "Not here."}}', "whole")
        root = endpoint.url.removesuffix("/v1")
        with (
            running(upstream=root) as server,
            openai.OpenAI(base_url=f"{server.url}/v1", api_key="sk") as sdk,
        ):
            for call in (
                lambda: sdk.chat.completions.create(model="m", messages=[ASKED]),
                lambda: sdk.responses.create(model="m", input="hi"),
            ):
                with pytest.raises(openai.NotFoundError, match=r"UPSTREAM may lack /v1.*Not here"):
                    call()
        with (
            running(anthropic=root) as server,
            anthropic.Anthropic(base_url=server.url, api_key="sk") as sdk,
            pytest.raises(anthropic.NotFoundError, match="FIRNLINE_ANTHROPIC may lack /v1"),
        ):
            sdk.messages.create(model="m", max_tokens=9, messages=[ASKED])


ASKED = {"role": "user", "content": "hi"}


def test_a_model_with_its_provider_before_its_name_goes_to_anthropic():
    with (
        ModelServer(model="gpt-4o") as other,
        ModelServer(model="claude-sonnet-5") as claude,
        running(upstream=other.url, anthropic=claude.url) as server,
        openai.OpenAI(base_url=f"{server.url}/v1", api_key="sk") as sdk,
        anthropic.Anthropic(base_url=server.url, api_key="sk") as native,
    ):
        answer = sdk.responses.create(model="anthropic/claude-sonnet-5", input="hi")
        assert answer.output_text == "You said: hi"
        native.messages.create(model="anthropic/claude-sonnet-5", max_tokens=9, messages=[ASKED])
        assert [request["model"] for request in claude.requests] == ["claude-sonnet-5"] * 2
        sdk.responses.create(model="openai/gpt-4o", input="hi")
        assert other.requests[-1]["model"] == "openai/gpt-4o"


def test_a_server_with_anthropics_endpoint_alone_has_no_chat_completions():
    with (
        ModelServer(model="claude-sonnet-5") as claude,
        running(anthropic=claude.url) as server,
        openai.OpenAI(base_url=f"{server.url}/v1", api_key="sk") as sdk,
    ):
        with pytest.raises(openai.BadRequestError, match="FIRNLINE_UPSTREAM"):
            sdk.chat.completions.create(model="claude-sonnet-5", messages=[ASKED])
        assert not claude.requests
