"""The pictures in the documents are what the library does today."""

import importlib.util
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "tools" / "pictures" / "build.py"
FOLDER = ROOT / "docs" / "strategies"


def _script():
    spec = importlib.util.spec_from_file_location("pictures_build", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclass looks itself up there
    spec.loader.exec_module(module)
    return module


build = _script()


@pytest.mark.parametrize("subject", build.SUBJECTS, ids=lambda subject: subject.strategy.name)
async def test_the_picture_shows_what_the_strategy_does(subject):
    columns = await build.replay(subject)
    assert all(sum(column.sections) <= subject.budget.limit for column in columns)
    drawn = build.draw(subject, columns)
    there = (FOLDER / f"{subject.strategy.name}.svg").read_text()
    assert drawn == there, "the strategy changed: run python tools/pictures/build.py and look"


def test_every_strategy_has_a_page_and_a_picture_with_alternative_text():
    for subject in build.SUBJECTS:
        name = subject.strategy.name
        page = (FOLDER / f"{name}.md").read_text()
        assert f"]({name}.svg)" in page
        for parameter in subject.strategy.parameters:
            assert f"`{parameter}`" in page, f"{name}: {parameter}"
        assert f"({name}.md)" in (FOLDER / "README.md").read_text()
        picture = ET.parse(FOLDER / f"{name}.svg").getroot()
        tags = [child.tag.rpartition("}")[2] for child in picture]
        assert tags[:2] == ["title", "desc"]


def test_every_strategy_is_drawn():
    assert {subject.strategy.name for subject in build.SUBJECTS} == set(build.strategies.STRATEGIES)
