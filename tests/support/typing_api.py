"""The public names as a typed program uses them: checked by mypy in strict mode, not run."""

from collections.abc import Sequence
from datetime import UTC, datetime

from openai.types.chat import ChatCompletionMessage

from firnline import Entry, Memory, Message, Part, ToolCall, Verification, count_tokens, sync
from firnline.client import Client, Turn
from firnline.client import sync as client_sync
from firnline.protocols import Store
from firnline.store import RamStore, SqliteStore


async def asynchronous(reply: ChatCompletionMessage) -> list[str]:
    async with Memory.open("sqlite:///x.db", tenant="acme", tokens_of="gpt-4o-mini") as memory:
        await memory.append("c", Message.user("hi", name="Ana", created_at=datetime.now(UTC)))
        await memory.append("c", [Message.assistant(tool_calls=[ToolCall.of("1", "f", {"a": 1})])])
        await memory.append("c", {"role": "user", "content": "dicts too"}, expected_seq=2)
        await memory.append("c", reply, idempotency_key="k")
        await memory.append("c", Message.user([Part.of_text("x"), Part.image("https://x")]))
        entries: Sequence[Entry] = await memory.newest("c", tokens=2_500)
        result: Verification = await memory.verify("c")
        return [entry.message.text for entry in entries] if result else []


def synchronous() -> int:
    with sync.Memory.open("memory:") as memory:
        seq: int = memory.append("c", Message.system("x")).seq
        entries: int = memory.branch("c", seq, "d").entries
        return seq + entries + count_tokens([Message.user("x")], model="gpt-4o")


def stores() -> list[Store]:
    return [RamStore(), SqliteStore("x.db", full_sync=False)]


async def over_http() -> list[Entry]:
    async with Client("http://localhost:8080", key="fl_x") as client:
        pieces: list[str | Turn] = [piece async for piece in client.stream("c", "hi", recall=False)]
        hits = await client.recall(None, "hi", roles=["user"])
        return [hit.entry for hit in hits][: len(pieces)]


def over_http_without_await() -> int:
    with client_sync.Client("http://localhost:8080") as client:
        seq: int = client.append("c", Message.user("hi"), expected_seq=0).seq
        client.append("c", "hi")  # type: ignore[arg-type]  # the method's own types hold here, too
        entries: list[Entry] = list(client.read("c", limit=1))
        return seq + len(entries) + client.context("c", 8_000, fold=False).tokens
