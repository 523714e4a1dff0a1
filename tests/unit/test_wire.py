"""Anthropic's format is read and written without loss."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from firnline import Message, Part, ToolCall
from firnline.errors import InputError
from firnline.log.message import decode, encode
from firnline.log.tokens import counter
from firnline.log.wire import (
    OPENING,
    dump_anthropic,
    dump_openai,
    dump_openai_request,
    load_anthropic,
    load_json,
    load_openai,
)
from firnline.testing.provider_rules import anthropic_problems
from support.message_strategies import clean, json_objects, json_values

pytestmark = pytest.mark.promise("byte-exact")

# -- requests as the SDK sends them -----------------------------------------------------------

_marks = st.fixed_dictionaries({}, optional={"cache_control": st.just({"type": "ephemeral"})})
_ids = st.text("abcdefghij0123456789_-", min_size=1, max_size=12).map(lambda text: f"toolu_{text}")
_texts = st.builds(
    lambda text, mark, cited: {"type": "text", "text": text, **mark, **cited},
    clean,
    _marks,
    st.fixed_dictionaries({}, optional={"citations": st.none() | st.lists(json_objects)}),
)
_images = st.builds(
    lambda source, mark: {"type": "image", "source": source, **mark},
    st.sampled_from(
        [
            {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="},
            {"type": "url", "url": "https://example.org/a.png"},
            {"type": "file", "file_id": "file_1"},
        ]
    ),
    _marks,
)
_documents = st.builds(
    lambda title, mark: {
        "type": "document",
        "source": {"type": "text", "media_type": "text/plain", "data": "x"},
        "title": title,
        **mark,
    },
    clean,
    _marks,
)
_unknown = st.builds(lambda fields: {**fields, "type": "brand_new_2027"}, json_objects)
_thoughts = st.one_of(
    st.builds(lambda t: {"type": "thinking", "thinking": t, "signature": "c2ln"}, clean),
    st.just({"type": "redacted_thinking", "data": "ZGF0YQ=="}),
)
_calls = st.builds(
    lambda call, name, given, more: {
        "type": "tool_use",
        "id": call,
        "name": name,
        "input": given,
        **more,
    },
    _ids,
    clean,
    st.dictionaries(clean, json_values, max_size=3),
    st.fixed_dictionaries(
        {},
        optional={
            "cache_control": st.just({"type": "ephemeral"}),
            "caller": st.just({"type": "direct"}),
        },
    ),
)
_results = st.builds(
    lambda call, content, more: {"type": "tool_result", "tool_use_id": call, **content, **more},
    _ids,
    st.fixed_dictionaries(
        {}, optional={"content": clean | st.lists(st.one_of(_texts, _images), max_size=3)}
    ),
    st.fixed_dictionaries(
        {}, optional={"is_error": st.booleans(), "cache_control": st.just({"type": "ephemeral"})}
    ),
)
_users = st.lists(st.one_of(_results, _texts, _images, _documents, _unknown), max_size=5)
_answers = st.lists(st.one_of(_thoughts, _texts, _calls, _unknown), max_size=5)
_turns = st.one_of(
    st.builds(lambda content: {"role": "user", "content": content}, clean | _users),
    st.builds(lambda content: {"role": "assistant", "content": content}, clean | _answers),
    st.builds(
        lambda content, more: {"role": "system", "content": content, **more},
        clean | st.lists(_texts, max_size=2),
        st.fixed_dictionaries({}, optional={"clear_at": st.just("never")}),
    ),
)
bodies = st.builds(
    lambda system, turns: {**system, "messages": turns},
    st.fixed_dictionaries({}, optional={"system": clean | st.lists(_texts, max_size=3)}),
    st.lists(_turns, max_size=8),
)


# -- the same by Anthropic's own rules, written down here and not taken from the code ---------


def blocks(content: Any) -> list[dict[str, Any]]:
    """Text is a block of text; what is blank is nothing."""
    listed = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
    found = []
    for block in listed:
        if block["type"] == "tool_result":
            found.append({**block, "content": blocks(block.get("content"))})
        elif block["type"] != "text" or block["text"].strip():
            found.append(block)
    return found


def joined(turns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Consecutive turns of one role are one turn; results come first."""
    found: list[dict[str, Any]] = []
    for turn in turns:
        content = blocks(turn["content"])
        if not content and set(turn) == {"role", "content"}:
            continue
        if found and found[-1]["role"] == turn["role"] != "system":
            found[-1]["content"] += content
        else:
            found.append({**turn, "content": content})
    for turn in found:
        results = [block for block in turn["content"] if block["type"] == "tool_result"]
        turn["content"] = results + [b for b in turn["content"] if b["type"] != "tool_result"]
    if found and found[0]["role"] != "user":
        found.insert(0, {"role": "user", "content": [{"type": "text", "text": OPENING}]})
    return found


@given(bodies)
def test_what_the_sdk_sends_is_stored_without_loss(body):
    before = json.dumps(body)
    stored = [decode(encode(message)) for message in load_anthropic(body)]
    assert json.dumps(body) == before  # the caller's dict is left alone
    given_back = dump_anthropic(stored)
    assert given_back["messages"] == joined(body["messages"])
    system = blocks(body.get("system"))
    if any(len(block) > 2 for block in system):
        assert given_back["system"] == system
    else:
        assert given_back["system"] == "\n\n".join(block["text"] for block in system)


@given(bodies)
def test_to_load_what_was_dumped_changes_nothing(body):
    once = dump_anthropic(load_anthropic(body))
    assert dump_anthropic(load_anthropic(once)) == once


@given(bodies)
def test_order_is_kept_in_the_log(body):
    """Every text and every result is a message's, in the order in which they were sent."""
    sent = [
        block.get("tool_use_id") or block.get("text")
        for turn in body["messages"]
        if turn["role"] == "user"
        for block in blocks(turn["content"])
        if block["type"] in ("text", "tool_result")
    ]
    kept: list[str] = []
    for message in load_anthropic(body):
        if message.role == "tool":
            kept.append(message.tool_call_id)
        elif message.role == "user":
            parts = message.content if isinstance(message.content, tuple) else ()
            texts = [part.text for part in parts if part.kind == "text"]
            texts = [message.content] if isinstance(message.content, str) else texts
            kept += [text for text in texts if text.strip()]
    assert kept == sent


# -- by hand ----------------------------------------------------------------------------------


def test_calls_become_calls_and_results_become_messages():
    body = {
        "system": [{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": "Weather and time in Rome?"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Two tools.", "signature": "c2ln"},
                    {"type": "text", "text": "Let me see."},
                    {"type": "tool_use", "id": "a", "name": "weather", "input": {"city": "Rome"}},
                    {"type": "tool_use", "id": "b", "name": "clock", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "a", "content": "sunny"},
                    {"type": "tool_result", "tool_use_id": "b", "content": "no", "is_error": True},
                    {"type": "text", "text": "Be brief."},
                ],
            },
        ],
    }
    system, question, answer, first, second, more = load_anthropic(body)
    assert (system.role, system.text) == ("system", "Be kind.")
    assert question == Message.user("Weather and time in Rome?")
    assert answer.text == "Let me see."
    assert [call.name for call in answer.tool_calls] == ["weather", "clock"]
    assert json.loads(answer.tool_calls[0].arguments) == {"city": "Rome"}
    assert answer.content[0].kind == "reasoning"
    assert [m.tool_call_id for m in (first, second)] == ["a", "b"]
    assert (first.text, second.text, more.text) == ("sunny", "no", "Be brief.")
    request = dump_anthropic(load_anthropic(body))
    assert anthropic_problems(request) == []
    assert request["system"] == body["system"]
    assert request["messages"][1] == body["messages"][1]
    assert request["messages"][2]["content"][1]["is_error"] is True


def test_messages_of_openais_shape_come_out_in_anthropics():
    said = [
        Message.user([Part.of_text("look"), Part.image("data:image/png;base64,AA==")]),
        Message.assistant(tool_calls=[ToolCall.of("a", "f", "not json")]),
        Message.tool("4", tool_call_id="a"),
        Message.system("Be brief from now on."),
        Message.user([Part({"type": "input_audio", "input_audio": {}}), Part.of_text("hm?")]),
    ]
    turns = dump_anthropic(said)["messages"]
    assert turns[0]["content"][1]["source"] == {
        "type": "base64",
        "media_type": "image/png",
        "data": "AA==",
    }
    assert turns[1]["content"][0]["input"] == {"arguments": "not json"}
    assert [block.get("text") for block in turns[2]["content"]] == [
        None,
        "[system] Be brief from now on.",
        "[audio]",
        "hm?",
    ]


def _texts(messages: list[Message]) -> list[Any]:
    turns = dump_anthropic(messages)["messages"]
    return [block.get("text") for turn in turns for block in turn["content"]]


def test_users_with_several_names_are_distinguished():
    said = [
        Message.user("I am allergic to peanuts.", name="Anna"),
        Message.user([Part.image("https://x/y.png"), Part.of_text(" I prefer tea.")], name="B\nob"),
        Message.user("Who speaks?"),
        Message.assistant("You do.", name="Helper"),
        Message.user([Part({"type": "input_audio", "input_audio": {}})], name="Anna"),
        Message.user(" ", name="Anna"),
    ]
    told = ["Anna:", "I am allergic to peanuts.", "B_ob:", None, " I prefer tea.", "Who speaks?"]
    assert _texts(said) == [*told, "You do.", "Anna:", "[audio]"]
    assert said[0] == Message.user("I am allergic to peanuts.", name="Anna")


def test_a_single_name_is_not_added():
    said = [
        Message.user("Hi.", name="Anna"),
        Message.assistant("Hello.", name="Helper"),
        Message.user("Bye.", name="Anna"),
        Message.user("Really."),
    ]
    assert _texts(said) == ["Hi.", "Hello.", "Bye.", "Really."]


@given(clean.filter(str.strip), clean.filter(str.strip))
@example("<Y{ 0", "0")
@example("*=*=", "0")
@example("user id", "0")
def test_a_name_takes_no_more_tokens_than_are_counted_for_it(name, text):
    said = [Message.user(text, name=name), Message.user("Hi.", name="Anna Bob")]
    (turn,) = dump_anthropic(said)["messages"]
    for encoding in ("o200k_base", "cl100k_base"):
        count = counter(encoding=encoding)
        counted = sum(count.message(message) for message in said)
        framing = count.message(Message.user(""))
        sent = sum(count.text(block["text"]) for block in turn["content"])
        assert sent + framing * len(said) <= counted


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"messages": None},
        {"messages": ["hi"]},
        {"messages": [{"role": "tool", "content": "x"}]},
        {"messages": [{"role": "user", "content": 3}]},
        {"messages": [{"role": "user", "content": ["x"]}]},
        {"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]},
        {"messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "a"}]}]},
        {"messages": [], "system": 3},
    ],
)
def test_an_invalid_request_is_rejected(body):
    with pytest.raises(InputError):
        load_anthropic(body)


def test_what_endpoints_refuse_is_written_otherwise():
    """The log keeps what came; a request has what is taken."""
    parts = [
        Part.of_text("look"),
        Part({"type": "file", "file": {"file_id": "photos/1.jpg"}}),
        Part({"type": "file", "file": {"file_id": "file-abc"}}),
        Part({"type": "telegram:poll", "question": "When?"}),
    ]
    call = ToolCall.of("c1", "dalle.text2im", {"prompt": "a cat"})
    said = [Message.user(parts, name="Anna Müller / Büro"), Message.assistant(tool_calls=[call])]
    user, assistant = dump_openai_request(said)
    assert user["name"] == "Anna_Müller_Büro"
    assert user["content"] == [
        {"type": "text", "text": "look"},
        {"type": "text", "text": "[file: photos/1.jpg]"},
        {"type": "file", "file": {"file_id": "file-abc"}},
        {"type": "text", "text": "[telegram:poll]"},
    ]
    assert assistant["tool_calls"][0]["function"]["name"] == "dalle_text2im"
    assert dump_openai(said)[0]["name"] == "Anna Müller / Büro"
    blocks = dump_anthropic(said)["messages"][0]["content"]
    texts = ["look", "[file: photos/1.jpg]", "[file: file-abc]", "[telegram:poll]"]
    assert [block["text"] for block in blocks] == texts
    plain = [
        {"role": "user", "content": "hi", "name": "ann"},
        {"role": "assistant", "content": "x"},
    ]
    assert dump_openai_request(load_openai(plain)) == plain


def test_every_message_that_is_sent_has_a_content_or_calls():
    """Endpoints refuse the whole request for one that has neither, and so every later turn."""
    call = ToolCall.of("c1", "look", {})
    said = [
        *(Message.user(content) for content in (None, "", [])),
        Message.assistant(),
        Message.assistant(tool_calls=[call]),
        Message.tool("", tool_call_id="c1"),
    ]
    sent = dump_openai_request(said)
    assert [message.get("content") for message in sent] == ["", "", "", "", None, ""]
    assert "content" not in dump_openai(said)[0]


@pytest.mark.parametrize("text", ['{"a":1,"a":2}', '[{"b":{"a":1,"c":0,"\\u0061":1}}]'])
def test_a_key_that_occurs_twice_is_an_error(text):
    with pytest.raises(InputError, match="the key 'a' occurs twice"):
        load_json(text)


def test_finding_the_key_that_occurs_twice_takes_one_pass():
    text = "{" + ",".join(f'"{n}":0' for n in range(200_000)) + ',"199999":1}'
    with pytest.raises(InputError, match="'199999' occurs twice"):
        load_json(text)
