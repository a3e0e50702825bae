-- People come and go: members are removed, change roles and passwords; others are invited.

ALTER TABLE members
    ADD COLUMN password_at      timestamptz, -- null: as when the member was added
    ADD COLUMN removed_at       timestamptz, -- null: is a member
    ADD COLUMN reset_hash       text CHECK (reset_hash ~ '^[0-9a-f]{64}$'), -- SHA-256 of the code, which is nowhere; null: none is out
    ADD COLUMN reset_expires_at timestamptz;

-- An address is free again when its member is removed.
DROP INDEX members_by_email;
CREATE UNIQUE INDEX members_by_email ON members (email) WHERE removed_at IS NULL;
CREATE UNIQUE INDEX members_by_reset_hash ON members (reset_hash) WHERE reset_hash IS NOT NULL;
CREATE INDEX members_by_age ON members (organization, created_at, id) WHERE removed_at IS NULL;

CREATE TABLE invitations (
    organization text        NOT NULL REFERENCES organizations,
    id           text        NOT NULL,
    email        text        NOT NULL CHECK (email = lower(email)),
    role         text        NOT NULL CHECK (role IN ('owner', 'admin', 'developer', 'viewer', 'billing')),
    made_by      text        NOT NULL, -- a member or a service token
    code_hash    text        NOT NULL CHECK (code_hash ~ '^[0-9a-f]{64}$'), -- SHA-256 of the code, which is nowhere
    created_at   timestamptz NOT NULL,
    expires_at   timestamptz NOT NULL,
    revoked_at   timestamptz, -- null: was not taken back
    accepted_at  timestamptz, -- null: nobody has joined by it
    member       text NOT NULL DEFAULT '', -- who has joined by it
    PRIMARY KEY (organization, id)
);
CREATE UNIQUE INDEX invitations_by_id ON invitations (id);
CREATE UNIQUE INDEX invitations_by_code_hash ON invitations (code_hash);
CREATE INDEX invitations_by_age ON invitations (organization, created_at, id);
-- One person has one invitation at a time; sending it again gives it another code.
CREATE UNIQUE INDEX invitations_by_email ON invitations (organization, email) WHERE revoked_at IS NULL AND accepted_at IS NULL;

-- Sessions that were not ended. One that has expired goes when its member signs in again.
CREATE TABLE sessions (
    organization text        NOT NULL REFERENCES organizations,
    id           text        NOT NULL,
    member       text        NOT NULL,
    hash         text        NOT NULL CHECK (hash ~ '^[0-9a-f]{64}$'), -- SHA-256 of the secret, which is nowhere
    started_at   timestamptz NOT NULL,
    expires_at   timestamptz NOT NULL,
    PRIMARY KEY (organization, id),
    FOREIGN KEY (organization, member) REFERENCES members (organization, id)
);
CREATE INDEX sessions_by_member ON sessions (organization, member, started_at, id);

-- Those who are signed in while this is applied are known too.
SELECT set_config('weir.organization', '*', true);
INSERT INTO sessions (organization, id, member, hash, started_at, expires_at)
SELECT e.organization, e.data->>'session', e.data->>'member', e.data->'imprint'->>'hash',
       (e.data->>'at')::timestamptz, (e.data->>'expires_at')::timestamptz
FROM events e
WHERE e.name = 'tenants.v1.session_started' AND (e.data->>'expires_at')::timestamptz > now()
  AND NOT EXISTS (SELECT FROM events ended WHERE ended.organization = e.organization AND ended.stream = e.stream
                  AND ended.name = 'tenants.v1.session_ended');
SELECT set_config('weir.organization', '', true);

ALTER TABLE invitations ENABLE ROW LEVEL SECURITY;
ALTER TABLE invitations FORCE ROW LEVEL SECURITY;
CREATE POLICY invitations_of_organization ON invitations
    USING (organization = current_setting('weir.organization', true) OR current_setting('weir.organization', true) = '*');

ALTER TABLE sessions ENABLE ROW LEVEL SECURITY;
ALTER TABLE sessions FORCE ROW LEVEL SECURITY;
CREATE POLICY sessions_of_organization ON sessions
    USING (organization = current_setting('weir.organization', true) OR current_setting('weir.organization', true) = '*');
