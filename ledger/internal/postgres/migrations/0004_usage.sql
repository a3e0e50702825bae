-- What became of requests, by the hour (UTC) of acceptance, or of the tally that counted them, and the same by day. What is accepted is what was
-- charged. An empty project, key and environment: of any, where too many were in use at once, or of a time before they were counted apart.
CREATE TABLE usage_hours (
	organization text        NOT NULL CHECK (organization <> ''), -- '' is what a session without one asks for
	hour         timestamptz NOT NULL,
	project      text        NOT NULL,
	key          text        NOT NULL,
	environment  text        NOT NULL,
	outcome      text        NOT NULL,
	reason       text        NOT NULL,
	requests     bigint      NOT NULL,
	entries      bigint      NOT NULL,
	bytes        bigint      NOT NULL,
	errors       bigint      NOT NULL,
	key_in_body  bigint      NOT NULL,
	PRIMARY KEY (organization, hour, project, key, environment, outcome, reason)
) WITH (fillfactor = 60);
CREATE INDEX usage_hours_hour ON usage_hours (hour); -- by which they age

CREATE TABLE usage_days (
	organization text   NOT NULL CHECK (organization <> ''), -- '' is what a session without one asks for
	day          date   NOT NULL,
	project      text   NOT NULL,
	key          text   NOT NULL,
	environment  text   NOT NULL,
	outcome      text   NOT NULL,
	reason       text   NOT NULL,
	requests     bigint NOT NULL,
	entries      bigint NOT NULL,
	bytes        bigint NOT NULL,
	errors       bigint NOT NULL,
	key_in_body  bigint NOT NULL,
	PRIMARY KEY (organization, day, project, key, environment, outcome, reason)
) WITH (fillfactor = 60);
CREATE INDEX usage_days_day ON usage_days (day); -- by which they go, with the day of transfers

SELECT set_config('weir.organization', '*', true);
INSERT INTO usage_days SELECT organization, day, project, '', '', 'accepted', '', 0, entries, bytes, errors, 0 FROM usage;
SELECT set_config('weir.organization', '', true);
DROP TABLE usage;

-- Up to which sequence the tallies of each process of ingest are counted.
CREATE TABLE tallies (
	organization text        NOT NULL CHECK (organization <> ''), -- '' is what a session without one asks for
	process      text        NOT NULL,
	sequence     bigint      NOT NULL,
	at           timestamptz NOT NULL, -- when the last was booked
	PRIMARY KEY (organization, process)
) WITH (fillfactor = 60);
CREATE INDEX tallies_at ON tallies USING brin (at);

DO $$
DECLARE name text;
BEGIN
	FOREACH name IN ARRAY ARRAY['usage_hours', 'usage_days', 'tallies'] LOOP
		EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
		EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
		EXECUTE format('CREATE POLICY organization ON %I USING (organization = current_setting(''weir.organization'', true)
			OR current_setting(''weir.organization'', true) = ''*'')', name);
	END LOOP;
END $$;
