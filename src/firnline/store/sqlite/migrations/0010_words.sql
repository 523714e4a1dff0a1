-- One column holds all terms of an entry, each once and without its place: names and codes whole and by
-- part, stems in the language of the text, and parts of long words. Indexes are views of the log, and
-- are rebuilt from it.
DROP TABLE term;
DROP TABLE search;
DELETE FROM said;
UPDATE conversation SET indexed = 0;

CREATE VIRTUAL TABLE search USING fts5 (
    terms, content = '', contentless_delete = 1, detail = none,
    tokenize = "ascii tokenchars '_~@-./:\#+=&?%$'"
);
