-- Deletions of organizations and projects, by the id of what is deleted: the newest of each. They hold ids alone and stay.
CREATE TABLE deletions (
    organization text        NOT NULL CHECK (organization <> ''),
    id           text        NOT NULL,
    project      text        NOT NULL, -- '': all of the organization
    state        text        NOT NULL CHECK (state IN ('cancelled', 'deleting', 'erasing', 'gone')),
    requested_at timestamptz NOT NULL,
    begins_at    timestamptz NOT NULL,
    gone_by      timestamptz NOT NULL,
    finished_at  timestamptz, -- null: has not
    removed      jsonb       NOT NULL DEFAULT '{}', -- rows, by module and table, as far as the modules have reported
    PRIMARY KEY (organization, id)
);
CREATE UNIQUE INDEX deletions_by_id ON deletions (id);
CREATE INDEX deletions_by_age ON deletions (organization, requested_at, id);
CREATE INDEX deletions_unfinished ON deletions (begins_at) WHERE state IN ('deleting', 'erasing');

-- Records that take back what was published of what is deleted. A relay publishes them; then they go.
CREATE TABLE withdrawals (
    organization text   NOT NULL CHECK (organization <> ''),
    position     bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    topic        text   NOT NULL,
    key          text   NOT NULL,
    type         text   NOT NULL,
    value        text,  -- null: a tombstone
    PRIMARY KEY (organization, position)
);
CREATE UNIQUE INDEX withdrawals_in_order ON withdrawals (position);

DO $$
DECLARE name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['deletions', 'withdrawals'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY %I ON %I USING (organization = current_setting(''weir.organization'', true)
            OR current_setting(''weir.organization'', true) = ''*'')', name || '_of_organization', name);
    END LOOP;
END $$;

-- By which deletion they are hidden; '': by none.
ALTER TABLE organizations ADD COLUMN deletion text NOT NULL DEFAULT '';
ALTER TABLE projects ADD COLUMN deletion text NOT NULL DEFAULT '';
