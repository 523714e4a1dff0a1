"""Shared values of the suites: keys, a clock, and messages ready for a store."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

from firnline.log.entry import EntryDraft, Key
from firnline.log.message import Message, encode

START: Final = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)

KEY: Final = Key("acme", "ticket-42")
OTHER: Final = Key("acme", "ticket-43")
FOREIGN: Final = Key("evil", "ticket-42")


class Ticking:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        """The time that was set."""
        return self.now

    def pass_(self, seconds: float) -> None:
        """Advance the time."""
        self.now += timedelta(seconds=seconds)


def draft(
    message: Message | str, *, tokens: int | None = None, minute: int = 0, pinned: bool = False
) -> EntryDraft:
    """A draft of `message`, dated `minute` minutes after `START` unless it has a time."""
    if isinstance(message, str):
        message = Message.user(message)
    if message.created_at is None:
        message = message.at(START + timedelta(minutes=minute))
    body = encode(message)
    return EntryDraft(message, body, len(body) if tokens is None else tokens, "o200k_base", pinned)


def drafts(texts: Iterable[str], *, first_minute: int = 0) -> list[EntryDraft]:
    """A draft of each text, a minute apart."""
    return [draft(text, minute=first_minute + i) for i, text in enumerate(texts)]
