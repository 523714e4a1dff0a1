-- Whose database this is, and how many transactions were committed that appended nothing: compared
-- with what is recorded next to the file, so that lost ones are noticed.
CREATE TABLE commit_count (
    id      INTEGER PRIMARY KEY CHECK (id = 1),
    store   BLOB NOT NULL,
    commits INTEGER NOT NULL
) STRICT;

INSERT INTO commit_count VALUES (1, randomblob(16), 0);
