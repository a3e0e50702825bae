-- Attempts to sign in as a member that did not succeed and are not in the audit yet: strangers must not fill it, so that it
-- gets one line for each member and hour. This is no projection: what is lost is a count.
CREATE TABLE sign_in_failures (
    organization text        NOT NULL REFERENCES organizations,
    member       text        NOT NULL,
    failed       integer     NOT NULL, -- with a wrong password
    refused      integer     NOT NULL, -- because there had been too many attempts
    networks     text[]      NOT NULL, -- the first few
    since        timestamptz, -- null: there are none
    told_at      timestamptz, -- null: never
    PRIMARY KEY (organization, member),
    FOREIGN KEY (organization, member) REFERENCES members (organization, id)
);
CREATE INDEX sign_in_failures_due ON sign_in_failures (told_at) WHERE failed + refused > 0;

ALTER TABLE sign_in_failures ENABLE ROW LEVEL SECURITY;
ALTER TABLE sign_in_failures FORCE ROW LEVEL SECURITY;
CREATE POLICY sign_in_failures_of_organization ON sign_in_failures
    USING (organization = current_setting('weir.organization', true) OR current_setting('weir.organization', true) = '*');
