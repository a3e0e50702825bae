-- What was charged and decided in an hour of the log, by organization, each link with the hash of the one before: see ledger.Link.
CREATE TABLE links (
	organization text        NOT NULL CHECK (organization <> ''), -- '' is what a session without one asks for
	sequence     bigint      NOT NULL CHECK (sequence > 0),
	hour         timestamptz NOT NULL,
	charges      bigint      NOT NULL,
	bytes        bigint      NOT NULL,
	charged      bytea       NOT NULL,
	decisions    bigint      NOT NULL,
	decided      bytea       NOT NULL,
	previous     bytea       NOT NULL,
	hash         bytea       NOT NULL,
	PRIMARY KEY (organization, sequence)
);
CREATE INDEX links_hour ON links (hour); -- by which they age

-- The last link of each organization, also where it is not kept any more.
CREATE TABLE chains (
	organization text        NOT NULL CHECK (organization <> '') PRIMARY KEY,
	sequence     bigint      NOT NULL,
	hour         timestamptz NOT NULL,
	decisions    bigint      NOT NULL,
	hash         bytea       NOT NULL
) WITH (fillfactor = 60);

-- Where each hour of the log ends in each partition: before the first charge that was accepted later, or, where there was none in time, behind
-- all that was booked. It is of no organization.
CREATE TABLE cuts (
	partition   int         NOT NULL,
	hour        timestamptz NOT NULL,
	next_offset bigint      NOT NULL,
	PRIMARY KEY (partition, hour)
);

-- The hours that are cut, and the root of all chains at their end; none while their links are not written.
CREATE TABLE seals (
	hour          timestamptz NOT NULL PRIMARY KEY,
	organizations bigint,
	root          bytea,
	sealed_at     timestamptz
);

-- Charges that were booked before a cut once it was made, because they had been parked, and the hour that has them.
CREATE TABLE replays (
	partition int         NOT NULL,
	"offset"  bigint      NOT NULL,
	booked_at timestamptz NOT NULL,
	hour      timestamptz,
	PRIMARY KEY (partition, "offset")
);

DO $$
DECLARE name text;
BEGIN
	FOREACH name IN ARRAY ARRAY['links', 'chains'] LOOP
		EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
		EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
		EXECUTE format('CREATE POLICY organization ON %I USING (organization = current_setting(''weir.organization'', true)
			OR current_setting(''weir.organization'', true) = ''*'')', name);
	END LOOP;
END $$;
