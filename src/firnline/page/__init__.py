"""The page: a chat, and beside it what memory is doing. Plain files, no build step, no network.

Everything on it comes from the REST API with the caller's own key; the files themselves hold
nothing and are open to everybody.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import cache
from importlib import resources
from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from firnline.errors import FirnlineError

router = APIRouter(include_in_schema=False)

PATHS: Final = re.compile(r"/|/favicon\.svg|/page/[a-z0-9/._-]+", re.IGNORECASE)
"""What anybody may get."""
_TYPES: Final = {
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".LICENSE": "text/plain; charset=utf-8",
}
_IMPORTS: Final = {
    "preact": "/page/vendor/preact.mjs",
    "preact/hooks": "/page/vendor/hooks.mjs",
    "htm": "/page/vendor/htm.mjs",
    "marked": "/page/vendor/marked.mjs",
    "dompurify": "/page/vendor/purify.mjs",
}
_MAP: Final = json.dumps({"imports": _IMPORTS})
_INDEX: Final = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Firnline</title>
<link rel="icon" href="/favicon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/page/page.css">
<link rel="stylesheet" href="/page/panels.css">
<link rel="stylesheet" href="/page/boards.css">
<script type="importmap">{_MAP}</script>
<script type="module" src="/page/app.js"></script>
</head>
<body>
<noscript><p class="empty">Firnline needs JavaScript for this page; the API does not.</p></noscript>
<div id="app"></div>
</body>
</html>
"""


def _policy() -> str:
    """What the page may do: run its own files, ask its own server, and nothing else."""
    import_map = base64.b64encode(hashlib.sha256(_MAP.encode()).digest()).decode()
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


_HEADERS: Final = {
    "content-security-policy": _policy(),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}


class NoSuchFile(FirnlineError):
    """There is no such file."""

    status = 404


@router.get("/")
async def index() -> Response:
    """The page."""
    return Response(
        _INDEX, media_type="text/html", headers={**_HEADERS, "cache-control": "no-cache"}
    )


@router.get("/favicon.svg")
async def favicon(request: Request) -> Response:
    """Its picture in the tab."""
    return _answer(request, "favicon.svg")


@router.get("/page/{path:path}")
async def static(request: Request, path: str) -> Response:
    """One of its files."""
    return _answer(request, path)


def _answer(request: Request, path: str) -> Response:
    found = _files().get(path)
    if found is None:
        raise NoSuchFile(f"the page has no file {path!r}")
    body, kind, tag = found
    headers = {**_HEADERS, "etag": tag, "cache-control": "no-cache"}
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(body, media_type=kind, headers=headers)


@cache
def _files() -> dict[str, tuple[bytes, str, str]]:
    """Every file by its path: bytes, type and entity tag. Nothing else can be asked for."""
    root = resources.files("firnline.page").joinpath("static")
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
                found[path] = (body, kind, tag)
    return found
