-- What happened, for ever: rows are added, never changed and never removed.
--
-- The relay reads in the order (transaction, position) and only below the oldest transaction that is still running
-- (pg_snapshot_xmin). A sequence alone would lose events: a lower position may be committed after a higher one was read.
-- After restoring a dump into another cluster, whose transaction ids start elsewhere, set transaction = '1' everywhere.
CREATE TABLE events (
    organization text   NOT NULL CHECK (organization <> ''), -- '*': belongs to the installation
    stream       text   NOT NULL CHECK (stream <> ''),
    version      bigint NOT NULL CHECK (version > 0),
    transaction  xid8   NOT NULL DEFAULT pg_current_xact_id(),
    position     bigserial NOT NULL,
    name         text   NOT NULL,
    data         json   NOT NULL, -- json and not jsonb: the text stays as it was written
    metadata     json   NOT NULL,
    PRIMARY KEY (organization, stream, version) -- the last guard against two appends at one version
);

-- Read across organizations by the relay only.
CREATE UNIQUE INDEX events_in_commit_order ON events (transaction, position);

ALTER TABLE events ENABLE ROW LEVEL SECURITY;
ALTER TABLE events FORCE ROW LEVEL SECURITY;
CREATE POLICY events_of_organization ON events
    USING (organization = current_setting('weir.organization', true) OR current_setting('weir.organization', true) = '*');
