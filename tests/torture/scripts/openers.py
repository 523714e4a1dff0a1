"""Forks processes that open one new database at the same moment; a line on stdin is one round."""

import asyncio
import json
import os
import sys

from torture_kit import memory_at, said, say

from firnline.log.tokens import counter


async def hello(path, name):
    async with memory_at(path) as memory:
        await memory.append("crowded", said([name]))


def fork(path, name, gate):
    """A process that waits until the gate is closed."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os.close(gate[1])
        os.read(gate[0], 1)
        asyncio.run(hello(path, name))
        os._exit(0)
    except BaseException as error:
        say("error", repr(error))
        raise
    finally:
        os._exit(1)


def main():
    counter().text("load the tokenizer before the first fork")
    for line in sys.stdin:
        order = json.loads(line)
        gate = os.pipe()
        openers = [fork(order["path"], f"opener {i}", gate) for i in range(order["openers"])]
        for end in gate:
            os.close(end)
        for pid in openers:
            os.waitpid(pid, 0)
        say("done")


if __name__ == "__main__":
    main()
