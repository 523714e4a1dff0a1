"""The commands of recall: search, what was said on a day, topics, embedding."""

from __future__ import annotations

import argparse
from datetime import datetime, tzinfo
from typing import Final

from firnline import memory as asynchronous
from firnline.cli.arguments import Command
from firnline.cli.open import all_heads, known, known_to, open_memory, with_memory
from firnline.cli.output import entry_json, human_entry, print_json, progress_on
from firnline.cli.terminal import cut, plain
from firnline.embedding import default_embedder, open_embedder
from firnline.engine.recall import Filters
from firnline.errors import InputError
from firnline.language.calendar import make_frame
from firnline.language.dates import Interval, interval
from firnline.log.entry import Entry, Hit
from firnline.log.message import utc_now
from firnline.sync import Memory
from firnline.topics import TopicStats

_BAR: Final = 20
_TITLE: Final = 46
_LEAST: Final = 0.005  # what is written as 0.00 explains nothing
_PAGE: Final = 1_000
ROLES: Final = ("user", "assistant", "system", "developer", "tool")


# -- search -----------------------------------------------------------------------------------


def _search(options: argparse.Namespace) -> None:
    filters, zone = _filters(options), _zone(options.zone)

    async def work(memory: asynchronous.Memory) -> list[Hit]:
        if options.conversation is not None:
            await known_to(memory, options.conversation)
        words, most = " ".join(options.query), {"limit": options.limit, "tokens": options.tokens}
        return await memory.recall(options.conversation, words, **most, **filters)

    chosen = None if options.embedder == "none" else options.embedder
    hits = with_memory(options, work, embedder=chosen)
    for hit in hits:
        if options.json:
            about = {"conversation": hit.conversation, "score": hit.score, "parts": dict(hit.parts)}
            print_json({**about, **entry_json(hit.entry)})
        else:
            print(_line(hit.conversation, hit.entry, zone))
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
        if options.conversation is None:
            raise InputError("--topic: say of which conversation (--conversation)")
        filters["topic"] = options.topic
    if options.tag:
        filters["tags"] = options.tag
    return filters


def _explained(hit: Hit) -> str:
    """What the score is made of, the largest part first."""
    parts = sorted(hit.parts.items(), key=lambda part: -abs(part[1]))
    listed = ", ".join(f"{name} {value:+.2f}" for name, value in parts if abs(value) >= _LEAST)
    archived = " (archived)" if hit.archived else ""
    return f"score {hit.score:.2f}: {listed or 'nothing in particular'}{archived}"


def _line(conversation: str, entry: Entry, zone: tzinfo) -> str:
    """An entry for people, with its conversation, at the time that their clock showed."""
    text, at = human_entry(entry), entry.message.created_at
    if at is not None:
        text = text.replace(f"{at:%Y-%m-%d %H:%M}", f"{_local(at, zone):%Y-%m-%d %H:%M}", 1)
    return f"{plain(conversation)} {text}"


# -- on a day ---------------------------------------------------------------------------------


def _meant(text: str, zone: str) -> Interval:
    return interval(text, now=utc_now(), zone=zone)


def _zone(name: str) -> tzinfo:
    return make_frame(utc_now(), name).zone


def _local(at: datetime, zone: tzinfo) -> datetime:
    try:
        return at.astimezone(zone)
    except OverflowError:  # the first or the last day of the calendar
        return at


def _on(options: argparse.Namespace) -> None:
    meant, zone = _meant(" ".join(options.date), options.zone), _zone(options.zone)
    shown, more = 0, False
    with open_memory(options) as memory:
        for name in _names(memory, options.conversation):
            found = memory.dated(name, meant.since, meant.until, limit=options.limit)
            shown, more = shown + len(found), more or len(found) == options.limit
            for entry in found:
                if options.json:
                    print_json({"conversation": name, **entry_json(entry)})
                else:
                    print(_line(name, entry, zone))
    if not options.json:
        span = f"from {_day(meant.since, zone)} to {_day(meant.until, zone)} ({options.zone})"
        print(f"{_entries(shown)} said {span}" if shown else f"Nothing was said {span}.")
        if more:
            print(f"There may be more: --limit {options.limit} was reached.")


def _names(memory: Memory, conversation: str | None) -> list[str]:
    if conversation is not None:
        return [known(memory, conversation).conversation]
    return [head.conversation for head in all_heads(memory, None)]


def _day(at: datetime, zone: tzinfo) -> str:
    return f"{_local(at, zone):%a %Y-%m-%d %H:%M}"


def _entries(count: int) -> str:
    return f"{count:,} {'entry' if count == 1 else 'entries'}"


# -- topics -----------------------------------------------------------------------------------


def _topics(options: argparse.Namespace) -> None:
    with open_memory(options) as memory:
        known(memory, options.conversation)
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
            print(human_entry(entry))
    if not found and not options.json:
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
    full = max(0, min(round(topic.priority * _BAR), _BAR))
    bar = "█" * full + "░" * (_BAR - full)
    state = "active" if active else "archived" if topic.dormant else topic.memory_type
    about = [
        f"{topic.total_messages:,} {'message' if topic.total_messages == 1 else 'messages'}",
        *([f"{topic.archived_messages:,} archived"] if topic.archived_messages else []),
        f"{topic.access_count:,} {'access' if topic.access_count == 1 else 'accesses'}",
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
            await known_to(memory, name)
            with progress_on(f"embedding {plain(name)}") as progress:
                done += await memory.embed(name, progress=progress)
        return done

    done = with_memory(options, work, embedder=embedder)
    if options.json:
        print_json({"embedded": done, "embedder": embedder.name})
    else:
        print(f"{_entries(done)} embedded with {plain(embedder.name)}")


async def _all_names(memory: asynchronous.Memory) -> list[str]:
    names: list[str] = []
    while page := await memory.conversations(after=names[-1] if names else "", limit=_PAGE):
        names += [head.conversation for head in page]
    return names


def add(command: Command) -> None:
    """Tell the parser of these commands."""
    search = command("search", _search, "Find entries by words and meaning, best first.", "query")
    search.add_argument("query", nargs="+", help="words or a question, in any language")
    search.add_argument("--conversation", help="only in this one")
    search.add_argument("--limit", type=int, help="the most entries: 10, unless --tokens is given")
    search.add_argument("--tokens", type=int, help="as many entries as fit into so many tokens")
    search.add_argument("--role", action="append", choices=ROLES, help="only what they said")
    search.add_argument("--on", metavar="DATE", help="only then: 'last tuesday', '2026-03', ...")
    search.add_argument("--project", help="only its conversations")
    search.add_argument("--topic", type=int, help="only this topic of the --conversation")
    search.add_argument("--tag", action="append", help="only topics with this tag")
    _add_zone(search)
    search.add_argument("--explain", action="store_true", help="what each score is made of")
    _add_embedder(search, "; none for words alone")
    on = command("on", _on, "Show what was said on a day or in a span of days.", "date")
    on.add_argument("date", nargs="+", help="'last tuesday', '3 days ago', 'between ... and ...'")
    on.add_argument("--conversation", help="only in this one")
    _add_zone(on)
    on.add_argument("--limit", type=int, default=100, help="the most of one conversation")
    topics = command("topics", _topics, "List a conversation's topics and how they fade.")
    topics.add_argument("conversation")
    topics.add_argument("--topic", type=int, help="only this one, by its number")
    text = "messages, archived or not, of the --topic or else the active one"
    topics.add_argument("--show", action="store_true", help=text)
    topics.add_argument("--add-tag", action="append", metavar="TAG", help="give the --topic a tag")
    topics.add_argument("--remove-tag", action="append", metavar="TAG", help="take it away again")
    topics.add_argument(
        "--merge", nargs=2, type=int, metavar=("INTO", "TOPIC"), help="put one into another"
    )
    embed = command("embed", _embed, "Finish the embedding that search by meaning needs.")
    embed.add_argument("conversations", nargs="*", help="all of them, unless named")
    _add_embedder(embed)


def _add_zone(parser: argparse.ArgumentParser) -> None:
    text = "the time zone that dates are meant and times shown in (default: %(default)s)"
    parser.add_argument("--zone", default="UTC", help=text)


def _add_embedder(parser: argparse.ArgumentParser, more: str = "") -> None:
    text = f"auto (the default), minilm, multilingual, words or PROVIDER/MODEL{more}"
    parser.add_argument("--embedder", default="auto", metavar="NAME", help=text)
