"""Download the page's third-party files, as `vendor.toml` names them, and record their hashes.

Needs npm, once; neither installing nor running Firnline does. ``python tools/vendor/refresh.py``
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import tarfile
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).parent
TARGET = HERE.parents[1] / "src" / "firnline" / "page" / "static" / "vendor"


def main() -> None:
    """Write the files and ``versions.json`` with the SHA-256 of each."""
    TARGET.mkdir(parents=True, exist_ok=True)
    versions = []
    for package in tomllib.loads((HERE / "vendor.toml").read_text())["package"]:
        hashes = _unpacked(f"{package['name']}@{package['version']}", package["files"])
        about = {name: package[name] for name in ("name", "version", "licence")}
        versions.append({**about, "sha256": hashes})
    (TARGET / "versions.json").write_text(json.dumps(versions, indent=2) + "\n")


def _unpacked(package: str, files: dict[str, str]) -> dict[str, str]:
    hashes = {}
    with TemporaryDirectory() as folder:
        command = ["npm", "pack", "--silent", package]
        packed = subprocess.run(  # noqa: S603 - the names are in our own file
            command, cwd=folder, check=True, capture_output=True, text=True
        )
        with tarfile.open(Path(folder) / packed.stdout.strip()) as archive:
            for source, target in files.items():
                found = archive.extractfile(f"package/{source}")
                if found is None:
                    raise FileNotFoundError(source)
                data = found.read()
                (TARGET / target).write_bytes(data)
                hashes[target] = hashlib.sha256(data).hexdigest()
    return hashes


if __name__ == "__main__":
    main()
