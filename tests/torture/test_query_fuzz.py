"""For any query: no error, no entry of another tenant, nothing outside of the given range.

20,000 queries in the tests and 1,000,000 in `make torture`, there in several processes.
"""

import asyncio
import os
import random
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "scripts"))  # also where it runs as a program
from torture_kit import TORTURE, soon

from firnline import Memory, Message, count_tokens
from firnline.log.entry import Key, Scope

QUERIES = 1_000_000 if TORTURE else 10_000
SHARES = {"sqlite": 0.1, "memory": 0.86}  # in proportion to their speed
SERVER_SHARE = 0.02
PROCESSES = max(os.cpu_count() or 1, 2) if TORTURE else 1
NOW = datetime(2026, 3, 11, 12, tzinfo=UTC)
FOREIGN = "xyzzy"
"""In every entry of the other tenant, and in none of ours."""
ROLES = ["user", "assistant", "system", "tool"]
OWN = [
    "Where is order 1138 for Ana? It costs 40 euros.",
    "Order 1138 left Hamburg on Monday, March 2, and comes by rail.",
    "来週、東京に行きたいです。ホテルは予約しました。",
    "내일 회의는 세 시입니다. 👩‍💻🚀",
    "Herr Müller wohnt in der Königsstraße 7.",
    "def parse_config(path: str) -> dict: return json.load(open(path))",
    'SELECT * FROM "entry" WHERE tenant = \'b\' -- NEAR(order, 2) AND "x" OR y*',
    "Кошка спит. שלום. ฉันชอบกาแฟดำ. e\u0301",
]


# -- what is asked ----------------------------------------------------------------------------

_SYNTAX = r"""AND OR NOT NEAR( NEAR/2 * ** " "" ' ''' ( ) (( )) { } : ^ + - -- ; , . % _ \ / // ` ~
! ? # $1 @p :p ?1 terms: before: facts: rowid: search: {terms before} :( "a b" a* ^a a+b -a 'a' "a
roleuser roleassistant role* bm25( rank: MATCH GLOB LIKE 0x 1e999 NaN -0 NULL"""
_DATES = """yesterday today 2026-03-10 2026-02-30 0000-00-00 9999-12-31 tuesday march 1970 Q2 2025
999999999 days ago last week since before between and 29 february 3月 gestern ayer 31 12 99"""
_WORDS = """order orders 1138 hamburg ana rail müller strasse parse_config it what when who how many
東京 ホテル 会 회의 กาแฟ кошка שלום 🚀 👩‍💻 euros i you the a is"""
SYNTAX, DATES, WORDS = _SYNTAX.split(), _DATES.split(), _WORDS.split()
SQL = [
    "'; DROP TABLE entry; --",
    "' OR '1'='1",
    '" OR 1=1 --',
    "x' UNION SELECT body FROM entry --",
    "1); DELETE FROM search; (",
    "/* */ ATTACH 'x' AS y",
    "INSERT INTO search(search) VALUES('delete-all')",
    f"tenant:b {FOREIGN}",
    f"conversation = 'secret' {FOREIGN}",
    "../../secret",
    "${jndi:x}",
    "{{7*7}}",
]
PLANES = [
    (0x0, 0x7F),
    (0x80, 0x2FF),
    (0x300, 0x36F),
    (0x370, 0x1FFF),
    (0x2000, 0x2BFF),
    (0x2E80, 0x9FFF),
    (0xA000, 0xD7FF),
    (0xD800, 0xDFFF),
    (0xE000, 0xFFFF),
    (0x10000, 0x1FFFF),
    (0x20000, 0x3FFFF),
    (0xE0000, 0x10FFFF),
]
RUNS = ["a", "order ", "東", "\u0301", "\u202e", "\ud83d", '"', "(", "*", "\0", "🚀", "ﷺ", "2026-"]


def characters(rng):
    low, high = rng.choice(PLANES)
    return "".join(chr(rng.randint(low, high)) for _ in range(rng.randint(1, 12)))


def piece(rng):
    kind = rng.random()
    if kind < 0.3:
        return rng.choice(WORDS)
    if kind < 0.5:
        return rng.choice(SYNTAX)
    if kind < 0.75:
        return characters(rng)
    if kind < 0.85:
        return rng.choice(DATES)
    if kind < 0.93:
        return rng.choice(SQL)
    return FOREIGN


def query(rng):
    """Any text, now and then a huge one."""
    kind = rng.random()
    if kind < 0.002:
        return rng.choice(RUNS) * rng.choice([1_000, 20_000, 100_000])
    if kind < 0.02:
        return rng.choice(RUNS) * rng.randint(0, 300)
    if kind < 0.1:
        text = rng.choice(OWN)
        start = rng.randrange(len(text))
        return text[start : start + rng.randint(0, 30)]
    joint = rng.choice([" ", " ", " ", "", "\n", "\0", "-", '"'])
    return joint.join(piece(rng) for _ in range(rng.randint(0, 7)))


# -- whom ------------------------------------------------------------------------------------


@dataclass
class Place:
    """A store with two tenants, and what is ours in it."""

    memory: Memory
    by_meaning: Memory
    entries: dict
    projects: dict
    topics: dict
    of: dict
    asked: tuple = ()


async def furnish(memory):
    """Three conversations of ours, archived in part, and the same names with others' words."""
    other = Memory(memory.store, tenant="b", embedder="words", worker=False, clock=lambda: NOW)
    topics = {}
    for number, name in enumerate(("c", "d", "secret")):
        ours = [
            Message(
                role=ROLES[0] if place % 3 else ROLES[1 + place % 2],
                content=f"{OWN[place % len(OWN)]} ({name} {place})",
                name=speaker(place),
                created_at=NOW - timedelta(days=30 - place, hours=number),
            )
            for place in range(24)
        ]
        theirs = [
            Message.user(f"{FOREIGN} {OWN[place % len(OWN)]}", created_at=NOW)
            for place in range(24)
        ]
        await memory.append(name, ours)
        await other.append(name, theirs)
        await other.describe(name, project="p")
        await memory.archive(name, keep=12)
        topics[name] = [topic.topic_id for topic in await memory.topics(name)]
        await memory.tag_topic(name, topics[name][0], add=["t"])
        await other.embed(name)
    await memory.describe("c", project="p")
    by_meaning = Memory(memory.store, embedder="words", worker=False, clock=lambda: NOW)
    for name in topics:
        await by_meaning.embed(name)
    entries = {name: await memory.read(name) for name in topics}
    of = {
        (name, seq): topic
        for name in topics
        for topic in topics[name]
        for seq in await memory.store.members(Key(memory.tenant, name), topic)
    }
    return Place(memory, by_meaning, entries, {"c": "p"}, topics, of)


def speaker(place):
    return "Ana" if place % 5 == 0 else None


def filters(rng, place):
    """The range, as `recall` accepts it."""
    chosen = {"conversation": rng.choice(["c", "c", "d", "secret", None, None, "nobody"])}
    if rng.random() < 0.15:
        chosen["roles"] = rng.sample(ROLES, rng.randint(1, 2))
    if rng.random() < 0.15:
        chosen["since"] = NOW - timedelta(days=rng.uniform(0, 40))
    if rng.random() < 0.15:
        chosen["until"] = NOW - timedelta(days=rng.uniform(0, 40))
    if rng.random() < 0.1:
        chosen["project"] = rng.choice(["p", "p", "q"])
    if rng.random() < 0.05:
        chosen["tags"] = rng.choice([["t"], ["t", "u"]])
    name = chosen["conversation"]
    if name in place.topics and rng.random() < 0.05:
        chosen["topic"] = rng.choice(place.topics[name])
    return chosen


def check(place, given, conversation, seq, message=None):
    """What was found is ours, as it was said, and within what was named."""
    assert conversation in place.entries, "of nobody"
    assert given["conversation"] in (None, conversation), "of another conversation"
    assert given.get("project") in (None, place.projects.get(conversation)), "of another project"
    entry = place.entries[conversation][seq]
    if message is not None:
        assert message == entry.message, "of somebody else"
    at, role = entry.message.created_at, entry.message.role
    assert FOREIGN not in entry.message.text
    assert "roles" not in given or role in given["roles"]
    assert "since" not in given or at >= given["since"]
    assert "until" not in given or at < given["until"]
    topic = place.of.get((conversation, seq))
    assert given.get("topic") in (None, topic), "of another topic"
    tagged = given.get("tags") == ["t"] and topic == place.topics[conversation][0]
    assert "tags" not in given or tagged


async def recall_once(rng, place):
    memory = place.by_meaning if rng.random() < 0.25 else place.memory
    given, text = place.asked = filters(rng, place), query(rng)
    most = {"tokens": rng.choice([0, 5, 60, 400])} if rng.random() < 0.4 else {}
    if rng.random() < 0.5:
        most["limit"] = rng.choice([1, 3, 10, 50])
    hits = await memory.recall(query=text, **given, **most)
    assert len(hits) <= most.get("limit", 10**6 if "tokens" in most else 10)
    assert len({(hit.conversation, hit.seq) for hit in hits}) == len(hits), "found twice"
    for hit in hits:
        check(place, given, hit.conversation, hit.seq, hit.message)
        assert abs(hit.score - sum(hit.parts.values())) < 1e-6
    if "tokens" in most:
        sizes = [
            count_tokens(f"{h.message.name or h.message.role}: {h.message.text}") for h in hits
        ]
        assert sum(sizes) <= most["tokens"]
    return bool(hits)


async def search_once(rng, place):
    given, text = place.asked = filters(rng, place), query(rng)
    given.pop("tags", None)
    topic = given.get("topic")
    topics = None if topic is None else ((given["conversation"], topic),)
    roles = frozenset(given.get("roles", ()))
    named = {name: value for name, value in given.items() if name != "topic"}
    scope = Scope(**{**named, "roles": roles, "topics": topics})
    limit = rng.choice([0, 1, 5, 100])
    found = await place.memory.store.search("default", text, scope=scope, limit=limit)
    assert len(found) <= limit
    for conversation, seq, _ in found:
        check(place, given, conversation, seq)
    return bool(found)


async def context_once(rng, place):
    text, name = place.asked = query(rng), rng.choice(["c", "d", "nobody"])
    context = await place.memory.context(name, 400, question=text)
    assert context.tokens <= 400
    for hit in context.hits:
        check(place, {"conversation": name}, hit.conversation, hit.seq, hit.message)
    assert FOREIGN not in str([piece.message.text for piece in context.pieces])
    return bool(context.hits)


async def fuzz(url, seed, queries):
    """Ask so many questions; returns how many had results."""
    rng, found = random.Random(seed), 0
    async with Memory.open(url, clock=lambda: NOW, embedder=None, worker=False) as memory:
        place = await furnish(memory)
        for number in range(queries):
            one = recall_once if number % 2 else search_once
            one = context_once if number % 200 == 0 else one
            try:
                found += await soon(one(rng, place))
            except Exception as error:
                asked = f"{one.__name__} {place.asked!r:.1000}"
                raise AssertionError(f"query {number} of seed {seed}: {asked}") from error
    return found


# -- the tests --------------------------------------------------------------------------------


async def in_processes(url, seed, queries):
    """The same in several processes, each with its own store."""

    async def one(number):
        own = url.replace("store.db", f"store{number}.db")
        arguments = [str(Path(__file__)), own, str(seed + number), str(queries // PROCESSES)]
        process = await asyncio.create_subprocess_exec(
            sys.executable, *arguments, stdout=asyncio.subprocess.PIPE
        )
        out, _ = await process.communicate()
        assert process.returncode == 0, f"seed {seed + number}: see its error output"
        return int(out)

    return sum(await asyncio.gather(*map(one, range(PROCESSES))))


@pytest.mark.promise("search-total")
@pytest.mark.promise("tenants-apart")
@pytest.mark.requirement("B4")
async def test_no_query_is_an_error_or_finds_what_it_must_not(url, seed):
    kind = url.partition(":")[0]
    share = SHARES.get(kind, SERVER_SHARE)
    queries = int(QUERIES * share)
    # A server's database is one: processes would find each other's conversations there.
    run = in_processes if TORTURE and kind in ("sqlite", "memory") else fuzz
    found = await run(url, seed, queries)
    assert found > queries / 4, "most found nothing; the test proves little"


def test_the_queries_are_of_every_kind():
    rng = random.Random(5)
    texts = [query(rng) for _ in range(5_000)]
    everything = "".join(text[:1_000] for text in texts)
    for low, high in PLANES:
        assert any(low <= ord(character) <= high for character in set(everything))
    for sign in ("\0", '"', "*", "NEAR(", "東京", "🚀", "\ud83d", "DROP TABLE", FOREIGN):
        assert any(sign in text for text in texts), sign
    assert max(map(len, texts)) >= 100_000
    assert "" in texts
    assert len(set(texts)) > 4_000
    assert next(n for n in count() if query(rng).isascii()) < 100


if __name__ == "__main__":
    _, given_url, given_seed, given_queries = sys.argv
    print(asyncio.run(fuzz(given_url, int(given_seed), int(given_queries))))  # noqa: T201
