-- People. An address is unique in the whole installation, because it is all that one says of oneself to sign in.

CREATE TABLE members (
    organization  text        NOT NULL REFERENCES organizations,
    id            text        NOT NULL,
    email         text        NOT NULL CHECK (email = lower(email)),
    name          text        NOT NULL,
    role          text        NOT NULL CHECK (role IN ('owner', 'admin', 'developer', 'viewer', 'billing')),
    password_hash text        NOT NULL, -- argon2id, with its parameters and salt
    created_at    timestamptz NOT NULL,
    PRIMARY KEY (organization, id)
);
CREATE UNIQUE INDEX members_by_id ON members (id);
CREATE UNIQUE INDEX members_by_email ON members (email);

ALTER TABLE members ENABLE ROW LEVEL SECURITY;
ALTER TABLE members FORCE ROW LEVEL SECURITY;
CREATE POLICY members_of_organization ON members
    USING (organization = current_setting('weir.organization', true) OR current_setting('weir.organization', true) = '*');
