"""The wheel is complete: a moved file does not get lost on the way to the user."""

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "firnline"
MARKER = "py.typed"  # of PEP 561; the build adds it


def test_the_wheel_has_every_file_of_the_package(tmp_path):
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=60)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.startswith("firnline/")}
    files = [path for path in PACKAGE.rglob("*") if path.is_file()]
    wanted = {
        path.relative_to(PACKAGE.parent).as_posix()
        for path in files
        if "__pycache__" not in path.parts
    }
    assert packed == wanted | {f"firnline/{MARKER}"}
    assert "firnline/log/models.txt" in packed
    data = {Path(name).suffix for name in packed}
    assert {".js", ".css", ".sql", ".gz", ".zdict"} <= data
