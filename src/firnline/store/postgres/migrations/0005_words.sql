-- Work that must be done once, by one process at a time. Words are analyzed in a new way, so all that
-- is indexed is indexed again, while search continues with what there is.
CREATE TABLE owed (
    what       text COLLATE "C" PRIMARY KEY,
    claimed_at timestamptz
);

SELECT set_config('firnline.tenant', '*', true);
INSERT INTO owed (what) SELECT 'words' WHERE EXISTS (SELECT FROM conversation);
