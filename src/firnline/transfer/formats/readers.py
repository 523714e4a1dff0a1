"""The readers by the names of their formats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from firnline.transfer.formats import (
    chatgpt,
    claude,
    claude_code,
    codex,
    finetune,
    gemini,
    langchain,
    mem0,
    sharegpt,
    telegram,
    whatsapp,
)
from firnline.transfer.formats.records import Reader

READERS: Final[Mapping[str, Reader]] = {
    module.FORMAT: module.read
    for module in (
        chatgpt,
        claude,
        gemini,
        claude_code,
        codex,
        finetune,
        sharegpt,
        langchain,
        telegram,
        whatsapp,
        mem0,
    )
}
"""The readers by the names of their formats."""
