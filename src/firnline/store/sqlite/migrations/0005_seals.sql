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

-- NULL for keys of before. It is computed by the program, with the entry.
ALTER TABLE idempotency ADD COLUMN mark INTEGER;
