-- What happened: rows are added, never changed and never removed.
--
-- Appends take turns under an advisory lock, so position is the order of commits, with gaps where one was rolled back.
CREATE TABLE events (
    organization text      NOT NULL CHECK (organization <> ''), -- '*': belongs to the installation
    stream       text      NOT NULL CHECK (stream <> ''),
    version      bigint    NOT NULL CHECK (version > 0),
    position     bigserial NOT NULL,
    name         text      NOT NULL,
    data         json      NOT NULL, -- json and not jsonb: the text stays as it was written
    metadata     json      NOT NULL,
    private      boolean   NOT NULL DEFAULT false, -- not published; a program that doesn't know its name skips it
    PRIMARY KEY (organization, stream, version) -- the last guard against two appends at one version
);
CREATE UNIQUE INDEX events_in_commit_order ON events (position); -- across organizations, for the relay
CREATE INDEX events_by_organization ON events (organization, position);

ALTER TABLE events ENABLE ROW LEVEL SECURITY;
ALTER TABLE events FORCE ROW LEVEL SECURITY;
CREATE POLICY events_of_organization ON events
    USING (organization = current_setting('weir.organization', true) OR current_setting('weir.organization', true) = '*');
