"""The formats of public question sets: what is read, what is skipped, what is an error."""

import copy
import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firnline.cli.bench.assistants import ABSTENTION
from firnline.cli.bench.cases import ADVERSARIAL, NO_EVIDENCE, UNKNOWN_EVIDENCE, BenchCase
from firnline.cli.bench.datasets import FORMATS, load, parse
from firnline.cli.bench.location import JsonSpot
from firnline.cli.bench.talks import turn_ids
from firnline.errors import InputError
from support import question_sets


def read(form, value):
    return list(parse(form, JsonSpot(value, "file.json"), "file"))


def evidence(question):
    return {piece.name: sorted(piece.seqs) for piece in question.evidence}


def test_locomo():
    (case,) = read("locomo", question_sets.locomo())
    assert case.conversation == "talk-1"
    assert [m.text for m in case.messages][1:4] == [
        "Look at my kayak. [image: a red kayak on a lake]",
        "Lovely, where did you buy it?",
        "The ferry to Corsica was late.",
    ]
    assert [(m.role, m.name) for m in case.messages][:2] == [("user", "Ana"), ("assistant", "Ben")]
    assert case.messages[0].created_at == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    assert case.messages[1].created_at == datetime(2023, 5, 8, 13, 56, 30, tzinfo=UTC)
    assert case.messages[3].created_at == datetime(2023, 6, 3, 0, 5, tzinfo=UTC)
    assert [q.category for q in case.questions] == ["single-hop", "multi-hop", "temporal"]
    assert evidence(case.questions[1]) == {"D2:2": [4], "D1:2": [1]}
    assert case.left_out == {NO_EVIDENCE: 1, ADVERSARIAL: 1}
    assert case.unknown == 1


def test_realtalk():
    (case,) = read("realtalk", question_sets.realtalk())
    assert [(m.role, m.name) for m in case.messages][:2] == [("user", "Cleo"), ("assistant", "Dov")]
    assert case.messages[1].created_at == datetime(2023, 12, 30, 0, 32, 20, tzinfo=UTC)
    assert case.messages[2].text == "Thanks. [image: a loaf]"
    assert evidence(case.questions[0]) == {"D1:1": [0], "D1:2": [1], "D1:3": [2]}
    assert evidence(case.questions[1]) == {"D1:2": [1]}
    assert [q.category for q in case.questions] == ["multi-hop", "commonsense"]
    assert case.left_out == {UNKNOWN_EVIDENCE: 1}


def test_longmemeval():
    by_turn, by_session, abstention = read("longmemeval", question_sets.longmemeval())
    assert by_turn.messages[0].text == "I play the piano."  # sessions in the order of their dates
    assert by_turn.messages[0].created_at == datetime(2023, 5, 20, 2, 21, tzinfo=UTC)
    assert evidence(by_turn.questions[0]) == {"0": [0]}
    assert not by_turn.questions[0].by_session
    assert evidence(by_session.questions[0]) == {"early": [0, 1]}
    assert by_session.questions[0].by_session
    assert abstention.left_out == {ABSTENTION: 1}


def test_beam():
    (case,) = read("beam", question_sets.beam())
    assert [m.text for m in case.messages][::2] == [
        "My sprint ends on Friday.",
        "It ends on Monday now.",
    ]
    assert case.messages[0].created_at == datetime(2024, 3, 15, tzinfo=UTC)
    assert [q.category for q in case.questions] == ["knowledge_update", "information_extraction"]
    assert evidence(case.questions[0]) == {"0": [0], "2": [2]}
    assert case.left_out == {NO_EVIDENCE: 1}


@pytest.mark.parametrize("write", [json.dumps, repr], ids=["json", "literal"])
def test_beam_as_the_hub_keeps_it(write):
    row = question_sets.beam()
    turns = [turn for batch in row["chat"] for turn in batch["turns"]]
    row |= {"conversation_id": "7", "chat": turns}
    row["probing_questions"] = write(row["probing_questions"])
    (case,) = read("beam", [row])
    assert (case.conversation, len(case.messages), len(case.questions)) == ("7", 4, 2)


def test_beam_as_plans():
    row = question_sets.beam()
    row["chat"] = [{"plan-1": row["chat"]}]
    assert read("beam", row)[0].questions == read("beam", question_sets.beam())[0].questions


def test_an_id_that_names_two_turns_names_none():
    row = question_sets.beam()
    row["chat"][0]["turns"][1][1]["id"] = 2
    (case,) = read("beam", row)
    assert evidence(case.questions[0]) == {"0": [0]}
    assert (case.unknown, case.left_out[UNKNOWN_EVIDENCE]) == (2, 1)


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("D1:3", [(1, 3)]),
        ("D8:6; D9:17", [(8, 6), (9, 17)]),
        ("D:11:26", [(11, 26)]),
        ("D30:05", [(30, 5)]),
        ("D 2:18.", [(2, 18)]),
        ("D13:45:D20:19", [(13, 45), (20, 19)]),
        ("D1:2-D1:4;D2:1", [(1, 2), (1, 3), (1, 4), (2, 1)]),
        ("D1:2-4", [(1, 2), (1, 3), (1, 4)]),
        ("D1:9-D2:1", [(1, 9), (2, 1)]),
        ("D1:1-D1:999999", [(1, 1), (1, 999999)]),
        ("D", ["D"]),
        (" ", []),
    ],
)
def test_evidence_as_people_type_it(text, ids):
    assert turn_ids(text) == ids


# -- complaints -------------------------------------------------------------------------------


def _change(value, *path):
    *way, last, new = path
    inner = value
    for key in way:
        inner = inner[key]
    inner[last] = new
    return value


@pytest.mark.parametrize(
    ("form", "path", "complaint"),
    [
        ("locomo", (0, "qa", None), "file.json, conversation 1: expected a field 'qa', found"),
        (
            "locomo",
            (0, "conversation", "session_2", 1, "speaker", []),
            "session_2, turn 2, speaker: expected text or a number, found a list of 0",
        ),
        (
            "locomo",
            (0, "conversation", "session_1_date_time", "yesterday"),
            "expected a time such as '1:56 pm on 8 May, 2023', found the text 'yesterday'",
        ),
        ("locomo", (0, "qa", 2, "question", 7), "qa, question 3, question: expected text, found a"),
        (
            "locomo",
            (0, "conversation", {"session_1": []}),
            r"expected sessions of turns \(session_1, session_2, …\)",
        ),
        (
            "realtalk",
            ("session_1", 0, "date_time", "x"),
            "session_1, turn 1, date_time: expected a",
        ),
        ("longmemeval", (1, "haystack_dates", []), r"as many haystack_dates \(0\)"),
        ("longmemeval", (0, "haystack_sessions", 1, 0, "role", "bard"), "'user' or 'assistant'"),
        (
            "beam",
            ("chat", [{"batch": 1}]),
            "chat, item 1: expected a message with role and content",
        ),
        ("beam", ("chat", []), "chat: expected batches of turns"),
        ("beam", ("probing_questions", "no"), "probing_questions: expected probing questions as"),
    ],
)
def test_a_complaint_says_where_and_what_was_expected(form, path, complaint):
    value = _change(copy.deepcopy(question_sets.SETS[form]()), *path)
    with pytest.raises(InputError, match=complaint):
        read(form, value)


@pytest.mark.parametrize("form", FORMATS)
def test_another_format_is_rejected(form):
    for other, made in question_sets.SETS.items():
        if other != form:
            with pytest.raises(InputError, match="expected"):
                read(form, made())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(form=st.sampled_from(sorted(FORMATS)), value=JSON)
def test_any_value_is_a_case_or_a_complaint(form, value):
    _taken_or_refused(form, value)


@given(form=st.sampled_from(sorted(FORMATS)), value=JSON, data=st.data())
def test_a_set_with_anything_in_it_is_a_case_or_a_complaint(form, value, data):
    """Deeper than random values get: one place of a good file is replaced."""
    made = question_sets.SETS[form]()
    inner = made
    while True:
        keys = sorted(inner) if isinstance(inner, dict) else list(range(len(inner)))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(inner[key], dict | list) or not inner[key] or data.draw(st.booleans()):
            break
        inner = inner[key]
    inner[key] = value
    _taken_or_refused(form, made)


def _taken_or_refused(form, value):
    try:
        cases = read(form, value)
    except InputError:
        return
    for case in cases:
        assert isinstance(case, BenchCase)
        for question in case.questions:
            assert question.evidence
            for piece in question.evidence:
                assert piece.seqs
                assert max(piece.seqs) < len(case.messages)


# -- files ------------------------------------------------------------------------------------


def test_files_and_folders(tmp_path):
    for number in (2, 10):
        folder = tmp_path / "beam" / str(number)
        (folder / "probing_questions").mkdir(parents=True)
        row = question_sets.beam()
        (folder / "chat.json").write_text(json.dumps(row["chat"]))
        asked = folder / "probing_questions" / "probing_questions.json"
        asked.write_text(json.dumps(row["probing_questions"]))
    assert [case.conversation for case in load("beam", tmp_path / "beam")] == ["2", "10"]
    assert len(load("beam", tmp_path / "beam", limit=1)) == 1
    chats = tmp_path / "chats"
    chats.mkdir()
    (chats / "Chat_1.json").write_text(json.dumps(question_sets.realtalk()))
    assert [case.conversation for case in load("realtalk", chats)] == ["Chat_1"]
    with pytest.raises(InputError, match="is a folder; locomo is a single JSON file"):
        load("locomo", chats)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "set.json: not JSON"),
        ("[" * 100_000, "set.json: not JSON"),
        ("[]", "no conversation found"),
        (json.dumps(question_sets.locomo() * 2), "'talk-1' occurs twice"),
    ],
)
def test_files_that_cannot_be_used(tmp_path, text, complaint):
    file = tmp_path / "set.json"
    file.write_text(text)
    with pytest.raises(InputError, match=complaint):
        load("locomo", file)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="there is no file"):
        load("locomo", tmp_path / "none.json")
