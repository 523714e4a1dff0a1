-- What a head's columns are checked against; NULL is not checked. A row is checked from now on.
ALTER TABLE conversation ADD COLUMN mark INTEGER;
UPDATE conversation SET mark = seal_mark(
    hex(next_seq), hex(total), hex(hash), hex(updated_at), hex(unread));
