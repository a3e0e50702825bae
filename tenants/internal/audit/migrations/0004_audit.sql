-- The audit: what each event means to those who look at it later, who decided it and from where. It is written with the
-- event, and unlike the other tables it is never made again: lines are added, never changed and never removed.
--
-- Lines are numbered without gaps in the order of commits, and each has a hash of itself and the hash before.
CREATE TABLE audit_events (
    organization text        NOT NULL CHECK (organization <> ''), -- '*': of the installation
    sequence     bigint      NOT NULL CHECK (sequence > 0),
    at           timestamptz NOT NULL,
    action       text        NOT NULL,
    actor_kind   text        NOT NULL,
    actor        text        NOT NULL,
    actor_name   text        NOT NULL, -- at the time
    role         text        NOT NULL, -- at the time
    address      text        NOT NULL,
    client       text        NOT NULL,
    request      text        NOT NULL,
    target_kind  text        NOT NULL,
    target       text        NOT NULL,
    target_name  text        NOT NULL, -- at the time
    before       text        NOT NULL, -- a JSON object, or empty; text and not json: every byte is in the hash
    after        text        NOT NULL,
    stream       text        NOT NULL, -- the event that this line tells of
    version      bigint      NOT NULL,
    position     bigint      NOT NULL,
    hash         text        NOT NULL CHECK (hash ~ '^[0-9a-f]{64}$'),
    PRIMARY KEY (organization, sequence)
);
CREATE UNIQUE INDEX audit_events_by_position ON audit_events (organization, position);
CREATE INDEX audit_events_by_time ON audit_events (organization, at);
CREATE INDEX audit_events_by_action ON audit_events (organization, action, sequence);
CREATE INDEX audit_events_by_actor ON audit_events (organization, actor, sequence);
CREATE INDEX audit_events_by_target ON audit_events (organization, target, sequence);

ALTER TABLE audit_events ENABLE ROW LEVEL SECURITY;
ALTER TABLE audit_events FORCE ROW LEVEL SECURITY;
CREATE POLICY audit_events_of_organization ON audit_events
    USING (organization = current_setting('weir.organization', true) OR current_setting('weir.organization', true) = '*');

-- Twice: a role that may not and does not notice, and one that may all the same.
REVOKE UPDATE, DELETE, TRUNCATE ON audit_events FROM PUBLIC, CURRENT_USER;

CREATE FUNCTION refuse_to_change_the_audit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit is never changed: % on % is refused', TG_OP, TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
END
$$;
CREATE TRIGGER audit_events_are_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_events
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_to_change_the_audit();
