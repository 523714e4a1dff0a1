"""What to say when an adapter's framework is not installed."""

from __future__ import annotations


def needs(extra: str, missing: ModuleNotFoundError) -> ModuleNotFoundError:
    """The error, saying which extra of Firnline's installs what is missing."""
    text = f'{missing.msg}; this adapter needs an extra: pip install "firnline[{extra}]"'
    return ModuleNotFoundError(text, name=missing.name)
