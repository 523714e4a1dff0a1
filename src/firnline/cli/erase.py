"""The command `erase`: a conversation, some of its messages, or old messages."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from firnline.cli.arguments import Command
from firnline.cli.open import existing_head, open_memory
from firnline.cli.output import report
from firnline.cli.terminal import plain
from firnline.errors import InputError
from firnline.log.entry import Erased
from firnline.log.message import ROLES, format_time, utc_now
from firnline.log.text import plural
from firnline.sync import Memory


def _erase(options: argparse.Namespace) -> None:
    until = None if options.older_than is None else utc_now() - options.older_than
    if options.conversation is None and until is None:
        raise InputError("name a conversation, or use --older-than for all of them")
    if options.conversation is not None and options.project is not None:
        raise InputError("use either a conversation or --project")
    with open_memory(options) as memory:
        if options.conversation is None:
            done = _erase_everywhere(memory, options, until)
        else:
            done = [_erase_in(memory, options, until)]
    for erased in done:
        _report(options, erased)
    if not done and not options.json:
        print("nothing was that old")


def _erase_in(memory: Memory, options: argparse.Namespace, until: datetime | None) -> Erased:
    """Erase a conversation, or some of its messages."""
    name, head = options.conversation, existing_head(memory, options.conversation)
    part = options.messages is not None or options.role is not None or until is not None
    first, last = options.messages or (None, None)
    if first is not None and first > head.seq:
        raise InputError(f"{name} has no message {first}")
    what = _described(options, plural(head.entries, "message")) + f" of {name!r}"
    _confirm(options, what, name, () if options.yes else memory.branches(name))
    if not part:
        return memory.erase(name, branches=options.with_branches)
    rule: dict[str, Any] = {"role": options.role, "until": until}
    return memory.erase_messages(name, first, last, **rule, branches=options.with_branches)


def _erase_everywhere(
    memory: Memory, options: argparse.Namespace, until: datetime | None
) -> list[Erased]:
    """Erase old messages of all conversations, or of a project's."""
    if options.messages is not None or until is None:
        raise InputError("name the conversation of these messages")
    where = f"of the project {options.project!r}" if options.project else "of all conversations"
    _confirm(options, f"{_described(options, 'messages')} {where}", "erase", ())
    return memory.erase_before(
        until, project=options.project, role=options.role, branches=options.with_branches
    )


def _described(options: argparse.Namespace, everything: str) -> str:
    """What is erased, for the question."""
    span = options.messages
    what = everything if span is None else "messages {} to {}".format(*span)
    role = f" by {options.role}" if options.role else ""
    old = f" from before {options.older_than.days} days ago" if options.older_than else ""
    return f"{what}{role}{old}"


def _confirm(options: argparse.Namespace, what: str, word: str, copies: Sequence[str]) -> None:
    """Raise `InputError` unless it is confirmed."""
    if options.yes:
        return
    if sys.stdin.isatty():
        fate = "erased with it" if options.with_branches else "not erased without --with-branches"
        _print_names(f"hold copies of its messages and are {fate}", copies)
        asked = "Type its name" if word == options.conversation else f"Type {word!r}"
        if input(f"Erase {what} for good? {asked}: ").strip() == word:
            return
    raise InputError("nothing was erased; use --yes to erase without confirmation")


def _report(options: argparse.Namespace, erased: Erased) -> None:
    fields = {**asdict(erased), "erased_at": format_time(erased.erased_at)}
    report(options, f"{erased.conversation} erased: ", fields, ("entries", "digests", "tokens"))
    if not options.json:
        _print_names("erased with it", erased.branches)
        _print_names("still hold copies of its messages", erased.survives)


def _print_names(what: str, names: Sequence[str]) -> None:
    if names:
        print(plain(f"{what}: {', '.join(names)}"))


def _span(text: str) -> tuple[int, int]:
    """Parse ``SEQ`` or ``FIRST-LAST``."""
    first, _, last = text.partition("-")
    if not all(part.isascii() and part.isdecimal() for part in (first, last or first)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number or a span like 3-7")
    return int(first), int(last or first)


def _age(text: str) -> timedelta:
    """Parse a number of days, such as ``90d``."""
    days = text.removesuffix("d")
    if not (days.isascii() and days.isdecimal() and int(days)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of days like 90d")
    return timedelta(days=int(days))


def add(command: Command) -> None:
    """Add this command to the parser."""
    erase = command(
        "erase", _erase, "Delete a conversation, or some messages, with all derived data, for good."
    )
    erase.add_argument("conversation", nargs="?")
    erase.add_argument(
        "messages", nargs="?", type=_span, metavar="SEQ|FIRST-LAST", help="only these messages"
    )
    erase.add_argument(
        "--older-than", type=_age, metavar="DAYS", help="only older messages, such as 90d"
    )
    erase.add_argument("--role", choices=ROLES, help="only messages of this role")
    erase.add_argument("--project", help="with --older-than: only conversations of this project")
    erase.add_argument(
        "--with-branches", action="store_true", help="also erase the copies in other conversations"
    )
    erase.add_argument("--yes", action="store_true", help="do not ask for confirmation")
