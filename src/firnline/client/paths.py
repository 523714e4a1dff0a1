"""Names in paths of the REST API: any name is exactly one segment.

Clients and proxies decode ``%2F`` and resolve ``..``, so percent-encoding is not enough. In a path
``~0`` stands for ``~``, ``~1`` for ``/`` and ``~2`` for a dot; the rest is percent-encoded as
usual. A name of letters, digits and ``-_.`` stays as it is.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from firnline.errors import InputError

PREFIX: Final = "/api/v1"
RULE: Final = "In a path, `~` is written `~0`, `/` is `~1`, and the names `.` and `..` begin `~2`."
_ESCAPES: Final = {"0": "~", "1": "/", "2": "."}


def escape_name(name: str) -> str:
    """The name as a segment of a path."""
    written = name.replace("~", "~0").replace("/", "~1")
    if written in (".", ".."):
        written = f"~2{written[1:]}"
    return quote(written, safe="~")


def unescape_name(segment: str) -> str:
    """The name of a segment without percent-encoding; `InputError` if it is invalid."""
    first, *rest = segment.split("~")
    if any(piece[:1] not in _ESCAPES or not piece for piece in rest):
        raise InputError(f"invalid name in the path: {RULE}")
    return first + "".join(_ESCAPES[piece[0]] + piece[1:] for piece in rest)


def conversation_path(name: str) -> str:
    """The path of a conversation."""
    return f"{PREFIX}/conversations/{escape_name(name)}"


def person_path(name: str) -> str:
    """The path of a person."""
    return f"{PREFIX}/people/{escape_name(name)}"


def project_path(name: str) -> str:
    """The path of a project."""
    return f"{PREFIX}/projects/{escape_name(name)}"
