-- Members. An address is unique in the whole installation, because it is all that people name to sign in; it is free
-- again once its member is removed.
CREATE TABLE members (
    organization     text        NOT NULL REFERENCES organizations,
    id               text        NOT NULL,
    email            text        NOT NULL CHECK (email = lower(email)),
    name             text        NOT NULL,
    role             text        NOT NULL CHECK (role IN ('owner', 'admin', 'developer', 'viewer', 'billing')),
    password_hash    text        NOT NULL, -- argon2id, with its parameters and salt
    created_at       timestamptz NOT NULL,
    password_at      timestamptz, -- null: as when the member was added
    removed_at       timestamptz, -- null: is a member
    reset_hash       text        CHECK (reset_hash ~ '^[0-9a-f]{64}$'), -- SHA-256 of the reset code, which is not stored; null: none is valid
    reset_expires_at timestamptz,
    identity_issuer  text        NOT NULL DEFAULT '', -- the identity provider; '': none has signed the member in yet
    identity_subject text        NOT NULL DEFAULT '', -- who the member is there, whatever becomes of the address
    without_mails    text[]      NOT NULL DEFAULT '{}', -- kinds of mail about the account that the member declined
    PRIMARY KEY (organization, id)
);
CREATE UNIQUE INDEX members_by_id ON members (id);
CREATE UNIQUE INDEX members_by_email ON members (email) WHERE removed_at IS NULL;
CREATE UNIQUE INDEX members_by_reset_hash ON members (reset_hash) WHERE reset_hash IS NOT NULL;
CREATE UNIQUE INDEX members_by_identity ON members (identity_issuer, identity_subject) WHERE identity_issuer <> '';
CREATE INDEX members_by_age ON members (organization, created_at, id) WHERE removed_at IS NULL;

CREATE TABLE invitations (
    organization text        NOT NULL REFERENCES organizations,
    id           text        NOT NULL,
    email        text        NOT NULL CHECK (email = lower(email)),
    role         text        NOT NULL CHECK (role IN ('owner', 'admin', 'developer', 'viewer', 'billing')),
    made_by      text        NOT NULL, -- a member or a service token
    code_hash    text        NOT NULL CHECK (code_hash ~ '^[0-9a-f]{64}$'), -- SHA-256 of the code, which is not stored
    created_at   timestamptz NOT NULL,
    expires_at   timestamptz NOT NULL,
    revoked_at   timestamptz, -- null: not revoked
    accepted_at  timestamptz, -- null: not accepted
    member       text        NOT NULL DEFAULT '', -- who accepted it
    PRIMARY KEY (organization, id)
);
CREATE UNIQUE INDEX invitations_by_id ON invitations (id);
CREATE UNIQUE INDEX invitations_by_code_hash ON invitations (code_hash);
CREATE INDEX invitations_by_age ON invitations (organization, created_at, id);
-- One person has one invitation at a time; sending it again gives it another code.
CREATE UNIQUE INDEX invitations_by_email ON invitations (organization, email) WHERE revoked_at IS NULL AND accepted_at IS NULL;

DO $$
DECLARE name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['members', 'invitations'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY %I ON %I USING (organization = current_setting(''weir.organization'', true)
            OR current_setting(''weir.organization'', true) = ''*'')', name || '_of_organization', name);
    END LOOP;
END $$;
