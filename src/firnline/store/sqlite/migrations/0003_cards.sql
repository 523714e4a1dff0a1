-- Cards: small named values that edges keep beside the log.
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

CREATE INDEX card_conversation ON card (conversation) WHERE conversation IS NOT NULL;
