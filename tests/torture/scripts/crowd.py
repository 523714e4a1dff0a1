"""Many clients of one process, all on one conversation: ``crowd.py PATH NAME CLIENTS APPENDS``.

Waits for a line on stdin before it opens the file, so that several of these start together.
"""

import asyncio
import random
import sys
import time

from torture_kit import memory_at, said, say

from firnline.log.tokens import counter


async def crowd(path, name, clients, appends):
    async with memory_at(path) as memory:
        await asyncio.gather(*(client(memory, f"{name}-{i}", appends) for i in range(clients)))


async def client(memory, name, appends):
    choose = random.Random(name)
    longest = 0.0
    seqs = []
    for number in range(appends):
        size = choose.choice((1, 1, 3))
        texts = [f"{name}-{number} {i}/{size}" for i in range(size)]
        started = time.monotonic()
        appended = await memory.append("crowded", said(texts))
        longest = max(longest, time.monotonic() - started)
        seqs.extend((entry.seq, text) for entry, text in zip(appended, texts, strict=True))
    say("client", name, seqs, longest)


def main():
    path, name, clients, appends = sys.argv[1:]
    counter().text("load the tokenizer before the others start")
    say("ready")
    sys.stdin.readline()
    asyncio.run(crowd(path, name, int(clients), int(appends)))
    say("done")


if __name__ == "__main__":
    main()
