"""The command line: the same verbs as the library. Tables for people, --json for machines.

`program` runs a command; `log`, `contexts`, `digests`, `working`, `mcp`, `keeping` and `bench` hold
the commands.
"""

from firnline.cli.program import main

__all__ = ["main"]
