"""The TypeScript client: built by its own compiler, run by Node against a real server."""

import importlib.util
import json
import shutil
from pathlib import Path

import pytest

from support.live_server import running
from support.rest_client import key_for

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "tools" / "typescript" / "build.py"

pytestmark = pytest.mark.skipif(not shutil.which("npm"), reason="the TypeScript client needs npm")


def _script():
    spec = importlib.util.spec_from_file_location("typescript_build", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


build = _script()


def test_its_types_are_those_of_the_servers_document(tmp_path):
    build.install()
    made = build.generate(tmp_path)
    there = (build.SOURCES / build.SCHEMA).read_text()
    assert made == there, "the API changed: run python tools/typescript/build.py"


def test_it_builds_and_talks_to_a_server():
    build.install()
    build.bring()
    build.npm("run", "build")
    with running(auth="required") as server:
        key = key_for(server, "acme")
        told = build.npm("test", FIRNLINE_URL=server.url, FIRNLINE_KEY=key)
        heads = server.run(server.memory("acme").conversations())
    assert "# fail 0" in told
    assert "# skipped 0" in told
    assert {"log", "..", "a/b", "talk"} <= {head.conversation for head in heads}


def test_its_packages_are_pinned_and_named_nowhere_else():
    package = json.loads((build.SOURCES / "package.json").read_text())
    lock = json.loads((build.SOURCES / "package-lock.json").read_text())
    wanted = {**package["dependencies"], **package["devDependencies"]}
    for name, version in wanted.items():
        assert lock["packages"][f"node_modules/{name}"]["version"] == version
    for name, about in lock["packages"].items():
        assert not name or ("integrity" in about and "resolved" not in about), name
