"""The commands of recall: search, what was said on a day, topics, embedding."""

from __future__ import annotations

import argparse
from datetime import datetime
from typing import Final

from firnline import memory as asynchronous
from firnline.cli.grammar import Command
from firnline.cli.opening import all_heads, known, known_to, open_memory, with_memory
from firnline.cli.printing import entry_json, human_entry, print_json, progress_on
from firnline.errors import InputError
from firnline.log import Hit
from firnline.message import utc_now
from firnline.recall.dates import Interval, interval
from firnline.recaller import Filters
from firnline.sync import Memory
from firnline.terminal import cut, plain
from firnline.topics import TopicStats

_BAR: Final = 20
_TITLE: Final = 46
ROLES: Final = ("user", "assistant", "system", "developer", "tool")


def _search(options: argparse.Namespace) -> None:
    filters = _filters(options)
    with open_memory(options) as memory:
        if options.conversation is not None:
            known(memory, options.conversation)
        hits = memory.recall(
            options.conversation,
            " ".join(options.query),
            limit=options.limit,
            tokens=options.tokens,
            **filters,
        )
    for hit in hits:
        if options.json:
            about = {"conversation": hit.conversation, "score": hit.score, "parts": dict(hit.parts)}
            print_json({**about, **entry_json(hit.entry)})
        else:
            print(f"{plain(hit.conversation)} {human_entry(hit.entry)}")
            if options.explain:
                print(f"     {_explained(hit)}")
    if not hits and not options.json:
        print("Nothing found.")


def _filters(options: argparse.Namespace) -> Filters:
    filters = Filters()
    if options.role:
        filters["roles"] = options.role
    if options.on:
        meant = _meant(options.on, options.zone)
        filters["since"], filters["until"] = meant.since, meant.until
    if options.project:
        filters["project"] = options.project
    if options.topic is not None:
        filters["topic"] = options.topic
    if options.tag:
        filters["tags"] = options.tag
    return filters


def _explained(hit: Hit) -> str:
    """What the score is made of, the largest part first."""
    parts = sorted(hit.parts.items(), key=lambda part: -abs(part[1]))
    listed = ", ".join(f"{name} {value:+.2f}" for name, value in parts if abs(value) >= 0.005)  # noqa: PLR2004
    return f"score {hit.score:.2f}: {listed}" + (" (archived)" if hit.archived else "")


def _meant(text: str, zone: str) -> Interval:
    return interval(text, now=utc_now(), zone=zone)


def _on(options: argparse.Namespace) -> None:
    meant = _meant(" ".join(options.date), options.zone)
    shown = 0
    with open_memory(options) as memory:
        names = [options.conversation] if options.conversation else _names(memory)
        for name in names:
            for entry in memory.dated(name, meant.since, meant.until, limit=options.limit):
                shown += 1
                if options.json:
                    print_json({"conversation": name, **entry_json(entry)})
                else:
                    print(f"{plain(name)} {human_entry(entry)}")
    if not options.json:
        span = f"{_day(meant.since)} to {_day(meant.until)}"
        print(f"{shown:,} entries said from {span}" if shown else f"Nothing was said {span}.")


def _names(memory: Memory) -> list[str]:
    return [head.conversation for head in all_heads(memory, None)]


def _day(at: datetime) -> str:
    return f"{at:%a %Y-%m-%d %H:%M} UTC"


def _topics(options: argparse.Namespace) -> None:
    with open_memory(options) as memory:
        known(memory, options.conversation)
        _change_topics(memory, options)
        found = memory.topics(options.conversation)
        entries = memory.topic_history(options.conversation, options.topic) if options.show else []
    if options.json:
        for topic in found:
            print_json(topic.to_json())
        return
    for topic in found:
        print(_topic_line(topic, active=topic is found[0]))
    for entry in entries:
        print(human_entry(entry))
    if not found:
        print("No topics yet: they begin with a message of the user.")


def _change_topics(memory: Memory, options: argparse.Namespace) -> None:
    if options.merge:
        memory.merge_topics(options.conversation, *options.merge)
    add, remove = options.add_tag or (), options.remove_tag or ()
    if (add or remove) and options.topic is None:
        raise InputError("--topic: say which topic gets or loses a tag")
    if add or remove:
        memory.tag_topic(options.conversation, options.topic, add=add, remove=remove)


def _topic_line(topic: TopicStats, *, active: bool) -> str:
    """A topic with a bar of what is left of its priority."""
    full = round(topic.priority * _BAR)
    bar = "█" * full + "░" * (_BAR - full)
    state = "active" if active else "archived" if topic.dormant else topic.memory_type
    about = [
        f"{topic.total_messages:,} messages",
        *([f"{topic.archived_messages:,} archived"] if topic.archived_messages else []),
        f"{topic.access_count:,} accesses",
        f"half-life {topic.half_life_days:g} d",
        *(f"#{plain(tag)}" for tag in topic.tags),
    ]
    title = cut(plain(topic.title or "(no words)"), _TITLE)
    first = f"{topic.topic_id:>5}  {bar} {topic.priority:4.0%}  {title}"
    return f"{first}\n       {state}, {', '.join(about)}"


def _embed(options: argparse.Namespace) -> None:
    async def work(memory: asynchronous.Memory) -> int:
        done = 0
        names = options.conversations
        if not names:
            names = [head.conversation for head in await memory.conversations(limit=1_000)]
        for name in names:
            await known_to(memory, name)
            with progress_on(f"embedding {plain(name)}") as progress:
                done += await memory.embed(name, progress=progress)
        return done

    done = with_memory(options, work, embedder=options.embedder)
    if options.json:
        print_json({"embedded": done})
    else:
        print(f"{done:,} entries embedded")


def add(command: Command) -> None:
    """Tell the parser of these commands."""
    search = command("search", _search, "Find entries by words and meaning, best first.", "query")
    search.add_argument("query", nargs="+")
    search.add_argument("--conversation", help="only in this one")
    search.add_argument("--limit", type=int, help="the most entries: 10, unless --tokens is given")
    search.add_argument("--tokens", type=int, help="as many entries as fit into so many tokens")
    search.add_argument("--role", action="append", choices=ROLES, help="only what they said")
    search.add_argument("--on", metavar="DATE", help="only then: 'last tuesday', '2026-03', ...")
    search.add_argument("--project", help="only its conversations")
    search.add_argument("--topic", type=int, help="only this topic of the conversation")
    search.add_argument("--tag", action="append", help="only topics with this tag")
    search.add_argument("--zone", default="UTC", help="the time zone that dates are meant in")
    search.add_argument("--explain", action="store_true", help="what each score is made of")
    on = command("on", _on, "Show what was said on a day or in a span of days.", "date")
    on.add_argument("date", nargs="+", help="'last tuesday', '3 days ago', 'between ... and ...'")
    on.add_argument("--conversation", help="only in this one")
    on.add_argument("--zone", default="UTC", help="the time zone that dates are meant in")
    on.add_argument("--limit", type=int, default=100, help="the most of one conversation")
    topics = command("topics", _topics, "List a conversation's topics and how they fade.")
    topics.add_argument("conversation")
    topics.add_argument("--topic", type=int, help="the one that is meant")
    topics.add_argument("--show", action="store_true", help="its messages, archived or not")
    topics.add_argument("--add-tag", action="append", metavar="TAG")
    topics.add_argument("--remove-tag", action="append", metavar="TAG")
    topics.add_argument(
        "--merge", nargs=2, type=int, metavar=("INTO", "TOPIC"), help="put one into another"
    )
    embed = command("embed", _embed, "Finish the embedding that search by meaning needs.")
    embed.add_argument("conversations", nargs="*", help="all of them, unless named")
    embed.add_argument(
        "--embedder", default="auto", help="auto, minilm, multilingual or PROVIDER/MODEL"
    )
