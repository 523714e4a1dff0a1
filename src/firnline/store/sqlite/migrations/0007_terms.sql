-- Terms are indexed as Firnline makes them, stems included, the same in every store: the index
-- itself only splits them at spaces. Indexes are views of the log, and are rebuilt from it.
DROP TABLE term;
DROP TABLE search;
DELETE FROM said;
UPDATE conversation SET indexed = 0;

CREATE VIRTUAL TABLE search USING fts5 (
    terms, before, facts, content = '', contentless_delete = 1, tokenize = "ascii tokenchars '_'"
);

CREATE VIRTUAL TABLE term USING fts5vocab (search, 'col');
