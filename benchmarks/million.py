"""Whether a million entries cost more than a thousand."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator
from statistics import median

from benchmarks.bench import LONG, SHORT, SHORT_ENTRIES, Bench, opened, url
from benchmarks.measure import Side, costs, in_turns, milliseconds, timed, timed_call
from benchmarks.table import Row, at_most
from firnline import Memory
from firnline.engine.signer import Signer, new_key
from firnline.log.proof_check import check_proof

TOKENS = 2_500


async def append(bench: Bench) -> AsyncIterator[Row]:
    """Single appends to the long conversation, and to a short one in the same file."""
    small_path, big_path = await bench.small(), await bench.million()
    entries = bench.size(1_000_000, 20_000)
    yield Row(f"append-million: build {entries:,}", f"{bench.build_rates[big_path]:,.0f}/s")
    async with opened(url(small_path)) as small, opened(url(big_path)) as big:
        for name in (LONG, SHORT):
            ours, other = _append(bench, big, name), _append(bench, small, SHORT)
            pairs = await in_turns(ours, other, bench.size(400, 20), "append-million")
            yield Row(
                f"append-million: to the {name} one of {entries:,}",
                milliseconds(pairs.ours),
                f"{milliseconds(pairs.other)} in a file of 1,000",
                pairs.cost,
                at_most(1.5),
            )


async def newest(bench: Bench) -> AsyncIterator[Row]:
    """The newest entries that fit into a budget."""
    small_path, big_path = await bench.small(), await bench.million()
    # Read-only, so that no writer catches up with the search index meanwhile.
    small_url, big_url = url(small_path, read_only=True), url(big_path, read_only=True)
    async with opened(small_url) as small, opened(big_url) as big:
        ours, other = _newest(big, LONG), _newest(small, SHORT)
        pairs = await in_turns(ours, other, bench.size(1_000, 20), "newest-million")
    yield Row(
        f"newest-million: newest {TOKENS:,} tokens",
        milliseconds(pairs.ours),
        f"{milliseconds(pairs.other)} in a file of 1,000",
        pairs.cost,
        at_most(1.5),
    )


async def prove(bench: Bench) -> AsyncIterator[Row]:
    """A checkpoint, which reads the log; proofs of single messages; and how they are checked."""
    key = new_key("example.com/bench")
    public, entries = Signer.of(key).public, bench.size(1_000_000, 20_000) - SHORT_ENTRIES
    proofs: list[str] = []
    anywhere = random.Random(1)
    async with opened(url(await bench.million()), signer=key) as memory:

        async def proof() -> None:
            proofs.append(await memory.prove(LONG, anywhere.randrange(entries)))

        made = await costs(timed(lambda: memory.checkpoint(LONG)), bench.size(3, 1), "checkpoint")
        proved = await costs(timed(proof), bench.size(100, 5), "prove-million")
        checked = await costs(
            timed_call(lambda: check_proof(proofs[-1], key=public)),
            bench.size(100, 5),
            "prove-million",
        )
    longest = max(map(_without_body, proofs))
    name = f"prove-million: of {entries:,}"
    yield Row(f"{name}, checkpoint", f"{median(made):,.1f} s")
    yield Row(f"{name}, prove", milliseconds(proved))
    yield Row(f"{name}, size", f"{longest:,} B", "", longest, at_most(2_048), " B")
    slow = median(checked) * 1e3
    yield Row(f"{name}, check", milliseconds(checked), "", slow, at_most(5), " ms")


def _without_body(proof: str) -> int:
    body = json.loads(proof)["entry"]["body"]
    return len(proof.encode()) - len(json.dumps(body, ensure_ascii=False).encode())


def _append(bench: Bench, memory: Memory, name: str) -> Side:
    messages = bench.endless_messages()
    return timed(lambda: memory.append(name, next(messages)))


def _newest(memory: Memory, name: str) -> Side:
    return timed(lambda: memory.newest(name, tokens=TOKENS))
