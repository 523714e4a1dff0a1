"""Wrong base URLs, of clients and in the server's settings: texts that say what to set. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, urlsplit

from firnline.log.regex import regex

_PATHS: Final = frozenset(
    {"completions", "responses", "conversations", "models", "embeddings", "messages"}
)
"""How the paths of clients begin behind their base URL; before `completions` may be `chat`."""
_OWN: Final = frozenset({"conversations", "messages"})
"""Those that are words of our own API, too."""
_VERSION: Final = regex(r"v\d{1,3}[a-z0-9]{0,20}")
_ENDPOINTS: Final = ("/chat/completions", "/completions", "/responses", "/messages", "/models")


def client_base_error(path: str, headers: Mapping[str, str], server: str) -> str:
    """What is wrong with the base URL of a client that requests this path; empty if nothing is.

    `server` is the server's own URL, as the client sees it.
    """
    base, rest = _split(path)
    named = _named(base)
    sent, right = base, f"{named}/v1"
    if is_anthropic_path(path, headers):  # its clients add /v1 themselves
        sent, right = base.removesuffix("/v1"), named
    if not rest or (sent == right and base.endswith("/v1")):
        return ""
    return f"{path}: the base URL {_fault(base, sent, named)}; set it to {server}{_quoted(right)}"


def _fault(base: str, sent: str, named: str) -> str:
    if base == named:
        return "lacks /v1"
    end = sent.removeprefix(named)
    return "has /v1 twice" if end == "/v1/v1" else f"ends with {end}"


def is_anthropic_path(path: str, headers: Mapping[str, str]) -> bool:
    """Whether a client of Anthropic's requests this path."""
    return _split(path)[1].startswith("messages") or "anthropic-version" in headers


def _split(path: str) -> tuple[str, str]:
    """The base URL's path and what the client adds to it; empty if it is no path of a client."""
    segments = path.strip("/").split("/")
    for at in range(len(segments) - 1, -1, -1):
        if segments[at] not in _PATHS:
            continue
        start = (
            at - 1 if segments[at] == "completions" and segments[at - 1 : at] == ["chat"] else at
        )
        base = "".join(f"/{segment}" for segment in segments[:start])
        if base.startswith("/api/") and segments[at] in _OWN and base != "/api/v1":
            return "", ""
        if base == "/api/v1" and segments[at] == "conversations":
            return "", ""
        return base, "/".join(segments[start:])
    return "", ""


def _named(base: str) -> str:
    """The part of a base URL that names a conversation."""
    segments = base.split("/")
    return "/".join(segments[:3]) if base.startswith("/c/") and segments[2] else ""


def _quoted(path: str) -> str:
    return "/".join(quote(segment, safe="") for segment in path.split("/"))


def endpoint_hint(url: str, setting: str) -> str:
    """What may be wrong with an endpoint's URL if it answers 404; empty if it looks right."""
    path = urlsplit(url).path.rstrip("/")
    if path.endswith(_ENDPOINTS):
        end = next(each for each in _ENDPOINTS if path.endswith(each))
        return f"{setting} must end before {end}"
    segments = path.split("/")
    if len(segments) > 1 and segments[-1] == segments[-2]:
        return f"{setting} has /{segments[-1]} twice"
    if not any(_VERSION.fullmatch(segment) for segment in segments):
        return f"{setting} may lack /v1 at its end"
    return ""
