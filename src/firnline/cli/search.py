"""The commands for recall: search, on (a date), topics, embed."""

from __future__ import annotations

import argparse
import sys
from datetime import datetime, tzinfo
from typing import Final

from firnline import memory as asynchronous
from firnline.cli.arguments import Command
from firnline.cli.open import (
    all_heads,
    existing_head,
    existing_head_async,
    open_memory,
    with_memory,
)
from firnline.cli.output import entry_json, entry_text, print_json, progress_on
from firnline.cli.terminal import cut, plain
from firnline.embedding import default_embedder, open_embedder
from firnline.engine.recall import Filters
from firnline.errors import InputError
from firnline.language.calendar import make_frame
from firnline.language.dates import Interval, interval
from firnline.log.entry import Entry
from firnline.log.hit import Hit, Hits
from firnline.log.message import utc_now
from firnline.log.text import plural
from firnline.sync import Memory
from firnline.topics import TopicStats

_BAR: Final = 20
_TITLE: Final = 46
_LEAST: Final = 0.005  # less would be printed as 0.00
_PAGE: Final = 1_000
ROLES: Final = ("user", "assistant", "system", "developer", "tool")


# -- search -----------------------------------------------------------------------------------


def _search(options: argparse.Namespace) -> None:
    filters, zone = _filters(options), _zone(options.zone)

    async def work(memory: asynchronous.Memory) -> Hits:
        if options.conversation is not None:
            await existing_head_async(memory, options.conversation)
        words, most = " ".join(options.query), {"limit": options.limit, "tokens": options.tokens}
        return await memory.recall(options.conversation, words, **most, **filters)

    chosen = None if options.embedder == "none" else options.embedder
    hits = with_memory(options, work, embedder=chosen)
    for hit in hits:
        if options.json:
            about = {"conversation": hit.conversation, "chance": hit.chance, "score": hit.score}
            about |= {"parts": dict(hit.parts), "also_in": hit.also_in}
            about |= {"superseded_by": hit.superseded_by}
            about["passage"] = [span._asdict() for span in hit.passage]
            print_json({**about, **entry_json(hit.entry)})
        else:
            _print_hit(hit, zone, explain=options.explain)
    if not hits and not options.json:
        print("Nothing found.")
    for why in hits.degraded:
        print(f"({why})", file=sys.stderr)


def _print_hit(hit: Hit, zone: tzinfo, *, explain: bool) -> None:
    print(_line(hit.conversation, hit.entry, zone))
    if hit.also_in:
        print(f"     also in {plain(', '.join(hit.also_in))}")
    if hit.superseded_by is not None:
        print(f"     outdated: see message {hit.superseded_by}")
    if explain:
        print(f"     {_score_text(hit)}")


def _filters(options: argparse.Namespace) -> Filters:
    filters = Filters()
    if options.role:
        filters["roles"] = options.role
    if options.on:
        span = _interval(options.on, options.zone)
        filters["since"], filters["until"] = span.since, span.until
    if options.project:
        filters["project"] = options.project
    if options.person:
        filters["person"] = options.person
    if options.topic is not None:
        if options.conversation is None:
            raise InputError("--topic needs --conversation")
        filters["topic"] = options.topic
    if options.tag:
        filters["tags"] = options.tag
    return filters


def _score_text(hit: Hit) -> str:
    """The parts of the score, the largest first, and the chance."""
    parts = sorted(hit.parts.items(), key=lambda part: -abs(part[1]))
    listed = ", ".join(f"{name} {value:+.2f}" for name, value in parts if abs(value) >= _LEAST)
    archived = " (archived)" if hit.archived else ""
    listed = f"{listed or 'no single part'}; chance {hit.chance:.0%}"
    return f"score {hit.score:.2f}: {listed}{archived}"


def _line(conversation: str, entry: Entry, zone: tzinfo) -> str:
    """An entry as text, with its conversation and its time in the zone."""
    text, at = entry_text(entry), entry.message.created_at
    if at is not None:
        text = text.replace(f"{at:%Y-%m-%d %H:%M}", f"{_local(at, zone):%Y-%m-%d %H:%M}", 1)
    return f"{plain(conversation)} {text}"


# -- on a day ---------------------------------------------------------------------------------


def _interval(text: str, zone: str) -> Interval:
    return interval(text, now=utc_now(), zone=zone)


def _zone(name: str) -> tzinfo:
    return make_frame(utc_now(), name).zone


def _local(at: datetime, zone: tzinfo) -> datetime:
    try:
        return at.astimezone(zone)
    except OverflowError:  # the first or last day of the calendar
        return at


def _on(options: argparse.Namespace) -> None:
    span, zone = _interval(" ".join(options.date), options.zone), _zone(options.zone)
    shown, more = 0, False
    with open_memory(options) as memory:
        for name in _names(memory, options.conversation):
            found = memory.dated(name, span.since, span.until, limit=options.limit)
            shown, more = shown + len(found), more or len(found) == options.limit
            for entry in found:
                if options.json:
                    print_json({"conversation": name, **entry_json(entry)})
                else:
                    print(_line(name, entry, zone))
    if not options.json:
        when = f"from {_day(span.since, zone)} to {_day(span.until, zone)} ({options.zone})"
        print(f"{plural(shown, 'message')} {when}" if shown else f"No messages {when}.")
        if more:
            print(f"There may be more; raise --limit (now {options.limit}).")


def _names(memory: Memory, conversation: str | None) -> list[str]:
    if conversation is not None:
        return [existing_head(memory, conversation).conversation]
    return [head.conversation for head in all_heads(memory, None)]


def _day(at: datetime, zone: tzinfo) -> str:
    return f"{_local(at, zone):%a %Y-%m-%d %H:%M}"


# -- topics -----------------------------------------------------------------------------------


def _topics(options: argparse.Namespace) -> None:
    with open_memory(options) as memory:
        existing_head(memory, options.conversation)
        _change_topics(memory, options)
        found = memory.topics(options.conversation)
        active = found[0].topic_id if found else None
        if options.topic is not None and found:
            found = [memory.topic_stats(options.conversation, options.topic)]
        shows = options.show and bool(found)
        entries = memory.topic_history(options.conversation, options.topic) if shows else []
    for topic in found:
        if options.json:
            print_json(topic.to_json())
        else:
            print(_topic_line(topic, active=topic.topic_id == active))
    for entry in entries:
        if options.json:
            print_json(entry_json(entry))
        else:
            print(entry_text(entry))
    if not found and not options.json:
        print("No topics yet: the first message of a user starts one.")


def _change_topics(memory: Memory, options: argparse.Namespace) -> None:
    if options.merge:
        memory.merge_topics(options.conversation, *options.merge)
    add, remove = options.add_tag or (), options.remove_tag or ()
    if (add or remove) and options.topic is None:
        raise InputError("--add-tag and --remove-tag need --topic")
    if add or remove:
        memory.tag_topic(options.conversation, options.topic, add=add, remove=remove)


def _topic_line(topic: TopicStats, *, active: bool) -> str:
    """A topic with a bar for its priority."""
    full = max(0, min(round(topic.priority * _BAR), _BAR))
    bar = "█" * full + "░" * (_BAR - full)
    state = "active" if active else "archived" if topic.dormant else topic.memory_type
    about = [
        plural(topic.total_messages, "message"),
        *([f"{topic.archived_messages:,} archived"] if topic.archived_messages else []),
        plural(topic.access_count, "access", "accesses"),
        f"half-life {topic.half_life_days:g} d",
        *(f"#{plain(tag)}" for tag in topic.tags),
    ]
    title = cut(plain(topic.title or "(no words)"), _TITLE)
    first = f"{topic.topic_id:>5}  {bar} {topic.priority:4.0%}  {title}"
    return f"{first}\n       {state}, {', '.join(about)}"


# -- embedding --------------------------------------------------------------------------------


def _embed(options: argparse.Namespace) -> None:
    name = options.embedder
    embedder = default_embedder() if name == "auto" else open_embedder(name)
    if embedder is None:
        raise InputError('no embedder is installed: pip install "firnline[recall]", or --embedder')

    async def work(memory: asynchronous.Memory) -> int:
        done = 0
        for name in options.conversations or await _all_names(memory):
            await existing_head_async(memory, name)
            with progress_on(f"embedding {plain(name)}") as progress:
                done += await memory.embed(name, progress=progress)
        return done

    done = with_memory(options, work, embedder=embedder)
    if options.json:
        print_json({"embedded": done, "embedder": embedder.name})
    else:
        print(f"{plural(done, 'message')} embedded with {plain(embedder.name)}")


async def _all_names(memory: asynchronous.Memory) -> list[str]:
    names: list[str] = []
    while page := await memory.conversations(after=names[-1] if names else "", limit=_PAGE):
        names += [head.conversation for head in page]
    return names


def add(command: Command) -> None:
    """Add these commands to the parser."""
    search = command(
        "search", _search, "Search messages by words and meaning, best first.", "query"
    )
    search.add_argument("query", nargs="+", help="words or a question, in any language")
    search.add_argument("--conversation", help="only this conversation (default: all)")
    search.add_argument(
        "--limit",
        type=int,
        metavar="N",
        help="at most N results (default: 10, or no limit with --tokens)",
    )
    search.add_argument(
        "--tokens", type=int, metavar="N", help="as many results as fit into N tokens"
    )
    search.add_argument(
        "--role", action="append", choices=ROLES, help="only messages of this role; repeatable"
    )
    search.add_argument(
        "--on", metavar="DATE", help="only messages of this time: 'last tuesday', '2026-03', ..."
    )
    search.add_argument("--project", help="only conversations of this project")
    search.add_argument("--person", help="only conversations with this person")
    search.add_argument("--topic", type=int, help="only this topic; needs --conversation")
    search.add_argument("--tag", action="append", help="only topics with this tag; repeatable")
    _add_zone(search)
    search.add_argument("--explain", action="store_true", help="show the parts of each score")
    _add_embedder(search, "; none: search by words only")
    on = command("on", _on, "Print the messages of a day or a range of days.", "date")
    on.add_argument("date", nargs="+", help="'last tuesday', '3 days ago', 'between ... and ...'")
    on.add_argument("--conversation", help="only this conversation (default: all)")
    _add_zone(on)
    on.add_argument(
        "--limit",
        type=int,
        default=100,
        metavar="N",
        help="at most N per conversation (default: %(default)s)",
    )
    topics = command("topics", _topics, "List the topics of a conversation, with their priorities.")
    topics.add_argument("conversation")
    topics.add_argument("--topic", type=int, help="only this topic, by number")
    text = "print the messages of the --topic (default: the active one)"
    topics.add_argument("--show", action="store_true", help=text)
    topics.add_argument(
        "--add-tag", action="append", metavar="TAG", help="add a tag to the --topic"
    )
    topics.add_argument("--remove-tag", action="append", metavar="TAG", help="remove a tag")
    topics.add_argument(
        "--merge",
        nargs=2,
        type=int,
        metavar=("INTO", "TOPIC"),
        help="move the messages of TOPIC into INTO",
    )
    embed = command("embed", _embed, "Create the missing embeddings, which search by meaning uses.")
    embed.add_argument("conversations", nargs="*", help="default: all")
    _add_embedder(embed)


def _add_zone(parser: argparse.ArgumentParser) -> None:
    text = "the time zone of dates and times (default: %(default)s)"
    parser.add_argument("--zone", default="UTC", help=text)


def _add_embedder(parser: argparse.ArgumentParser, more: str = "") -> None:
    text = f"auto (the default), minilm, multilingual, words or PROVIDER/MODEL{more}"
    parser.add_argument("--embedder", default="auto", metavar="NAME", help=text)
