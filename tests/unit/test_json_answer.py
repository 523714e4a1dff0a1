"""Answers that satisfy a schema: the ladder, the repair and the check."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firnline.errors import InputError, ModelError, ModelRefused
from firnline.log.message import Message
from firnline.models import callable_model, open_model
from firnline.models.json_answer import ask_structured, check_schema, read_json, schema_problem
from firnline.models.repair import LenientParser, json_values
from firnline.protocols import Completion
from firnline.testing import ModelServer

ITEM = {
    "type": "object",
    "properties": {
        "subject": {"type": "string"},
        "seq": {"type": "integer"},
        "kind": {"type": "string", "enum": ["fact", "preference"]},
        "sure": {"type": "boolean"},
    },
    "required": ["subject", "seq"],
}
SCHEMA = {
    "type": "object",
    "properties": {"items": {"type": "array", "items": ITEM}},
    "required": ["items"],
}
ASK = [{"role": "user", "content": "What matters here?"}]
GOOD = {"items": [{"subject": "tea", "seq": 3}]}
TEXT = json.dumps(GOOD)


# -- repair -----------------------------------------------------------------------------------

REPAIRED = [
    TEXT,
    f"  \n{TEXT}\n",
    f"```json\n{TEXT}\n```",
    f"```\n{TEXT}\n```",
    f"```JSON\n{TEXT}```",
    f"Sure! Here is the JSON:\n{TEXT}",
    f"{TEXT}\nLet me know if you need anything else.",
    f"Here {{as asked}}: {TEXT} [done]",
    f'<think>Maybe {{"items": []}}? No.</think>\n{TEXT}',
    f"<thinking>\n{{}}\n</thinking>{TEXT}",
    f"\ufeff{TEXT}",
    f"json\n{TEXT}",
    f"{TEXT}{TEXT}",
    f"{TEXT};",
    f"answer = {TEXT}",
    '{"items": [{"subject": "tea", "seq": 3,}],}',
    '{"items": [{"subject": "tea", "seq": 3},]}',
    '{"items": [{"subject": "tea"\n"seq": 3}]}',
    "{'items': [{'subject': 'tea', 'seq': 3}]}",
    "{items: [{subject: 'tea', seq: 3}]}",
    '{items: [{subject: "tea", seq: 3}]}',
    "{`items`: [{`subject`: `tea`, `seq`: 3}]}",
    "{“items”: [{“subject”: “tea”, “seq”: 3}]}",
    '{"items": [{"subject": "tea", "seq": 3.0}]}',
    '{"items": [{"subject": "tea", "seq": +3}]}',
    '{"items": [{"subject": "tea", "seq": 3.}]}',
    '{"items": [{"subject": "tea", "seq": 3}] // all\n}',
    '{/* the items */ "items": [{"subject": "tea", "seq": 3}]}',
    '{\n  // as asked\n  "items": [{"subject": "tea", "seq": 3}]\n}',
    '[{"subject": "tea", "seq": 3}]',
    '```json\n[{"subject": "tea", "seq": 3}]\n```',
    "[{'subject': 'tea', 'seq': 3,}]",
    f'{{"answer": {TEXT}}}',
    f"[{TEXT}]",
    f'{{"note": "a draft", "seq": 1}}\n\n{TEXT}',
    '{"items": [{"subject": "t\\u0065a", "seq": 3,}]}',
    "{'items': [{'subject': '\\u0074\\x65a'.replace, 'seq': 3}]}\n" + TEXT,
    '{"items"  :  [ { "subject" : "tea" , "seq" : 3 } , ] , }',
    '{"items": [{"subject": "tea", "seq": 3}]}\n```\nThis satisfies the schema {"type": "object"}.',
]  # fmt: skip

REFUSED = [
    "",
    "no JSON at all",
    "I'm sorry, but I can't help with that.",
    "{",
    "[]]]]{{{{",
    "{}",
    "null",
    "[[]",
    '{"items": [{"subject": "tea" "seq": 3}]}',  # a missing comma, or quotes inside a string?
    "[1, 2, 3]",
    TEXT[:-1],  # what breaks off is not completed
    TEXT[:-2],
    TEXT[:20],
    '{"items": [{"subject": "tea", "seq": 3}, {"subject": "cof',
    '{"items": [{"subject": "tea"}]}',
    '{"items": [{"subject": "tea", "seq": "3"}]}',
    '{"items": [{"subject": "tea", "seq": 3.5}]}',
    '{"items": [{"subject": "tea", "seq": true}]}',
    '{"items": [{"subject": null, "seq": 3}]}',
    '{"items": [{"subject": "tea", "seq": 3, "kind": "rumour"}]}',
    '{"items": {"subject": "tea", "seq": 3}}',
    '{"items": "tea"}',
    '{"things": []}',
    '{"items": [{"subject": "tea", "seq": NaN}]}',
    '{"items": [{"subject": "he said "x", and left", "seq": 3}]}',
    "[" * 5_000,
    '{"items":' * 5_000,
]  # fmt: skip


@pytest.mark.parametrize("text", REPAIRED, ids=range(len(REPAIRED)))
def test_json_as_models_write_it_is_read(text):
    assert read_json(text, SCHEMA) == GOOD


@pytest.mark.parametrize("text", REFUSED, ids=range(len(REFUSED)))
def test_an_answer_without_the_required_fields_is_rejected(text):
    with pytest.raises(ModelError) as caught:
        read_json(text, SCHEMA)
    assert caught.value.context["code"] == "invalid_json"
    assert caught.value.context["raw"] == text[:16_384]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": "two\nlines\tand a tab"}', {"a": "two\nlines\tand a tab"}),
        ('{"a": "he said "hi" to me",}', {"a": 'he said "hi" to me'}),
        ("{'a': 'it's fine'}", {"a": "it's fine"}),
        ('{"a": "\\u00e9\\ud83d\\ude00\\n\\q",}', {"a": "é😀\nq"}),
        ("{a: True, b: None, c: [.5, 1e3, -2]}", {"a": True, "b": None, "c": [0.5, 1000.0, -2]}),
    ],
)
def test_the_patient_reader(text, value):
    assert LenientParser(text).value() == value


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(JSON, st.booleans(), st.text(), st.text())
def test_valid_json_in_any_wrapping_is_found(value, pretty, before, after):
    body = {"the answer": value}
    text = json.dumps(body, indent=2 if pretty else None, ensure_ascii=pretty)
    schema = {"type": "object", "required": ["the answer"]}
    assert body in list(json_values(before + text + after))
    if "the answer" not in before:
        assert read_json(before + text + after, schema) == read_json(text, schema)


@given(JSON)
def test_the_patient_reader_reads_valid_json_as_it_is(value):
    text = json.dumps([value])
    assert LenientParser(text).value() == [value]


@given(st.text(alphabet="{}[]\"',:\\/* \nab1.tunflse-+", max_size=60))
def test_nothing_makes_the_reader_raise_or_loop(text):
    for value in json_values(text):
        assert isinstance(value, dict | list)


@pytest.mark.parametrize(
    "text", ['{"a":' * 200_000, "[" * 1_000_000, "{" * 3_000_000, '"{' * 500_000]
)
def test_a_hostile_answer_costs_bounded_work(text):
    assert list(json_values(text)) == []


# -- the check --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (GOOD, None),
        ({"items": []}, None),
        ({"items": [{"subject": "x", "seq": 1, "more": 2}]}, None),
        ([], "answer: expected object"),
        ({}, "answer: items is missing"),
        ({"items": 1}, "answer.items: expected array"),
        ({"items": [1]}, "answer.items[0]: expected object"),
        ({"items": [{"subject": "x"}]}, "answer.items[0]: seq is missing"),
        ({"items": [{"subject": "x", "seq": True}]}, "answer.items[0].seq: expected integer"),
    ],
)
def test_the_first_problem_is_described(value, said):
    assert schema_problem(value, SCHEMA) == said


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": ["string", "null"]}, None, 1),
        ({"enum": [1, "a"]}, 1, True),
        ({"type": "object", "properties": {}, "additionalProperties": False}, {}, {"a": 1}),
        ({"type": "number"}, 1.5, "1.5"),
        ({"type": "array", "items": {"type": "boolean"}}, [True], [0]),
    ],
)
def test_each_word_of_the_subset_is_checked(schema, good, bad):
    check_schema(schema)
    assert schema_problem(good, schema) is None
    assert schema_problem(bad, schema) is not None


@pytest.mark.parametrize(
    "schema",
    [{"anyOf": []}, {"type": "date"}, {"items": {"minItems": 1}}, {"properties": {"a": 1}}],
)
def test_a_schema_that_could_not_be_checked_is_rejected(schema):
    with pytest.raises(InputError):
        check_schema(schema)


# -- the ladder -------------------------------------------------------------------------------


def _script(*answers):
    """A model that gives these answers in turn, and what it was asked."""
    asked, left = [], list(answers)

    async def send(messages, response_format):
        asked.append((messages, response_format))
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return Completion(message=Message.assistant(answer), prompt_tokens=10, completion_tokens=5)

    return send, asked


async def test_the_first_rung_has_the_endpoint_enforce_the_schema():
    send, asked = _script(TEXT)
    completion, rung = await ask_structured(send, ASK, SCHEMA)
    assert (json.loads(completion.message.text), rung) == (GOOD, "json_schema")
    ((messages, wanted),) = asked
    assert messages == ASK
    assert wanted["json_schema"]["strict"] is False  # `kind` and `sure` need not be there
    assert wanted["json_schema"]["schema"]["additionalProperties"] is False


async def test_strict_enforcement_is_asked_for_where_the_schema_allows_it():
    send, asked = _script('{"a": "x"}')
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    await ask_structured(send, ASK, schema)
    assert asked[0][1]["json_schema"]["strict"] is True


async def test_a_rejected_format_leads_to_the_next_one():
    send, asked = _script(ModelRefused(status=400), ModelRefused(status=422), f"```\n{TEXT}\n```")
    _, rung = await ask_structured(send, ASK, SCHEMA)
    assert rung == "text"
    assert [wanted and wanted["type"] for _, wanted in asked] == [
        "json_schema",
        "json_object",
        None,
    ]
    assert all("JSON schema" in messages[-1]["content"] for messages, _ in asked[1:])
    assert all(len(messages) == 1 for messages, _ in asked)  # no two user messages in a row


async def test_a_bad_answer_is_asked_for_again_with_the_reason_and_its_cost_is_counted():
    send, asked = _script('{"items": 1}', TEXT)
    completion, rung = await ask_structured(send, ASK, SCHEMA)
    assert rung == "json_object"
    assert "items: expected array" in asked[1][0][-1]["content"]
    assert (completion.prompt_tokens, completion.completion_tokens) == (20, 10)


@pytest.mark.parametrize(
    "error",
    [
        ModelRefused(status=401),
        ModelRefused(status=400, code="context_length_exceeded"),
        ModelError(status=500),
        ModelError(code="empty"),
    ],
)
async def test_a_failure_that_another_rung_would_share_is_raised_at_once(error):
    send, asked = _script(error, TEXT)
    with pytest.raises(ModelError):
        await ask_structured(send, ASK, SCHEMA)
    assert len(asked) == 1


async def test_after_the_last_rung_the_error_says_what_was_wrong():
    send, asked = _script("x", "y", "[]{")
    with pytest.raises(ModelError, match="no JSON") as caught:
        await ask_structured(send, ASK, {**SCHEMA, "required": ["items", "more"]})
    assert len(asked) == 3
    assert caught.value.context["raw"] == "[]{"


async def test_a_full_answer_must_be_an_object_or_an_array():
    send, _ = _script()
    with pytest.raises(InputError, match="object or an array"):
        await ask_structured(send, ASK, {"type": "string"})


@pytest.mark.parametrize(
    ("formats", "calls"),
    [(("json_schema",), [1, 1]), (("json_object",), [2, 1]), ((), [3, 1])],
    ids=["json_schema", "json_object", "text"],
)
async def test_the_rung_that_worked_is_remembered(formats, calls):
    async with ModelServer(formats=("text", *formats)) as server:
        model = open_model("test", url=server.url)
        made = []
        for _ in range(2):
            before = len(server.requests)
            completion = await model.complete(ASK, schema=SCHEMA)
            assert json.loads(completion.message.text) == {"items": []}
            made.append(len(server.requests) - before)
        await model.close()
    assert made == calls


async def test_an_answer_cut_off_at_its_length_is_rejected():
    async with ModelServer() as server:
        model = open_model("test", url=server.url)
        server.say(TEXT)
        server.fail("length")
        with pytest.raises(ModelError) as caught:
            await model.complete(ASK, schema=SCHEMA)
        await model.close()
    assert caught.value.context["code"] == "length"
    assert len(server.requests) == 1


@pytest.mark.requirement("A8")
async def test_json_that_breaks_off_is_asked_for_again_and_then_an_error():
    async with ModelServer() as server:
        model = open_model("test", url=server.url)
        server.fail("invalid_json")
        assert json.loads((await model.complete(ASK, schema=SCHEMA)).message.text) == {"items": []}
        server.fail("invalid_json", repeat=True)
        with pytest.raises(ModelError):
            await model.complete(ASK, schema=SCHEMA)
        await model.close()


async def test_a_function_is_asked_in_words_and_once_more():
    answers = ["no", TEXT]

    async def function(messages):
        assert "JSON schema" in messages[-1]["content"]
        return answers.pop(0)

    completion = await callable_model(function).complete(ASK, schema=SCHEMA)
    assert json.loads(completion.message.text) == GOOD
