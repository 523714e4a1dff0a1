"""The commands for digests: list, show, compare, undo, create, and expand them."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Collection, Sequence
from dataclasses import asdict
from typing import Any

from firnline.cli.arguments import Command, add_model_options
from firnline.cli.open import existing_head, existing_head_async, open_memory, with_memory
from firnline.cli.output import entry_json, entry_text, print_json, progress_on
from firnline.cli.terminal import cut, plain, table
from firnline.digest import items
from firnline.digest.receipt import describe
from firnline.errors import InputError
from firnline.log.entry import Digest
from firnline.log.text import plural
from firnline.memory import Memory
from firnline.protocols import Event

# -- list and show ----------------------------------------------------------------------------


def _digests(options: argparse.Namespace) -> None:
    with open_memory(options) as memory:
        existing_head(memory, options.conversation)
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
        print(plain(_detail_text(options.conversation, chosen[0], force)))


def _list(options: argparse.Namespace, found: Sequence[Digest], force: Collection[int]) -> None:
    if options.json:
        for digest in found:
            print_json(_digest_json(digest, force))
    elif found:
        names = ("digest", "messages", "base", "status", "layer", "made by", "tokens", "ms", "text")
        rows = [_row(digest, force) for digest in found]
        print(table(names, rows, right=(0, 1, 2, 4, 6, 7)))
    else:
        print(
            "No digests yet: they are created when a context has no room for all messages. "
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


# -- one digest in detail ---------------------------------------------------------------------


def _detail_text(conversation: str, digest: Digest, force: Collection[int]) -> str:
    made_of = ", ".join(map(str, digest.parts))
    facts = [
        _status(digest, force),
        f"layer {digest.layer}",
        f"based on {digest.base}" if digest.base is not None else "",
        f"made of {made_of}" if made_of else "",
        f"by {digest.made_by}" if digest.made_by else "",
        plural(digest.tokens, "token"),
        plural(digest.calls, "call") if digest.calls else "",
        f"{digest.milliseconds:,} ms",
        f"{digest.created_at:%Y-%m-%d %H:%M}" if digest.created_at else "",
    ]
    parts = [
        f"digest {digest.version} of {conversation}: messages {_span(digest)}",
        ", ".join(filter(None, facts)),
        _section("Error", digest.error),
        _section("Text", digest.text),
        _section(
            "Important data",
            "\n".join(map(item_text, items.items_with_speakers(items.from_json(digest.data)))),
        ),
        _section("Set aside, no evidence", "\n".join(_aside(digest))),
        _section("Receipt", describe(digest.receipt) if digest.receipt else ""),
    ]
    return "\n".join(filter(None, parts))


def _section(title: str, text: str) -> str:
    return f"\n{title}\n{textwrap.indent(text, '  ')}" if text else ""


def item_text(item: items.Item) -> str:
    """An item, and below it the messages that support it, with a quote."""
    name = f"{item.field} {item.name}".strip().replace("_", " ")
    seqs = ", ".join(map(str, item.seqs))
    evidence = f'[{seqs}] "{cut(item.quote, 200)}"' if item.seqs else "[the application]"
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


# -- undo and expand --------------------------------------------------------------------------


def _undo(options: argparse.Namespace) -> None:
    with open_memory(options) as memory:
        existing_head(memory, options.conversation)
        undone = memory.undo(options.conversation)
        force = [digest.version for digest in memory.in_force(options.conversation)]
    if options.json:
        print_json({**_digest_json(undone, force), "now_in_force": force})
        return
    now = f"in force now: {', '.join(map(str, force))}" if force else "no digest is in force now"
    which = f"digest {undone.version} (messages {_span(undone)})"
    print(plain(f"{options.conversation}: {which} is undone (it can still be read); {now}"))


def _expand(options: argparse.Namespace) -> None:
    with open_memory(options) as memory:
        existing_head(memory, options.conversation)
        entries = memory.expand(options.conversation, options.version)
    for entry in entries:
        if options.json:
            print_json(entry_json(entry))
        else:
            print(entry_text(entry))


# -- create and rebuild ------------------------------------------------------------------------


def _digest(options: argparse.Namespace) -> None:
    done = 0

    async def create(memory: Memory) -> None:
        nonlocal done
        await existing_head_async(memory, options.conversation)
        while made := await memory.digest(options.conversation):
            done += made

    with progress_on(f"digesting {options.conversation}") as progress:
        created = 0

        def observe(event: Event) -> None:
            nonlocal created
            created += event.name == "fold"
            progress(created, 0)

        with_memory(options, create, observer=observe)
    if options.json:
        print_json({"conversation": options.conversation, "made": done})
    else:
        what = f"{done:,} created" if done else "nothing is pending"
        print(plain(f"digests of {options.conversation}: {what}"))


def _rebuild(options: argparse.Namespace) -> None:
    async def rebuild(memory: Memory) -> tuple[list[Digest], set[int]]:
        await existing_head_async(memory, options.conversation)
        made = await memory.rebuild(options.conversation, only_offline=options.only_offline)
        return made, {digest.version for digest in await memory.in_force(options.conversation)}

    with progress_on(f"rebuilding {options.conversation}") as progress:
        progress(0, 0)
        made, force = with_memory(options, rebuild)
    if made or options.json:
        _list(options, made, force)
    else:
        print("Nothing to rebuild.")


# -- arguments --------------------------------------------------------------------------------


def add(command: Command) -> None:
    """Add these commands to the parser."""
    digests = command("digests", _digests, "List the digests of a conversation, or show one.")
    digests.add_argument("conversation")
    digests.add_argument(
        "--show", type=int, metavar="DIGEST", help="show one in full, with evidence and receipt"
    )
    digests.add_argument(
        "--diff",
        type=int,
        nargs=2,
        metavar=("A", "B"),
        help="show what changed from one digest to another",
    )

    undo = command("undo", _undo, "Undo the newest digest; contexts use the messages again.")
    undo.add_argument("conversation")

    expand = command("expand", _expand, "Print the messages that a digest covers.")
    expand.add_argument("conversation")
    expand.add_argument("version", type=int, metavar="digest")

    digest = command("digest", _digest, "Create the pending digests of a conversation now.")
    digest.add_argument("conversation")
    add_model_options(digest)

    rebuild = command("rebuild", _rebuild, "Rebuild the digests in force from the log.")
    rebuild.add_argument("conversation")
    rebuild.add_argument(
        "--only-offline", action="store_true", help="only digests that were created without a model"
    )
    add_model_options(rebuild)
