"""PostgreSQL and PgBouncer as Debian packages them: installed ones, or ones that are unpacked here.

To fetch what is not installed into `build/debian`, without installing it:
``python tests/support/debian.py``. Where there are no packages of Debian, their tests are skipped.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2] / "build" / "debian"
NEEDED = {"postgres": "postgresql", "pgbouncer": "pgbouncer"}
"""The programs, and the packages that have them."""
PLACES = {"postgres": "usr/lib/postgresql/*/bin/postgres", "pgbouncer": "usr/sbin/pgbouncer"}
HELP = "needs Debian's package {}: apt-get install it, or run python tests/support/debian.py"


@cache
def find(program: str) -> Path | None:
    """The path of a program that starts: an installed one, or one that was unpacked."""
    for root in (Path("/"), ROOT):
        for path in sorted(root.glob(PLACES[program]), reverse=True):
            if starts(path):
                return path
    return None


def starts(path: Path, user: int | None = None) -> bool:
    """Whether a program can be run, by this user."""
    try:
        told = subprocess.run(
            [path, "--version"], env=environment(path), user=user, capture_output=True, check=False
        )
    except OSError:
        return False
    return told.returncode == 0


def environment(path: Path) -> dict[str, str]:
    """The environment in which a program finds its libraries."""
    root = _root(path)
    if root is None:
        return dict(os.environ)
    folders = {str(library.parent) for library in root.glob("usr/lib/**/*.so*")}
    return {**os.environ, "LD_LIBRARY_PATH": ":".join(sorted(folders))}


def _root(path: Path) -> Path | None:
    """The folder in which a program was unpacked, if it was."""
    above = [parent for parent in path.parents if parent.name == "usr" and parent != Path("/usr")]
    return above[-1].parent if above else None


def readable(path: Path, user: int | None, folder: Path) -> Path:
    """The program where this user may run it: at its place, or in a copy in this folder."""
    root = _root(path)
    if root is None or user is None or starts(path, user):
        return path
    shutil.copytree(root, folder / "programs", symlinks=True)
    return folder / "programs" / path.relative_to(root)


# -- fetching ---------------------------------------------------------------------------------


def _run(*command: str, folder: Path | None = None) -> str:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    done = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, check=False
    )
    return done.stdout


def _missing(package: str) -> set[str]:
    """The package and those that it needs, as far as they are not installed."""
    plan = _run("apt-get", "install", "-s", "-y", "--no-install-recommends", package)
    return {package, *re.findall(r"^Inst (\S+) \(", plan, re.MULTILINE)}


def _unpack(packages: set[str]) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        folder.chmod(0o755)  # apt's own user reads it
        for package in sorted(packages):
            _run("apt-get", "download", "-qq", package, folder=folder)
        for archive in folder.glob("*.deb"):
            _run("dpkg-deb", "-x", str(archive), str(ROOT))


def main() -> None:
    """Fetch what is missing, as far as it can be had; without it, tests are skipped."""
    if shutil.which("apt-get") is None:
        return
    if os.geteuid() == 0 and not any(Path("/var/lib/apt/lists").glob("*Packages*")):
        _run("apt-get", "update", "-qq")
    for program, package in NEEDED.items():
        if find(program) is None:
            ROOT.mkdir(parents=True, exist_ok=True)
            _unpack(_missing(package))
        find.cache_clear()
        if find(program) is None:
            sys.stderr.write(f"{HELP.format(package)}; its tests are skipped\n")


if __name__ == "__main__":
    main()
