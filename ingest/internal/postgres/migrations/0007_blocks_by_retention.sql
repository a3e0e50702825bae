-- Blocks lie in partitions by how long they are kept and by the day of receipt: what is past goes by the partition. The table of before becomes
-- the partition of its retention as it is, with its indexes: nothing is read but the catalogue, and nothing built but the keys of a day that is
-- younger than 0006.
ALTER TABLE blocks DROP CONSTRAINT blocks_pkey;
ALTER TABLE blocks ALTER COLUMN retention DROP DEFAULT;
DROP POLICY organization ON blocks;
ALTER TABLE blocks NO FORCE ROW LEVEL SECURITY, DISABLE ROW LEVEL SECURITY;
ALTER TABLE blocks RENAME TO blocks_365;
DO $$
DECLARE
	it record;
BEGIN
	FOR it IN SELECT relname AS was, replace(relname, 'blocks_', 'blocks_365_') AS becomes
			FROM pg_index JOIN pg_class c ON c.oid = indexrelid WHERE indrelid = 'blocks_365'::regclass LOOP
		EXECUTE format('ALTER INDEX %I RENAME TO %I', it.was, it.becomes);
	END LOOP;
	FOR it IN SELECT relname AS was, replace(relname, 'blocks_', 'blocks_365_') AS becomes
			FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid WHERE inhparent = 'blocks_365'::regclass ORDER BY 1 LOOP
		EXECUTE format('ALTER TABLE %I RENAME TO %I', it.was, it.becomes);
		IF to_regclass(quote_ident(it.was || '_key')) IS NOT NULL THEN
			EXECUTE format('ALTER TABLE %I ADD CONSTRAINT %I PRIMARY KEY USING INDEX %I', it.becomes, it.becomes || '_pkey', it.was || '_key');
		END IF;
	END LOOP;
END $$;
ALTER TABLE blocks_365 ADD PRIMARY KEY (organization, project, received_at, block, retention);

CREATE TABLE blocks (LIKE blocks_365 INCLUDING CONSTRAINTS INCLUDING STORAGE) PARTITION BY LIST (retention);
ALTER TABLE blocks DROP CONSTRAINT blocks_of_before;
ALTER TABLE blocks ADD PRIMARY KEY (organization, project, received_at, block, retention);
CREATE INDEX blocks_by_end ON blocks (organization, max_seconds DESC, max_nanos DESC, block DESC);
CREATE INDEX blocks_by_begin ON blocks (organization, min_seconds, min_nanos, block);
CREATE INDEX blocks_of_project_by_end ON blocks (organization, project, max_seconds DESC, max_nanos DESC, block DESC);
CREATE INDEX blocks_of_project_by_begin ON blocks (organization, project, min_seconds, min_nanos, block);
CREATE INDEX wide_blocks_by_end ON blocks (organization, max_seconds DESC, max_nanos DESC, block DESC) WHERE max_seconds - min_seconds > 3600;
CREATE INDEX wide_blocks_by_begin ON blocks (organization, min_seconds, min_nanos, block) WHERE max_seconds - min_seconds > 3600;
ALTER TABLE blocks ATTACH PARTITION blocks_365 FOR VALUES IN (365);
ALTER TABLE blocks_365 DROP CONSTRAINT blocks_of_before;

ALTER TABLE blocks ENABLE ROW LEVEL SECURITY;
ALTER TABLE blocks FORCE ROW LEVEL SECURITY;
CREATE POLICY organization ON blocks USING (organization = current_setting('weir.organization', true)
	OR current_setting('weir.organization', true) = '*');
