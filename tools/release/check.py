"""Is this source the release that its tag says? Prints the release's notes, or what is missing.

python tools/release/check.py v0.1.0
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILES = {  # where the version is written, and how
    "src/firnline/__init__.py": r'__version__ = "([^"]+)"',
    "Dockerfile": r"docker build -t firnline:(\S+)",
    "compose.yaml": r"image: firnline:(\S+)",
    "deploy/kubernetes.yaml": r"image: firnline:(\S+)",
    "deploy/helm/Chart.yaml": r"(?:appV|v)ersion: (\S+)",
}


def problems(tag: str, root: Path = ROOT) -> Iterator[str]:
    """What keeps this source from being released with this tag."""
    version = tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]
    if tag != f"v{version}":
        yield f"the tag is {tag}, pyproject.toml has {version}"
    for name, pattern in FILES.items():
        found = re.findall(pattern, (root / name).read_text())
        if set(found) != {version}:
            yield f"{name}: expected {version}, found {found}"
    if not notes(version, root):
        yield f"CHANGELOG.md has no section '## {version} - YYYY-MM-DD' with a text"


def notes(version: str, root: Path = ROOT) -> str:
    """The changelog's section of a version; empty if there is none, or it has no date."""
    heading = rf"^## {re.escape(version)} - \d{{4}}-\d{{2}}-\d{{2}}\n(.*?)(?=^## |\Z)"
    text = (root / "CHANGELOG.md").read_text()
    found = re.search(heading, text, re.DOTALL | re.MULTILINE)
    return found[1].strip() if found else ""


if __name__ == "__main__":
    wrong = list(problems(sys.argv[1]))
    sys.stdout.write("\n".join(wrong) or notes(sys.argv[1].removeprefix("v")))
    sys.exit(bool(wrong))
