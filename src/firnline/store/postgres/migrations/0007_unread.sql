-- Conversations with a person that were not read to their end for what the person states.
ALTER TABLE conversation ADD COLUMN unread boolean NOT NULL DEFAULT false;
CREATE INDEX conversation_unread ON conversation (tenant, person, name) WHERE unread;

SELECT set_config('firnline.tenant', '*', true);
UPDATE conversation SET unread = true WHERE person IS NOT NULL AND next_seq > 0;

CREATE OR REPLACE FUNCTION append(
    whose text, which bigint, start text,
    old_seq bigint, old_total bigint, old_hash text,
    new_seq bigint, new_total bigint, new_hash text, now_at bigint,
    seqs bigint[], counts bigint[], totals bigint[], tokenizers text[], hashes text[], bodies bytea[],
    view_seqs bigint[], view_parts smallint[], view_ats bigint[], view_words text[],
    pinned bigint[], once text, print text
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    UPDATE conversation SET next_seq = new_seq, total = new_total, hash = new_hash, updated_at = now_at,
        unread = person IS NOT NULL
        WHERE tenant = whose AND id = which AND genesis = start
            AND next_seq = old_seq AND total = old_total AND hash = old_hash
            AND (once IS NULL OR NOT EXISTS (SELECT FROM idempotency i
                WHERE i.tenant = whose AND i.conversation = which AND i.key = once));
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO entry (tenant, conversation, seq, tokens, total, tokenizer, hash, body)
        SELECT whose, which, new.*
        FROM unnest(seqs, counts, totals, tokenizers, hashes, bodies) AS new;
    INSERT INTO said (tenant, conversation, at, seq)
        SELECT whose, which, new.at, new.seq
        FROM unnest(view_seqs, view_parts, view_ats) AS new (seq, part, at) WHERE new.part = 0
        ON CONFLICT DO NOTHING;
    INSERT INTO search (tenant, conversation, seq, part, at, words)
        SELECT whose, which, new.seq, new.part, new.at, new.words::tsvector
        FROM unnest(view_seqs, view_parts, view_ats, view_words) AS new (seq, part, at, words);
    IF once IS NOT NULL THEN
        INSERT INTO idempotency (tenant, conversation, key, fingerprint, first_seq, last_seq)
            VALUES (whose, which, once, print, old_seq, new_seq - 1);
    END IF;
    IF cardinality(pinned) > 0 THEN
        INSERT INTO pin (tenant, conversation, seq) SELECT whose, which, unnest(pinned);
    END IF;
    RETURN true;
END $$;
