"""The commands for contexts: context, strategy, pin, unpin."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any, Final

from firnline.cli.arguments import Command
from firnline.cli.open import existing_head_async, with_memory
from firnline.cli.output import entry_json, entry_text, message_text, print_json
from firnline.cli.terminal import plain, table
from firnline.context.budget import Budget, window_of
from firnline.context.context import Context, Piece, Section
from firnline.errors import InputError
from firnline.log.entry import Entry, Head
from firnline.log.text import plural
from firnline.log.tokens import DEFAULT_MODEL
from firnline.memory import Memory
from firnline.strategies import STRATEGIES
from firnline.strategies import strategy as strategy_named

# -- context ----------------------------------------------------------------------------------


def _context(options: argparse.Namespace) -> None:
    budget = _budget(options)

    async def build(memory: Memory) -> tuple[Context, int]:
        await existing_head_async(memory, options.conversation)
        built = await memory.context(
            options.conversation, budget, options.question, system=options.system
        )
        return built, memory.events.get("fold", 0)

    context, created = with_memory(options, build)
    if options.openai or options.anthropic:
        print_json(context.to_openai() if options.openai else context.to_anthropic())
    elif options.json:
        print_json(_context_json(context))
    elif options.explain:
        print(plain(context.explain()))
    else:
        _print_context(context)
    if created and not options.json:
        digests = plural(created, "digest")
        print(f"({digests} created offline; list them with `firnline digests`)", file=sys.stderr)


def _budget(options: argparse.Namespace) -> Budget:
    """The budget of the options: tokens, a model's window, or that of the default model."""
    if options.budget is None:
        model = options.model or DEFAULT_MODEL
        if window_of(model) is None:
            raise InputError(f"--model: the window of {model!r} is unknown; pass --budget TOKENS")
        return Budget.of(model, reserve_tokens=options.reserve)
    return Budget(options.budget, options.reserve or 0, model=options.model)


def _print_context(context: Context) -> None:
    """Print the messages in the order they are sent, by section, and a summary."""
    names = {id(piece): section.name for section in context.sections for piece in section.pieces}
    for name, pieces in groupby(context.pieces, key=lambda piece: names[id(piece)]):
        print(f"── {name} " + "─" * (40 - len(name)))
        for piece in pieces:
            print(_piece_text(piece))
    print()
    print(table(("section", "messages", "tokens", "what"), _rows(context), right=(1, 2)))
    if context.estimate:
        print(f"tokens are estimates: {context.estimate}")
    for why in context.degraded:
        print(plain(f"degraded: {why}"))


def _piece_text(piece: Piece) -> str:
    if piece.entry is None:
        return message_text(piece.message)
    return message_text(piece.message, str(piece.entry.seq))


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
    "pinned": "pinned messages, in full",
    "task": "the current task",
    "important": "important data, each item with evidence",
    "recent": "the newest messages, in full",
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
        "estimate": context.estimate,
        "sections": sections,
        "seqs": context.seqs,
        "accounting": asdict(context.accounting),
        "left_out": [left._asdict() for left in context.left_out],
        "degraded": context.degraded,
        "messages": context.to_openai(),
    }


# -- strategy ---------------------------------------------------------------------------------


def _strategy(options: argparse.Namespace) -> None:
    head, stored = with_memory(options, lambda memory: _set_and_read_strategy(memory, options))
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
            "Its digests are created in the background by `firnline worker`, or now by "
            "`firnline digest`."
        )


async def _set_and_read_strategy(
    memory: Memory, options: argparse.Namespace
) -> tuple[Head, dict[str, Any]]:
    """Set the strategy if the options say so; returns the head and the strategy."""
    head = await existing_head_async(memory, options.conversation)
    if len(options.name) > 1:
        raise InputError(
            f"expected one strategy, got {len(options.name)}: {', '.join(options.name)}"
        )
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
    """Parse key=value pairs; a value that is not JSON is a string."""
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise InputError(f"--set: expected key=value, got {pair!r}")
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
        await existing_head_async(memory, options.conversation)
        for seq in seqs:
            await (memory.pin if pinned else memory.unpin)(options.conversation, seq)

    with_memory(options, change)
    what = "is pinned: it is in every context from now on" if pinned else "is no longer pinned"
    for seq in seqs:
        if options.json:
            print_json({"conversation": options.conversation, "seq": seq, "pinned": pinned})
        else:
            print(plain(f"{options.conversation}: message {seq} {what}"))


def _number(word: str) -> int:
    if not word.isdecimal():
        raise InputError(f"{word!r} is not a message number; `firnline show` prints them")
    return int(word)


def _show_pins(options: argparse.Namespace) -> None:
    async def pins(memory: Memory) -> list[Entry]:
        await existing_head_async(memory, options.conversation)
        return await memory.pinned(options.conversation)

    found = with_memory(options, pins)
    for entry in found:
        if options.json:
            print_json(entry_json(entry))
        else:
            print(entry_text(entry))
    if not found and not options.json:
        print("Nothing is pinned.")


# -- arguments --------------------------------------------------------------------------------


def add(command: Command) -> None:
    """Add these commands to the parser."""
    _add_context(command)
    strategy = command(
        "strategy", _strategy, "Show or set the context strategy of a conversation.", "name"
    )
    strategy.add_argument("conversation")
    strategy.add_argument(
        "name",
        nargs="*",
        metavar="NAME",
        help=f"one of {', '.join(STRATEGIES)}; without it, print the current one",
    )
    strategy.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="set a parameter; repeatable",
    )

    pin = command(
        "pin",
        _pin,
        "Pin messages, so that they are in every context; or list the pinned ones.",
        "seqs",
    )
    pin.add_argument("conversation")
    pin.add_argument("seqs", nargs="*", metavar="SEQ", help="message numbers (default: list pins)")

    unpin = command("unpin", _unpin, "Unpin messages.", "seqs")
    unpin.add_argument("conversation")
    unpin.add_argument("seqs", nargs="+", metavar="SEQ", help="the number of a message")


def _add_context(command: Command) -> None:
    context = command(
        "context", _context, "Print the context that a model would get; creates digests if needed."
    )
    context.add_argument("conversation")
    context.add_argument(
        "--budget",
        type=int,
        metavar="TOKENS",
        help="the size of the context (default: the window of --model)",
    )
    context.add_argument(
        "--reserve", type=int, metavar="TOKENS", help="tokens of it to reserve for the answer"
    )
    context.add_argument(
        "--model", metavar="NAME", help=f"the model to count tokens for (default: {DEFAULT_MODEL})"
    )
    context.add_argument("--question", metavar="TEXT", help="add old messages that match it")
    context.add_argument("--system", metavar="TEXT", help="the system prompt")
    shape = context.add_mutually_exclusive_group()
    shape.add_argument(
        "--explain", action="store_true", help="print what is included and left out, and why"
    )
    shape.add_argument(
        "--openai", action="store_true", help="print the messages as OpenAI expects them"
    )
    shape.add_argument(
        "--anthropic", action="store_true", help="print the messages as Anthropic expects them"
    )
