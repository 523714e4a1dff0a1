"""Firnline for agents: tools, resources, and a prompt over the Model Context Protocol.

`build` creates the server, `serve` runs it on standard input and output, `Endpoint` over HTTP. The
tenant is set before the first message; no tool can select another one, and no tool deletes
anything. Needs the extra: ``pip install "firnline[mcp]"``.
"""

from firnline.mcp.endpoint import Endpoint, by_key
from firnline.mcp.server import build
from firnline.mcp.stdio import serve

__all__ = ["Endpoint", "build", "by_key", "serve"]
