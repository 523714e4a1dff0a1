"""Generates the types of the TypeScript client: ``python tools/typescript/build.py``.

They come from the server's OpenAPI document by openapi-typescript, whose packages are kept in
``build/typescript``, apart from the sources. With ``--install`` it only sees to those.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from firnline.client.paths import PREFIX
from firnline.server.app import create_app
from firnline.server.settings import load

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "clients" / "typescript"
WORKPLACE = ROOT / "build" / "typescript"
SCHEMA = "src/schema.ts"
_PACKAGES = ("package.json", "package-lock.json", ".npmrc")
_LEFT_OUT = frozenset({"title", "example", "examples"})
_FIRST_OTHER = 300


def install() -> None:
    """The client's packages, as they are locked; several may want them at once."""
    WORKPLACE.mkdir(parents=True, exist_ok=True)
    with (WORKPLACE / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = "".join((SOURCES / name).read_text() for name in _PACKAGES)
        done = WORKPLACE / "node_modules" / ".installed"
        if not done.exists() or done.read_text() != wanted:
            for name in _PACKAGES:
                shutil.copy(SOURCES / name, WORKPLACE / name)
            npm("ci", "--no-audit", "--no-fund", "--prefer-offline")
            done.write_text(wanted)


def bring() -> None:
    """The client's sources, to where its packages are."""
    for name in ("src", "test"):
        shutil.rmtree(WORKPLACE / name, ignore_errors=True)
        shutil.copytree(SOURCES / name, WORKPLACE / name)
    shutil.copy(SOURCES / "tsconfig.json", WORKPLACE)


def npm(*words: str, **variables: str) -> str:
    """What npm says; an error shows all of it."""
    done = subprocess.run(  # noqa: S603 - the words are ours
        ["npm", *words],  # noqa: S607 - where npm is, is the system's choice
        cwd=WORKPLACE,
        capture_output=True,
        text=True,
        env={**os.environ, **variables},
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"npm {' '.join(words)}:\n{done.stdout}\n{done.stderr}")
    return done.stdout


def document() -> dict[str, Any]:
    """What of the OpenAPI document is about types.

    Every error is the same problem, so one answer stands for all; titles and examples say nothing
    that names and descriptions do not.
    """
    whole = create_app(load(store="memory:", embedder="none")).openapi()
    paths = {path: about for path, about in whole["paths"].items() if path.startswith(PREFIX)}
    for operation in (found for about in paths.values() for found in about.values()):
        answers = operation["responses"].items()
        operation["responses"] = {
            status: answer
            for status, answer in answers
            if status == "default" or int(status) < _FIRST_OTHER
        }
    trimmed: dict[str, Any] = _trimmed({**whole, "paths": paths})
    return trimmed


def _trimmed(node: Any, *, names: bool = False) -> Any:
    """The node without what is left out; what `names` fields is kept, whatever it is called."""
    if isinstance(node, list):
        return [_trimmed(item) for item in node]
    if not isinstance(node, dict):
        return node
    kept = {key: value for key, value in node.items() if names or key not in _LEFT_OUT}
    return {key: _trimmed(value, names=key == "properties") for key, value in kept.items()}


def generate(folder: Path) -> str:
    """The types as TypeScript; `folder` is for what is needed on the way."""
    (folder / "openapi.json").write_text(json.dumps(document()))
    flags = ("--default-non-nullable=false", "--empty-objects-unknown")
    target = folder / "schema.ts"
    npm("exec", "--offline", "--", "openapi-typescript", str(folder / "openapi.json"),
        "-o", str(target), *flags)  # fmt: skip
    return target.read_text()


def main() -> None:
    """Install, and write the types unless only that is wanted."""
    if "--install" in sys.argv and not shutil.which("npm"):
        return  # the tests say that they are skipped for that
    install()
    if "--install" not in sys.argv:
        (SOURCES / SCHEMA).write_text(generate(WORKPLACE))


if __name__ == "__main__":
    main()
