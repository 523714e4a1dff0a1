"""The page: a chat, and next to it the state of memory. Static files, no build step, no CDN.

All data comes from the REST API with the caller's key; the files themselves are public.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from functools import cache
from importlib import resources
from typing import Final, NamedTuple

from fastapi import APIRouter, Request
from starlette.responses import Response

from firnline.errors import FirnlineError
from firnline.log.regex import regex

router = APIRouter(include_in_schema=False)

PATHS: Final = regex(r"/|/favicon\.svg|/page/[a-z0-9/._-]+", re.IGNORECASE)
"""Paths that need no key."""
_TYPES: Final = {
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".LICENSE": "text/plain; charset=utf-8",
}
_IMPORTS: Final = {
    "preact": "vendor/preact.mjs",
    "preact/hooks": "vendor/hooks.mjs",
    "htm": "vendor/htm.mjs",
    "marked": "vendor/marked.mjs",
    "dompurify": "vendor/purify.mjs",
}
_STYLES: Final = ("page.css", "panels.css", "boards.css")
_INDEX: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Firnline</title>
<link rel="icon" href="/favicon.svg" type="image/svg+xml">
{styles}
<script type="importmap">{imports}</script>
{modules}
<script type="module" src="{app}"></script>
</head>
<body>
<noscript><p class="empty">Firnline needs JavaScript for this page; the API does not.</p></noscript>
<div id="app"></div>
</body>
</html>
"""
_CACHE_FOREVER: Final = "public, max-age=31536000, immutable"


class NoSuchFile(FirnlineError):
    """There is no such file."""

    status = 404


@router.get("/")
async def index() -> Response:
    """The page."""
    headers = {**_headers(), "cache-control": "no-cache"}
    return Response(_index(), media_type="text/html", headers=headers)


@router.get("/favicon.svg")
async def favicon(request: Request) -> Response:
    """The icon of the page."""
    return _file_response(request, "favicon.svg", "no-cache")


@router.get("/page/{path:path}")
async def static(request: Request, path: str) -> Response:
    """A file of the page; browsers cache it permanently.

    During a rolling update, a page may request files from a server of another version; these are
    not cached.
    """
    version, _, name = path.partition("/")
    return _file_response(request, name, _CACHE_FOREVER if version == _version() else "no-cache")


def _file_response(request: Request, path: str, caching: str) -> Response:
    found = _files().get(path)
    if found is None:
        raise NoSuchFile(f"the page has no file {path!r}")
    headers = {**_headers(), "etag": found.tag, "cache-control": caching, "vary": "accept-encoding"}
    if found.tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(found.body, media_type=found.kind, headers=headers)
    headers["content-encoding"] = "gzip"
    return Response(found.packed, media_type=found.kind, headers=headers)


class _File(NamedTuple):
    body: bytes
    packed: bytes
    kind: str
    tag: str


# -- files ------------------------------------------------------------------------------------


@cache
def _index() -> str:
    styles = (f'<link rel="stylesheet" href="{_url(path)}">' for path in _STYLES)
    # Without this, a browser finds the modules one after the other, by reading each.
    modules = (
        f'<link rel="modulepreload" href="{_url(path)}">'
        for path in sorted(_files())
        if path.endswith((".js", ".mjs"))
    )
    return _INDEX.format(
        styles="\n".join(styles),
        imports=_import_map(),
        modules="\n".join(modules),
        app=_url("app.js"),
    )


def _import_map() -> str:
    return json.dumps({"imports": {name: _url(path) for name, path in _IMPORTS.items()}})


def _url(path: str) -> str:
    """The URL of a file; it changes with its contents."""
    return f"/page/{_version()}/{path}"


@cache
def _version() -> str:
    """The version of all files together, because they import each other by relative URLs."""
    tags = "".join(f"{path} {tag}\n" for path, (*_, tag) in sorted(_files().items()))
    return hashlib.blake2b(tags.encode(), digest_size=8).hexdigest()


@cache
def _headers() -> dict[str, str]:
    return {
        "content-security-policy": _policy(),
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "permissions-policy": "camera=(), microphone=(), geolocation=()",
    }


def _policy() -> str:
    """The content security policy: own files and own server only."""
    import_map = base64.b64encode(hashlib.sha256(_import_map().encode()).digest()).decode()
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src 'self' 'sha256-{import_map}'",
            "style-src 'self'",
            "img-src 'self' data:",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types dompurify",
        ]
    )


@cache
def _files() -> dict[str, _File]:
    """Every file by its path. Nothing else is served."""
    root = resources.files("firnline.server.page").joinpath("static")
    found = {}
    folders = [("", root)]
    while folders:
        prefix, folder = folders.pop()
        for item in folder.iterdir():
            path = f"{prefix}{item.name}"
            if item.is_dir():
                folders.append((f"{path}/", item))
                continue
            kind = next((kind for end, kind in _TYPES.items() if path.endswith(end)), None)
            if kind is not None:
                body = item.read_bytes()
                tag = f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
                found[path] = _File(body, gzip.compress(body, mtime=0), kind, tag)
    return found
