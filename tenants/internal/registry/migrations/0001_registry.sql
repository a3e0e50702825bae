-- What the events of this schema say now. Every row can be made again from them.
--
-- The organization leads every key. Ids are unique in the whole installation too: an operator names a thing by its id
-- alone, and two organizations must never share one.

CREATE TABLE organizations (
    organization text PRIMARY KEY CHECK (organization NOT IN ('', '*')),
    name         text        NOT NULL,
    tier         text        NOT NULL CHECK (tier IN ('indie', 'bootstrapper', 'compliance', 'scale')),
    created_at   timestamptz NOT NULL
);
CREATE INDEX organizations_by_age ON organizations (created_at, organization);

CREATE TABLE projects (
    organization text        NOT NULL REFERENCES organizations,
    id           text        NOT NULL,
    name         text        NOT NULL,
    created_at   timestamptz NOT NULL,
    PRIMARY KEY (organization, id)
);
CREATE UNIQUE INDEX projects_by_id ON projects (id);
CREATE INDEX projects_by_age ON projects (organization, created_at, id);

CREATE TABLE api_keys (
    organization  text        NOT NULL,
    id            text        NOT NULL,
    project       text        NOT NULL,
    environment   text        NOT NULL CHECK (environment IN ('prod', 'staging', 'dev')),
    name          text        NOT NULL,
    hash          text        NOT NULL CHECK (hash ~ '^[0-9a-f]{64}$'), -- SHA-256 of the key, which is nowhere
    first         text        NOT NULL CHECK (length(first) = 4),
    last          text        NOT NULL CHECK (length(last) = 4),
    created_at    timestamptz NOT NULL,
    expires_at    timestamptz, -- null: never
    revoked_at    timestamptz, -- null: not revoked
    revoke_reason text        NOT NULL DEFAULT '',
    PRIMARY KEY (organization, id),
    FOREIGN KEY (organization, project) REFERENCES projects (organization, id) -- no key of one for a project of another
);
CREATE UNIQUE INDEX api_keys_by_id ON api_keys (id);
CREATE INDEX api_keys_by_project ON api_keys (organization, project, created_at, id);

CREATE TABLE service_tokens (
    organization  text        NOT NULL CHECK (organization <> ''), -- '*': bound to the installation
    id            text        NOT NULL,
    name          text        NOT NULL,
    scopes        text[]      NOT NULL,
    configured    boolean     NOT NULL, -- comes from the installation's configuration
    hash          text        NOT NULL CHECK (hash ~ '^[0-9a-f]{64}$'), -- SHA-256 of the token, which is nowhere
    first         text        NOT NULL CHECK (length(first) = 4),
    last          text        NOT NULL CHECK (length(last) = 4),
    created_at    timestamptz NOT NULL,
    revoked_at    timestamptz, -- null: not revoked
    revoke_reason text        NOT NULL DEFAULT '',
    PRIMARY KEY (organization, id)
);
CREATE UNIQUE INDEX service_tokens_by_id ON service_tokens (id);
CREATE INDEX service_tokens_by_age ON service_tokens (organization, created_at, id);

ALTER TABLE organizations ENABLE ROW LEVEL SECURITY;
ALTER TABLE organizations FORCE ROW LEVEL SECURITY;
CREATE POLICY organizations_of_organization ON organizations
    USING (organization = current_setting('weir.organization', true) OR current_setting('weir.organization', true) = '*');

ALTER TABLE projects ENABLE ROW LEVEL SECURITY;
ALTER TABLE projects FORCE ROW LEVEL SECURITY;
CREATE POLICY projects_of_organization ON projects
    USING (organization = current_setting('weir.organization', true) OR current_setting('weir.organization', true) = '*');

ALTER TABLE api_keys ENABLE ROW LEVEL SECURITY;
ALTER TABLE api_keys FORCE ROW LEVEL SECURITY;
CREATE POLICY api_keys_of_organization ON api_keys
    USING (organization = current_setting('weir.organization', true) OR current_setting('weir.organization', true) = '*');

ALTER TABLE service_tokens ENABLE ROW LEVEL SECURITY;
ALTER TABLE service_tokens FORCE ROW LEVEL SECURITY;
CREATE POLICY service_tokens_of_organization ON service_tokens
    USING (organization = current_setting('weir.organization', true) OR current_setting('weir.organization', true) = '*');
