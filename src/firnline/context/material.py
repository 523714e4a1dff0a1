"""What a context can include besides the view of the conversation. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from firnline.log.entry import Entry
from firnline.log.hit import Hit
from firnline.log.message import Message


def _no_data(first_shown: int | None = None) -> Mapping[str, Any]:  # noqa: ARG001 - a default
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """Everything a context can include besides the view.

    `question` is the user's newest message; it is `past` if the question to answer is not stored
    yet. `recalled` are entries that match the question, best first, and `recall_tokens` are kept
    for them; None if there is no question. The first `earned` of them are worth their place in any
    context, and all that is needed if the message `asks` for nothing. `units` are what is
    quoted with recalled entries: all of a tool call, and the question of a short answer.

    `data` gives the important data that the entries from a number on do not show, or all of it.
    `log_tokens` are those of the whole log.
    """

    conversation: str
    strategy: str
    system: tuple[Message | Entry, ...] = ()
    pinned: tuple[Entry, ...] = ()
    task: str = ""
    data: Callable[[int | None], Mapping[str, Any]] = _no_data
    question: Entry | None = None
    past: bool = False
    recalled: tuple[Hit, ...] = ()
    earned: int = 0
    asks: bool = True
    units: Mapping[int, tuple[Entry, ...]] = field(default_factory=dict)
    recall_tokens: int | None = None
    tools_tokens: int = 0
    problems: tuple[str, ...] = ()
    log_tokens: int = 0

    @property
    def required(self) -> set[int]:
        """The entries that are in a context in any case."""
        system = (part for part in self.system if isinstance(part, Entry))
        asked = (self.question,) if self.question else ()
        return {entry.seq for entry in (*system, *self.pinned, *asked)}
