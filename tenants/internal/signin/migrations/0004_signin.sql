-- Sessions that were not ended. An expired one goes when its member signs in again.
CREATE TABLE sessions (
    organization text        NOT NULL REFERENCES organizations,
    id           text        NOT NULL,
    member       text        NOT NULL,
    hash         text        NOT NULL CHECK (hash ~ '^[0-9a-f]{64}$'), -- SHA-256 of the secret, which is not stored
    started_at   timestamptz NOT NULL,
    expires_at   timestamptz NOT NULL,
    method       text        NOT NULL DEFAULT '', -- how it was started, and from where: for its member to recognize
    address      text        NOT NULL DEFAULT '',
    client       text        NOT NULL DEFAULT '',
    used_at      timestamptz, -- when it was last started, renewed or confirmed; null: when it was started
    ended_at     timestamptz, -- null: not ended
    end_reason   text        NOT NULL DEFAULT '',
    PRIMARY KEY (organization, id),
    FOREIGN KEY (organization, member) REFERENCES members (organization, id)
);
CREATE UNIQUE INDEX sessions_by_id ON sessions (id);
CREATE INDEX sessions_by_member ON sessions (organization, member, started_at, id);

-- Keys of members' devices, by which they prove who they are. What is kept of them is public.
CREATE TABLE passkeys (
    organization    text        NOT NULL REFERENCES organizations,
    id              text        NOT NULL,
    member          text        NOT NULL,
    name            text        NOT NULL,
    credential      bytea       NOT NULL CHECK (length(credential) BETWEEN 1 AND 1023), -- how the device calls it
    public_key      bytea       NOT NULL,
    counter         bigint      NOT NULL,
    transports      text[]      NOT NULL,
    model           bytea       NOT NULL,
    backup_eligible boolean     NOT NULL,
    backed_up       boolean     NOT NULL,
    created_at      timestamptz NOT NULL,
    used_at         timestamptz, -- null: never
    suspected_at    timestamptz, -- when there seemed to be a copy of it; null: never
    PRIMARY KEY (organization, id),
    FOREIGN KEY (organization, member) REFERENCES members (organization, id)
);
CREATE UNIQUE INDEX passkeys_by_credential ON passkeys (credential);
CREATE INDEX passkeys_by_member ON passkeys (organization, member, created_at, id);

-- Browsers in which a member has signed in before: their failures are counted apart from those of strangers who guess.
-- This is no projection: without it, such a browser counts as a stranger.
CREATE TABLE devices (
    organization text        NOT NULL REFERENCES organizations,
    member       text        NOT NULL,
    hash         text        NOT NULL CHECK (hash ~ '^[0-9a-f]{64}$'), -- SHA-256 of the secret, which is not stored
    session      text        NOT NULL, -- the last that was started there
    used_at      timestamptz NOT NULL,
    expires_at   timestamptz NOT NULL,
    PRIMARY KEY (organization, member, hash),
    FOREIGN KEY (organization, member) REFERENCES members (organization, id)
);
CREATE UNIQUE INDEX devices_by_hash ON devices (hash);
CREATE INDEX devices_by_session ON devices (organization, session);

-- Failed attempts to sign in as a member that are not in the audit yet: it gets one line for each member and hour, so that
-- strangers can't fill it. This is no projection: if it is lost, so is a count.
CREATE TABLE sign_in_failures (
    organization         text        NOT NULL REFERENCES organizations,
    member               text        NOT NULL,
    failed               integer     NOT NULL, -- with a wrong password
    refused              integer     NOT NULL, -- after too many attempts
    networks             text[]      NOT NULL, -- the first few
    since                timestamptz, -- null: there are none
    told_at              timestamptz, -- null: never
    refusals_reported_at timestamptz, -- null: never; the first refusal of an hour doesn't wait for the report of wrong passwords before it
    PRIMARY KEY (organization, member),
    FOREIGN KEY (organization, member) REFERENCES members (organization, id)
);
CREATE INDEX sign_in_failures_due ON sign_in_failures (told_at) WHERE failed + refused > 0;

DO $$
DECLARE name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['sessions', 'passkeys', 'devices', 'sign_in_failures'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY %I ON %I USING (organization = current_setting(''weir.organization'', true)
            OR current_setting(''weir.organization'', true) = ''*'')', name || '_of_organization', name);
    END LOOP;
END $$;
