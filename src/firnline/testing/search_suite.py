"""Store tests for search: what is found is the same in every store, and in the same order.

The reference is `RamStore`. Terms are made by `firnline.language`, so a store only has to weigh and
order them as it does.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import pytest

from firnline.log.entry import EntryDraft, IndexMatch, Key, Scope
from firnline.log.message import Message, ToolCall
from firnline.protocols import Clock, Store
from firnline.store.ram import RamStore
from firnline.testing.drafts import KEY, START, draft, drafts

SPOKEN = (
    "The apartments near the station are running out; an apartment costs 1,200 a month.",
    "I was studying the studies that students study, and organized the organization's files.",
    "She flies to the cities, carries the babies' bags and tries universities and universes.",
    "Running runners ran; hopping, hoped, hopes; generalizations of relational databases.",
    "Die Wohnung war schön, die Wohnungen sind größer; Straße oder STRASSE, Müßiggang.",
    "Häuser, Kinder und Donaudampfschifffahrtsgesellschaft: der Kapitän heißt Jürgen Groß.",
    "Le café naïf de Zoë à Besançon; año nuevo, mañana; coração; Привет, мир! γάλα",
    "Anna-Lena O'Neil, Dr. Müller-Lüdenscheidt and José meet McDonald's van der Berg.",
    "Order AB-1234x, invoice #2024/07-991, v2.10.3rc1, 3.14159, 0xDEADBEEF, Q3FY25s, 42nds",
    "Mail anna.schmidt+news@example.co.uk or root@localhost about https://example.com/a_b?c=d",
    "call find_order(order_id) in __init__.py, see MAX_RETRY_COUNTS and _private__names_ ___",
    "明日は東京都へ行きます。京都の東、iPhone15を買った。",
    "서울에서 만나요 그리고 สวัสดีครับ ภาษาไทย 我们在北京大学学习 🎉🎂 ok",
    "x y z I a 7 ' -- !? \u00a0 _ ½ ² ﬁnding Ⅷ",
)
QUERIES = (
    *("station's", "stationed", "flying", "city", "cities'", "tried", "university", "hoping"),
    *("organizations", "organize", "general", "relation", "runs", "wohnungen wohnung", "strasse"),
    *("GRÖSSER", "haus", "kindern", "muller", "jose", "zoe", "besancon", "мира", "o'neil's"),
    *("order", "orders id", "find", "order_id find_order", "init", "retry counts", "private_names"),
    *("schmidt@example", "AB1234X", "2024", "10 3rc1", "東京 都", "京", "行き", "iphone", "北京大"),
    *("대학", "สวัส", "🎉", "fi", "user", "friday", "january 2026", "assistant ana", "ana's"),
)


def _spoken() -> list[EntryDraft]:
    """The texts, some by name, some as calls of tools."""
    names = (None, "Ana", "snake_case_name", "東京")
    said = [Message.user(text, name=names[i % 4]) for i, text in enumerate(SPOKEN)]
    calls = [
        Message.assistant(tool_calls=[ToolCall.of("1", "find_orders", {"order_ids": ["zx81s"]})]),
        Message.assistant("ran apartments"),
    ]
    return [draft(message, minute=900 * i) for i, message in enumerate([*said, *calls])]


def _queries() -> list[str]:
    """Each word of the texts, as it is and changed, and the queries above."""
    words = {word for text in SPOKEN for word in text.split()}
    changed = {change for word in words for change in (word.upper(), word + "s", word[:-1])}
    return sorted({*words, *changed, *QUERIES} - {""})


SEARCHES: Final = 2_000
_TOGETHER: Final = 40  # queries at the same time
_ENTRIES: Final = 60
_TEXT: Final = """
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
_WORDS: Final = _TEXT.split()
_NAMES: Final = (None, "Ana", "Bob Smith", "Häusler")
_SCOPES: Final = (
    Scope(),
    Scope(conversation="one"),
    Scope(conversation="two", roles=frozenset({"user"})),
    Scope(project="p"),
    Scope(since=START + timedelta(days=1), until=START + timedelta(days=3)),
    Scope(conversation="none"),
)


_Ranked: TypeAlias = list[tuple[float, list[tuple[str, int]]]]


class _Search(NamedTuple):
    query: str
    scope: Scope
    limit: int


def _searches() -> Iterator[_Search]:
    """Words of the messages, parts of them, names and days, each time in a scope."""
    rng = random.Random(11)
    for _ in range(SEARCHES):
        words = rng.choices(_WORDS, k=rng.choice((1, 1, 2, 3, 6)))
        some = rng.choice(words)
        cut = rng.randint(0, max(len(some) - 5, 0))
        extra = rng.choice(([], [some[cut : cut + rng.randint(4, 8)]], ["Ana"], ["Wednesday"]))
        query = " ".join((*words, *extra))
        yield _Search(query, rng.choice(_SCOPES), rng.choice((5, 20, 500)))


async def _fill(store: Store) -> None:
    """Three conversations, in which some words are rarer than others, and another tenant's."""
    rng = random.Random(7)
    weights = [1 / (number + 3) for number in range(len(_WORDS))]
    for first in range(0, _ENTRIES, 10):
        said = []
        for number in range(first, first + 10):
            text = " ".join(rng.choices(_WORDS, weights, k=rng.randint(1, 25)))
            message = Message.user(text, name=rng.choice(_NAMES))
            message = Message.assistant(text) if number % 7 == 3 else message
            said.append(draft(message.at(START + timedelta(hours=number))))
        await store.append(Key("acme", ("one", "two", "three")[first // 10 % 3]), said)
    await store.append(Key("other", "one"), [draft("invoice pricing zebra")])
    await store.describe(Key("acme", "two"), project="p")
    await store.archive(Key("acme", "one"), 3, 12)


async def _found(store: Store) -> list[_Ranked]:
    """For each search the messages with each score, best first."""
    searches = list(_searches())
    found: list[_Ranked] = []
    for start in range(0, SEARCHES, _TOGETHER):
        some = searches[start : start + _TOGETHER]
        results = await asyncio.gather(
            *(store.search("acme", one.query, scope=one.scope, limit=one.limit) for one in some)
        )
        found += [
            [(score, sorted(hit[:2] for hit in same)) for score, same in groupby(hits, _score)]
            for hits in results
        ]
    return found


def _score(hit: IndexMatch) -> float:
    return hit.score


_EXPECTED: Final[list[_Ranked]] = []


async def _expected() -> Sequence[_Ranked]:
    """What the reference finds; it is asked once in a process."""
    if not _EXPECTED:
        reference = RamStore()
        await reference.open()
        await _fill(reference)
        _EXPECTED.extend(await _found(reference))
    return _EXPECTED


class SearchConformance:
    """The tests that `StoreConformance` inherits."""

    def make_store(self, folder: Path, clock: Clock) -> Store:
        """As in `StoreConformance`."""
        raise NotImplementedError

    @pytest.mark.promise("search-total")
    async def test_words_just_before_an_entry_raise_it(self, store: Store) -> None:
        noise = [f"{i} fine weather today" for i in range(30)]
        texts = [*noise, "blue", "which tent do you mean", *noise, "rope", "tent", *noise]
        await store.append(KEY, drafts(texts))
        best = await store.search("acme", "rope tent", limit=1)
        assert [match.seq for match in best] == [63]

    @pytest.mark.promise("search-total")
    async def test_a_day_named_in_the_query_raises_what_was_said_then(self, store: Store) -> None:
        days = [START + timedelta(days=31 * i) for i in range(8)]
        await store.append(KEY, [draft(Message.user("rope", created_at=day)) for day in days])
        best = await store.search("acme", f"rope {days[5]:%B}", limit=1)
        assert [match.seq for match in best] == [5]

    @pytest.mark.promise("search-total")
    async def test_every_store_finds_the_same_entries(self, store: Store) -> None:
        reference = RamStore()
        await reference.open()
        for one in (store, reference):
            await one.append(KEY, _spoken())
        queries = _queries()
        assert len(queries) > 300

        async def found(one: Store) -> list[set[int]]:
            hits = await asyncio.gather(*(one.search("acme", query, limit=99) for query in queries))
            return [{hit.seq for hit in each} for each in hits]

        theirs, ours = await found(reference), await found(store)
        differing = [
            (query, sorted(expected), sorted(got))
            for query, expected, got in zip(queries, theirs, ours, strict=True)
            if expected != got
        ]
        assert not differing
        known = dict(zip(queries, theirs, strict=True))
        assert known["organize"] == {1}
        assert known["order"] >= {8, 10, 14}
        assert known["wohnungen wohnung"] == {4}

    @pytest.mark.promise("search-total")
    @pytest.mark.requirement("B4")
    @pytest.mark.requirement("X2")
    async def test_two_thousand_searches_find_the_same_in_the_same_order(
        self, store: Store
    ) -> None:
        await _fill(store)
        # A search completes the index of its scope, and rare words are those of what is indexed.
        await store.search("acme", "zebra")
        expected, got = await _expected(), await _found(store)
        differing = [
            (search, theirs, ours)
            for search, theirs, ours in zip(_searches(), expected, got, strict=True)
            if theirs != ours
        ]
        assert not differing, differing[:3]
        assert sum(map(len, got)) > 2 * SEARCHES
