"""The commands for people: who they are, what they stated, and erasing a person."""

from __future__ import annotations

import argparse
from typing import Any

from firnline.cli.arguments import Command
from firnline.cli.open import open_memory
from firnline.cli.output import print_json
from firnline.cli.terminal import plain, table
from firnline.digest.fact import Fact
from firnline.errors import InputError
from firnline.log.message import format_time
from firnline.log.text import plural


def _people(options: argparse.Namespace) -> None:
    if options.person is None:
        if options.erase or options.yes:
            raise InputError("name the person to erase")
        _list(options)
    elif options.erase:
        _erase(options)
    else:
        _profile(options)


def _list(options: argparse.Namespace) -> None:
    with open_memory(options) as memory:
        found = memory.people()
    if options.json:
        for one in found:
            updated = format_time(one.updated_at)
            print_json(
                {"person": one.person, "conversations": one.conversations, "updated_at": updated}
            )
    elif found:
        rows = [
            (one.person, f"{one.conversations:,}", f"{one.updated_at:%Y-%m-%d %H:%M}")
            for one in found
        ]
        print(table(("person", "conversations", "last message"), rows, right=(1,)))
    else:
        print("No conversation is with a person yet. Try: firnline append --person ana chat Hello")


def _profile(options: argparse.Namespace) -> None:
    with open_memory(options) as memory:
        profile = memory.profile(options.person)
        names = [head.conversation for head in memory.conversations(person=options.person)]
    if options.json:
        facts = [_fact_json(fact) for fact in profile.facts]
        about = {"person": profile.person, "version": profile.version, "text": profile.text}
        print_json({**about, "facts": facts, "conversations": names})
        return
    print(plain(profile.text or f"Nothing is known of {options.person}."))
    print(plain(f"\nversion {profile.version}; conversations: {', '.join(names) or 'none'}"))


def _erase(options: argparse.Namespace) -> None:
    with open_memory(options) as memory:
        count = len(memory.conversations(person=options.person, limit=1_000))
        if not options.yes:
            raise InputError(
                f"this erases {options.person}: {plural(count, 'conversation')} and all facts; "
                "add --yes"
            )
        erased = memory.erase_person(options.person)
    if options.json:
        print_json(
            {
                "person": erased.person,
                "conversations": [one.conversation for one in erased.conversations],
                "facts": erased.facts,
                "erased_at": format_time(erased.erased_at),
                "survives": list(erased.survives),
            }
        )
        return
    names = ", ".join(one.conversation for one in erased.conversations)
    conversations = plural(len(erased.conversations), "conversation")
    print(plain(f"Erased {erased.person}: {conversations} ({names})"))
    if erased.survives:
        print(plain(f"Copies of messages are left in: {', '.join(erased.survives)}"))


def _facts(options: argparse.Namespace) -> None:
    with open_memory(options) as memory:
        if options.revert:
            memory.revert_fact(options.person, options.revert)
        found = memory.facts(
            person=options.person,
            as_of=options.as_of,
            known_at=options.known_at,
            history=options.history,
        )
    for fact in found:
        if options.json:
            print_json(_fact_json(fact))
        else:
            print(plain(_fact_text(fact)))
    if not found and not options.json:
        print(plain(f"No facts of {options.person}."))


def _fact_text(fact: Fact) -> str:
    about = "" if fact.subject == fact.person else f"{fact.subject} · "
    about = "" if fact.attribute.startswith(about or " ") else about
    lines = [f"{about}{fact.attribute}: {fact.value}  [{fact.id}]"]
    until = f" until {fact.valid_until:%Y-%m-%d}" if fact.valid_until else ""
    gone = ", reverted" if fact.reverted_at else ""
    lines.append(f"  since {fact.valid_from:%Y-%m-%d}{until}{gone}")
    lines += [f"  “{one.quote}” ({one.conversation}, message {one.seq})" for one in fact.evidence]
    return "\n".join(lines)


def _fact_json(fact: Fact) -> dict[str, Any]:
    names = ("id", "subject", "attribute", "value", "kind", "superseded_by")
    times = ("valid_from", "valid_until", "recorded_at", "reverted_at")
    evidence = [
        {
            "conversation": one.conversation,
            "seq": one.seq,
            "quote": one.quote,
            "said_at": format_time(one.said_at),
        }
        for one in fact.evidence
    ]
    when = {name: getattr(fact, name) for name in times}
    return {
        **{name: getattr(fact, name) for name in names},
        **{name: format_time(at) if at else None for name, at in when.items()},
        "evidence": evidence,
    }


def add(command: Command) -> None:
    """Add the commands."""
    people = command("people", _people, "List the people, or show what is known of one.")
    people.add_argument("person", nargs="?", help="default: list all")
    people.add_argument(
        "--erase", action="store_true", help="erase the person: conversations, branches and facts"
    )
    people.add_argument("--yes", action="store_true", help="do not ask before erasing")

    facts = command("facts", _facts, "Show what a person stated, with quotes.")
    facts.add_argument("person")
    facts.add_argument("--as-of", metavar="DATE", help="what held then, as in 2026-09-01")
    facts.add_argument("--known-at", metavar="DATE", help="what was known then")
    facts.add_argument("--history", action="store_true", help="ended and reverted facts, too")
    facts.add_argument("--revert", metavar="ID", help="first withdraw this fact")
