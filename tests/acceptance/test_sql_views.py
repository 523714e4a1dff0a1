"""The views `memory` and `chat_sessions`: for people and programs that speak SQL."""

import json
import re
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta

import apsw
import psycopg
import pytest

from firnline import Memory, Message
from firnline.log.entry import Digest, Key
from firnline.store import open_store
from firnline.strategies import rolling

# As in the original system, with the name of a conversation.
CHAIN = """
SELECT m.*,
       b.end_sequence as base_end_seq
FROM memory m
LEFT JOIN memory b ON m.base_memory_id = b.memory_id
WHERE m.conversation_id = 'conv_123'
ORDER BY m.end_sequence DESC;
"""
STUCK = """
SELECT conversation_id, memory_id, created_at,
       NOW() - created_at as age
FROM memory
WHERE status = 'processing'
  AND created_at < NOW() - INTERVAL '5 minutes';
"""
WINDOWS = """
SELECT
    conversation_id,
    start_sequence,
    end_sequence,
    end_sequence - start_sequence + 1 as window_size,
    generation_time_ms
FROM memory
WHERE status = 'completed'
ORDER BY created_at DESC
LIMIT 20;
"""
TIMES = """
SELECT
    AVG(generation_time_ms) as avg_ms,
    MAX(generation_time_ms) as max_ms,
    COUNT(*) as total_summaries
FROM memory
WHERE status = 'completed'
  AND generation_time_ms IS NOT NULL;
"""
LATEST = """
SELECT * FROM memory
WHERE conversation_id = 'conv_123' AND status = 'completed'
ORDER BY end_sequence DESC LIMIT 1
"""
ROWS = """
SELECT memory_id, start_sequence, end_sequence, base_memory_id, status
FROM memory
WHERE conversation_id = 'conv_123'
ORDER BY memory_id;
"""
SESSIONS = "SELECT messages, memory_compression FROM chat_sessions ORDER BY messages DESC"


async def leave_stuck(url):
    """A digest that a process began an hour ago and never finished."""
    store = open_store(url)
    await store.open()
    begun = datetime.now(UTC) - timedelta(hours=1)
    stuck = Digest(version=1, first_seq=0, last_seq=0, created_at=begun)
    await store.put_digests(Key("default", "empty"), [stuck])
    await store.close()


def check_stuck(rows):
    assert [row["conversation_id"] for row in rows] == ["empty"]


async def fill(url):
    async with Memory.open(url, strategy=rolling(), worker=False) as memory:
        for number in range(10):
            await memory.append("conv_123", Message.user(f"I prefer tea \0 number {number}"))
            await memory.append("conv_123", Message.assistant("We decided to use PostgreSQL."))
            await memory.digest("conv_123")
        await memory.append("empty", Message.user("hello"))
    async with Memory.open(url, tenant="other") as memory:
        await memory.append("conv_123", Message.user("of another tenant"))


def check(run):
    rows = run(CHAIN)
    assert [row["memory_id"] for row in run(ROWS)] == [row["memory_id"] for row in rows][::-1]
    chain = [row for row in rows if row["status"] == "completed"]
    assert len(chain) > 1
    assert chain[-1]["start_sequence"] == 0
    assert all(row["memory_text"] for row in chain)
    known = {row["memory_id"]: row for row in rows}
    for row in rows:
        base = known.get(row["base_memory_id"])
        assert row["base_end_seq"] == (base["end_sequence"] if base else None)
    assert chain[0]["base_memory_id"] in known
    assert run(WINDOWS)[0]["window_size"] <= 14
    (times,) = run(TIMES)
    assert times["total_summaries"] == len(chain)
    assert times["avg_ms"] <= times["max_ms"]
    assert [row["memory_id"] for row in run(LATEST)] == [chain[0]["memory_id"]]
    return chain


def check_sessions(rows, chain, count):
    assert [row["messages"] for row in rows] == count
    first, *_, empty = [json.loads(row["memory_compression"]) for row in rows]
    assert first["conversation_summary"].endswith(chain[0]["memory_text"])
    assert first["last_keep_window_index"] == chain[0]["end_sequence"] + 1
    assert "tea" in str(first["important_data"]["user_preferences"])
    assert first["important_data"]["key_decisions"] == ["We decided to use PostgreSQL."]
    assert not any(empty["important_data"].values())
    assert empty["important_data"].keys() == first["important_data"].keys()
    assert empty["summary_version"] == 0


@pytest.mark.requirement("E7")
@pytest.mark.requirement("A2")
@pytest.mark.promise("tenants-apart")
async def test_queries_of_the_original_system_run_on_postgres(postgres):
    await fill(postgres.url)
    with psycopg.connect(postgres.conninfo, row_factory=psycopg.rows.dict_row) as look:

        def run(sql):
            return look.execute(sql).fetchall()

        look.execute("SET search_path = firnline")
        assert run(ROWS) == []
        look.execute("SET firnline.tenant = '=default'")
        chain = check(run)
        assert run(STUCK) == []
        await leave_stuck(postgres.url)
        (row,) = run(STUCK)
        check_stuck([row])
        assert timedelta(minutes=59) < row["age"] < timedelta(minutes=90)
        text = SESSIONS.replace("memory_compression", "memory_compression::text")
        check_sessions(run(text), chain, [20, 1])
        look.execute("SET firnline.tenant = '=other'")
        assert run(ROWS) == []
        assert [row["messages"] for row in run(SESSIONS)] == [1]


@pytest.mark.requirement("E7")
@pytest.mark.requirement("A2")
async def test_queries_of_the_original_system_run_on_sqlite(tmp_path):
    await fill(f"sqlite:///{tmp_path}/x.db")
    with closing(sqlite3.connect(tmp_path / "x.db")) as older:  # it reads the whole schema
        assert len(older.execute("SELECT * FROM chat_sessions").fetchall()) == 3
        assert older.execute("SELECT * FROM memory").fetchall()
    with closing(apsw.Connection(str(tmp_path / "x.db"))) as look:

        def run(sql):
            cursor = look.execute(sql)
            return [
                dict(zip([c[0] for c in cursor.description], row, strict=True)) for row in cursor
            ]

        chain = check(run)
        stuck = re.sub(r"NOW\(\) - INTERVAL '5 minutes'", "datetime('now', '-5 minutes')", STUCK)
        stuck = stuck.replace("NOW() - created_at", "julianday() - julianday(created_at)")
        assert run(stuck) == []
        await leave_stuck(f"sqlite:///{tmp_path}/x.db")
        check_stuck(run(stuck))
        rows = run(SESSIONS.replace("ORDER", "WHERE tenant = 'default' ORDER"))
        check_sessions(rows, chain, [20, 1])
        assert {row["tenant"] for row in run("SELECT tenant FROM chat_sessions")} == {
            "default",
            "other",
        }
