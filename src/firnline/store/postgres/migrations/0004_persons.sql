-- Whom a conversation is with, and the conversations of a person, in order. The mark of a conversation
-- without a person is what it was.
ALTER TABLE conversation ADD COLUMN person text COLLATE "C";
CREATE INDEX conversation_person ON conversation (tenant, person, name)
    WHERE person IS NOT NULL;

CREATE OR REPLACE FUNCTION about_mark(c conversation) RETURNS bigint LANGUAGE sql STABLE
    SET search_path = firnline, pg_catalog AS $$
    SELECT seal_mark(hex(c.genesis),
        coalesce(hex(c.project), '') || coalesce(' ' || hex(c.person), ''),
        hex(c.metadata::text), hex(c.strategy::text), hex(c.archived), hex(c.fence),
        hex(c.lease_owner), hex(c.lease_until), hex(c.owed_at), hex(c.created_at))
$$;

CREATE OR REPLACE TRIGGER sealed AFTER INSERT OR DELETE OR UPDATE OF genesis, project, person, metadata,
    strategy, archived, fence, lease_owner, lease_until, owed_at, created_at ON conversation
    FOR EACH ROW WHEN (current_setting('firnline.tenant', true) <> '')
    EXECUTE FUNCTION seal_about();
