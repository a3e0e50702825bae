-- What is deleted, and how far this module has erased it. A row stays for ever: what comes late of a deleted project has no effect.
CREATE TABLE erasures (
	organization text        NOT NULL CHECK (organization <> ''), -- '' is what a session without one asks for
	project      text        NOT NULL, -- '': all of the organization
	begun_at     timestamptz NOT NULL,
	gone_by      timestamptz NOT NULL,
	step         integer     NOT NULL DEFAULT 0,     -- which of the module's tables is next
	place        text        NOT NULL DEFAULT '',    -- where in that
	found        boolean     NOT NULL DEFAULT false, -- this pass over the tables has removed something
	removed      jsonb       NOT NULL DEFAULT '{}',  -- rows by table
	erased_at    timestamptz, -- null: there may be more
	published_at timestamptz, -- null: Erased is not published
	PRIMARY KEY (organization, project)
);
CREATE INDEX erasures_open ON erasures (begun_at) WHERE published_at IS NULL;
ALTER TABLE erasures ENABLE ROW LEVEL SECURITY;
ALTER TABLE erasures FORCE ROW LEVEL SECURITY;
CREATE POLICY organization ON erasures USING (organization = current_setting('weir.organization', true)
	OR current_setting('weir.organization', true) = '*');
