-- Facts that a module publishes, in the order of their commits.
CREATE TABLE facts (
	organization text        NOT NULL CHECK (organization <> ''), -- '' is what a session without one asks for
	position     bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
	id           text        NOT NULL,
	type         text        NOT NULL,
	at           timestamptz NOT NULL,
	body         jsonb       NOT NULL,
	PRIMARY KEY (organization, position),
	UNIQUE (organization, id)
);
CREATE UNIQUE INDEX facts_relay ON facts (position);
ALTER TABLE facts ENABLE ROW LEVEL SECURITY;
ALTER TABLE facts FORCE ROW LEVEL SECURITY;
CREATE POLICY organization ON facts USING (organization = current_setting('weir.organization', true)
	OR current_setting('weir.organization', true) = '*');

-- A transaction that adds facts takes a turn before it draws the first position, until it commits. So positions are the
-- order of commits, and no other transaction of the server holds a relay back.
CREATE FUNCTION facts_take_turn() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM pg_advisory_xact_lock(hashtextextended('weir facts ' || TG_TABLE_SCHEMA, 0));
	RETURN NULL;
END $$;
CREATE TRIGGER facts_take_turn BEFORE INSERT ON facts FOR EACH STATEMENT EXECUTE FUNCTION facts_take_turn();
