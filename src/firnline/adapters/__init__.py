"""Adapters for agent frameworks: thin callers of append, context, and recall, one module each.

Each needs its framework, which its extra installs; `firnline` itself imports none of them. They
share `bridge` (a memory for code with and without an event loop) and `history_sync` (stores what
a framework's history has and the log has not).
"""

from __future__ import annotations


def missing_extra(extra: str, missing: ModuleNotFoundError) -> ModuleNotFoundError:
    """The error for a missing framework, which says how to install it."""
    text = f'{missing.msg}; this adapter needs an extra: pip install "firnline[{extra}]"'
    return ModuleNotFoundError(text, name=missing.name)
