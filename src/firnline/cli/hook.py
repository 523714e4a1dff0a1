"""The commands for coding agents: install and remove their hooks, undo a compaction."""

from __future__ import annotations

import argparse
import difflib
import json
import os
import shlex
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Final

from firnline.adapters.compactions import Compaction, dropped_entries, list_compactions
from firnline.cli.arguments import Command
from firnline.cli.open import with_memory
from firnline.cli.output import entry_json, entry_text, print_json
from firnline.cli.terminal import plain
from firnline.errors import InputError, UnknownConversation
from firnline.log.entry import Entry
from firnline.memory import Memory
from firnline.server.cursor_events import CURSOR, EVENTS
from firnline.store.files import atomic_write

_EVENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "claude-code": (
        "SessionStart",
        "UserPromptSubmit",
        "PostToolUse",
        "PreCompact",
        "PostCompact",
        "Stop",
        "SessionEnd",
    ),
    "codex": (
        "SessionStart",
        "UserPromptSubmit",
        "PostToolUse",
        "PreCompact",
        "PostCompact",
        "Stop",
        "SessionEnd",
    ),
    CURSOR: EVENTS,
}
_MARK: Final = "/api/v1/hooks/"
_SECONDS: Final = 3  # more than curl waits; agents allow little at the end of a session


def _config_of(agent: str) -> Path:
    """The file with the agent's own hooks."""
    if agent == CURSOR:
        return Path("~/.cursor/hooks.json").expanduser()
    if agent == "claude-code":
        home = os.environ.get("CLAUDE_CONFIG_DIR") or "~/.claude"
        return Path(home).expanduser() / "settings.json"
    return Path(os.environ.get("CODEX_HOME") or "~/.codex").expanduser() / "hooks.json"


def hook_command(agent: str, url: str) -> str:
    """What a hook runs: it waits two seconds at most, and its failure is never the agent's."""
    address = shlex.quote(f"{url.rstrip('/')}{_MARK}{agent}")
    sends = "curl -sf -m 2 --data-binary @- -H 'content-type: application/json'"
    return f"{sends} {address} || true"


def with_hooks(config: Mapping[str, Any], agent: str, url: str | None) -> dict[str, Any]:
    """The configuration with our hooks, or without them if there is no `url`. Pure."""
    known = config.get("hooks") or {}
    if not isinstance(known, dict) or not all(
        isinstance(groups, list) for groups in known.values()
    ):
        raise InputError("hooks: expected an object with a list for each event")
    hooks = {
        event: [g for g in groups if _MARK not in json.dumps(g)] for event, groups in known.items()
    }
    if url is not None:
        for event in _EVENTS[agent]:
            hooks[event] = [*hooks.get(event, []), _hook(agent, url)]
    kept = {event: groups for event, groups in hooks.items() if groups}
    rest = {name: value for name, value in config.items() if name != "hooks"}
    version = {"version": 1} if agent == CURSOR else {}
    return {**version, **rest, "hooks": kept} if kept else rest


def _hook(agent: str, url: str) -> dict[str, Any]:
    """A hook as the agent's configuration has it."""
    if agent == CURSOR:
        return {"command": hook_command(agent, url), "timeout": _SECONDS}
    hook = {"type": "command", "command": hook_command(agent, url), "timeout": _SECONDS}
    return {"hooks": [hook]}


def _install(options: argparse.Namespace) -> None:
    path = _config_of(options.agent)
    before = path.read_text(encoding="utf-8") if path.is_file() else ""
    try:
        config = json.loads(before or "{}")
    except ValueError as error:
        raise InputError(f"{path} is not JSON: {error}; nothing was changed") from None
    if not isinstance(config, dict):
        raise InputError(f"{path} is not a JSON object; nothing was changed")
    changed = with_hooks(config, options.agent, None if options.undo else options.url)
    after = json.dumps(changed, indent=2, ensure_ascii=False) + "\n" if changed else ""
    lines = before.splitlines(), after.splitlines()
    for line in difflib.unified_diff(*lines, str(path), str(path), lineterm="", n=1):
        print(plain(line))
    if changed == config:
        print(f"{path}: nothing to change")
    elif not options.dry_run:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as target:
            target.write_text(after or "{}\n", encoding="utf-8")
        print(f"{path}: {'removed' if options.undo else 'installed'}")


def _uncompact(options: argparse.Namespace) -> None:
    found = with_memory(options, partial(_read_dropped, options.conversation))
    if not found:
        print("No compaction was noted in this conversation.")
    for compaction, entries in found if options.all else found[-1:]:
        if options.json:
            print_json({**asdict(compaction), "entries": list(map(entry_json, entries))})
            continue
        print(plain(_receipt_text(compaction)))
        for entry in entries:
            print(entry_text(entry))


async def _read_dropped(conversation: str, memory: Memory) -> list[tuple[Compaction, list[Entry]]]:
    if await memory.head(conversation) is None:
        raise UnknownConversation(f"there is no conversation {conversation!r}")
    found = await list_compactions(memory, conversation)
    return [(each, await dropped_entries(memory, each)) for each in found]


def _receipt_text(compaction: Compaction) -> str:
    """What a compaction kept and lost, in a few lines."""
    spans = (
        f"{first} to {last}" if last > first else f"{first}" for first, last in compaction.spans
    )
    lines = [f"Compaction {compaction.number + 1}: messages {', '.join(spans) or 'none'}"]
    for kind, tally in (compaction.receipt.get("kinds") or {}).items():
        if tally["total"]:
            lost = "".join(f"\n    lost: {each['value']}" for each in tally["lost"])
            lines.append(f"  {kind}: {tally['kept']} of {tally['total']} kept{lost}")
    return "\n".join(lines)


def add(command: Command) -> None:
    """Add these commands to the parser."""
    hook = command("hook", _install, "Let a coding agent tell a running server what it does.")
    hook.add_argument("action", choices=("install",))
    hook.add_argument("agent", choices=tuple(_EVENTS))
    hook.add_argument("--url", default="http://127.0.0.1:8080", help="default: %(default)s")
    hook.add_argument("--undo", action="store_true", help="remove the hooks")
    hook.add_argument("--dry-run", action="store_true", help="only show what would change")

    uncompact = command(
        "uncompact", _uncompact, "Print what an agent's compaction dropped, and its receipt."
    )
    uncompact.add_argument(
        "conversation", help="such as claude_code/SESSION, codex/SESSION or cursor/CHAT"
    )
    uncompact.add_argument("--all", action="store_true", help="of all compactions")
