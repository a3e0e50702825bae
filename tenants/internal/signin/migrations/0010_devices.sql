-- Browsers in which a member has signed in before: they are counted apart from strangers who guess at the member's password.
-- This is no projection: whoever loses it is a stranger once more.
CREATE TABLE devices (
    organization text        NOT NULL REFERENCES organizations,
    member       text        NOT NULL,
    hash         text        NOT NULL CHECK (hash ~ '^[0-9a-f]{64}$'), -- SHA-256 of the secret, which is nowhere
    session      text        NOT NULL, -- the last that was started there
    used_at      timestamptz NOT NULL,
    expires_at   timestamptz NOT NULL,
    PRIMARY KEY (organization, member, hash),
    FOREIGN KEY (organization, member) REFERENCES members (organization, id)
);
CREATE UNIQUE INDEX devices_by_hash ON devices (hash);
CREATE INDEX devices_by_session ON devices (organization, session);

ALTER TABLE devices ENABLE ROW LEVEL SECURITY;
ALTER TABLE devices FORCE ROW LEVEL SECURITY;
CREATE POLICY devices_of_organization ON devices
    USING (organization = current_setting('weir.organization', true) OR current_setting('weir.organization', true) = '*');
