-- Splits the tables that grow with the log into 32 partitions by (tenant, conversation), for a store
-- with hundreds of millions of messages. Each partition has its own indexes, which stay small enough
-- for memory, and can be vacuumed, reindexed and moved to another disk separately. All rows of a
-- conversation are in one partition, so an append, a read or a context uses only that one; a search
-- uses the index of each.
--
-- Run it as the owner, once, while no other process uses the store. Open the store with Firnline
-- first, so that its tables exist. Existing rows are copied:
--   psql --set ON_ERROR_STOP=1 --single-transaction --file deploy/partitions.sql postgresql://...
SET search_path = firnline, pg_catalog;
SET firnline.tenant = '*';

DO $$
DECLARE
    mine text := $policy$ (current_setting('firnline.tenant', true) IN ('=' || tenant, '*')) $policy$;
    parts int := 32;
    name text;
    part text;
    triggers text[];
    trigger text;
BEGIN
    FOREACH name IN ARRAY ARRAY['entry', 'segment', 'said', 'search', 'vector', 'member'] LOOP
        IF (SELECT relkind = 'p' FROM pg_class WHERE oid = name::regclass) THEN
            CONTINUE;
        END IF;
        EXECUTE format('ALTER TABLE %I RENAME TO %I', name, name || '_whole');
        EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL) PARTITION BY HASH'
            ' (tenant, conversation)', name, name || '_whole');
        FOR number IN 0 .. parts - 1 LOOP
            part := format('%s_%s', name, lpad(number::text, 2, '0'));
            EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES WITH (MODULUS %s,'
                ' REMAINDER %s)', part, name, parts, number);
            EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY',
                part);
            EXECUTE format('CREATE POLICY tenant ON %I USING %s', part, mine);
        END LOOP;
        EXECUTE format('INSERT INTO %I SELECT * FROM %I', name, name || '_whole');
        triggers := ARRAY(SELECT replace(pg_get_triggerdef(oid), name || '_whole', name) FROM pg_trigger
            WHERE tgrelid = (name || '_whole')::regclass AND NOT tgisinternal);
        EXECUTE format('DROP TABLE %I', name || '_whole');
        FOREACH trigger IN ARRAY triggers LOOP -- after the copy: its rows are sealed already
            EXECUTE trigger;
        END LOOP;
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY tenant ON %I USING %s', name, mine);
        IF name = 'search' THEN -- as in the schema: the index holds hashes alone
            EXECUTE 'CREATE POLICY words ON search FOR SELECT USING (true)';
        END IF;
    END LOOP;
END $$;
