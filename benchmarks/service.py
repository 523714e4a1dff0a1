"""What the server costs: durable appends, streamed chats, idle streams."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count, islice
from pathlib import Path
from statistics import quantiles

from benchmarks import wire
from benchmarks.bench import Bench, url
from benchmarks.measure import in_turns, milliseconds, rate, timed
from benchmarks.table import Row, at_least, at_most, progress
from firnline.cli.hook import hook_command
from firnline.log.message import Message

CLIENTS = 64
IDLE = 1_000
_KIBI = 1_024


@asynccontextmanager
async def served(bench: Bench, name: str, upstream: str) -> AsyncIterator[tuple[str, int]]:
    """The server as a process: its address and its process id."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.measured_server",
        url(bench.new_path(name)),
        upstream,
    ]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        address = (await process.stdout.readline()).decode().strip()
        await _ready(address)
        yield address, process.pid
    finally:
        process.terminate()
        await process.wait()


async def _ready(address: str) -> None:
    for _ in range(1_000):
        try:
            streams = await wire.connect(address)
        except OSError:
            await asyncio.sleep(0.02)
            continue
        body = wire.request("/api/v1/nothing/x/messages", {})
        status = await wire.exchange(streams, body)
        streams[1].close()
        if status == 201:
            return
        await asyncio.sleep(0.02)
    raise RuntimeError("the server is not ready")


async def appends(bench: Bench) -> AsyncIterator[Row]:
    """Sixty-four clients append through HTTP, against a route of the same server that does none."""
    each = bench.size(12, 3)
    texts = [_shape(message) for message in islice(bench.endless_messages(), 500)]
    waits: list[float] = []
    async with served(bench, "service", "http://127.0.0.1:9/v1") as (address, _):
        clients = [await wire.connect(address) for _ in range(CLIENTS)]
        number = count()

        async def client(streams: wire.Streams, at: int, what: str) -> None:
            for _ in range(each):
                body = texts[next(number) % len(texts)]
                sent = wire.request(f"/api/v1/{what}/c{at}/messages", body)
                started = time.perf_counter()
                if await wire.exchange(streams, sent) != 201:
                    raise RuntimeError("not stored")
                if what == "conversations":
                    waits.append(time.perf_counter() - started)

        async def all_clients(what: str) -> None:
            await asyncio.gather(*(client(s, at, what) for at, s in enumerate(clients)))

        pairs = await in_turns(
            timed(lambda: all_clients("conversations"), CLIENTS * each),
            timed(lambda: all_clients("nothing"), CLIENTS * each),
            bench.size(25, 3),
            "service-append",
        )
        for streams in clients:
            streams[1].close()
    p99 = quantiles(waits, n=100)[-1]
    yield Row(
        f"service: append, {CLIENTS} clients (p99 {p99 * 1e3:,.0f} ms)",
        rate(pairs.ours),
        f"{rate(pairs.other)} a route that does nothing",
        pairs.speed,
        at_least(0.4),
    )


def _shape(message: Message) -> dict[str, object]:
    return {"messages": [{"role": message.role, "content": message.text}]}


async def proxy(bench: Bench) -> AsyncIterator[Row]:
    """One streamed chat through the proxy, and straight to the endpoint."""
    async with (
        wire.endpoint() as upstream,
        served(bench, "service-proxy", upstream) as (address, _),
    ):
        through, straight = await wire.connect(address), await wire.connect(upstream)
        number = count()

        def asked(path: str) -> bytes:
            text = f"What was said about {next(number)}?"
            message = {"role": "user", "content": text}
            body = {"model": "gpt-4o-mini", "messages": [message], "stream": True}
            return wire.request(path, body)

        async def ours() -> None:
            path = f"/c/chat{next(number)}/v1/chat/completions"
            await wire.whole_stream(through, asked(path))

        async def other() -> None:
            await wire.whole_stream(straight, asked("/v1/chat/completions"))

        pairs = await in_turns(timed(ours), timed(other), bench.size(300, 10), "service-proxy")
        for streams in (through, straight):
            streams[1].close()
    yield Row(
        "service: what the proxy adds to a streamed chat, ms",
        milliseconds(pairs.ours),
        f"{milliseconds(pairs.other)} straight to the endpoint",
        pairs.difference * 1e3,
        at_most(10),
    )


async def idle(bench: Bench) -> AsyncIterator[Row]:
    """Streams that wait for their model, on one server that keeps answering others."""
    most = bench.size(IDLE, 20)
    going_on = asyncio.Event()
    async with (
        wire.endpoint(idle=going_on) as upstream,
        served(bench, "service-idle", upstream) as (address, pid),
    ):
        before = _memory(pid)
        held = []
        for number in range(most):
            progress(f"service-idle: {number} of {most} streams")
            streams = await wire.connect(address)
            message = {"role": "user", "content": f"Tell me about {number}."}
            body = {"model": "gpt-4o-mini", "messages": [message], "stream": True}
            path = f"/c/idle{number}/v1/chat/completions"
            await asyncio.wait_for(wire.first_event(streams, wire.request(path, body)), 60)
            held.append(streams)
        each = (_memory(pid) - before) / most
        other = await wire.connect(address)
        sent = wire.request("/api/v1/conversations/x/messages", _shape(Message.user("hi")))
        started = time.perf_counter()
        for _ in range(20):
            await wire.exchange(other, sent)
        append = (time.perf_counter() - started) / 20
        going_on.set()
        done = await asyncio.gather(*(s[0].readuntil(b"0\r\n\r\n") for s in held))
        whole = sum(b"[DONE]" in answer for answer in done)
        for streams in (*held, other):
            streams[1].close()
    yield Row(
        f"service: {most:,} idle streams, all came to their end",
        f"{each / _KIBI:,.0f} KiB each",
        f"an append meanwhile: {append * 1e3:,.1f} ms",
        whole / most,
        at_least(1),
    )


async def hook(bench: Bench) -> AsyncIterator[Row]:
    """A coding agent's hook as the agent runs it: the prompt is stored, and what fits it found."""
    texts = [message.text for message in islice(bench.endless_messages(), bench.size(2_000, 50))]
    number, path = count(), "/api/v1/conversations/cursor~1s/messages"
    async with served(bench, "service-hook", "http://127.0.0.1:9/v1") as (address, _):
        streams = await wire.connect(address)
        for text in texts:
            sent = wire.request(path, _shape(Message.assistant(text)))
            await wire.exchange(streams, sent)
        streams[1].close()

        async def run(command: str, name: str = "beforeSubmitPrompt") -> None:
            about = {"conversation_id": "s", "generation_id": f"g{next(number)}"}
            prompt = texts[next(number) % len(texts)][:200]
            event = json.dumps({**about, "hook_event_name": name, "prompt": prompt}).encode()
            shell = ["sh", "-c", command]
            await asyncio.to_thread(
                subprocess.run, shell, input=event, stdout=subprocess.DEVNULL, check=True
            )

        await run(hook_command("cursor", address), "preCompact")
        ours, other = hook_command("cursor", address), "cat > /dev/null; true"
        pairs = await in_turns(
            timed(lambda: run(ours)), timed(lambda: run(other)), bench.size(100, 5), "service-hook"
        )
    yield Row(
        f"service: a hook with recall in {len(texts):,} messages, ms",
        milliseconds(pairs.ours),
        f"{milliseconds(pairs.other)} a shell that does nothing",
        pairs.difference * 1e3,
        at_most(100),
    )


def _memory(pid: int) -> int:
    """The resident memory of a process, if the system reports it."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return 0
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) * _KIBI
