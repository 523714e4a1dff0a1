"""The commands of the log: add to it, show it, branch it, verify it."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from typing import TextIO

from firnline.cli.arguments import Command, count
from firnline.cli.open import all_heads, known, open_memory
from firnline.cli.output import entry_json, head_json, human_entry, print_json, progress_on
from firnline.cli.terminal import plain, table
from firnline.errors import InputError
from firnline.log.message import ROLES, Message
from firnline.log.wire import load_json, load_openai


def _append(options: argparse.Namespace) -> None:
    text = " ".join(options.text) if options.text else _standard_input().read().removesuffix("\n")
    if options.openai:
        messages = load_openai(load_json(text))
    else:
        if not text and not options.text:
            raise InputError("there is no message: give one, or pipe one in")
        messages = [Message(options.role, text, options.name, tool_call_id=options.tool_call_id)]
    with open_memory(options, create=True) as memory:
        appended = memory.append(
            options.conversation, messages, idempotency_key=options.idempotency_key
        )
    again = ", stored before" if appended.replayed else ""
    for entry in appended:
        if options.json:
            print_json({**entry_json(entry), "replayed": appended.replayed})
        else:
            print(f"{options.conversation} {entry.seq}: {entry.tokens} tokens, {entry.hash}{again}")


def _standard_input() -> TextIO:
    if sys.stdin.isatty():
        print("The message, ended by Ctrl-D:", file=sys.stderr)
    return sys.stdin


def _show(options: argparse.Namespace) -> None:
    with open_memory(options) as memory:
        head = known(memory, options.conversation)
        first = options.first
        if not options.all:
            first = max(first, head.entries - options.last)
        for start in range(first, head.entries, 1_000):
            for entry in memory.read(options.conversation, first_seq=start, limit=1_000):
                if options.json:
                    print_json(entry_json(entry))
                else:
                    print(human_entry(entry))
        if not options.json and first > options.first:
            print(f"({first:,} earlier entries; --all shows them)", file=sys.stderr)


def _conversations(options: argparse.Namespace) -> None:
    rows = []
    with open_memory(options) as memory:
        for head in all_heads(memory, options.project):
            if options.json:
                print_json(head_json(head))
            rows.append(
                (
                    head.conversation,
                    f"{head.entries:,}",
                    f"{head.archived:,}",
                    f"{head.tokens:,}",
                    f"{head.updated_at:%Y-%m-%d %H:%M}",
                    head.project or "",
                )
            )
    if not options.json and rows:
        names = ("conversation", "entries", "archived", "tokens", "last message", "project")
        print(table(names, rows, right=(1, 2, 3)))
    elif not options.json and options.project:
        print(plain(f"No conversations of the project {options.project}."))
    elif not options.json:
        print("No conversations yet. Try: firnline append hello 'My first message'")


def _branch(options: argparse.Namespace) -> None:
    with open_memory(options) as memory:
        head = memory.branch(options.conversation, options.seq, options.name)
    if options.json:
        print_json(head_json(head))
    else:
        whence = f"{options.conversation} up to entry {options.seq}"
        print(plain(f"{head.conversation}: {head.entries:,} entries; begins as {whence} did"))


def _verify(options: argparse.Namespace) -> int:
    damaged = 0
    if options.anchor and len(options.conversations) != 1:
        raise InputError("--anchor belongs to one conversation: name it")
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
    if not options.json:
        whole = len(names) - damaged
        print(f"{whole:,} of {len(names):,} conversations whole" + (", DAMAGE" * bool(damaged)))
    return 1 if damaged else 0


def add(command: Command) -> None:
    """Tell the parser of these commands."""
    append = command("append", _append, "Add a message; durable when this returns.", "text")
    append.add_argument("conversation")
    append.add_argument(
        "text", nargs="*", help="the message; without it, standard input (less its last newline)"
    )
    append.add_argument("--openai", action="store_true", help="the text is JSON: OpenAI messages")
    append.add_argument("--role", choices=ROLES, default="user")
    append.add_argument("--name", help="who speaks")
    append.add_argument("--tool-call-id", help="for --role tool: the call this answers")
    append.add_argument("--idempotency-key", metavar="KEY", help="a retry with it adds nothing")

    show = command("show", _show, "Print a conversation, word for word.")
    show.add_argument("conversation")
    show.add_argument(
        "--last", type=count, default=50, help="so many entries (default: %(default)s)"
    )
    show.add_argument("--all", action="store_true", help="all of them")
    show.add_argument("--first", type=count, default=0, metavar="SEQ", help="from this entry on")

    conversations = command("conversations", _conversations, "List the conversations.")
    conversations.add_argument("--project", help="only those of this project")

    branch = command("branch", _branch, "Begin a new conversation as another one began.")
    branch.add_argument("conversation")
    branch.add_argument("seq", type=int, help="the last entry that both have")
    branch.add_argument("name", help="what the new conversation is called")

    verify = command("verify", _verify, "Derive every hash again.", "conversations")
    verify.add_argument("conversations", nargs="*", help="which ones; without any, all")
    verify.add_argument("--anchor", metavar="HASH", help="a hash noted earlier; must be in the log")
