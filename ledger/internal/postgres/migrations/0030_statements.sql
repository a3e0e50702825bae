-- What came to in a period that is not simply the use of what its plan allows, added up: what statements are made of, beside books and usage. Periods
-- that had begun before this was kept have no statement.
CREATE TABLE period_lines (
	organization text        NOT NULL CHECK (organization <> ''), -- '' is what a session without one asks for
	period_start timestamptz NOT NULL,
	kind         smallint    NOT NULL,
	subject      text        NOT NULL, -- id of the grant or the adjustment; empty: of none
	of_period    timestamptz NOT NULL, -- start of the period that it makes good; else period_start
	bytes        bigint      NOT NULL,
	PRIMARY KEY (organization, period_start, kind, subject, of_period),
	FOREIGN KEY (organization, period_start) REFERENCES books (organization, period_start) ON DELETE CASCADE
) WITH (fillfactor = 60);

-- What closed periods came to. A statement is made once: with the decisions it is a source of truth, and nothing makes it again.
CREATE TABLE statements (
	organization text        NOT NULL CHECK (organization <> ''),
	number       bigint      NOT NULL CHECK (number > 0),
	period_start timestamptz NOT NULL,
	period_end   timestamptz NOT NULL,
	made_at      timestamptz NOT NULL,
	document     jsonb       NOT NULL,
	PRIMARY KEY (organization, number),
	UNIQUE (organization, period_start)
);

DO $$
DECLARE name text;
BEGIN
	FOREACH name IN ARRAY ARRAY['period_lines', 'statements'] LOOP
		EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
		EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
		EXECUTE format('CREATE POLICY organization ON %I USING (organization = current_setting(''weir.organization'', true)
			OR current_setting(''weir.organization'', true) = ''*'')', name);
	END LOOP;
END $$;
