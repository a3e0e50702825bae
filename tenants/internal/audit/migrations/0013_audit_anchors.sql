-- Where the audit of an organization begins, once its oldest lines were removed: at the last of these. The lines behind it follow from its hash,
-- and tell of the events behind its position.
CREATE TABLE audit_anchors (
    organization text        PRIMARY KEY CHECK (organization <> ''), -- '*': of the installation
    sequence     bigint      NOT NULL CHECK (sequence > 0),
    position     bigint      NOT NULL,
    hash         text        NOT NULL CHECK (hash ~ '^[0-9a-f]{64}$'),
    at           timestamptz NOT NULL -- of the line
);
ALTER TABLE audit_anchors ENABLE ROW LEVEL SECURITY;
ALTER TABLE audit_anchors FORCE ROW LEVEL SECURITY;
CREATE POLICY audit_anchors_of_organization ON audit_anchors
    USING (organization = current_setting('weir.organization', true) OR current_setting('weir.organization', true) = '*');

-- Lines go only behind an anchor, and an anchor only goes forward.
DROP TRIGGER audit_events_are_kept ON audit_events;
CREATE TRIGGER audit_events_are_kept BEFORE UPDATE OR TRUNCATE ON audit_events
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_to_change_the_audit();

CREATE FUNCTION refuse_to_shorten_the_audit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM audit_anchors a WHERE a.organization = OLD.organization AND a.sequence >= OLD.sequence) THEN
        RAISE EXCEPTION 'the audit is never changed: no anchor stands for line % of %', OLD.sequence, OLD.organization USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN OLD;
END
$$;
CREATE TRIGGER audit_events_go_behind_an_anchor BEFORE DELETE ON audit_events
    FOR EACH ROW EXECUTE FUNCTION refuse_to_shorten_the_audit();
GRANT DELETE ON audit_events TO CURRENT_USER;

CREATE FUNCTION refuse_to_move_an_anchor_back() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.organization <> OLD.organization OR NEW.sequence <= OLD.sequence THEN
        RAISE EXCEPTION 'an anchor of the audit only goes forward' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER audit_anchors_go_forward BEFORE UPDATE ON audit_anchors
    FOR EACH ROW EXECUTE FUNCTION refuse_to_move_an_anchor_back();
