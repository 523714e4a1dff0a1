"""The verifier reads what strangers wrote: any bytes get a verdict, and none reach the terminal."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firnline.cli import main as firnline
from firnline.log import proof_check
from firnline.log.proof_check import (
    CONSISTENCY,
    INCLUSION,
    Checkpoint,
    ProofError,
    check_proof,
    leaf_hash,
    node_hash,
)

pytestmark = pytest.mark.promise("proof-for-strangers")
BIDI, C1 = "\u202e", "\x9b"


def proven(body, origin="log", *, ascii_only=True):
    """A proof that holds, of a log with one message, made by someone who writes what they like."""
    stored = "sha256:" + hashlib.sha256(f"sha256:0 1 t {body}".encode()).hexdigest()
    entry = {"seq": 0, "hash": stored, "previous": "sha256:0", "tokens": 1}
    return json.dumps(
        {
            "proof": INCLUSION,
            "entry": {**entry, "tokenizer": "t", "body": body},
            "path": [],
            "checkpoint": Checkpoint(origin, 1, leaf_hash(stored)).note,
        },
        ensure_ascii=ascii_only,
    )


def grown(origin="log"):
    """A proof that holds, of a log that grew from one message to two."""
    first, second = leaf_hash("a"), leaf_hash("b")
    return json.dumps(
        {
            "proof": CONSISTENCY,
            "older": Checkpoint(origin, 1, first).note,
            "checkpoint": Checkpoint(origin, 2, node_hash(first, second)).note,
            "path": [proof_check.base64.b64encode(second).decode()],
        }
    )


def nested(depth):
    return '{"a":' * depth + "1" + "}" * depth


HOSTILE_BODIES = [
    "hello",
    nested(300),
    nested(100_000),
    '{"a":' + "[" * 100_000 + "]" * 100_000 + "}",
    '{"a":' + "1" * 5_000 + "}",
    "7",
    "null",
    "NaN",
    '"\\ud800"',
    "",
]
SHOWN_BODIES = [
    '{"a":"\\ud800"}',
    '{"\\u001b[2J":"\\u0085\\r\\b"}',
    json.dumps({"a": f"{C1}2J{BIDI}\u2066\u2028\x7f\ufeff\U000e0001"}, ensure_ascii=False),
    '{"a":NaN,"b":1e999}',
    nested(150),
]
HOSTILE_ORIGINS = ["x\x1b[2Jholds", "x\rholds: message 9", f"x{C1}31m{BIDI}", "\x00", "\x0b\x85"]


@pytest.mark.parametrize("body", HOSTILE_BODIES, ids=range(len(HOSTILE_BODIES)))
def test_a_message_that_is_none_is_an_error(body):
    with pytest.raises(ProofError, match="the message is"):
        check_proof(proven(body))


@pytest.mark.parametrize("body", SHOWN_BODIES, ids=range(len(SHOWN_BODIES)))
@pytest.mark.parametrize("origin", ["log", *HOSTILE_ORIGINS], ids=range(6))
def test_nothing_of_a_proof_reaches_the_terminal_raw(body, origin, tmp_path, capsys):
    for text in (proven(body, origin), grown(origin), grown(origin).replace("x", "y", 1)):
        path = tmp_path / "proof.json"
        path.write_text(text)
        for program in (proof_check.main, lambda given: firnline(["check-proof", *given])):
            assert program([str(path)]) in (0, 1)
            captured = capsys.readouterr()
            shown = captured.out + captured.err
            assert shown.replace("\n", "").isprintable()
            assert shown.count("\n") <= 3


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
PLACES = [(name,) for name in ("proof", "entry", "path", "checkpoint", "older")]
PLACES += [("entry", name) for name in ("seq", "hash", "previous", "tokens", "tokenizer", "body")]


def has_verdict(text, **known):
    """Whether it holds; any other error than `ProofError` fails the test."""
    try:
        str(check_proof(text, **known)).encode()
    except ProofError:
        return False
    return True


@given(st.sampled_from([proven('{"a":1}'), grown()]), st.sampled_from(PLACES), JSON | st.just(...))
def test_any_change_of_a_proof_has_a_verdict(text, place, value):
    assert has_verdict(text)
    proof = changed = json.loads(text)
    for name in place[:-1]:
        changed = changed.setdefault(name, {})
    before = changed.pop(place[-1], ...)
    if value is not ...:
        changed[place[-1]] = value
    has_verdict(json.dumps(proof))
    if before is not ... and value not in (before, ...):
        assert not has_verdict(json.dumps(proof)) or place == ("path",)


@given(
    st.binary(max_size=300)
    | st.text(max_size=300).map(lambda text: text.encode("utf-8", "replace"))
)
def test_any_bytes_have_a_verdict(found):
    assert not has_verdict(found.decode("utf-8", "surrogateescape"))
    assert not has_verdict(proven('{"a":1}'), known=None, key=found.decode("latin-1"))
    with pytest.raises(ProofError):
        proof_check.parse_note(found.decode("utf-8", "surrogateescape"))


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "null",
        "[]",
        "{}",
        "[" * 100_000 + "]" * 100_000,
        '{"proof": []}',
        json.dumps({"proof": INCLUSION}),
        json.dumps({"proof": INCLUSION, "checkpoint": 7, "entry": {}, "path": []}),
        json.dumps({"proof": CONSISTENCY, "checkpoint": "", "older": "", "path": 1}),
        None,
        7,
    ],
)
def test_what_is_no_proof_is_an_error(wrong):
    with pytest.raises(ProofError):
        check_proof(wrong)


def test_a_proof_without_its_text_does_not_say_that_it_was_erased():
    """Anyone can leave the text out of a proof."""
    proof = json.loads(proven('{"a":1}'))
    del proof["entry"]["body"]
    assert (
        str(check_proof(json.dumps(proof)))
        == "holds: message 0 of log, 1 messages, without its text"
    )


def test_a_part_of_a_message_cannot_be_passed_off_as_the_message():
    """What is hashed is separated by spaces, and can be cut at another one."""
    proof = json.loads(proven('{"said": {"a":1}}'[:-1]))
    proof["entry"] |= {"tokenizer": 't {"said":', "body": '{"a":1}'}
    with pytest.raises(ProofError, match="not separated"):
        check_proof(json.dumps(proof))


@pytest.fixture
def alone(tmp_path):
    """The one file, run by a Python without packages, in a locale that can write ASCII only."""
    copied = shutil.copy(proof_check.__file__, tmp_path / "check.py")

    def run(text, *options):
        (tmp_path / "proof.json").write_bytes(text if isinstance(text, bytes) else text.encode())
        command = [sys.executable, "-I", "-S", "-X", "utf8=0", copied, tmp_path / "proof.json"]
        done = subprocess.run(
            [*map(str, command), *options],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"},
        )
        assert "Traceback" not in done.stderr
        return done.returncode, done.stdout

    return run


def test_the_verifier_is_one_file_of_plain_python(alone):
    assert alone("{}") == (1, "does not hold: not a proof of Firnline\n")
    assert alone(b"\xff\x00") == (2, "")
    assert alone(proven(nested(100_000)))[0] == 1
    code, shown = alone(proven('{"a":"\\ud800 ☃"}', "ü\x1b", ascii_only=False))
    assert code == 0
    assert shown.isascii()


def test_an_empty_checkpoint_is_not_no_checkpoint(alone, tmp_path):
    (tmp_path / "empty.note").touch()
    assert alone(proven('{"a":1}'), "--checkpoint", str(tmp_path / "empty.note"))[0] == 1
    assert alone(proven('{"a":1}'), "--key", "")[0] == 1
    assert Path(proof_check.__file__).read_text().isascii()
