"""The store's health: what `firnline doctor` prints."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

from firnline.errors import StoreCorrupt
from firnline.log.entry import Key
from firnline.log.text import plural
from firnline.protocols import Finding
from firnline.store.mongo import cards, schema, seals
from firnline.store.mongo.connection import Doc, MongoDatabase
from firnline.store.mongo.heads import SegmentSpan, state_of
from firnline.store.seals import seals_finding


async def check(database: MongoDatabase, *, thorough: bool) -> list[Finding]:
    """Run all checks, without changing anything."""
    version = await schema.check(database)
    findings = [
        await _server(database),
        Finding("writes", "ok", f"acknowledged once journaled: {database.writes.document}"),
        Finding("schema", "ok", f"version {version} of {schema.VERSION}"),
    ]
    content, flushed = await _content(database, thorough=thorough)
    damaged = await seals.all_damage(database) if thorough else None
    checked = [content, await _index(database, flushed), await _cards(database, thorough)]
    sealed = await database.read(
        lambda: database["conversations"].count_documents({"twin": {"$exists": True}})
    )
    return [*findings, *checked, seals_finding(sealed, damaged)]


async def _server(database: MongoDatabase) -> Finding:
    about = await database.read(lambda: database.database.command("buildInfo"))
    hello = await database.read(lambda: database.database.command("hello"))
    version = about.get("version", "?")
    if hello.get("setName"):
        return Finding("MongoDB", "ok", f"{version}, replica set {hello['setName']}")
    if hello.get("msg") == "isdbgrid":
        return Finding("MongoDB", "ok", f"{version}, a sharded cluster")
    return Finding("MongoDB", "warning", f"{version}, standalone server: its disk is the only copy")


async def _content(database: MongoDatabase, *, thorough: bool) -> tuple[Finding, int]:
    """The content, and how many entries are flushed or archived."""
    heads, entries, flushed, lives = 0, 0, 0, []
    broken = ""
    shown = {"tail.body": 0, "redo": 0, "seals": 0, "twin": 0}
    async for doc in database["conversations"].find({}, projection=shown):
        heads += 1
        entries += doc.get("next_seq", 0)
        flushed += doc.get("flushed", 0)
        lives.append(doc["_id"])
        broken = broken or _flaw(doc)
    if thorough and not broken:
        stray = await _stray(database, lives)
        broken = f"documents of {stray:,} conversations that do not exist" if stray else ""
    counts = f"{plural(heads, 'conversation')}, {plural(entries, 'message')}"
    if broken:
        return Finding("content", "broken", f"{counts}; {broken}"), flushed
    return Finding("content", "ok", counts), flushed


def _flaw(doc: Doc) -> str:
    try:
        state = state_of(Key(doc["tenant"], doc["conversation"]), doc)
        spans = [SegmentSpan(*span) for span in state.segments]
    except (StoreCorrupt, KeyError, TypeError) as error:
        return str(error)
    overlapping = any(b.first <= a.last for a, b in pairwise(spans))
    return "archived spans overlap" if overlapping else ""


async def _stray(database: MongoDatabase, lives: list[object]) -> int:
    """The number of conversations that have documents but no head."""
    known, strays = set(lives), set()
    for name in schema.OWNED:
        found = await database.read(partial(database[name].distinct, "life"))
        strays |= {life for life in found if life is not None and life not in known}
    noted = await database.read(lambda: database["erasures"].distinct("life"))
    return len(strays - set(noted))


async def _index(database: MongoDatabase, flushed: int) -> Finding:
    indexed = await database.read(lambda: database["words"].count_documents({"part": 0}))
    if indexed != flushed:
        detail = f"{indexed:,} of {flushed:,}; use --rebuild-index"
        return Finding("search index", "broken", detail)
    return Finding("search index", "ok", f"{plural(indexed, 'message')}")


async def _cards(database: MongoDatabase, thorough: bool) -> Finding:
    count = await database.read(lambda: database["cards"].count_documents({}))
    damaged = await cards.damaged_cards(database) if thorough else []
    if damaged:
        return Finding("cards", "broken", f"{len(damaged):,} of {count:,}: {damaged[0]}")
    return Finding("cards", "ok", f"{count:,}{', each one read' if thorough else ''}")
