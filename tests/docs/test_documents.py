"""Every block of Python in the documents runs, and the commands they show exist."""

import argparse
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import firnline
from firnline.cli import main
from firnline.cli.program import _parser
from firnline.testing.promises import PROMISES
from support.fork_server import fork_server
from support.live_server import running

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)


EXAMPLES = {path.read_text() for path in (ROOT / "examples").glob("*.py")}
"""They run in tests/adapters, which looks at what they say, too."""


def _blocks(language: str) -> list:
    return [
        pytest.param(match[2], id=f"{page.name}-{number}")
        for page in PAGES
        for number, match in enumerate(BLOCK.finditer(page.read_text()))
        if match[1] == language and match[2] not in EXAMPLES
    ]


SERVER = "http://localhost:8080"


@pytest.fixture(scope="module")
def server():
    """Where the documents say that a server is."""
    with running() as served:
        yield served.url


@pytest.mark.parametrize("code", _blocks("python"))
def test_python_in_the_documents_runs(code, tmp_path, request):
    if SERVER in code:
        code = code.replace(SERVER, request.getfixturevalue("server"))
    folder, said = tmp_path / "folder", tmp_path / "said"
    folder.mkdir()
    said.touch()
    assert fork_server().run(code, str(folder), str(said)).wait(120) == 0, said.read_text()


@pytest.mark.skipif(not shutil.which("curl"), reason="needs curl")
@pytest.mark.parametrize("page", ["rest.md"])
def test_a_tour_with_curl_leads_to_its_end(page, server, tmp_path):
    """All blocks of a page are one script; every request in it is answered well."""
    blocks = [
        text for name, text in BLOCK.findall((ROOT / "docs" / page).read_text()) if name == "sh"
    ]
    assert len(blocks) > 3
    well = 'curl() { command curl --fail-with-body --silent --show-error "$@"; echo; }'
    done = subprocess.run(
        ["bash", "-euc", "\n".join([well, *blocks]).replace(SERVER, server)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 March" in done.stdout


@pytest.mark.parametrize("text", _blocks("console"))
def test_commands_in_the_documents_work(text, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for line in text.splitlines():
        if line.startswith("$ firnline "):
            command, _, file = line.removeprefix("$ firnline ").partition(" > ")
            capsys.readouterr()
            arguments = re.findall(r'"[^"]*"|\S+', command)
            assert main([argument.strip('"') for argument in arguments]) == 0, line
            if file:
                Path(file).write_text(capsys.readouterr().out)


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                yield from (name, *_options(command))
        yield from (option for option in action.option_strings if option.startswith("--"))


def test_every_command_and_option_is_in_the_document():
    told = set(re.findall(r"[\w-]+", (ROOT / "docs" / "command.md").read_text()))
    there = set(_options(_parser())) - {"--version", "--no-baselines"}
    assert len(there) > 80
    assert there - told == set()


def test_the_readme_names_every_command():
    kind = argparse._SubParsersAction
    commands = next(action.choices for action in _parser()._actions if isinstance(action, kind))
    page = (ROOT / "README.md").read_text()
    assert [name for name in commands if not re.search(rf"`{name}`|firnline {name}\b", page)] == []


def _anchors(page: Path) -> set[str]:
    """What GitHub makes of the headings."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    plain = (re.sub(r"[^\w -]", "", title.lower()) for title in titles)
    return {"#" + title.replace(" ", "-") for title in plain}


def test_links_between_the_documents_lead_somewhere():
    for page in PAGES:
        for target, anchor in re.findall(r"\]\((?!http)([^)#]*)(#[^)]+)?\)", page.read_text()):
            there = page.parent / target if target else page
            assert there.exists(), f"{page.name}: {target}"
            assert not anchor or anchor in _anchors(there), f"{page.name}: {target}{anchor}"


def test_the_public_names_are_what_is_there_and_documented():
    for name in firnline.__all__:
        assert getattr(firnline, name).__doc__
    assert firnline.__all__ == sorted(firnline.__all__)


def test_the_readme_counts_the_promises():
    words = dict(enumerate(["sixteen", "seventeen", "eighteen", "nineteen", "twenty"], 16))
    ones = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    words |= {20 + n: f"twenty-{one}" for n, one in enumerate(ones, 1)}
    words |= {30: "thirty"} | {30 + n: f"thirty-{one}" for n, one in enumerate(ones, 1)}
    assert f"All {words[len(PROMISES)]} promises" in (ROOT / "README.md").read_text()


def test_the_version_is_written_once():
    assert f'version = "{firnline.__version__}"' in (ROOT / "pyproject.toml").read_text()
