"""A worker process for `postgres`: reports that it is ready, then creates pending digests."""

from __future__ import annotations

import asyncio
import json
import sys

from firnline import Memory


async def main(url: str) -> None:
    async with Memory.open(url, embedder=None, background=True, worker=False) as memory:
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        await memory.work()


if __name__ == "__main__":
    asyncio.run(main(**json.loads(sys.argv[1])))
