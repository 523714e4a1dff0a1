import copy
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from firnline.log.regex import regex

COMPILED_BY_US = """
import re, sys
compile = re.compile
def told(expression, *more):
    caller = sys._getframe(1).f_globals["__name__"]
    if caller.startswith("firnline"):
        print(caller, expression)
    return compile(expression, *more)
re.compile = told
import firnline
"""


def test_importing_compiles_no_expression():
    told = subprocess.run(
        [sys.executable, "-c", COMPILED_BY_US], capture_output=True, text=True, check=True
    )
    assert told.stdout == ""


@pytest.mark.parametrize("method", ["search", "match", "fullmatch", "findall", "split"])
def test_it_does_what_the_pattern_does(method):
    ours, pattern = regex(r"(\w)\d", re.IGNORECASE), re.compile(r"(\w)\d", re.IGNORECASE)
    for text in ("a1", "xA1 b2", "", "é٣"):
        found, meant = getattr(ours, method)(text), getattr(pattern, method)(text)
        assert repr(found) == repr(meant)
    assert ours.sub("-", "A1b") == "-b"
    assert (ours.pattern, ours.flags, ours.groups) == (pattern.pattern, pattern.flags, 1)


def test_after_its_first_use_a_method_is_the_patterns_own():
    used = regex("a")
    assert used.search("a") is not None
    assert used.search is vars(used)["search"]


def test_an_invalid_expression_is_an_error_at_its_first_use():
    with pytest.raises(re.error):
        regex("(").search("")


def test_it_has_no_more_attributes_than_a_pattern_and_can_be_copied():
    assert copy.deepcopy(regex("a")).search("a") is not None
    with pytest.raises(AttributeError):
        regex("a").find("a")


def test_many_threads_may_be_the_first():
    used = regex("(a)(b)?")
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda _: used.fullmatch("ab").groups(), range(200)))
    assert found == [("a", "b")] * 200
