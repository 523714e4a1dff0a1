-- Seals: how many rows of each part of a conversation there are, and the sum of their marks, so that
-- rows that change or vanish are noticed. A mark is 32 bits of a hash. Conversation 0 is for projects.
-- Triggers keep the seals in Firnline's own transactions, which set `firnline.tenant`; what others
-- change shows.
CREATE TABLE seal (
    tenant       text COLLATE "C",
    conversation bigint,
    part         text COLLATE "C",
    count        bigint,
    mark         bigint,
    PRIMARY KEY (tenant, conversation, part)
);

ALTER TABLE seal ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON seal USING (current_setting('firnline.tenant', true) IN ('=' || tenant, '*'));

-- NULL for keys of before.
ALTER TABLE idempotency ADD COLUMN mark bigint;

-- The mark of a row whose columns are given as hexadecimal digits; the program computes the same.
CREATE FUNCTION seal_mark(VARIADIC columns text[]) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT ('x' || left(encode(sha256(convert_to(array_to_string(columns, ' ', ''), 'UTF8')), 'hex'),
        8))::bit(32)::bigint
$$;

CREATE FUNCTION hex(value text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT upper(encode(convert_to(value, 'UTF8'), 'hex'))
$$;

CREATE FUNCTION hex(value bigint) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT upper(encode(convert_to(value::text, 'UTF8'), 'hex'))
$$;

CREATE FUNCTION hex(value bytea) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT upper(encode(value, 'hex'))
$$;

CREATE FUNCTION about_mark(c conversation) RETURNS bigint LANGUAGE sql STABLE
    SET search_path = firnline, pg_catalog AS $$
    SELECT seal_mark(hex(c.genesis), hex(c.project), hex(c.metadata::text), hex(c.strategy::text),
        hex(c.archived), hex(c.fence), hex(c.lease_owner), hex(c.lease_until), hex(c.owed_at),
        hex(c.created_at))
$$;

-- The seals that the rows of a conversation should have; of a tenant's projects if `which` is 0, of
-- everything if it is NULL.
CREATE FUNCTION sealing(whose text, which bigint)
    RETURNS TABLE (tenant text, conversation bigint, part text, count bigint, mark bigint)
    LANGUAGE sql STABLE SET search_path = firnline, pg_catalog AS $$
    WITH own AS (SELECT c.* FROM conversation c
        WHERE which IS NULL OR (c.tenant = whose AND c.id = which))
    SELECT c.tenant, c.id, 'about', 1::bigint, about_mark(c.*::conversation) FROM own c
    UNION ALL SELECT c.tenant, c.id, 'pins', count(*), sum(seal_mark(hex(p.seq)))::bigint
        FROM own c JOIN pin p ON p.tenant = c.tenant AND p.conversation = c.id GROUP BY 1, 2
    UNION ALL SELECT c.tenant, c.id, 'digests', count(*), sum(seal_mark(hex(d.version),
        hex(d.topic), hex(d.status), hex(d.fence), hex(d.checksum)))::bigint
        FROM own c JOIN digest d ON d.tenant = c.tenant AND d.conversation = c.id GROUP BY 1, 2
    UNION ALL (SELECT DISTINCT ON (c.tenant, c.id, d.topic) c.tenant, c.id, 'newest:' || d.topic,
        d.version, seal_mark(hex(d.version), hex(d.topic), hex(d.checksum))
        FROM own c JOIN digest d ON d.tenant = c.tenant AND d.conversation = c.id
        WHERE d.status = 'completed' ORDER BY c.tenant, c.id, d.topic, d.version DESC)
    UNION ALL SELECT c.tenant, c.id, 'topics', count(*),
        sum(seal_mark(hex(t.id), hex(t.checksum)))::bigint
        FROM own c JOIN topic t ON t.tenant = c.tenant AND t.conversation = c.id GROUP BY 1, 2
    UNION ALL SELECT c.tenant, c.id, 'members:' || m.topic, count(*),
        sum(seal_mark(hex(m.seq)))::bigint
        FROM own c JOIN member m ON m.tenant = c.tenant AND m.conversation = c.id
        GROUP BY 1, 2, m.topic
    UNION ALL SELECT c.tenant, c.id, 'assigned', a.next_seq, a.revision
        FROM own c JOIN assigned a ON a.tenant = c.tenant AND a.conversation = c.id
    UNION ALL SELECT p.tenant, 0, 'project:' || p.name, 1,
        seal_mark(hex(p.status), hex(p.schedule), hex(p.task), hex(p.metadata::text))
        FROM project p WHERE which IS NULL OR (p.tenant = whose AND which = 0)
$$;

-- Add to a seal of rows, or replace the seal of a single row.
CREATE FUNCTION seal_add(whose text, which bigint, what text, rows numeric, marks numeric)
    RETURNS void LANGUAGE sql SET search_path = firnline, pg_catalog AS $$
    INSERT INTO seal VALUES (whose, which, what, rows::bigint, marks::bigint)
    ON CONFLICT (tenant, conversation, part) DO UPDATE
        SET count = seal.count + excluded.count, mark = seal.mark + excluded.mark
$$;

CREATE FUNCTION seal_set(whose text, which bigint, what text, rows bigint, one bigint)
    RETURNS void LANGUAGE sql SET search_path = firnline, pg_catalog AS $$
    INSERT INTO seal VALUES (whose, which, what, rows, one)
    ON CONFLICT (tenant, conversation, part) DO UPDATE
        SET count = excluded.count, mark = excluded.mark
$$;

-- A trigger for rows that are sealed together: its arguments are SQL for their part and their mark.
CREATE FUNCTION seal_rows() RETURNS trigger LANGUAGE plpgsql SET search_path = firnline, pg_catalog
AS $$
DECLARE
    summed text := 'SELECT seal_add(tenant, conversation, part, %2$s count(*), %2$s sum(mark)) FROM'
        ' (SELECT tenant, conversation, %1$s AS part, %3$s AS mark FROM %4$s) AS rows'
        ' GROUP BY tenant, conversation, part';
BEGIN
    IF TG_OP IN ('INSERT', 'UPDATE') THEN
        EXECUTE format(summed, TG_ARGV[0], '', TG_ARGV[1], 'added');
    END IF;
    IF TG_OP IN ('DELETE', 'UPDATE') THEN
        EXECUTE format(summed, TG_ARGV[0], '-', TG_ARGV[1], 'removed');
    END IF;
    RETURN NULL;
END $$;

DO $$
DECLARE
    kind text[];
    event text;
BEGIN
    FOREACH kind SLICE 1 IN ARRAY ARRAY[
        ['pin', '''pins''', 'seal_mark(hex(seq))'],
        ['member', '''members:'' || topic', 'seal_mark(hex(seq))'],
        ['topic', '''topics''', 'seal_mark(hex(id), hex(checksum))'],
        ['digest', '''digests''',
            'seal_mark(hex(version), hex(topic), hex(status), hex(fence), hex(checksum))']
    ] LOOP
        FOREACH event IN ARRAY ARRAY['INSERT', 'UPDATE', 'DELETE'] LOOP
            EXECUTE format('CREATE TRIGGER %I AFTER %s ON %I REFERENCING %s FOR EACH STATEMENT'
                ' WHEN (current_setting(''firnline.tenant'', true) <> '''') EXECUTE FUNCTION seal_rows(%L, %L)',
                'sealed_' || lower(event), event, kind[1],
                CASE event WHEN 'INSERT' THEN 'NEW TABLE AS added' WHEN 'DELETE' THEN
                    'OLD TABLE AS removed' ELSE 'NEW TABLE AS added OLD TABLE AS removed' END,
                kind[2], kind[3]);
        END LOOP;
    END LOOP;
END $$;

-- A row that does not match its seal is not changed: its new seal would hide the damage.
CREATE FUNCTION seal_about() RETURNS trigger LANGUAGE plpgsql SET search_path = firnline, pg_catalog
AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        DELETE FROM seal WHERE tenant = OLD.tenant AND conversation = OLD.id;
        RETURN NULL;
    END IF;
    IF TG_OP = 'UPDATE' AND EXISTS (SELECT FROM seal WHERE tenant = OLD.tenant
        AND conversation = OLD.id AND part = 'about' AND mark != about_mark(OLD)) THEN
        RAISE EXCEPTION 'the row of a conversation does not match its seal' USING
            ERRCODE = 'data_corrupted';
    END IF;
    PERFORM seal_set(NEW.tenant, NEW.id, 'about', 1, about_mark(NEW));
    RETURN NULL;
END $$;

CREATE TRIGGER sealed AFTER INSERT OR DELETE OR UPDATE OF genesis, project, metadata, strategy,
    archived, fence, lease_owner, lease_until, owed_at, created_at ON conversation
    FOR EACH ROW WHEN (current_setting('firnline.tenant', true) <> '')
    EXECUTE FUNCTION seal_about();

CREATE FUNCTION seal_newest() RETURNS trigger LANGUAGE plpgsql SET search_path = firnline, pg_catalog
AS $$
DECLARE
    changed digest := CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
BEGIN
    IF changed.status = 'completed' OR (TG_OP = 'UPDATE' AND OLD.status = 'completed') THEN
        DELETE FROM seal WHERE tenant = changed.tenant AND conversation = changed.conversation
            AND part = 'newest:' || changed.topic;
        PERFORM seal_set(d.tenant, d.conversation, 'newest:' || d.topic, d.version,
            seal_mark(hex(d.version), hex(d.topic), hex(d.checksum)))
            FROM digest d WHERE d.tenant = changed.tenant
            AND d.conversation = changed.conversation AND d.topic = changed.topic AND d.status = 'completed' ORDER BY d.version DESC LIMIT 1;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER sealed_newest AFTER INSERT OR UPDATE OR DELETE ON digest
    FOR EACH ROW WHEN (current_setting('firnline.tenant', true) <> '')
    EXECUTE FUNCTION seal_newest();

CREATE FUNCTION seal_row() RETURNS trigger LANGUAGE plpgsql SET search_path = firnline, pg_catalog
AS $$
BEGIN
    IF TG_TABLE_NAME = 'assigned' THEN
        PERFORM seal_set(NEW.tenant, NEW.conversation, 'assigned', NEW.next_seq, NEW.revision);
    ELSE
        PERFORM seal_set(NEW.tenant, 0, 'project:' || NEW.name, 1, seal_mark(hex(NEW.status),
            hex(NEW.schedule), hex(NEW.task), hex(NEW.metadata::text)));
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER sealed AFTER INSERT OR UPDATE ON assigned
    FOR EACH ROW WHEN (current_setting('firnline.tenant', true) <> '')
    EXECUTE FUNCTION seal_row();
CREATE TRIGGER sealed AFTER INSERT OR UPDATE ON project
    FOR EACH ROW WHEN (current_setting('firnline.tenant', true) <> '')
    EXECUTE FUNCTION seal_row();

CREATE FUNCTION seal_idempotency() RETURNS trigger LANGUAGE plpgsql
    SET search_path = firnline, pg_catalog AS $$
BEGIN
    NEW.mark := seal_mark(hex(NEW.conversation), hex(NEW.key), hex(NEW.fingerprint),
        hex(NEW.first_seq), hex(NEW.last_seq));
    RETURN NEW;
END $$;

CREATE TRIGGER sealed BEFORE INSERT ON idempotency
    FOR EACH ROW EXECUTE FUNCTION seal_idempotency();

SELECT set_config('firnline.tenant', '*', true);
INSERT INTO seal SELECT * FROM sealing(NULL, NULL);
