"""What `make run` shows: a conversation is kept, a copy of it is damaged, and `verify` sees it."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Final

from firnline import Memory, Message, ToolCall, count_tokens
from firnline.errors import StoreCorrupt

CONVERSATION: Final = "ticket-42"

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
)


async def main() -> None:
    """Tell the story."""
    with tempfile.TemporaryDirectory(prefix="firnline-demo-") as folder:
        original, copy = Path(folder) / "support.db", Path(folder) / "copy.db"
        async with Memory.open(f"sqlite:///{original}") as memory:
            await _keep(memory)
            await _show(memory)
            await memory.backup(copy)
        _damage(copy)
        async with Memory.open(f"sqlite:///{copy}") as memory:
            await _find_damage(memory)
    _title("That is the promise")
    print("Nothing acknowledged is ever lost, and nothing stored can change unnoticed.")
    print("Next: .venv/bin/firnline --help, and the 30-line example in README.md.")


async def _keep(memory: Memory) -> None:
    _title("1. Append: each message is on disk when the call returns")
    for message in SAMPLE:
        (entry,) = await memory.append(CONVERSATION, message)
        print(f"  {entry.seq}  {message.role:<9}  {entry.tokens:>3} tokens  {entry.hash[:23]}…")
    request = count_tokens(SAMPLE)
    print(f"  The whole request is {request} tokens ({request.encoding}, counted offline).")


async def _show(memory: Memory) -> None:
    _title("2. Read, search, verify")
    for entry in await memory.read(CONVERSATION):
        message = entry.message
        calls = ", ".join(f"→ {call.name}({call.arguments})" for call in message.tool_calls)
        print(f"  {entry.seq}  {message.name or message.role}: {message.text}{calls}")
    for query in ("rope saturday", "東京"):
        found = [hit.seq for hit in await memory.recall(CONVERSATION, query)]
        print(f"  search {query!r}: entries {found}")
    print(f"  verify: {await memory.verify(CONVERSATION)}")


def _damage(copy: Path) -> None:
    _title("3. Change one byte in a copy of the file: order 1138 becomes 1139")
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
        print(f"  read:   refused ({error})")
    entries = await memory.read(CONVERSATION, first_seq=2)
    print(f"  read from entry 2 on: {len(entries)} entries, all of them whole")


def _title(text: str) -> None:
    print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n{text}")


if __name__ == "__main__":
    asyncio.run(main())
