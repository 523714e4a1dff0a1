"""Each example runs unchanged, in a separate process, with the release that its extra installs."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
ADK = ROOT / "build" / "adapters" / "adk" / "bin" / "python"
needs_adk = pytest.mark.skipif(not ADK.exists(), reason="make build/adapters/adk/.ready")

FRAMEWORKS = [
    "agent_framework",
    "agents",
    "google.adk",
    "langchain",
    "langchain_core",
    "langgraph",
    "llama_index",
    "pydantic_ai",
]

EXPECTED = {
    "langchain_agent": ["60 messages", "60 messages in the log", "intact", "digests: 1"],
    "langgraph_store": ["boat - Ana keeps a boat in Bergen.", "in Oslo", "3 versions"],
    "openai_agents_session": ["64 messages in the log", "items for the next run"],
    "pydantic_ai_agent": ["60 messages in the history", "60 messages in the log"],
    "llamaindex_memory": ["True - the code", "messages in the log"],
    "agent_framework_history": ["The model saw", "80 messages in the log"],
}


def run(name, folder, python=sys.executable, *options):
    done = subprocess.run(
        [python, *options, EXAMPLES / f"{name}.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


def test_every_example_is_run():
    others = {"rag_agent", "adk_memory"}
    assert {path.stem for path in EXAMPLES.glob("*.py")} >= {*EXPECTED, *others}


def test_the_page_about_frameworks_shows_the_examples_as_they_are():
    page = (ROOT / "docs" / "frameworks.md").read_text()
    for name in [*EXPECTED, "adk_memory"]:
        assert f"```python\n{(EXAMPLES / f'{name}.py').read_text()}```" in page, name


@pytest.mark.parametrize("name", EXPECTED)
def test_the_example_runs(name, tmp_path):
    said = run(name, tmp_path, sys.executable, "-W", "error").stdout
    for text in EXPECTED[name]:
        assert text in said


@needs_adk
def test_the_example_for_adk_runs_in_its_own_environment(tmp_path):
    said = run("adk_memory", tmp_path, ADK).stdout
    assert "s2 7319" in said
    assert "2 messages of s1" in said


@pytest.mark.parametrize(
    ("module", "framework", "extra"),
    [
        ("adk", "google.adk", "adk"),
        ("agent_framework", "agent_framework", "agent-framework"),
        ("langchain", "langchain_core", "langchain"),
        ("llamaindex", "llama_index", "llamaindex"),
        ("openai_agents", "agents", "openai-agents"),
        ("pydantic_ai", "pydantic_ai", "pydantic-ai"),
    ],
)
def test_without_its_framework_an_adapter_says_what_to_install(module, framework, extra):
    script = f"import sys; sys.modules[{framework!r}] = None; import firnline.adapters.{module}"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=100
    )
    assert done.returncode
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ModuleNotFoundError: ")
    assert last.endswith(f'pip install "firnline[{extra}]"')
    with (ROOT / "pyproject.toml").open("rb") as file:
        assert extra in tomllib.load(file)["project"]["optional-dependencies"]


@pytest.mark.requirement("D3")
@pytest.mark.requirement("D4")
def test_the_rag_agent_answers_from_its_documents_within_the_window(tmp_path):
    done = run("rag_agent", tmp_path, sys.executable, "-W", "error")
    for answer in ("210 crowns", "9 to 15", "green light", "Solveig", "force 9", "Mondays"):
        assert answer in done.stdout
    assert "24 messages" in done.stdout
    assert "intact: 24 messages" in done.stdout
    accounts = re.findall(r"window 2,000 .* digests (\d+), .* free ([\d,]+)", done.stderr)
    assert len(accounts) == 12
    free = [int(room.replace(",", "")) for _, room in accounts]
    assert all(int(digests) == 0 for digests, _ in accounts[:4])
    assert free[0] > free[1] > free[2] > free[3], "the history grows"
    assert max(free[4:]) > free[3], "and the documents' share is restored"
    assert any(int(digests) > 0 for digests, _ in accounts)


def test_every_adapter_has_its_extra_and_every_extra_its_quickstart():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    page = (ROOT / "docs" / "frameworks.md").read_text()
    extras = re.findall(r'pip install "firnline\[(.+)\]"', page)
    assert len(extras) == len(set(extras)) == 7
    assert set(extras) <= set(project["optional-dependencies"])
    for path in (ROOT / "src" / "firnline" / "adapters").rglob("*.py"):
        for named in re.findall(r"firnline\[([\w-]+)\]", path.read_text()):
            assert named in extras


def test_importing_firnline_imports_no_framework():
    """In a fresh process; `firnline.adapters` itself imports none either."""
    code = (
        "import sys, firnline, firnline.sync, firnline.adapters\n"
        f"print([name for name in {FRAMEWORKS!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@needs_adk
def test_the_adapter_for_adk_keeps_its_promises(tmp_path):
    script = Path(__file__).parent / "scripts" / "adk_check.py"
    done = subprocess.run(
        [ADK, script],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "7 checks" in done.stdout
