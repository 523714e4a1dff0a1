-- Which cards there are, so that one that vanishes or is replaced by an older one is noticed.
CREATE TABLE known_card (
    kind         text COLLATE "C",
    tenant       text COLLATE "C",
    name         text COLLATE "C",
    conversation bigint,
    checksum     bytea,
    PRIMARY KEY (kind, tenant, name)
);
CREATE INDEX known_card_conversation ON known_card (tenant, conversation)
    WHERE conversation IS NOT NULL;

SELECT set_config('firnline.tenant', '*', true);
INSERT INTO known_card SELECT kind, tenant, name, conversation, checksum FROM card;

ALTER TABLE known_card ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON known_card
    USING (current_setting('firnline.tenant', true) IN ('=' || tenant, '*'));

-- In Firnline's own transactions, as for seals.
CREATE FUNCTION know_card() RETURNS trigger LANGUAGE plpgsql SET search_path = firnline, pg_catalog
AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        DELETE FROM known_card WHERE kind = OLD.kind AND tenant = OLD.tenant AND name = OLD.name;
    ELSE
        INSERT INTO known_card VALUES (NEW.kind, NEW.tenant, NEW.name, NEW.conversation, NEW.checksum)
        ON CONFLICT (kind, tenant, name) DO UPDATE
            SET conversation = excluded.conversation, checksum = excluded.checksum;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER known AFTER INSERT OR UPDATE OR DELETE ON card
    FOR EACH ROW WHEN (current_setting('firnline.tenant', true) <> '') EXECUTE FUNCTION know_card();
