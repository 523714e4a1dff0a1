"""The command demo: append a conversation, fit it into a budget, and verify it.

It is digested without a model, the digest is undone, and `verify` finds a changed byte in a copy.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from textwrap import indent
from typing import Final

from firnline.cli.arguments import Command
from firnline.digest.receipt import describe
from firnline.errors import StoreCorrupt
from firnline.log.message import Message, ToolCall
from firnline.log.tokens import count_tokens
from firnline.memory import Memory
from firnline.store.scratch import ScratchFolder

CONVERSATION: Final = "ticket-42"
BUDGET: Final = 500

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

_GEAR: Final = ("harness", "helmet", "headlamp", "tent", "stove", "compass", "tarp", "ladder")
SMALL_TALK: Final = tuple(
    message
    for gear in (*_GEAR, *_GEAR)
    for message in (
        Message.user(f"And a {gear}, would you send that to my friend as well?", name="Ana"),
        Message.assistant(f"Yes, a {gear} is in stock, and it can go with the next parcel."),
    )
)


def add(command: Command) -> None:
    """Add this command to the parser."""
    text = "Show what Firnline does, in a folder that is removed at the end."
    command("demo", _demo, text, store=False).set_defaults(json=False)


def _demo(_: argparse.Namespace) -> None:
    asyncio.run(_show())


async def _show() -> None:
    with ScratchFolder() as folder:
        original, copy = folder / "support.db", folder / "copy.db"
        async with Memory.open(f"sqlite:///{original}", background=False) as memory:
            await _append(memory)
            await _read(memory)
            await memory.backup(copy)
            await _fit(memory)
        _damage(copy)
        async with Memory.open(f"sqlite:///{copy}") as memory:
            await _find_damage(memory)
    _title("That is the promise")
    print("Nothing acknowledged is lost, and no change to stored data goes unnoticed.")
    print("Next: firnline serve --sample, for a page that shows this; firnline --help")


async def _append(memory: Memory) -> None:
    _title("1. Append: each message is on disk when the call returns")
    for message in SAMPLE:
        (entry,) = await memory.append(CONVERSATION, message)
        print(f"  {entry.seq}  {message.role:<9}  {entry.tokens:>3} tokens  {entry.hash[:23]}…")
    request = count_tokens(SAMPLE)
    print(f"  The whole request is {request} tokens ({request.encoding}, counted offline).")


async def _read(memory: Memory) -> None:
    _title("2. Read, search, verify")
    for entry in await memory.read(CONVERSATION):
        message = entry.message
        calls = ", ".join(f"→ {call.name}({call.arguments})" for call in message.tool_calls)
        print(f"  {entry.seq}  {message.name or message.role}: {message.text}{calls}")
    for query in ("rope saturday", "東京"):
        found = [hit.seq for hit in await memory.recall(CONVERSATION, query)]
        print(f"  search {query!r}: messages {found}")
    print(f"  verify: {await memory.verify(CONVERSATION)}")


async def _fit(memory: Memory) -> None:
    _title(f"3. A context within {BUDGET} tokens: what the model gets, and why")
    await memory.append(CONVERSATION, SMALL_TALK)
    context = await memory.context(CONVERSATION, BUDGET)
    print(indent(context.explain(), "  "))
    print("  The first of its messages:")
    for message in context.messages[:3]:
        print(indent(f"{message.role}: {message.text}", "    "))
    digest = (await memory.digests(CONVERSATION))[-1]
    _title(f"4. The receipt of digest {digest.version}: what it kept, and what it lost")
    print(indent(describe(digest.receipt), "  "))
    entries = await memory.expand(CONVERSATION, digest.version)
    print(f"  expand: its {len(entries)} messages are still there, unchanged")
    undone = await memory.undo(CONVERSATION)
    force = await memory.in_force(CONVERSATION)
    print(f"  undo: digest {undone.version} is undone, {len(force)} are in force")


def _damage(copy: Path) -> None:
    _title("5. Change one byte in a copy of the file: order 1138 becomes 1139")
    data = bytearray(copy.read_bytes())
    at = data.index(b"Order 1138") + len(b"Order 113")
    print(f"  byte {at:,} of {len(data):,}: {chr(data[at])!r} → '9'")
    data[at] = ord("9")
    copy.write_bytes(data)


async def _find_damage(memory: Memory) -> None:
    print(f"  verify: {await memory.verify(CONVERSATION)}")
    try:
        await memory.read(CONVERSATION)
    except StoreCorrupt as error:
        print(f"  read:   failed ({error})")
    entries = await memory.read(CONVERSATION, first_seq=2)
    print(f"  read from message 2 on: {len(entries)} messages, all intact")


def _title(text: str) -> None:
    print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n{text}")
