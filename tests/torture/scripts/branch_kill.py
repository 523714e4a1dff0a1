"""Branches in a process that is killed at the N-th operation on the disk, then does so again.

Orders on stdin: {"path": path, "seq": seq, "nth": n}. Answers whether the first was killed, and
what the same call gave afterwards.
"""

import json
import os
import sys

import apsw
from erase_kill import forked
from faulty_disk import FaultyDisk
from torture_kit import memory_at, say

from firnline.log import limits
from firnline.log.tokens import counter


async def first(path, seq, nth):
    disk = FaultyDisk()
    apsw.set_default_vfs(disk.name)  # so that page checksums are written through it
    async with memory_at(path) as memory:
        disk.on(("write", "sync", "truncate"), "any", nth, "kill")
        await memory.branch("c", seq, "d")
        disk.off()


async def again(path, seq, killed):
    async with memory_at(path) as memory:
        half = await memory.head("d")
        made = await memory.branch("c", seq, "d")
        source, copy = await memory.read("c", last_seq=seq), await memory.read("d")
        same = [(e.message, e.tokens) for e in source] == [(e.message, e.tokens) for e in copy]
        whole = bool(await memory.verify("c")) and bool(await memory.verify("d"))
        digests = [digest.version for digest in await memory.digests("d")]
        say(killed, half.entries if half else 0, same and whole, made.metadata, digests)


def main():
    counter().text("load the tokenizer before the first fork")
    limits.READ_PAGE = 7
    for line in sys.stdin:
        order = json.loads(line)
        path, seq = order["path"], order["seq"]
        pid = forked(lambda path=path, seq=seq, nth=order["nth"]: first(path, seq, nth))
        _, status = os.waitpid(pid, 0)
        killed = os.WIFSIGNALED(status)
        os.waitpid(forked(lambda path=path, seq=seq, killed=killed: again(path, seq, killed)), 0)


if __name__ == "__main__":
    main()
