-- Facts that a module says, read by its relay in the order of their commits.
CREATE TABLE facts (
	organization text        NOT NULL CHECK (organization <> ''), -- '' is what a session without one asks for
	position     bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
	transaction  xid8        NOT NULL DEFAULT pg_current_xact_id(),
	id           text        NOT NULL,
	type         text        NOT NULL,
	at           timestamptz NOT NULL,
	body         jsonb       NOT NULL,
	PRIMARY KEY (organization, position),
	UNIQUE (organization, id)
);
CREATE INDEX facts_relay ON facts (transaction, position);
ALTER TABLE facts ENABLE ROW LEVEL SECURITY;
ALTER TABLE facts FORCE ROW LEVEL SECURITY;
CREATE POLICY organization ON facts USING (organization = current_setting('weir.organization', true)
	OR current_setting('weir.organization', true) = '*');
