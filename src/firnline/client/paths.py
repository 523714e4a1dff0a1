"""Names in the paths of the REST API: any name is one segment, and none leads anywhere else.

Clients and proxies decode ``%2F`` and take ``..`` for the folder above, so percent-encoding alone
cannot carry every name. In a path ``~0`` stands for ``~``, ``~1`` for ``/`` and ``~2`` for a dot;
everything else is percent-encoded as usual. A name of letters, digits and ``-_.`` is just itself.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from firnline.errors import InputError

PREFIX: Final = "/api/v1"
RULE: Final = "In a path, `~` is written `~0`, `/` is `~1`, and the names `.` and `..` begin `~2`."
_MEANT: Final = {"0": "~", "1": "/", "2": "."}


def escaped(name: str) -> str:
    """The name as a segment of a path."""
    written = name.replace("~", "~0").replace("/", "~1")
    if written in (".", ".."):
        written = f"~2{written[1:]}"
    return quote(written, safe="~")


def unescaped(segment: str) -> str:
    """The name that a segment stands for, percent-encoding undone; `InputError` if for none."""
    first, *rest = segment.split("~")
    if any(piece[:1] not in _MEANT or not piece for piece in rest):
        raise InputError(f"a name in the path: {RULE}")
    return first + "".join(_MEANT[piece[0]] + piece[1:] for piece in rest)


def conversation_path(name: str) -> str:
    """Where a conversation is."""
    return f"{PREFIX}/conversations/{escaped(name)}"


def project_path(name: str) -> str:
    """Where a project is."""
    return f"{PREFIX}/projects/{escaped(name)}"
