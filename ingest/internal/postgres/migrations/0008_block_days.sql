-- In which partitions an organization has blocks, and the event times within which they lie: a search opens those partitions alone that it
-- comes to. Rows are only ever added, with bounds that are round, so that a day takes a few of them; they go with their partition.
CREATE TABLE block_days (
	organization text     NOT NULL CHECK (organization <> ''),
	retention    smallint NOT NULL,
	day          date     NOT NULL, -- of receipt
	wide         boolean  NOT NULL, -- blocks of more than an hour, or others
	from_seconds bigint   NOT NULL, -- no event time is before
	to_seconds   bigint   NOT NULL, -- none is a second or more behind
	PRIMARY KEY (organization, retention, day, wide, from_seconds, to_seconds)
);
ALTER TABLE block_days ENABLE ROW LEVEL SECURITY;
ALTER TABLE block_days FORCE ROW LEVEL SECURITY;
CREATE POLICY organization ON block_days USING (organization = current_setting('weir.organization', true)
	OR current_setting('weir.organization', true) = '*');

SELECT set_config('weir.organization', '*', true);
INSERT INTO block_days
	SELECT organization, retention, (received_at AT TIME ZONE 'UTC')::date, max_seconds - min_seconds > 3600, min(min_seconds), max(max_seconds)
	FROM blocks GROUP BY 1, 2, 3, 4;
SELECT set_config('weir.organization', '', true);
