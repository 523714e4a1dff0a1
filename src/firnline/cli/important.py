"""The commands for what a conversation is about: important data, and projects."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, Final

from firnline.cli.arguments import Command
from firnline.cli.digests import item_text
from firnline.cli.open import existing_head, open_memory
from firnline.cli.output import print_json
from firnline.cli.terminal import cut, plain, table
from firnline.digest import items
from firnline.errors import InputError
from firnline.log.entry import Digest, Project
from firnline.log.text import plural
from firnline.log.wire import load_json
from firnline.sync import Memory

_TASK: Final = 48


def _important(options: argparse.Namespace) -> None:
    with open_memory(options) as memory:
        existing_head(memory, options.conversation)
        if options.add is not None:
            memory.remember(options.conversation, _object(options.add))
        if options.revert is not None:
            memory.revert(options.conversation, options.revert)
        found = _merged(memory.in_force(options.conversation))
    for item in found:
        if options.json:
            print_json(asdict(item))
        else:
            print(plain(item_text(item)))
    if not found and not options.json:
        print("No important data yet: it comes with digests, or with --add.")


def _object(text: str) -> dict[str, Any]:
    given = load_json(text)
    if not isinstance(given, dict):
        raise InputError('--add must be a JSON object, such as {"user_preferences": {…}}')
    return given


def _merged(in_force: Sequence[Digest]) -> tuple[items.Item, ...]:
    merged: tuple[items.Item, ...] = ()
    for digest in in_force:
        merged = items.merge(merged, items.from_json(digest.data))
    return items.items_with_speakers(merged)


def _projects(options: argparse.Namespace) -> None:
    changes = {
        name: getattr(options, name)
        for name in ("status", "schedule", "task")
        if getattr(options, name) is not None
    }
    if options.project is None:
        if changes or options.add:
            raise InputError("name the project to change")
        _list_projects(options)
        return
    with open_memory(options) as memory:
        project = _find(memory, options.project)
        if changes:
            project = replace(project or Project(options.project), **changes)
            memory.save_project(project)
        for conversation in options.add:
            existing_head(memory, conversation)
            memory.describe(conversation, project=options.project)
        names = [head.conversation for head in memory.conversations(project=options.project)]
    if project is None and not names:
        raise InputError(f"there is no project {options.project}; --status or --add creates it")
    _print_project(options, project or Project(options.project), names)


def _find(memory: Memory, name: str) -> Project | None:
    return next((project for project in memory.projects() if project.name == name), None)


def _print_project(options: argparse.Namespace, project: Project, names: Sequence[str]) -> None:
    if options.json:
        print_json({**asdict(project), "conversations": list(names)})
        return
    rows: dict[str, Any] = {**asdict(project), "conversations": ", ".join(names) or "none"}
    rows["metadata"] = json.dumps(project.metadata, ensure_ascii=False) if project.metadata else ""
    for name, value in rows.items():
        if value:
            print(plain(f"{name}: {value}"))


def _list_projects(options: argparse.Namespace) -> None:
    with open_memory(options) as memory:
        found = memory.projects()
    if options.json:
        for project in found:
            print_json(asdict(project))
    elif found:
        rows = [(p.name, p.status, p.schedule, plain(cut(p.task, _TASK))) for p in found]
        print(table(("project", "status", "schedule", "task"), rows))
        print(plural(len(found), "project"))
    else:
        print("No projects yet. Try: firnline projects boats --task 'Build the first one'")


def add(command: Command) -> None:
    """Add these commands to the parser."""
    important = command(
        "important", _important, "Show the important data of a conversation, with its evidence."
    )
    important.add_argument("conversation")
    important.add_argument(
        "--add", metavar="JSON", help='add some, such as {"user_preferences": {"diet": "vegan"}}'
    )
    important.add_argument(
        "--revert", type=int, metavar="SEQ", help="restore what this message replaced"
    )

    projects = command("projects", _projects, "List the projects, or show or change one.")
    projects.add_argument("project", nargs="?", help="default: list all")
    for name, text in (("status", "such as active"), ("schedule", ""), ("task", "what is next")):
        projects.add_argument(f"--{name}", help=text)
    projects.add_argument(
        "--add", action="append", default=[], metavar="CONVERSATION", help="it joins; repeatable"
    )
