"""Damage to the rows of a SQLite file, as a flipped bit would do it: nothing else is updated."""

from contextlib import closing

import apsw

from firnline.store.sqlite.checksums import checksum_vfs


def damage_rows(path, *statements):
    """Run SQL; each statement must change something."""
    with closing(apsw.Connection(str(path), vfs=checksum_vfs())) as connection:
        for statement in statements:
            connection.execute(statement)
            assert connection.changes(), statement


_ENTRY = "(1 << 32)"
_SAND = "body = CAST(replace(body, 'said', 'sand') AS BLOB)"
_HOPE = "body = CAST(replace(body, 'rope', 'hope') AS BLOB)"

SQLITE = {
    "project": "UPDATE conversation SET project = 'q' WHERE id = 1",
    "person": "UPDATE conversation SET person = 'bob' WHERE id = 1",
    "metadata": """UPDATE conversation SET metadata = '{"a":2}' WHERE id = 1""",
    "strategy": "UPDATE conversation SET strategy = NULL WHERE id = 1",
    "lease": "UPDATE conversation SET fence = fence + 1 WHERE id = 1",
    "pending": "UPDATE conversation SET owed_at = NULL WHERE id = 1",
    "head end": "UPDATE conversation SET next_seq = next_seq - 1 WHERE id = 1",
    "head tokens": "UPDATE conversation SET total = total + 1 WHERE id = 1",
    "head hash": "UPDATE conversation SET hash = replace(hash, 'a', 'b') WHERE id = 1",
    "head time": "UPDATE conversation SET updated_at = updated_at - 256 WHERE id = 1",
    "head unread": "UPDATE conversation SET unread = 0 WHERE id = 1",
    "head": "UPDATE conversation SET next_seq = next_seq + 4 WHERE id = 1",
    "pin gone": "DELETE FROM pin WHERE conversation = 1 AND seq = 1",
    "pin moved": "UPDATE pin SET seq = 2 WHERE conversation = 1 AND seq = 1",
    "digest gone": f"DELETE FROM digest WHERE id = {_ENTRY} + 2",
    "digest status": f"UPDATE digest SET status = 'complated' WHERE id = {_ENTRY} + 2",
    "digest topic": f"UPDATE digest SET topic = 5 WHERE id = {_ENTRY} + 2",
    "digest text": f"UPDATE digest SET {_SAND} WHERE id = {_ENTRY} + 2",
    "topic gone": f"DELETE FROM topic WHERE id = {_ENTRY} + 1",
    "topic text": f"UPDATE topic SET {_HOPE} WHERE id = {_ENTRY}",
    "member gone": "DELETE FROM member WHERE conversation = 1 AND seq = 1",
    "member moved": "UPDATE member SET topic = 1 WHERE conversation = 1 AND seq = 1",
    "progress": "UPDATE assigned SET next_seq = 2 WHERE conversation = 1",
    "project gone": "DELETE FROM project WHERE name = 'q'",
    "project task": "UPDATE project SET task = 'climp' WHERE name = 'p'",
    "card gone": "DELETE FROM card WHERE conversation = 1",
    "card of a tenant gone": "DELETE FROM card WHERE name = 'b'",
}
"""SQL for each kind of damage in `firnline.testing.damage_suite`."""

_HERE = "conversation = (SELECT id FROM conversation WHERE tenant = 'acme' AND name = 'ticket-42')"
_BODY = "convert_to(replace(convert_from(body, 'UTF8'), '{}', '{}'), 'UTF8')"


def _postgres(sql):
    sql = sql.replace("WHERE id = 1", "WHERE tenant = 'acme' AND name = 'ticket-42'")
    sql = sql.replace("unread = 0", "unread = false")
    for table in ("digest", "topic"):
        name = "version" if table == "digest" else "id"
        if table in sql.split()[:3]:
            sql = sql.replace(f"id = {_ENTRY} + ", f"{_HERE} AND {name} = ")
            sql = sql.replace(f"id = {_ENTRY}", f"{_HERE} AND {name} = 0")
    for words in (("said", "sand"), ("rope", "hope")):
        sql = sql.replace(
            "CAST(replace(body, '{}', '{}') AS BLOB)".format(*words), _BODY.format(*words)
        )
    return sql.replace("conversation = 1", _HERE)


POSTGRES = {what: _postgres(sql) for what, sql in SQLITE.items()}


def damage_postgres_rows(database, *statements):
    """Run SQL as an administrator would; each statement must change something."""
    database.run("SET search_path = firnline")
    for statement in statements:
        assert database.run(statement), statement
    database.run("RESET ALL")


MONGO = {
    "project": ("conversations", {}, {"$set": {"project": "q"}}),
    "person": ("conversations", {}, {"$set": {"person": "bob"}}),
    "metadata": ("conversations", {}, {"$set": {"metadata": '{"a":2}'}}),
    "strategy": ("conversations", {}, {"$set": {"strategy": None}}),
    "lease": ("conversations", {}, {"$inc": {"fence": 1}}),
    "pending": ("conversations", {}, {"$unset": {"owed_at": ""}}),
    "head end": ("conversations", {}, {"$inc": {"next_seq": -1}}),
    "head tokens": ("conversations", {}, {"$inc": {"total": 1}}),
    "head hash": ("conversations", {}, {"$set": {"hash": "sha256:a"}}),
    "head time": ("conversations", {}, {"$inc": {"updated_at": -256}}),
    "head unread": ("conversations", {}, {"$unset": {"unread": ""}}),
    "head": ("conversations", {}, {"$inc": {"next_seq": 4}}),
    "pin gone": ("conversations", {}, {"$pull": {"pins": 1}}),
    "pin moved": ("conversations", {}, {"$set": {"pins": [0, 2]}}),
    "digest gone": ("digests", {"version": 2}, None),
    "digest status": ("digests", {"version": 2}, {"$set": {"status": "complated"}}),
    "digest topic": ("digests", {"version": 2}, {"$set": {"topic": 5}}),
    "digest text": ("digests", {"version": 2}, {"$set": {"body": b"{}"}}),
    "topic gone": ("topics", {"id": 1}, None),
    "topic text": ("topics", {"id": 0}, {"$set": {"body": b"{}"}}),
    "member gone": ("members", {"seq": 1}, None),
    "member moved": ("members", {"seq": 1}, {"$set": {"topic": 1}}),
    "progress": ("conversations", {}, {"$set": {"assigned.next_seq": 2}}),
    "project gone": ("projects", {"name": "q"}, None),
    "project task": ("projects", {"name": "p"}, {"$set": {"task": "climp"}}),
    "card gone": ("cards", {}, None),
    "card of a tenant gone": ("cards", {"name": "b"}, None),
}


def damage_mongo(database, what):
    """Change or delete a document as `what` says."""
    name, which, change = MONGO[what]
    of_tenant = name == "projects" or "name" in which
    own = {"tenant": "acme"} | ({} if of_tenant else {"conversation": "ticket-42"})
    damage_documents(database, name, own | which, change)


def damage_documents(database, name, which, change):
    """Change a document, or delete it if there is no change."""
    if change is None:
        assert database[name].delete_one(which).deleted_count
    else:
        assert database[name].update_one(which, change).modified_count
