-- Topics, vectors, and an index that knows who spoke, when, and what was said just before.
DROP TABLE search;
DELETE FROM said;
UPDATE conversation SET indexed = 0;

CREATE VIRTUAL TABLE search USING fts5 (
    terms, before, facts, content = '', contentless_delete = 1, tokenize = 'porter ascii'
);

CREATE VIRTUAL TABLE term USING fts5vocab (search, 'col');

ALTER TABLE digest ADD COLUMN topic INTEGER NOT NULL DEFAULT -1;
DROP INDEX digest_completed;
CREATE INDEX digest_completed ON digest (id >> 32, topic, id) WHERE status = 'completed';

CREATE TABLE topic (
    id       INTEGER PRIMARY KEY,
    checksum BLOB NOT NULL,
    body     BLOB NOT NULL
) STRICT;

CREATE TABLE member (
    conversation INTEGER NOT NULL,
    topic        INTEGER NOT NULL,
    seq          INTEGER NOT NULL,
    PRIMARY KEY (conversation, topic, seq)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX member_entry ON member (conversation, seq);

CREATE TABLE assigned (
    conversation INTEGER PRIMARY KEY,
    next_seq     INTEGER NOT NULL,
    revision     INTEGER NOT NULL
) STRICT;

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
