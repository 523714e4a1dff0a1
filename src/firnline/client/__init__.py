"""A client for `firnline serve`: the methods of `Memory` over HTTP, with its values and errors.

Needs the extra ``firnline[client]``. `firnline.client.sync` is the same without await.
"""

from firnline.client.encode import ContextOptions, TurnOptions
from firnline.client.values import (
    Board,
    Context,
    Conversation,
    Costs,
    Important,
    Job,
    Lineage,
    Me,
    PastTurn,
    Prompt,
    TenantStats,
    Turn,
    Work,
)
from firnline.client.verbs import Client

__all__ = [
    "Board",
    "Client",
    "Context",
    "ContextOptions",
    "Conversation",
    "Costs",
    "Important",
    "Job",
    "Lineage",
    "Me",
    "PastTurn",
    "Prompt",
    "TenantStats",
    "Turn",
    "TurnOptions",
    "Work",
]
