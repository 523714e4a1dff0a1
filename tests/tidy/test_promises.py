"""Every promise has a test, every test's promise exists, and the documents say the same."""

import ast
from functools import cache
from pathlib import Path

from firnline.testing.promises import PROMISES

ROOT = Path(__file__).parents[2]
SOURCES = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "src/firnline/testing").rglob("*.py")]


def _is_call_of(name: str, node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "attr", "") == name


@cache
def _marks(kind: str) -> dict[str, set[str]]:
    """The ids given to ``pytest.mark.<kind>("id")``, and where."""
    found: dict[str, set[str]] = {}
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if _is_call_of(kind, node) and ast.unparse(node.func) == f"pytest.mark.{kind}":
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


REQUIREMENTS = {"A": 9, "B": 10, "C": 9, "D": 6, "E": 8, "X": 4}


def test_every_requirement_has_a_test():
    every = {f"{name}{n}" for name, count in REQUIREMENTS.items() for n in range(1, count + 1)}
    assert set(_marks("requirement")) == every


def test_no_promise_is_proved_only_by_a_test_that_a_plain_run_leaves_out():
    for path in (ROOT / "tests").rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                marks = " ".join(map(ast.unparse, node.decorator_list))
                proves = "mark.promise" in marks or "mark.requirement" in marks
                assert not ("mark.thorough" in marks and proves), node.name
