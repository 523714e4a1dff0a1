"""An example conversation: long enough to be digested, with facts to ask about."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from firnline.log.entry import Project
from firnline.log.message import Message, ToolCall, utc_now
from firnline.memory import Memory

CONVERSATION: Final = "ticket-42"
_MINUTES: Final = timedelta(minutes=7)

SAMPLE: Final = (
    Message.system("You are the support assistant of a small shop for mountain gear."),
    Message.user("Order 1138 never arrived. I need the rope before Saturday.", name="Ana"),
    Message.assistant(tool_calls=[ToolCall.of("call_1", "find_order", {"order": 1138})]),
    Message.tool(
        '{"order": 1138, "state": "in transit", "hub": "Innsbruck"}', tool_call_id="call_1"
    ),
    Message.assistant("It has left Innsbruck and should reach you on Friday, Ana."),
    Message.user("Danke! 我的朋友在東京也想訂一條。 Can you ship to Japan? 🏔️", name="Ana"),
    Message.assistant("We do ship to Japan: six days, free from 80 euros on."),
    Message.user("Good. I prefer e-mail, not phone calls. Write to ana@example.com.", name="Ana"),
    Message.assistant("Noted: e-mail only. Shall I put the second rope on order 1138?"),
    Message.user("No, we decided to order it separately, for 95 euros, on 2026-03-02.", name="Ana"),
    Message.assistant("Then I will open a new order for Tokyo on that day."),
    Message.user("What else do you need from me?", name="Ana"),
)

GEAR: Final = ("harness", "helmet", "headlamp", "tent", "stove", "compass", "bivouac bag", "ladder")
SMALL_TALK: Final = tuple(
    message
    for gear in (*GEAR, *GEAR)
    for message in (
        Message.user(f"And a {gear}, would you send that to my friend as well?", name="Ana"),
        Message.assistant(f"Yes, a {gear} is in stock, and it can go with the next parcel."),
    )
)


async def add_sample(memory: Memory) -> bool:
    """Add the sample conversation, unless it exists."""
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
        CONVERSATION, [message.at(begin + at * _MINUTES) for at, message in enumerate(messages)]
    )
    await memory.describe(CONVERSATION, project="support")
    await memory.context(CONVERSATION, 1_000)
    await memory.digest(CONVERSATION)
    return True
