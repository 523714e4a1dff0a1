-- Which cards there are, so that one that vanishes or is replaced by an older one is noticed.
CREATE TABLE known_card (
    kind         TEXT NOT NULL,
    tenant       TEXT NOT NULL,
    name         TEXT NOT NULL,
    conversation INTEGER,
    checksum     BLOB NOT NULL,
    PRIMARY KEY (kind, tenant, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX known_card_conversation ON known_card (conversation) WHERE conversation IS NOT NULL;
INSERT INTO known_card SELECT kind, tenant, name, conversation, checksum FROM card;
