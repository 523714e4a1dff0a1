-- One conversation. Its head (next_seq, total, hash) is written with every append, so that entries
-- missing from the end of the log are noticed. `indexed` is how far the
-- views of the log (said, search) have come. `strategy` is JSON, and says how it is digested;
-- `owed_at` is when that is due, NULL if nothing is owed.
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
    UNIQUE (tenant, name)
) STRICT;

CREATE INDEX conversation_owed ON conversation (owed_at) WHERE owed_at IS NOT NULL;
CREATE INDEX conversation_project ON conversation (tenant, project, name)
    WHERE project IS NOT NULL;

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

-- The search index, a view of the log, too: rowid is entry.id. `before` are the words of the entry
-- before, `facts` who spoke and when.
CREATE VIRTUAL TABLE search USING fts5 (
    terms, before, facts, content = '', contentless_delete = 1, tokenize = 'porter ascii'
);

-- How many entries have a word, read from the index itself.
CREATE VIRTUAL TABLE term USING fts5vocab (search, 'col');

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

-- Seals: how many rows of each part of a conversation there are, and the sum of their marks, so that
-- rows that change or vanish are noticed. `seal_mark` is a hash, a function of the program.
-- conversation 0 is for projects.
CREATE TABLE seal (
    conversation INTEGER NOT NULL,
    part         TEXT NOT NULL,
    count        INTEGER NOT NULL,
    mark         INTEGER NOT NULL,
    PRIMARY KEY (conversation, part)
) STRICT, WITHOUT ROWID;

-- The seals that the rows should have.
CREATE VIEW sealing (conversation, part, count, mark) AS
    SELECT id, 'about', 1,
        seal_mark(hex(genesis), hex(project), hex(metadata), hex(strategy), hex(archived),
            hex(fence), hex(lease_owner), hex(lease_until), hex(owed_at), hex(created_at))
        FROM conversation
    UNION ALL SELECT conversation, 'pins', count(*), sum(seal_mark(hex(seq))) FROM pin GROUP BY 1
    UNION ALL SELECT c.id, 'digests', count(*),
        sum(seal_mark(hex(d.id & 4294967295), hex(d.topic), hex(d.status), hex(d.fence),
            hex(d.checksum)))
        FROM conversation c JOIN digest d ON d.id BETWEEN c.id << 32 AND (c.id << 32) | 4294967295
        GROUP BY c.id
    UNION ALL SELECT c.id, 'newest:' || d.topic, max(d.id) & 4294967295,
        seal_mark(hex(d.id & 4294967295), hex(d.topic), hex(d.checksum))
        FROM conversation c JOIN digest d ON d.id BETWEEN c.id << 32 AND (c.id << 32) | 4294967295
        WHERE d.status = 'completed' GROUP BY c.id, d.topic
    UNION ALL SELECT c.id, 'topics', count(*), sum(seal_mark(hex(t.id & 4294967295),
        hex(t.checksum)))
        FROM conversation c JOIN topic t ON t.id BETWEEN c.id << 32 AND (c.id << 32) | 4294967295
        GROUP BY c.id
    UNION ALL SELECT conversation, 'members:' || topic, count(*), sum(seal_mark(hex(seq)))
        FROM member GROUP BY conversation, topic
    UNION ALL SELECT conversation, 'assigned', next_seq, revision FROM assigned
    UNION ALL SELECT 0, 'project:' || tenant || char(31) || name, 1,
        seal_mark(hex(status), hex(schedule), hex(task), hex(metadata))
        FROM project;

-- A row that does not match its seal is not changed: its new seal would hide the damage.
CREATE TRIGGER conversation_sealed BEFORE UPDATE OF
    genesis, project, metadata, strategy, archived, fence, lease_owner, lease_until, owed_at,
    created_at ON conversation
    WHEN EXISTS (SELECT 1 FROM seal WHERE conversation = OLD.id AND part = 'about'
        AND mark != seal_mark(hex(OLD.genesis), hex(OLD.project), hex(OLD.metadata),
            hex(OLD.strategy), hex(OLD.archived), hex(OLD.fence), hex(OLD.lease_owner),
            hex(OLD.lease_until), hex(OLD.owed_at), hex(OLD.created_at)))
BEGIN
    SELECT RAISE(ABORT, 'the row of a conversation does not match its seal');
END;

CREATE TRIGGER conversation_added AFTER INSERT ON conversation BEGIN
    INSERT INTO seal VALUES (NEW.id, 'about', 1, seal_mark(hex(NEW.genesis), hex(NEW.project),
        hex(NEW.metadata), hex(NEW.strategy), hex(NEW.archived), hex(NEW.fence),
        hex(NEW.lease_owner), hex(NEW.lease_until), hex(NEW.owed_at), hex(NEW.created_at)))
        ON CONFLICT DO UPDATE SET count = excluded.count, mark = excluded.mark;
END;

CREATE TRIGGER conversation_changed AFTER UPDATE OF
    genesis, project, metadata, strategy, archived, fence, lease_owner, lease_until, owed_at,
    created_at ON conversation
BEGIN
    INSERT INTO seal VALUES (NEW.id, 'about', 1, seal_mark(hex(NEW.genesis), hex(NEW.project),
        hex(NEW.metadata), hex(NEW.strategy), hex(NEW.archived), hex(NEW.fence),
        hex(NEW.lease_owner), hex(NEW.lease_until), hex(NEW.owed_at), hex(NEW.created_at)))
        ON CONFLICT DO UPDATE SET count = excluded.count, mark = excluded.mark;
END;

CREATE TRIGGER pin_added AFTER INSERT ON pin BEGIN
    INSERT INTO seal VALUES (NEW.conversation, 'pins', 1, seal_mark(hex(NEW.seq)))
        ON CONFLICT DO UPDATE SET count = count + 1, mark = mark + excluded.mark;
END;

CREATE TRIGGER pin_removed AFTER DELETE ON pin BEGIN
    UPDATE seal SET count = count - 1, mark = mark - seal_mark(hex(OLD.seq))
        WHERE conversation = OLD.conversation AND part = 'pins';
END;

CREATE TRIGGER digest_added AFTER INSERT ON digest BEGIN
    INSERT INTO seal VALUES (NEW.id >> 32, 'digests', 1,
        seal_mark(hex(NEW.id & 4294967295), hex(NEW.topic), hex(NEW.status), hex(NEW.fence),
            hex(NEW.checksum)))
        ON CONFLICT DO UPDATE SET count = count + 1, mark = mark + excluded.mark;
END;

CREATE TRIGGER digest_changed AFTER UPDATE ON digest BEGIN
    UPDATE seal SET mark = mark
        + seal_mark(hex(NEW.id & 4294967295), hex(NEW.topic), hex(NEW.status), hex(NEW.fence),
            hex(NEW.checksum))
        - seal_mark(hex(OLD.id & 4294967295), hex(OLD.topic), hex(OLD.status), hex(OLD.fence),
            hex(OLD.checksum))
        WHERE conversation = OLD.id >> 32 AND part = 'digests';
END;

CREATE TRIGGER digest_completed_added AFTER INSERT ON digest WHEN NEW.status = 'completed' BEGIN
    INSERT INTO seal VALUES (NEW.id >> 32, 'newest:' || NEW.topic, NEW.id & 4294967295,
        seal_mark(hex(NEW.id & 4294967295), hex(NEW.topic), hex(NEW.checksum)))
        ON CONFLICT DO UPDATE SET count = excluded.count, mark = excluded.mark
        WHERE excluded.count >= count;
END;

CREATE TRIGGER digest_completed_changed AFTER UPDATE ON digest
    WHEN OLD.status = 'completed' OR NEW.status = 'completed'
BEGIN
    DELETE FROM seal WHERE conversation = NEW.id >> 32 AND part = 'newest:' || NEW.topic;
    INSERT INTO seal SELECT id >> 32, 'newest:' || topic, id & 4294967295,
        seal_mark(hex(id & 4294967295), hex(topic), hex(checksum))
        FROM digest WHERE id = (SELECT max(id) FROM digest
            WHERE status = 'completed' AND id >> 32 = NEW.id >> 32 AND topic = NEW.topic);
END;

CREATE TRIGGER topic_added AFTER INSERT ON topic BEGIN
    INSERT INTO seal VALUES (NEW.id >> 32, 'topics', 1, seal_mark(hex(NEW.id & 4294967295),
        hex(NEW.checksum)))
        ON CONFLICT DO UPDATE SET count = count + 1, mark = mark + excluded.mark;
END;

CREATE TRIGGER topic_changed AFTER UPDATE ON topic BEGIN
    UPDATE seal SET mark = mark + seal_mark(hex(NEW.id & 4294967295), hex(NEW.checksum))
        - seal_mark(hex(OLD.id & 4294967295), hex(OLD.checksum))
        WHERE conversation = OLD.id >> 32 AND part = 'topics';
END;

CREATE TRIGGER member_added AFTER INSERT ON member BEGIN
    INSERT INTO seal VALUES (NEW.conversation, 'members:' || NEW.topic, 1, seal_mark(hex(NEW.seq)))
        ON CONFLICT DO UPDATE SET count = count + 1, mark = mark + excluded.mark;
END;

CREATE TRIGGER member_removed AFTER DELETE ON member BEGIN
    UPDATE seal SET count = count - 1, mark = mark - seal_mark(hex(OLD.seq))
        WHERE conversation = OLD.conversation AND part = 'members:' || OLD.topic;
END;

CREATE TRIGGER assigned_added AFTER INSERT ON assigned BEGIN
    INSERT INTO seal VALUES (NEW.conversation, 'assigned', NEW.next_seq, NEW.revision)
        ON CONFLICT DO UPDATE SET count = excluded.count, mark = excluded.mark;
END;

CREATE TRIGGER assigned_changed AFTER UPDATE ON assigned BEGIN
    INSERT INTO seal VALUES (NEW.conversation, 'assigned', NEW.next_seq, NEW.revision)
        ON CONFLICT DO UPDATE SET count = excluded.count, mark = excluded.mark;
END;

CREATE TRIGGER project_added AFTER INSERT ON project BEGIN
    INSERT INTO seal VALUES (0, 'project:' || NEW.tenant || char(31) || NEW.name, 1,
        seal_mark(hex(NEW.status), hex(NEW.schedule), hex(NEW.task), hex(NEW.metadata)))
        ON CONFLICT DO UPDATE SET count = excluded.count, mark = excluded.mark;
END;

CREATE TRIGGER project_changed AFTER UPDATE ON project BEGIN
    INSERT INTO seal VALUES (0, 'project:' || NEW.tenant || char(31) || NEW.name, 1,
        seal_mark(hex(NEW.status), hex(NEW.schedule), hex(NEW.task), hex(NEW.metadata)))
        ON CONFLICT DO UPDATE SET count = excluded.count, mark = excluded.mark;
END;
