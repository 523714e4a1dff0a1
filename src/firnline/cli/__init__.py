"""The command line: the same verbs as the library. Tables for people, --json for programs.

`program` parses the arguments and runs a command; the other modules define the commands.
"""

from firnline.cli.program import main

__all__ = ["main"]
