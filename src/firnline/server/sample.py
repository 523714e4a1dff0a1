"""A conversation to look at: long enough to be digested, with facts to ask for."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from firnline.cli.demo import SAMPLE, SMALL_TALK
from firnline.log.entry import Project
from firnline.log.message import Message, utc_now
from firnline.memory import Memory

CONVERSATION: Final = "ticket-42"
_MINUTES: Final = timedelta(minutes=7)


async def add_sample(memory: Memory) -> bool:
    """Add the sample conversation, unless it is there."""
    if await memory.head(CONVERSATION) is not None:
        return False
    await memory.save_project(
        Project(
            "support",
            status="active",
            schedule="answers within a day",
            task="Get order 1138 to Ana before Saturday. Blocker: the parcel waits in Innsbruck.",
        )
    )
    messages = [message for message in (*SAMPLE, *SMALL_TALK) if message.role != "system"]
    begin = utc_now() - len(messages) * _MINUTES
    await memory.append(
        CONVERSATION, [_at(message, begin + at * _MINUTES) for at, message in enumerate(messages)]
    )
    await memory.describe(CONVERSATION, project="support")
    await memory.context(CONVERSATION, 1_000)
    await memory.digest(CONVERSATION)
    return True


def _at(message: Message, time: datetime) -> Message:
    return message.at(time)
