"""Every promise has a test, every test's promise exists, and the documents say the same."""

import ast
from functools import cache
from pathlib import Path

import pytest

from firnline.promises import PROMISES

ROOT = Path(__file__).parents[2]
SOURCES = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "src/firnline/testing").rglob("*.py")]


@cache
def _marks(kind: str) -> dict[str, set[str]]:
    """The ids given to ``pytest.mark.<kind>("id")``, and where."""
    found: dict[str, set[str]] = {}
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == f"pytest.mark.{kind}":
                found.setdefault(ast.literal_eval(node.args[0]), set()).add(path.name)
    return found


def test_every_promise_is_proved_and_every_proof_has_its_promise():
    assert set(_marks("promise")) == {promise.id for promise in PROMISES}


def test_promises_are_sentences():
    assert len({promise.id for promise in PROMISES}) == len(PROMISES)
    for promise in PROMISES:
        assert promise.text.endswith(".")
        assert promise.why.endswith(".")


def test_the_documents_print_the_promises():
    page = (ROOT / "docs" / "promises.md").read_text()
    for promise in PROMISES:
        assert f"**{promise.id}**" in page
        assert promise.text in page
        assert promise.why in page
    assert page.count("\n- **") == len(PROMISES)


STAGE = (
    "A1 A2 A3 A4 A5 A6 A7 A8 A9 B1 B2 B3 B4 B6 B7 B8 B9 "
    "D1 D2 D3 D4 D5 D6 E1 E2 E3 E4 E5 E6 E7 E8 X1 X2 X3 X4"
)


@pytest.mark.parametrize("name", STAGE.split())
def test_requirements_of_this_stage_have_tests(name):
    assert name in _marks("requirement")
