-- Views for people and other programs; Firnline never reads them. They show what the setting
-- `firnline.tenant` allows, whoever reads them.
CREATE FUNCTION digest_json(body bytea) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT convert_from(body, 'UTF8')::jsonb
$$;

CREATE FUNCTION important_data(digests jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    WITH item AS (
        SELECT i.value ->> 'field' AS field, i.value ->> 'name' AS name, i.value -> 'value' AS value,
            row_number() OVER (ORDER BY d.place, i.place) AS place
        FROM jsonb_array_elements(digests) WITH ORDINALITY AS d (value, place)
            CROSS JOIN LATERAL jsonb_array_elements(d.value -> 'data' -> 'items') WITH ORDINALITY
                AS i (value, place)
        WHERE NOT jsonb_exists(i.value, 'superseded_by')
    ), named AS (
        SELECT field, jsonb_object_agg(name, value ORDER BY place) AS value FROM item
        WHERE field IN ('user_preferences', 'document_structure', 'custom_fields') GROUP BY field
    ), listed AS (
        SELECT field, jsonb_agg(value ORDER BY place) AS value
        FROM (SELECT field, value, min(place) AS place FROM item GROUP BY field, value) AS once
        WHERE field IN ('key_decisions', 'important_facts', 'source_urls', 'entities') GROUP BY field
    )
    SELECT '{"user_preferences": {}, "key_decisions": [], "important_facts": [], "source_urls": [],
        "document_structure": {}, "entities": [], "custom_fields": {}}'::jsonb
        || coalesce((SELECT jsonb_object_agg(field, value) FROM
            (SELECT * FROM named UNION ALL SELECT * FROM listed) AS every), '{}')
$$;

CREATE VIEW memory AS
    SELECT d.conversation << 32 | d.version AS memory_id, c.name AS conversation_id,
        j.body ->> 'text' AS memory_text,
        (j.body ->> 'first_seq')::bigint AS start_sequence,
        (j.body ->> 'last_seq')::bigint AS end_sequence,
        d.conversation << 32 | (j.body ->> 'base')::bigint AS base_memory_id,
        d.status, (j.body ->> 'created_at')::timestamptz AS created_at,
        CASE d.status WHEN 'completed' THEN (j.body ->> 'milliseconds')::bigint END
            AS generation_time_ms,
        d.tenant
    FROM digest d JOIN conversation c ON c.tenant = d.tenant AND c.id = d.conversation
        CROSS JOIN LATERAL (SELECT digest_json(d.body) AS body) AS j
    WHERE d.topic = -1 AND current_setting('firnline.tenant', true) IN ('=' || d.tenant, '*');

CREATE VIEW chat_sessions AS
    SELECT c.name AS session_id, c.name AS conversation, c.project, c.next_seq AS messages,
        c.total AS tokens, to_timestamp(c.created_at / 1000000.0) AS created_at,
        to_timestamp(c.updated_at / 1000000.0) AS updated_at,
        jsonb_build_object(
            'important_data', important_data(coalesce(f.bodies, '[]')),
            'conversation_summary', coalesce(f.text, ''),
            'summary_version', coalesce((n.body ->> 'layer')::bigint + 1, 0),
            'last_summarized_at', n.body -> 'created_at',
            'messages_summarized_count', coalesce(f.entries, 0),
            'last_keep_window_index', coalesce(f.last + 1, 0)
        ) AS memory_compression,
        c.tenant
    FROM conversation c
        LEFT JOIN LATERAL (SELECT d.version, digest_json(d.body) AS body FROM digest d
            WHERE d.tenant = c.tenant AND d.conversation = c.id AND d.topic = -1
                AND d.status = 'completed' ORDER BY d.version DESC LIMIT 1) AS n ON true
        LEFT JOIN LATERAL (SELECT jsonb_agg(b.body ORDER BY b.first, b.version) AS bodies,
            string_agg(b.body ->> 'text', E'\n\n' ORDER BY b.first, b.version) AS text,
            sum(b.last - b.first + 1) AS entries, max(b.last) AS last
            FROM (SELECT d.version, j.body, (j.body ->> 'first_seq')::bigint AS first,
                    (j.body ->> 'last_seq')::bigint AS last
                FROM digest d CROSS JOIN LATERAL (SELECT digest_json(d.body) AS body) AS j
                WHERE d.tenant = c.tenant AND d.conversation = c.id AND (d.version = n.version
                    OR n.body -> 'beside' @> to_jsonb(d.version))) AS b) AS f ON true
    WHERE current_setting('firnline.tenant', true) IN ('=' || c.tenant, '*');
