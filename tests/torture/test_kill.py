"""SIGKILL at any moment: what was acknowledged is stored, complete and in order."""

import pytest
from torture_kit import TORTURE, Ledger, Script, assert_healthy, memory_at, said, soon

CYCLES = 1000 if TORTURE else 80
CYCLES_PER_FILE = 10
WRITERS = 3


@pytest.mark.promise("durable")
async def test_killed_writers_lose_nothing(tmp_path, rng):
    async with Script("kill_writers.py") as writers:
        acked = 0
        for number in range(CYCLES // CYCLES_PER_FILE):
            acked += await torment(writers, tmp_path / f"{number}.db", rng)
    assert acked > CYCLES * WRITERS, "the writers had no time to write; the test proves nothing"


async def torment(writers, path, rng):
    """Kill the writers of one file again and again; returns how many messages were acknowledged."""
    ledger = Ledger()
    for _ in range(CYCLES_PER_FILE):
        tried = await one_cycle(writers, path, rng, ledger)
        async with memory_at(path) as memory:
            await ledger.check(memory)
            await resend(memory, ledger, tried)
    async with memory_at(path) as memory:
        await ledger.check(memory)
        await assert_healthy(memory)
    return sum(map(len, ledger.acked.values()))


async def one_cycle(writers, path, rng, ledger):
    """Let the writers write until they are killed; returns the appends they began with a key."""
    early = rng.random() < 0.1  # now and then, while they still open the file
    writers.tell(
        {
            "path": str(path),
            "seeds": [rng.randrange(2**32) for _ in range(WRITERS)],
            "milliseconds": rng.uniform(0, 30) if early else rng.uniform(5, 40),
            "wait": not early,
        }
    )
    tried = {}
    while (line := await writers.hear())[0] != "done":
        if line[0] == "try":
            tried[line[1]] = line[2:]
        elif line[0] == "ack":
            _, conversation, first, texts, key = line
            for seq, text in enumerate(texts, first):
                ledger.ack(conversation, seq, text)
            if key:
                ledger.keyed[key] = first
        else:
            pytest.fail(f"a writer failed: {line}")
    return tried


async def resend(memory, ledger, tried):
    """A client that got no answer tries again: each append is stored once, then or now."""
    for key, (conversation, texts) in tried.items():
        again = await soon(memory.append(conversation, said(texts), idempotency_key=key))
        assert [entry.message.text for entry in again] == texts
        if key in ledger.keyed:
            assert again.replayed
            assert again[0].seq == ledger.keyed[key]
        ledger.ack_all(conversation, again)
