"""The page's files: what is served, under which policy, and whose they are. Without a browser."""

import hashlib
import json
import re
from pathlib import Path

import httpx2
import pytest

from firnline.server import page
from support.live_server import running

STATIC = Path(page.__file__).with_name("static")
VENDOR = STATIC / "vendor"
OURS = sorted([*STATIC.glob("*.js"), *STATIC.glob("*.css")])


@pytest.fixture(scope="module")
def server():
    with running() as server:
        yield server.url


def policy(response):
    parts = (part.split() for part in response.headers["content-security-policy"].split(";"))
    return {name: values for name, *values in parts}


def test_vendored_files_are_those_that_are_recorded():
    recorded = json.loads((VENDOR / "versions.json").read_text())
    hashes = {name: sha for package in recorded for name, sha in package["sha256"].items()}
    there = {path.name for path in VENDOR.iterdir()} - {"versions.json"}
    assert there == set(hashes)
    for name, sha in hashes.items():
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == sha, name
    for package in recorded:
        assert any(name.endswith(".LICENSE") for name in package["sha256"]), package["name"]
        assert re.fullmatch(r"\d+\.\d+\.\d+", package["version"])
        assert package["licence"]


def test_the_policy_lets_nothing_run_but_the_pages_own_files(server):
    response = httpx2.get(server, timeout=60)
    assert response.status_code == 200
    told = policy(response)
    assert told["default-src"] == ["'none'"]
    assert told["script-src"][0] == "'self'"
    (script,) = re.findall(r"<script[^>]*>([^<]+)</script>", response.text)
    assert told["script-src"][1:] == [f"'sha256-{_sha(script)}'"], "the import map alone is inline"
    assert told["connect-src"] == told["style-src"] == ["'self'"]
    assert told["require-trusted-types-for"] == ["'script'"]
    assert told["trusted-types"] == ["dompurify"]
    assert told["frame-ancestors"] == told["base-uri"] == told["form-action"] == ["'none'"]
    assert "unsafe" not in response.headers["content-security-policy"]
    assert response.headers["x-content-type-options"] == "nosniff"
    assert not re.search(r"\son\w+=|<style|style=", response.text)


def _sha(text):
    return page.base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_every_file_is_served_with_its_type_and_not_sent_twice(server):
    for path in OURS:
        url = f"{server}{page._url(path.name)}"
        response = httpx2.get(url, timeout=60)
        assert "immutable" in response.headers["cache-control"]
        assert response.content == path.read_bytes()
        kind = {".js": "text/javascript", ".css": "text/css"}[path.suffix]
        assert response.headers["content-type"].startswith(kind)
        again = httpx2.get(url, headers={"if-none-match": response.headers["etag"]}, timeout=60)
        assert (again.status_code, again.content) == (304, b"")
        assert policy(response)["default-src"] == ["'none'"]


def test_files_are_small_on_the_wire_and_loaded_at_once(server):
    plain, packed = {"accept-encoding": "identity"}, {"accept-encoding": "gzip"}
    sent = 0
    for path in OURS:
        url = f"{server}{page._url(path.name)}"
        assert "content-encoding" not in httpx2.get(url, headers=plain, timeout=60).headers
        response = httpx2.get(url, headers=packed, timeout=60)
        assert response.headers["content-encoding"] == "gzip"
        assert response.headers["vary"] == "accept-encoding"
        sent += int(response.headers["content-length"])
    assert sent < sum(path.stat().st_size for path in OURS) / 2
    preloaded = re.findall(r'modulepreload" href="/page/\w+/([^"]+)"', page._index())
    assert {path.name for path in OURS if path.suffix == ".js"} < set(preloaded)


@pytest.mark.parametrize(
    "path",
    [
        "nothing.js",
        "../__init__.py",
        "%2e%2e/__init__.py",
        "vendor/../../__init__.py",
        "/etc/passwd",
        "",
    ],
)
def test_nothing_else_can_be_asked_for(server, path):
    for place in ("/page/", page._url("")):
        assert httpx2.get(f"{server}{place}{path}", timeout=60).status_code in (404, 401)


def test_what_is_kept_for_good_has_another_address_once_it_changes(monkeypatch):
    files, version = page._files(), page._version()
    changed = {**files, "ui.js": files["ui.js"]._replace(tag='"changed"')}
    monkeypatch.setattr(page, "_files", lambda: changed)
    assert page._version.__wrapped__() != version


def test_a_page_of_another_version_gets_what_there_is_and_asks_again(server):
    response = httpx2.get(f"{server}/page/0123456789abcdef/app.js", timeout=60)
    assert response.content == (STATIC / "app.js").read_bytes()
    assert response.headers["cache-control"] == "no-cache"
    assert httpx2.get(server, timeout=60).headers["cache-control"] == "no-cache"


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.name)
def test_our_files_make_no_outside_requests_and_make_html_in_one_place(path):
    text = path.read_text()
    assert not re.search(r"https?://(?!www\.w3\.org)\w", text), "another host"
    assert not re.search(r"\beval\(|new Function|document\.write|insertAdjacentHTML", text)
    assert "outerHTML" not in text
    assert ".innerHTML" not in text
    if path.name != "markdown.js":
        assert "DOMPurify" not in text
    for given in re.findall(r"dangerouslySetInnerHTML=\$\{(.*?)\}", text):
        assert given in ("safe", "{ __html: markdown(of) "), given


def test_everything_that_is_imported_is_there():
    known = set(page._IMPORTS)
    for path in OURS:
        if path.suffix == ".js":
            for name in re.findall(r"from '([^']+)'", path.read_text()):
                assert name in known or (STATIC / name).is_file(), f"{path.name}: {name}"
    linked = re.findall(r'(?:href|src)="/(?:page/[0-9a-f]+/)?([^"]+)"', page._index())
    for name in linked:
        assert (STATIC / name).is_file(), name
    assert {path.name for path in OURS if path.suffix == ".css"} <= set(linked)
