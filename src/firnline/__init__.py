"""Firnline: the conversation memory that can prove it lost nothing."""

from firnline import strategies
from firnline.context.budget import Budget
from firnline.context.context import Context, Section
from firnline.context.plan import Strategy
from firnline.context.tools import Tool, Toolbox
from firnline.engine.stats import Stats
from firnline.engine.turn import Turn
from firnline.errors import BudgetError, FirnlineError, ModelError
from firnline.log.chain import Verification
from firnline.log.entry import Appended, Digest, Entry, Erased, Head, Project
from firnline.log.hit import Hit, Hits
from firnline.log.message import Message, Part, ToolCall
from firnline.log.tokens import TokenCount, count_tokens
from firnline.memory import Memory
from firnline.models import open_model

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
    "Hits",
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
