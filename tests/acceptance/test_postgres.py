"""PostgreSQL only: its schema, policies, errors and backups."""

import asyncio
import random
import re
import subprocess
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from importlib import resources
from itertools import chain

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from firnline import Memory, Message
from firnline.embedding.quantize import join_tokens, pack
from firnline.engine.worker import Worker
from firnline.errors import (
    BadURL,
    ConflictError,
    FirnlineError,
    InputError,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreTimeout,
    StoreTooNew,
    StoreUnavailable,
)
from firnline.language.stems import stem
from firnline.log.entry import Card, Digest, Idempotency, Key, Project, Scope, Topic
from firnline.log.message import utc_now
from firnline.protocols import Vector
from firnline.recall.vectors import NearestVectors
from firnline.store import missing_file, open_store, redact_url, restore_backup
from firnline.store.postgres import PostgresStore, append, listen, log, migrate, search, words
from firnline.store.postgres.connection import PostgresDatabase, Transaction
from firnline.testing.drafts import FOREIGN, KEY, OTHER, START, draft, drafts
from support import clock_skew
from support.postgres_proxy import Line, Pooler, listening, url_behind
from support.postgres_server import ROLE, binaries

WITHOUT_TENANT = {"installed", "embedder", "owed"}
TERMINATE = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid != pg_backend_pid()"
)


@asynccontextmanager
async def opened(url, **options):
    store = PostgresStore(url, **options)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


@pytest.fixture
async def store(postgres):
    async with opened(postgres.url) as store:
        yield store


# -- the schema -------------------------------------------------------------------------------

SHAPE = {
    "columns": (
        "SELECT table_name, column_name, data_type, collation_name, is_nullable, column_default,"
        " is_identity FROM information_schema.columns WHERE table_schema = 'firnline'"
    ),
    "functions": (
        "SELECT proname, pg_get_functiondef(oid) FROM pg_proc"
        " WHERE pronamespace = 'firnline'::regnamespace"
    ),
    "indexes": "SELECT tablename, indexdef FROM pg_indexes WHERE schemaname = 'firnline'",
    "policies": "SELECT tablename, policyname, cmd, qual FROM pg_policies",
    "tables": (
        "SELECT relname, relrowsecurity, relforcerowsecurity, reloptions FROM pg_class"
        " WHERE relnamespace = 'firnline'::regnamespace AND relkind = 'r'"
    ),
    "triggers": (
        "SELECT tgrelid::regclass::text, pg_get_triggerdef(oid) FROM pg_trigger"
        " WHERE NOT tgisinternal"
    ),
    "storage": (
        "SELECT attrelid::regclass::text, attname, attstorage FROM pg_attribute JOIN pg_class c"
        " ON c.oid = attrelid AND c.relkind = 'r' AND c.relnamespace = 'firnline'::regnamespace"
        " WHERE attnum > 0"
    ),
}


def shape(database):
    return {name: sorted(map(str, database.run(query))) for name, query in SHAPE.items()}


async def migrated(database, migrations):
    connection = await psycopg.AsyncConnection.connect(database.conninfo, autocommit=True)
    async with connection:
        return await migrate.migrate(connection, migrations)


@pytest.mark.promise("typed-failure")
async def test_all_migrations_together_are_the_schema(postgres):
    postgres.drop_schema()
    assert await migrated(postgres, migrate.shipped_migrations()) == max(
        migrate.shipped_migrations()
    )
    stepwise = shape(postgres)
    postgres.drop_schema()
    schema = resources.files("firnline").joinpath("store/postgres/schema.sql").read_text()
    await migrated(postgres, {1: schema})
    assert shape(postgres) == stepwise
    assert stepwise["policies"]


def test_migrations_only_add():
    """A process of the previous version keeps working: nothing it uses is gone or renamed."""
    for number, sql in migrate.shipped_migrations().items():
        plain = re.sub(r"--.*", "", sql)
        assert number == 1 or not re.search(
            r"\b(DROP|RENAME|ALTER COLUMN|(?<!IS )NOT NULL(?! DEFAULT))\b", plain
        )


async def test_the_previous_version_continues_while_a_newer_one_migrates(postgres, store):
    postgres.meddle()
    newer = {**migrate.shipped_migrations(), 99: "ALTER TABLE conversation ADD COLUMN later text"}
    newer = dict(enumerate(newer.values(), 1))
    stop = asyncio.Event()

    async def write():
        written = 0
        while not stop.is_set():
            await store.append(KEY, [draft(f"m{written}")])
            written += 1
        return written

    writing = asyncio.create_task(write())
    while await store.head(KEY) is None:
        await asyncio.sleep(0.01)
    assert await migrated(postgres, newer) == max(newer)
    after = (await store.head(KEY)).entries
    while (await store.head(KEY)).entries < after + 3:
        await asyncio.sleep(0.01)
    stop.set()
    written = await writing
    assert len(await store.read(KEY)) == written
    with pytest.raises(StoreTooNew):
        await PostgresStore(postgres.url).open()


async def test_concurrent_openers_create_a_database_once(postgres):
    postgres.drop_schema()
    stores = [PostgresStore(postgres.url) for _ in range(8)]
    await asyncio.gather(*(store.open() for store in stores))
    await asyncio.gather(*(s.append(KEY, [draft(f"m{i}")]) for i, s in enumerate(stores)))
    assert len(await stores[0].read(KEY)) == 8
    for store in stores:
        await store.close()


async def test_a_migration_that_fails_leaves_nothing_behind(postgres):
    postgres.drop_schema()
    with pytest.raises(psycopg.Error):
        await migrated(postgres, {1: "CREATE TABLE a (x int); CREATE TABLE a (x int)"})
    assert postgres.run("SELECT to_regnamespace('firnline')::text") == [(None,)]


async def test_what_is_not_ours_is_left_alone(postgres):
    postgres.drop_schema()
    postgres.run(
        f"CREATE SCHEMA firnline AUTHORIZATION {ROLE}; CREATE TABLE firnline.theirs (x int)"
    )
    with pytest.raises(StoreError, match="not Firnline's"):
        await PostgresStore(postgres.url).open()
    assert postgres.run("SELECT count(*) FROM firnline.theirs") == [(0,)]


@pytest.mark.promise("typed-failure")
async def test_what_cannot_be_opened_says_why(postgres):
    with pytest.raises(BadURL):
        open_store("postgresql://%zz")
    nobody = postgres.url.replace(ROLE, "nobody_known")
    with pytest.raises(FirnlineError) as caught:
        await open_store(nobody).open()
    assert "not a secret" not in str(caught.value)
    with pytest.raises(StoreUnavailable):
        await open_store("postgresql://u:hidden@127.0.0.1:1/x").open()


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:hidden@host/db",
        "postgresql://u:hid%40den@host:5/db?sslmode=require",
        "postgresql:///db?user=u&password=hidden&host=h",
        "postgresql://h/db?sslmode=require&sslpassword=hidden",
        "mongodb://h/db?authMechanismProperties=AWS_SESSION_TOKEN:hidden",
        "postgresql://u:hid/den@host/db",
        "postgresql://u:hid@den@host/db",
        "postgresql://u:hid#den@host/db",
        "postgresql:u:hidden@host/db",
        "mysql://u:hidden@host/db",
    ],
)
def test_a_password_is_never_shown(url):
    assert "hid" not in redact_url(url)
    assert redact_url(url).split(":")[0] == url.split(":")[0]
    with pytest.raises(FirnlineError) as caught:
        open_store(url.replace("postgresql", "oracle").replace("mongodb", "oracle"))
    assert "hid" not in str(caught.value)
    assert "den" not in str(caught.value)


@pytest.mark.parametrize("scheme", ["postgresql", "mongodb"])
@pytest.mark.parametrize(
    "rest",
    [
        "://u:hid@den@host/db",
        "://u:hid/den@host/db",
        "://u:hid?den@host/db",
        "://u:hid#den@host/db",
        "://u:hid%zzden@host/db",
        "://u@host/db?password=hid%zzden",
        ":u:hidden@host/db",
        "://u:hidden@[host/db",
    ],
)
def test_an_ambiguous_password_is_rejected_and_not_shown(scheme, rest):
    with pytest.raises(BadURL) as caught:
        open_store(scheme + rest)
    assert not re.search("hid|den", str(caught.value))
    with suppress(BadURL):  # what asks whether there is a file asks any URL
        assert missing_file(scheme + rest) is None


def test_the_error_of_a_rejected_url_quotes_only_an_option_name():
    with pytest.raises(BadURL, match="sslmod"):
        open_store("postgresql://u:hidden@host/db?sslmod=require")
    with pytest.raises(BadURL) as caught:
        open_store("postgresql://u@host/db?password=hid&den")
    assert not re.search("hid|den", str(caught.value))


def test_an_at_sign_in_an_option_is_no_password():
    url = "postgresql://host/db?user=me@cloud&password=hidden"
    store = open_store(url)
    connects = conninfo_to_dict(store._database.conninfo)
    wanted = {"host": "host", "dbname": "db", "user": "me@cloud", "password": "hidden"}
    assert wanted.items() <= connects.items()
    assert "hidden" not in redact_url(url)


# -- tenants ----------------------------------------------------------------------------------


async def _everything(store, key):
    """Something of `key` in every table."""
    lease = await _filled(store, key)
    vectors = [Vector(0, 0, b"canary")]
    await store.put_vectors(key, "model", vectors, first_seq=0, next_seq=4)
    await store.archive(key, 0, 1)
    await store.release(lease)


async def _filled(store, key):
    name = Idempotency("canary", "f")
    items = [draft(f"canary {key.tenant} {i}", pinned=True) for i in range(4)]
    await store.append(key, items, idempotency=name)
    lease = await store.lease(key, "w", 60)
    begun = await store.begin_digest(lease, Digest(version=0, first_seq=0, last_seq=1))
    digest = {"status": "completed", "text": f"canary of {key.tenant}"}
    await store.finish_digest(lease, Digest(**{**_fields(begun), **digest}))
    topic = _topic(0)
    await store.assign(key, [topic], {0: 0, 1: 0}, revision=0, next_seq=2)
    card = Card(tenant=key.tenant, kind="k", name="canary", body=b"canary")
    await store.put_cards([Card(**{**_fields(card), "conversation": key.conversation})])
    await store.save_project(key.tenant, Project("canary"))
    return lease


def _fields(value):
    return {name: getattr(value, name) for name in value.__slots__}


def _topic(number):
    return Topic(id=number, title="canary", created_at=START, last_active_at=START)


def _tables(database):
    query = "SELECT tablename FROM pg_tables WHERE schemaname = 'firnline'"
    return sorted(name for (name,) in database.run(query))


def _dead_rows(database):
    """The tables with dead rows."""
    query = "SELECT dead_tuple_count FROM public.pgstattuple('firnline.{}')"
    return [name for name in _tables(database) if database.run(query.format(name)) != [(0,)]]


@pytest.mark.promise("tenants-apart")
async def test_the_database_itself_keeps_tenants_apart(postgres, store):
    """Whatever the query: a transaction sees and writes what belongs to the tenant it names."""
    for key in (KEY, FOREIGN):
        await _everything(store, key)
    tables = [name for name in _tables(postgres) if name not in WITHOUT_TENANT]
    assert len(tables) == 17
    for table in tables:
        (count,) = postgres.run(f"SELECT count(DISTINCT tenant) FROM firnline.{table}")[0]
        assert count == 2, table
    with psycopg.connect(postgres.conninfo, autocommit=True) as someone:
        for whose, seen in (("", 0), ("acme", 0), ("=acme", 1), ("=", 0), ("=nobody", 0), ("*", 2)):
            for table in tables:
                query = f"SELECT count(DISTINCT tenant) FROM firnline.{table}"
                with someone.transaction():
                    someone.execute("SELECT set_config('firnline.tenant', %s, true)", [whose])
                    (count,) = someone.execute(query).fetchone()
                assert count == (2 if table == "search" else seen), (whose, table)
            (left,) = someone.execute("SELECT count(*) FROM firnline.entry").fetchone()
            assert left == 0, "what a transaction says ends with it"


@pytest.mark.promise("tenants-apart")
async def test_a_tenant_cannot_write_for_another_one(postgres, store):
    for key in (KEY, FOREIGN):
        await _everything(store, key)
    tables = [name for name in _tables(postgres) if name not in WITHOUT_TENANT]
    with psycopg.connect(postgres.conninfo, autocommit=True) as someone:
        for table in tables:
            for sql in ("DELETE FROM firnline.{}", "UPDATE firnline.{} SET tenant = tenant"):
                with someone.transaction(force_rollback=True):
                    someone.execute("SET LOCAL firnline.tenant = '=acme'")
                    changed = someone.execute(sql.format(table)).rowcount
                    assert changed > 0
                    someone.execute("SET LOCAL firnline.tenant = '*'")
                    query = f"SELECT count(*) FROM firnline.{table} WHERE tenant = 'evil'"
                    assert someone.execute(query).fetchone()[0] > 0, (table, sql)
            with pytest.raises(psycopg.errors.InsufficientPrivilege), someone.transaction():
                someone.execute("SET LOCAL firnline.tenant = '=acme'")
                someone.execute(f"UPDATE firnline.{table} SET tenant = 'evil'")


_COPIES = 400


def _much(postgres):
    """The same text many more times, much later in the same conversation."""
    moved = f"generate_series(100, {_COPIES} * 100, 100) AS by"
    entry = "tenant, conversation, seq + by, tokens, total, tokenizer, hash, body"
    segment = (
        "tenant, conversation, first_seq + by, last_seq + by, hash_before, hash, total_before,"
        " total, checksum, body"
    )
    for table, columns in (("entry", entry), ("segment", segment)):
        into, name = columns.replace(" + by", ""), f"firnline.{table}"
        postgres.run(f"INSERT INTO {name} ({into}) SELECT {columns} FROM {name}, {moved}")
        postgres.run(f"ANALYZE {name}")


def _read_whole(postgres, table):
    """How often a table was read from one end to the other."""
    postgres.run("SELECT pg_stat_force_next_flush()")
    (found,) = postgres.run(
        "SELECT seq_scan FROM pg_stat_user_tables WHERE schemaname = 'firnline' AND relname = %s",
        [table],
    )
    return found[0]


async def test_a_page_is_read_without_what_lies_behind_it(postgres, store):
    """`verify`, `export` and `migrate` walk page by page: what they do must not grow twice."""
    await store.append(KEY, drafts([f"{place} " + "x" * 300 for place in range(60)]))
    await store.archive(KEY, 0, 9)
    _much(postgres)
    before = [_read_whole(postgres, table) for table in ("entry", "segment")]
    async with opened(postgres.url) as reader:  # its statistics arrive when it is closed
        live = await reader.records(KEY, 10, 1_000)
        archived = await reader.records(KEY, 0, 10)
    assert [record.seq for record in archived + live[:50]] == list(range(60))
    assert [_read_whole(postgres, table) for table in ("entry", "segment")] == before


def _many(postgres):
    """Conversations of the tenant, most of them in a project."""
    postgres.meddle()
    postgres.run(
        "INSERT INTO firnline.conversation (tenant, name, genesis, hash, next_seq, created_at,"
        " updated_at, project) SELECT 'acme', 'c' || i, 'g', 'h', 1, 1, 1,"
        " 'p' || nullif(i % 5, 0) FROM generate_series(1, 20000) i"
    )
    postgres.run("ANALYZE firnline.conversation")


async def test_a_project_s_conversations_are_found_without_the_others(postgres, store):
    await store.describe(KEY, project="mine")
    _many(postgres)
    before, read_whole = _indexed(postgres), _read_whole(postgres, "conversation")
    async with opened(postgres.url) as reader:
        (found,) = await reader.conversations("acme", project="mine")
    assert found.conversation == KEY.conversation
    assert _indexed(postgres) - before < 10
    assert _read_whole(postgres, "conversation") == read_whole


async def test_a_search_does_not_walk_through_a_tenants_conversations(postgres, store):
    """The number of entries is estimated from the first thousand of them."""
    await store.append(KEY, drafts(["rope"]))
    _many(postgres)
    before = _indexed(postgres)
    async with opened(postgres.url) as reader:
        assert len(await reader.search("acme", "rope")) == 1
    assert _indexed(postgres) - before < 5_000


def _indexed(postgres):
    """How many entries of indexes on conversations were read."""
    postgres.run("SELECT pg_stat_force_next_flush()")
    (found,) = postgres.run(
        "SELECT sum(idx_tup_read)::bigint FROM pg_stat_user_indexes"
        " WHERE schemaname = 'firnline' AND relname = 'conversation'"
    )
    return found[0]


@pytest.mark.promise("tenants-apart")
async def test_the_word_index_holds_no_words_and_is_used(postgres, store):
    """It is read without a policy, so it must contain no text; and it is fast."""
    for key in (KEY, FOREIGN):
        await store.append(key, drafts([f"canary number {i}" for i in range(3_000)]))
    everything = str(postgres.run("SELECT * FROM firnline.search"))
    assert not re.search("canar|number|roleuser|user", everything)
    mine = words.lexeme("acme", stem("canary"))
    assert mine != words.lexeme("evil", stem("canary"))
    (rows,) = postgres.run("SELECT count(*) FROM firnline.search WHERE words @@ %s", [f"'{mine}'"])
    assert rows == (3_000,)
    postgres.run("ANALYZE firnline.search")
    rare = words.lexeme("acme", "1234")
    with psycopg.connect(postgres.conninfo) as someone:
        someone.execute("SET LOCAL firnline.tenant = '=acme'")
        plan = someone.execute(
            f"EXPLAIN SELECT seq FROM firnline.search WHERE tenant = 'acme' AND words @@ '{rare}'"
        ).fetchall()
    assert "search_words" in str(plan)


async def test_a_superuser_is_warned_that_policies_do_not_apply(postgres, store):
    (tenants,) = [f for f in await store.check() if f.what == "tenants"]
    assert tenants.state == "ok"
    async with opened(postgres.url.replace(ROLE, "postgres")) as mighty:
        (tenants,) = [f for f in await mighty.check() if f.what == "tenants"]
    assert (tenants.state, "superuser" in tenants.detail) == ("warning", True)
    postgres.run("ALTER TABLE firnline.entry NO FORCE ROW LEVEL SECURITY")
    (tenants,) = [f for f in await store.check() if f.what == "tenants"]
    postgres.run("ALTER TABLE firnline.entry FORCE ROW LEVEL SECURITY")
    assert (tenants.state, "entry" in tenants.detail) == ("broken", True)


# -- what fails -------------------------------------------------------------------------------


@asynccontextmanager
async def failing(database, code, times=1_000_000):
    """Appends fail with this SQLSTATE, so many times."""
    database.run(
        "CREATE SEQUENCE public.tries; GRANT ALL ON SEQUENCE public.tries TO PUBLIC;"
        "CREATE FUNCTION public.fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        f" IF nextval('public.tries') <= {times} THEN"
        f" RAISE EXCEPTION 'on purpose' USING ERRCODE = '{code}', DETAIL = NEW.body; END IF;"
        " RETURN NEW; END $$;"
        "CREATE TRIGGER fail BEFORE INSERT ON firnline.entry FOR EACH ROW"
        " EXECUTE FUNCTION public.fail()"
    )
    try:
        yield lambda: database.run("SELECT last_value FROM public.tries")[0][0]
    finally:
        database.run("DROP FUNCTION public.fail CASCADE; DROP SEQUENCE public.tries")


@pytest.mark.promise("typed-failure")
@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("53100", StoreFull),
        ("53200", StoreUnavailable),
        ("25006", StoreReadOnly),
        ("XX001", StoreCorrupt),
        ("58030", StoreUnavailable),
        ("55P03", StoreUnavailable),
        ("57014", StoreUnavailable),
        ("40001", StoreUnavailable),
        ("40P01", StoreUnavailable),
        ("42501", StoreError),
        ("P0001", StoreError),
    ],
)
async def test_every_failure_has_a_type_and_nothing_was_written(postgres, store, code, expected):
    await store.append(KEY, drafts("ab"))
    async with failing(postgres, code) as tries:
        with pytest.raises(expected) as caught:
            await store.append(KEY, drafts(["a canary"]))
        assert type(caught.value) is expected
        assert "canary" not in str(caught.value)
        assert tries() == (5 if code.startswith("40") else 1), "tried again only where it helps"
    assert len(await store.read(KEY)) == 2
    await store.append(KEY, drafts("c"))


async def test_a_lock_that_is_released_in_time_is_not_noticed(postgres, store):
    async with failing(postgres, "40001", times=3):
        assert (await store.append(KEY, drafts("a"))).seq == 0
    assert len(await store.read(KEY)) == 1


async def test_connections_that_died_while_idle_are_not_noticed(postgres, store):
    await asyncio.gather(*(store.append(KEY, [draft(f"m{i}")]) for i in range(20)))
    for step in (store.append(KEY, drafts("a")), store.read(KEY), store.mark_pending(KEY, START)):
        postgres.run(TERMINATE)
        await step
    assert len(await store.read(KEY)) == 21


@pytest.mark.promise("typed-failure")
async def test_a_database_that_can_only_be_read_is_read(postgres, store):
    await store.append(KEY, drafts("ab"))
    postgres.run(f"ALTER DATABASE {postgres.name} SET default_transaction_read_only = on")
    try:
        async with opened(postgres.url) as reader:
            assert len(await reader.read(KEY)) == 2
            assert [hit.seq for hit in await reader.search("acme", "b")] == [1]
            with pytest.raises(StoreReadOnly):
                await reader.append(KEY, drafts("c"))
    finally:
        postgres.run(f"ALTER DATABASE {postgres.name} RESET default_transaction_read_only")


async def test_a_database_that_stays_away_is_complained_of_once(postgres, monkeypatch, caplog):
    monkeypatch.setattr(listen, "RECONNECT_SECONDS", 0.001)
    tries = []

    async def gone():
        tries.append(1)
        raise StoreUnavailable("it cannot be reached")

    database = PostgresDatabase(postgres.url, clock=lambda: None, connections=1)
    monkeypatch.setattr(database, "connect", gone)
    listener = listen.PendingListener(database)
    listener.add(lambda: None, None)
    while len(tries) < 5:
        await asyncio.sleep(0.001)
    await listener.close()
    assert caplog.text.count("listening for work failed") == 1


async def test_text_that_postgres_cannot_store_is_rejected(store):
    for name in ("a\0b", "\ud800"):
        with pytest.raises(InputError):
            await store.head(Key("acme", name))
        with pytest.raises(InputError):
            await store.mark_pending(Key("acme", name), START)


async def test_a_store_that_is_not_open_says_so(postgres):
    store = PostgresStore(postgres.url)
    await store.close()
    with pytest.raises(StoreError, match="not open"):
        await store.head(KEY)
    await store.open()
    with pytest.raises(StoreError, match="already open"):
        await store.open()
    await store.close()
    await store.close()


async def test_a_cancellation_is_never_lost(postgres):
    """Stopping a worker waits for it, and does not lose the connection that it waited for."""
    async with opened(postgres.url, connections=1) as store:

        async def work():
            while True:
                await store.head(KEY)

        async def burn():  # so that much happens between two turns of the loop
            while True:
                await asyncio.sleep(0)
                sum(range(rng.randrange(20_000)))

        rng = random.Random(5)
        for _ in range(40):
            tasks = [asyncio.create_task(work()) for _ in range(20)]
            tasks.append(asyncio.create_task(burn()))
            await asyncio.sleep(rng.uniform(0.01, 0.05))
            for task in tasks:
                task.cancel()
                await asyncio.sleep(rng.choice([0, 0, 0.0005, 0.001]))
            _, left = await asyncio.wait(tasks, timeout=60)
            for task in left:
                task.cancel()
            assert not left
        await store.append(KEY, drafts("a"))


# -- outcomes that are not known --------------------------------------------------------------


@pytest.mark.promise("idempotent")
@pytest.mark.parametrize("known", [0, 3], ids=["asked", "unasked"])
@pytest.mark.parametrize("before", [True, False], ids=["not done", "done"])
async def test_a_commit_whose_answer_is_lost_is_resolved_by_its_key(postgres, before, known):
    line = Line(postgres)
    async with listening(line.serve) as folder, opened(url_behind(postgres, folder)) as store:
        end = 0
        for number in range(3):
            for text in "abc"[:known]:
                await store.append(KEY, drafts(text))
            line.break_at(b"COMMIT", before=before)
            name = Idempotency(f"k{number}", "f")
            stored = await store.append(KEY, drafts(["b", "c"]), idempotency=name)
            assert (stored.entries[0].seq, stored.replayed) == (end + known, False)
            assert (await store.append(KEY, drafts(["b", "c"]), idempotency=name)).replayed
            end = stored.seq + 1
        assert line.cuts == 3
        assert len(await store.read(KEY)) == end == 3 * (known + 2)


@pytest.mark.promise("idempotent")
@pytest.mark.parametrize("known", [0, 3], ids=["asked", "unasked"])
@pytest.mark.parametrize("before", [True, False], ids=["not done", "done"])
async def test_a_replay_whose_answer_is_lost_is_still_a_replay(postgres, before, known):
    """What is found by the key was stored by an earlier call, not by this one."""
    name = Idempotency("k", "f")
    line = Line(postgres)
    async with listening(line.serve) as folder, opened(url_behind(postgres, folder)) as store:
        first = await store.append(KEY, drafts("b"), idempotency=name)
        for text in "abc"[:known]:
            await store.append(KEY, drafts(text))
        line.break_at(b"COMMIT", before=before)
        again = await store.append(KEY, drafts("b"), idempotency=name)
        assert (again.seq, again.replayed) == (first.seq, True)
        assert line.cuts == 1
        assert len(await store.read(KEY)) == known + 1


@pytest.mark.promise("typed-failure")
@pytest.mark.parametrize("known", [0, 3], ids=["asked", "unasked"])
async def test_what_cannot_be_looked_up_stays_in_doubt(postgres, monkeypatch, known):
    """It was written, the answer is lost, and then the server is away."""
    line = Line(postgres)
    async with listening(line.serve) as folder, opened(url_behind(postgres, folder)) as store:
        for text in "abc"[:known]:
            await store.append(KEY, drafts(text))
        append, tries = store._appender.append, []

        async def once(given):
            if tries:
                raise StoreUnavailable("it cannot be reached")
            tries.append(given)
            return await append(given)

        line.break_at(b"COMMIT", before=False)
        with monkeypatch.context() as patch:
            patch.setattr(store._appender, "append", once)
            with pytest.raises(StoreTimeout):
                await store.append(KEY, drafts("b"), idempotency=Idempotency("k", "f"))
        async with asyncio.timeout(30):
            while len(await store.read(KEY)) != known + 1:
                await asyncio.sleep(0.01)


@pytest.mark.promise("typed-failure")
@pytest.mark.parametrize(
    ("known", "before"),
    [(1, True), (1, False), (3, False)],
    ids=["asked and not done", "asked and done", "unasked and done"],
)
async def test_without_a_key_the_outcome_is_reported_as_unknown(postgres, before, known):
    line = Line(postgres)
    async with listening(line.serve) as folder, opened(url_behind(postgres, folder)) as store:
        for text in "abc"[:known]:
            await store.append(KEY, drafts(text))
        line.break_at(b"COMMIT", before=before)
        with pytest.raises(StoreTimeout):
            await store.append(KEY, drafts("b"))
        async with asyncio.timeout(30):  # the server may be at it still
            while len(await store.read(KEY)) != known + (not before):
                await asyncio.sleep(0.01)
        assert (await store.append(KEY, drafts("c"))).seq == known + (not before)


@pytest.mark.parametrize("moved", [False, True], ids=["alone", "others came"])
async def test_an_unasked_append_that_did_not_arrive_is_made_again(postgres, moved):
    line = Line(postgres)
    async with listening(line.serve) as folder, opened(url_behind(postgres, folder)) as store:
        for text in "abc":
            await store.append(KEY, drafts(text))
        if moved:
            async with opened(postgres.url) as other:
                await other.append(KEY, drafts("d"))
        line.break_at(b"COMMIT", before=True)
        assert (await store.append(KEY, drafts("e"))).seq == 3 + moved
        assert line.cuts == 1
        assert len(await store.read(KEY)) == 4 + moved
        with pytest.raises(ConflictError):
            await store.append(KEY, drafts("f"), expected_seq=9)


async def test_an_unasked_append_whose_connection_is_ended_while_it_waits_is_made(postgres, store):
    for text in "abc":
        await store.append(KEY, drafts(text))
    holder = await psycopg.AsyncConnection.connect(postgres.conninfo)
    async with holder:
        await holder.execute("SELECT set_config('firnline.tenant', '*', false)")
        await holder.execute("SELECT FROM firnline.conversation FOR UPDATE")
        waiting = asyncio.create_task(store.append(KEY, drafts("d")))
        # In this database alone: others have theirs on the same server, and wait for locks, too.
        end = TERMINATE.replace("(pid)", "(pid, 60000)")  # and waits until it is gone
        while not postgres.run(f"{end} AND wait_event_type = 'Lock'"):
            await asyncio.sleep(0.01)
        await holder.rollback()
    assert (await waiting).seq == 3
    assert len(await store.read(KEY)) == 4


async def test_a_line_that_breaks_before_the_commit_leaves_no_doubt(postgres):
    line = Line(postgres)
    async with listening(line.serve) as folder, opened(url_behind(postgres, folder)) as store:
        for number, before in enumerate((True, False)):
            for text in (b"FOR NO KEY UPDATE", b"BEGIN"):
                line.break_at(text, before=before)
                await store.append(Key("acme", f"{number} {text}"), drafts("a"))
        line.break_at(b"FROM entry", before=False)
        assert len(await store.read(Key("acme", "0 b'BEGIN'"))) == 1
        assert line.cuts == 5


# -- vectors ----------------------------------------------------------------------------------


@pytest.fixture
def pgvector(postgres):
    if not postgres.run("SELECT FROM pg_extension WHERE extname = 'vector'"):
        pytest.skip("server not available")


@pytest.mark.usefixtures("pgvector")
async def test_the_nearest_vectors_are_those_with_most_signs_in_common(store):
    await store.append(KEY, drafts("abcde"))
    numbers = [(1, 2, 3), (1, -2, 3), (-1, -2, -3), (1, -2, 0), (5, 5)]
    codes = [Vector(seq, 0, pack(each)) for seq, each in enumerate(numbers)]
    await store.put_vectors(KEY, "m", codes, first_seq=0, next_seq=5)
    assert [found.seq for found in await store.nearest(KEY, "m", [0.5, -0.1, 7], 2)] == [1, 3]
    near = await store.nearest(KEY, "m", [-1, -1, -1], 9)
    assert near[0].seq == 2
    assert sorted(near) == codes[:4], "others cannot be compared"
    with_tokens = [row._replace(body=join_tokens(row.body, b"\x00\xff" * 9)) for row in codes]
    await store.put_vectors(KEY, "tokens", with_tokens, first_seq=0, next_seq=5)
    near = await store.nearest(KEY, "tokens", [-1, -1, -1], 9)
    assert near[0] == with_tokens[2]
    assert sorted(near) == with_tokens[:4], "codes of tokens are no part of the vector"
    for key, model in ((KEY, "other"), (OTHER, "m"), (FOREIGN, "m")):
        assert await store.nearest(key, model, [1, 1, 1], 9) == []


@pytest.mark.usefixtures("pgvector")
async def test_the_nearest_vectors_of_several_conversations_are_found_together(store):
    for key in (KEY, OTHER, FOREIGN):
        await store.append(key, drafts("ab"))
        sign = 1 if key == KEY else -1
        codes = [Vector(seq, 0, pack((sign, sign * (2 * seq - 1), 1))) for seq in range(2)]
        await store.put_vectors(key, "m", codes, first_seq=0, next_seq=2)
    await store.describe(OTHER, person="ana")
    near = await store.nearest_in(KEY.tenant, "m", [1, 1, 1], 9, Scope())
    assert [(name, found.seq) for name, found in near[:2]] == [
        (KEY.conversation, 1),
        (KEY.conversation, 0),
    ]
    assert len(near) == 4
    near = await store.nearest_in(KEY.tenant, "m", [1, 1, 1], 9, Scope(person="ana"))
    assert {name for name, _ in near} == {OTHER.conversation}
    found = await NearestVectors(store).find_in(KEY.tenant, "m", [1, 1, 1], 1, Scope())
    assert [item[:2] for item in found] == [(KEY.conversation, 1)]


@pytest.mark.usefixtures("pgvector")
async def test_pgvector_that_moves_or_is_forbidden_is_done_without(postgres, store):
    await store.append(KEY, drafts("ab"))
    codes = [Vector(seq, 0, pack((1, 2 * seq - 1))) for seq in range(2)]
    await store.put_vectors(KEY, "m", codes, first_seq=0, next_seq=2)
    assert await store.nearest(KEY, "m", [], 2) == []
    assert len(await store.nearest(KEY, "m", [1, 1], 2)) == 2
    postgres.run("CREATE SCHEMA forbidden")
    postgres.run("ALTER EXTENSION vector SET SCHEMA forbidden")
    try:
        assert await store.nearest(KEY, "m", [1, 1], 2) is None
        assert list(await NearestVectors(store).find(KEY, "m", [1, 1], 1)) == [1]
        async with opened(postgres.url) as newcomer:
            assert await newcomer.nearest(KEY, "m", [1, 1], 2) is None
    finally:
        postgres.run("ALTER EXTENSION vector SET SCHEMA public")
        postgres.run("DROP SCHEMA forbidden")


@pytest.mark.usefixtures("pgvector")
async def test_vectors_are_compared_in_the_database_where_pgvector_is_there(postgres):
    rng = random.Random(4)
    subjects = [[rng.gauss(0, 1) for _ in range(384)] for _ in range(12)]
    numbers = [[x + rng.gauss(0, 0.4) for x in rng.choice(subjects)] for _ in range(600)]
    codes = [Vector(seq, 0, pack(each)) for seq, each in enumerate(numbers)]
    questions = [[x + rng.gauss(0, 0.4) for x in subject] for subject in subjects]
    line = Line(postgres)
    async with listening(line.serve) as folder:
        url = url_behind(postgres, folder)

        async def asked():
            async with opened(url) as store:
                if not await store.read(KEY):
                    await store.append(KEY, drafts([f"m{seq}" for seq in range(600)]))
                    await store.put_vectors(KEY, "m", codes, first_seq=0, next_seq=600)
                said = " ".join(finding.detail for finding in await store.check())
                line.sent.clear()
                nearest = NearestVectors(store)
                return said, [await nearest.find(KEY, "m", each, 10) for each in questions]

        said, by_database = await asked()
        assert len(line.sent) == len(questions), "one message for each question"
        assert "by pgvector 0." in said
        postgres.run("DROP EXTENSION vector")
        try:
            said, by_process = await asked()
        finally:
            postgres.run("CREATE EXTENSION vector")
        assert "in each process" in said
        for found, expected in zip(by_database, by_process, strict=True):
            cosines = zip(found.values(), expected.values(), strict=True)
            assert all(one >= other - 1e-5 for one, other in cosines), "at least as near"
            assert len(found.keys() & expected.keys()) >= 7


# -- appends by one message -------------------------------------------------------------------


async def test_a_lone_writer_does_not_read_first(postgres):
    line = Line(postgres)
    async with listening(line.serve) as folder, opened(url_behind(postgres, folder)) as store:
        for text in "ab":
            await store.append(KEY, drafts(text))
        line.sent.clear()
        await store.append(KEY, drafts("c"), expected_seq=2)
        await store.append(KEY, drafts("d"), idempotency=Idempotency("k", "f"))
        await store.append(KEY, [draft("e")._replace(pinned=True), draft("f")])
        assert len(line.sent) == 3, "one message each"
        assert [entry.message.text for entry in await store.read(KEY)] == list("abcdef")
        assert [entry.seq for entry in await store.pinned(KEY)] == [4]
        assert [hit.seq for hit in await store.search("acme", "d")] == [3]
        assert (await store.append(KEY, drafts("d"), idempotency=Idempotency("k", "f"))).replayed


async def test_a_large_batch_goes_piece_by_piece_and_as_a_whole(postgres, monkeypatch):
    monkeypatch.setattr(append, "_DRAFTS_AT_ONCE", 100)
    monkeypatch.setattr(append, "_BYTES_AT_ONCE", 150_000)
    line = Line(postgres)
    many = [draft(f"{n} {'x' * 2_000}") for n in range(110)]
    many[7] = many[7]._replace(pinned=True)
    async with listening(line.serve) as folder, opened(url_behind(postgres, folder)) as store:
        for known in (0, 3):
            for text in "abc"[:known]:
                await store.append(KEY, drafts(text))
            first = len(await store.read(KEY))
            name = Idempotency(f"k{known}", "f")
            line.sent.clear()
            done = await store.append(KEY, many, expected_seq=first, idempotency=name)
            assert b"".join(line.sent).count(b"INSERT INTO entry") > 1, "in one piece"
            assert [entry.seq for entry in done.entries] == list(range(first, first + 110))
            assert (await store.append(KEY, many, idempotency=name)).replayed
            assert len(await store.search("acme", "109", limit=3)) > bool(known)
        assert len(await store.read(KEY)) == 223
        assert [entry.seq for entry in await store.pinned(KEY)] == [7, 120]
        line.break_at(b"INSERT INTO entry", before=False)
        await store.append(OTHER, many)  # undone and made again
        assert len(await store.read(OTHER)) == 110
        assert line.cuts == 1
        broken = [*many[:-1], many[-1]._replace(tokens=-1)]
        with pytest.raises(InputError):
            await store.append(OTHER, broken)
        assert len(await store.read(OTHER)) == 110


async def test_one_of_several_writers_reads_each_time(postgres):
    line = Line(postgres)
    async with listening(line.serve) as folder:
        url = url_behind(postgres, folder)
        async with opened(url) as one, opened(url) as other:
            for text in "abc":
                await one.append(KEY, drafts(text))
            await other.append(KEY, drafts("d"))
            assert (await one.append(KEY, drafts("e"))).seq == 4, "its head was out of date"
            await other.append(KEY, drafts("f"))
            line.sent.clear()
            for seq in range(6, 12, 2):
                assert (await one.append(KEY, drafts("x"))).seq == seq
                assert (await other.append(KEY, drafts("y"))).seq == seq + 1
            assert len(line.sent) == 12, "two messages each, no vain try"
            assert len(await one.read(KEY)) == 12


async def test_a_head_that_was_kept_is_not_trusted_after_an_erasure(postgres):
    async with opened(postgres.url) as store, opened(postgres.url) as other:
        for text in "abc":
            await store.append(KEY, drafts(text))
        await other.erase(KEY)
        assert (await store.append(KEY, drafts("d"))).seq == 0
        await store.append(KEY, drafts("e"))
        await store.append(KEY, drafts("f"), expected_seq=2)
        with pytest.raises(ConflictError, match="is 3, not 7"):
            await store.append(KEY, drafts("g"), expected_seq=7)
        assert len(await store.read(KEY)) == 3


async def test_many_at_once_through_two_stores_are_dense(postgres):
    async with opened(postgres.url) as one, opened(postgres.url) as other:
        for store in (one, other):
            await store.append(KEY, drafts("a"))

        async def caller(store, number):
            return [(await store.append(KEY, [draft(f"{number} {i}")])).seq for i in range(25)]

        seen = await asyncio.gather(*(caller((one, other)[n % 2], n) for n in range(8)))
        assert all(seqs == sorted(seqs) for seqs in seen)
        assert sorted(chain.from_iterable(seen)) == list(range(2, 202))
        assert len(await one.read(KEY)) == 202


# -- poolers ----------------------------------------------------------------------------------


async def test_it_works_behind_a_pooler_that_mixes_connections(postgres):
    pooler = Pooler(postgres, size=3)
    async with listening(pooler.serve) as folder:
        url = url_behind(postgres, folder)
        store = PostgresStore(url, connections=8)
        async with Memory(store) as memory:

            async def client(tenant, number):
                key = Key(tenant, f"c{number % 3}")
                for i in range(10):
                    await store.append(key, drafts([f"{tenant} {number}.{i}"]))
                    found = await store.search(tenant, f"{tenant}", limit=100)
                    assert found
                    assert all(t.startswith(tenant) for t in await _texts(store, key))
                    await store.mark_pending(key, START)
                    if lease := await store.lease(key, "w", 60):
                        await store.release(lease)

            names = [f"tenant{i % 4}" for i in range(8)]
            await asyncio.gather(*(client(name, i) for i, name in enumerate(names)))
            entries = 0
            for name in set(names):
                for head in await store.conversations(name):
                    entries += head.entries
            assert entries == 80
            await memory.append("c", Message.user("hello"))
            assert await memory.verify("c")
    await pooler.close()
    assert pooler.transactions > 300


async def _texts(store, key):
    return [entry.message.text for entry in await store.read(key)]


# -- news of work -----------------------------------------------------------------------------


async def _until(condition, seconds=60):
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)


async def test_a_worker_is_notified_of_pending_work_of_another_process(postgres, store):
    paid = []

    async def pay(key):
        paid.append(key)
        await store.clear_pending(key, 10)
        return 1

    worker = Worker(store, pay, clock=utc_now, poll_seconds=1_000)
    worker.start()
    await _until(lambda: store.listening)
    async with opened(postgres.url) as elsewhere:
        for number, key in enumerate((KEY, OTHER, FOREIGN), 1):
            await elsewhere.append(key, drafts("a"))
            await elsewhere.mark_pending(key, START)
            await _until(lambda n=number: len(paid) >= n)
        postgres.run(f"{TERMINATE} AND query LIKE 'LISTEN%'")
        await _until(lambda: not store.listening)
        await elsewhere.mark_pending(KEY, START)  # while there is no listener
        await _until(lambda: len(paid) == 4)
        await _until(lambda: store.listening)  # it looks for work before it listens again
    await worker.stop()
    assert paid == [KEY, OTHER, FOREIGN, KEY]


async def test_what_was_put_off_is_done_when_it_is_due(store):
    paid = []

    async def pay(key):
        paid.append(utc_now())
        await store.clear_pending(key, 10)
        return 1

    await store.append(KEY, drafts("a"))
    due = utc_now() + timedelta(seconds=1)
    await store.mark_pending(KEY, due)
    worker = Worker(store, pay, clock=utc_now, poll_seconds=0.2)
    worker.start()
    await _until(lambda: paid)
    assert paid[0] >= due
    await worker.stop()


async def test_behind_a_pooler_there_are_no_notifications_and_workers_poll(postgres, monkeypatch):
    monkeypatch.setattr("firnline.store.postgres.listen.ECHO_SECONDS", 0.3)
    pooler, paid = Pooler(postgres), []
    async with listening(pooler.serve) as folder, opened(url_behind(postgres, folder)) as store:

        async def pay(key):
            paid.append(key)
            await store.clear_pending(key, 10)
            return 1

        worker = Worker(store, pay, clock=utc_now, poll_seconds=0.05)
        worker.start()
        await store.append(KEY, drafts("a"))
        await store.mark_pending(KEY, START)
        await _until(lambda: paid)
        await asyncio.sleep(0.4)
        assert not store.listening
        await worker.stop()
    await pooler.close()


# -- damage -----------------------------------------------------------------------------------

DAMAGES = (
    "UPDATE firnline.entry SET body = body || 'x' WHERE seq = 2",
    "UPDATE firnline.entry SET tokens = tokens + 1 WHERE seq = 2",
    "DELETE FROM firnline.entry WHERE seq = 2",
    "DELETE FROM firnline.entry WHERE seq = 5",
    "UPDATE firnline.entry e SET body = o.body FROM firnline.entry o WHERE o.seq = 3 AND e.seq = 2",
    "UPDATE firnline.segment SET body = set_byte(body, 9, get_byte(body, 9) # 4)",
    "UPDATE firnline.segment SET last_seq = 3",
    "UPDATE firnline.conversation SET next_seq = 5",
    "UPDATE firnline.conversation SET hash = 'sha256:0'",
    "UPDATE firnline.conversation SET genesis = 'sha256:0'",
    "UPDATE firnline.conversation SET name = 'other'",
)


@pytest.mark.promise("tamper-evident")
@pytest.mark.parametrize("damage", DAMAGES)
async def test_what_was_changed_in_the_database_is_not_served(postgres, damage):
    async with Memory.open(postgres.url) as memory:
        await memory.append("c", [Message.user(f"m{i}") for i in range(6)])
        await memory.archive("c", keep=4)
        assert await memory.verify("c")
        assert postgres.run(damage)
        name = "other" if "'other'" in damage else "c"
        try:
            sound = await memory.verify(name)
            assert not sound.ok
        except StoreCorrupt:
            pass
        with pytest.raises(StoreCorrupt):
            await memory.read(name)


@pytest.mark.promise("tamper-evident")
async def test_damaged_digests_cards_and_topics_are_errors(postgres, store):
    await _everything(store, KEY)
    postgres.run("UPDATE firnline.card SET body = 'x'")
    postgres.run("UPDATE firnline.topic SET body = body || ' '")
    postgres.run("UPDATE firnline.digest SET body = replace(body::text, '63616e', '63626e')::bytea")
    with pytest.raises(StoreCorrupt):
        await store.cards("k", tenant="acme")
    with pytest.raises(StoreCorrupt):
        await store.newest_digest(KEY)
    async with opened(postgres.url) as fresh:
        with pytest.raises(StoreCorrupt):
            await fresh.topics(KEY)
    findings = await store.check(thorough=True)
    assert [finding.what for finding in findings if finding.state == "broken"] == ["cards", "rows"]
    lease = await store.lease(KEY, "w", 60)
    assert await store.fail_damaged(lease) == 1
    assert await store.newest_digest(KEY) is None


async def test_an_index_that_lost_entries_is_detected_and_rebuilt(postgres, store):
    await store.append(KEY, drafts([f"word{i}" for i in range(1_200)]))
    await store.archive(KEY, 100, 700)
    postgres.run("DELETE FROM firnline.search WHERE seq % 7 = 0")
    postgres.run("DELETE FROM firnline.said WHERE seq < 9")
    findings = {finding.what: finding.state for finding in await store.check()}
    assert findings["search index"] == "broken"
    assert await store.search("acme", "word7") == []
    seen = []
    await store.rebuild_index(lambda done, there: seen.append((done, there)))
    assert seen[-1] == (1_200, 1_200)
    findings = {finding.what: finding.state for finding in await store.check()}
    assert findings["search index"] == "ok"
    for seq in (0, 7, 693, 1_197):
        assert [hit.seq for hit in await store.search("acme", f"word{seq}")] == [seq]


async def test_a_message_of_very_many_words_is_found_by_each(store):
    many = " ".join(f"w{i:x}" for i in range(120_000))
    await store.append(KEY, drafts(["before", many, "after"]))
    for number in (0, 60_000, 119_999):
        here = Scope(conversation=KEY.conversation)
        hits = await store.search("acme", f"w{number:x}", scope=here)
        assert [hit.seq for hit in hits] == [1]


# -- keeping ----------------------------------------------------------------------------------


@pytest.mark.promise("erase-total")
async def test_erase_leaves_no_row_of_it_live_or_dead(postgres, store):
    for key in (KEY, FOREIGN):
        await _everything(store, key)
    (number,) = postgres.run("SELECT id FROM firnline.conversation WHERE tenant = 'acme'")[0]
    await store.erase(KEY)
    postgres.run("CREATE EXTENSION IF NOT EXISTS pgstattuple SCHEMA public")
    for table in _tables(postgres):
        of = "WHERE conversation != 0" if table == "seal" else ""  # 0: of the tenant's projects
        rows = str(postgres.run(f"SELECT t::text FROM firnline.{table} t {of}"))
        if table != "project":  # which is the tenant's, not the conversation's
            assert "acme" not in rows, table
    for _ in range(3):
        if not (dead := _dead_rows(postgres)):
            break
        # The vacuum of an erasure cannot remove what a snapshot of autovacuum still sees; the
        # next one does. Without a vacuum of its own, every erasure would add dead rows.
        await _everything(store, KEY)
        await store.erase(KEY)
    assert dead == []
    assert number
    assert len(await store.read(FOREIGN)) == 4


async def test_erasures_that_wait_for_a_vacuum_leave_connections_to_others(postgres):
    """Another session vacuums a table for hours, as the server itself may."""
    async with opened(postgres.url, connections=3) as store:
        for i in range(6):
            await store.append(Key("acme", f"c{i}"), drafts("abc"))
        holder = await psycopg.AsyncConnection.connect(postgres.conninfo)
        async with holder:
            await holder.execute("LOCK TABLE firnline.entry IN SHARE UPDATE EXCLUSIVE MODE")
            erasing = [asyncio.create_task(store.erase(Key("acme", f"c{i}"))) for i in range(6)]
            while await store.conversations("acme"):
                await asyncio.sleep(0.01)
            async with asyncio.timeout(60):  # they would wait for as long as the vacuum takes
                await asyncio.gather(*(store.append(OTHER, drafts("a")) for _ in range(9)))
            assert not any(task.done() for task in erasing)
        erased = await asyncio.gather(*erasing)
    assert {item.entries for item in erased} == {3}
    postgres.run("CREATE EXTENSION IF NOT EXISTS pgstattuple SCHEMA public")
    dead = "SELECT dead_tuple_count FROM public.pgstattuple('firnline.entry')"
    assert postgres.run(dead) == [(0,)]


async def test_what_is_made_or_erased_while_it_is_described_is_described(
    postgres, store, monkeypatch
):
    find, create = log.find, log.create
    async with opened(postgres.url) as other:

        async def found(*given):
            monkeypatch.setattr(log, "find", find)
            seen = await find(*given)
            if seen is None:
                await other.describe(KEY, project="old")
            return seen

        async def created(*given):
            monkeypatch.setattr(log, "create", create)
            made = await create(*given)
            if made is None and not await store.read(KEY):
                await other.erase(KEY)
            return made

        for _ in range(2):
            monkeypatch.setattr(log, "find", found)
            monkeypatch.setattr(log, "create", created)
            assert (await store.describe(KEY, project="new")).project == "new"


async def test_a_write_during_an_erasure_leaves_nothing(postgres, store):
    """Vectors, cards, pins, topics: written before it, or rejected after it."""
    for round_ in range(5):
        key = Key("acme", f"c{round_}")
        await store.append(key, drafts("abcd"))
        card = Card(tenant="acme", kind="k", name="x", conversation=key.conversation)
        await asyncio.gather(
            store.put_vectors(key, "m", [Vector(0, 0, b"v")], first_seq=0, next_seq=4),
            store.put_cards([card]),
            store.pin(key, 0),
            store.assign(key, [_topic(0)], {0: 0}, revision=0, next_seq=4),
            store.archive(key, 0, 2),
            store.erase(key),
            return_exceptions=True,
        )
        assert await store.head(key) is None
    for table in _tables(postgres):
        if table not in WITHOUT_TENANT:
            assert postgres.run(f"SELECT count(*) FROM firnline.{table}") == [(0,)], table


@pytest.mark.promise("backup-whole")
async def test_a_copy_is_read_by_psql_and_holds_everything(postgres, postgres_databases, tmp_path):
    programs = binaries()
    if programs is None:
        pytest.skip("server not available")
    path = tmp_path / "copy.sql"
    async with opened(postgres.url) as store:
        for key in (KEY, FOREIGN):
            await _everything(store, key)

        async def write():
            for i in range(200):
                await store.append(OTHER, drafts([f"{i} a", f"{i} b"]))

        writing = asyncio.create_task(write())
        steps = []
        await store.backup(path, lambda done, there: steps.append((done, there)))
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        assert steps[-1][0] == steps[-1][1] > 10
        with pytest.raises(InputError):
            await store.backup(path)
        with postgres_databases.one() as other:
            other.drop_schema()
            command = [programs / "psql", "--set", "ON_ERROR_STOP=1", "--single-transaction"]
            command += ["--quiet", "--no-psqlrc", "--file", path, other.url]
            await asyncio.to_thread(subprocess.run, command, check=True, stdout=subprocess.DEVNULL)
            async with opened(other.url) as copy:
                await _check_copy(store, copy)
            assert shape(other) == shape(postgres)
            with pytest.raises(InputError, match="has one"):
                await restore_backup(path, other.url)
            other.drop_schema()
            whole, half = path.read_bytes(), tmp_path / "half.sql"
            for size in (30, len(whole) // 2):
                half.write_bytes(whole[:-size])
                with pytest.raises(StoreCorrupt, match="incomplete"):
                    await restore_backup(half, other.url)
            await restore_backup(path, other.url)  # as psql does
            async with opened(other.url) as copy:
                await _check_copy(store, copy)
            assert shape(other) == shape(postgres)


async def test_of_a_newer_schema_no_copy_is_made_that_could_not_be_read(postgres, store, tmp_path):
    """An older process continues while a newer one migrates; its tables have changed."""
    postgres.meddle()
    await store.append(KEY, drafts("a"))
    newer = [
        *migrate.shipped_migrations().values(),
        "ALTER TABLE conversation ADD COLUMN later text",
    ]
    await migrated(postgres, dict(enumerate(newer, 1)))
    with pytest.raises(StoreTooNew):
        await store.backup(tmp_path / "copy.sql")
    assert not list(tmp_path.iterdir())


async def _check_copy(store, copy):
    for key in (KEY, FOREIGN):
        assert await copy.read(key) == await store.read(key)
        assert await copy.digests(key) == await store.digests(key)
        assert await copy.topics(key) == await store.topics(key)
        assert await copy.vectors(key, "model", 0, 9) == await store.vectors(key, "model", 0, 9)
        assert await copy.cards("k", tenant=key.tenant) == await store.cards("k", tenant=key.tenant)
        assert await copy.search(key.tenant, "canary")
    half = await copy.read(OTHER)
    assert len(half) % 2 == 0, "of one moment"
    assert half == await store.read(OTHER, 0, len(half) - 1)
    assert not [f for f in await copy.check(thorough=True) if f.state == "broken"]
    await copy.append(Key("acme", "new"), drafts("a"))
    assert len(await copy.read(KEY)) == 4


# -- durability -------------------------------------------------------------------------------


@pytest.mark.promise("durable")
async def test_commits_are_synced_even_where_the_database_is_set_up_otherwise(postgres):
    postgres.run(f"ALTER DATABASE {postgres.name} SET synchronous_commit = off")
    try:
        database = PostgresDatabase(postgres.url, clock=lambda: None, connections=1)
        await database.open()

        async def setting(transaction: Transaction):
            return await transaction.row("SHOW synchronous_commit")

        assert await database.write("acme", setting) == ("on",)
        await database.close()
    finally:
        postgres.run(f"ALTER DATABASE {postgres.name} RESET synchronous_commit")


async def test_an_idle_transaction_is_ended_by_the_server(postgres):
    database = PostgresDatabase(postgres.url, clock=lambda: None, connections=1)
    await database.open()

    async def settings(transaction: Transaction):
        return await transaction.row(
            "SELECT current_setting('idle_in_transaction_session_timeout'),"
            " current_setting('lock_timeout')"
        )

    assert await database.write("acme", settings) == ("10s", "30s")
    assert await database.read("acme", settings) != ("10s", "30s")
    await database.close()


async def test_a_lease_goes_by_the_databases_clock(postgres):
    """Not by the machine's, of which there are many; unless a test brings its own."""
    async with opened(postgres.url) as store:
        await store.append(KEY, drafts("a"))
        lease = await store.lease(KEY, "w", 60)
        (now,) = postgres.run("SELECT now()")[0]
        assert abs((lease.expires_at - now).total_seconds() - 60) < 30
        postgres.run(  # and its seal: as if it had run out
            "SELECT set_config('firnline.tenant', '*', true);"
            "UPDATE firnline.conversation SET lease_until = 0"
        )
        assert await store.lease(KEY, "other", 60) is not None
        with pytest.raises(ConflictError):
            await store.renew(lease, 60)


@clock_skew.WRONG
async def test_pending_work_uses_the_shared_clock(store, postgres, wrong):
    """A machine whose clock is wrong, or jumps, neither delays nor skips work."""
    async with opened(postgres.url) as other:
        await clock_skew.check_owed(store, other, wrong)


@pytest.mark.promise("erase-total")
async def test_erased_messages_leave_no_row_live_or_dead(postgres):
    async with Memory(PostgresStore(postgres.url), tenant="acme", worker=False) as memory:
        secret = "Glacierwolf opens the vault"
        await memory.append("c", [Message.user(f"{secret} {i % 2}") for i in range(6)])
        await memory.topics("c")
        await memory.archive("c", keep=2)
        await memory.cards.put(
            Card(tenant="acme", kind="draft", name="d", body=secret.encode(), conversation="c")
        )
        erased = await memory.erase_messages("c", 0, 5)
        assert erased.entries == 6
        postgres.run("CREATE EXTENSION IF NOT EXISTS pgstattuple SCHEMA public")
        hidden = secret.encode().hex()
        for table in _tables(postgres):
            rows = str(postgres.run(f"SELECT t::text FROM firnline.{table} t"))
            assert "Glacierwolf" not in rows, table
            assert hidden not in rows, table
        assert _dead_rows(postgres) == []
        assert (await memory.verify("c")).erased == 6


async def test_words_of_an_older_store_are_indexed_again_in_the_background(postgres, store):
    await store.append(KEY, [draft("repricing invoices"), draft("more")])
    await store.close()
    postgres.run("UPDATE firnline.search SET words = ''")
    postgres.run("INSERT INTO firnline.owed (what) VALUES ('words')")
    await store.open()
    async with asyncio.timeout(20):
        while postgres.run("SELECT FROM firnline.owed"):
            await store.search(KEY.tenant, "pricing")
            await asyncio.sleep(0.01)
    assert [hit.seq for hit in await store.search(KEY.tenant, "pricing invoice")] == [0]


async def test_search_is_fast_with_stock_settings(postgres, store):
    """`jit` is on by default, and compiling takes longer than any of our queries."""
    await store.append(KEY, [draft(f"word{i} and more") for i in range(50)])
    plans = []

    async def look(transaction):
        await search.matches(transaction, KEY.tenant, "word7 more", Scope(), 5)
        plans.append(await transaction.row("SHOW jit"))

    await store._database.read(KEY.tenant, look, brief=False)
    assert plans == [("off",)]
