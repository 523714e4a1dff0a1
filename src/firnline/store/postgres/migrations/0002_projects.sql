-- The conversations of a project, in order.
CREATE INDEX conversation_project ON conversation (tenant, project, name)
    WHERE project IS NOT NULL;
