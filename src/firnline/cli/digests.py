"""The commands of digests: list, show, compare, take back, make, and read what they cover."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Collection, Sequence
from dataclasses import asdict
from typing import Any

from firnline.cli.arguments import Command, add_writer
from firnline.cli.open import known, known_to, open_memory, with_memory
from firnline.cli.output import entry_json, human_entry, print_json, progress_on
from firnline.cli.terminal import cut, plain, table
from firnline.digest import items
from firnline.digest.receipt import describe
from firnline.errors import InputError
from firnline.log.entry import Digest
from firnline.memory import Memory
from firnline.protocols import Event

# -- looking at them --------------------------------------------------------------------------


def _digests(options: argparse.Namespace) -> None:
    with open_memory(options) as memory:
        known(memory, options.conversation)
        if options.diff:
            difference = memory.diff(options.conversation, *options.diff)
            if options.json:
                print_json(asdict(difference))
            else:
                print(plain(str(difference)))
            return
        found = memory.digests(options.conversation)
        force = {digest.version for digest in memory.in_force(options.conversation)}
    if options.show is None:
        _list(options, found, force)
        return
    chosen = [digest for digest in found if digest.version == options.show]
    if not chosen:
        raise InputError(f"{options.conversation} has no digest {options.show}")
    if options.json:
        print_json(_digest_json(chosen[0], force))
    else:
        print(plain(_whole(options.conversation, chosen[0], force)))


def _list(options: argparse.Namespace, found: Sequence[Digest], force: Collection[int]) -> None:
    if options.json:
        for digest in found:
            print_json(_digest_json(digest, force))
    elif found:
        names = ("version", "entries", "base", "status", "layer", "made by", "tokens", "ms", "text")
        rows = [_row(digest, force) for digest in found]
        print(table(names, rows, right=(0, 1, 2, 4, 6, 7)))
    else:
        print(
            "No digests yet: they are made when a context has no room for all messages. "
            f"Try: firnline context {options.conversation} --budget 1000"
        )


def _row(digest: Digest, force: Collection[int]) -> tuple[str, ...]:
    words = digest.error if digest.status == "failed" else digest.text
    return (
        str(digest.version),
        _span(digest),
        "" if digest.base is None else str(digest.base),
        _status(digest, force),
        str(digest.layer),
        digest.made_by,
        f"{digest.tokens:,}",
        f"{digest.milliseconds:,}",
        cut(" ".join(words.split()), 40),
    )


def _span(digest: Digest) -> str:
    return f"{digest.first_seq}-{digest.last_seq}" if digest.last_seq >= 0 else "none"


def _status(digest: Digest, force: Collection[int]) -> str:
    return "in force" if digest.version in force else digest.status


def _digest_json(digest: Digest, force: Collection[int]) -> dict[str, Any]:
    return {**asdict(digest), "in_force": digest.version in force}


# -- one of them as a whole -------------------------------------------------------------------


def _whole(conversation: str, digest: Digest, force: Collection[int]) -> str:
    made_of = ", ".join(map(str, digest.parts))
    facts = [
        _status(digest, force),
        f"layer {digest.layer}",
        f"based on {digest.base}" if digest.base is not None else "",
        f"made of {made_of}" if made_of else "",
        f"by {digest.made_by}" if digest.made_by else "",
        f"{digest.tokens:,} tokens",
        f"{digest.calls:,} calls" if digest.calls else "",
        f"{digest.milliseconds:,} ms",
        f"{digest.created_at:%Y-%m-%d %H:%M}" if digest.created_at else "",
    ]
    parts = [
        f"digest {digest.version} of {conversation}: entries {_span(digest)}",
        ", ".join(filter(None, facts)),
        _titled("Error", digest.error),
        _titled("Text", digest.text),
        _titled("Important data", "\n".join(map(_item, items.shown(items.from_json(digest.data))))),
        _titled("Set aside, for want of evidence", "\n".join(_aside(digest))),
        _titled("Receipt", describe(digest.receipt) if digest.receipt else ""),
    ]
    return "\n".join(filter(None, parts))


def _titled(title: str, text: str) -> str:
    return f"\n{title}\n{textwrap.indent(text, '  ')}" if text else ""


def _item(item: items.Item) -> str:
    """An item, and beneath it the entries that say it and their words."""
    name = f"{item.field} {item.name}".strip().replace("_", " ")
    entries = ", ".join(map(str, item.seqs))
    evidence = f'[{entries}] "{cut(item.quote, 200)}"' if item.seqs else "[the application]"
    gone = "" if item.superseded_by is None else f", replaced by {_replacement(item.superseded_by)}"
    return f"{name}: {item.value}\n  {evidence}{gone}"


def _replacement(seq: int) -> str:
    return f"[{seq}]" if seq >= 0 else "the application"


def _aside(digest: Digest) -> list[str]:
    lines = []
    for row in items.set_aside(digest.data):
        item = row.get("item")
        value = item.get("value") if isinstance(item, dict) else item
        lines.append(f"{value}: {row.get('reason')}")
    return lines


# -- taking back, reading what lies under -----------------------------------------------------


def _undo(options: argparse.Namespace) -> None:
    with open_memory(options) as memory:
        known(memory, options.conversation)
        undone = memory.undo(options.conversation)
        force = [digest.version for digest in memory.in_force(options.conversation)]
    if options.json:
        print_json({**_digest_json(undone, force), "now_in_force": force})
        return
    now = f"in force again: {', '.join(map(str, force))}" if force else "no digest is in force now"
    which = f"digest {undone.version} (entries {_span(undone)})"
    print(plain(f"{options.conversation}: {which} is undone and kept; {now}"))


def _expand(options: argparse.Namespace) -> None:
    with open_memory(options) as memory:
        known(memory, options.conversation)
        entries = memory.expand(options.conversation, options.version)
    for entry in entries:
        if options.json:
            print_json(entry_json(entry))
        else:
            print(human_entry(entry))


# -- making them ------------------------------------------------------------------------------


def _digest(options: argparse.Namespace) -> None:
    done = 0

    async def pay(memory: Memory) -> None:
        nonlocal done
        await known_to(memory, options.conversation)
        while made := await memory.digest(options.conversation):
            done += made

    with progress_on(f"digesting {options.conversation}") as progress:
        folds = 0

        def observe(event: Event) -> None:
            nonlocal folds
            folds += event.name == "fold"
            progress(folds, 0)

        with_memory(options, pay, observer=observe)
    if options.json:
        print_json({"conversation": options.conversation, "made": done})
    else:
        what = f"{done:,} made" if done else "nothing is owed"
        print(plain(f"digests of {options.conversation}: {what}"))


def _rebuild(options: argparse.Namespace) -> None:
    async def rebuild(memory: Memory) -> tuple[list[Digest], set[int]]:
        await known_to(memory, options.conversation)
        made = await memory.rebuild(options.conversation, only_offline=options.only_offline)
        return made, {digest.version for digest in await memory.in_force(options.conversation)}

    with progress_on(f"rebuilding {options.conversation}") as progress:
        progress(0, 0)
        made, force = with_memory(options, rebuild)
    if made or options.json:
        _list(options, made, force)
    else:
        print("Nothing was to be rebuilt.")


# -- the grammar ------------------------------------------------------------------------------


def add(command: Command) -> None:
    """Tell the parser of these commands."""
    digests = command("digests", _digests, "List the digests of a conversation, or show one.")
    digests.add_argument("conversation")
    digests.add_argument(
        "--show", type=int, metavar="VERSION", help="one as a whole, with evidence and receipt"
    )
    digests.add_argument(
        "--diff", type=int, nargs=2, metavar=("A", "B"), help="what changed from one to another"
    )

    undo = command("undo", _undo, "Take the newest digest out of force; it is kept.")
    undo.add_argument("conversation")

    expand = command("expand", _expand, "Print the entries that a digest covers, word for word.")
    expand.add_argument("conversation")
    expand.add_argument("version", type=int)

    digest = command("digest", _digest, "Make the digests that are owed to a conversation, now.")
    digest.add_argument("conversation")
    add_writer(digest)

    rebuild = command("rebuild", _rebuild, "Make the digests in force anew from the log.")
    rebuild.add_argument("conversation")
    rebuild.add_argument(
        "--only-offline", action="store_true", help="only those that no model had a hand in"
    )
    add_writer(rebuild)
