-- Blocks lie in partitions by how long they are kept, in days, and by the day of receipt: what is past goes by the partition. What stands was
-- kept without a bound, so it gets the longest retention of all tiers.
ALTER TABLE blocks RENAME TO blocks_before;
ALTER TABLE blocks_before ADD COLUMN retention smallint NOT NULL DEFAULT 365 CHECK (retention > 0);
CREATE TABLE blocks (LIKE blocks_before INCLUDING CONSTRAINTS INCLUDING STORAGE) PARTITION BY LIST (retention);
CREATE TABLE blocks_365 (LIKE blocks INCLUDING ALL) PARTITION BY RANGE (received_at);
ALTER TABLE blocks ATTACH PARTITION blocks_365 FOR VALUES IN (365);

-- The day partitions move as they are, with their indexes; only the primary key is made anew, since it has to hold what partitions are told by.
DO $$
DECLARE
	part record;
BEGIN
	FOR part IN SELECT child.relname, pg_get_expr(child.relpartbound, child.oid) AS bound, key.conname
			FROM pg_inherits JOIN pg_class child ON child.oid = inhrelid JOIN pg_constraint key ON key.conrelid = child.oid AND key.contype = 'p'
			WHERE inhparent = 'blocks_before'::regclass LOOP
		EXECUTE format('ALTER TABLE blocks_before DETACH PARTITION %I', part.relname);
		EXECUTE format('ALTER TABLE %I DROP CONSTRAINT %I', part.relname, part.conname);
		EXECUTE format('ALTER TABLE %I ALTER COLUMN retention DROP DEFAULT', part.relname);
		EXECUTE format('ALTER TABLE %I RENAME TO %I', part.relname, replace(part.relname, 'blocks_', 'blocks_365_'));
		EXECUTE format('ALTER TABLE blocks_365 ATTACH PARTITION %I %s', replace(part.relname, 'blocks_', 'blocks_365_'), part.bound);
	END LOOP;
END $$;
DROP TABLE blocks_before;

ALTER TABLE blocks ADD PRIMARY KEY (organization, project, received_at, block, retention);
CREATE INDEX blocks_by_end ON blocks (organization, max_seconds DESC, max_nanos DESC, block DESC);
CREATE INDEX blocks_by_begin ON blocks (organization, min_seconds, min_nanos, block);
CREATE INDEX blocks_of_project_by_end ON blocks (organization, project, max_seconds DESC, max_nanos DESC, block DESC);
CREATE INDEX blocks_of_project_by_begin ON blocks (organization, project, min_seconds, min_nanos, block);
CREATE INDEX wide_blocks_by_end ON blocks (organization, max_seconds DESC, max_nanos DESC, block DESC) WHERE max_seconds - min_seconds > 3600;
CREATE INDEX wide_blocks_by_begin ON blocks (organization, min_seconds, min_nanos, block) WHERE max_seconds - min_seconds > 3600;

ALTER TABLE blocks ENABLE ROW LEVEL SECURITY;
ALTER TABLE blocks FORCE ROW LEVEL SECURITY;
CREATE POLICY organization ON blocks USING (organization = current_setting('weir.organization', true)
	OR current_setting('weir.organization', true) = '*');

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
