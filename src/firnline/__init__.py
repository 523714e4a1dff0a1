"""Firnline: the conversation memory that can prove it lost nothing."""

from firnline import strategies
from firnline.budget import Budget
from firnline.context import Context, Section
from firnline.errors import BudgetError, FirnlineError, ModelError
from firnline.log import Appended, Digest, Entry, Erased, Head, Hit, Project
from firnline.memory import Memory
from firnline.message import Message, Part, ToolCall
from firnline.models import open_model
from firnline.plan import Strategy
from firnline.proof import Verification
from firnline.recall.stats import Stats
from firnline.tokens import TokenCount, count_tokens
from firnline.tools import Tool, Toolbox
from firnline.turn import Turn

__version__ = "0.1.0"

__all__ = [
    "Appended",
    "Budget",
    "BudgetError",
    "Context",
    "Digest",
    "Entry",
    "Erased",
    "FirnlineError",
    "Head",
    "Hit",
    "Memory",
    "Message",
    "ModelError",
    "Part",
    "Project",
    "Section",
    "Stats",
    "Strategy",
    "TokenCount",
    "Tool",
    "ToolCall",
    "Toolbox",
    "Turn",
    "Verification",
    "count_tokens",
    "open_model",
    "strategies",
]
