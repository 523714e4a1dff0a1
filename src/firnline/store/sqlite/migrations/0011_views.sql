-- Views for people and other programs; Firnline never reads them.
CREATE VIEW IF NOT EXISTS memory AS
SELECT d.id AS memory_id, c.name AS conversation_id, d.body ->> 'text' AS memory_text,
    d.body ->> 'first_seq' AS start_sequence, d.body ->> 'last_seq' AS end_sequence,
    d.id >> 32 << 32 | d.body ->> 'base' AS base_memory_id, d.status,
    strftime('%Y-%m-%d %H:%M:%f', d.body ->> 'created_at') AS created_at,
    CASE d.status WHEN 'completed' THEN d.body ->> 'milliseconds' END AS generation_time_ms, c.tenant
FROM (SELECT id, status, CAST(body AS TEXT) AS body FROM digest WHERE topic = -1) d
    JOIN conversation c ON c.id = d.id >> 32;

CREATE VIEW IF NOT EXISTS chat_sessions AS
WITH newest AS (
    SELECT id >> 32 AS conversation, max(id) AS id FROM digest
    WHERE topic = -1 AND status = 'completed' GROUP BY id >> 32
), beside AS (
    SELECT n.conversation, n.id AS newest, d.id, CAST(d.body AS TEXT) AS body
    FROM newest n JOIN digest d ON d.id = n.id OR (d.id >> 32 = n.conversation AND EXISTS (
        SELECT 1 FROM digest m, json_each(CAST(m.body AS TEXT), '$.beside') b
        WHERE m.id = n.id AND b.value = d.id & 4294967295))
), item AS (
    SELECT f.conversation, i.value ->> 'field' AS field, i.value ->> 'name' AS name,
        i.value -> 'value' AS value,
        row_number() OVER (ORDER BY f.body ->> 'first_seq', f.id, i.key) AS place
    FROM beside f, json_each(f.body, '$.data.items') i
    WHERE i.value -> 'superseded_by' IS NULL
), filled AS (
    SELECT conversation, field, json_group_object(name, json(value)) AS value
    FROM (SELECT conversation, field, name, value, max(place) AS place FROM item
        WHERE field IN ('user_preferences', 'document_structure', 'custom_fields')
        GROUP BY conversation, field, name ORDER BY conversation, field, place)
    GROUP BY conversation, field
    UNION ALL SELECT conversation, field, json_group_array(json(value))
    FROM (SELECT conversation, field, value, min(place) AS place FROM item
        WHERE field IN ('key_decisions', 'important_facts', 'source_urls', 'entities')
        GROUP BY conversation, field, value ORDER BY conversation, field, place)
    GROUP BY conversation, field
), summary AS (
    SELECT conversation, group_concat(body ->> 'text', char(10, 10)) AS text,
        sum((body ->> 'last_seq') - (body ->> 'first_seq') + 1) AS entries,
        max(body ->> 'last_seq') AS last,
        max(CASE id WHEN newest THEN body ->> 'layer' END) AS layer,
        max(CASE id WHEN newest THEN body ->> 'created_at' END) AS created_at
    FROM (SELECT * FROM beside ORDER BY conversation, body ->> 'first_seq', id)
    GROUP BY conversation
)
SELECT c.name AS session_id, c.name AS conversation, c.project, c.next_seq AS messages,
    c.total AS tokens, strftime('%Y-%m-%d %H:%M:%f', c.created_at / 1000000.0, 'unixepoch') AS created_at,
    strftime('%Y-%m-%d %H:%M:%f', c.updated_at / 1000000.0, 'unixepoch') AS updated_at,
    json_object(
        'important_data', json_patch('{"user_preferences": {}, "key_decisions": [],
            "important_facts": [], "source_urls": [], "document_structure": {}, "entities": [],
            "custom_fields": {}}', coalesce((SELECT json_group_object(i.field, json(i.value))
            FROM filled i WHERE i.conversation = c.id), '{}')),
        'conversation_summary', coalesce(s.text, ''), 'summary_version', coalesce(s.layer + 1, 0),
        'last_summarized_at', s.created_at, 'messages_summarized_count', coalesce(s.entries, 0),
        'last_keep_window_index', coalesce(s.last + 1, 0)
    ) AS memory_compression, c.tenant
FROM conversation c LEFT JOIN summary s ON s.conversation = c.id;
