-- What a head's columns are checked against; NULL is not checked.
ALTER TABLE conversation ADD COLUMN mark bigint;

CREATE FUNCTION head_mark(c conversation) RETURNS bigint LANGUAGE sql STABLE
    SET search_path = firnline, pg_catalog AS $$
    SELECT seal_mark(hex(c.next_seq), hex(c.total), hex(c.hash), hex(c.updated_at),
        hex(c.unread::int::bigint))
$$;

SELECT set_config('firnline.tenant', '*', true);
UPDATE conversation c SET mark = head_mark(c);

-- A head that does not match its mark is not changed: its new mark would hide the damage.
CREATE FUNCTION mark_head() RETURNS trigger LANGUAGE plpgsql SET search_path = firnline, pg_catalog
AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND OLD.mark != head_mark(OLD) THEN
        RAISE EXCEPTION 'the head of a conversation does not match its mark' USING
            ERRCODE = 'data_corrupted';
    END IF;
    NEW.mark := head_mark(NEW);
    RETURN NEW;
END $$;

CREATE TRIGGER marked BEFORE INSERT OR UPDATE OF next_seq, total, hash, updated_at, unread
    ON conversation FOR EACH ROW WHEN (current_setting('firnline.tenant', true) <> '')
    EXECUTE FUNCTION mark_head();
