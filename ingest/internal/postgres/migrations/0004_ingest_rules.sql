-- What is done to the entries of a project before they are kept: all lines, as somebody wrote them, by version. The newest one
-- holds.
CREATE TABLE ingest_rules (
	organization text        NOT NULL CHECK (organization <> ''),
	project      text        NOT NULL,
	version      bigint      NOT NULL CHECK (version > 0),
	text         text        NOT NULL,
	note         text        NOT NULL,
	set_by       text        NOT NULL, -- a member or an API key
	set_by_name  text        NOT NULL, -- of the member, where it was known
	set_at       timestamptz NOT NULL,
	restored     bigint      NOT NULL, -- the version whose text it is; 0: none
	PRIMARY KEY (organization, project, version)
);

ALTER TABLE ingest_rules ENABLE ROW LEVEL SECURITY;
ALTER TABLE ingest_rules FORCE ROW LEVEL SECURITY;
CREATE POLICY organization ON ingest_rules USING (organization = current_setting('weir.organization', true)
	OR current_setting('weir.organization', true) = '*');
