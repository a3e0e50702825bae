-- Rotation, limits and exposures of API keys; what an organization wants to happen when a key is exposed; and how keys
-- are used, which is no event of ours: ingest counts it, and tells now and then.

ALTER TABLE api_keys
    ADD COLUMN rate_per_minute integer NOT NULL DEFAULT 0, -- 0: no limit of its own
    ADD COLUMN replaces        text    NOT NULL DEFAULT '', -- id of the key whose place it takes
    ADD COLUMN rotated_to      text    NOT NULL DEFAULT '', -- id of the key that takes its place
    ADD COLUMN rotated_at      timestamptz,
    ADD COLUMN exposures       jsonb   NOT NULL DEFAULT '[]', -- oldest first; see tenants.Exposure
    ADD COLUMN created_by      text    NOT NULL DEFAULT '';  -- id of who asked for it, as the event's metadata says
CREATE UNIQUE INDEX api_keys_by_hash ON api_keys (hash);

CREATE TABLE security_policies (
    organization    text PRIMARY KEY REFERENCES organizations,
    leaked_keys     text        NOT NULL CHECK (leaked_keys IN ('notify', 'rotate', 'revoke')),
    plain_http_keys text        NOT NULL CHECK (plain_http_keys IN ('flag', 'revoke')),
    set_at          timestamptz NOT NULL
);

-- Requests by key. The sums move in the transaction of the position on weir.ingest.v1, so each record counts once.
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

ALTER TABLE security_policies ENABLE ROW LEVEL SECURITY;
ALTER TABLE security_policies FORCE ROW LEVEL SECURITY;
CREATE POLICY security_policies_of_organization ON security_policies
    USING (organization = current_setting('weir.organization', true) OR current_setting('weir.organization', true) = '*');

ALTER TABLE api_key_usage ENABLE ROW LEVEL SECURITY;
ALTER TABLE api_key_usage FORCE ROW LEVEL SECURITY;
CREATE POLICY api_key_usage_of_organization ON api_key_usage
    USING (organization = current_setting('weir.organization', true) OR current_setting('weir.organization', true) = '*');

ALTER TABLE api_key_users ENABLE ROW LEVEL SECURITY;
ALTER TABLE api_key_users FORCE ROW LEVEL SECURITY;
CREATE POLICY api_key_users_of_organization ON api_key_users
    USING (organization = current_setting('weir.organization', true) OR current_setting('weir.organization', true) = '*');
