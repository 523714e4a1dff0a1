"""A Chromium for the tests of the page: an existing one, or one that is installed.

To install one: ``python tests/support/chromium.py``.
"""

import os
import shutil
import subprocess
import sys

VARIABLE = "FIRNLINE_TEST_CHROMIUM"
# The headless shell is the same engine without windows and menus, and takes half the time.
NAMES = (
    "chromium-headless-shell",
    "chrome-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
)
PACKAGES = ("chromium-headless-shell", "chromium")
HELP = f"""The tests of the page need Chromium, and there is none.
Install it ("apt-get install chromium", "dnf install chromium", "brew install --cask chromium",
or Chrome itself), or say where it is: {VARIABLE}=/path/to/chromium"""


def find() -> str | None:
    """The path of a Chromium that starts, or None."""
    given = os.environ.get(VARIABLE)
    for candidate in [given] if given else map(shutil.which, NAMES):
        if candidate and _starts(candidate):
            return candidate
    return None


def _starts(path: str) -> bool:
    """Some systems have a script of that name that only says how to install it."""
    try:
        told = subprocess.run([path, "--version"], capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return told.returncode == 0 and b"Chrom" in told.stdout


def _install() -> None:
    """With apt-get on Debian and Ubuntu, if it is allowed."""
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        return
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["apt-get", "update", "-qq"], env=environment, check=False)
    for package in PACKAGES:
        command = ["apt-get", "install", "-qq", "-y", "--no-install-recommends", package]
        if subprocess.run(command, env=environment, check=False).returncode == 0:
            return


def main() -> int:
    if find() is None and not os.environ.get(VARIABLE):
        _install()
    if find() is None:
        sys.stderr.write(f"{HELP}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
