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
    suspected_at    timestamptz, -- when it seemed that there is a copy of it; null: never
    PRIMARY KEY (organization, id),
    FOREIGN KEY (organization, member) REFERENCES members (organization, id)
);
CREATE UNIQUE INDEX passkeys_by_credential ON passkeys (credential);
CREATE INDEX passkeys_by_member ON passkeys (organization, member, created_at, id);

-- What a browser was asked to prove, and has not yet. Each can be answered once, by the browser that has its ticket in a
-- cookie. They are nobody's yet, so they belong to the installation. This is no projection: it is gone within minutes.
CREATE TABLE challenges (
    organization text        NOT NULL CHECK (organization = '*'),
    id           text        NOT NULL CHECK (id ~ '^[0-9a-f]{64}$'), -- SHA-256 of the ticket, which is nowhere
    purpose      text        NOT NULL, -- an answer for another purpose is none
    subject      text        NOT NULL, -- whose answer it has to be: a session, or '' for anybody's
    data         jsonb       NOT NULL,
    expires_at   timestamptz NOT NULL,
    PRIMARY KEY (organization, id)
);
CREATE INDEX challenges_by_end ON challenges (expires_at);

ALTER TABLE passkeys ENABLE ROW LEVEL SECURITY;
ALTER TABLE passkeys FORCE ROW LEVEL SECURITY;
CREATE POLICY passkeys_of_organization ON passkeys
    USING (organization = current_setting('weir.organization', true) OR current_setting('weir.organization', true) = '*');

ALTER TABLE challenges ENABLE ROW LEVEL SECURITY;
ALTER TABLE challenges FORCE ROW LEVEL SECURITY;
CREATE POLICY challenges_of_organization ON challenges
    USING (organization = current_setting('weir.organization', true) OR current_setting('weir.organization', true) = '*');
