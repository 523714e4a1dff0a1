"""Every store finds the same entries for a query, in the same order."""

import os
import random
from datetime import UTC, datetime, timedelta
from itertools import groupby

import pytest

from firnline import Message
from firnline.log.entry import Key, Scope
from firnline.store import RamStore, SqliteStore
from firnline.store.mongo import MongoStore
from firnline.store.postgres import PostgresStore
from firnline.testing.conformance import draft

THOROUGH = bool(os.environ.get("FIRNLINE_TORTURE"))
QUERIES = 2_000 if THOROUGH else 100
ENTRIES = 400 if THOROUGH else 120
START = datetime(2026, 3, 2, 9, tzinfo=UTC)
TEXT = """
invoice invoices pricing repricing repriced price weather weatherproof keyboard board
dashboard run running ran deploy deployed deployment deployments server servers budget
monday march agreed we the a is not of Haus Häuser Wetter Wettervorhersage Rechnung
Rechnungen bezahlt die der und ist nicht canción canciones fiesta las los muy réunion
réunions équipe les des une станция станции птица мы и в tool_calls handle_tool_calls
getUserName user_name src/app/main.py main.py bob@example.com example.com
https://docs.example.com/a/b.html ERR-4012 TS2322 v1.2.3 C++ naïve café
Krankenhaus Straßenbahn OAuth2Token
перепланировку 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b 9f86d08 東京都 東京 京都 서울에서 👍
zebra
"""
WORDS = TEXT.split()
NAMES = (None, "Ana", "Bob Smith", "Häusler")
SCOPES = (
    Scope(),
    Scope(conversation="one"),
    Scope(conversation="two", roles=frozenset({"user"})),
    Scope(project="p"),
    Scope(since=START + timedelta(days=2), until=START + timedelta(days=9)),
    Scope(conversation="none"),
)


def corpus(rng):
    """Batches of messages by conversation; rare words are rarer than others."""
    for number in range(ENTRIES // 10):
        name = ("one", "two", "three")[number % 3]
        yield name, [one_draft(rng, number * 10 + place) for place in range(10)]


def one_draft(rng, number):
    words = rng.choices(WORDS, [1 / (n + 3) for n in range(len(WORDS))], k=rng.randint(1, 25))
    at = START + timedelta(hours=number)
    if number % 7 == 3:
        return draft(Message.assistant(" ".join(words)).at(at))
    return draft(Message.user(" ".join(words), name=rng.choice(NAMES)).at(at))


def queries(rng):
    for _ in range(QUERIES):
        words = rng.choices(WORDS, k=rng.choice((1, 1, 2, 3, 6)))
        some = rng.choice(words)
        cut = rng.randint(0, max(len(some) - 5, 0))
        extra = rng.choice(([], [some[cut : cut + rng.randint(4, 8)]], ["Ana"], ["Wednesday"]))
        yield " ".join((*words, *extra)), rng.choice(SCOPES), rng.choice((5, 20, 500))


def by_score(hits):
    """The entries with each score, best first."""
    return [
        (score, sorted((hit.conversation, hit.seq) for hit in some))
        for score, some in groupby(hits, key=lambda hit: hit.score)
    ]


@pytest.mark.requirement("B4")
@pytest.mark.requirement("X2")
@pytest.mark.promise("search-total")
async def test_all_stores_find_the_same_in_the_same_order(tmp_path, postgres, mongo):
    stores = [
        RamStore(),
        SqliteStore(tmp_path / "s.db", full_sync=False),
        PostgresStore(postgres.url),
        MongoStore(mongo.url),
    ]
    for store in stores:
        rng = random.Random(7)
        await store.open()
        for name, drafts in corpus(rng):
            await store.append(Key("acme", name), drafts)
        await store.append(Key("other", "one"), [draft(Message.user("invoice pricing zebra"))])
        await store.describe(Key("acme", "two"), project="p")
        await store.archive(Key("acme", "one"), 3, 20)
    try:
        found = 0
        for query, scope, limit in queries(random.Random(11)):
            expected, *others = [
                await store.search("acme", query, scope=scope, limit=limit) for store in stores
            ]
            found += len(expected)
            for store, hits in zip(stores[1:], others, strict=True):
                assert by_score(hits) == by_score(expected), (store, query, scope, limit)
        assert found > 5 * QUERIES
    finally:
        for store in stores:
            await store.close()
