-- Projections: every row can be rebuilt from the events of this schema.
--
-- The organization leads every key. Ids are unique in the whole installation too: an operator names a thing by its id
-- alone, and two organizations must never share one.

CREATE TABLE organizations (
    organization text        PRIMARY KEY CHECK (organization NOT IN ('', '*')),
    name         text        NOT NULL,
    tier         text        NOT NULL CHECK (tier IN ('indie', 'bootstrapper', 'compliance', 'scale')),
    created_at   timestamptz NOT NULL,
    deletion     text        NOT NULL DEFAULT '' -- the deletion that hides it; '': none
);
CREATE INDEX organizations_by_age ON organizations (created_at, organization);

CREATE TABLE projects (
    organization text        NOT NULL REFERENCES organizations,
    id           text        NOT NULL,
    name         text        NOT NULL,
    created_at   timestamptz NOT NULL,
    deletion     text        NOT NULL DEFAULT '', -- the deletion that hides it; '': none
    PRIMARY KEY (organization, id)
);
CREATE UNIQUE INDEX projects_by_id ON projects (id);
CREATE INDEX projects_by_age ON projects (organization, created_at, id);

CREATE TABLE service_tokens (
    organization  text        NOT NULL CHECK (organization <> ''), -- '*': bound to the installation
    id            text        NOT NULL,
    name          text        NOT NULL,
    scopes        text[]      NOT NULL,
    configured    boolean     NOT NULL, -- comes from the installation's configuration
    hash          text        NOT NULL CHECK (hash ~ '^[0-9a-f]{64}$'), -- SHA-256 of the token, which is not stored
    first         text        NOT NULL CHECK (length(first) = 4),
    last          text        NOT NULL CHECK (length(last) = 4),
    created_at    timestamptz NOT NULL,
    revoked_at    timestamptz, -- null: not revoked
    revoke_reason text        NOT NULL DEFAULT '',
    PRIMARY KEY (organization, id)
);
CREATE UNIQUE INDEX service_tokens_by_id ON service_tokens (id);
CREATE INDEX service_tokens_by_age ON service_tokens (organization, created_at, id);

-- What an organization wants to happen when a key leaks, and whether its members may sign in with passwords.
CREATE TABLE security_policies (
    organization    text        PRIMARY KEY REFERENCES organizations,
    leaked_keys     text        NOT NULL CHECK (leaked_keys IN ('notify', 'rotate', 'revoke')),
    plain_http_keys text        NOT NULL CHECK (plain_http_keys IN ('flag', 'revoke')),
    set_at          timestamptz NOT NULL,
    passwords_off   boolean     NOT NULL DEFAULT false
);

-- Deletions of organizations and projects, by the id of what is deleted: the newest of each. They hold only ids, and stay.
CREATE TABLE deletions (
    organization text        NOT NULL CHECK (organization <> ''),
    id           text        NOT NULL,
    project      text        NOT NULL, -- '': all of the organization
    state        text        NOT NULL CHECK (state IN ('cancelled', 'deleting', 'erasing', 'gone')),
    requested_at timestamptz NOT NULL,
    begins_at    timestamptz NOT NULL,
    gone_by      timestamptz NOT NULL,
    finished_at  timestamptz, -- null: not yet
    removed      jsonb       NOT NULL DEFAULT '{}', -- rows, by module and table, as far as the modules have reported
    PRIMARY KEY (organization, id)
);
CREATE UNIQUE INDEX deletions_by_id ON deletions (id);
CREATE INDEX deletions_by_age ON deletions (organization, requested_at, id);
CREATE INDEX deletions_unfinished ON deletions (begins_at) WHERE state IN ('deleting', 'erasing');

DO $$
DECLARE name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['organizations', 'projects', 'service_tokens', 'security_policies', 'deletions'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY %I ON %I USING (organization = current_setting(''weir.organization'', true)
            OR current_setting(''weir.organization'', true) = ''*'')', name || '_of_organization', name);
    END LOOP;
END $$;
