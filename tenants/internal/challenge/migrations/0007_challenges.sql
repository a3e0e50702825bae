-- What a browser was asked to prove, until it is answered, once, by the browser that has the ticket in a cookie. Nobody is
-- signed in yet, so they belong to the installation. This is no projection: it is gone within minutes.
CREATE TABLE challenges (
    organization text        NOT NULL CHECK (organization = '*'),
    id           text        NOT NULL CHECK (id ~ '^[0-9a-f]{64}$'), -- SHA-256 of the ticket, which is not stored
    purpose      text        NOT NULL, -- an answer is valid for this purpose alone
    subject      text        NOT NULL, -- which session must answer, or '' for any browser
    data         jsonb       NOT NULL,
    expires_at   timestamptz NOT NULL,
    PRIMARY KEY (organization, id)
);
CREATE INDEX challenges_by_end ON challenges (expires_at);

ALTER TABLE challenges ENABLE ROW LEVEL SECURITY;
ALTER TABLE challenges FORCE ROW LEVEL SECURITY;
CREATE POLICY challenges_of_organization ON challenges
    USING (organization = current_setting('weir.organization', true) OR current_setting('weir.organization', true) = '*');
