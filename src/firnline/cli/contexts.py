"""The commands of contexts: what a model would see, how it is planned, what is always in it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any, Final

from firnline.cli.arguments import Command
from firnline.cli.open import known_to, with_memory
from firnline.cli.output import entry_json, human_entry, human_message, print_json
from firnline.cli.terminal import plain, table
from firnline.context.budget import Budget
from firnline.context.context import Context, Piece, Section
from firnline.errors import InputError
from firnline.log.entry import Entry, Head
from firnline.log.tokens import DEFAULT_MODEL
from firnline.memory import Memory
from firnline.strategies import STRATEGIES
from firnline.strategies import strategy as strategy_named

# -- context ----------------------------------------------------------------------------------


def _context(options: argparse.Namespace) -> None:
    budget = _budget(options)

    async def build(memory: Memory) -> tuple[Context, int]:
        await known_to(memory, options.conversation)
        built = await memory.context(
            options.conversation, budget, options.question, system=options.system
        )
        return built, memory.events.get("fold", 0)

    context, folded = with_memory(options, build)
    if options.openai or options.anthropic:
        print_json(context.to_openai() if options.openai else context.to_anthropic())
    elif options.json:
        print_json(_context_json(context))
    elif options.explain:
        print(plain(context.explain()))
    else:
        _print_context(context)
    if folded and not options.json:
        made = "1 digest was" if folded == 1 else f"{folded:,} digests were"
        print(f"({made} due and made offline; `firnline digests` shows them)", file=sys.stderr)


def _budget(options: argparse.Namespace) -> Budget:
    """What the options say: tokens, a model's window, or the window of the usual model."""
    if options.budget is None:
        return Budget.of(options.model or DEFAULT_MODEL, reserve_tokens=options.reserve)
    return Budget(options.budget, options.reserve or 0, model=options.model)


def _print_context(context: Context) -> None:
    """The messages in the order in which they are sent, under their sections, and a summary."""
    names = {id(piece): section.name for section in context.sections for piece in section.pieces}
    for name, pieces in groupby(context.pieces, key=lambda piece: names[id(piece)]):
        print(f"── {name} " + "─" * (40 - len(name)))
        for piece in pieces:
            print(_human_piece(piece))
    print()
    print(table(("section", "messages", "tokens", "what"), _rows(context), right=(1, 2)))
    for why in context.degraded:
        print(plain(f"degraded: {why}"))


def _human_piece(piece: Piece) -> str:
    if piece.entry is None:
        return human_message(piece.message)
    return human_message(piece.message, str(piece.entry.seq))


def _rows(context: Context) -> list[tuple[str, str, str, str]]:
    rows: list[tuple[str, str, str, str]] = [
        (section.name, f"{len(section.pieces):,}", f"{section.tokens:,}", _what(section))
        for section in context.sections
    ]
    if context.tools_tokens:
        rows.append(("tools", "", f"{context.tools_tokens:,}", ""))
    rows.append(("framing", "", f"{context.framing_tokens:,}", ""))
    total = f"of {context.budget.limit:,}, strategy {context.strategy}"
    return [*rows, ("all", f"{len(context.pieces):,}", f"{context.tokens:,}", total)]


_ABOUT: Final = {
    "system": "instructions",
    "pinned": "pinned entries, word for word",
    "task": "the task at hand",
    "important": "important data, each item with evidence",
    "recent": "the newest entries, word for word",
}


def _what(section: Section) -> str:
    return section.why or _ABOUT.get(section.name, "")


def _context_json(context: Context) -> dict[str, Any]:
    sections = [
        {
            "name": section.name,
            "tokens": section.tokens,
            "seqs": [entry.seq for entry in section.entries],
            "why": section.why,
        }
        for section in context.sections
    ]
    return {
        "conversation": context.conversation,
        "strategy": context.strategy,
        "budget": asdict(context.budget),
        "tokens": context.tokens,
        "sections": sections,
        "seqs": context.seqs,
        "accounting": asdict(context.accounting),
        "left_out": [left._asdict() for left in context.left_out],
        "degraded": context.degraded,
        "messages": context.to_openai(),
    }


# -- strategy ---------------------------------------------------------------------------------


def _strategy(options: argparse.Namespace) -> None:
    head, stored = with_memory(options, lambda memory: _chosen(memory, options))
    own = "name" in (head.strategy or {})
    if options.json:
        fields = {"strategy": stored["name"], "parameters": stored["parameters"], "own": own}
        print_json({"conversation": options.conversation, **fields})
        return
    whose = "" if own else " (the default)"
    print(plain(f"{options.conversation}: {stored['name']}{whose}"))
    print(
        table(("parameter", "value"), [(n, json.dumps(v)) for n, v in stored["parameters"].items()])
    )
    made = STRATEGIES.get(stored["name"])
    if made is not None and made().background:
        print(
            "Its digests are made in the background: by `firnline worker`, or by "
            "`firnline digest` at once."
        )


async def _chosen(memory: Memory, options: argparse.Namespace) -> tuple[Head, dict[str, Any]]:
    """The conversation and its strategy, after it was set if it was to be."""
    head = await known_to(memory, options.conversation)
    if len(options.name) > 1:
        raise InputError(f"one strategy, not {len(options.name)}: {', '.join(options.name)}")
    if options.name or options.set:
        before = (await memory.strategy(options.conversation)).to_json()
        name = options.name[0] if options.name else str(before["name"])
        kept = {} if options.name else _parameters(before)
        chosen = strategy_named(name, {**kept, **_settings(options.set)})
        head = await memory.set_strategy(options.conversation, chosen)
    stored = (await memory.strategy(options.conversation)).to_json()
    return head, {"name": str(stored["name"]), "parameters": _parameters(stored)}


def _parameters(stored: dict[str, Any]) -> dict[str, Any]:
    found = stored.get("parameters")
    return found if isinstance(found, dict) else {}


def _settings(pairs: Sequence[str]) -> dict[str, Any]:
    """key=value pairs; a value is JSON if it can be, and text otherwise."""
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise InputError(f"--set takes key=value, not {pair!r}")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


# -- pins -------------------------------------------------------------------------------------


def _pin(options: argparse.Namespace) -> None:
    if not options.seqs:
        _show_pins(options)
        return
    _change_pins(options, pinned=True)


def _unpin(options: argparse.Namespace) -> None:
    _change_pins(options, pinned=False)


def _change_pins(options: argparse.Namespace, *, pinned: bool) -> None:
    seqs = [_number(word) for word in options.seqs]

    async def change(memory: Memory) -> None:
        await known_to(memory, options.conversation)
        for seq in seqs:
            await (memory.pin if pinned else memory.unpin)(options.conversation, seq)

    with_memory(options, change)
    what = "is in every context from now on" if pinned else "is treated like any other again"
    for seq in seqs:
        if options.json:
            print_json({"conversation": options.conversation, "seq": seq, "pinned": pinned})
        else:
            print(plain(f"{options.conversation}: entry {seq} {what}"))


def _number(word: str) -> int:
    if not word.isdecimal():
        raise InputError(f"{word!r} is not an entry's number; `firnline show` prints them")
    return int(word)


def _show_pins(options: argparse.Namespace) -> None:
    async def pins(memory: Memory) -> list[Entry]:
        await known_to(memory, options.conversation)
        return await memory.pinned(options.conversation)

    found = with_memory(options, pins)
    for entry in found:
        if options.json:
            print_json(entry_json(entry))
        else:
            print(human_entry(entry))
    if not found and not options.json:
        print("Nothing is pinned.")


# -- the grammar ------------------------------------------------------------------------------


def add(command: Command) -> None:
    """Tell the parser of these commands."""
    _add_context(command)
    strategy = command("strategy", _strategy, "Show or set how contexts are planned.", "name")
    strategy.add_argument("conversation")
    strategy.add_argument("name", nargs="*", metavar="NAME", help=", ".join(STRATEGIES))
    strategy.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="a parameter; repeatable"
    )

    pin = command("pin", _pin, "Show entries in every context; without any, list them.", "seqs")
    pin.add_argument("conversation")
    pin.add_argument("seqs", nargs="*", metavar="SEQ", help="the entry's number")

    unpin = command("unpin", _unpin, "Treat pinned entries like any other again.", "seqs")
    unpin.add_argument("conversation")
    unpin.add_argument("seqs", nargs="+", metavar="SEQ", help="the entry's number")


def _add_context(command: Command) -> None:
    context = command(
        "context", _context, "Print what a model would see; digests that are due are made first."
    )
    context.add_argument("conversation")
    context.add_argument(
        "--budget", type=int, metavar="TOKENS", help="the window (default: that of --model)"
    )
    context.add_argument(
        "--reserve", type=int, metavar="TOKENS", help="of it, kept free for the answer"
    )
    context.add_argument(
        "--model", metavar="NAME", help="whose tokens are counted (default: the store's)"
    )
    context.add_argument("--question", metavar="TEXT", help="recall old entries that fit it")
    context.add_argument("--system", metavar="TEXT", help="instructions to put first")
    shape = context.add_mutually_exclusive_group()
    shape.add_argument("--explain", action="store_true", help="what is in and out, and why")
    shape.add_argument("--openai", action="store_true", help="the messages as OpenAI takes them")
    shape.add_argument("--anthropic", action="store_true", help="as Anthropic takes them")
