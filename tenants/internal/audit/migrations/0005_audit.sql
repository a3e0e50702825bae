-- The audit: what each event means to people who read it later, who decided it and from where. It is written with the
-- event and never rebuilt: lines are added, never changed.
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
    stream       text        NOT NULL, -- of the event
    version      bigint      NOT NULL,
    position     bigint      NOT NULL,
    hash         text        NOT NULL CHECK (hash ~ '^[0-9a-f]{64}$'),
    reduced_by   text        NOT NULL DEFAULT '', -- the deletion that removed its texts; '': it is as it was written
    PRIMARY KEY (organization, sequence)
);
CREATE UNIQUE INDEX audit_events_by_position ON audit_events (organization, position);
CREATE INDEX audit_events_by_time ON audit_events (organization, at);
CREATE INDEX audit_events_by_action ON audit_events (organization, action, sequence);
CREATE INDEX audit_events_by_actor ON audit_events (organization, actor, sequence);
CREATE INDEX audit_events_by_target ON audit_events (organization, target, sequence);
CREATE INDEX audit_events_reduced ON audit_events (organization, reduced_by, sequence) WHERE reduced_by <> '';

-- Where the audit of an organization begins, once its oldest lines were removed: at the last of these. The lines after it
-- follow from its hash, and tell of the events after its position.
CREATE TABLE audit_anchors (
    organization text        PRIMARY KEY CHECK (organization <> ''), -- '*': of the installation
    sequence     bigint      NOT NULL CHECK (sequence > 0),
    position     bigint      NOT NULL,
    hash         text        NOT NULL CHECK (hash ~ '^[0-9a-f]{64}$'),
    at           timestamptz NOT NULL -- of the line
);

DO $$
DECLARE name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['audit_events', 'audit_anchors'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY %I ON %I USING (organization = current_setting(''weir.organization'', true)
            OR current_setting(''weir.organization'', true) = ''*'')', name || '_of_organization', name);
    END LOOP;
END $$;

-- By rights and by triggers, since a table's owner can grant itself any right.
REVOKE UPDATE, DELETE, TRUNCATE ON audit_events FROM PUBLIC, CURRENT_USER;
GRANT DELETE, UPDATE (actor_name, address, client, request, target_name, before, after, reduced_by) ON audit_events TO CURRENT_USER;

CREATE FUNCTION refuse_to_change_the_audit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit is never changed: % on % is refused', TG_OP, TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
END
$$;
CREATE TRIGGER audit_events_are_kept BEFORE TRUNCATE ON audit_events
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_to_change_the_audit();

-- A deletion leaves of a line who did what to what, by their ids. The line keeps its hash, which continues the chain.
CREATE FUNCTION let_the_audit_be_reduced() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.reduced_by = '' OR OLD.reduced_by <> '' OR (to_jsonb(NEW) - '{actor_name,address,client,request,target_name,before,after,reduced_by}'::text[])
        <> (to_jsonb(OLD) - '{actor_name,address,client,request,target_name,before,after,reduced_by}'::text[])
        OR NEW.actor_name NOT IN ('', OLD.actor_name) OR NEW.address <> '' OR NEW.client <> '' OR NEW.request <> ''
        OR NEW.target_name NOT IN ('', OLD.target_name) OR NEW.before NOT IN ('', OLD.before) OR NEW.after NOT IN ('', OLD.after)
    THEN
        RAISE EXCEPTION 'the audit is never changed: % on % is refused', TG_OP, TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER audit_events_are_only_reduced BEFORE UPDATE ON audit_events
    FOR EACH ROW EXECUTE FUNCTION let_the_audit_be_reduced();

-- Lines go only behind an anchor, and an anchor only goes forward.
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
