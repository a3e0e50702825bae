-- The key has to hold what partitions are told by. Each day's is built here, beside the one of before, for 0007 to exchange them.
DO $$
DECLARE
	part name;
BEGIN
	FOR part IN SELECT child.relname FROM pg_inherits JOIN pg_class child ON child.oid = inhrelid WHERE inhparent = 'blocks'::regclass ORDER BY 1 LOOP
		EXECUTE format('CREATE UNIQUE INDEX %I ON %I (organization, project, received_at, block, retention)', part || '_key', part);
	END LOOP;
END $$;
