-- The conversations of a project, the most recently updated first.
CREATE INDEX IF NOT EXISTS conversation_recent ON conversation (tenant, project, updated_at DESC, name)
    WHERE project IS NOT NULL;
