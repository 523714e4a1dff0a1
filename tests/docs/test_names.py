"""The table of names is what the sources and the running library say."""

import importlib.util
import inspect
import sys
from pathlib import Path

import pytest

import firnline
from firnline import client, errors, strategies, testing
from firnline.client import sync as client_sync

ROOT = Path(__file__).parents[2]


def _script():
    path = ROOT / "tools" / "names" / "build.py"
    spec = importlib.util.spec_from_file_location("names_build", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


build = _script()
LISTED = {
    title: {row.name.partition("(")[0] for row in rows} for title, _, rows in build.sections()
}


def test_the_table_is_current():
    assert build.page() == build.PAGE.read_text(), "run python tools/names/build.py and look"


def _verbs(kind):
    return {name for name, _ in inspect.getmembers(kind) if not name.startswith("_")}


@pytest.mark.parametrize(
    ("title", "names"),
    [
        ("firnline", set(firnline.__all__)),
        ("firnline.Memory", _verbs(firnline.Memory)),
        ("firnline.strategies", set(strategies.__all__)),
        ("firnline.testing", set(testing.__all__)),
        ("firnline.client", set(client.__all__)),
        ("firnline.client.Client", _verbs(client.Client)),
        ("firnline.errors", {e for e in vars(errors) if hasattr(vars(errors)[e], "retryable")}),
    ],
)
def test_it_has_every_name_that_there_is(title, names):
    assert LISTED[title] == names


def test_every_name_says_what_it_is():
    silent = {
        (title, row.name) for title, _, rows in build.sections() for row in rows if not row.what
    }
    assert silent == set()


def test_the_client_without_await_has_the_verbs_that_are_listed():
    assert LISTED["firnline.client.Client"] <= _verbs(client_sync.Client)
