"""Every strategy passes the full suite."""

import os

import pytest

from firnline import strategies
from firnline.testing import StrategyConformance

pytestmark = [pytest.mark.promise("within-budget"), pytest.mark.promise("pairs-whole")]

EXAMPLES = 2_900 if os.environ.get("FIRNLINE_TORTURE") else 250  # for each of eight


class TestLayered(StrategyConformance):
    examples = EXAMPLES

    def make_strategy(self):
        return strategies.layered()


class TestLayeredSmall(StrategyConformance):
    examples = EXAMPLES

    def make_strategy(self):
        return strategies.layered(tail=0.3, keep=0.2, fan=2, digest_tokens=60)


class TestProgressive(StrategyConformance):
    examples = EXAMPLES

    def make_strategy(self):
        return strategies.progressive()


class TestProject(StrategyConformance):
    examples = EXAMPLES

    def make_strategy(self):
        return strategies.project()


class TestLeanProject(StrategyConformance):
    examples = EXAMPLES

    def make_strategy(self):
        return strategies.project(lean=True)


class TestTopics(StrategyConformance):
    """A conversation that is one topic; for one among several see test_topics_strategy."""

    examples = EXAMPLES

    def make_strategy(self):
        return strategies.topics()


class TestWindow(StrategyConformance):
    examples = EXAMPLES

    def make_strategy(self):
        return strategies.window()


class TestRolling(StrategyConformance):
    examples = EXAMPLES

    def make_strategy(self):
        return strategies.rolling()
