"""Firnline: the conversation memory that can prove it lost nothing."""

from firnline.errors import FirnlineError
from firnline.log import Appended, Digest, Entry, Erased, Head, Hit, Project
from firnline.memory import Memory
from firnline.message import Message, Part, ToolCall
from firnline.proof import Verification
from firnline.tokens import TokenCount, count_tokens

__version__ = "0.1.0"

__all__ = [
    "Appended",
    "Digest",
    "Entry",
    "Erased",
    "FirnlineError",
    "Head",
    "Hit",
    "Memory",
    "Message",
    "Part",
    "Project",
    "TokenCount",
    "ToolCall",
    "Verification",
    "count_tokens",
]
