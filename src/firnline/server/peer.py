"""Where a request comes from: directly from this machine, through a proxy, or from elsewhere.

A reverse proxy on the same machine connects from a loopback address on behalf of anybody. So a
request counts as direct only if nothing in it says that it was forwarded.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import Scope

from firnline.log.regex import regex
from firnline.server.limits import PROXY_HOPS_MAX
from firnline.server.settings import is_loopback

Networks: TypeAlias = Sequence[ipaddress.IPv4Network | ipaddress.IPv6Network]

_FORWARDED: Final = regex(
    r"x[-_]forward.*|forward.*|.*-via|via|x-real-.*|(.*-)?client-ip|.*-connecting-ip.*|x-original-.*"
    r"|x-originating-.*|x-remote-.*|remote-user|x-auth-request-.*|(x-)?proxy-.*|x-proxyuser-.*"
    r"|x-scheme|x-url-scheme|x-host|x-http-host-override|front-end-https|max-forwards"
    r"|surrogate-capability|(x-)?ssl-client-.*|x-varnish.*|x-haproxy-.*|x-nginx-.*|x-envoy-.*"
    r"|cf-.*|cdn-.*|x-edge-.*|(x-)?akamai-.*|x-amz-cf-.*|x-amzn-.*|x-azure-.*|x-arr-.*|x-ms-original-.*"
    r"|x-cloud-trace-context|x-goog-iap-.*|x-appengine-.*|fly-.*|x-vercel-.*|(x-)?ngrok-.*"
    r"|x-github-codespaces.*|x-replit-.*|tailscale-.*|true-client.*|x-source-.*|x-rewrite-.*"
    r"|x-sucuri-.*|(x-)?incap-.*|(x-)?fastly-.*|x-kong-.*|x-traefik-.*|x-(api)?gateway-.*|x-waf-.*"
    r"|x-lb-.*|x-client-(ip|addr|port|host|proto|cert|verify|dn|ssl).*|x-cluster-.*|x-request-start|x-queue-start|x-served-by|x-cache.*",
    re.IGNORECASE,
)
"""Headers that proxies add."""
_FORWARDED_FOR: Final = "x-forwarded-for"
_HOST: Final = regex(r"(\[[0-9a-f:.]+\]|[a-z0-9.-]+)(?::[0-9]{0,5})?", re.IGNORECASE)
"""A `Host` header: a name or an address, and a port."""
_OWN_SITES: Final = frozenset({"same-origin", "none"})


def is_forwarded(scope: Scope) -> bool:
    """Whether a proxy sent this request: it says so, or it is HTTP/1.0, as nginx sends it."""
    names = (name.decode("latin-1") for name, _ in scope["headers"])
    return scope.get("http_version") == "1.0" or any(map(_FORWARDED.fullmatch, names))


def is_local(scope: Scope) -> bool:
    """Whether the other end of the connection is on this machine."""
    return is_loopback(_peer(scope))


def is_trusted(scope: Scope, trusted: Networks) -> bool:
    """Whether the other end is a trusted proxy that says for whom it sends the request."""
    return _FORWARDED_FOR in Headers(scope=scope) and _is_in(_peer(scope), trusted)


def client_address(scope: Scope, trusted: Networks) -> str:
    """The client's address; behind trusted proxies, the last one that none of them has.

    What comes before it in the header was written by the client.
    """
    address = _peer(scope)
    if not trusted:
        return address
    listed = ",".join(Headers(scope=scope).getlist(_FORWARDED_FOR)).split(",")
    for hop in reversed(listed[-PROXY_HOPS_MAX:]):
        if not _is_in(address, trusted):
            break
        found = _address(hop)
        if not found:
            break
        address = found
    return address


def names_this_machine(host: str) -> bool:
    """Whether a `Host` header is a loopback name or address, with any port."""
    found = _HOST.fullmatch(host)
    return found is not None and is_loopback(found[1].lower())


def is_cross_site(headers: Headers, hosts: Sequence[str]) -> bool:
    """Whether a browser says that a page of another site sent this; `hosts` are our own names."""
    sites = headers.getlist("sec-fetch-site")
    if any(site.lower() not in _OWN_SITES for site in sites):
        return True
    try:
        return any(urlsplit(origin).netloc not in hosts for origin in headers.getlist("origin"))
    except ValueError:
        return True


def _peer(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else ""


def _address(text: str) -> str:
    """An address in the header, without its port; empty if it is none."""
    text = text.strip()
    bare = re.sub(r"^\[(.*)\](:\d+)?$|^([^:]*):\d+$", r"\1\3", text)
    try:
        return str(ipaddress.ip_address(bare))
    except ValueError:
        return ""


def _is_in(address: str, networks: Networks) -> bool:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None)
    return any((mapped or found) in network for network in networks)
