-- What each connection of Firnline has of its own: the seals that rows should have, and triggers that
-- keep the stored seals (see the table `seal`). They are not in the file, so another program can change
-- its rows, and the change shows. `seal_mark` is a hash, a function of the program.
CREATE TEMP VIEW IF NOT EXISTS sealing (conversation, part, count, mark) AS
    SELECT id, 'about', 1,
        seal_mark(hex(genesis), hex(project) || iif(person IS NULL, '', ' ' || hex(person)),
            hex(metadata), hex(strategy), hex(archived), hex(fence), hex(lease_owner), hex(lease_until), hex(owed_at), hex(created_at))
        FROM conversation
    UNION ALL SELECT conversation, 'pins', count(*), sum(seal_mark(hex(seq))) FROM pin GROUP BY 1
    UNION ALL SELECT c.id, 'digests', count(*),
        sum(seal_mark(hex(d.id & 4294967295), hex(d.topic), hex(d.status), hex(d.fence),
            hex(d.checksum)))
        FROM conversation c JOIN digest d ON d.id BETWEEN c.id << 32 AND (c.id << 32) | 4294967295
        GROUP BY c.id
    UNION ALL SELECT c.id, 'newest:' || d.topic, max(d.id) & 4294967295,
        seal_mark(hex(d.id & 4294967295), hex(d.topic), hex(d.checksum))
        FROM conversation c JOIN digest d ON d.id BETWEEN c.id << 32 AND (c.id << 32) | 4294967295
        WHERE d.status = 'completed' GROUP BY c.id, d.topic
    UNION ALL SELECT c.id, 'topics', count(*), sum(seal_mark(hex(t.id & 4294967295),
        hex(t.checksum)))
        FROM conversation c JOIN topic t ON t.id BETWEEN c.id << 32 AND (c.id << 32) | 4294967295
        GROUP BY c.id
    UNION ALL SELECT conversation, 'members:' || topic, count(*), sum(seal_mark(hex(seq)))
        FROM member GROUP BY conversation, topic
    UNION ALL SELECT conversation, 'assigned', next_seq, revision FROM assigned
    UNION ALL SELECT 0, 'project:' || tenant || char(31) || name, 1,
        seal_mark(hex(status), hex(schedule), hex(task), hex(metadata))
        FROM project;

-- A row that does not match its seal is not changed: its new seal would hide the damage.
CREATE TEMP TRIGGER IF NOT EXISTS conversation_sealed BEFORE UPDATE OF
    genesis, project, person, metadata, strategy, archived, fence, lease_owner, lease_until,
    owed_at, created_at ON main.conversation
    WHEN EXISTS (SELECT 1 FROM seal WHERE conversation = OLD.id AND part = 'about'
        AND mark != seal_mark(hex(OLD.genesis),
            hex(OLD.project) || iif(OLD.person IS NULL, '', ' ' || hex(OLD.person)),
            hex(OLD.metadata), hex(OLD.strategy), hex(OLD.archived), hex(OLD.fence),
            hex(OLD.lease_owner), hex(OLD.lease_until), hex(OLD.owed_at), hex(OLD.created_at)))
BEGIN
    SELECT RAISE(ABORT, 'the row of a conversation does not match its seal');
END;

CREATE TEMP TRIGGER IF NOT EXISTS conversation_added AFTER INSERT ON main.conversation BEGIN
    INSERT INTO seal VALUES (NEW.id, 'about', 1, seal_mark(hex(NEW.genesis),
        hex(NEW.project) || iif(NEW.person IS NULL, '', ' ' || hex(NEW.person)),
        hex(NEW.metadata), hex(NEW.strategy), hex(NEW.archived), hex(NEW.fence),
        hex(NEW.lease_owner), hex(NEW.lease_until), hex(NEW.owed_at), hex(NEW.created_at)))
        ON CONFLICT DO UPDATE SET count = excluded.count, mark = excluded.mark;
END;

CREATE TEMP TRIGGER IF NOT EXISTS conversation_changed AFTER UPDATE OF
    genesis, project, person, metadata, strategy, archived, fence, lease_owner, lease_until,
    owed_at, created_at ON main.conversation
BEGIN
    INSERT INTO seal VALUES (NEW.id, 'about', 1, seal_mark(hex(NEW.genesis),
        hex(NEW.project) || iif(NEW.person IS NULL, '', ' ' || hex(NEW.person)),
        hex(NEW.metadata), hex(NEW.strategy), hex(NEW.archived), hex(NEW.fence),
        hex(NEW.lease_owner), hex(NEW.lease_until), hex(NEW.owed_at), hex(NEW.created_at)))
        ON CONFLICT DO UPDATE SET count = excluded.count, mark = excluded.mark;
END;

CREATE TEMP TRIGGER IF NOT EXISTS pin_added AFTER INSERT ON main.pin BEGIN
    INSERT INTO seal VALUES (NEW.conversation, 'pins', 1, seal_mark(hex(NEW.seq)))
        ON CONFLICT DO UPDATE SET count = count + 1, mark = mark + excluded.mark;
END;

CREATE TEMP TRIGGER IF NOT EXISTS pin_removed AFTER DELETE ON main.pin BEGIN
    UPDATE seal SET count = count - 1, mark = mark - seal_mark(hex(OLD.seq))
        WHERE conversation = OLD.conversation AND part = 'pins';
END;

CREATE TEMP TRIGGER IF NOT EXISTS digest_added AFTER INSERT ON main.digest BEGIN
    INSERT INTO seal VALUES (NEW.id >> 32, 'digests', 1,
        seal_mark(hex(NEW.id & 4294967295), hex(NEW.topic), hex(NEW.status), hex(NEW.fence),
            hex(NEW.checksum)))
        ON CONFLICT DO UPDATE SET count = count + 1, mark = mark + excluded.mark;
END;

CREATE TEMP TRIGGER IF NOT EXISTS digest_changed AFTER UPDATE ON main.digest BEGIN
    UPDATE seal SET mark = mark
        + seal_mark(hex(NEW.id & 4294967295), hex(NEW.topic), hex(NEW.status), hex(NEW.fence),
            hex(NEW.checksum))
        - seal_mark(hex(OLD.id & 4294967295), hex(OLD.topic), hex(OLD.status), hex(OLD.fence),
            hex(OLD.checksum))
        WHERE conversation = OLD.id >> 32 AND part = 'digests';
END;

CREATE TEMP TRIGGER IF NOT EXISTS digest_completed_added AFTER INSERT ON main.digest WHEN NEW.status = 'completed' BEGIN
    INSERT INTO seal VALUES (NEW.id >> 32, 'newest:' || NEW.topic, NEW.id & 4294967295,
        seal_mark(hex(NEW.id & 4294967295), hex(NEW.topic), hex(NEW.checksum)))
        ON CONFLICT DO UPDATE SET count = excluded.count, mark = excluded.mark
        WHERE excluded.count >= count;
END;

CREATE TEMP TRIGGER IF NOT EXISTS digest_completed_changed AFTER UPDATE ON main.digest
    WHEN OLD.status = 'completed' OR NEW.status = 'completed'
BEGIN
    DELETE FROM seal WHERE conversation = NEW.id >> 32 AND part = 'newest:' || NEW.topic;
    INSERT INTO seal SELECT id >> 32, 'newest:' || topic, id & 4294967295,
        seal_mark(hex(id & 4294967295), hex(topic), hex(checksum))
        FROM digest WHERE id = (SELECT max(id) FROM digest
            WHERE status = 'completed' AND id >> 32 = NEW.id >> 32 AND topic = NEW.topic);
END;

CREATE TEMP TRIGGER IF NOT EXISTS digest_removed AFTER DELETE ON main.digest BEGIN
    UPDATE seal SET count = count - 1, mark = mark
        - seal_mark(hex(OLD.id & 4294967295), hex(OLD.topic), hex(OLD.status), hex(OLD.fence),
            hex(OLD.checksum))
        WHERE conversation = OLD.id >> 32 AND part = 'digests';
END;

CREATE TEMP TRIGGER IF NOT EXISTS digest_completed_removed AFTER DELETE ON main.digest WHEN OLD.status = 'completed' BEGIN
    DELETE FROM seal WHERE conversation = OLD.id >> 32 AND part = 'newest:' || OLD.topic;
    INSERT INTO seal SELECT id >> 32, 'newest:' || topic, id & 4294967295,
        seal_mark(hex(id & 4294967295), hex(topic), hex(checksum))
        FROM digest WHERE id = (SELECT max(id) FROM digest
            WHERE status = 'completed' AND id >> 32 = OLD.id >> 32 AND topic = OLD.topic);
END;

CREATE TEMP TRIGGER IF NOT EXISTS topic_added AFTER INSERT ON main.topic BEGIN
    INSERT INTO seal VALUES (NEW.id >> 32, 'topics', 1, seal_mark(hex(NEW.id & 4294967295),
        hex(NEW.checksum)))
        ON CONFLICT DO UPDATE SET count = count + 1, mark = mark + excluded.mark;
END;

CREATE TEMP TRIGGER IF NOT EXISTS topic_changed AFTER UPDATE ON main.topic BEGIN
    UPDATE seal SET mark = mark + seal_mark(hex(NEW.id & 4294967295), hex(NEW.checksum))
        - seal_mark(hex(OLD.id & 4294967295), hex(OLD.checksum))
        WHERE conversation = OLD.id >> 32 AND part = 'topics';
END;

CREATE TEMP TRIGGER IF NOT EXISTS topic_removed AFTER DELETE ON main.topic BEGIN
    UPDATE seal SET count = count - 1,
        mark = mark - seal_mark(hex(OLD.id & 4294967295), hex(OLD.checksum))
        WHERE conversation = OLD.id >> 32 AND part = 'topics';
END;

CREATE TEMP TRIGGER IF NOT EXISTS member_added AFTER INSERT ON main.member BEGIN
    INSERT INTO seal VALUES (NEW.conversation, 'members:' || NEW.topic, 1, seal_mark(hex(NEW.seq)))
        ON CONFLICT DO UPDATE SET count = count + 1, mark = mark + excluded.mark;
END;

CREATE TEMP TRIGGER IF NOT EXISTS member_removed AFTER DELETE ON main.member BEGIN
    UPDATE seal SET count = count - 1, mark = mark - seal_mark(hex(OLD.seq))
        WHERE conversation = OLD.conversation AND part = 'members:' || OLD.topic;
END;

CREATE TEMP TRIGGER IF NOT EXISTS assigned_added AFTER INSERT ON main.assigned BEGIN
    INSERT INTO seal VALUES (NEW.conversation, 'assigned', NEW.next_seq, NEW.revision)
        ON CONFLICT DO UPDATE SET count = excluded.count, mark = excluded.mark;
END;

CREATE TEMP TRIGGER IF NOT EXISTS assigned_changed AFTER UPDATE ON main.assigned BEGIN
    INSERT INTO seal VALUES (NEW.conversation, 'assigned', NEW.next_seq, NEW.revision)
        ON CONFLICT DO UPDATE SET count = excluded.count, mark = excluded.mark;
END;

CREATE TEMP TRIGGER IF NOT EXISTS project_added AFTER INSERT ON main.project BEGIN
    INSERT INTO seal VALUES (0, 'project:' || NEW.tenant || char(31) || NEW.name, 1,
        seal_mark(hex(NEW.status), hex(NEW.schedule), hex(NEW.task), hex(NEW.metadata)))
        ON CONFLICT DO UPDATE SET count = excluded.count, mark = excluded.mark;
END;

CREATE TEMP TRIGGER IF NOT EXISTS project_changed AFTER UPDATE ON main.project BEGIN
    INSERT INTO seal VALUES (0, 'project:' || NEW.tenant || char(31) || NEW.name, 1,
        seal_mark(hex(NEW.status), hex(NEW.schedule), hex(NEW.task), hex(NEW.metadata)))
        ON CONFLICT DO UPDATE SET count = excluded.count, mark = excluded.mark;
END;

CREATE TEMP TRIGGER IF NOT EXISTS card_added AFTER INSERT ON main.card BEGIN
    INSERT INTO known_card VALUES (NEW.kind, NEW.tenant, NEW.name, NEW.conversation, NEW.checksum)
        ON CONFLICT DO UPDATE SET conversation = excluded.conversation, checksum = excluded.checksum;
END;

CREATE TEMP TRIGGER IF NOT EXISTS card_removed AFTER DELETE ON main.card BEGIN
    DELETE FROM known_card WHERE kind = OLD.kind AND tenant = OLD.tenant AND name = OLD.name;
END;
