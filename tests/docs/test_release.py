"""A release: its checks find what is missing, and its workflows can do no more than they need."""

import importlib.util
import re
import shutil
from pathlib import Path

import pytest
import yaml

from firnline import __version__

ROOT = Path(__file__).parents[2]
WORKFLOWS = {
    path.name: yaml.safe_load(path.read_text())
    for path in (ROOT / ".github" / "workflows").glob("*.yml")
}
JOBS = [
    pytest.param(job, id=f"{name} {title}")
    for name, workflow in WORKFLOWS.items()
    for title, job in workflow["jobs"].items()
]
OF_OTHERS = re.compile(r"[\w.-]+/[\w./-]+@(?:v\d+(?:\.\d+)*|release/v\d+|[0-9a-f]{40})")


def script():
    path = ROOT / "tools" / "release" / "check.py"
    spec = importlib.util.spec_from_file_location("release_check", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def source(tmp_path):
    """As much of a source as is checked, ready for its release."""
    check = script()
    for name in ("pyproject.toml", "CHANGELOG.md", *check.FILES):
        place = tmp_path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, place)
    changelog = tmp_path / "CHANGELOG.md"
    text = (
        f"# Changelog\n\n## {__version__} - 2026-11-30\n\n- All of it.\n\n## 0.0.1 - 2026-01-01\n"
    )
    changelog.write_text(text)
    return check, tmp_path


def test_a_release_has_its_version_everywhere_and_dated_notes(source):
    check, root = source
    assert list(check.problems(f"v{__version__}", root)) == []
    assert check.notes(__version__, root) == "- All of it."


@pytest.mark.parametrize("name", ["CHANGELOG.md", "compose.yaml", "deploy/helm/Chart.yaml"])
def test_what_is_missing_is_named(source, name):
    check, root = source
    file = root / name
    file.write_text(file.read_text().replace(__version__, "0.0.9", 1))
    (found,) = check.problems(f"v{__version__}", root)
    assert name in found
    (root / "CHANGELOG.md").write_text(f"## {__version__}\n\n- Without a date.\n")
    assert any("YYYY-MM-DD" in found for found in check.problems(f"v{__version__}", root))


def test_the_tag_is_the_version(source):
    check, root = source
    assert list(check.problems("v9.9.9", root)) == [
        f"the tag is v9.9.9, pyproject.toml has {__version__}"
    ]


def test_only_tags_start_a_workflow():
    assert set(WORKFLOWS) == {"release.yml", "container.yml"}
    for workflow in WORKFLOWS.values():
        assert workflow[True] == {"push": {"tags": ["v*"]}}  # YAML's "on" is a boolean
        assert workflow["permissions"] == {}


@pytest.mark.parametrize("job", JOBS)
def test_a_job_says_what_it_may_and_its_actions_have_a_version(job):
    assert "permissions" in job
    for step in job["steps"]:
        assert ("uses" in step) != ("run" in step)
        if "uses" in step:
            assert OF_OTHERS.fullmatch(step["uses"])
        # What an event says is never a part of a script.
        assert "${{" not in step.get("run", "")


def test_only_the_job_that_publishes_may_write_and_it_comes_last():
    jobs = WORKFLOWS["release.yml"]["jobs"]
    may_write = [name for name, job in jobs.items() if "write" in job["permissions"].values()]
    assert may_write == ["publish"]
    assert jobs["publish"]["needs"] == ["build", "test"]
    assert jobs["publish"]["environment"] == "pypi"
    uses = [step.get("uses", "") for step in jobs["publish"]["steps"]]
    assert any(name.startswith("pypa/gh-action-pypi-publish@") for name in uses)
    assert "token" not in str(jobs["publish"]["steps"][-2])


def test_the_wheel_is_tested_on_every_python_that_is_named():
    matrix = WORKFLOWS["release.yml"]["jobs"]["test"]["strategy"]["matrix"]["python"]
    assert matrix == re.findall(r":: Python :: (3\.\d+)\"", (ROOT / "pyproject.toml").read_text())
