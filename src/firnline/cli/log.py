"""The commands for the log: append, show, conversations, branch, verify."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from functools import partial
from typing import Final, TextIO

from firnline import memory as asynchronous
from firnline.cli.arguments import Command, count
from firnline.cli.open import all_heads, existing_head, open_memory, with_memory
from firnline.cli.output import entry_json, entry_text, head_json, print_json, progress_on
from firnline.cli.terminal import cut, plain, table
from firnline.errors import InputError
from firnline.log.entry import Head
from firnline.log.message import ROLES, Message
from firnline.log.text import plural
from firnline.log.wire import load_json, load_openai
from firnline.protocols import Finding
from firnline.server.titles import titles_of
from firnline.sync import Memory

_TITLE: Final = 48


def _append(options: argparse.Namespace) -> None:
    text = " ".join(options.text) if options.text else _standard_input().read().removesuffix("\n")
    if options.openai:
        messages = load_openai(load_json(text))
    else:
        if not text and not options.text:
            raise InputError("the message is empty; pass it as an argument or on standard input")
        messages = [Message(options.role, text, options.name, tool_call_id=options.tool_call_id)]
    with open_memory(options, create=True) as memory:
        appended = memory.append(
            options.conversation,
            messages,
            idempotency_key=options.idempotency_key,
            person=options.person,
        )
    again = ", already stored" if appended.replayed else ""
    for entry in appended:
        if options.json:
            print_json({**entry_json(entry), "replayed": appended.replayed})
        else:
            tokens = plural(entry.tokens, "token")
            print(f"{options.conversation} {entry.seq}: {tokens}, {entry.hash}{again}")


def _standard_input() -> TextIO:
    if sys.stdin.isatty():
        print("Type the message; end it with Ctrl-D:", file=sys.stderr)
    return sys.stdin


def _show(options: argparse.Namespace) -> None:
    with open_memory(options) as memory:
        head = existing_head(memory, options.conversation)
        first = options.first
        if not options.all:
            first = max(first, head.entries - options.last)
        for start in range(first, head.entries, 1_000):
            for entry in memory.read(options.conversation, first_seq=start, limit=1_000):
                if options.json:
                    print_json(entry_json(entry))
                else:
                    print(entry_text(entry))
        if not options.json and first > options.first:
            print(f"({plural(first, 'earlier message')}; show them with --all)", file=sys.stderr)


def _conversations(options: argparse.Namespace) -> None:
    rows = []
    for head, title in with_memory(options, partial(_list_newest, options)):
        if options.json:
            print_json({**head_json(head), "title": title})
        rows.append(
            (
                head.conversation,
                plain(cut(title, _TITLE)),
                f"{head.entries:,}",
                f"{head.archived:,}",
                f"{head.tokens:,}",
                f"{head.updated_at:%Y-%m-%d %H:%M}",
                head.project or "",
            )
        )
    if not options.json and rows:
        names = (
            "conversation",
            "title",
            "messages",
            "archived",
            "tokens",
            "last message",
            "project",
        )
        print(table(names, rows, right=(2, 3, 4)))
    elif not options.json and options.project:
        print(plain(f"No conversations in the project {options.project}."))
    elif not options.json:
        print("No conversations yet. Try: firnline append hello 'My first message'")


async def _list_newest(
    options: argparse.Namespace, memory: asynchronous.Memory
) -> list[tuple[Head, str]]:
    """The conversations with their titles, the newest first."""
    shown: list[tuple[Head, str]] = []
    after = None
    while page := await memory.recent(project=options.project, after=after, limit=1_000):
        heads = [head for head in page if options.all or not head.has_failed]
        heads = [head for head in heads if options.person in (None, head.person)]
        shown += zip(heads, await titles_of(memory, heads), strict=True)
        after = page[-1]
    return shown


def _title(options: argparse.Namespace) -> None:
    with open_memory(options) as memory:
        head = existing_head(memory, options.conversation)
        title = " ".join(options.title)
        head = memory.describe(options.conversation, metadata={**head.metadata, "title": title})
    if options.json:
        print_json(head_json(head))


def _branch(options: argparse.Namespace) -> None:
    with open_memory(options) as memory:
        head = memory.branch(options.conversation, options.seq, options.name)
    if options.json:
        print_json(head_json(head))
    else:
        source = f"{options.conversation} up to message {options.seq}"
        copied = plural(head.entries, "message")
        print(plain(f"{head.conversation}: {copied}, copied from {source}"))


def _verify(options: argparse.Namespace) -> int:
    damaged = 0
    if options.anchor and len(options.conversations) != 1:
        raise InputError("--anchor needs exactly one conversation; name it")
    with open_memory(options) as memory:
        names = options.conversations or [head.conversation for head in all_heads(memory, None)]
        for name in names:
            with progress_on(f"verifying {name}") as progress:
                result = memory.verify(name, anchor=options.anchor, progress=progress)
            damaged += not result.ok
            if options.json:
                problems = [str(problem) for problem in result.problems]
                print_json({**asdict(result), "ok": result.ok, "problems": problems})
            else:
                print(plain(str(result)))
        broken = [] if options.conversations else _broken(memory)
    for finding in broken:
        if options.json:
            print_json(finding._asdict())
        else:
            print(plain(f"{finding.what}: {finding.detail}"))
    if not options.json:
        intact = len(names) - damaged
        print(
            f"{intact:,} of {len(names):,} conversations intact"
            + ", DAMAGE" * bool(damaged or broken)
        )
    return 1 if damaged or broken else 0


def _broken(memory: Memory) -> list[Finding]:
    """What is broken in the store itself: pages, indexes, rows outside the log."""
    with progress_on("checking the store"):
        found = memory.check(thorough=True)
    return [finding for finding in found if finding.state == "broken"]


def add(command: Command) -> None:
    """Add these commands to the parser."""
    append = command(
        "append", _append, "Append a message; it is on disk when the command returns.", "text"
    )
    append.add_argument("conversation", help="created if it does not exist")
    append.add_argument(
        "text", nargs="*", help="the message (default: standard input, without its last newline)"
    )
    append.add_argument(
        "--openai", action="store_true", help="the text is JSON: one or more OpenAI messages"
    )
    append.add_argument("--role", choices=ROLES, default="user", help="default: %(default)s")
    append.add_argument("--name", help="the speaker's name")
    append.add_argument(
        "--tool-call-id", help="for --role tool: the call that this is the result of"
    )
    append.add_argument(
        "--idempotency-key", metavar="KEY", help="a retry with the same key does not append again"
    )
    append.add_argument("--person", help="whom the conversation is with")

    _add_lists(command)
    branch = command(
        "branch", _branch, "Create a conversation that starts with the messages of another one."
    )
    branch.add_argument("conversation")
    branch.add_argument("seq", type=int, help="the number of the last message to copy")
    branch.add_argument("name", help="the name of the new conversation")

    verify = command(
        "verify",
        _verify,
        "Check every hash of conversations; finds any change or damage.",
        "conversations",
    )
    verify.add_argument("conversations", nargs="*", help="default: all")
    verify.add_argument(
        "--anchor",
        metavar="HASH",
        help="a hash that you noted earlier; fails if it is not in the log",
    )


def _add_lists(command: Command) -> None:
    show = command("show", _show, "Print the messages of a conversation.")
    show.add_argument("conversation")
    show.add_argument(
        "--last",
        type=count,
        default=50,
        metavar="N",
        help="only the newest N (default: %(default)s)",
    )
    show.add_argument("--all", action="store_true", help="all messages")
    show.add_argument(
        "--first", type=count, default=0, metavar="SEQ", help="from this message number on"
    )

    conversations = command(
        "conversations", _conversations, "List the conversations, the newest first."
    )
    conversations.add_argument("--project", help="only conversations of this project")
    conversations.add_argument("--person", help="only conversations with this person")
    conversations.add_argument(
        "--all", action="store_true", help="also requests to a model that failed"
    )
    title = command("title", _title, "Name a conversation; by default it is its first message.")
    title.add_argument("conversation")
    title.add_argument("title", nargs="+")
