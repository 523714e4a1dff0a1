"""URLs of stores, which hold passwords: how they may be seen, and which are refused unseen.

A password with a sign of the URL's own in it (`@`, `/`, `%`, ...) is cut in two by whoever parses
it, and one half becomes a host or a database, which errors and logs name. So such a URL is refused
before anybody parses it, by an error that has nothing of it.
"""

from __future__ import annotations

import re
from typing import Final

from firnline.errors import BadURL
from firnline.log.regex import regex

_HOW: Final = "write it as percent-encoded: urllib.parse.quote(password, safe='')"
_CREDENTIALS: Final = regex(r"^([a-z+]*:/*)?([^:@/]*):.*@", re.DOTALL | re.IGNORECASE)
_SECRETS: Final = regex(
    r"(?<=[?&])(password|sslpassword|authMechanismProperties|tlsCertificateKeyFilePassword)=[^&#]*",
    re.IGNORECASE,
)


def shown(url: str) -> str:
    """The URL as it may be seen by anybody: without a password."""
    hidden = url if url.startswith("sqlite:///") else _CREDENTIALS.sub(r"\1\2:***@", url)
    return _SECRETS.sub(r"\1=***", hidden)


def check_server(url: str) -> None:
    """`BadURL` if the URL of a database server can be read in two ways."""
    scheme, slashes, rest = url.partition("://")
    if not slashes:
        raise BadURL(f"{scheme.partition(':')[0]}: the URL of a store has two slashes behind this:")
    if re.search(r"%(?![0-9A-Fa-f]{2})", rest):
        raise BadURL(f"{scheme}: a % in the URL does not begin a code; in a password, {_HOW}")
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    # An @ behind an equals sign is in an option, as in ?user=me@cloud.
    cut = "@" not in authority and "@" in rest.partition("=")[0]
    if cut or authority.count("@") > 1:
        raise BadURL(f"{scheme}: the URL's password or user has an @ / ? or # in it; {_HOW}")
