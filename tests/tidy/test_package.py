"""The wheel is complete: a moved file does not get lost on the way to the user.

A bare environment is a folder with links to the package, whose files are those of the wheel, and
to the packages that the wheel requires: an import of a package that is not declared fails there.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tomllib
import urllib.request
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, PathDistribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "firnline"
MARKER = "py.typed"  # of PEP 561; the build adds it
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=60)
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_has_every_file_of_the_package(wheel):
    with zipfile.ZipFile(wheel) as archive:
        packed = {
            name: archive.read(name) for name in archive.namelist() if name.startswith("firnline/")
        }
    assert packed.pop(f"firnline/{MARKER}") == b""
    assert packed == {
        path.relative_to(PACKAGE.parent).as_posix(): path.read_bytes()
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert "firnline/log/models.txt" in packed
    data = {Path(name).suffix for name in packed}
    assert {".js", ".css", ".sql", ".gz", ".zdict"} <= data


def test_the_wheel_shows_the_demo_with_its_dependencies_alone(wheel, tmp_path):
    with bare_process(wheel, tmp_path, "demo") as process:
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert re.search(r"intact: \d+ messages?", said)
    assert "DAMAGED: 1 problem" in said
    assert "failed" in said


def test_the_wheel_serves_with_the_extra_server_alone(wheel, tmp_path):
    """The addresses are printed at once, on a pipe as on a terminal."""
    with bare_process(wheel, tmp_path, "serve", "--port=0", extras={"server"}) as process:
        lines = iter(process.stdout.readline, "")
        page = next(line.split()[1] for line in lines if line.startswith("  Page"))
        url = page.rstrip("/")
        assert "<title>Firnline</title>" in read(url)
        assert json.loads(read(f"{url}/api/v1/conversations"))["data"] == []
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.read().decode()


def bare_process(
    wheel: Path, folder: Path, *arguments: str, extras: frozenset[str] | set[str] = frozenset()
) -> subprocess.Popen:
    """`firnline` in a bare environment; -S hides this environment's own packages."""
    packages = folder / "packages"
    packages.mkdir()
    (packages / "firnline").symlink_to(PACKAGE)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages, [name for name in archive.namelist() if ".dist-info/" in name])
    for needed in required(next(packages.glob("*.dist-info")), extras):
        link(needed, packages)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FIRNLINE_")}
    return subprocess.Popen(
        [sys.executable, "-S", "-m", "firnline", *arguments],
        cwd=folder,
        env={**kept, "PYTHONPATH": str(packages)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def link(package: Distribution, folder: Path) -> None:
    """Link to the folders and modules of a package; folders that packages share are created."""
    for file in package.files or ():
        there = Path(str(package.locate_file(file)))
        parents = [there.parents[above] for above in range(len(file.parts) - 2, -1, -1)]
        whole = next((one for one in parents if (one / "__init__.py").exists()), there)
        place = folder / whole.relative_to(package.locate_file(""))
        if ".." in file.parts or "__pycache__" in file.parts or place.exists():
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(whole)


def required(info: Path, extras: frozenset[str] | set[str]) -> Iterator[Distribution]:
    """The packages that the wheel needs with these extras, as its metadata says."""
    seen: set[tuple[str, str]] = set()
    waiting: list[tuple[Distribution, frozenset[str]]] = [
        (PathDistribution(info), frozenset(extras))
    ]
    while waiting:
        package, wanted = waiting.pop()
        for line in package.requires or ():
            need = Requirement(line)
            if need.marker is not None and not any(
                need.marker.evaluate({"extra": extra}) for extra in wanted | {""}
            ):
                continue
            itself = need.name == "firnline"
            found = PathDistribution(info) if itself else distribution(need.name)
            for extra in {"", *need.extras}:
                if (need.name, extra) not in seen:
                    seen.add((need.name, extra))
                    waiting.append((found, frozenset({extra} - {""})))
                    if not itself:
                        yield found


# -- what the package says of itself ---------------------------------------------------------


def test_the_extra_all_has_every_part_and_no_framework():
    """Frameworks contradict each other in what they require; `testing` is for tests."""
    extras = PROJECT["optional-dependencies"]
    frameworks = {Path(name).stem.replace("_", "-") for name in adapters()}
    (every,) = (Requirement(line) for line in extras["all"])
    assert every.name == "firnline"
    assert every.extras == set(extras) - frameworks - {"all", "testing", "anthropic"}


def adapters() -> Iterator[str]:
    for path in (PACKAGE / "adapters").iterdir():
        yield path.stem


def test_every_python_that_is_named_can_install_it():
    named = {
        line.rpartition(" ")[2] for line in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", line)
    }
    assert named == {f"3.{minor}" for minor in range(11, 15)}
    assert PROJECT["requires-python"] == ">=3.11"
    assert all(url.startswith("https://") for url in PROJECT["urls"].values())
