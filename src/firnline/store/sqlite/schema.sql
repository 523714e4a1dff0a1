-- One conversation. Its head (next_seq, total, hash) is written with every append, so that entries
-- missing from the end of the log are noticed. `indexed` is how far the
-- views of the log (said, search) have come. `strategy` is JSON, and says how it is digested;
-- `owed_at` is when that is due, NULL if nothing is owed; `person` is whom it is with, and
-- `unread` says that it was not read to its end for what they state. `mark` is what the head's
-- columns are checked against: next_seq, total, hash, updated_at and unread.
-- Ids are never used again: a late archive or lease of an erased conversation must find nothing.
CREATE TABLE conversation (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant      TEXT NOT NULL,
    name        TEXT NOT NULL,
    genesis     TEXT NOT NULL, -- of tenant and name; a row that is damaged there is nobody's
    project     TEXT,
    metadata    TEXT NOT NULL DEFAULT '{}',
    strategy    TEXT,
    next_seq    INTEGER NOT NULL DEFAULT 0,
    total       INTEGER NOT NULL DEFAULT 0,
    hash        TEXT NOT NULL,
    archived    INTEGER NOT NULL DEFAULT 0,
    indexed     INTEGER NOT NULL DEFAULT 0,
    fence       INTEGER NOT NULL DEFAULT 0,
    lease_owner TEXT,
    lease_until INTEGER,
    owed_at     INTEGER,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    person      TEXT,
    unread      INTEGER NOT NULL DEFAULT 0,
    mark        INTEGER,
    UNIQUE (tenant, name)
) STRICT;

CREATE INDEX conversation_owed ON conversation (owed_at) WHERE owed_at IS NOT NULL;
CREATE INDEX conversation_project ON conversation (tenant, project, name)
    WHERE project IS NOT NULL;
CREATE INDEX conversation_recent ON conversation (tenant, project, updated_at DESC, name)
    WHERE project IS NOT NULL;
CREATE INDEX conversation_person ON conversation (tenant, person, name)
    WHERE person IS NOT NULL;
CREATE INDEX conversation_unread ON conversation (tenant, person, name)
    WHERE unread;

-- One entry. id = conversation.id << 32 | seq: the table itself is the index by (conversation, seq).
-- `body` is the message's canonical form, `total` the running token total including this entry.
CREATE TABLE entry (
    id        INTEGER PRIMARY KEY,
    tokens    INTEGER NOT NULL,
    total     INTEGER NOT NULL,
    tokenizer TEXT NOT NULL,
    hash      TEXT NOT NULL,
    body      BLOB NOT NULL
) STRICT;

-- Archived entries, compressed. id = conversation.id << 32 | first seq. `checksum` is of the packed
-- and of the plain bytes; `hash_before` and `total_before` are the chain and the total in front of the first entry.
CREATE TABLE segment (
    id           INTEGER PRIMARY KEY,
    last_seq     INTEGER NOT NULL,
    hash_before  TEXT NOT NULL,
    hash         TEXT NOT NULL,
    total_before INTEGER NOT NULL,
    total        INTEGER NOT NULL,
    checksum     BLOB NOT NULL,
    body         BLOB NOT NULL
) STRICT;

-- Digests, beside the log. id = conversation.id << 32 | version. `body` is JSON. `topic` is -1 for
-- a digest of the conversation as a whole.
CREATE TABLE digest (
    id       INTEGER PRIMARY KEY,
    status   TEXT NOT NULL,
    fence    INTEGER NOT NULL,
    checksum BLOB NOT NULL,
    body     BLOB NOT NULL,
    topic    INTEGER NOT NULL DEFAULT -1
) STRICT;

-- The newest completed one and those in the making are found without reading any other.
CREATE INDEX digest_completed ON digest (id >> 32, topic, id) WHERE status = 'completed';
CREATE INDEX digest_processing ON digest (id) WHERE status = 'processing';

-- The entries that every context shows, archived or not.
CREATE TABLE pin (
    conversation INTEGER NOT NULL,
    seq          INTEGER NOT NULL,
    PRIMARY KEY (conversation, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE idempotency (
    conversation INTEGER NOT NULL,
    key          TEXT NOT NULL,
    fingerprint  TEXT NOT NULL,
    first_seq    INTEGER NOT NULL,
    last_seq     INTEGER NOT NULL,
    mark         INTEGER,
    PRIMARY KEY (conversation, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE project (
    tenant   TEXT NOT NULL,
    name     TEXT NOT NULL,
    status   TEXT NOT NULL,
    schedule TEXT NOT NULL,
    task     TEXT NOT NULL,
    metadata TEXT NOT NULL,
    PRIMARY KEY (tenant, name)
) STRICT, WITHOUT ROWID;

-- Work that must be finished even after a crash; 'scrub': erased pages still have to be rewritten.
CREATE TABLE owed (
    what TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

-- When what was said, a view of the log, whether the entry is archived or not.
CREATE TABLE said (
    conversation INTEGER NOT NULL,
    at           INTEGER NOT NULL,
    seq          INTEGER NOT NULL,
    PRIMARY KEY (conversation, at, seq)
) STRICT, WITHOUT ROWID;

-- The search index, a view of the log, too: rowid is entry.id. Terms with their stems, split at spaces:
-- "@" marks who spoke and when, "~" parts of long words.
CREATE VIRTUAL TABLE search USING fts5 (
    terms, content = '', contentless_delete = 1, detail = none,
    tokenize = "ascii tokenchars '_~@-./:\#+=&?%$'"
);

-- Topics, views of the log with what people said about them. id = conversation.id << 32 | topic,
-- which is the sequence number of the message that opened it. `body` is JSON.
CREATE TABLE topic (
    id       INTEGER PRIMARY KEY,
    checksum BLOB NOT NULL,
    body     BLOB NOT NULL
) STRICT;

-- Which entries are of which topic; an entry is of one at most.
CREATE TABLE member (
    conversation INTEGER NOT NULL,
    topic        INTEGER NOT NULL,
    seq          INTEGER NOT NULL,
    PRIMARY KEY (conversation, topic, seq)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX member_entry ON member (conversation, seq);

-- How far a conversation's entries have been assigned to topics; `revision` counts the changes.
CREATE TABLE assigned (
    conversation INTEGER PRIMARY KEY,
    next_seq     INTEGER NOT NULL,
    revision     INTEGER NOT NULL
) STRICT;

-- The embedders that made vectors, how far each has come, and the vectors. vector.id is entry.id;
-- a long entry has several parts.
CREATE TABLE embedder (
    id   INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE embedded (
    conversation INTEGER NOT NULL,
    embedder     INTEGER NOT NULL,
    next_seq     INTEGER NOT NULL,
    PRIMARY KEY (conversation, embedder)
) STRICT, WITHOUT ROWID;

CREATE TABLE vector (
    embedder INTEGER NOT NULL,
    id       INTEGER NOT NULL,
    part     INTEGER NOT NULL,
    body     BLOB NOT NULL,
    PRIMARY KEY (embedder, id, part)
) STRICT, WITHOUT ROWID;

-- Cards: small named values that edges keep beside the log, such as API keys or drafts of answers.
-- `tenant` is empty for what belongs to none; `checksum` is of the row's other columns.
CREATE TABLE card (
    kind         TEXT NOT NULL,
    tenant       TEXT NOT NULL,
    name         TEXT NOT NULL,
    conversation INTEGER,
    updated_at   INTEGER NOT NULL,
    checksum     BLOB NOT NULL,
    body         BLOB NOT NULL,
    PRIMARY KEY (kind, tenant, name)
) STRICT, WITHOUT ROWID;

-- What an erased conversation takes along.
CREATE INDEX card_conversation ON card (conversation) WHERE conversation IS NOT NULL;

-- Which cards there are, so that one that vanishes or is replaced by an older one is noticed. Each
-- connection of Firnline keeps it (`watch.sql`).
CREATE TABLE known_card (
    kind         TEXT NOT NULL,
    tenant       TEXT NOT NULL,
    name         TEXT NOT NULL,
    conversation INTEGER,
    checksum     BLOB NOT NULL,
    PRIMARY KEY (kind, tenant, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX known_card_conversation ON known_card (conversation) WHERE conversation IS NOT NULL;

-- Seals: how many rows of each part of a conversation there are, and the sum of their marks, so that
-- rows that change or vanish are noticed. Each connection of Firnline keeps them (`watch.sql`).
-- conversation 0 is for projects.
CREATE TABLE seal (
    conversation INTEGER NOT NULL,
    part         TEXT NOT NULL,
    count        INTEGER NOT NULL,
    mark         INTEGER NOT NULL,
    PRIMARY KEY (conversation, part)
) STRICT, WITHOUT ROWID;

-- Whose database this is, and how many transactions were committed that appended nothing: compared
-- with what is recorded next to the file, so that lost ones are noticed.
CREATE TABLE commit_count (
    id      INTEGER PRIMARY KEY CHECK (id = 1),
    store   BLOB NOT NULL,
    commits INTEGER NOT NULL
) STRICT;

-- Views for people and other programs; Firnline never reads them.
CREATE VIEW memory AS
SELECT d.id AS memory_id, c.name AS conversation_id, d.body ->> 'text' AS memory_text,
    d.body ->> 'first_seq' AS start_sequence, d.body ->> 'last_seq' AS end_sequence,
    d.id >> 32 << 32 | d.body ->> 'base' AS base_memory_id, d.status,
    strftime('%Y-%m-%d %H:%M:%f', d.body ->> 'created_at') AS created_at,
    CASE d.status WHEN 'completed' THEN d.body ->> 'milliseconds' END AS generation_time_ms, c.tenant
FROM (SELECT id, status, CAST(body AS TEXT) AS body FROM digest WHERE topic = -1) d
    JOIN conversation c ON c.id = d.id >> 32;

CREATE VIEW chat_sessions AS
WITH newest AS (
    SELECT id >> 32 AS conversation, max(id) AS id FROM digest
    WHERE topic = -1 AND status = 'completed' GROUP BY id >> 32
), beside AS (
    SELECT n.conversation, n.id AS newest, d.id, CAST(d.body AS TEXT) AS body
    FROM newest n JOIN digest d ON d.id = n.id OR (d.id >> 32 = n.conversation AND EXISTS (
        SELECT 1 FROM digest m, json_each(CAST(m.body AS TEXT), '$.beside') b
        WHERE m.id = n.id AND b.value = d.id & 4294967295))
), item AS (
    SELECT f.conversation, i.value ->> 'field' AS field, i.value ->> 'name' AS name,
        i.value -> 'value' AS value,
        row_number() OVER (ORDER BY f.body ->> 'first_seq', f.id, i.key) AS place
    FROM beside f, json_each(f.body, '$.data.items') i
    WHERE i.value -> 'superseded_by' IS NULL
), filled AS (
    SELECT conversation, field, json_group_object(name, json(value)) AS value
    FROM (SELECT conversation, field, name, value, max(place) AS place FROM item
        WHERE field IN ('user_preferences', 'document_structure', 'custom_fields')
        GROUP BY conversation, field, name ORDER BY conversation, field, place)
    GROUP BY conversation, field
    UNION ALL SELECT conversation, field, json_group_array(json(value))
    FROM (SELECT conversation, field, value, min(place) AS place FROM item
        WHERE field IN ('key_decisions', 'important_facts', 'source_urls', 'entities')
        GROUP BY conversation, field, value ORDER BY conversation, field, place)
    GROUP BY conversation, field
), summary AS (
    SELECT conversation, group_concat(body ->> 'text', char(10, 10)) AS text,
        sum((body ->> 'last_seq') - (body ->> 'first_seq') + 1) AS entries,
        max(body ->> 'last_seq') AS last,
        max(CASE id WHEN newest THEN body ->> 'layer' END) AS layer,
        max(CASE id WHEN newest THEN body ->> 'created_at' END) AS created_at
    FROM (SELECT * FROM beside ORDER BY conversation, body ->> 'first_seq', id)
    GROUP BY conversation
)
SELECT c.name AS session_id, c.name AS conversation, c.project, c.next_seq AS messages,
    c.total AS tokens, strftime('%Y-%m-%d %H:%M:%f', c.created_at / 1000000.0, 'unixepoch') AS created_at,
    strftime('%Y-%m-%d %H:%M:%f', c.updated_at / 1000000.0, 'unixepoch') AS updated_at,
    json_object(
        'important_data', json_patch('{"user_preferences": {}, "key_decisions": [],
            "important_facts": [], "source_urls": [], "document_structure": {}, "entities": [],
            "custom_fields": {}}', coalesce((SELECT json_group_object(i.field, json(i.value))
            FROM filled i WHERE i.conversation = c.id), '{}')),
        'conversation_summary', coalesce(s.text, ''), 'summary_version', coalesce(s.layer + 1, 0),
        'last_summarized_at', s.created_at, 'messages_summarized_count', coalesce(s.entries, 0),
        'last_keep_window_index', coalesce(s.last + 1, 0)
    ) AS memory_compression, c.tenant
FROM conversation c LEFT JOIN summary s ON s.conversation = c.id;
