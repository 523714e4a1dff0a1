"""An unmodified OpenAI client pointed at Firnline gets a memory without end."""

import asyncio
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx2
import openai
import pytest
from hypothesis import given

from firnline import Message, Part, ToolCall
from firnline.log.entry import Entry, EntryDraft, Key, genesis, next_hash
from firnline.log.message import encode
from firnline.server import drafts
from firnline.server.drafts import interrupted
from firnline.server.proxy.align import agree, overlap
from firnline.server.proxy.dialect import UpstreamRequest, UpstreamRounds
from firnline.server.proxy.request import find_conversation_name as find_name
from firnline.server.proxy.request import fingerprint, prefix_hashes
from firnline.testing import ModelServer, call_tool
from firnline.testing.conversations import conversations
from support.dialects import entries, heads, size
from support.live_server import running
from support.rest_client import key_for

MODEL = "gpt-4o"


@pytest.fixture
def model():
    with ModelServer(model=MODEL) as server:
        yield server


SDKS = []


@pytest.fixture(autouse=True)
def _closed():
    """Clients of the SDK are, not whenever the garbage collector finds them."""
    yield
    while SDKS:
        SDKS.pop().close()


def client(url, **more):
    options = {"api_key": "sk-mine", "max_retries": 0, **more}
    SDKS.append(openai.OpenAI(base_url=f"{url}/v1", **options))
    return SDKS[-1]


def log_of(*messages):
    """Messages as entries of a log."""
    hash_, found = genesis(Key("t", "c")), []
    for seq, message in enumerate(messages):
        draft = EntryDraft(message, encode(message), 1, "o200k")
        hash_ = next_hash(hash_, draft.body, 1, "o200k")
        found.append(Entry(seq, message, 1, seq + 1, "o200k", hash_))
    return found


# -- pure -------------------------------------------------------------------------------------

USER, ANSWER = Message.user("hi"), Message.assistant("Hello! How can I help?")


def test_a_history_agrees_with_the_log_as_far_as_it_is_the_same():
    log = log_of(USER, ANSWER, Message.user("and?"), Message.assistant("so."))
    assert agree([USER, ANSWER, Message.user("and?")], log) == ((0, 1, 2), 3)
    assert agree([USER, ANSWER, Message.user("or?")], log) == ((0, 1), 2)
    assert agree([], log) == ((), 0)
    assert agree([Message.user("new")], log) == ((), 0)


def test_an_interrupted_answer_agrees_with_what_the_client_saw_of_it_or_with_nothing():
    log = log_of(USER, interrupted("Once upon a time there was", "given up"), Message.user("go on"))
    seen = Message.assistant("Once upon a ")
    assert agree([USER, seen, Message.user("go on")], log) == ((0, 1, 2), 3)
    assert agree([USER, Message.user("go on")], log) == ((0, 2), 3)
    assert agree([USER, Message.assistant("Twice")], log[:2]).messages == 1
    assert agree([USER], log[:2]) == ((0,), 2)  # a retry: nothing of it counts


def test_what_the_application_said_in_between_is_not_compared():
    log = log_of(USER, Message.system("be kind"), ANSWER)
    assert agree([USER, ANSWER], log) == ((0, 2), 3)


def test_a_history_whose_oldest_part_was_dropped_is_found_in_the_log():
    said = [Message.user(f"q{n}") if n % 2 == 0 else Message.assistant(f"a{n}") for n in range(10)]
    assert overlap(said[4:], log_of(*said)) == (tuple(range(4, 10)), 10)
    assert overlap([*said[4:8], Message.user("else")], log_of(*said)) == ((4, 5, 6, 7), 8)
    assert overlap([Message.user("never said")], log_of(*said)) is None
    twice = [USER, ANSWER, USER, ANSWER, Message.user("x")]
    assert overlap(twice[2:], log_of(*twice)) == ((2, 3, 4), 5)


@given(conversations())
def test_every_beginning_of_a_conversation_agrees_with_it(said):
    spoken = [message for message in said if message.role not in ("system", "developer")]
    for end in (0, len(spoken) // 2, len(spoken)):
        found = agree(spoken[:end], log_of(*said))
        assert found.messages == end
    hashes = prefix_hashes([fingerprint(message) for message in spoken], "")
    assert len(set(hashes)) == len(spoken)
    assert prefix_hashes([fingerprint(message) for message in spoken[:3]], "") == hashes[:3]


def test_a_message_is_known_again_whatever_a_clients_library_adds():
    plain = {"role": "assistant", "content": "Hello"}
    dumped = {**plain, "refusal": None, "annotations": [], "audio": None, "content": "Hello\n"}
    same = [Message.from_openai(shape) for shape in (plain, dumped)]
    assert fingerprint(same[0]) == fingerprint(same[1])
    picture = [Part.of_text("look"), Part.image("data:image/png;base64,AA==")]
    other = [Part.of_text("look"), Part.image("data:image/png;base64,BB==")]
    assert fingerprint(Message.user(picture)) != fingerprint(Message.user(other))
    calls = [Message.assistant(tool_calls=[ToolCall.of(name, "f", {})]) for name in "ab"]
    assert fingerprint(calls[0]) != fingerprint(calls[1])
    assert fingerprint(Message.user("a")) != fingerprint(Message.assistant("a"))


def test_a_conversation_is_named_by_path_header_or_metadata():
    assert find_name("family", {"x-session-id": "b"}, {}) == ("family", "path")
    assert find_name(None, {"x-openwebui-chat-id": "ow"}, {}) == (
        "ow",
        "header x-openwebui-chat-id",
    )
    assert find_name(None, {"x-acme-thread-id": "t"}, {}).conversation == "t"
    assert find_name(None, {"x-session-id": "s", "x-firnline-conversation": "f"}, {})[0] == "f"
    assert find_name(None, {}, {"metadata": {"conversation_id": "m"}})[0] == "m"
    assert (
        find_name(None, {}, {"metadata": {"user_id": "user_1_session_abcdefgh"}})[0] == "abcdefgh"
    )
    for nothing in ({}, {"metadata": None}, {"metadata": {"conversation_id": 3}}):
        assert find_name(None, {"x-session-id": "\0" * 300}, nothing) is None


# -- what a test reads ------------------------------------------------------------------------


def reference_tokens(request):
    """What a request takes, counted here by OpenAI's published rule, not by Firnline."""
    total = 3
    for message in request["messages"]:
        total += 3
        content = message.get("content")
        if isinstance(content, list):
            total += sum(size(part.get("text", "")) for part in content)
        elif content:
            total += size(content)
        for call in message.get("tool_calls") or ():
            total += size(call["function"]["name"]) + size(call["function"]["arguments"])
    for tool in request.get("tools") or ():
        total += size(json.dumps(tool["function"]["parameters"], separators=(",", ":")))
    return total


TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": f"Tells the {name}.",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    }
    for name in ("weather", "clock")
]


def ask(openai_client, history, *, stream, **more):
    request = {"model": MODEL, "messages": history, "tools": TOOLS, **more}
    if not stream:
        done = openai_client.chat.completions.create(**request)
        return done.choices[0].message.model_dump()
    with openai_client.chat.completions.stream(**request) as events:
        return events.get_final_completion().choices[0].message.model_dump(exclude={"parsed"})


# -- branches ---------------------------------------------------------------------------------


def history_of(openai_client, *questions):
    history = []
    for question in questions:
        history.append({"role": "user", "content": question})
        history.append(ask(openai_client, history, stream=False))
    return history


def test_an_edited_question_and_a_regenerated_answer_become_branches(model):
    with running(upstream=model.url) as server:
        sdk = client(server.url)
        history = history_of(sdk, "one", "two", "three")
        (original,) = heads(server)
        before = entries(server, original)
        edited = [*history[:2], {"role": "user", "content": "two, no: four"}]
        raw = sdk.chat.completions.with_raw_response.create(model=MODEL, messages=edited)
        branch = raw.headers["x-firnline-conversation"]
        assert branch.startswith(f"{original}--")
        assert raw.headers["x-firnline-source"] == "prefix, branch"
        texts = [message.text for message in entries(server, branch)]
        assert texts == ["one", before[1].text, "two, no: four", "You said: two, no: four"]
        model.say("Another answer.")
        raw = sdk.chat.completions.with_raw_response.create(model=MODEL, messages=history[:-1])
        again = raw.headers["x-firnline-conversation"]
        assert again not in (original, branch)
        assert entries(server, again)[-1].text == "Another answer."
        assert entries(server, original) == before
        # Each goes on where it was, without a name.
        for earlier, conversation in (
            ([*edited, {"role": "assistant", "content": "You said: two, no: four"}], branch),
            ([*history[:-1], {"role": "assistant", "content": "Another answer."}], again),
        ):
            longer = [*earlier, {"role": "user", "content": "go on"}]
            raw = sdk.chat.completions.with_raw_response.create(model=MODEL, messages=longer)
            assert raw.headers["x-firnline-conversation"] == conversation
        assert len(heads(server)) == 3


def test_a_new_branch_is_searched_by_meaning_at_once(model):
    with running(upstream=model.url, embedder="words") as server:
        sdk = client(server.url)
        history = history_of(sdk, "We rented a car in Lisbon.", "Thank you.", "Good night.")
        (original,) = heads(server)
        memory = server.memory()
        server.run(memory.embed(original))
        edited = [*history[:-2], {"role": "user", "content": "Good morning."}]
        raw = sdk.chat.completions.with_raw_response.create(model=MODEL, messages=edited)
        branch = raw.headers["x-firnline-conversation"]
        name = "words-1/256"
        found = memory.store.vectors(Key(memory.tenant, branch), name, 0, 99)
        assert branch != original
        embedded = {vector.seq for vector in server.run(found)}
        assert {0, 1, 2, 3} <= embedded


@pytest.mark.promise("erase-total")
def test_branches_that_the_proxy_made_are_named_and_erased_with_their_source(model, tmp_path):
    secret, file = "the passphrase is glacier-7", tmp_path / "f.db"
    with running(upstream=model.url, store=f"sqlite:///{file}") as server:
        sdk = client(server.url)
        history = history_of(sdk, secret, "two")
        (original,) = heads(server)
        ask(sdk, [*history[:2], {"role": "user", "content": "two, no: four"}], stream=False)
        (branch,) = set(heads(server)) - {original}
        url = f"{server.url}/api/v1/conversations/{original}"
        assert httpx2.get(f"{url}/branches").json()["data"] == [branch]
        certificate = httpx2.delete(url, params={"branches": True}, timeout=60).json()
        assert (certificate["branches"], certificate["survives"]) == ([branch], [])
        assert certificate["cards"]["prompt"] == 2
        assert heads(server) == []
        for part in tmp_path.iterdir():
            assert secret.encode() not in part.read_bytes()


def test_two_people_who_begin_alike_do_not_share_a_conversation(model):
    model.answer = lambda _: "Hello! How can I help you today?"
    with running(upstream=model.url) as server:
        for secret in ("my name is Ana", "my name is Boris"):
            history = history_of(client(server.url), "hi")
            history.append({"role": "user", "content": secret})
            ask(client(server.url), history, stream=False)
        seen = [json.dumps(request["messages"]) for request in model.requests]
        assert not any("Ana" in prompt and "Boris" in prompt for prompt in seen)
        for conversation in heads(server):
            texts = " ".join(message.text for message in entries(server, conversation))
            assert not ("Ana" in texts and "Boris" in texts)


def test_identical_requests_at_once_are_all_answered_and_nothing_is_doubled(model):
    with running(upstream=model.url) as server:
        history = history_of(client(server.url), "one")
        history.append({"role": "user", "content": "two"})

        async def all_at_once():
            sdk = openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="sk-mine", max_retries=0)
            async with sdk:
                asked = (
                    sdk.chat.completions.create(model=MODEL, messages=history) for _ in range(12)
                )
                return await asyncio.gather(*asked)

        assert len(asyncio.run(all_at_once())) == 12
        for conversation in heads(server):
            texts = [message.text for message in entries(server, conversation)]
            assert texts.count("one") == texts.count("two") == 1
            assert len(texts) == 4


# -- named conversations ----------------------------------------------------------------------


def test_a_client_that_sends_only_what_is_new_gets_its_history_by_path_or_header(model):
    with running(upstream=model.url) as server:
        by_path = client(f"{server.url}/c/family")
        for text in ("hi", "hi", "bye"):  # said twice, stored twice
            message = {"role": "user", "content": text}
            by_path.chat.completions.create(model=MODEL, messages=[message])
        assert [m["content"] for m in model.requests[-1]["messages"]] == [
            "hi", "You said: hi", "hi", "You said: hi", "bye",
        ]  # fmt: skip
        raw = client(server.url).chat.completions.with_raw_response.create(
            model=MODEL,
            messages=[{"role": "user", "content": "and?"}],
            extra_headers={"X-Session-Id": "family"},
        )
        assert raw.headers["x-firnline-conversation"] == "family"
        assert raw.headers["x-firnline-source"] == "header x-session-id"
        assert len(model.requests[-1]["messages"]) == 7
        raw = client(server.url).chat.completions.with_raw_response.create(
            model=MODEL,
            messages=[{"role": "user", "content": "once more"}],
            metadata={"conversation_id": "family"},
        )
        assert len(model.requests[-1]["messages"]) == 9
        assert len(entries(server, "family")) == 10


def test_text_that_had_to_be_altered_is_flagged_and_known_again(model):
    said = [{"role": "user", "content": "half a pair: \ud83d"}]
    with running(upstream=model.url) as server:
        for turn in range(2):
            body = json.dumps({"model": MODEL, "messages": said})
            answer = httpx2.post(
                f"{server.url}/v1/chat/completions",
                content=body,
                headers={"content-type": "application/json"},
                timeout=60,
            )
            said += [answer.json()["choices"][0]["message"], {"role": "user", "content": f"{turn}"}]
        (name,) = heads(server)
        stored = entries(server, name)
        assert [message.normalised for message in stored] == [True, False, False, False]


def test_a_client_that_drops_its_oldest_messages_is_understood_under_a_name(model):
    with running(upstream=model.url) as server:
        sdk = client(f"{server.url}/c/long")
        history = []
        for n in range(12):
            history.append({"role": "user", "content": f"question {n}"})
            history = history[-5:]
            history.append(ask(sdk, history, stream=False))
        assert heads(server) == ["long"]
        texts = [m.text for m in entries(server, "long") if m.role == "user"]
        assert texts == [f"question {n}" for n in range(12)]
        assert len(model.requests[-1]["messages"]) == 23  # all of it fits, so all of it is sent


def test_an_unanswered_question_is_not_stored_again_when_it_is_repeated(model):
    with running(upstream=model.url) as server:
        for sdk in (client(f"{server.url}/c/named"), client(server.url, max_retries=2)):
            model.fail("500", "503")
            message = {"role": "user", "content": "are you there?"}
            if sdk.max_retries == 0:
                for _ in range(2):
                    with pytest.raises(openai.InternalServerError):
                        sdk.chat.completions.create(model=MODEL, messages=[message])
            sdk.chat.completions.create(model=MODEL, messages=[message])
        assert len(heads(server)) == 2
        for conversation in heads(server):
            roles = [message.role for message in entries(server, conversation)]
            assert roles == ["user", "assistant"]


def posted(server, path, text, stream=False, **headers):
    body = {"model": MODEL, "messages": [{"role": "user", "content": text}], "stream": stream}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx2.post(f"{server.url}{path}/chat/completions", json=body, headers=named, timeout=60)


@pytest.mark.promise("tenants-apart")
@pytest.mark.parametrize(
    "headers", [{"idempotency_key": "bob-1"}, {"x_stainless_retry_count": "1"}, {}]
)
def test_who_asks_the_same_as_another_is_not_given_the_others_answer(model, headers):
    with running(upstream=model.url) as server:
        ann = posted(server, "/v1", "hi", idempotency_key="ann-1")
        model.say("For Bob.")
        bob = posted(server, "/v1", "hi", **headers)
        assert bob.json()["choices"][0]["message"]["content"] == "For Bob."
        assert "x-firnline-replayed" not in bob.headers
        assert bob.headers["x-firnline-source"] == "new", "nothing of the other's is taken over"
        names = [answer.headers["x-firnline-conversation"] for answer in (ann, bob)]
        assert len(set(names)) == 2
        assert [len(entries(server, name)) for name in names] == [2, 2]


def test_the_same_words_under_another_key_are_said_again(model):
    with running(upstream=model.url) as server:
        for key in ("one", "two", "two"):
            posted(server, "/c/named/v1", "yes", idempotency_key=key)
        assert [m.text for m in entries(server, "named") if m.role == "user"] == ["yes", "yes"]
        assert len(model.requests) == 2


# -- what is passed on ------------------------------------------------------------------------


def test_unknown_fields_go_through_and_the_clients_key_too(model):
    with running(upstream=model.url) as server:
        client(server.url).chat.completions.create(
            model=MODEL,
            messages=[{"role": "user", "content": "hi"}],
            extra_body={"verbosity": "low", "made_up": {"a": [1, None]}},
            extra_headers={"OpenAI-Organization": "org", "X-Secret-Of-Mine": "no"},
        )
        request, headers = model.requests[-1], model.headers[-1]
        assert request["verbosity"] == "low"
        assert request["made_up"] == {"a": [1, None]}
        assert headers["authorization"] == "Bearer sk-mine"
        assert headers["openai-organization"] == "org"
        assert "x-secret-of-mine" not in headers
    with running(upstream=model.url, upstream_key="sk-server") as server:
        ask(client(server.url), [{"role": "user", "content": "hi"}], stream=False)
        assert model.headers[-1]["authorization"] == "Bearer sk-server"


def test_the_end_of_a_stream_tells_the_usage_only_if_it_was_asked_for(model):
    with running(upstream=model.url) as server:
        for wanted in (False, True):
            options = {"stream_options": {"include_usage": True}} if wanted else {}
            chunks = list(
                client(server.url).chat.completions.create(
                    model=MODEL,
                    messages=[{"role": "user", "content": "hi"}],
                    stream=True,
                    **options,
                )
            )
            assert any(chunk.usage for chunk in chunks) is wanted
            assert model.requests[-1]["stream_options"]["include_usage"] is True


def test_errors_of_the_endpoint_come_as_they_are(model):
    model.retry_after = "7"
    with running(upstream=model.url) as server:
        model.fail("429")
        with pytest.raises(openai.RateLimitError) as caught:
            ask(client(server.url), [{"role": "user", "content": "hi"}], stream=False)
        assert caught.value.response.headers["retry-after"] == "7"
        assert caught.value.response.headers["x-firnline-status"] == "ok"
        model.fail("error_body")
        with pytest.raises(openai.APIError):
            list(
                client(server.url).chat.completions.create(
                    model=MODEL, messages=[{"role": "user", "content": "yo"}], stream=True
                )
            )
        model.close()
        with pytest.raises(openai.InternalServerError) as caught:
            ask(client(server.url), [{"role": "user", "content": "still?"}], stream=False)
        assert caught.value.status_code == 502
        assert all(len(entries(server, name)) == 1 for name in heads(server))


def test_models_are_listed_and_unknown_paths_are_not_passed_on(model):
    with running(upstream=model.url) as server:
        httpx2.get(f"{server.url}/v1/models", timeout=60)
        refused = httpx2.post(f"{server.url}/v1/files", json={}, timeout=60)
        assert refused.status_code == 404
        assert "docs/proxy.md" in refused.json()["error"]["message"]
        given = client(server.url).embeddings.create(
            model="e", input=["a", "b"], encoding_format="float"
        )
        assert len(given.data) == 2
    with running() as server:
        assert [m.id for m in client(server.url).models.list()] == ["firnline-offline"]
        with pytest.raises(openai.NotFoundError, match="FIRNLINE_UPSTREAM"):
            client(server.url).embeddings.create(model="e", input="a")


@pytest.fixture
def recording():
    """An endpoint that notes what it is asked for, letter by letter."""
    asked = []

    class Noting(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append((self.path, self.headers["authorization"]))
            self.send_response(200)
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        do_POST = do_GET  # noqa: N815 - as above

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Noting) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1", asked
        server.shutdown()


def status_of(server, method, path, key=""):
    """What is answered to a path that no client has tidied."""
    connection = HTTPConnection(server.url.removeprefix("http://"), timeout=60)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    connection.request(method, path, b"", headers)
    with closing(connection):
        return connection.getresponse().status


@pytest.mark.parametrize(
    "path",
    [
        "models/%2e%2e/files", "models/%2e%2e/%2e%2e/admin/keys", "models/../chat/completions",
        "models/.%2e/files", "models/./x", "models//x", "models/", "%2e%2e/models",
        "models/..%2ffiles",
    ],
)  # fmt: skip
def test_no_path_leads_to_another_place_with_the_servers_key(recording, path):
    url, asked = recording
    with running(upstream=url, upstream_key="sk-server") as server:
        for prefix in ("/v1", "/c/x/v1"):
            assert status_of(server, "GET", f"{prefix}/{path}") == 404
        assert status_of(server, "GET", "/v1/models/org/a%3Fb%23c") == 200
        assert asked == [("/v1/models/org/a%3Fb%23c", "Bearer sk-server")]


def test_who_only_reads_may_not_ask_for_what_costs(recording):
    url, asked = recording
    with running(upstream=url, upstream_key="sk-server", auth="required") as server:
        reading, writing = key_for(server, "ann", "read"), key_for(server, "ann", "write")
        assert status_of(server, "GET", "/v1/models", reading) == 200
        assert status_of(server, "POST", "/v1/embeddings", reading) == 403
        assert status_of(server, "POST", "/v1/embeddings", writing) == 200
        assert len(asked) == 2


@pytest.mark.parametrize(
    "body",
    [
        b"", b"[]", b"{}", b'{"messages": 3}', b"\xff", b'{"messages": [], "base_url": "http://x"}',
        b'{"messages": ' + b"[" * 100_000, b'{"messages": [NaN]}', b'{"messages": []}',
        b'{"messages": [5]}', b'{"messages": [{"role": "user", "content": "hi"}, null]}',
    ],
)  # fmt: skip
def test_a_malformed_request_is_refused_in_openais_shape(model, body):
    with running(upstream=model.url) as server:
        answer = httpx2.post(f"{server.url}/v1/chat/completions", content=body, timeout=60)
        assert answer.status_code == 400
        assert answer.json()["error"]["type"] == "invalid_request_error"
        assert model.requests == []


def test_what_cannot_fit_is_told_as_openai_tells_it(model):
    with running(upstream=model.url, window_tokens=300) as server:
        long = [{"role": "user", "content": "word " * 1_000}]
        with pytest.raises(openai.BadRequestError) as caught:
            ask(client(server.url), long, stream=False)
        assert caught.value.code == "context_length_exceeded"
        assert model.requests == []


@pytest.mark.parametrize("path", ["chat/completions", "messages"])
@pytest.mark.parametrize("stream", [False, True])
def test_memory_off_is_answered_without_a_model_too(path, stream):
    question = {"model": MODEL, "stream": stream, "max_tokens": 9}
    body = {**question, "messages": [{"role": "user", "content": "a title, please"}]}
    with running() as server:
        off = {"X-Firnline-Memory": "off"}
        answer = httpx2.post(f"{server.url}/v1/{path}", json=body, headers=off, timeout=60)
        assert (answer.status_code, "is not stored" in answer.text) == (200, True)
        assert heads(server) == []


@pytest.mark.parametrize(
    ("message", "said"),
    [({"role": "function", "name": "f", "content": "1"}, "role"), ({"content": "x"}, "role")],
)
def test_without_a_model_a_request_that_cannot_be_remembered_says_why(message, said):
    with running() as server:
        body = {"model": MODEL, "messages": [message]}
        answer = httpx2.post(f"{server.url}/v1/chat/completions", json=body, timeout=60)
        assert answer.status_code == 400
        assert said in answer.json()["error"]["message"]


def spoke(role, text, **more):
    return {"role": role, "content": text, **more}


def test_what_the_application_says_in_between_is_that_of_the_request(model):
    """Whatever it, or another one with the same history, said before."""
    with running(upstream=model.url) as server:
        for who in ("BOB", "ALICE"):
            asked = [
                spoke("user", "start"), spoke("assistant", "How can I help?"),
                spoke("system", f"Customer file: {who}"), spoke("user", "what is my balance?"),
                spoke("system", f"Remember: {who} speaks French"),
            ]  # fmt: skip
            ask(client(server.url), asked, stream=False)
            assert model.requests[-1]["messages"] == asked
        # Later, without them.
        plain = [message for message in asked if message["role"] != "system"]
        answer = model.requests and "You said: what is my balance?"
        more = [*plain, spoke("assistant", answer), spoke("user", "and now?")]
        ask(client(server.url), more, stream=False)
        assert model.requests[-1]["messages"] == more


def test_words_of_the_application_are_within_the_budget(model):
    with running(upstream=model.url, window_tokens=1_000) as server:
        sdk, history = client(server.url), []
        for turn in range(12):
            documents = spoke("system", f"Documents of turn {turn}: " + "words " * 150)
            sent = [*history, documents, spoke("user", f"question {turn} " + "more " * 40)]
            made = sdk.chat.completions.create(model=MODEL, messages=sent)
            history += [sent[-1], spoke("assistant", made.choices[0].message.content)]
            assert reference_tokens(model.requests[-1]) <= 1_000 - 125
            shown = [m["content"] for m in model.requests[-1]["messages"] if m["role"] == "system"]
            assert shown[-1] == documents["content"]
            assert sum("Documents of turn" in text for text in shown) == 1


def test_of_an_answer_only_what_clients_send_back_goes_back(model):
    said = {"content": "42", "reasoning_content": "SECRET", "annotations": [{"type": "x"}]}
    with running(upstream=model.url) as server:
        model.say(said)
        ask(client(server.url), [spoke("user", "sum?")], stream=False)
        history = [spoke("user", "sum?"), spoke("assistant", "42"), spoke("user", "sure?")]
        ask(client(server.url), history, stream=False)
        assert model.requests[-1]["messages"] == history
        kept = entries(server, heads(server)[0])[1].to_openai()
        assert kept["reasoning_content"] == "SECRET", "the log has all of it"
        model.say(said)
        ask(client(server.url), [spoke("user", "again?")], stream=False)
        thinking = spoke("assistant", "42", reasoning_content="SECRET")
        history = [spoke("user", "again?"), thinking, spoke("user", "sure?")]
        ask(client(server.url), history, stream=False)
        assert model.requests[-1]["messages"] == history, "this client wants it back"


@pytest.mark.parametrize("path", ["/c/shared/v1", "/api"])
def test_who_asks_at_the_same_time_is_answered_the_own_question(model, path):
    texts = [f"parallel {n}" for n in range(8)]
    chosen = {"model": f"openai/{MODEL}", "model_url": model.url} if path == "/api" else {}
    with running(upstream=model.url, **chosen) as server, ThreadPoolExecutor(8) as pool:

        def answer(text):
            if path != "/api":
                return posted(server, path, text).json()["choices"][0]["message"]["content"]
            turn = f"{server.url}/api/v1/conversations/shared/turns"
            return httpx2.post(turn, json={"message": text}, timeout=60).json()["text"]

        # Others' questions may stand before it, and have no answer yet.
        assert all(map(str.endswith, pool.map(answer, texts), texts))
        said = [m.text for m in entries(server, "shared") if m.role == "user"]
        assert sorted(said) == texts


@pytest.mark.parametrize("anew", [0, 3])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", ["/c/gone/v1", "/api"])
def test_what_is_erased_while_it_is_answered_does_not_come_back(
    model, path, stream, anew, monkeypatch
):
    monkeypatch.setattr(drafts, "_STALE", timedelta(seconds=-1))  # all that is left is found
    model.pause = 0.01
    model.fail("trickle", repeat=True)
    chosen = {"model": f"openai/{MODEL}", "model_url": model.url} if path == "/api" else {}
    with running(upstream=model.url, **chosen) as server, ThreadPoolExecutor(1) as pool:
        if path == "/api":
            turn = f"{server.url}/api/v1/conversations/gone/turns"
            kind = {"accept": "text/event-stream"} if stream else {}
            body = {"message": "private 77 " * 9}
            asked = pool.submit(httpx2.post, turn, json=body, headers=kind, timeout=60)
        else:
            asked = pool.submit(posted, server, path, "private 77 " * 9, stream)
        deadline = time.monotonic() + 30
        while not model.requests and time.monotonic() < deadline:
            time.sleep(0.01)
        erased = httpx2.delete(f"{server.url}/api/v1/conversations/gone", timeout=60)
        assert erased.status_code == 200
        others = [Message.user(f"other words {number}") for number in range(anew)]
        if others:
            server.run(server.memory().append("gone", others))
        model.pause = 0  # it was slow until the conversation was gone
        asked.result(60)
        while server.parts.streams.live or server.parts.drafts.live:
            time.sleep(0.01)
        server.run(server.parts.drafts.recover())
        assert heads(server) == ["gone"] * bool(anew)
        assert [m.text for m in entries(server, "gone")] == [m.text for m in others]
        assert server.run(server.memory().store.cards("draft")) == []


def test_names_are_the_same_in_headers_paths_and_rest(model):
    with running(upstream=model.url) as server:
        for name, path in (
            ("Zürich 1", "Z%C3%BCrich%201"),
            ("p/q", "p~1q"),
            ("50% ~", "50%25%20~0"),
        ):
            first = posted(server, f"/c/{path}/v1", "hi")
            assert [m.text for m in entries(server, name) if m.role == "user"] == ["hi"]
            told = first.headers["x-firnline-conversation"]
            posted(server, "/v1", "more", x_firnline_conversation=told)
            assert [m.text for m in entries(server, name) if m.role == "user"] == ["hi", "more"]


def test_a_title_that_open_webui_asks_for_is_not_said_in_the_chat(model):
    named = {"X-OpenWebUI-Chat-Id": "ow-1"}
    task = "### Task:\nGenerate a concise title"
    with running(upstream=model.url) as server:
        sdk, history = client(server.url), [spoke("user", "Order 1138 never arrived.")]
        for text in ("When was it sent?", "Thank you."):
            answer = sdk.chat.completions.create(model=MODEL, messages=history, extra_headers=named)
            sdk.chat.completions.create(
                model=MODEL, messages=[spoke("user", task)], extra_headers=named
            )
            assert len(model.requests[-1]["messages"]) == 1
            history += [spoke("assistant", answer.choices[0].message.content), spoke("user", text)]
        said = [m.text for m in entries(server, "ow-1") if m.role == "user"]
        assert said == ["Order 1138 never arrived.", "When was it sent?"]


def test_what_the_answer_may_take_is_left_for_it(model):
    with running(upstream=model.url, window_tokens=8_000) as server:
        sdk, history = client(server.url), []
        for turn in range(6):
            history.append(spoke("user", f"{turn} " + "word " * 500))
            made = sdk.chat.completions.create(model=MODEL, messages=history, max_tokens=7_000)
            assert reference_tokens(model.requests[-1]) <= 1_000
            history.append(spoke("assistant", made.choices[0].message.content))


# -- trouble ----------------------------------------------------------------------------------


def test_a_role_that_memory_does_not_know_is_passed_on(model):
    with running(upstream=model.url) as server:
        body = {"model": MODEL, "messages": [{"role": "function", "name": "f", "content": "1"}]}
        answer = httpx2.post(f"{server.url}/v1/chat/completions", json=body, timeout=60)
        assert answer.headers["x-firnline-status"] == "degraded"
        assert model.requests[-1]["messages"] == body["messages"]


# -- recall tools -----------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
def test_a_clients_tool_with_the_name_of_ours_is_the_clients(model, stream):
    schema = {"type": "object", "properties": {"url": {"type": "string"}}}
    theirs = {"type": "function", "function": {"name": "search_history", "parameters": schema}}
    model.answer = lambda request: call_tool("search_history", {"url": "x"})
    with running(upstream=model.url, recall_tools=True) as server:
        sdk = client(server.url)
        request = {"model": MODEL, "messages": [spoke("user", "go")], "tools": [theirs]}
        if stream:
            with sdk.chat.completions.stream(**request) as events:
                answer = events.get_final_completion().choices[0]
        else:
            answer = sdk.chat.completions.create(**request).choices[0]
        assert [call.function.name for call in answer.message.tool_calls] == ["search_history"]
        assert answer.finish_reason == "tool_calls"
        offered = [tool["function"]["name"] for tool in model.requests[-1]["tools"]]
        assert offered.count("search_history") == 1
        assert len(offered) > 3
        assert len(model.requests) == 1


def test_counts_of_all_rounds_are_added_up():
    first = {"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 4, "audio": None}}
    rounds = UpstreamRounds(None, UpstreamRequest(client_body={}, body={}, count=None), None)
    for usage in (first, {**first, "total_tokens": 7}, {}):
        rounds.add_usage(usage)
    details = {"cached_tokens": 8, "audio": None}
    assert rounds.usage == {
        "prompt_tokens": 10, "prompt_tokens_details": details, "total_tokens": 7,
    }  # fmt: skip


def test_an_endpoint_that_is_busy_after_a_recall_says_so_to_the_client(model):
    def busy(request):
        if request["messages"][-1]["role"] == "user":
            model.fail("429")
            return call_tool("search_history", {"query": "x"})
        return "never"

    model.answer = busy
    with running(upstream=model.url, recall_tools=True) as server:
        with pytest.raises(openai.RateLimitError) as caught:
            ask(client(server.url), [spoke("user", "recall")], stream=False)
        assert int(caught.value.response.headers["retry-after"]) >= 1


@pytest.mark.parametrize("window", [8_000, 64_000])
def test_results_of_recall_take_the_room_that_is_free_and_no_more(model, window):
    """However many calls there are at once."""

    def greedy(request):
        if request["messages"][-1]["role"] == "tool" or not request.get("tools"):
            return "Enough."
        call = call_tool("get_extended_context", {"count": 50})["tool_calls"][0]
        calls = [{**call, "id": f"c{number}"} for number in range(6)]
        return {"role": "assistant", "content": None, "tool_calls": calls}

    model.answer = greedy
    with running(upstream=model.url, recall_tools=True, window_tokens=window) as server:
        said = [Message.user(f"{number} " + "word " * 200) for number in range(40)]
        server.run(server.memory().append("long", said))
        sdk = client(server.url)
        done = sdk.chat.completions.create(
            model=MODEL,
            messages=[spoke("user", "What was it all about?")],
            extra_headers={"x-firnline-conversation": "long"},
        )
        assert done.choices[0].message.content == "Enough."
        sent = model.requests[-1]
        assert reference_tokens(sent) <= window
        results = [m["content"] for m in sent["messages"] if m["role"] == "tool"]
        assert len(results) == 6
        assert sum("no room" in text for text in results) == (4 if window == 8_000 else 1)
        assert len(results[0]) > (1_000 if window == 8_000 else 30_000)


# -- no model at all --------------------------------------------------------------------------
