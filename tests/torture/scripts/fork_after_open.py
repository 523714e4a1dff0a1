"""Forks with a store open, which SQLite does not allow: ``fork_after_open.py PATH``."""

import asyncio
import os
import sys

from torture_kit import memory_at, said, say

from firnline.errors import FirnlineError


def outcome(loop, awaitable):
    try:
        loop.run_until_complete(asyncio.wait_for(awaitable, 20))
    except FirnlineError as error:
        return error.code
    return "done"


def main():
    loop = asyncio.new_event_loop()
    memory = memory_at(sys.argv[1])
    loop.run_until_complete(memory.start())
    loop.run_until_complete(memory.append("a", said(["before the fork"])))
    loop.run_until_complete(memory.read("a"))
    pid = os.fork()
    if pid == 0:
        child = asyncio.new_event_loop()
        tries = (memory.append("a", said(["in the child"])), memory.read("a"), memory.verify("a"))
        say("child", [outcome(child, attempt) for attempt in tries])
        say("child closes", outcome(child, memory.close()))
        child.close()
        # Not sys.exit: it would tidy up the parent's event loop, whose epoll is shared with it.
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    say("parent", os.waitstatus_to_exitcode(status))
    say("parent", outcome(loop, memory.append("a", said(["after the fork"]))))
    sys.stdin.readline()  # the parent process may look at the locks
    loop.run_until_complete(memory.close())
    loop.close()


if __name__ == "__main__":
    main()
