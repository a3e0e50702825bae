CREATE TABLE api_keys (
    organization    text        NOT NULL,
    id              text        NOT NULL,
    project         text        NOT NULL,
    environment     text        NOT NULL CHECK (environment IN ('prod', 'staging', 'dev')),
    name            text        NOT NULL,
    hash            text        NOT NULL CHECK (hash ~ '^[0-9a-f]{64}$'), -- SHA-256 of the key, which is not stored
    first           text        NOT NULL CHECK (length(first) = 4),
    last            text        NOT NULL CHECK (length(last) = 4),
    created_at      timestamptz NOT NULL,
    expires_at      timestamptz, -- null: never
    revoked_at      timestamptz, -- null: not revoked
    revoke_reason   text        NOT NULL DEFAULT '',
    rate_per_minute integer     NOT NULL DEFAULT 0, -- 0: no limit of its own
    replaces        text        NOT NULL DEFAULT '', -- id of the key that it replaces
    rotated_to      text        NOT NULL DEFAULT '', -- id of the key that replaces it
    rotated_at      timestamptz,
    exposures       jsonb       NOT NULL DEFAULT '[]', -- oldest first; see tenants.Exposure
    created_by      text        NOT NULL DEFAULT '', -- id of who asked for it, as the event's metadata says
    access          text        NOT NULL DEFAULT 'full', -- what it may read: full, project or write
    lenient         boolean     NOT NULL DEFAULT false, -- its entries are normalized
    origins         text[]      NOT NULL DEFAULT '{}', -- of the web pages that use it; none: programs do
    PRIMARY KEY (organization, id),
    FOREIGN KEY (organization, project) REFERENCES projects (organization, id) -- no key of one organization for a project of another
);
CREATE UNIQUE INDEX api_keys_by_id ON api_keys (id);
CREATE UNIQUE INDEX api_keys_by_hash ON api_keys (hash);
CREATE INDEX api_keys_by_project ON api_keys (organization, project, created_at, id);
CREATE INDEX api_keys_by_age ON api_keys (organization, created_at, id);

-- Requests by key, as services report them on weir.ingest.v1. The sums move in the transaction of the position there, so
-- each record counts once. They are no projection of our events.
CREATE TABLE api_key_usage (
    organization      text        NOT NULL,
    api_key           text        NOT NULL,
    accepted          bigint      NOT NULL,
    rejected          bigint      NOT NULL,
    refused           bigint      NOT NULL, -- because the key had ended
    accepted_since    bigint      NOT NULL, -- of accepted, those since it was rotated
    rejected_since    bigint      NOT NULL,
    first_accepted_at timestamptz,
    last_used_at      timestamptz NOT NULL,
    address           text        NOT NULL, -- of the last use
    client            text        NOT NULL,
    read              bigint      NOT NULL DEFAULT 0,
    read_since        bigint      NOT NULL DEFAULT 0,
    PRIMARY KEY (organization, api_key)
);

-- Who has used a key lately: the newest few of each key.
CREATE TABLE api_key_users (
    organization text        NOT NULL,
    api_key      text        NOT NULL,
    address      text        NOT NULL,
    client       text        NOT NULL,
    last_used_at timestamptz NOT NULL,
    PRIMARY KEY (organization, api_key, address, client)
);

DO $$
DECLARE name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['api_keys', 'api_key_usage', 'api_key_users'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY %I ON %I USING (organization = current_setting(''weir.organization'', true)
            OR current_setting(''weir.organization'', true) = ''*'')', name || '_of_organization', name);
    END LOOP;
END $$;
