-- Conversations with a person that were not read to their end for what the person states.
ALTER TABLE conversation ADD COLUMN unread INTEGER NOT NULL DEFAULT 0;
CREATE INDEX conversation_unread ON conversation (tenant, person, name)
    WHERE unread;
UPDATE conversation SET unread = 1 WHERE person IS NOT NULL AND next_seq > 0;
