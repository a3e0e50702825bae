-- What was refused in the last day of each key, by code. An hour is that in which it was counted.
CREATE TABLE rejected_counts (
	organization text        NOT NULL,
	project      text        NOT NULL,
	key          text        NOT NULL,
	code         text        NOT NULL,
	hour         timestamptz NOT NULL,
	entries      bigint      NOT NULL,
	last_at      timestamptz NOT NULL,
	PRIMARY KEY (organization, project, key, code, hour)
) WITH (fillfactor = 50);

-- The newest samples of it.
CREATE TABLE rejected_samples (
	organization text        NOT NULL,
	project      text        NOT NULL,
	key          text        NOT NULL,
	code         text        NOT NULL,
	at           timestamptz NOT NULL,
	place        smallint    NOT NULL, -- among those of a moment
	pointer      text        NOT NULL,
	detail       text        NOT NULL,
	fix          text        NOT NULL,
	text         text        NOT NULL,
	cut          boolean     NOT NULL,
	PRIMARY KEY (organization, project, key, code, at, place)
);

DO $$
DECLARE name text;
BEGIN
	FOREACH name IN ARRAY ARRAY['rejected_counts', 'rejected_samples'] LOOP
		EXECUTE format('ALTER TABLE %I ADD CHECK (organization <> '''')', name); -- '' is what a session without one asks for
		EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
		EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
		EXECUTE format('CREATE POLICY organization ON %I USING (organization = current_setting(''weir.organization'', true)
			OR current_setting(''weir.organization'', true) = ''*'')', name);
	END LOOP;
END $$;
