-- Whom a conversation is with, and the conversations of a person, in order.
ALTER TABLE conversation ADD COLUMN person TEXT;
CREATE INDEX conversation_person ON conversation (tenant, person, name)
    WHERE person IS NOT NULL;
