"""Erases in a process that is killed at the N-th operation on the disk, then opens the file again.

Orders on stdin: {"erase": path, "conversation": name, "nth": n}, {"open": path, ...}, {"close": 1}.
With "span", only these messages are erased.
An opened store stays open until "close", so that the disk can be looked at meanwhile.
"""

import asyncio
import json
import os
import sys

import apsw
from faulty_disk import FaultyDisk
from torture_kit import memory_at, say

from firnline.log.tokens import counter


def forked(coroutine):
    """Run in a child, because a process that opened a database must not fork."""
    pid = os.fork()
    if pid:
        return pid
    try:
        asyncio.run(coroutine())
        os._exit(0)
    except BaseException as error:
        say("error", repr(error))
        raise
    finally:
        os._exit(1)


def erase(path, conversation, nth, span):
    async def run():
        disk = FaultyDisk()
        apsw.set_default_vfs(disk.name)  # so that page checksums are written through it
        async with memory_at(path) as memory:
            disk.on(("write", "sync", "truncate"), "any", nth, "kill")
            if span is None:
                await memory.erase(conversation)
            else:
                await memory.erase_messages(conversation, *span)
            disk.off()

    _, status = os.waitpid(forked(run), 0)
    say("killed" if os.WIFSIGNALED(status) else "finished")


def open_store(path, conversations):
    """Returns how to close it."""
    until_told, tell = os.pipe()

    async def run():
        os.close(tell)
        async with memory_at(path) as memory:
            there = [name for name in conversations if await memory.head(name)]
            whole = all([(await memory.verify(name)).ok for name in there])
            say("opened", there, whole)
            os.read(until_told, 1)

    pid = forked(run)
    os.close(until_told)

    def close():
        os.close(tell)
        os.waitpid(pid, 0)
        say("closed")

    return close


def main():
    counter().text("load the tokenizer before the first fork")
    close = None
    for line in sys.stdin:
        order = json.loads(line)
        if "erase" in order:
            erase(order["erase"], order["conversation"], order["nth"], order.get("span"))
        elif "open" in order:
            close = open_store(order["open"], order["conversations"])
        else:
            close()


if __name__ == "__main__":
    main()
