"""Firnline for agents: tools, resources and a prompt by the Model Context Protocol.

`build` makes the server, `serve` runs it on standard input and output, `Endpoint` over HTTP. Whose
conversations these are is settled before the first message; no tool has an argument for it, and
none removes anything. Needs the extra: ``pip install "firnline[mcp]"``.
"""

from firnline.mcp.endpoint import Endpoint, by_key
from firnline.mcp.server import build
from firnline.mcp.stdio import serve

__all__ = ["Endpoint", "build", "by_key", "serve"]
